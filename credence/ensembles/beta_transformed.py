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

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from credence.ensembles.diagnostics.recalibration import LEAST_LEVEL
from credence.ensembles.mixture import Mixture
from credence.ensembles.predictive import PointTarget, Predictions, weighted
from credence.ensembles.quantiles import check_levels

NODES = 9
"""Quantiles behind a standard deviation: exact for a normal mixture, and to 0.001 of it for
Student's t with 4 degrees of freedom."""
LEAST_DRAWS = 1000
"""Draws that show the mixture's distribution function well enough."""


@dataclass(frozen=True, repr=False)
class BetaTransformed(Predictions):
    """Predictions of one numeric target, by a mixture under a beta law.

    Args:
        mixture: what is transformed; members, and the predictive mean, stay as they are.
        shape: both parameters of the beta law, at least 1.
    """

    mixture: Mixture
    shape: float

    def __repr__(self) -> str:
        return f"BetaTransformed({self.mixture!r}, shape={self.shape:.3g})"

    @property
    def weights(self) -> Float[Array, " member"]:  # type: ignore[override]
        """How much each member counts."""
        return self.mixture.weights

    @property
    def is_regression(self) -> bool:
        return True

    @property
    def num_points(self) -> int:
        return self.mixture.num_points

    def member_means(self) -> Float[Array, "member point target"]:
        return self.mixture.member_means()

    def member_log_scales(self) -> Float[Array, "member point target"]:
        return self.mixture.member_log_scales()

    def member_log_probs(
        self, y: PointTarget | Int[Array, " point"]
    ) -> Float[Array, "member point"]:
        return self.mixture.member_log_probs(y)

    def member_samples(self, key: PRNGKeyArray) -> Array:
        return self.mixture.member_samples(key)

    def mean(self) -> PointTarget:
        """Return the mixture's mean, for which other weights were found than for its spread."""
        return self.mixture.mean()

    def std(self) -> PointTarget:
        """Predictive standard deviation, by Gauss-Hermite quadrature of quantiles at the levels of
        a standard normal variable."""
        from scipy.special import ndtr

        nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
        found = self.quantiles([float(ndtr(node)) for node in nodes])
        share = jnp.asarray(weights / weights.sum(), found.dtype)
        return jnp.sqrt(weighted(share, (found - weighted(share, found)) ** 2))

    def aleatoric_variance(self) -> PointTarget:
        """Share out the variance as the mixture does: here what is of the noise."""
        return self._shrinkage() * self.mixture.aleatoric_variance()

    def epistemic_variance(self) -> PointTarget:
        """Share out the variance as the mixture does: here what networks disagree by."""
        return self._shrinkage() * self.mixture.epistemic_variance()

    def log_prob(self, y: PointTarget | Int[Array, " point"]) -> Float[Array, " point"]:
        """Log of the predictive density at each point's target, in nats."""
        from scipy.special import betaln

        below = jnp.clip(self.mixture.cdf(y)[:, 0], LEAST_LEVEL, 1 - LEAST_LEVEL)
        change = (self.shape - 1) * (jnp.log(below) + jnp.log1p(-below))
        return self.mixture.log_prob(y) + change - float(betaln(self.shape, self.shape))

    def cdf(self, y: PointTarget) -> PointTarget:
        from scipy.special import betainc

        found = np.clip(np.asarray(self.mixture.cdf(y)), 0, 1)
        return jnp.asarray(betainc(self.shape, self.shape, found).astype(found.dtype))

    def quantiles(self, levels: Sequence[float]) -> Float[Array, "level point target"]:
        check_levels(levels)
        return self.mixture.quantiles(self._levels(levels))

    def sample(self, key: PRNGKeyArray, num_samples: int) -> Array:
        """Draws of the mixture, each moved to where the beta law puts its rank.

        So draws of several points stay together as the mixture has them: ensemble copula coupling
        (Schefzik, Thorarinsdottir & Gneiting, "Uncertainty quantification in complex simulation
        models using ensemble copula coupling", 2013).
        """
        drawn = self.mixture.sample(key, max(num_samples, LEAST_DRAWS))
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
