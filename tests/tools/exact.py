"""Bayesian linear regression in closed form, and comparison of draws with exact values."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.stats import multivariate_normal

from credence.density.posterior import Posterior
from credence.ensembles.ensemble import Ensemble
from credence.models import MLP, Gaussian, Normal


class LinearRegression(NamedTuple):
    """y = x @ kernel + bias + noise, Gaussian priors: a network without hidden layers.

    Positions are (kernel, bias).
    """

    x: Float[np.ndarray, "point feature"]
    y: Float[np.ndarray, " point"]
    prior: Gaussian
    noise_std: float

    @property
    def posterior(self) -> Posterior:
        """The same model in Credence."""
        return Posterior(MLP(1, hidden=()), self.prior, Normal(self.noise_std), (self.x, self.y))

    @property
    def prior_std(self) -> Float[np.ndarray, " weight"]:
        """Standard deviations of kernel and bias."""
        features = self.x.shape[1]
        fan_in = features if self.prior.scaling == "fan_in" else 1
        kernel = np.full(features, self.prior.weight_std / fan_in**0.5)
        return np.append(kernel, self.prior.bias_std)

    def solve(self) -> tuple[Float[np.ndarray, " weight"], Float[np.ndarray, "weight weight"]]:
        """Posterior mean and covariance."""
        design = with_ones(self.x)
        precision = np.diag(self.prior_std**-2) + design.T @ design / self.noise_std**2
        covariance = np.linalg.inv(precision)
        return covariance @ design.T @ self.y / self.noise_std**2, covariance

    def log_evidence(self) -> float:
        """log p(y | x), in nats."""
        design = with_ones(self.x)
        covariance = design * self.prior_std**2 @ design.T + self.noise_std**2 * np.eye(len(design))
        return float(multivariate_normal.logpdf(self.y, cov=covariance))

    def log_posterior(self, position: Float[np.ndarray, " weight"]) -> float:
        """Normalised log posterior density, in nats."""
        return float(multivariate_normal.logpdf(position, *self.solve()))

    def predict(self, x: Float[np.ndarray, "point feature"]) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation of the target at new inputs, noise included."""
        mean, covariance = self.solve()
        design = with_ones(x)
        variance = np.sum(design @ covariance * design, axis=1) + self.noise_std**2
        return design @ mean, variance**0.5


def linear_regression(
    *, num_points: int = 12, num_features: int = 3, noise_std: float = 0.5, seed: int = 0
) -> LinearRegression:
    """A small problem whose prior has different standard deviations for kernel and bias."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(num_points, num_features))
    y = x @ rng.normal(size=num_features) + 0.7 + noise_std * rng.normal(size=num_points)
    return LinearRegression(x, y, Gaussian(weight_std=1.5, bias_std=0.8), noise_std)


def with_ones(x: Float[np.ndarray, "point feature"]) -> Float[np.ndarray, "point weight"]:
    """A column of ones for the bias."""
    return np.column_stack([x, np.ones(len(x))])


def weights(ensemble: Ensemble) -> Float[np.ndarray, "chain draw weight"]:
    """Kernel and bias of a network without hidden layers."""
    (layer,) = ensemble.params.network
    return np.concatenate([layer.kernel[..., 0], layer.bias], axis=-1).astype(float)


def member_weights(ensemble: Ensemble) -> Float[np.ndarray, "draw weight"]:
    """Those of the members of an ensemble that has no chains."""
    return weights(ensemble)[0]


def z_scores(draws: Any, exact: Any) -> np.ndarray:
    """|z| of the mean of independent draws (draw, ...)."""
    draws = np.asarray(draws, float)
    return np.abs(draws.mean(axis=0) - exact) / (draws.std(axis=0, ddof=1) / len(draws) ** 0.5)


def assert_mean(draws: np.ndarray, exact: float | np.ndarray, resolution: float) -> None:
    """Independent draws (draw, ...) have the exact mean, and are enough to tell `resolution`.

    At 5 standard errors one comparison in two million fails by chance.
    """
    draws = np.asarray(draws, float)
    error = draws.std(axis=0, ddof=1) / len(draws) ** 0.5
    assert np.all(error < resolution), f"too noisy to tell ({error.max():.2g}): draw more"
    deviation = z_scores(draws, exact)
    assert np.all(deviation < 5), f"{deviation.max():.1f} standard errors off"
