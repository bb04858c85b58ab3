"""Multilevel sequential Monte Carlo: a telescoping sum over networks of growing width."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import jax
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Float, PRNGKeyArray

from credence.ensemble import Ensemble, Inputs
from credence.errors import InputError
from credence.kernels.tempering import Bridge
from credence.methods import allocation
from credence.methods.base import Drawn, Method
from credence.methods.mutation import Mutation
from credence.methods.particles import Memory, Tempering, step_weights
from credence.methods.smc import (
    PARTICLES_AND_RUNS,
    check_particles,
    first_tuning,
    from_prior,
    log_likelihood,
    log_prior,
    prior_draws,
    to_posterior,
)
from credence.models import nested
from credence.models.networks import Network
from credence.models.priors import GaussianPrior, require_positive
from credence.posterior import BayesianModel, Data, Params, Position, Posterior
from credence.run import Driver


@dataclass(frozen=True, kw_only=True)
class MLSMC(Method):
    """Multilevel SMC: Chada, Jasra, Law & Singh, "Bayesian Deep Learning with Multilevel
    Trace-class Neural Networks", Algorithm 3.1 and the estimator (3.5).

    Level l is a network whose parameters are the leading block of level l + 1's, under a prior for
    which that block has the coarse prior's law (`models.TraceClass`). Particles that know level l
    are mutated there, get the new rows and columns from the prior, and are weighed by
    G = L_{l+1} / L_l. Many cheap coarse particles carry the variance, few fine ones the
    difference:

        E f ~ sum W f_1 + sum over l of (sum W f_l - mean f_{l-1}),

    which the ensemble holds as *signed* weights of networks embedded in the finest. Where the
    weights G would fall below `mutation.ess_target`, the step from level to level is tempered along
    L_l^(1 - t) L_{l+1}^t, each temperature with its own difference in the sum: (3.5) again, on
    a longer sequence of densities.

    Args:
        widths: hidden widths of every level, from coarse to fine, the last as the posterior's
            network; None: `num_levels` or as many as there are above `base`, each `ratio` wider.
        num_levels, base, ratio: see `models.nested.widths`.
        coarse: networks of the coarse levels, where they differ otherwise than in width.
        num_particles: of every level; one number is the coarsest level's, and `allocation.usual`
            says how many the others get. See `allocated` for a wanted variance.
        num_runs: independent runs; their spread is the Monte Carlo error.
        mutation: how particles move and resample, and the ESS to keep.

    Scalars: log_evidence (nats) of the run; of a member its level, and the increment (term of the
    sum) in which it counts.
    """

    name: ClassVar[str] = "mlsmc"
    summary: ClassVar[str] = "multilevel SMC over widths: exact in the limit, with evidence"
    is_chain: ClassVar[bool] = False
    prior: ClassVar[str] = "trace_class"
    aliases: ClassVar[Mapping[str, str]] = PARTICLES_AND_RUNS

    widths: tuple[tuple[int, ...], ...] | None = None
    num_levels: int | None = None
    base: int | None = None
    ratio: float = 2.0
    coarse: tuple[Network, ...] = ()
    num_particles: int | tuple[int, ...] = 500
    num_runs: int = 4
    mutation: Mutation = field(default=Mutation())

    def __post_init__(self) -> None:
        require_positive(num_runs=self.num_runs)
        for count in np.atleast_1d(self.num_particles):
            check_particles(int(count))

    def levels(self, posterior: Posterior) -> list[Posterior]:
        """The posterior of every level, from coarse to fine.

        Raises:
            InputError: where the levels are not nested, or the prior is not.
        """
        network = posterior.model.network
        networks = [*self.coarse, network]
        if not self.coarse:
            hidden = self.widths or nested.widths(
                _hidden(network), self.num_levels, self.base, self.ratio
            )
            networks = [nested.narrowed(network, one) for one in nested.increasing(hidden)]
        if networks[-1] != network:
            raise InputError(
                f"The last level must be the posterior's own network, got {networks[-1]} for "
                f"{network}: end widths with {_hidden(network)}."
            )
        model, data = posterior.model, posterior.data
        levels = [
            Posterior(network, model.prior, model.likelihood, (data.x, data.y, data.weight))
            for network in networks
        ]
        for coarse, fine in pairwise(levels):
            _require_nested(coarse, fine)
        return levels

    def counts(self, levels: Sequence[Posterior]) -> tuple[int, ...]:
        """Particles of every level.

        Raises:
            InputError: where there are more or fewer numbers than levels.
        """
        if isinstance(self.num_particles, int):
            return allocation.usual(self.num_particles, [level.num_weights for level in levels])
        if len(self.num_particles) != len(levels):
            raise InputError(
                f"num_particles has {len(self.num_particles)} numbers for {len(levels)} levels: "
                "give one per level, or one number."
            )
        return self.num_particles

    def allocated(
        self, pilot: Ensemble, posterior: Posterior, x: Inputs, variance: float
    ) -> "MLSMC":
        """The same method with as many particles per level as a variance of predictions needs.

        Args:
            pilot: what this method returned for the posterior, with num_runs >= 2.
            x: inputs at which predictions matter.
            variance: to reach, of one run, in squared units of the network's predictions.
        """
        sizes = np.array([level.num_weights for level in self.levels(posterior)], float)
        variances = allocation.increment_variances(pilot, x)
        return replace(self, num_particles=allocation.for_variance(variance, variances, sizes))

    def _run(self, key: PRNGKeyArray, posterior: Posterior, driver: Driver) -> Drawn:
        levels = self.levels(posterior)
        counts = self.counts(levels)
        tempering = Tempering(self.mutation, self.num_runs)
        key_prior, key_temper, *keys = jax.random.split(key, 1 + len(levels))
        memory, data, log_anchor = from_prior(key_prior, levels[0], driver, tempering, counts[0])
        bridge = to_posterior(levels[0].model, levels[0].num_weights)
        _, memory = tempering.temper("temper", key_temper, driver, bridge, memory, data)
        members = [Members(memory.cloud.position, memory.weights, 0, 0)]
        log_evidence = log_anchor + np.asarray(memory.log_evidence)
        ladder = _Ladder(driver, tempering, data, levels, counts)
        for level, key in enumerate(keys, 1):
            bridge, memory, increment = ladder.climb(level, key, bridge, memory)
            members += increment
            log_evidence = log_evidence + np.asarray(memory.log_evidence)
        embedded = [
            _embedded(part.position, data, coarse=levels[part.level].model, fine=posterior.model)
            for part in members
        ]
        weights = np.concatenate([np.asarray(part.weights) for part in members], axis=1)
        sizes = [part.weights.shape[1] for part in members]
        numbers = {
            "level": np.repeat([float(part.level) for part in members], sizes),
            "increment": np.repeat([float(part.increment) for part in members], sizes),
        }
        return Drawn(
            np.concatenate(embedded, axis=1),
            {
                "log_evidence": np.broadcast_to(log_evidence[:, None], weights.shape),
                **{name: np.broadcast_to(row, weights.shape) for name, row in numbers.items()},
            },
            weights=weights / self.num_runs,
        )


class Members(NamedTuple):
    """Networks of one level, and how they count in the sum over levels."""

    position: Float[Any, "run particle weight"]
    weights: Float[Any, "run particle"]
    level: int
    increment: int
    """The term of the sum over levels that they belong to."""


@dataclass(frozen=True)
class _Ladder:
    """Levels, and what moves particles up them."""

    driver: Driver
    tempering: Tempering
    data: Data
    levels: Sequence[Posterior]
    counts: Sequence[int]

    def climb(
        self, level: int, key: PRNGKeyArray, bridge: Bridge, memory: Memory
    ) -> tuple[Bridge, Memory, list[Members]]:
        """From a cloud that knows the level below to one that knows this level.

        Returns:
            This level's bridge, its memory at the end, and the members of its increment.
        """
        coarse, fine = self.levels[level - 1], self.levels[level]
        driver, data, tempering = self.driver, self.data, self.tempering
        key_move, key_new, key_weigh, key_resample, key_temper = jax.random.split(key, 5)
        (moved, *_), tuned, _ = tempering.move(
            f"mutate {level}", key_move, driver, bridge, memory, data, self.counts[level]
        )
        keys = jax.random.split(key_new, moved.shape[:2])
        new = prior_draws(keys, data, model=fine.model)
        positions = _extended(moved, new, data, coarse=coarse.model, fine=fine.model)
        bridge = to_level(coarse.model, fine.model, coarse.num_weights + fine.num_weights)
        cloud = tempering.weigh(f"weigh {level}", key_weigh, driver, bridge, positions, data)
        tuning = first_tuning(fine, tempering.mutation)._replace(log_step_size=tuned.log_step_size)
        first = tempering.start(key_resample, cloud, tuning)
        later, memory = tempering.temper(
            f"temper {level}", key_temper, driver, bridge, first, data, keep_clouds=True
        )
        equal = np.full(first.weights.shape, 1 / self.counts[level])
        members = [
            Members(positions, first.weights, level, level),
            Members(moved, -equal, level - 1, level),
        ]
        _, *steps = np.diff(memory.temperatures[: int(memory.stage) + 1])  # the first is `first`'s
        for step, cloud in zip(steps, later, strict=True):
            weights = step_weights(cloud, step)
            members.append(Members(cloud.position, weights - equal, level, level))
        return bridge, memory, members


@lru_cache(maxsize=256)
def to_level(coarse: BayesianModel, fine: BayesianModel, num_weights: int) -> Bridge:
    """The bridge between the posteriors of two levels, both under the fine prior."""

    def log_start(position: Position, data: Data) -> Float[Any, ""]:
        return coarse.log_likelihood(_leading(fine.unravel(position, data), coarse, data), data)

    return Bridge(log_prior(fine), log_start, log_likelihood(fine), num_weights)


def _leading(params: Params, coarse: BayesianModel, data: Data) -> Params:
    """The coarse model's parameters inside finer ones."""
    template = coarse.template(data).network
    return params._replace(network=nested.leading(params.network, template))


@partial(jax.jit, static_argnames=("coarse", "fine"))
def _extended(
    coarse_positions: Float[Any, "run particle weight"],
    fine_draws: Float[Any, "run particle new"],
    data: Data,
    *,
    coarse: BayesianModel,
    fine: BayesianModel,
) -> Float[Any, "run particle new"]:
    """Coarse particles with the entries that are new at the fine level, drawn from its prior."""

    def one(position: Position, draw: Float[Any, " new"]) -> Float[Any, " new"]:
        params, new = coarse.unravel(position, data), fine.unravel(draw, data)
        network = nested.extended(params.network, new.network)
        return ravel_pytree(params._replace(network=network))[0]

    return jax.vmap(jax.vmap(one))(coarse_positions, fine_draws)


@partial(jax.jit, static_argnames=("coarse", "fine"))
def _embedded(
    positions: Float[Any, "run particle weight"],
    data: Data,
    *,
    coarse: BayesianModel,
    fine: BayesianModel,
) -> Float[Any, "run particle new"]:
    """Coarse networks as fine ones that are the same functions."""

    def one(position: Position) -> Float[Any, " new"]:
        params = coarse.unravel(position, data)
        network = nested.embedded(params.network, fine.template(data).network)
        return ravel_pytree(params._replace(network=network))[0]

    return jax.vmap(jax.vmap(one))(positions)


def _require_nested(coarse: Posterior, fine: Posterior) -> None:
    """Refuse levels of which one is not the leading block of the next, prior included."""
    prior = fine.model.prior
    if not isinstance(prior, GaussianPrior):
        raise InputError(f"Multilevel SMC needs a Gaussian prior, got {prior}: use TraceClass.")
    small, large = (level.model.template(level.data).network for level in (coarse, fine))
    if not nested.is_nested(prior, coarse.model.network, small, fine.model.network, large):
        raise InputError(
            f"{prior} is not nested: its law of a coarse network's weights changes with the width. "
            "Use the trace-class prior, models.TraceClass(alpha=2)."
        )


def _hidden(network: Any) -> tuple[int, ...]:
    """Hidden widths of an MLP, inside a wrapper or not."""
    return getattr(getattr(network, "network", network), "hidden", ())
