"""Bayesian linear regression: a network without hidden layers, whose posterior is known exactly."""

from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from credence.ensemble import Ensemble
from credence.models.likelihoods import Normal
from credence.models.networks import MLP
from credence.models.priors import Gaussian
from credence.posterior import Posterior

NOISE_STD = 0.5
WEIGHTS = np.array([1.0, -0.5, 0.3])  # two slopes and the bias


class Exact(NamedTuple):
    """N(mean, covariance) of (slopes, bias)."""

    mean: Float[np.ndarray, " weight"]
    covariance: Float[np.ndarray, "weight weight"]


def make_data(num_points: int = 30, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two correlated features and a noisy target."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(num_points, 2)) @ np.array([[1.0, 0.6], [0.0, 0.8]])
    return x, design(x) @ WEIGHTS + NOISE_STD * rng.normal(size=num_points)


def make_posterior(noise_std: float | None = NOISE_STD, seed: int = 0) -> Posterior:
    """Weights and bias N(0, 1); the noise fixed, or learnt with a HalfNormal(1) prior."""
    prior = Gaussian(scaling="unit")
    return Posterior(MLP(1, hidden=()), prior, Normal(noise_std=noise_std), make_data(seed=seed))


def design(x: np.ndarray) -> np.ndarray:
    """Features and a column of ones."""
    return np.column_stack([x, np.ones(len(x))])


def exact_posterior(x: np.ndarray, y: np.ndarray, noise_std: float = NOISE_STD) -> Exact:
    """Of weights with prior N(0, I) and noise of known standard deviation."""
    features = design(x)
    covariance = np.linalg.inv(np.eye(features.shape[1]) + features.T @ features / noise_std**2)
    return Exact(covariance @ features.T @ y / noise_std**2, covariance)


def log_evidence(x: np.ndarray, y: np.ndarray, noise_std: float) -> float:
    """log N(y; 0, X X' + noise_std^2 I), in nats."""
    features = design(x)
    covariance = features @ features.T + noise_std**2 * np.eye(len(y))
    _, log_determinant = np.linalg.slogdet(2 * np.pi * covariance)
    return -0.5 * (log_determinant + y @ np.linalg.solve(covariance, y))


def learnt_noise_moments(x: np.ndarray, y: np.ndarray) -> dict[str, np.ndarray]:
    """Moments under noise_std ~ HalfNormal(1): a sum over a fine grid of log noise_std.

    The weights are integrated out exactly; what is left is one-dimensional and smooth.
    """
    log_std = np.linspace(np.log(0.1), np.log(3.0), 2001)
    log_prior = -0.5 * np.exp(log_std) ** 2 + log_std  # HalfNormal, and the Jacobian of the log
    log_density = log_prior + [log_evidence(x, y, std) for std in np.exp(log_std)]
    probability = np.exp(log_density - log_density.max())
    probability /= probability.sum()
    parts = [exact_posterior(x, y, std) for std in np.exp(log_std)]
    mean = np.array([part.mean for part in parts])
    square = np.array([np.diag(part.covariance) for part in parts]) + mean**2
    return {
        "mean": probability @ mean,
        "square": probability @ square,
        "log_std": np.atleast_1d(probability @ log_std),
        "log_std_square": np.atleast_1d(probability @ log_std**2),
    }


def weights(ensemble: Ensemble) -> Float[np.ndarray, "chain draw weight"]:
    """Slopes and bias of every draw."""
    (layer,) = ensemble.params.network
    kernel, bias = jax.device_get(layer)
    return np.concatenate([kernel[..., 0], bias], axis=-1).astype(float)


def chain_z(
    draws: Float[np.ndarray, "chain draw *shape"], exact: Float[np.ndarray, "*shape"]
) -> Float[np.ndarray, "*shape"]:
    """Deviation of the mean from an exact value, in standard errors from independent chains."""
    means = draws.mean(axis=1)
    return (means.mean(axis=0) - exact) / (means.std(axis=0, ddof=1) / len(means) ** 0.5)
