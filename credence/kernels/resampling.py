"""Weighted particles: what their weights are worth, resampling, the step to the next temperature.

Every scheme returns ancestors such that particle i is chosen on average num * weights[i] times
(Douc, Cappe & Moulines, "Comparison of resampling schemes for particle filtering", 2005). The
cost is that of one cumulative sum and one sorted search.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, Int, PRNGKeyArray

Weights = Float[Array, " particle"]
Ancestors = Int[Array, " chosen"]


def systematic(key: PRNGKeyArray, weights: Weights, num: int) -> Ancestors:
    """One uniform number for all: the least variance in most cases, the usual choice."""
    return at_levels(weights, (jnp.arange(num) + jax.random.uniform(key)) / num)


def stratified(key: PRNGKeyArray, weights: Weights, num: int) -> Ancestors:
    """One uniform number in each of num strata: never more variance than multinomial."""
    return at_levels(weights, (jnp.arange(num) + jax.random.uniform(key, (num,))) / num)


def multinomial(key: PRNGKeyArray, weights: Weights, num: int) -> Ancestors:
    """Independent draws, as theorems assume."""
    return at_levels(weights, jnp.sort(jax.random.uniform(key, (num,))))


def residual(key: PRNGKeyArray, weights: Weights, num: int) -> Ancestors:
    """floor(num * weight) copies of each particle, the rest drawn from what is left, unsorted:
    of sorted draws the last few would favour the last particles.
    """
    expected = num * weights / jnp.sum(weights)
    copies = jnp.floor(expected)
    certain = jnp.repeat(jnp.arange(len(weights)), copies.astype(int), total_repeat_length=num)
    rest = at_levels(expected - copies, jax.random.uniform(key, (num,)))
    return jnp.where(jnp.arange(num) < jnp.sum(copies), certain, rest)


RESAMPLING: dict[str, Callable[[PRNGKeyArray, Weights, int], Ancestors]] = {
    "systematic": systematic,
    "stratified": stratified,
    "multinomial": multinomial,
    "residual": residual,
}
"""The resampling schemes by their names."""


def at_levels(weights: Weights, uniform: Float[Array, "*chosen"]) -> Int[Array, "*chosen"]:
    """Particles at levels in [0, 1) of the cumulative weights; never one of weight zero."""
    total = jax.lax.cummax(jnp.cumsum(weights))  # a parallel sum may fall, and rise at weight zero
    ancestors = jnp.searchsorted(total, uniform * total[-1], side="right")
    has_weight = weights > 0
    index = jnp.where(has_weight, jnp.arange(len(weights)), jnp.argmax(has_weight))
    return jax.lax.cummax(index)[jnp.minimum(ancestors, len(weights) - 1)]


def effective_sample_size(log_weights: Weights) -> Float[Array, ""]:
    """(sum w)^2 / sum w^2: between 1 and the number of particles (Kong, Liu & Wong, 1994).

    Of the weights alone, as if the particles were independent: what the particles of a finished run
    are worth is `credence.ensembles.diagnostics.convergence.family_ess`.
    """
    return jnp.exp(2 * logsumexp(log_weights) - logsumexp(2 * log_weights))


def effective_share(log_weights: Float[Array, "run particle"]) -> Float[Array, ""]:
    """Effective sample size over the number of particles, as a mean over the runs."""
    return jnp.mean(jax.vmap(effective_sample_size)(log_weights)) / log_weights.shape[1]


def temperature_step(
    log_ratios: Float[Array, "run particle"], most: Float[Array, ""], target: float
) -> Float[Array, ""]:
    """The step d <= most at which weights ratio^d have the target ESS, as a mean over the runs.

    Bisection on log d: the ratios of a broad prior need steps of any order of magnitude
    (Jasra, Stephens, Doucet & Tsagaris, "Inference for Levy-driven stochastic volatility models
    via adaptive sequential Monte Carlo", 2011).

    Args:
        log_ratios: log of what the particles are weighted by at d = 1; -inf where impossible.
        most: what is left of the way.
        target: ESS of the weights over the number of particles.
    """

    def share(step: Float[Array, ""]) -> Float[Array, ""]:
        return effective_share(step * log_ratios)

    def halve(_: Int[Array, ""], bounds: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bounds
        middle = 0.5 * (low + high)
        is_enough = share(jnp.exp(middle)) >= target
        return jnp.where(is_enough, middle, low), jnp.where(is_enough, high, middle)

    high = jnp.log(most)
    low, _ = jax.lax.fori_loop(0, 50, halve, (high - 40.0, high))
    return jnp.where(share(most) >= target, most, jnp.exp(low))
