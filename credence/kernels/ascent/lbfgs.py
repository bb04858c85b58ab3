"""L-BFGS as a kernel: one trial on the way to the nearest maximum of a smooth log density.

Not a Markov kernel of any target. What Adam leaves to do near a mode, where a Laplace approximation
wants the gradient to vanish, takes second-order steps on all data. The line search is spread over
kernel steps: each costs one gradient, and the program holds that gradient once.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from credence.density.data import Data
from credence.density.posterior import LogDensity, Position
from credence.kernels.base import Kernel, either

SUFFICIENT = 1e-4
"""Share of the rise that the slope promises, from which a step counts (Armijo)."""
FLATTER = 0.9
"""Share of the slope that may be left where rounding hides the rise (Wolfe)."""


class LBFGSState(NamedTuple):
    """The present point of the search, and what the search remembers of earlier ones."""

    position: Position
    log_density: Float[Array, ""]
    gradient: Position
    """Gradient of the log density, in nats per unit of weight."""
    moved: Position
    """The way gone since the memory was empty, in coordinates."""
    direction: Position
    """The direction of the next step: uphill, in coordinates."""
    length: Float[Array, ""]
    """Multiple of the direction that is tried next."""
    memory: Any
    age: Int[Array, ""]
    """Steps so far."""


class LBFGSInfo(NamedTuple):
    """The outcome of one step of the search, and the height at which it ended."""

    log_density: Float[Array, ""]
    gap: Float[Array, ""]
    """|gradient in coordinates|^2 / 2 in nats: where minus the log density has a curvature of at
    least 1 in coordinates, a quadratic is no more than this below its maximum."""
    is_accepted: Bool[Array, ""]
    is_finite: Bool[Array, ""]
    num_gradients: Int[Array, ""]


def lbfgs(
    log_density: LogDensity,
    *,
    scale: Float[Array, " weight"] | Float[Array, "weight weight"],
    restart_every: int | Int[Array, ""] = 2**30,
) -> Kernel:
    """Ascend the log density by L-BFGS with backtracking.

    Liu & Nocedal, "On the limited memory BFGS method for large scale optimization" (1989), in
    coordinates u with position = start + scale u. A trial counts if it rises enough, or, where
    rounding hides the rise, if the slope along the direction is less (Hager & Zhang, "A new
    conjugate gradient method with guaranteed descent and an efficient line search", 2005);
    otherwise the next one is shorter, where a parabola through value, slope and trial has its
    maximum. A direction that does not rise gives way to the gradient, with an empty memory.

    Args:
        log_density: (position, data) -> log density, in nats; for float32 data `anchored` near the
            mode, so that small differences are seen.
        scale: typical size of every weight, its prior standard deviation, say; a weight with 0
            stays where it is. Or a matrix R, best with R R^T near the inverse curvature: then few
            steps reach the mode, and rises stay larger than rounding.
        restart_every: steps after which the memory is emptied, so that scale may be another.
    A trial that is not finite is refused: the weights stay, is_finite is False.
    """
    solver = optax.scale_by_lbfgs(memory_size=20)
    scale = jnp.asarray(scale)

    def scaled(scale: Array, vector: Position) -> Position:
        is_matrix = scale.ndim == 2
        return jnp.matmul(scale, vector, precision="highest") if is_matrix else scale * vector

    def coordinates(gradient: Position) -> Position:
        return scaled(scale.T, gradient)

    def fresh(gradient: Position) -> tuple[Position, Any, Position]:
        """No way moved, an empty memory, and the direction of the gradient."""
        moved = jnp.zeros_like(gradient)
        along = coordinates(gradient)
        down, memory = solver.update(-along, solver.init(moved), moved)
        return moved, memory, -down

    def init(position: Position, data: Data) -> LBFGSState:
        value, gradient = jax.value_and_grad(log_density)(position, data)
        moved, memory, direction = fresh(gradient)
        one, age = jnp.ones_like(value), jnp.zeros((), jnp.int32)
        return LBFGSState(position, value, gradient, moved, direction, one, memory, age)

    def restarted(state: LBFGSState) -> LBFGSState:
        moved, memory, direction = fresh(state.gradient)
        new = state._replace(
            moved=moved, memory=memory, direction=direction, length=jnp.ones_like(state.length)
        )
        return either(state.age % restart_every == 0, new, state)

    def turned(trial: Position, value: Array, gradient: Position, state: LBFGSState) -> LBFGSState:
        """The state at an accepted trial, with its new direction."""
        moved = state.moved + state.length * state.direction
        along = coordinates(gradient)
        down, memory = solver.update(-along, state.memory, moved)
        is_uphill = jnp.dot(-down, along, precision="highest") > 0
        moved, memory, direction = either(is_uphill, (moved, memory, -down), fresh(gradient))
        one = jnp.ones_like(value)
        return LBFGSState(trial, value, gradient, moved, direction, one, memory, state.age)

    def step(key: PRNGKeyArray, state: LBFGSState, data: Data) -> tuple[LBFGSState, LBFGSInfo]:
        state = restarted(state)
        trial = state.position + scaled(scale, state.length * state.direction)
        value, gradient = jax.value_and_grad(log_density)(trial, data)
        is_finite = jnp.isfinite(value) & jnp.isfinite(gradient).all()
        slope = jnp.dot(coordinates(state.gradient), state.direction, precision="highest")
        left = jnp.dot(coordinates(gradient), state.direction, precision="highest")
        rise = value - state.log_density
        rounding = 10 * jnp.finfo(value.dtype).eps * (1 + jnp.abs(state.log_density))
        is_accepted = rise >= SUFFICIENT * state.length * slope
        is_accepted |= (rise >= -rounding) & (jnp.abs(left) <= FLATTER * slope)
        is_accepted &= is_finite

        parabola = 0.5 * state.length**2 * slope / (state.length * slope - rise)
        parabola = jnp.where(is_finite, parabola, 0.0)
        shorter = jnp.clip(parabola, 0.1 * state.length, 0.5 * state.length)
        old = state._replace(length=shorter)
        state = either(is_accepted, turned(trial, value, gradient, state), old)
        state = state._replace(age=state.age + 1)
        gap = 0.5 * jnp.sum(coordinates(state.gradient) ** 2)
        info = LBFGSInfo(state.log_density, gap, is_accepted, is_finite, jnp.ones((), jnp.int32))
        return state, info

    return Kernel(init, step)
