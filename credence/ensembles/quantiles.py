"""Finds quantiles of a distribution whose distribution function and density are known."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from credence.ensembles.diagnostics.recalibration import LEAST_LEVEL
from credence.errors import InputError

PointTarget = Float[Array, "point target"]


def check_levels(levels: Sequence[float]) -> None:
    """Refuse quantile levels beyond single precision."""
    for level in levels:
        if not LEAST_LEVEL <= level <= 1 - LEAST_LEVEL:
            raise InputError(f"Quantile levels must be in [1e-6, 1 - 1e-6], got {level}.")


def cantelli(centre: PointTarget, spread: PointTarget, level: Any) -> tuple[Array, Array]:
    """Bounds on a quantile from mean and standard deviation alone (Cantelli's inequality)."""
    low = centre - spread * jnp.sqrt((1 - level) / level)
    return low, centre + spread * jnp.sqrt(level / (1 - level))


def search_quantile(
    cdf_and_density: Callable[[PointTarget], tuple[PointTarget, PointTarget]],
    start: PointTarget,
    low: PointTarget,
    high: PointTarget,
    level: float | Float[Array, ""],
) -> PointTarget:
    """Newton's method on a distribution function, kept inside a shrinking bracket.

    A Newton step that leaves the bracket, or is more than half the step before, gives way to
    bisection. A target is done where the level is reached to a few roundings, or where no number
    is left between the ends of the bracket.
    """
    tolerance = 8 * jnp.finfo(start.dtype).eps * level

    def refine(state: _Search) -> _Search:
        reached, density = cdf_and_density(state.y)
        excess = reached - level
        low = jnp.where(excess < 0, state.y, state.low)
        high = jnp.where(excess < 0, state.high, state.y)
        middle = 0.5 * (low + high)
        newton = state.y - excess / density
        is_good = (newton > low) & (newton < high)
        is_good &= jnp.abs(newton - state.y) <= 0.5 * jnp.abs(state.step)
        done = (jnp.abs(excess) <= tolerance) | (middle <= low) | (middle >= high)
        y = jnp.where(done, state.y, jnp.where(is_good, newton, middle))
        return _Search(low, high, y, y - state.y, done, state.trials + 1)

    never = jnp.zeros(start.shape, bool)
    first = _Search(low, high, start, jnp.full_like(start, jnp.inf), never, jnp.zeros((), int))
    return jax.lax.while_loop(
        lambda state: jnp.any(~state.done) & (state.trials < 100), refine, first
    ).y


class _Search(NamedTuple):
    """The state of the search for a quantile."""

    low: PointTarget
    high: PointTarget
    y: PointTarget
    step: PointTarget
    """The latest step of Newton's method or of the bisection."""
    done: Bool[Array, "point target"]
    trials: Int[Array, ""]
