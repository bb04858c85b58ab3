"""Stochastic gradient Langevin dynamics with an RMSprop preconditioner."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from credence.density.data import Data
from credence.density.posterior import LogDensity, Position
from credence.kernels.base import Kernel, Scalar, check_step_size, either
from credence.kernels.sgmcmc.ula import LangevinInfo


class RMSState(NamedTuple):
    """The position of a chain, and a running mean of its squared gradients."""

    position: Position
    mean_square: Position
    """Running mean of the squared gradient per data point."""


def rms_sgld(
    log_density: LogDensity,
    *,
    step_size: Scalar,
    decay: Scalar = 0.99,
    damping: Scalar = 1e-5,
    temperature: Scalar = 1.0,
) -> Kernel:
    """Preconditioned SGLD: Li, Chen, Carlson & Carin (2016), algorithm 1.

        V <- decay V + (1 - decay) g^2,  g = grad(w) / N,    G = 1 / (damping + sqrt(V)),
        w' = w + (h/2) G grad(w) + sqrt(h T G) xi,    xi ~ N(0, I),

    "Preconditioned stochastic gradient Langevin dynamics for deep neural networks", without its
    term Gamma, the divergence of G, as in the authors' experiments. While V moves with the chain
    that is a bias no small step removes; decay = 1 freezes V, and then none is left as h -> 0.

    Args:
        log_density: (position, data) -> log density, summed over all data, in nats.
        step_size: h > 0, in squared units of the weights over G; about 1e-3 / N to start with.
        decay: memory of V in [0, 1].
        damping: least size of sqrt(V), in nats per data point and unit of weight.
        temperature: T >= 0.
    Raises:
        InputError: if step_size is not > 0.
    A non-finite step is refused: position and V stay, is_finite is False.
    """
    check_step_size(step_size)

    def init(position: Position, data: Data) -> RMSState:
        return RMSState(position, _per_point(jax.grad(log_density)(position, data), data) ** 2)

    def step(key: PRNGKeyArray, state: RMSState, data: Data) -> tuple[RMSState, LangevinInfo]:
        w = state.position
        value, gradient = jax.value_and_grad(log_density)(w, data)
        new_square = _per_point(gradient, data) ** 2
        mean_square = decay * state.mean_square + (1 - decay) * new_square
        metric = 1 / (damping + jnp.sqrt(mean_square))
        noise = jax.random.normal(key, w.shape, w.dtype)
        drift = 0.5 * step_size * metric * gradient
        new = RMSState(w + drift + jnp.sqrt(step_size * temperature * metric) * noise, mean_square)
        is_finite = jnp.isfinite(value) & jnp.all(jnp.isfinite(new.position))
        kept = either(is_finite, new, state)
        return kept, LangevinInfo(is_finite, jnp.ones((), jnp.int32))

    return Kernel(init, step)


def _per_point(gradient: Position, data: Data) -> Float[Array, " weight"]:
    """A gradient summed over the data, per data point: the weights of a batch sum to N."""
    return gradient / jnp.sum(data.weight)
