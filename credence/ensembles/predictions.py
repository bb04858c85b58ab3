"""What a weighted ensemble predicts at some inputs: the mixture of its members' predictions.

    p(y | x) = sum_m weight_m p(y | x, member_m)

Weights sum to one and may be signed (a multilevel estimator): moments and probabilities are the
signed sums; draws, log densities and entropies first project to a valid distribution, as said
there.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp, xlogy
from jaxtyping import Array, Float, Int, PRNGKeyArray

from credence.errors import InputError, plural

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
        """Expected variance of the noise, in squared units of y (regression).

        0 where signed weights leave a negative variance.
        """

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
    def sample(self, key: PRNGKeyArray, num_samples: int, first_row: int = 0) -> Array:
        """Targets drawn from the mixture: (sample, point[, target]).

        Members are drawn in proportion to their weights (negative ones set to zero); one sample is
        one member at all points.

        Args:
            first_row: of these inputs in a table that is done in batches. The batches of one key
                have the same members, so that a sample is one member at all rows of the table, and
                noise of their own.
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
        return _log_mixture(positive_weights(self.weights), self.member_log_probs(y))

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
        return self.entropies()["aleatoric"]

    def entropy_epistemic(self) -> Float[Array, " point"]:
        """Mutual information between label and member: total minus aleatoric, in nats."""
        return self.entropies()["epistemic"]

    def entropies(self) -> dict[str, Float[Array, " point"]]:
        """All three of `entropy_total`, `entropy_aleatoric` and `entropy_epistemic`, at once."""
        total = self.entropy_total()
        of_members = _entropy(self.member_means())
        expected = jnp.einsum("m,mp->p", self.weights, of_members, precision="highest")
        aleatoric = jnp.clip(expected, 0.0, total)
        return {"total": total, "aleatoric": aleatoric, "epistemic": total - aleatoric}

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


@jax.jit
def weighted(
    weights: Float[Array, " member"], values: Float[Array, "member point target"]
) -> PointTarget:
    """Sum of the members' values, each times its weight."""
    return jnp.einsum("m,mpt->pt", weights, values, precision="highest")


@jax.jit
def _log_mixture(
    weights: Float[Array, " member"], log_probs: Float[Array, "member point"]
) -> Float[Array, " point"]:
    return logsumexp(log_probs, axis=0, b=weights[:, None])


@jax.jit
def _sample_crps(samples: Float[Array, "sample point target"], y: PointTarget) -> PointTarget:
    """E|Y - y| - E|Y - Y'| / 2 with the unbiased second term (Gneiting & Raftery, 2007, eq. 20)."""
    count = samples.shape[0]
    ordered = jnp.sort(samples, axis=0)
    rank = 2 * jnp.arange(1, count + 1) - count - 1
    distance = weighted(rank.astype(samples.dtype), ordered - y)  # ranks sum to zero
    return jnp.mean(jnp.abs(samples - y), axis=0) - distance / (count * (count - 1))


def positive_weights(weights: Float[Array, " member"]) -> Float[Array, " member"]:
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


def key_of_noise(key: PRNGKeyArray, first_row: int) -> PRNGKeyArray:
    """The key of the noise of a batch of rows, which begins at that row of its table."""
    return jax.random.fold_in(key, first_row) if first_row else key
