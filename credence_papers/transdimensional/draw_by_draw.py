"""Score networks one at a time: figures 5.6, 6.3 and 6.5 of the thesis."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from credence.compare.problem import Arrays
from credence.ensembles.ensemble import Ensemble
from credence.spacing import evenly_spaced

NUM_CHAINS, NUM_DRAWS = 4, 200
"""Chains, and draws of each, that a chart shows."""


def shown_chains(num_chains: int) -> list[int]:
    """Choose a few chains, evenly spaced."""
    return evenly_spaced(num_chains, NUM_CHAINS).tolist()


def draw_by_draw(ensemble: Ensemble, arrays: Arrays) -> dict[str, Any]:
    """Score some draws of a few chains, each network by itself.

    "single" are errors at the test rows (RMSE in units of the target, or accuracy of labels), and
    "log_density" is log p(training targets, weights | size) for weights N(0, 1), in nats; both
    [chain, draw], of every "every"-th draw.
    """
    every = max(1, ensemble.num_draws // NUM_DRAWS)
    chains = shown_chains(ensemble.num_chains)
    is_shown = np.zeros((ensemble.num_chains, ensemble.num_draws), bool)
    is_shown[np.ix_(chains, range(0, ensemble.num_draws, every))] = True
    some = ensemble.subset(is_shown, is_chain=False)
    found = {"single": _scores(some, arrays), "log_density": _log_density(some, arrays)}
    shaped = {name: values.reshape(len(chains), -1).tolist() for name, values in found.items()}
    return {**shaped, "every": every}


def _scores(ensemble: Ensemble, arrays: Arrays) -> Float[np.ndarray, " member"]:
    means = np.asarray(ensemble.functions(arrays.x_test), float)[0]
    if arrays.scaler is None:
        return np.mean(means.argmax(axis=-1) == arrays.y_test, axis=1)
    errors = arrays.scaler.inverse_scale(means[..., 0] - np.ravel(arrays.y_test))
    return np.sqrt(np.mean(errors**2, axis=1))


def _log_density(ensemble: Ensemble, arrays: Arrays) -> Float[np.ndarray, " member"]:
    """Weights of neurons that are not there are zero, and have no density."""
    y = jnp.asarray(arrays.y_train)
    log_likelihood = ensemble.predictive(arrays.x_train).member_log_probs(y)
    log_density = np.asarray(log_likelihood, float).sum(axis=1)
    for leaf in jax.tree.leaves(ensemble.params.network):
        weights = np.asarray(leaf, float)[0]
        log_normal = np.where(weights == 0, 0.0, -0.5 * (weights**2 + np.log(2 * np.pi)))
        log_density += log_normal.reshape(len(weights), -1).sum(axis=1)
    return log_density
