"""Stochastic gradient Hamiltonian Monte Carlo, plain and scale-adapted."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from credence.density.data import Data
from credence.density.posterior import LogDensity, Position
from credence.errors import InputError
from credence.kernels.base import Kernel, Scalar, check_step_size, either
from credence.kernels.sgmcmc.ula import LangevinInfo


class SGHMCState(NamedTuple):
    """Position and velocity."""

    position: Position
    velocity: Position
    """Units of the weights per step."""


def sghmc(
    log_density: LogDensity,
    *,
    step_size: Scalar,
    friction: Scalar,
    inverse_mass: Float[Array, " weight"],
    gradient_variance: Float[Array, " weight"] | float = 0.0,
    temperature: Scalar = 1.0,
) -> Kernel:
    """Stochastic gradient HMC: Chen, Fox & Guestrin (2014), eq. (15).

        v' = (1 - a) v + eta grad(w) + sqrt(2 a eta T - eta^2 V) xi,    w' = w + v',

    with eta = step_size^2 G and xi ~ N(0, I). Exact only as step_size -> 0; its stationary law on a
    Gaussian is that of a linear recursion, and the tests know it.

    Args:
        log_density: (position, data) -> log density, summed over all data, in nats.
        step_size: > 0, as a leapfrog's: units of the weights over sqrt(inverse_mass).
        friction: a in (0, 1], the share of the velocity lost per step.
        inverse_mass: the diagonal of G, about the posterior variances (weight,).
        gradient_variance: V, variance of the minibatch gradients (weight,), which stand in for that
            much of the injected noise; 0 for full gradients.
        temperature: T >= 0.
    Raises:
        InputError: if step_size is not > 0 or friction not in (0, 1].
    A non-finite step is refused: the position stays at rest, is_finite is False.
    """
    check_step_size(step_size)
    check_friction(friction)
    rate = step_size**2 * inverse_mass

    def init(position: Position, data: Data) -> SGHMCState:
        return SGHMCState(position, jnp.zeros_like(position))

    def step(key: PRNGKeyArray, state: SGHMCState, data: Data) -> tuple[SGHMCState, LangevinInfo]:
        value, gradient = jax.value_and_grad(log_density)(state.position, data)
        velocity = kicked(
            key, state.velocity, gradient, rate, friction, gradient_variance, temperature
        )
        new = SGHMCState(state.position + velocity, velocity)
        is_finite = jnp.isfinite(value) & jnp.all(jnp.isfinite(new.position))
        kept = either(is_finite, new, init(state.position, data))
        return kept, LangevinInfo(is_finite, jnp.ones((), jnp.int32))

    return Kernel(init, step)


class AdaptiveState(NamedTuple):
    """Position, velocity, and what the gradients were like."""

    position: Position
    velocity: Position
    mean_gradient: Position
    mean_square: Position
    """Running mean of the squared gradient."""
    window: Position
    """Steps over which the means are taken."""


FIRST_WINDOW = 100.0
"""Steps for which a first V of one per row counts: at a mode the first gradients are too small."""


def scale_adapted_sghmc(
    log_density: LogDensity,
    *,
    step_size: Scalar,
    friction: Scalar,
    is_adapting: Bool[Array, ""] | bool,
    noise_share: Scalar = 1.0,
    temperature: Scalar = 1.0,
) -> Kernel:
    """SGHMC that finds its mass from its gradients while is_adapting, then keeps it.

    Springenberg, Klein, Falkner & Hutter, "Bayesian optimization with robust Bayesian neural
    networks" (2016), section 4.2: `sghmc` with G = 1 / sqrt(V), where V is a running mean of the
    squared gradient over a window that adapts to each weight, and with gradient noise of variance
    noise_share V. What is drawn while it adapts belongs to no known law.

    Args and errors as in `sghmc`; is_adapting is a setting, so that one program serves both.
        noise_share: how much of V is the noise of minibatches, which stands in for as much of the
            injected noise: all of it as published, 0 for gradients of all rows, whose square is the
            precision and no noise.
    """
    check_step_size(step_size)
    check_friction(friction)

    def init(position: Position, data: Data) -> AdaptiveState:
        rest, one = jnp.zeros_like(position), jnp.ones_like(position)
        return AdaptiveState(position, rest, rest, jnp.sum(data.weight) * one, FIRST_WINDOW * one)

    def step(
        key: PRNGKeyArray, state: AdaptiveState, data: Data
    ) -> tuple[AdaptiveState, LangevinInfo]:
        value, gradient = jax.value_and_grad(log_density)(state.position, data)
        state_now = either(is_adapting, _remember(state, gradient), state)
        square = state_now.mean_square
        rate = step_size**2 / jnp.sqrt(square)
        noise = noise_share * square
        velocity = kicked(key, state.velocity, gradient, rate, friction, noise, temperature)
        new = state_now._replace(position=state.position + velocity, velocity=velocity)
        is_finite = jnp.isfinite(value) & jnp.all(jnp.isfinite(new.position))
        at_rest = state._replace(velocity=jnp.zeros_like(velocity))
        kept = either(is_finite, new, at_rest)
        return kept, LangevinInfo(is_finite, jnp.ones((), jnp.int32))

    return Kernel(init, step)


def kicked(
    key: PRNGKeyArray,
    velocity: Position,
    gradient: Position,
    rate: Float[Array, " weight"],
    friction: Scalar,
    gradient_variance: Float[Array, " weight"] | float,
    temperature: Scalar,
) -> Position:
    """The velocity after friction, gradient and noise; no noise where the gradient's is enough."""
    variance = 2 * friction * rate * temperature - rate**2 * gradient_variance
    noise = jnp.sqrt(jnp.maximum(variance, 0.0)) * jax.random.normal(
        key, velocity.shape, velocity.dtype
    )
    return (1 - friction) * velocity + rate * gradient + noise


def check_friction(friction: Scalar) -> None:
    """Refuse a friction outside (0, 1]; inside a compiled program it is unknown and passes."""
    if not isinstance(friction, Tracer) and not 0 < friction <= 1:
        raise InputError(f"friction must be in (0, 1], got {friction}; .05 is usual.")


def _remember(state: AdaptiveState, gradient: Position) -> AdaptiveState:
    """Means over the window; it grows where gradients are noise and shrinks where they drift."""
    share = 1 / state.window
    mean = state.mean_gradient + share * (gradient - state.mean_gradient)
    square = state.mean_square + share * (gradient**2 - state.mean_square)
    window = state.window * (1 - jnp.minimum(mean**2 / square, 1.0)) + 1
    return state._replace(mean_gradient=mean, mean_square=square, window=window)
