"""Hamiltonian Monte Carlo along a surrogate's gradient, accepted by the true density."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from credence.density.data import Data
from credence.density.posterior import LogDensity, Position
from credence.kernels.base import Kernel, Scalar, check_step_size, either, metropolis

SurrogateGradient = Callable[[Position, Any], Position]
"""(position, surrogate) -> about the gradient of the log density; sees no data."""


class SurrogateHMCState(NamedTuple):
    """Position, and the target's log density there (whatever the surrogate, which may change)."""

    position: Position
    log_density: Float[Array, ""]


class SurrogateHMCInfo(NamedTuple):
    """What a step did."""

    acceptance_rate: Float[Array, ""]
    is_finite: Bool[Array, ""]
    num_evaluations: Int[Array, ""]
    """Log densities evaluated, without gradient."""


def surrogate_hmc(
    log_density: LogDensity,
    *,
    step_size: Scalar,
    inverse_mass: Float[Array, " weight"],
    surrogate: Any,
    gradient: SurrogateGradient,
    num_integration_steps: int,
) -> Kernel:
    """Hamiltonian Monte Carlo whose leapfrog follows a surrogate's gradient: exact for any.

        p <- p + (h/2) s(w),    w <- w + h M^-1 p,    p <- p + (h/2) s(w),

    num_integration_steps times, from p ~ N(0, M). Whatever the field s, the map is reversible (up
    to the sign of p) and preserves volume, so accepting its end with probability
    min(1, exp(H - H')), H = p' M^-1 p / 2 - log_density(w) with the TRUE density, leaves the target
    invariant: Zhang, Shahbaba & Zhao, "Hamiltonian Monte Carlo acceleration using surrogate
    functions with random bases" (2017), appendix 1; s need not even be a gradient: Li, Holbrook,
    Shahbaba & Baldi, "Neural network gradient Hamiltonian Monte Carlo" (2019). A poor surrogate
    costs acceptance, not truth. h is uniform in step_size * [.5, 1.5] for each trajectory, so that
    no period of the target is hit (Neal, "MCMC using Hamiltonian dynamics", 2011, section 3.2).

    Args:
        log_density: (position, data) -> log density of the target, in nats: one per step.
        step_size: mean of h, > 0, in units of the weights over sqrt(inverse_mass).
        inverse_mass: the diagonal of M^-1, about the posterior variances (weight,).
        surrogate: arrays that `gradient` takes.
        gradient: s(position, surrogate), about the gradient of log_density.
        num_integration_steps: leapfrog steps of a trajectory.
    Raises:
        InputError: if step_size is not > 0.
    A non-finite trajectory is refused: the position stays, is_finite is False.
    """
    check_step_size(step_size)

    def init(position: Position, data: Data) -> SurrogateHMCState:
        return SurrogateHMCState(position, log_density(position, data))

    def trajectory(
        position: Position, momentum: Position, h: Float[Array, ""]
    ) -> tuple[Position, Position]:
        def leapfrog(_: Any, state: tuple[Position, ...]) -> tuple[Position, ...]:
            position, momentum, slope = state
            half = momentum + 0.5 * h * slope
            position = position + h * inverse_mass * half
            slope = gradient(position, surrogate)
            return position, half + 0.5 * h * slope, slope

        start = (position, momentum, gradient(position, surrogate))
        end, momentum, _ = jax.lax.fori_loop(0, num_integration_steps, leapfrog, start)
        return end, momentum

    def step(
        key: PRNGKeyArray, state: SurrogateHMCState, data: Data
    ) -> tuple[SurrogateHMCState, SurrogateHMCInfo]:
        key_momentum, key_length, key_accept = jax.random.split(key, 3)
        shape, dtype = state.position.shape, state.position.dtype
        momentum = jax.random.normal(key_momentum, shape, dtype) / jnp.sqrt(inverse_mass)
        h = step_size * jax.random.uniform(key_length, (), dtype, 0.5, 1.5)
        end, end_momentum = trajectory(state.position, momentum, h)
        new = init(end, data)
        kinetic = 0.5 * inverse_mass * (momentum - end_momentum) * (momentum + end_momentum)
        log_ratio = new.log_density - state.log_density + jnp.sum(kinetic)
        is_finite = jnp.isfinite(log_ratio)
        acceptance_rate, is_accepted = metropolis(key_accept, log_ratio, is_finite)
        kept = either(is_accepted, new, state)
        return kept, SurrogateHMCInfo(acceptance_rate, is_finite, jnp.ones((), jnp.int32))

    return Kernel(init, step)
