"""Gaussian targets with exact draws, and z-scores of draws that should follow them.

A target is data: everything about it, its planted errors too, is an argument of
`gaussian_log_density`, so that all targets of one dimension share a compiled program.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float

from credence.density.data import Data
from credence.density.posterior import Position


class GaussianTarget(NamedTuple):
    """N(mean, cholesky cholesky')."""

    name: str
    mean: Float[np.ndarray, " weight"]
    cholesky: Float[np.ndarray, "weight weight"]
    factor: float = 1.0
    """Planted error: what kernels see is the log density times this."""
    bound: float = 1000.0
    """What kernels see is NaN where the first weight is larger; never, by default. Finite, because
    some kernels take the sum of `data.weight` for the number of rows."""

    @property
    def data(self) -> Data:
        """The target as the data of `gaussian_log_density`."""
        return Data(
            jnp.asarray(self.cholesky),
            jnp.asarray(self.mean[:, None]),
            jnp.asarray([self.factor, self.bound]),
        )

    @property
    def dimension(self) -> int:
        """Number of weights."""
        return len(self.mean)

    @property
    def stds(self) -> Float[np.ndarray, " axis"]:
        """Standard deviations along the principal axes, smallest first."""
        return np.linalg.svd(self.cholesky, compute_uv=False)[::-1]

    def sample(self, seed: int, num_draws: int) -> Float[np.ndarray, "draw weight"]:
        """Exact, independent draws."""
        noise = np.random.default_rng(seed).normal(size=(num_draws, self.dimension))
        return self.mean + noise @ self.cholesky.T

    def whiten(self, draws: Float[np.ndarray, "draw weight"]) -> Float[np.ndarray, "draw weight"]:
        """Draws of the target become draws of N(0, I)."""
        return np.linalg.solve(self.cholesky, (np.asarray(draws) - self.mean).T).T


def standard(dimension: int) -> GaussianTarget:
    """The standard normal target N(0, I)."""
    return GaussianTarget(f"standard-{dimension}", np.zeros(dimension), np.eye(dimension))


def correlated(dimension: int, correlation: float = 0.8) -> GaussianTarget:
    """Neighbours correlated, standard deviations from 1/2 to 2, and a mean that is not zero."""
    index = np.arange(dimension)
    std = np.geomspace(0.5, 2.0, dimension)
    covariance = np.outer(std, std) * correlation ** abs(index[:, None] - index)
    return GaussianTarget(
        f"correlated-{dimension}", np.cos(index + 1.0), np.linalg.cholesky(covariance)
    )


def gaussian_log_density(position: Position, data: Data) -> Float[Array, ""]:
    """log N(position; mean, covariance) up to a constant, in nats, with the planted errors."""
    factor, bound = data.weight
    whitened = solve_triangular(data.x, position - data.y[:, 0], lower=True)
    return jnp.where(position[0] <= bound, -0.5 * factor * jnp.sum(whitened**2), jnp.nan)


def z_scores(whitened: Float[np.ndarray, "draw weight"]) -> dict[str, float]:
    """Worst deviation of independent draws from N(0, I), in standard errors, by kind.

    The standard errors are exact: a mean has variance 1/n, a product 1/n, a square 2/n, and
    chi^2 = sum of squares has mean n d and variance 2 n d.
    """
    num_draws, dimension = whitened.shape
    second = whitened.T @ whitened / num_draws
    squares = np.diag(second)
    products = second[~np.eye(dimension, dtype=bool)]
    chi_squared = np.sum(whitened**2)
    return {
        "mean": np.abs(whitened.mean(axis=0)).max() * num_draws**0.5,
        "variance": np.abs(squares - 1).max() * (num_draws / 2) ** 0.5,
        "covariance": np.abs(products).max() * num_draws**0.5,
        "chi^2": abs(chi_squared - num_draws * dimension) / (2 * num_draws * dimension) ** 0.5,
    }
