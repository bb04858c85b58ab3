"""MALA as in the public code of the paper: its test takes another variance than its proposal."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from credence.density.data import Data
from credence.density.posterior import LogDensity, Position
from credence.kernels.base import Kernel, Scalar, either, metropolis
from credence.kernels.mcmc.mala import MALAInfo, MALAState, langevin_proposal


def published_mala(
    log_density: LogDensity, *, step_size: Scalar, inverse_mass: Float[Array, " weight"]
) -> Kernel:
    """Langevin proposals of variance h, tested as if the variance were sqrt(h).

    The public code of Vuckovic, "Nonlinear MCMC for Bayesian Machine Learning" (2022), divides the
    squared residuals of its proposals by their standard deviation. The correction for the proposal
    is then smaller by sqrt(h), and the law that is left invariant is about p^(2 - sqrt(h)): on
    N(0, 1) it is normal with precision 1 + (1 - h/4) (1 - sqrt(h)), exactly. For comparisons only.

    Args:
        log_density: (position, data) -> log density, in nats.
        step_size: h > 0, as in `credence.kernels.mcmc.mala.mala`.
        inverse_mass: (weight,), ones as published.
    """

    def init(position: Position, data: Data) -> MALAState:
        return MALAState(position, *jax.value_and_grad(log_density)(position, data))

    def step(key: PRNGKeyArray, state: MALAState, data: Data) -> tuple[MALAState, MALAInfo]:
        key_noise, key_accept = jax.random.split(key)
        std = jnp.sqrt(step_size * inverse_mass)
        new, noise, noise_back = langevin_proposal(key_noise, state, std, init, data)
        correction = 0.5 * jnp.sum(std * (noise**2 - noise_back**2))  # without std it is right
        log_ratio = new.log_density - state.log_density + correction
        is_finite = jnp.isfinite(log_ratio) & jnp.all(jnp.isfinite(new.gradient))
        acceptance_rate, is_accepted = metropolis(key_accept, log_ratio, is_finite)
        kept = either(is_accepted, new, state)
        return kept, MALAInfo(acceptance_rate, is_finite, jnp.ones((), jnp.int32))

    return Kernel(init, step)
