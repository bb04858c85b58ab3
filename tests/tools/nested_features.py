"""Nested networks that are linear in their weights: every level's posterior in closed form.

Cosine features, so many at each level, under a prior whose standard deviations fall with the
feature's number.
"""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from credence.density.posterior import Posterior
from credence.models import Normal
from credence.models.priors import GaussianPrior

ALPHA, NOISE_STD, NUM_FEATURES = 1.25, 0.5, (4, 8, 16, 32)
RNG = np.random.default_rng(5)
FREQUENCIES, PHASES = 3 * RNG.normal(size=32), RNG.uniform(0, 2 * np.pi, size=32)
X = RNG.uniform(-1, 1, size=(20, 1))
X_NEW = np.array([[-1.5], [-0.2], [0.6]])


@dataclass(frozen=True)
class Features:
    """Linear in its weights: the first so many cosine features."""

    num_features: int

    def basis(self, x: Any) -> Any:
        frequencies, phases = FREQUENCIES[: self.num_features], PHASES[: self.num_features]
        return jnp.sqrt(2.0) * jnp.cos(x[:, :1] * frequencies + phases)

    def init(self, key: Any, x: Any) -> Any:
        return jax.random.normal(key, (self.num_features,), x.dtype)

    def apply(self, params: Any, x: Any) -> Any:
        return (self.basis(x) @ params)[:, None]

    def fan_in(self, params: Any) -> int:
        return self.num_features


@dataclass(frozen=True)
class Decay(GaussianPrior):
    """The standard deviation of weight k is k^-ALPHA."""

    def stds(self, network: Any, params: Any) -> Any:
        return jnp.arange(1.0, params.shape[0] + 1) ** -ALPHA


def stds(num_features: int) -> np.ndarray:
    return np.arange(1, num_features + 1.0) ** -ALPHA


def basis(num_features: int, x: np.ndarray) -> np.ndarray:
    return np.asarray(Features(num_features).basis(x), float)


Y = basis(32, X) @ (stds(32) * RNG.normal(size=32)) + NOISE_STD * RNG.normal(size=20)


def posterior(num_features: int = NUM_FEATURES[-1], likelihood: Any = None) -> Posterior:
    return Posterior(Features(num_features), Decay(), likelihood or Normal(NOISE_STD), (X, Y))


def exact(num_features: int) -> tuple[np.ndarray, float]:
    """Posterior mean of the function at X_NEW, and log evidence."""
    design = basis(num_features, X) * stds(num_features)
    covariance = design @ design.T + NOISE_STD**2 * np.eye(len(X))
    new = basis(num_features, X_NEW) * stds(num_features)
    mean = new @ design.T @ np.linalg.solve(covariance, Y)
    return mean, float(stats.multivariate_normal.logpdf(Y, cov=covariance))
