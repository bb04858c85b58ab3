"""Start further chains, to see whether there are modes that no chain has visited."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from credence.density.data import Data, rows_at
from credence.density.posterior import BayesianModel, Posterior
from credence.engine.driver import Driver
from credence.engine.phases import PhaseResult
from credence.engine.plan import Plan
from credence.ensembles.diagnostics.starts import Starts, compare_starts
from credence.ensembles.predictive import Predictive
from credence.errors import Interrupted
from credence.methods.training import Training, train
from credence.spacing import evenly_spaced

NUM_DRAWS = 50
"""Draws of each further start; the first half, on which it settles, is dropped."""
FEWEST_DRAWS = 10 * NUM_DRAWS
"""Draws per chain from which on the look elsewhere takes a few percent of the run."""
NUM_ROWS = 50
"""Training rows at whose predictions starts and chains are compared."""
COMPARED_DRAWS = 250
"""Draws of every chain with which the further starts are compared."""


def scout(
    key: PRNGKeyArray,
    posterior: Posterior,
    driver: Driver,
    plan: Plan,
    sample: PhaseResult,
    data: Data,
    training: Training,
) -> Starts | None:
    """Train as many networks again as there are chains, let them move on, and compare both.

    The further starts use the compiled programs of the chains, so nothing but the comparison is
    compiled. The result is None where the run has few draws, its time is limited, it was stopped,
    or its rows lie on disk.

    Args:
        plan, sample, data: those of the chains' phase.
    """
    num_chains, num_draws, _ = sample.draws.shape
    is_short = num_draws < FEWEST_DRAWS or driver.stopped != "finished"
    if is_short or driver.max_seconds is not None or not data.rows.in_memory:
        return None
    key_train, key_move = jax.random.split(key)
    try:
        with driver.part("scout", cost_class="scout"):
            starts = train(key_train, posterior, driver, num_chains, training)
            shorter = replace(
                plan,
                num_steps=NUM_DRAWS * plan.thinning,
                monitored=False,
                may_stop_early=False,
            )
            moved = driver.phase("move", key_move, shorter, starts.positions, data)
    except Interrupted:
        return None  # the chains have all their draws
    settled = moved.draws[:, NUM_DRAWS // 2 :]
    kept = evenly_spaced(num_draws, COMPARED_DRAWS, to_whole=np.floor)
    chosen = evenly_spaced(posterior.num_points, NUM_ROWS, to_whole=np.floor)
    rows = rows_at(posterior.data, chosen)
    seen = partial(_seen, posterior.model, rows, data)
    functions, log_density = seen(sample.draws[:, kept])
    start_functions, start_log_density = seen(settled)
    return compare_starts(
        functions.reshape(-1, functions.shape[-1]),
        log_density.ravel(),
        start_functions,
        start_log_density,
    )


def _seen(
    model: BayesianModel, rows: Data, data: Data, draws: Float[np.ndarray, "chain draw weight"]
) -> tuple[Float[np.ndarray, "chain draw function"], Float[np.ndarray, "chain draw"]]:
    """Predictions at the rows, and log densities, of all draws."""
    found = _seen_at(jnp.asarray(draws.reshape(-1, draws.shape[-1])), rows, data, model=model)
    functions, log_density = (np.asarray(leaf, float) for leaf in found)
    return functions.reshape(*draws.shape[:2], -1), log_density.reshape(draws.shape[:2])


@partial(jax.jit, static_argnames="model")
def _seen_at(
    positions: Float[Array, "draw weight"], rows: Data, data: Data, *, model: BayesianModel
) -> tuple[Float[Array, "draw function"], Float[Array, " draw"]]:
    def one(position: Float[Array, " weight"]) -> tuple[Array, Array]:
        params = model.unravel(position, rows)
        outputs = model.network.apply(params.network, rows.x)
        alone = jax.tree.map(lambda leaf: leaf[None], params.likelihood)
        predictive = Predictive(model.likelihood, outputs[None], alone, jnp.ones(1, outputs.dtype))
        return predictive.monitored().ravel(), model.log_density(params, data)

    return jax.lax.map(one, positions)
