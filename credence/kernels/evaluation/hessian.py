"""A kernel whose steps are the columns of a Hessian."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, PRNGKeyArray

from credence.density.data import Data
from credence.density.posterior import LogDensity, Position
from credence.kernels.base import Kernel


class HessianState(NamedTuple):
    """The last column, so that a phase's draws are the columns, and where they belong."""

    position: Position
    centre: Position
    next_column: Int[Array, ""]


class HessianInfo(NamedTuple):
    """What a step did."""

    is_finite: Bool[Array, ""]
    num_gradients: Int[Array, ""]
    """A column costs about as much as two gradients."""


def hessian_columns(log_density: LogDensity) -> Kernel:
    """Columns 0, 1, ... of the Hessian of a log density, in nats per squared unit of the weights.

    Forward over reverse mode: each a product of the Hessian and a unit vector. As a phase of a run
    they get progress, checkpoints and their line in the cost table, and one column at a time is in
    memory.
    """

    def init(position: Position, data: Data) -> HessianState:
        return HessianState(jnp.zeros_like(position), position, jnp.zeros((), jnp.int32))

    def step(
        key: PRNGKeyArray, state: HessianState, data: Data
    ) -> tuple[HessianState, HessianInfo]:
        gradient = jax.grad(lambda position: log_density(position, data))
        unit = jnp.zeros_like(state.centre).at[state.next_column].set(1)
        _, column = jax.jvp(gradient, (state.centre,), (unit,))
        new = HessianState(column, state.centre, state.next_column + 1)
        return new, HessianInfo(jnp.all(jnp.isfinite(column)), jnp.full((), 2, jnp.int32))

    return Kernel(init, step)
