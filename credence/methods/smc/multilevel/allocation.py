"""Choose the levels that a multilevel estimator needs, and the number of particles of each.

Giles, "Multilevel Monte Carlo path simulation" (2008): eq. (12) is the cheapest way to a variance,
section 4 tells when the finest level is fine enough.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from credence.density.data import num_targets
from credence.density.posterior import Posterior
from credence.ensembles.ensemble import Ensemble
from credence.ensembles.predictor import Inputs
from credence.errors import InputError
from credence.methods.smc.budget import Allotment
from credence.methods.smc.multilevel.increments import prior_increments

LEAST_PARTICLES = 50
"""Fewest particles of a level: fewer know too little of their own weights."""

MOST_NATS = 0.4
"""Change of the log likelihood that particles bear without tempering."""


def usual(num_particles: int, sizes: Sequence[int]) -> tuple[int, ...]:
    """Particles of every level without a pilot: they fall as sizes^-1.5, to 50 at least.

    That is between width^-2 (one hidden layer: beta = 3, gamma = 1 in Theorem 2.1 of Chada et al.)
    and width^-2.5 (more layers: gamma = 2), as which sqrt(V_l / C_l) falls.
    """
    least = min(num_particles, LEAST_PARTICLES)
    return tuple(max(least, round(num_particles * (sizes[0] / size) ** 1.5)) for size in sizes)


def for_variance(
    variance: float, variances: Float[np.ndarray, " level"], costs: Float[np.ndarray, " level"]
) -> tuple[int, ...]:
    """Particles that reach a variance at least cost, 50 at least.

        P_l = sqrt(V_l / C_l) sum_j sqrt(V_j C_j) / variance

    Args:
        variance: of the estimator, in squared units of the predictions.
        variances: V_l, of one particle's share in the level's increment; see `increments`.
        costs: C_l, of one particle at the level.
    """
    if not variance > 0:
        raise InputError(f"The variance to reach must be > 0, got {variance}.")
    wanted = np.sqrt(variances / costs) * np.sum(np.sqrt(variances * costs)) / variance
    return tuple(max(LEAST_PARTICLES, int(np.ceil(count))) for count in wanted)


class Increments(NamedTuple):
    """What a pilot tells of every term of a multilevel sum, averaged over predictions."""

    variances: Float[np.ndarray, " level"]
    """V_l: of a run's term, times its particles."""
    mean_squares: Float[np.ndarray, " level"]
    """Squares of the mean terms; the pilot's Monte Carlo error adds to them."""
    costs: Float[np.ndarray, " level"]
    """C_l in FLOPs: of one particle, with its share of all temperatures and mutation steps."""


def increments(pilot: Ensemble, x: Inputs) -> Increments:
    """Variance, size and cost of every increment, from the runs of a pilot.

    Args:
        pilot: of `mlsmc`, with several runs.
        x: inputs at which predictions matter.
    Raises:
        InputError: for an ensemble that is not multilevel, or of one run.
    """
    if "increment" not in pilot.scalars or pilot.weights is None or pilot.num_chains < 2:
        raise InputError("A pilot is an ensemble of mlsmc with num_runs >= 2.")
    functions = pilot.functions(x)
    increment, level, flops = (pilot.scalars[name][0] for name in ("increment", "level", "flops"))
    weights = pilot.num_chains * pilot.weights

    def about(number: int) -> tuple[float, float, float]:
        mine = increment == number
        num_particles = np.sum(mine & (level == number - 1)) if number else np.sum(mine)
        terms = np.einsum("rm,rmpt->rpt", weights[:, mine], functions[:, mine])
        variance = np.var(terms, axis=0, ddof=1)
        mean_square = np.mean(terms.mean(axis=0) ** 2)
        return num_particles * np.mean(variance), mean_square, flops[mine][0]

    columns = zip(*(about(number) for number in range(int(increment.max()) + 1)), strict=True)
    return Increments(*map(np.array, columns))


def allotment(pilot: Ensemble, x: Inputs) -> Allotment:
    """Tell how dear particles are, and how many every level should get, from a pilot.

    Particles fall as sqrt(V_l / C_l), Giles (2008), eq. (12). A pilot tells a variance to a factor
    of two or so; no level gets more than the coarsest.

    Args:
        pilot: of `mlsmc`, with several runs.
        x: inputs at which predictions matter.
    """
    found = increments(pilot, x)
    return Allotment(found.costs, shares(found.variances, found.costs))


def shares(
    variances: Float[np.ndarray, " level"], costs: Float[np.ndarray, " level"]
) -> Float[np.ndarray, " level"]:
    """Particles of every level for one of the coarsest: see `allotment`."""
    found = np.sqrt(variances / costs)
    return np.minimum(found / found[0], 1.0)


def bias(found: Increments, factors: Sequence[float]) -> float:
    """Root mean square error of the finest level's expectation, as the increments betray it.

    Giles (2008), section 4: where the bias falls by a known factor from level to level, an
    increment tells the bias below it. The largest such guess counts, so that one increment that is
    small by chance does not.

    Args:
        factors: by which the bias falls at every step from one level to the next, > 1.
    Raises:
        InputError: for a single level, whose bias nobody can tell.
    """
    if len(found.mean_squares) < 2:
        raise InputError(
            "The bias of a level is estimated from increments: use two levels or more."
        )
    steps = np.asarray(factors)
    left = 1 / np.append(np.cumprod(steps[:0:-1])[::-1], 1.0)  # of the bias above each step
    return float(np.max(found.mean_squares[1:] ** 0.5 / (steps - 1) * left))


def nats_between(
    levels: Sequence[Posterior],
    *,
    num_draws: int = 200,
    num_rows: int = 50,
    key: PRNGKeyArray | None = None,
) -> Float[np.ndarray, " step"]:
    """How much the step from one level to the next changes the log likelihood, under the prior.

    Half the Fisher information in the outputs, times the squares of the outputs' increments, summed
    over all rows; for normal noise N E(f_l - f_{l-1})^2 / (2 sigma^2). The information is that of
    outputs 0, from targets drawn there; a learnt noise counts as where it starts. Particles weighed
    across a step that costs more than `MOST_NATS` degenerate.

    Args:
        levels: from coarse to fine.
        num_draws, num_rows: of the prior and of the data, for the estimate.
        key: None takes the same rows and draws every time, so that the same problem gets the same
            levels.
    """
    model, data = levels[-1].model, levels[-1].data
    if key is None:
        key_steps, key_targets = jax.random.key(0), jax.random.key(1)
        order = np.random.default_rng(0).permutation(data.x.shape[0])
    else:
        key_steps, key_targets, key_rows = jax.random.split(key, 3)
        order = np.asarray(jax.random.permutation(key_rows, data.x.shape[0]))
    chosen = order[:num_rows]
    x, weight = data.x[chosen], data.weight[chosen]
    networks = tuple(level.model.network for level in levels)
    steps = prior_increments(key_steps, model.prior, networks, x, num_draws=num_draws)  # type: ignore[arg-type]
    noise = model.likelihood.init(num_targets(data))

    def change(key: PRNGKeyArray, step: Float[Array, "point output"]) -> Float[Array, ""]:
        y = model.likelihood.sample(key, noise, jnp.zeros_like(step))

        def along(share: Float[Array, ""]) -> Float[Array, " point"]:
            return model.likelihood.log_prob(noise, share * step, y)

        score = jax.jacfwd(along)(jnp.zeros((), step.dtype))
        return 0.5 * jnp.sum(weight * score**2)

    keys = jax.random.split(key_targets, steps.shape[:2])
    changes = jnp.mean(jax.vmap(jax.vmap(change))(keys, steps), axis=0)
    return np.asarray(changes, float) * data.x.shape[0] / len(x)


def coarsest(levels: Sequence[Posterior]) -> int:
    """The level to start from: the coarsest one above which no step costs over `MOST_NATS`, and at
    the latest the one before the finest."""
    if len(levels) < 2:
        return 0
    too_far = np.flatnonzero(nats_between(levels) > MOST_NATS)
    return min(int(too_far[-1]) + 1 if too_far.size else 0, len(levels) - 2)
