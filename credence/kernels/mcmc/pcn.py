"""The preconditioned Crank-Nicolson algorithm, for any Gaussian reference."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from credence.density.data import Data
from credence.density.posterior import Position
from credence.errors import InputError
from credence.kernels.base import Kernel, Scalar, either, metropolis

LARGEST_STEP = 0.99
"""The largest step size that a warm-up may find: at 1 a proposal forgets where it came from."""


class PCNState(NamedTuple):
    """Position, and the target's log density there (whatever the reference, which may change)."""

    position: Position
    log_density: Any
    """The log density in nats, or the terms that make it up."""


class PCNInfo(NamedTuple):
    """What a step did."""

    acceptance_rate: Float[Array, ""]
    is_finite: Bool[Array, ""]
    num_evaluations: Int[Array, ""]
    """Log densities evaluated, without gradient."""


def pcn(
    log_density: Callable[[Position, Data], Any],
    *,
    step_size: Scalar,
    reference_mean: Float[Array, " weight"],
    reference_std: Float[Array, " weight"],
    total: Callable[[Any], Float[Array, ""]] = lambda log_density: log_density,
) -> Kernel:
    """Preconditioned Crank-Nicolson with reference N(m, S^2): exact for any reference.

        w' = m + sqrt(1 - b^2) (w - m) + b S xi,    xi ~ N(0, I),

    leaves the reference invariant, so w' is accepted with probability min(1, r(w') / r(w)), where
    r is the target's density over the reference's. With the prior as reference r is the likelihood
    (Cotter, Roberts, Stuart & White, "MCMC methods for functions", 2013, eq. 4.10); a reference
    near the posterior makes r nearly constant and large steps possible.

    Args:
        log_density: (position, data) -> log density of the target, in nats; or any terms that make
            it up, which the State then carries.
        step_size: b in (0, 1]; 1 draws from the reference.
        reference_mean, reference_std: m and the diagonal of S (weight,).
        total: of the terms, in nats.
    Raises:
        InputError: if step_size is not in (0, 1].
    A non-finite proposal is refused: the position stays, is_finite is False.
    """
    if not isinstance(step_size, Tracer) and not 0 < step_size <= 1:
        raise InputError(f"step_size must be > 0 and at most 1, got {step_size}; start near 0.1.")

    def init(position: Position, data: Data) -> PCNState:
        return PCNState(position, log_density(position, data))

    def log_r(state: PCNState) -> Float[Array, ""]:
        z = (state.position - reference_mean) / reference_std
        return total(state.log_density) + 0.5 * jnp.sum(z**2)

    def step(key: PRNGKeyArray, state: PCNState, data: Data) -> tuple[PCNState, PCNInfo]:
        key_noise, key_accept = jax.random.split(key)
        noise = jax.random.normal(key_noise, state.position.shape, state.position.dtype)
        kept = jnp.sqrt(1 - step_size**2) * (state.position - reference_mean)
        new = init(reference_mean + kept + step_size * reference_std * noise, data)
        log_ratio = log_r(new) - log_r(state)
        is_finite = jnp.isfinite(log_ratio)
        acceptance_rate, is_accepted = metropolis(key_accept, log_ratio, is_finite)
        chosen = either(is_accepted, new, state)
        return chosen, PCNInfo(acceptance_rate, is_finite, jnp.ones((), jnp.int32))

    return Kernel(init, step)
