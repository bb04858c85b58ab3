"""Predictions of networks of one likelihood at some inputs, in closed form."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key, PRNGKeyArray

from credence.ensembles.predictions import (
    Observed,
    PointTarget,
    Predictions,
    key_of_noise,
    positive_weights,
    weighted,
)
from credence.ensembles.quantiles import bracket, check_levels, search_quantile
from credence.errors import InputError
from credence.models.likelihoods.base import Likelihood
from credence.models.likelihoods.labels import Classification
from credence.models.likelihoods.numbers import LocationScale


@dataclass(frozen=True)
class Predictive(Predictions):
    """Predictions of networks that share a likelihood, at one batch of inputs.

    Args:
        likelihood: turns outputs into distributions of targets.
        outputs: (member, point, output).
        likelihood_params: leaves (member, ...).
        weights: (member,), sum one.
    """

    likelihood: Likelihood
    outputs: Float[Array, "member point output"]
    likelihood_params: Any
    weights: Float[Array, " member"]

    def __repr__(self) -> str:
        members, points, _ = self.outputs.shape
        return f"Predictive({members} members, {points} points, {self.likelihood})"

    def _require_regression(self) -> None:
        self.location_scale_family()

    @property
    def is_regression(self) -> bool:
        return isinstance(self.likelihood, LocationScale)

    @property
    def num_points(self) -> int:
        return self.outputs.shape[1]

    def member_means(self) -> Float[Array, "member point target"]:
        return _member_means(self.likelihood, self.likelihood_params, self.outputs)

    def member_log_scales(self) -> Float[Array, "member point target"]:
        return jnp.log(self.location_scale()[1])

    def member_log_probs(self, y: Observed) -> Float[Array, "member point"]:
        observed = self._observed(y)
        return _member_log_probs(self.likelihood, self.likelihood_params, self.outputs, observed)

    def member_samples(self, key: PRNGKeyArray) -> Array:
        keys = jax.random.split(key, len(self.weights))
        return _sample(keys, self.likelihood, self.likelihood_params, self.outputs)

    def aleatoric_variance(self) -> PointTarget:
        variances = _variances(self.location_scale_family(), self.likelihood_params, self.outputs)
        return jnp.maximum(weighted(self.weights, variances), 0.0)

    def member_cdfs(self, y: Observed) -> Float[Array, "member point target"]:
        """P(target <= y) under every member, target by target (regression)."""
        return _member_cdfs(self.location_scale_family(), *self.location_scale(), self._observed(y))

    def cdf(self, y: Observed) -> PointTarget:
        family, scales = self.location_scale_family(), self.location_scale()
        return _mixture_cdf(family, self.weights, *scales, self._observed(y))

    def quantiles(self, levels: Sequence[float]) -> Float[Array, "level point target"]:
        check_levels(levels)
        family, scales = self.location_scale_family(), self.location_scale()
        centre, spread = self.mean(), self.std()
        found = [
            _mixture_quantile(family, self.weights, *scales, centre, spread, float(level))
            for level in levels
        ]
        return jnp.stack(found)

    def sample(self, key: PRNGKeyArray, num_samples: int, first_row: int = 0) -> Array:
        key_member, key_noise = jax.random.split(key)
        keys = key_member, key_of_noise(key_noise, first_row)
        networks = self.likelihood, self.likelihood_params, self.outputs
        return _sample_mixture(*keys, *networks, self.weights, num_samples)

    def _observed(self, y: Observed) -> Array:
        """Targets in the form that the likelihood takes, whosever it is.

        Raises:
            InputError: for labels that the networks do not know.
        """
        y = super()._observed(y)
        if isinstance(self.likelihood, Classification):
            self.likelihood.check_known(y, self.outputs.shape[-1])
            return y
        return y if y.ndim > 1 else jnp.asarray(self.likelihood.checked_targets(y))

    def location_scale(self) -> tuple[Array, Array]:
        """Location and scale of every member (member, point, target) (regression)."""
        family = self.location_scale_family()
        return _location_scale(family, self.likelihood_params, self.outputs)

    def location_scale_family(self) -> LocationScale:
        """The likelihood, which must be one of regression."""
        if isinstance(self.likelihood, LocationScale):
            return self.likelihood
        raise InputError(no_numbers(self.likelihood))


def no_numbers(likelihood: Likelihood) -> str:
    """The sentence that says why a likelihood has no quantiles, and what to do."""
    if isinstance(likelihood, Classification):
        return f"{likelihood} predicts labels: this is for regression; use mean()."
    return (
        f"{likelihood} has no location and scale, from which intervals and quantiles come: "
        "derive it from credence.models.LocationScale, or take draws with sample_y."
    )


@partial(jax.jit, static_argnames="likelihood")
def _member_means(likelihood: Likelihood, params: Any, outputs: Array) -> Array:
    return jax.vmap(likelihood.mean)(params, outputs)


@partial(jax.jit, static_argnames="likelihood")
def _location_scale(likelihood: LocationScale, params: Any, outputs: Array) -> Any:
    return jax.vmap(likelihood.location_scale)(params, outputs)


@partial(jax.jit, static_argnames="likelihood")
def _variances(likelihood: LocationScale, params: Any, outputs: Array) -> Array:
    return jax.vmap(likelihood.variance)(params, outputs)


@partial(jax.jit, static_argnames="likelihood")
def _member_cdfs(
    likelihood: LocationScale, location: Array, scale: Array, y: PointTarget
) -> Float[Array, "member point target"]:
    return likelihood.noise_cdf((y - location) / scale)


@partial(jax.jit, static_argnames="likelihood")
def _mixture_cdf(
    likelihood: LocationScale, weights: Array, location: Array, scale: Array, y: PointTarget
) -> PointTarget:
    return weighted(weights, _member_cdfs(likelihood, location, scale, y))


@partial(jax.jit, static_argnames="likelihood")
def _mixture_quantile(
    likelihood: LocationScale,
    weights: Array,
    location: Array,
    scale: Array,
    centre: PointTarget,
    spread: PointTarget,
    level: float | Float[Array, ""],
) -> PointTarget:
    """The quantile of one group of members."""
    noise_std = scale * likelihood.noise_variance**0.5
    return search_quantile(
        lambda y: cdf_and_density(likelihood, weights, location, scale, y),
        bracket(weights, location, noise_std, centre, spread, level),
        level,
    )


def cdf_and_density(
    likelihood: LocationScale, weights: Array, location: Array, scale: Array, y: PointTarget
) -> tuple[PointTarget, PointTarget]:
    """The mixture's distribution function and density at y, of one group of members."""
    z = (y - location) / scale
    density = jnp.exp(likelihood.noise_log_density(z)) / scale
    return weighted(weights, likelihood.noise_cdf(z)), weighted(weights, density)


@partial(jax.jit, static_argnames="likelihood")
def _member_log_probs(
    likelihood: Likelihood, params: Any, outputs: Array, y: Array
) -> Float[Array, "member point"]:
    return jax.vmap(likelihood.log_prob, (0, 0, None))(params, outputs, y)


@partial(jax.jit, static_argnames="likelihood")
def _sample(
    keys: Key[Array, " sample"], likelihood: Likelihood, params: Any, outputs: Array
) -> Array:
    return jax.vmap(likelihood.sample)(keys, params, outputs)


@partial(jax.jit, static_argnames=("likelihood", "num_samples"))
def _sample_mixture(
    key_member: PRNGKeyArray,
    key_noise: PRNGKeyArray,
    likelihood: Likelihood,
    params: Any,
    outputs: Array,
    weights: Float[Array, " member"],
    num_samples: int,
) -> Array:
    chosen = jax.random.choice(
        key_member, len(weights), (num_samples,), p=positive_weights(weights)
    )
    keys = jax.random.split(key_noise, num_samples)
    params = jax.tree.map(lambda leaf: leaf[chosen], params)
    return _sample(keys, likelihood, params, outputs[chosen])
