"""A mixture of class probabilities made as sure as rows that it had not seen say.

Probabilities that are right by themselves are too modest when they are averaged: Ranjan & Gneiting,
"Combining probability forecasts" (2010), theorem 1. They mend it for two labels by a beta law on
the average; here it is a power, which treats any number of labels alike:

    p_T(label) = softmax(log p_mixture / T),    T <= 1.

At T = 1 nothing changes; below, the likely labels gain what the others lose, and the order of the
labels stays. Sharper members are no substitute: where members disagree, their average is modest
however sure they are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from credence.ensembles.diagnostics.recalibration import TEMPERATURES
from credence.ensembles.mixture import ChangedMixture
from credence.ensembles.predictions import Observed, PointTarget, key_of_noise
from credence.errors import InputError


@dataclass(frozen=True, repr=False)
class Tempered(ChangedMixture):
    """Class probabilities of a mixture, at a power.

    Args:
        mixture: what is tempered; members stay as they are.
        temperature: T above, between 0.05 and 1.
    """

    temperature: float

    def __post_init__(self) -> None:
        if not TEMPERATURES[0] <= self.temperature <= 1:
            raise InputError(
                f"temperature must be between {TEMPERATURES[0]} and 1, got {self.temperature}."
            )

    def __repr__(self) -> str:
        return f"Tempered({self.mixture!r}, temperature={self.temperature:.3g})"

    @property
    def is_regression(self) -> bool:
        return False

    def mean(self) -> PointTarget:
        """Return the tempered class probabilities."""
        return jnp.exp(self._logs)

    def log_prob(self, y: Observed) -> Float[Array, " point"]:
        """Log of the tempered probability of each point's label, in nats."""
        labels = jnp.asarray(y).reshape(self.num_points, 1).astype(int)
        return jnp.take_along_axis(self._logs, labels, axis=1)[:, 0]

    def entropies(self) -> dict[str, Float[Array, " point"]]:
        """Share out the entropy between labels and members as the mixture does."""
        before, total = self.mixture.entropies(), self.entropy_total()
        share = jnp.where(before["total"] > 0, before["aleatoric"] / before["total"], 1.0)
        aleatoric = share * total
        return {"total": total, "aleatoric": aleatoric, "epistemic": total - aleatoric}

    def sample(self, key: PRNGKeyArray, num_samples: int, first_row: int = 0) -> Array:
        """Labels drawn by the tempered probabilities, every point for itself."""
        shape = (num_samples, self.num_points)
        key = key_of_noise(key, first_row)
        return jax.random.categorical(key, self._logs, axis=-1, shape=shape)

    def aleatoric_variance(self) -> PointTarget:
        return self.mixture.aleatoric_variance()

    def cdf(self, y: Observed) -> PointTarget:
        return self.mixture.cdf(y)

    def quantiles(self, levels: Sequence[float]) -> Float[Array, "level point target"]:
        return self.mixture.quantiles(levels)

    @cached_property
    def _logs(self) -> Float[Array, "point target"]:
        found = jnp.maximum(self.mixture.mean(), jnp.finfo(jnp.float32).tiny)
        return jax.nn.log_softmax(jnp.log(found) / self.temperature, axis=-1)
