"""Finds quantiles of a distribution whose distribution function and density are known."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import ndtri
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


class Bracket(NamedTuple):
    """The start of the search for a quantile, and the ends between which it is."""

    start: PointTarget
    low: PointTarget
    high: PointTarget


def bracket(
    weights: Float[Array, " member"],
    location: Float[Array, "member point target"],
    noise_std: Float[Array, "member point target"],
    centre: PointTarget,
    spread: PointTarget,
    level: float | Float[Array, ""],
) -> Bracket:
    """Bounds on a quantile of a mixture, known beforehand.

    Cantelli's inequality gives them: the quantile of level q lies between
    mean - std sqrt((1 - q) / q) and mean + std sqrt(q / (1 - q)). With signed weights, and where a
    member is so wide that the mixture's std overflows, Chebyshev's: where every member's tail is
    below min(q, 1 - q) / sum |weight|, so is the mixture's. The search then starts from the
    members' mean in proportion to their precision, where the wide ones count for nothing.

    Args:
        noise_std: standard deviation of the noise under every member.
        centre, spread: mean and standard deviation of the mixture.
    """
    low, high = cantelli(centre, spread, level)
    tail = jnp.minimum(level, 1 - level) / jnp.sum(jnp.abs(weights))
    reach = noise_std / jnp.sqrt(tail)
    is_known = jnp.isfinite(centre) & jnp.isfinite(spread)
    is_wide = jnp.any(weights < 0) | ~is_known
    low = jnp.where(is_wide, jnp.min(location - reach, axis=0), low)
    high = jnp.where(is_wide, jnp.max(location + reach, axis=0), high)
    largest = 0.25 * jnp.finfo(location.dtype).max  # the middle of two such numbers is finite
    low, high = jnp.clip(low, -largest, largest), jnp.clip(high, -largest, largest)
    precise = jnp.mean(1 / noise_std, axis=0)
    typical = (jnp.mean(location / noise_std, axis=0) + ndtri(level)) / precise
    start = jnp.where(is_known, centre + spread * ndtri(level), jnp.nan_to_num(typical))
    return Bracket(jnp.clip(start, low, high), low, high)


def search_quantile(
    cdf_and_density: Callable[[PointTarget], tuple[PointTarget, PointTarget]],
    bracket: Bracket,
    level: float | Float[Array, ""],
) -> PointTarget:
    """Newton's method on a distribution function, kept inside a shrinking bracket.

    A Newton step that leaves the bracket, or is more than half the step before, gives way to
    bisection. A target is done where the level is reached to a few roundings, or where no number
    is left between the ends of the bracket.
    """
    start, low, high = bracket
    numbers = jnp.finfo(start.dtype)
    most_trials = int(numbers.maxexp - numbers.minexp + numbers.nmant)  # bisections, at worst
    tolerance = 8 * numbers.eps * level

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
        lambda state: jnp.any(~state.done) & (state.trials < most_trials), refine, first
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
