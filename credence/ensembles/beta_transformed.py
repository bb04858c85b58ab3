"""A mixture made as narrow as rows that it had not seen say: the beta-transformed linear pool.

A mixture of predictions that each hold by themselves is wider than it should be: what it says
happens in 95 of 100 cases happens more often. Gneiting & Ranjan, "Combining predictive
distributions" (2013), section 3.3, mend that by a beta law on the mixture's distribution function:

    F(y) = B_a(F_mixture(y)),    f(y) = b_a(F_mixture(y)) f_mixture(y),

with both shape parameters of the beta law equal to a >= 1. At a = 1 nothing changes; above, the
middle of the mixture gains what its tails lose, and its median stays.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from credence.ensembles.diagnostics.recalibration import LEAST_LEVEL
from credence.ensembles.mixture import ChangedMixture
from credence.ensembles.predictions import Observed, PointTarget, Predictions
from credence.errors import InputError

NUM_NODES = 33
"""Points on each side at which the distribution function is asked for its standard deviation: for
ordinary mixtures it is right to 1 %, for two modes without any noise to 8 %."""
REACH = 30.0
"""How far out the last of them are, in standard deviations of the mixture."""
LEAST_DRAWS = 1000
"""Draws that show the mixture's distribution function well enough."""


@dataclass(frozen=True, repr=False)
class BetaTransformed(ChangedMixture):
    """Predictions of one numeric target, by a mixture under a beta law.

    Args:
        mixture: what is transformed; members, and the predictive mean, stay as they are.
        shape: both parameters of the beta law, at least 1.
    """

    shape: float

    def __post_init__(self) -> None:
        if not 1 <= self.shape < np.inf:
            raise InputError(f"shape must be a number >= 1, got {self.shape}.")

    def __repr__(self) -> str:
        return f"BetaTransformed({self.mixture!r}, shape={self.shape:.3g})"

    @property
    def is_regression(self) -> bool:
        return True

    def mean(self) -> PointTarget:
        """Return the mixture's mean, for which other weights were found than for its spread."""
        return self.mixture.mean()

    def std(self) -> PointTarget:
        """Predictive standard deviation, by the trapezoidal rule on the tails:

        E(Y - c) = int_0^inf P(Y > c + t) - P(Y < c - t) dt,
        E(Y - c)^2 = int_0^inf 2 t (P(Y > c + t) + P(Y < c - t)) dt.
        """
        return self._std

    @cached_property
    def _std(self) -> PointTarget:
        centre, spread = Predictions.mean(self.mixture), self.mixture.std()
        steps = np.linspace(0, np.arcsinh(REACH), NUM_NODES)
        first = second = jnp.zeros_like(centre)
        for step in steps:
            half = 0.5 if step in (0.0, steps[-1]) else 1.0
            distance = float(np.sinh(step)) * spread
            width = half * steps[1] * float(np.cosh(step)) * spread
            above, below = 1 - self.cdf(centre + distance), self.cdf(centre - distance)
            first += width * (above - below)
            second += width * 2 * distance * (above + below)
        return jnp.sqrt(jnp.maximum(second - first**2, 0.0))

    def aleatoric_variance(self) -> PointTarget:
        """Share out the variance as the mixture does: here what is of the noise."""
        return self._shrinkage() * self.mixture.aleatoric_variance()

    def epistemic_variance(self) -> PointTarget:
        """Share out the variance as the mixture does: here what networks disagree by."""
        return self._shrinkage() * self.mixture.epistemic_variance()

    def log_prob(self, y: Observed) -> Float[Array, " point"]:
        """Log of the predictive density at each point's target, in nats."""
        from scipy.special import betaln

        below = jnp.clip(self.mixture.cdf(y)[:, 0], LEAST_LEVEL, 1 - LEAST_LEVEL)
        change = (self.shape - 1) * (jnp.log(below) + jnp.log1p(-below))
        return self.mixture.log_prob(y) + change - float(betaln(self.shape, self.shape))

    def cdf(self, y: Observed) -> PointTarget:
        from scipy.special import betainc

        found = np.clip(np.asarray(self.mixture.cdf(y)), 0, 1)
        return jnp.asarray(betainc(self.shape, self.shape, found).astype(found.dtype))

    def quantiles(self, levels: Sequence[float]) -> Float[Array, "level point target"]:
        """Return exact quantiles; levels beyond those of a mixture are known, as long as they are
        its own levels within them."""
        return self.mixture.quantiles(self._levels(levels))

    def sample(self, key: PRNGKeyArray, num_samples: int, first_row: int = 0) -> Array:
        """Draws of the mixture, each moved to where the beta law puts its rank.

        So draws of several points stay together as the mixture has them: ensemble copula coupling
        (Schefzik, Thorarinsdottir & Gneiting, "Uncertainty quantification in complex simulation
        models using ensemble copula coupling", 2013).
        """
        drawn = self.mixture.sample(key, max(num_samples, LEAST_DRAWS), first_row)
        places = (np.arange(len(drawn)) + 0.5) / len(drawn)
        ranks = np.array(self._levels(places)) * len(drawn) - 0.5
        return _moved(drawn, jnp.asarray(ranks, drawn.dtype))[:num_samples]

    def _levels(self, levels: Sequence[float] | np.ndarray) -> list[float]:
        """The mixture's levels of what has these levels here."""
        from scipy.special import betaincinv

        return betaincinv(self.shape, self.shape, np.asarray(levels, float)).tolist()

    def _shrinkage(self) -> PointTarget:
        """Variance, in units of the mixture's; 1 where there is none."""
        of_mixture = self.mixture.std()
        return jnp.where(of_mixture > 0, (self.std() / of_mixture) ** 2, 1.0)


@jax.jit
def _moved(
    drawn: Float[Array, "sample point target"], ranks: Float[Array, " sample"]
) -> Float[Array, "sample point target"]:
    """Give draws, from the smallest to the largest, the values at these ranks among them."""
    order = jnp.argsort(drawn, axis=0)
    ordered = jnp.take_along_axis(drawn, order, axis=0)
    low = jnp.clip(jnp.floor(ranks).astype(int), 0, len(drawn) - 2)
    share = (ranks - low)[:, None, None]
    wanted = (1 - share) * ordered[low] + share * ordered[low + 1]
    return jnp.take_along_axis(wanted, jnp.argsort(order, axis=0), axis=0)
