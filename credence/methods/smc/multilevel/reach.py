"""A level reaches as far as particles are left when they are weighed to a finer network.

The step between two levels is narrow where it counts, at the coarse network's posterior, or it is
not; a small run at the coarse level tells. `allocation.nats_between` tells before anything is run,
but under the prior: too little where the data ask for weights that the prior seldom gives, and too
much where classes leave the networks free.
"""

from collections.abc import Callable
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, PRNGKeyArray

from credence.density.posterior import Posterior
from credence.engine.driver import Driver
from credence.kernels import resampling
from credence.methods.smc.clouds import log_ratios
from credence.methods.smc.method import from_prior
from credence.methods.smc.multilevel.coupling import CoupledLevels
from credence.methods.smc.mutation import Mutation
from credence.methods.smc.tempering import Tempering

LEAST_SHARE = 0.5
"""Effective share of the particles that is left where a step is narrow enough."""
PILOT_PARTICLES = 200
"""Particles of a small run at a level that is tried."""


def narrowest(
    num_levels: int, share_of: Callable[[int], float], least: float = LEAST_SHARE
) -> tuple[int, list[float]]:
    """The first level from which the finest can be reached by weights alone.

    Args:
        num_levels: with the finest.
        share_of: a level -> the effective share of its particles that is left at the finest.
        least: the share that must be left.
    Returns:
        Its place, at the latest the one before the finest; and the share at each level tried.
    """
    shares: list[float] = []
    for level in range(num_levels - 1):
        shares.append(share_of(level))
        if shares[-1] >= least:
            break
    return max(len(shares) - 1, 0), shares


def share_left(
    key: PRNGKeyArray,
    driver: Driver,
    coarse: Posterior,
    fine: Posterior,
    mutation: Mutation,
    *,
    proposal: str = "prior",
    num_tries: int = 1,
) -> float:
    """Effective share of a small run's particles at the coarse level that is left at the fine one.

    Args:
        proposal, num_tries: as of `MLSMC`; tries of a particle count together.
    """
    key_cloud, key_new = jax.random.split(key)
    pair = pair_of(driver, coarse, fine, mutation, PILOT_PARTICLES, proposal)
    cloud, pair = particles(key_cloud, pair)
    return share_of_tries(log_weights(key_new, pair, cloud, num_tries))


def pair_of(
    driver: Driver,
    coarse: Posterior,
    fine: Posterior,
    mutation: Mutation,
    num_particles: int,
    proposal: str = "prior",
) -> CoupledLevels:
    """Two levels, and what moves one run of so many particles up them."""
    tempering, counts = Tempering(mutation, 1), (num_particles, num_particles)
    return CoupledLevels(driver, tempering, coarse.data, (coarse, fine), counts, proposal)


def particles(
    key: PRNGKeyArray, pair: CoupledLevels
) -> tuple[Float[Array, "run particle weight"], CoupledLevels]:
    """Particles of the coarse level; and the pair, its data measured from one of them."""
    key_prior, key_temper = jax.random.split(key)
    coarse, driver = pair.levels[0], pair.driver
    memory, data, _ = from_prior(key_prior, coarse, driver, pair.tempering, pair.counts[0])
    pair = replace(pair, data=data)
    (members,) = pair.first(key_temper, memory).members
    return jnp.asarray(members.position), pair


def log_weights(
    key: PRNGKeyArray,
    pair: CoupledLevels,
    cloud: Float[Array, "run particle weight"],
    num_tries: int,
) -> Float[np.ndarray, "particle try"]:
    """Log of G, in nats, of coarse particles with new weights: L_fine / L_coarse, where these are
    prior draws.

    Args:
        cloud: of the coarse level.
        num_tries: draws of the new weights for each particle.
    """
    key_new, key_weigh = jax.random.split(key)
    with pair.driver.part("fine"):
        weighed = pair.weighed(key_new, key_weigh, 1, cloud, num_tries)
    return np.asarray(log_ratios(weighed), float).reshape(-1, num_tries)


def share_of_tries(log_weights: Float[np.ndarray, "particle try"]) -> float:
    """Effective sample size over number of particles, each weighed by the mean of its tries."""
    return float(resampling.effective_share(logsumexp(log_weights, axis=1)[None]))
