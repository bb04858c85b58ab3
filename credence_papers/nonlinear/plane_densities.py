"""Three densities in the plane, with exact draws and exact mean embeddings.

Vuckovic, "Nonlinear MCMC for Bayesian Machine Learning" (2022), section 4.1: a circle of Gaussians,
two rings, a grid of Gaussians. A mean embedding m(x) = E k(x, Y) makes the squared maximum mean
discrepancy of a sample cheap, and free of the noise of a second sample:

    MMD^2 = mean of k(x_i, x_j), i != j  -  2 mean of m(x_i)  +  E k(Y, Y').

The kernel is k = exp(-d^2) + exp(-2 d^2), as in the paper's code, never fitted to the draws.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import i0e, logsumexp
from jaxtyping import Array, Float, PRNGKeyArray
from scipy import special

from credence.density.data import Data
from credence.engine.blocks import divided

RATES = (1.0, 2.0)
"""Rates of the kernel, the sum of exp(-rate d^2). The second is twice the first: see `_kernel`."""
CENTRES = 25
"""Rows of a mixture's data; those that are no centres have weight zero."""
BLOCKS = 8
"""Blocks of particles between which distances are taken, each pair of blocks once."""

Points = Float[Array, "point 2"]


def _as_data(rows: Any, std: float) -> Data:
    """What a log density is made of, in the place of a network's data."""
    x = jnp.asarray(np.reshape(rows, (len(rows), -1)), float)
    return Data(x, jnp.full((len(x), 1), std), jnp.ones(len(x)))


def gaussians_log_density(position: Float[Array, " 2"], data: Data) -> Float[Array, ""]:
    """Log density of a mixture of Gaussians, up to a constant, in nats.

    x holds the centres, y the standard deviation, and weight is 0 or 1.
    """
    x, y = position  # by hand: sums over two numbers are slow inside a loop
    squares = (x - data.x[:, 0]) ** 2 + (y - data.x[:, 1]) ** 2
    return logsumexp(-0.5 * squares / data.y[:, 0] ** 2 + jnp.log(data.weight))


@dataclass(frozen=True)
class Mixture:
    """Equally weighted Gaussians of one width."""

    centres: tuple[tuple[float, float], ...]
    std: float
    log_density: Callable[..., Float[Array, ""]] = field(default=gaussians_log_density, repr=False)

    @property
    def data(self) -> Data:
        """What the log density takes: as many rows for all mixtures, which so share programs."""
        num, spare = len(self.centres), max(0, CENTRES - len(self.centres))
        data = _as_data([*self.centres, *self.centres[:1] * spare], self.std)
        return data._replace(weight=data.weight.at[num:].set(0.0))

    def sample(self, seed: int, num: int) -> Float[np.ndarray, "point 2"]:
        """Draw independent points from the mixture itself."""
        rng = np.random.default_rng(seed)
        index = rng.integers(len(self.centres), size=num)
        return np.array(self.centres)[index] + self.std * rng.normal(size=(num, 2))

    def embedding(self, x: Points) -> Float[Array, " point"]:
        """E k(x, Y)."""
        centres = jnp.asarray(self.centres)
        squares = (x[:, None, 0] - centres[:, 0]) ** 2 + (x[:, None, 1] - centres[:, 1]) ** 2
        return jnp.mean(_smoothed(squares, self.std**2), axis=1)

    @cached_property
    def self_similarity(self) -> float:
        """E k(Y, Y')."""
        centres = np.array(self.centres)
        squares = np.sum((centres[:, None] - centres) ** 2, axis=-1)
        return float(np.mean(_smoothed(squares, 2 * self.std**2)))


def _smoothed(squares: Any, variance: float) -> Any:
    """E k(x, c + Z), |x - c|^2 given, Z ~ N(0, variance I) in the plane."""
    widths = [1 + 2 * rate * variance for rate in RATES]
    exp = jnp.exp if isinstance(squares, jax.Array) else np.exp
    return sum(exp(-r * squares / w) / w for r, w in zip(RATES, widths, strict=True))


def rings_log_density(position: Float[Array, " 2"], data: Data) -> Float[Array, ""]:
    """log sum over rings of exp(-(|z| - r)^2 / (2 std^2)), in nats; x holds the radii."""
    distance = jnp.sqrt(jnp.sum(position**2) + 1e-12)
    return logsumexp(-0.5 * ((distance - data.x[:, 0]) / data.y[:, 0]) ** 2)


@dataclass(frozen=True)
class Rings:
    """Rings around the origin, the same height on each: a ring's mass grows with its radius."""

    radii: tuple[float, ...]
    std: float
    log_density: Callable[..., Float[Array, ""]] = field(default=rings_log_density, repr=False)

    @property
    def data(self) -> Data:
        """What the log density takes."""
        return _as_data(self.radii, self.std)

    @cached_property
    def _radius(self) -> tuple[np.ndarray, np.ndarray]:
        """Nodes and weights of the law of |Y|, density r sum exp(...): Gauss-Legendre."""
        nodes, weights = np.polynomial.legendre.leggauss(96)
        top = max(self.radii) + 8 * self.std
        nodes, weights = 0.5 * top * (nodes + 1), weights.copy()
        weights *= nodes * self._profile(nodes)
        return nodes, weights / weights.sum()

    def _profile(self, radius: np.ndarray) -> np.ndarray:
        z = (radius[:, None] - np.array(self.radii)) / self.std
        return np.exp(-0.5 * z**2).sum(axis=1)

    def sample(self, seed: int, num: int) -> Float[np.ndarray, "point 2"]:
        """Exact draws: |Y| by inversion of its law, with the Jacobian."""
        rng = np.random.default_rng(seed)
        grid = np.linspace(0, max(self.radii) + 8 * self.std, 20_001)
        law = np.cumsum(grid * self._profile(grid))
        radius = np.interp(rng.uniform(size=num), law / law[-1], grid)
        angle = rng.uniform(0, 2 * np.pi, num)
        return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])

    def embedding(self, x: Points) -> Float[Array, " point"]:
        """E k(x, Y): with |x| = s and |Y| = r, exp(-rate (s - r)^2) I0(2 rate s r) exp(-2 rate s r)
        over the angle."""
        nodes, weights = map(jnp.asarray, self._radius)
        distance = jnp.sqrt(jnp.sum(x**2, axis=-1))
        return _around(distance[:, None], nodes) @ weights.astype(x.dtype)

    @cached_property
    def self_similarity(self) -> float:
        """E k(Y, Y')."""
        nodes, weights = self._radius
        return float(weights @ _around(nodes[:, None], nodes) @ weights)


def _around(s: Any, r: Any) -> Any:
    """E k over the angle between points at distances s and r from the origin."""
    exp, bessel = (jnp.exp, i0e) if isinstance(s, jax.Array) else (np.exp, special.i0e)
    return sum(exp(-rate * (s - r) ** 2) * bessel(2 * rate * s * r) for rate in RATES)


Density = Mixture | Rings


def circle() -> Mixture:
    """Eight Gaussians on a circle of radius 2."""
    angles = 2 * np.pi * np.arange(8) / 8
    centres = tuple((2 * float(np.cos(a)), 2 * float(np.sin(a))) for a in angles)
    return Mixture(centres, 2 / 3 * float(np.sin(np.pi / 8)))


def rings() -> Rings:
    """Two rings, of radius 1 and 2."""
    return Rings((1.0, 2.0), 1 / 8)


def grid() -> Mixture:
    """25 Gaussians on a grid with spacing 2."""
    axis = (-4.0, -2.0, 0.0, 2.0, 4.0)
    return Mixture(tuple((a, b) for a in axis for b in axis), 0.4)


@partial(jax.jit, static_argnames=("density",))
def mmd2_path(draws: Float[Array, "particle draw 2"], *, density: Density) -> Float[Array, " draw"]:
    """MMD^2 between each of a cloud's states and the density: unbiased if particles are
    independent."""

    def one(x: Points) -> Float[Array, ""]:
        similarity = mean_of_pairs(x, _kernel)
        return similarity - 2 * jnp.mean(density.embedding(x)) + density.self_similarity

    return divided(partial(jax.lax.map, one), draws.swapaxes(0, 1))


def _kernel(squares: Array) -> Array:
    first = jnp.exp(-RATES[0] * squares)
    return first + first**2


def mean_of_pairs(x: Points, kernel: Callable[[Array], Array]) -> Float[Array, ""]:
    """Mean of k(x_i, x_j) over i != j, from blocks, each pair of blocks once."""
    num = len(x)
    blocks = BLOCKS if num % BLOCKS == 0 else 1
    parts = x.reshape(blocks, -1, 2)
    first, second = np.triu_indices(blocks)

    def between(total: Array, pair: tuple[Array, Array]) -> tuple[Array, None]:
        a, b = parts[pair[0]], parts[pair[1]]
        squares = (a[:, None, 0] - b[:, 0]) ** 2 + (a[:, None, 1] - b[:, 1]) ** 2
        twice = jnp.where(pair[0] == pair[1], 1.0, 2.0)
        return total + twice * jnp.sum(kernel(squares)), None

    pairs = jnp.asarray(first), jnp.asarray(second)
    total, _ = jax.lax.scan(between, jnp.zeros((), x.dtype), pairs)
    return (total - num * kernel(jnp.zeros((), x.dtype))) / (num * (num - 1))


HALF_WIDTH = 7.5
"""Half the side of the square on which particles start."""


def uniform_start(key: PRNGKeyArray, num: int) -> Points:
    """Uniform on a square."""
    return jax.random.uniform(key, (num, 2), minval=-HALF_WIDTH, maxval=HALF_WIDTH)
