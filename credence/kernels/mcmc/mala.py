"""The Metropolis-adjusted Langevin algorithm."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from credence.density.data import Data
from credence.density.posterior import LogDensity, Position
from credence.kernels.base import Kernel, Scalar, check_step_size, either, metropolis


class MALAState(NamedTuple):
    """Position, its log density and gradient."""

    position: Position
    log_density: Float[Array, ""]
    gradient: Position


class MALAInfo(NamedTuple):
    """What a step did."""

    acceptance_rate: Float[Array, ""]
    is_finite: Bool[Array, ""]
    num_gradients: Int[Array, ""]


def mala(
    log_density: LogDensity, *, step_size: Scalar, inverse_mass: Float[Array, " weight"]
) -> Kernel:
    """Langevin proposals with a Metropolis test: exact for any settings.

        w' = w + (h/2) G grad(w) + sqrt(h G) xi,    xi ~ N(0, I),

    accepted with probability min(1, p(w') q(w | w') / (p(w) q(w' | w))): Besag, discussion of
    Grenander & Miller (1994); Roberts & Tweedie, "Exponential convergence of Langevin
    distributions and their discrete approximations" (1996). With xi' the noise that would lead
    back, log q(w | w') - log q(w' | w) = (|xi|^2 - |xi'|^2) / 2.

    Args:
        log_density: (position, data) -> log density, summed over all data, in nats.
        step_size: h > 0, in squared units of the weights over inverse_mass.
        inverse_mass: the diagonal of G, about the posterior variances (weight,).
    Raises:
        InputError: if step_size is not > 0.
    A non-finite proposal is refused: the position stays, is_finite is False.
    """
    check_step_size(step_size)

    def init(position: Position, data: Data) -> MALAState:
        return MALAState(position, *jax.value_and_grad(log_density)(position, data))

    def step(key: PRNGKeyArray, state: MALAState, data: Data) -> tuple[MALAState, MALAInfo]:
        key_noise, key_accept = jax.random.split(key)
        std = jnp.sqrt(step_size * inverse_mass)
        new, noise, noise_back = langevin_proposal(key_noise, state, std, init, data)
        log_ratio = (
            new.log_density
            - state.log_density
            + 0.5 * jnp.sum((noise - noise_back) * (noise + noise_back))
        )
        is_finite = jnp.isfinite(log_ratio) & jnp.all(jnp.isfinite(new.gradient))
        acceptance_rate, is_accepted = metropolis(key_accept, log_ratio, is_finite)
        kept = either(is_accepted, new, state)
        return kept, MALAInfo(acceptance_rate, is_finite, jnp.ones((), jnp.int32))

    return Kernel(init, step)


def langevin_proposal(
    key: PRNGKeyArray,
    state: MALAState,
    std: Float[Array, " weight"],
    init: Callable[[Position, Data], MALAState],
    data: Data,
) -> tuple[MALAState, Float[Array, " weight"], Float[Array, " weight"]]:
    """The state at w' = w + s^2/2 grad(w) + s xi, the noise xi, and that which would lead back.

    Args:
        std: s, in units of the weights.
        init: the state at a position.
    """
    noise = jax.random.normal(key, state.position.shape, state.position.dtype)
    new = init(state.position + 0.5 * std**2 * state.gradient + std * noise, data)
    noise_back = -noise - 0.5 * std * (state.gradient + new.gradient)
    return new, noise, noise_back


def one_leapfrog(
    log_density: LogDensity, *, step_size: Scalar, inverse_mass: Float[Array, " weight"]
) -> Kernel:
    """`mala` with the step size of a leapfrog: h is its square.

    Args:
        log_density, inverse_mass: of `mala`.
        step_size: > 0, in units of the weights over sqrt(inverse_mass).
    Raises:
        InputError: if step_size is not > 0.
    """
    check_step_size(step_size)
    return mala(log_density, step_size=step_size**2, inverse_mass=inverse_mass)
