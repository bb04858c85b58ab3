"""Kernels that stay where they are and say what the log density, or its gradient, is there."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from credence.density.data import Data
from credence.density.posterior import LogDensity, Position
from credence.kernels.base import Kernel


class EvaluationState(NamedTuple):
    """Position, and after a step its log density and gradient."""

    position: Position
    log_density: Float[Array, ""]
    gradient: Position


class EvaluationInfo(NamedTuple):
    """What a step did."""

    is_finite: Bool[Array, ""]
    num_gradients: Int[Array, ""]


def evaluation(log_density: LogDensity) -> Kernel:
    """Evaluate a log density and its gradient, in nats and nats per unit of weight.

    Trivially leaves every law invariant. As a phase of a run, a training set for a surrogate gets
    progress, checkpoints and its line in the cost table like all other work.
    """

    def init(position: Position, data: Data) -> EvaluationState:
        return EvaluationState(position, jnp.zeros((), position.dtype), jnp.zeros_like(position))

    def step(
        key: PRNGKeyArray, state: EvaluationState, data: Data
    ) -> tuple[EvaluationState, EvaluationInfo]:
        value, gradient = jax.value_and_grad(log_density)(state.position, data)
        is_finite = jnp.isfinite(value) & jnp.all(jnp.isfinite(gradient))
        new = EvaluationState(state.position, value, gradient)
        return new, EvaluationInfo(is_finite, jnp.ones((), jnp.int32))

    return Kernel(init, step)


value_and_gradient = evaluation
"""The same; `credence.kernels.evaluation` is this folder."""


class ValueState(NamedTuple):
    """Position, and after a step its log density."""

    position: Position
    log_density: Float[Array, ""]


class ValueInfo(NamedTuple):
    """What a step did."""

    is_finite: Bool[Array, ""]
    num_evaluations: Int[Array, ""]


def value(log_density: LogDensity) -> Kernel:
    """Evaluate a log density, in nats: `evaluation` without the gradient."""

    def init(position: Position, data: Data) -> ValueState:
        return ValueState(position, jnp.zeros((), position.dtype))

    def step(key: PRNGKeyArray, state: ValueState, data: Data) -> tuple[ValueState, ValueInfo]:
        found = log_density(state.position, data)
        info = ValueInfo(jnp.isfinite(found), jnp.ones((), jnp.int32))
        return ValueState(state.position, found), info

    return Kernel(init, step)
