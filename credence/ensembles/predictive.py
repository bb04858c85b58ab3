"""What a weighted ensemble predicts at some inputs: the mixture of its members' predictions.

    p(y | x) = sum_m weight_m p(y | x, member_m)

Weights sum to one and may be signed (a multilevel estimator): moments and probabilities are the
signed sums; draws, log densities and entropies first project to a valid distribution, as said
there.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp, xlogy
from jaxtyping import Array, Float, Int, Key, PRNGKeyArray

from credence.ensembles.quantiles import bracket, check_levels, search_quantile
from credence.errors import InputError, plural
from credence.models.likelihoods.base import Likelihood
from credence.models.likelihoods.numbers import LocationScale

PointTarget = Float[Array, "point target"]
Observed = PointTarget | Float[Array, " point"] | Int[Array, " point"]
"""What was observed: numbers (point, target), or (point,) of a single target; labels (point,)."""


class Predictions(ABC):
    """Predictions of an ensemble at one batch of inputs, whatever it is made of.

    A subclass gives the members, `weights` and `member_...`, and what depends on the form of their
    noise. All else follows from these.
    """

    weights: Float[Array, " member"]
    """How much each member counts, sum one; possibly signed."""

    @property
    @abstractmethod
    def is_regression(self) -> bool:
        """Whether targets are numbers rather than labels."""

    @property
    @abstractmethod
    def num_points(self) -> int:
        """Number of inputs."""

    @abstractmethod
    def member_means(self) -> Float[Array, "member point target"]:
        """Noise-free predictions: E(y | x, member), or its class probabilities."""

    @abstractmethod
    def member_log_scales(self) -> Float[Array, "member point target"]:
        """Logarithm of the noise's scale under every member (regression)."""

    @abstractmethod
    def member_log_probs(self, y: Observed) -> Float[Array, "member point"]:
        """Log likelihood of each point's targets under every member, in nats."""

    @abstractmethod
    def member_samples(self, key: PRNGKeyArray) -> Array:
        """One draw of every point's targets from every member: (member, point[, target])."""

    @abstractmethod
    def aleatoric_variance(self) -> PointTarget:
        """Expected variance of the noise, in squared units of y (regression)."""

    @abstractmethod
    def cdf(self, y: Observed) -> PointTarget:
        """P(target <= y), target by target (regression)."""

    @abstractmethod
    def quantiles(self, levels: Sequence[float]) -> Float[Array, "level point target"]:
        """Values below which the target falls with the given probabilities (regression).

        The exact quantiles of the mixture, to float precision. With signed weights the
        distribution function may dip; the value returned is one where it crosses the level.

        Raises:
            InputError: for a level outside [1e-6, 1 - 1e-6], beyond single precision.
        """

    @abstractmethod
    def sample(self, key: PRNGKeyArray, num_samples: int) -> Array:
        """Targets drawn from the mixture: (sample, point[, target]).

        Members are drawn in proportion to their weights (negative ones set to zero).
        """

    def monitored(self) -> Float[Array, "member point quantity"]:
        """Noise-free predictions, and for regression the log of the noise's scale beside them."""
        means = self.member_means()
        if not self.is_regression:
            return means
        return jnp.concatenate([means, self.member_log_scales()], axis=-1)

    def mean(self) -> PointTarget:
        """Predictive mean; for classification the class probabilities (point, class)."""
        return weighted(self.weights, self.member_means())

    def epistemic_variance(self) -> PointTarget:
        """Variance of the noise-free prediction between members (regression)."""
        means = self.member_means()
        centre = weighted(self.weights, means)
        return jnp.maximum(weighted(self.weights, (means - centre) ** 2), 0.0)

    def std(self) -> PointTarget:
        """Predictive standard deviation: aleatoric and epistemic variance together (regression).

        0 where signed weights leave a negative variance.
        """
        return jnp.sqrt(jnp.maximum(self.aleatoric_variance() + self.epistemic_variance(), 0.0))

    def log_prob(self, y: Observed) -> Float[Array, " point"]:
        """Log of the predictive density (probability) of each point's targets, in nats.

        With signed weights, of the mixture that `sample` draws from, which is valid everywhere.
        """
        return _log_mixture(_positive(self.weights), self.member_log_probs(y))

    def crps(self, y: Observed, key: PRNGKeyArray, num_samples: int = 1000) -> PointTarget:
        """Continuous ranked probability score from draws, in units of y (regression)."""
        self._require_regression()
        if num_samples < 2:
            raise InputError(f"num_samples must be >= 2, got {num_samples}; 1000 is usual.")
        return _sample_crps(self.sample(key, num_samples), self._observed(y))

    def entropy_total(self) -> Float[Array, " point"]:
        """Entropy of the class probabilities, in nats (classification)."""
        self._require_classification()
        return _entropy(_simplex(self.mean()))

    def entropy_aleatoric(self) -> Float[Array, " point"]:
        """Expected entropy of a member's probabilities, in nats (classification).

        Between 0 and the total, as it must be: signed weights may lead beyond.
        """
        expected = jnp.einsum("m,mp->p", self.weights, _entropy(self.member_means()))
        return jnp.clip(expected, 0.0, self.entropy_total())

    def entropy_epistemic(self) -> Float[Array, " point"]:
        """Mutual information between label and member: total minus aleatoric, in nats."""
        return self.entropy_total() - self.entropy_aleatoric()

    def _require_regression(self) -> None:
        if not self.is_regression:
            raise InputError(f"{self} predicts labels: this is for regression; use mean().")

    def _observed(self, y: Observed) -> Array:
        """Numbers as (point, target), labels as they are.

        Raises:
            InputError: for another number of points, which would be taken for several targets.
        """
        y = jnp.asarray(y)
        if y.shape[:1] != (self.num_points,):
            raise InputError(
                f"The targets have shape {y.shape}, but the predictions are of "
                f"{plural(self.num_points, 'row')}."
            )
        return y[:, None] if self.is_regression and y.ndim == 1 else y

    def _require_classification(self) -> None:
        if self.is_regression:
            raise InputError(f"{self} predicts numbers: use std() or quantiles().")


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
        return weighted(self.weights, variances)

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

    def sample(self, key: PRNGKeyArray, num_samples: int) -> Array:
        networks = self.likelihood, self.likelihood_params, self.outputs
        return _sample_mixture(key, *networks, self.weights, num_samples)

    def location_scale(self) -> tuple[Array, Array]:
        """Location and scale of every member (member, point, target) (regression)."""
        family = self.location_scale_family()
        return _location_scale(family, self.likelihood_params, self.outputs)

    def location_scale_family(self) -> LocationScale:
        """The likelihood, which must be one of regression."""
        if isinstance(self.likelihood, LocationScale):
            return self.likelihood
        raise InputError(f"{self.likelihood} predicts labels: this is for regression; use mean().")


@partial(jax.jit, static_argnames="likelihood")
def _member_means(likelihood: Likelihood, params: Any, outputs: Array) -> Array:
    return jax.vmap(likelihood.mean)(params, outputs)


@partial(jax.jit, static_argnames="likelihood")
def _location_scale(likelihood: LocationScale, params: Any, outputs: Array) -> Any:
    return jax.vmap(likelihood.location_scale)(params, outputs)


@partial(jax.jit, static_argnames="likelihood")
def _variances(likelihood: LocationScale, params: Any, outputs: Array) -> Array:
    return jax.vmap(likelihood.variance)(params, outputs)


@jax.jit
def weighted(
    weights: Float[Array, " member"], values: Float[Array, "member point target"]
) -> PointTarget:
    """Sum of the members' values, each times its weight."""
    return jnp.einsum("m,mpt->pt", weights, values, precision="highest")


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


@jax.jit
def _log_mixture(
    weights: Float[Array, " member"], log_probs: Float[Array, "member point"]
) -> Float[Array, " point"]:
    return logsumexp(log_probs, axis=0, b=weights[:, None])


@partial(jax.jit, static_argnames="likelihood")
def _sample(
    keys: Key[Array, " sample"], likelihood: Likelihood, params: Any, outputs: Array
) -> Array:
    return jax.vmap(likelihood.sample)(keys, params, outputs)


@partial(jax.jit, static_argnames=("likelihood", "num_samples"))
def _sample_mixture(
    key: PRNGKeyArray,
    likelihood: Likelihood,
    params: Any,
    outputs: Array,
    weights: Float[Array, " member"],
    num_samples: int,
) -> Array:
    key_member, key_noise = jax.random.split(key)
    chosen = jax.random.choice(key_member, len(weights), (num_samples,), p=_positive(weights))
    keys = jax.random.split(key_noise, num_samples)
    params = jax.tree.map(lambda leaf: leaf[chosen], params)
    return _sample(keys, likelihood, params, outputs[chosen])


@jax.jit
def _sample_crps(samples: Float[Array, "sample point target"], y: PointTarget) -> PointTarget:
    """E|Y - y| - E|Y - Y'| / 2 with the unbiased second term (Gneiting & Raftery, 2007, eq. 20)."""
    count = samples.shape[0]
    ordered = jnp.sort(samples, axis=0)
    rank = 2 * jnp.arange(1, count + 1) - count - 1
    spread = jnp.einsum("m,mpt->pt", rank.astype(samples.dtype), ordered) / (count * (count - 1))
    return jnp.mean(jnp.abs(samples - y), axis=0) - spread


def _positive(weights: Float[Array, " member"]) -> Float[Array, " member"]:
    """Negative weights set to zero, the rest scaled to sum one."""
    positive = jnp.maximum(weights, 0.0)
    return positive / jnp.sum(positive)


def _simplex(probabilities: Float[Array, "point class"]) -> Float[Array, "point class"]:
    """Negative probabilities (signed weights) set to zero, the rest scaled to sum one."""
    positive = jnp.maximum(probabilities, 0.0)
    return positive / jnp.sum(positive, axis=-1, keepdims=True)


def _entropy(probabilities: Float[Array, "*batch class"]) -> Float[Array, "*batch"]:
    return -jnp.sum(xlogy(probabilities, probabilities), axis=-1)


def filled(values: np.ndarray, rows: slice, size: int) -> Array:
    """Take the rows of a batch, filled up to its size with others: what is found there is dropped.

    Args:
        values: with an entry per row, to go with the inputs of `over_batches`.
        size: of the batch, `Predictions.num_points`.
    """
    return jnp.asarray(np.resize(values[rows], (size, *values.shape[1:])))


def concatenate(parts: Sequence[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Join summaries of consecutive batches along the points."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
