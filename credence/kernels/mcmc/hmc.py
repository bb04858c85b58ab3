"""HMC and NUTS steps from BlackJAX: the only module that imports it.

BlackJAX's interfaces move between releases; whatever moves is mended here. Both kernels leave the
target invariant for any fixed step size and metric; `credence.adaptation.windows` finds good ones.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from credence.density.data import Data
from credence.density.posterior import LogDensity, Position
from credence.kernels.base import Kernel, check_step_size


class HMCState(NamedTuple):
    """Position, its log density and gradient."""

    position: Position
    log_density: Float[Array, ""]
    gradient: Position


class HMCInfo(NamedTuple):
    """What a Hamiltonian step did."""

    acceptance_rate: Float[Array, ""]
    is_divergent: Bool[Array, ""]
    is_finite: Bool[Array, ""]
    num_gradients: Int[Array, ""]


def hmc(
    log_density: LogDensity,
    *,
    step_size: float | Float[Array, ""],
    inverse_mass: Float[Array, " weight"],
    max_integration_steps: int = 64,
    trajectory_length: float | Float[Array, ""] = 1.5,
) -> Kernel:
    """Hamiltonian Monte Carlo with a jittered number of leapfrog steps.

    Duane, Kennedy, Pendleton & Roweth, "Hybrid Monte Carlo" (1987). The number of steps is uniform
    between 1 and twice trajectory_length / step_size, so that no period of the target is hit.

    Args:
        log_density: (position, data) -> log density, summed over all data, in nats.
        step_size: of the leapfrog, > 0, in units of the weights over sqrt(inverse_mass).
        inverse_mass: diagonal, about the posterior variances (weight,).
        max_integration_steps: bound on the number of leapfrog steps.
        trajectory_length: mean integration time.
    Raises:
        InputError: if step_size is not > 0.
    A non-finite trajectory is refused: the position stays, is_finite is False.
    """
    check_step_size(step_size)

    def step(key: PRNGKeyArray, state: HMCState, data: Data) -> tuple[HMCState, HMCInfo]:
        key_length, key_step = jax.random.split(key)
        mean_steps = jnp.clip(trajectory_length / step_size, 1.0, max_integration_steps / 2)
        uniform = jax.random.uniform(key_length)
        num_steps = jnp.ceil(2 * uniform * mean_steps).astype(jnp.int32).clip(1)
        trajectory = leapfrogs(
            log_density,
            step_size=step_size,
            inverse_mass=inverse_mass,
            num_integration_steps=num_steps,
        )
        return trajectory.step(key_step, state, data)

    return Kernel(_init(log_density), step)


def leapfrogs(
    log_density: LogDensity,
    *,
    step_size: float | Float[Array, ""],
    inverse_mass: Float[Array, " weight"],
    num_integration_steps: int | Int[Array, ""],
) -> Kernel:
    """Hamiltonian Monte Carlo with a given number of leapfrog steps, the same for all particles.

    Particles that move abreast then never wait for each other. A trajectory as long as a period of
    the target leads nowhere: vary the length between calls, or use `hmc`.

    Arguments as `hmc`, and num_integration_steps, at least 1.
    """
    check_step_size(step_size)
    blackjax = _blackjax()
    kernel = blackjax.hmc.build_kernel()

    def step(key: PRNGKeyArray, state: HMCState, data: Data) -> tuple[HMCState, HMCInfo]:
        new, info = kernel(
            key,
            blackjax.mcmc.hmc.HMCState(*state),
            lambda position: log_density(position, data),
            step_size,
            inverse_mass,
            num_integration_steps,
        )
        num_gradients = jnp.asarray(num_integration_steps, jnp.int32)
        return HMCState(*new), HMCInfo(
            info.acceptance_rate, info.is_divergent, jnp.isfinite(info.energy), num_gradients
        )

    return Kernel(_init(log_density), step)


def nuts(
    log_density: LogDensity,
    *,
    step_size: float | Float[Array, ""],
    inverse_mass: Float[Array, " weight"],
    max_doublings: int = 10,
) -> Kernel:
    """The no-U-turn sampler with multinomial weights.

    Hoffman & Gelman, "The No-U-Turn Sampler" (2014); Betancourt, "A Conceptual Introduction to
    Hamiltonian Monte Carlo" (2017). Exact for any settings. Arguments as `hmc`; a trajectory has at
    most 2^max_doublings - 1 leapfrog steps, and one that is not finite is cut short and seen in
    is_finite.
    """
    check_step_size(step_size)
    blackjax = _blackjax()
    kernel = blackjax.nuts.build_kernel()

    def step(key: PRNGKeyArray, state: HMCState, data: Data) -> tuple[HMCState, HMCInfo]:
        new, info = kernel(
            key,
            blackjax.mcmc.hmc.HMCState(*state),
            lambda position: log_density(position, data),
            step_size,
            inverse_mass,
            max_num_doublings=max_doublings,
        )
        # A trajectory ends at the first point that diverges, so a NaN is at one of its ends.
        ends = info.trajectory_leftmost_state, info.trajectory_rightmost_state
        return HMCState(*new), HMCInfo(
            info.acceptance_rate,
            info.is_divergent,
            jnp.isfinite(ends[0].logdensity) & jnp.isfinite(ends[1].logdensity),
            jnp.asarray(info.num_integration_steps, jnp.int32),
        )

    return Kernel(_init(log_density), step)


def _init(log_density: LogDensity) -> Callable[[Position, Data], HMCState]:
    def init(position: Position, data: Data) -> HMCState:
        return HMCState(position, *jax.value_and_grad(log_density)(position, data))

    return init


def _blackjax() -> Any:
    """BlackJAX, late and outside of any trace: to import it computes something, after which JAX's
    devices can no longer be set."""
    with jax.ensure_compile_time_eval():
        import blackjax
    return blackjax
