"""Gradient ascent as a kernel: one Optax update of one ensemble member.

Not a Markov kernel of any target: it climbs to a mode. Through the same contract, all members
train in one compiled program with the driver's minibatches, checkpoints and progress.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from credence.kernels.base import Kernel
from credence.posterior import Data, LogDensity, Position


class OptimizerState(NamedTuple):
    """Weights and the optimiser's memory."""

    position: Position
    memory: Any


class OptimizerInfo(NamedTuple):
    """What the update did."""

    loss: Float[Array, ""]
    """Minus the (estimated) log density per data point before the update, in nats."""
    is_finite: Bool[Array, ""]
    num_gradients: Int[Array, ""]


def adam(log_density: LogDensity, *, learning_rate: float | Float[Array, ""]) -> Kernel:
    """Ascend the log density by Adam.

    Kingma & Ba, "Adam: a method for stochastic optimization" (2015), on minus the log density per
    data point, gradients clipped to norm 10.

    Args:
        log_density: (position, data) -> log density, in nats.
        learning_rate: step in units of the weights.
    A non-finite update is refused: the weights stay, is_finite is False.
    """
    optimiser = optax.chain(optax.clip_by_global_norm(10.0), optax.adam(learning_rate))

    def init(position: Position, data: Data) -> OptimizerState:
        return OptimizerState(position, optimiser.init(position))

    def step(
        key: PRNGKeyArray, state: OptimizerState, data: Data
    ) -> tuple[OptimizerState, OptimizerInfo]:
        num_points = jnp.sum(data.weight)
        value, grad = jax.value_and_grad(log_density)(state.position, data)
        updates, memory = optimiser.update(-grad / num_points, state.memory, state.position)
        new = OptimizerState(optax.apply_updates(state.position, updates), memory)
        is_finite = jnp.isfinite(new.position).all()
        kept = jax.tree.map(lambda new, old: jnp.where(is_finite, new, old), new, state)
        return kept, OptimizerInfo(-value / num_points, is_finite, jnp.ones((), jnp.int32))

    return Kernel(init, step)
