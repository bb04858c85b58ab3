"""Deep linear networks of one neuron a layer: the evidence is an integral over a line."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from scipy import stats
from scipy.signal import fftconvolve
from tools.widths import network_target, points_of

from credence.density.data import Data
from credence.methods.transdimensional.size_priors import DepthPrior
from credence.methods.transdimensional.target import Point, VariableWidth
from credence.models import Gaussian, Layer, Normal


class DeepLine(NamedTuple):
    """y = w_1 w_2 ... w_(d + 1) x + noise: one linear neuron in each of d = 1, ..., 4 layers.

    With P the product of the d hidden weights y is N(0, s^2 I + P^2 x x'), and log |P| a sum of d
    independent logarithms of |N(0, 1)|, whose density is a convolution.
    """

    x: Float[np.ndarray, " point"]
    y: Float[np.ndarray, " point"]
    noise_std: float = 0.5
    deepest: int = 4

    @property
    def target(self) -> VariableWidth:
        """Biases exist, but with a prior that pins them to zero."""
        return network_target(
            largest=(1,) * self.deepest,
            prior=Gaussian(scaling="unit", bias_std=1e-6),
            likelihood=Normal(noise_std=self.noise_std),
            depth_prior=DepthPrior(),
            activation="identity",
        )

    @property
    def data(self) -> Data:
        return Data(
            jnp.asarray(self.x[:, None]), jnp.asarray(self.y[:, None]), jnp.ones(len(self.y))
        )

    def log_marginal(self, product: np.ndarray) -> np.ndarray:
        """log p(y | P), up to a constant."""
        square, cross = self.x @ self.x, self.x @ self.y
        precision = 1 + product**2 * square / self.noise_std**2
        mean_square = product**2 * cross**2 / self.noise_std**4 / precision
        return -0.5 * np.log(precision) + 0.5 * mean_square

    def probabilities(self) -> Float[np.ndarray, " depth"]:
        """p(d | y), uniform prior, by quadrature of the convolved density."""
        step = 2e-3
        t = np.arange(-30, 6, step)
        density = 2 * stats.norm.pdf(np.exp(t)) * np.exp(t)
        found, convolved, start = [], density, t[0]
        for _ in range(self.deepest):
            grid = start + step * np.arange(len(convolved))
            found.append(step * np.sum(convolved * np.exp(self.log_marginal(np.exp(grid)))))
            convolved, start = step * fftconvolve(convolved, density), start + t[0]
        return np.array(found) / np.sum(found)

    def points(self, seed: int, num: int, depth: int | None = None) -> Point:
        """Exact draws of the posterior, or of it at a depth: hidden weights by rejection."""
        rng = np.random.default_rng(seed)
        depths = np.arange(1, self.deepest + 1)
        d = rng.choice(depths, size=num, p=self.probabilities())
        d = d if depth is None else np.full(num, depth)
        highest = self.log_marginal(np.exp(np.linspace(-20, 10, 30_001))).max()
        weights, missing = np.zeros((num, self.deepest)), np.arange(num)
        while len(missing):
            there = np.arange(self.deepest) < d[missing, None]
            draws = np.where(there, rng.normal(size=there.shape), 1.0)
            log_rate = self.log_marginal(draws.prod(axis=1)) - highest
            taken = np.log(rng.uniform(size=len(missing))) < log_rate
            weights[missing[taken]] = np.where(there, draws, 0.0)[taken]
            missing = missing[~taken]
        product = np.where(weights != 0, weights, 1.0).prod(axis=1)
        precision = 1 + product**2 * (self.x @ self.x) / self.noise_std**2
        mean = product * (self.x @ self.y) / self.noise_std**2 / precision
        last = mean + rng.normal(size=num) / precision**0.5
        bias = 1e-6 * rng.normal(size=(num, self.deepest, 1))
        columns = [weights[:, i, None, None] for i in range(self.deepest)]
        layers = tuple(
            Layer(jnp.asarray(w), jnp.asarray(bias[:, i])) for i, w in enumerate(columns)
        )
        layers += (Layer(jnp.asarray(last[:, None, None]), jnp.zeros((num, 1))),)
        widths = jnp.asarray(np.arange(self.deepest) < d[:, None], jnp.int32)
        return points_of(self.target, layers, widths, self.data)


X = np.linspace(-1, 1, 8)
LINE = DeepLine(X, 1.8 * X + 0.5 * np.random.default_rng(0).normal(size=8))
