"""Predictions of several ensembles together: a mixture of mixtures, each with its likelihood."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from credence.ensembles.predictions import Observed, PointTarget, Predictions
from credence.ensembles.predictive import Predictive, cdf_and_density
from credence.ensembles.quantiles import bracket, check_levels, search_quantile
from credence.models.likelihoods.numbers import LocationScale


@dataclass(frozen=True, repr=False)
class Mixture(Predictions):
    """Predictions of several ensembles at the same inputs, mixed.

        p(y | x) = sum_k part_weight_k p_k(y | x)

    Args:
        parts: of one task, at the same inputs.
        part_weights: how much each part counts, >= 0, sum one.
        mean_weights: how much its mean counts in `mean`, >= 0, sum one; by default the same.
    """

    parts: tuple[Predictive, ...]
    part_weights: Float[np.ndarray, " part"]
    mean_weights: Float[np.ndarray, " part"] | None = None

    def __repr__(self) -> str:
        return f"Mixture({', '.join(map(repr, self.parts))})"

    @property
    def weights(self) -> Float[Array, " member"]:  # type: ignore[override]
        """How much each member of each part counts, part after part."""
        pairs = zip(self.part_weights, self.parts, strict=True)
        return jnp.concatenate([weight * part.weights for weight, part in pairs])

    @property
    def is_regression(self) -> bool:
        return self.parts[0].is_regression

    @property
    def num_points(self) -> int:
        return self.parts[0].num_points

    def member_means(self) -> Float[Array, "member point target"]:
        return jnp.concatenate([part.member_means() for part in self.parts])

    def member_log_scales(self) -> Float[Array, "member point target"]:
        return jnp.concatenate([part.member_log_scales() for part in self.parts])

    def member_log_probs(self, y: Observed) -> Float[Array, "member point"]:
        return jnp.concatenate([part.member_log_probs(y) for part in self.parts])

    def member_samples(self, key: PRNGKeyArray) -> Array:
        keys = jax.random.split(key, len(self.parts))
        return jnp.concatenate(
            [part.member_samples(key) for key, part in zip(keys, self.parts, strict=True)]
        )

    def mean(self) -> PointTarget:
        """Predictive mean, where weights for it were found by their own squared error; otherwise
        that of the mixture."""
        if self.mean_weights is None:
            return super().mean()
        pairs = zip(self.mean_weights, self.parts, strict=True)
        return sum((weight * part.mean() for weight, part in pairs if weight), start=jnp.zeros(()))

    def aleatoric_variance(self) -> PointTarget:
        return self._mixed([part.aleatoric_variance() for part in self.parts])

    def cdf(self, y: Observed) -> PointTarget:
        return self._mixed([part.cdf(y) for part in self.parts])

    def quantiles(self, levels: Sequence[float]) -> Float[Array, "level point target"]:
        check_levels(levels)
        families = tuple(part.location_scale_family() for part in self.parts)
        scales = tuple(part.location_scale() for part in self.parts)
        weights = tuple(
            weight * part.weights
            for weight, part in zip(self.part_weights, self.parts, strict=True)
        )
        centre, spread = super().mean(), self.std()
        found = [
            _quantile(families, weights, scales, centre, spread, float(level)) for level in levels
        ]
        return jnp.stack(found)

    def sample(self, key: PRNGKeyArray, num_samples: int, first_row: int = 0) -> Array:
        """Draws of every part in proportion to its weight, by systematic sampling, shuffled."""
        key_pick, *keys = jax.random.split(key, 1 + len(self.parts))
        pairs = zip(self.parts, keys, strict=True)
        drawn = [part.sample(key, num_samples, first_row) for part, key in pairs]
        return _pick(key_pick, jnp.stack(drawn), jnp.asarray(self.part_weights))

    def _mixed(self, values: Sequence[PointTarget]) -> PointTarget:
        pairs = zip(self.part_weights, values, strict=True)
        return sum((weight * value for weight, value in pairs), start=jnp.zeros_like(values[0]))


@dataclass(frozen=True, repr=False)
class ChangedMixture(Predictions):
    """A mixture whose law of the target is changed, by what rows say that it had not seen.

    Args:
        mixture: what is changed; its members stay as they are.
    """

    mixture: Mixture

    @property
    def weights(self) -> Float[Array, " member"]:  # type: ignore[override]
        """How much each member counts."""
        return self.mixture.weights

    @property
    def num_points(self) -> int:
        return self.mixture.num_points

    def member_means(self) -> Float[Array, "member point target"]:
        return self.mixture.member_means()

    def member_log_scales(self) -> Float[Array, "member point target"]:
        return self.mixture.member_log_scales()

    def member_log_probs(self, y: Observed) -> Float[Array, "member point"]:
        return self.mixture.member_log_probs(y)

    def member_samples(self, key: PRNGKeyArray) -> Array:
        return self.mixture.member_samples(key)


@jax.jit
def _pick(key: PRNGKeyArray, drawn: Array, part_weights: Float[Array, " part"]) -> Array:
    """One of the parts for every sample, by systematic sampling, of (part, sample, ...)."""
    key_place, key_order = jax.random.split(key)
    num_samples = drawn.shape[1]
    places = (jnp.arange(num_samples) + jax.random.uniform(key_place)) / num_samples
    part = jnp.searchsorted(jnp.cumsum(part_weights)[:-1], places, side="right")
    return jax.random.permutation(key_order, drawn[part, jnp.arange(num_samples)])


@partial(jax.jit, static_argnames="families")
def _quantile(
    families: tuple[LocationScale, ...],
    weights: tuple[Array, ...],
    scales: tuple[tuple[Array, Array], ...],
    centre: PointTarget,
    spread: PointTarget,
    level: float | Float[Array, ""],
) -> PointTarget:
    """The quantile of all groups together."""

    def both(y: PointTarget) -> Any:
        found = [
            cdf_and_density(family, weight, location, scale, y)
            for family, weight, (location, scale) in zip(families, weights, scales, strict=True)
        ]
        return jax.tree.map(lambda *values: sum(values), *found)

    stds = [
        scale * family.noise_variance**0.5
        for family, (_, scale) in zip(families, scales, strict=True)
    ]
    locations = jnp.concatenate([location for location, _ in scales])
    together = jnp.concatenate(weights), locations, jnp.concatenate(stds)
    return search_quantile(both, bracket(*together, centre, spread, level), level)
