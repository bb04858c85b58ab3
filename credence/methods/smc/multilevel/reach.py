"""How far a level reaches: the particles that are left when they are weighed to a finer network.

Steps between levels are narrow where it counts, at the coarse network's posterior, or they are not;
a small run at the coarse level tells. `allocation.nats_between` tells the same under the prior,
before anything is run: it is too low where the data ask for more than the prior gives, and too high
where classes leave the networks free.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, PRNGKeyArray

from credence.density.data import Data
from credence.density.posterior import BayesianModel, Posterior, flat_log_likelihood
from credence.methods.smc.method import SMC
from credence.methods.smc.multilevel.levels import coarse_log_likelihood
from credence.methods.smc.multilevel.proposal import from_prior

LEAST_SHARE = 0.5
"""Effective share of the particles that is left where a step is narrow enough."""

_BATCH = 100
"""Networks whose likelihoods are computed at once."""

LogWeights = Float[np.ndarray, "particle try"]


def narrowest(
    key: PRNGKeyArray,
    levels: Sequence[Posterior],
    *,
    share: float = LEAST_SHARE,
    num_particles: int = 200,
    num_tries: int = 16,
) -> tuple[int, list[float]]:
    """The first level whose particles can be weighed to the finest in one step.

    Args:
        levels: from coarse to fine, two or more.
        share: effective share of the particles that must be left.
        num_particles: of a run of SMC at each level that is tried.
        num_tries: draws of the new weights for each particle, which count together.
    Returns:
        Its place, at the latest the one before the finest; and the share at each level tried.
    """
    shares: list[float] = []
    for level in levels[:-1]:
        key, key_cloud, key_new = jax.random.split(key, 3)
        cloud = particles(key_cloud, level, num_particles)
        weights = log_weights(key_new, cloud, level, levels[-1], num_tries=num_tries)
        shares.append(effective_share(weights))
        if shares[-1] >= share:
            break
    return len(shares) - 1, shares


def particles(
    key: PRNGKeyArray, posterior: Posterior, count: int
) -> Float[Array, "particle weight"]:
    """Draws from a posterior, by one run of SMC."""
    params = SMC(num_particles=count, num_runs=1).run(key, posterior).params
    flat = jax.vmap(jax.vmap(lambda one: ravel_pytree(one)[0]))
    return flat(jax.tree.map(jnp.asarray, params))[0]


def log_weights(
    key: PRNGKeyArray,
    cloud: Float[Array, "particle weight"],
    coarse: Posterior,
    fine: Posterior,
    *,
    num_tries: int,
) -> LogWeights:
    """Log of G = L_fine / L_coarse, in nats, of particles whose new weights are prior draws.

    Args:
        cloud: of the coarse posterior.
        num_tries: draws of the new weights for each particle.
    """
    every = jnp.repeat(cloud, num_tries, axis=0)[None]
    (wide,) = from_prior(key, every, fine.data, coarse=coarse.model, fine=fine.model)
    found = _log_ratios(wide, fine.data, coarse=coarse.model, fine=fine.model)
    return np.asarray(found, float).reshape(-1, num_tries)


def effective_share(log_weights: LogWeights) -> float:
    """Effective sample size over number of particles, each weighed by the mean of its tries."""
    together = np.asarray(logsumexp(log_weights, axis=1), float)
    weights = np.exp(together - together.max())
    return float(weights.sum() ** 2 / (weights**2).sum() / len(weights))


@partial(jax.jit, static_argnames=("coarse", "fine"))
def _log_ratios(
    positions: Float[Array, "particle weight"],
    data: Data,
    *,
    coarse: BayesianModel,
    fine: BayesianModel,
) -> Float[Array, " particle"]:
    log_fine, log_coarse = flat_log_likelihood(fine), coarse_log_likelihood(coarse, fine)

    def one(position: Any) -> Float[Array, ""]:
        return log_fine(position, data) - log_coarse(position, data)

    return jax.lax.map(one, positions, batch_size=_BATCH)
