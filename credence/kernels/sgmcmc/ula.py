"""The unadjusted Langevin algorithm; on minibatches, stochastic gradient Langevin dynamics."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from credence.density.data import Data
from credence.density.posterior import LogDensity, Position
from credence.kernels.base import Kernel, Scalar, check_step_size


class LangevinState(NamedTuple):
    """The position of a chain."""

    position: Position


class LangevinInfo(NamedTuple):
    """What a step did."""

    is_finite: Bool[Array, ""]
    num_gradients: Int[Array, ""]


def ula(
    log_density: LogDensity,
    *,
    step_size: Scalar,
    inverse_mass: Float[Array, " weight"],
    temperature: Scalar = 1.0,
) -> Kernel:
    """Unadjusted (stochastic gradient) Langevin dynamics.

        w' = w + (h/2) G grad(w) + sqrt(h T G) xi,    xi ~ N(0, I),

    Rossky, Doll & Friedman, "Brownian dynamics as smart Monte Carlo simulation" (1978); with the
    gradient of a minibatch, Welling & Teh, "Bayesian learning via stochastic gradient Langevin
    dynamics" (2011), eq. (4). Exact only as h -> 0: on N(0, I) with G = I and T = 1 the variance is
    1 / (1 - h/4), and gradient noise of variance V adds h V / 4 of that.

    Args:
        log_density: (position, data) -> log density, summed over all data, in nats.
        step_size: h > 0, in squared units of the weights over inverse_mass.
        inverse_mass: the diagonal of G, about the posterior variances (weight,).
        temperature: T >= 0; 0 is gradient ascent.
    Raises:
        InputError: if step_size is not > 0.
    A non-finite step is refused: the position stays, is_finite is False.
    """
    check_step_size(step_size)

    def init(position: Position, data: Data) -> LangevinState:
        return LangevinState(position)

    def step(
        key: PRNGKeyArray, state: LangevinState, data: Data
    ) -> tuple[LangevinState, LangevinInfo]:
        w = state.position
        value, gradient = jax.value_and_grad(log_density)(w, data)
        drift = 0.5 * step_size * inverse_mass * gradient
        noise = jax.random.normal(key, w.shape, w.dtype)
        new = w + drift + jnp.sqrt(step_size * temperature * inverse_mass) * noise
        is_finite = jnp.isfinite(value) & jnp.all(jnp.isfinite(new))
        info = LangevinInfo(is_finite, jnp.ones((), jnp.int32))
        return LangevinState(jnp.where(is_finite, new, w)), info

    return Kernel(init, step)
