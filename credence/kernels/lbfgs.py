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

from credence.kernels.base import Kernel
from credence.posterior import Data, LogDensity, Position

SUFFICIENT = 1e-4
"""Share of the rise that the slope promises, from which a step counts (Armijo)."""
FLATTER = 0.9
"""Share of the slope that may be left where rounding hides the rise (Wolfe)."""


class LBFGSState(NamedTuple):
    """Where the search is, in units of the weights except for what says otherwise."""

    position: Position
    log_density: Float[Array, ""]
    gradient: Position
    """Of the log density in position / scale."""
    direction: Position
    """In position / scale, uphill."""
    length: Float[Array, ""]
    """Multiple of the direction that is tried next."""
    memory: Any


class LBFGSInfo(NamedTuple):
    """Where the step ended."""

    log_density: Float[Array, ""]
    gap: Float[Array, ""]
    """|scale * gradient|^2 / 2 in nats: where the curvature of minus the log density is at least
    1 / scale^2, a quadratic is no more than this below its maximum."""
    is_accepted: Bool[Array, ""]
    is_finite: Bool[Array, ""]
    num_gradients: Int[Array, ""]


def lbfgs(log_density: LogDensity, *, scale: Float[Array, " weight"]) -> Kernel:
    """Ascend the log density by L-BFGS with backtracking.

    Liu & Nocedal, "On the limited memory BFGS method for large scale optimization" (1989), in
    coordinates position / scale. A trial counts if it rises enough, or, where rounding hides the
    rise, if the slope along the direction is less (Hager & Zhang, "A new conjugate gradient method
    with guaranteed descent and an efficient line search", 2005); otherwise the next one is shorter,
    where a parabola through value, slope and trial has its maximum. A direction that does not rise
    gives way to the gradient, with an empty memory.

    Args:
        log_density: (position, data) -> log density, in nats; for float32 data `anchored` near the
            mode, so that small differences are seen.
        scale: typical size of every weight, its prior standard deviation, say.
    A trial that is not finite is refused: the weights stay, is_finite is False.
    """
    solver = optax.scale_by_lbfgs(memory_size=20)

    def climb(position: Position, data: Data) -> tuple[Float[Array, ""], Position]:
        value, gradient = jax.value_and_grad(log_density)(position, data)
        return value, scale * gradient

    def init(position: Position, data: Data) -> LBFGSState:
        value, gradient = climb(position, data)
        memory = solver.init(position)
        direction, memory = solver.update(-gradient, memory, position / scale)
        return LBFGSState(position, value, gradient, -direction, jnp.ones_like(value), memory)

    def step(key: PRNGKeyArray, state: LBFGSState, data: Data) -> tuple[LBFGSState, LBFGSInfo]:
        trial = state.position + state.length * scale * state.direction
        value, gradient = climb(trial, data)
        is_finite = jnp.isfinite(value) & jnp.isfinite(gradient).all()
        slope = jnp.dot(state.gradient, state.direction, precision="highest")
        left = jnp.dot(gradient, state.direction, precision="highest")
        rise = value - state.log_density
        rounding = 10 * jnp.finfo(value.dtype).eps * (1 + jnp.abs(state.log_density))
        is_accepted = rise >= SUFFICIENT * state.length * slope
        is_accepted |= (rise >= -rounding) & (jnp.abs(left) <= FLATTER * slope)
        is_accepted &= is_finite

        new = _turned(solver, trial, value, gradient, state.memory, scale)
        parabola = 0.5 * state.length**2 * slope / (state.length * slope - rise)
        parabola = jnp.where(is_finite, parabola, 0.0)
        shorter = jnp.clip(parabola, 0.1 * state.length, 0.5 * state.length)
        old = state._replace(length=shorter)
        state = jax.tree.map(lambda new, old: jnp.where(is_accepted, new, old), new, old)
        gap = 0.5 * jnp.sum(state.gradient**2)
        info = LBFGSInfo(state.log_density, gap, is_accepted, is_finite, jnp.ones((), jnp.int32))
        return state, info

    return Kernel(init, step)


def _turned(
    solver: optax.GradientTransformation,
    position: Position,
    value: Float[Array, ""],
    gradient: Position,
    memory: Any,
    scale: Float[Array, " weight"],
) -> LBFGSState:
    """The state at an accepted trial, with its new direction."""
    direction, after = solver.update(-gradient, memory, position / scale)
    fresh, empty = solver.update(-gradient, solver.init(position), position / scale)
    is_uphill = jnp.dot(-direction, gradient, precision="highest") > 0
    direction, after = jax.tree.map(
        lambda good, reset: jnp.where(is_uphill, good, reset), (direction, after), (fresh, empty)
    )
    return LBFGSState(position, value, gradient, -direction, jnp.ones_like(value), after)
