"""What a person sees of a run's convergence while it goes on."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from credence.density.data import Data, rows_at
from credence.density.posterior import BayesianModel, Posterior
from credence.engine.progress import Monitor
from credence.ensembles.diagnostics.convergence import assess
from credence.spacing import evenly_spaced

NUM_POINTS = 20
"""Training inputs at which predictions are watched."""


def function_monitor(posterior: Posterior) -> Monitor:
    """Predictions at a few training inputs, for the live R-hat and ESS."""
    rows = rows_at(posterior.data, evenly_spaced(posterior.num_points, NUM_POINTS))

    def functions(
        draws: Float[np.ndarray, "chain draw weight"],
    ) -> Float[np.ndarray, "chain draw point"]:
        return np.asarray(_first_output(jnp.asarray(draws), rows, model=posterior.model))

    return Monitor(functions, convergence_words)


def convergence_words(functions: Float[np.ndarray, "chain draw point"]) -> str:
    """R-hat and effective sample size of the worst prediction, for a line of progress; where there
    are none, why."""
    found = assess(functions[..., None])
    words = []
    if found.max_rhat_function is not None:
        words.append(f"R-hat {found.max_rhat_function:.3f}")
    if found.min_ess_function is not None:
        words.append(f"ESS {found.min_ess_function:.0f}")
    return "  ".join(words) or found.reason


@partial(jax.jit, static_argnames="model")
def _first_output(
    draws: Float[Array, "chain draw weight"],
    rows: Data,
    *,
    model: BayesianModel,
) -> Float[Array, "chain draw row"]:
    def output(position: Float[Array, " weight"]) -> Float[Array, " row"]:
        return model.network.apply(model.unravel(position, rows).network, rows.x)[:, 0]

    return jax.vmap(jax.vmap(output))(draws)
