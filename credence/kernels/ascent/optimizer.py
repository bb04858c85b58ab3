"""Gradient ascent as a kernel: one Optax update of one ensemble member.

Not a Markov kernel of any target: it climbs to a mode, or wanders around one. Through the same
contract, all members train in one compiled program with the driver's minibatches, checkpoints and
progress. What is climbed may be random (dropout, an evidence bound): see `ascend`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from credence.density.data import Data
from credence.density.posterior import LogDensity, Position
from credence.kernels.base import Kernel, either

Objective = Callable[[PRNGKeyArray, Position, Data], Float[Array, ""]]
"""(key, position, data) -> what to maximise: a log density, or an unbiased estimate, in nats."""


class OptimizerState(NamedTuple):
    """Weights and the optimiser's memory."""

    position: Position
    memory: Any


class OptimizerInfo(NamedTuple):
    """What the update did."""

    loss: Float[Array, ""]
    """Minus the (estimated) objective per data point before the update, in nats."""
    is_finite: Bool[Array, ""]
    num_gradients: Int[Array, ""]


def adam(log_density: LogDensity, *, learning_rate: float | Float[Array, ""]) -> Kernel:
    """Ascend the log density by Adam: Kingma & Ba (2015), algorithm 1; see `clipped_adam`.

    Args:
        log_density: (position, data) -> log density, in nats.
        learning_rate: step in units of the weights.
    A non-finite update is refused: the weights stay, is_finite is False.
    """
    return ascend(_without_key(log_density), clipped_adam(learning_rate))


def sgd(
    log_density: LogDensity,
    *,
    learning_rate: float | Float[Array, ""],
    momentum: float | Float[Array, ""],
) -> Kernel:
    """Ascend the log density by stochastic gradients with momentum.

        v' = momentum v + grad(w) / num_points,    w' = w + learning_rate v'

    Polyak, "Some methods of speeding up the convergence of iteration methods" (1964). A direction
    whose curvature per data point is c is stable for learning_rate c < 2 (1 + momentum).

    Args:
        log_density: (position, data) -> log density, in nats.
        learning_rate: in squared units of the weights, for the log density PER DATA POINT.
        momentum: in [0, 1); a gradient moves the weights by learning_rate / (1 - momentum) in all.
    A non-finite update is refused: the weights stay, is_finite is False.
    """
    return ascend(_without_key(log_density), optax.sgd(learning_rate, momentum))


def clipped_adam(learning_rate: float | Float[Array, ""]) -> optax.GradientTransformation:
    """Adam on gradients clipped to norm 10.

    Kingma & Ba, "Adam: a method for stochastic optimization" (2015).
    """
    return optax.chain(optax.clip_by_global_norm(10.0), optax.adam(learning_rate))


def ascend(
    objective: Objective, optimiser: optax.GradientTransformation, *, num_gradients: int = 1
) -> Kernel:
    """Ascend an objective, which may be random, on its gradient per data point.

        w' = w + updates(-grad objective(key, w, data) / num_points)

    Args:
        objective: (key, position, data) -> what to maximise, in nats; its key is that of the step.
        optimiser: turns gradients of minus the objective per data point into updates.
        num_gradients: of a log density, that one gradient of the objective costs.
    A non-finite update is refused: the weights stay, is_finite is False. They also stay where no
    row has weight.
    """

    def init(position: Position, data: Data) -> OptimizerState:
        return OptimizerState(position, optimiser.init(position))

    def step(
        key: PRNGKeyArray, state: OptimizerState, data: Data
    ) -> tuple[OptimizerState, OptimizerInfo]:
        total = jnp.sum(data.weight)
        has_rows = total > 0
        num_points = jnp.where(has_rows, total, 1.0)
        value, grad = jax.value_and_grad(objective, argnums=1)(key, state.position, data)
        updates, memory = optimiser.update(-grad / num_points, state.memory, state.position)
        new = OptimizerState(optax.apply_updates(state.position, updates), memory)
        is_finite = jnp.isfinite(new.position).all() | ~has_rows
        kept = either(is_finite & has_rows, new, state)
        count = jnp.asarray(num_gradients, jnp.int32)
        return kept, OptimizerInfo(-value / num_points, is_finite, count)

    return Kernel(init, step)


def _without_key(log_density: LogDensity) -> Objective:
    return lambda key, position, data: log_density(position, data)
