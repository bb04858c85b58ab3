"""Targets that are the image of N(0, I) under a known map, so that exact draws and scores exist.

Every target turns its draws back into draws of N(0, I) (`whiten`): Gaussians by their Cholesky
factor, the others by Rosenblatt's map, the conditional distribution functions one after another
(Rosenblatt, "Remarks on a multivariate transformation", 1952).
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PRNGKeyArray
from scipy import special, stats
from scipy.integrate import cumulative_simpson
from tools.exact import linear_regression
from tools.targets import GaussianTarget, correlated, gaussian_log_density, standard

from credence.density.data import Data
from credence.density.posterior import (
    BayesianModel,
    LogDensity,
    Position,
    Posterior,
    flat_log_density,
)
from credence.models import MLP, Bernoulli, Gaussian, HierarchicalGamma, Normal

Draws = Float[np.ndarray, "draw weight"]


class Target(NamedTuple):
    """A density with exact draws."""

    name: str
    log_density: LogDensity
    data: Data
    scale: GaussianTarget
    """A Gaussian with its mean and about its smallest and largest width, for kernels' settings."""
    sample: Callable[[int, int], Draws]
    """(seed, number of draws) -> exact, independent draws."""
    whiten: Callable[[Draws], Draws]
    """Draws of the target become draws of N(0, I)."""
    extra: Callable[[Draws], Draws] | None = None
    """Further functionals, each of mean zero."""

    @property
    def dimension(self) -> int:
        """Number of weights."""
        return self.scale.dimension


def widths(name: str, smallest: float, others: Any, mean: Any = None) -> GaussianTarget:
    """What settings are taken from: axes of these standard deviations."""
    stds = np.append(smallest, others)
    return GaussianTarget(name, np.zeros(len(stds)) if mean is None else mean, np.diag(stds))


def of_gaussian(gaussian: GaussianTarget) -> Target:
    """A target of the kernels' tests."""
    return Target(
        gaussian.name,
        gaussian_log_density,
        gaussian.data,
        gaussian,
        gaussian.sample,
        gaussian.whiten,
    )


# ---------------------------------------------------------------- banana

CURVATURE = 0.5


def banana_log_density(position: Position, data: Data) -> Float[Array, ""]:
    """x1 ~ N(0, 1), x2 | x1 ~ N(b (x1^2 - 1), 1); x of the data holds b."""
    first, second = position
    bend = data.x[0, 0] * (first**2 - 1)
    return -0.5 * data.weight[0] * (first**2 + (second - bend) ** 2)


def banana() -> Target:
    """A curved ridge: Haario, Saksman & Tamminen (1999), normalised in closed form."""

    def bend(draws: Draws, sign: float) -> Draws:
        first = draws[:, 0]
        return np.column_stack([first, draws[:, 1] + sign * CURVATURE * (first**2 - 1)])

    def sample(seed: int, num_draws: int) -> Draws:
        return bend(np.random.default_rng(seed).normal(size=(num_draws, 2)), 1.0)

    def moments(draws: Draws) -> Draws:
        variance = 1 + 2 * CURVATURE**2
        return np.column_stack([draws[:, 1], draws[:, 1] ** 2 - variance])

    data = Data(jnp.full((1, 1), CURVATURE), jnp.zeros((1, 1)), jnp.ones(1))
    whiten = partial(bend, sign=-1.0)
    scale = widths("banana", 0.5, [1.2])
    return Target("banana", banana_log_density, data, scale, sample, whiten, moments)


# ---------------------------------------------------------------- mixture

CENTRES, STDS, SHARES = np.array([-1.8, 1.8]), np.array([1.0, 0.6]), np.array([0.3, 0.7])


def mixture_log_density(position: Position, data: Data) -> Float[Array, ""]:
    """x1 ~ sum_k weight_k N(x_k, y_k^2), x2 ~ N(0, 1) independently."""
    std = data.y[:, 0]
    terms = jnp.log(data.weight / std) - 0.5 * ((position[0] - data.x[:, 0]) / std) ** 2
    return jax.nn.logsumexp(terms) - 0.5 * position[1] ** 2


def mixture() -> Target:
    """Two modes of unequal weight and width; the label is the sign of x1."""

    def sample(seed: int, num_draws: int) -> Draws:
        rng = np.random.default_rng(seed)
        label = rng.choice(2, size=num_draws, p=SHARES)
        noise = rng.normal(size=(num_draws, 2))
        return np.column_stack([CENTRES[label] + STDS[label] * noise[:, 0], noise[:, 1]])

    def whiten(draws: Draws) -> Draws:
        z = (draws[:, :1] - CENTRES) / STDS
        below, above = stats.norm.cdf(z) @ SHARES, stats.norm.sf(z) @ SHARES
        first = np.where(below < above, stats.norm.ppf(below), stats.norm.isf(above))
        return np.column_stack([first, draws[:, 1]])

    def labels(draws: Draws) -> Draws:
        positive = stats.norm.sf(-CENTRES / STDS) @ SHARES
        square = SHARES @ (CENTRES**2 + STDS**2)
        return np.column_stack([(draws[:, 0] > 0) - positive, draws[:, 0] ** 2 - square])

    data = Data(*map(jnp.asarray, (CENTRES[:, None], STDS[:, None], SHARES)))
    scale = widths("mixture", 0.6, [1.5])
    return Target("mixture", mixture_log_density, data, scale, sample, whiten, labels)


# ---------------------------------------------------------------- regressions


def linear() -> Target:
    """Bayesian linear regression with 4 weights, in closed form."""
    problem = linear_regression()
    mean, covariance = problem.solve()
    gaussian = GaussianTarget("linear", mean, np.linalg.cholesky(covariance))
    posterior = problem.posterior
    return Target(
        "linear",
        posterior.log_density,
        posterior.data,
        gaussian,
        gaussian.sample,
        gaussian.whiten,
    )


LOGISTIC_PRIOR = Gaussian(weight_std=1.5, bias_std=1.0, scaling="unit")
NUM_NODES = 601


def logistic_data() -> tuple[np.ndarray, np.ndarray]:
    """15 inputs and labels."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=15)
    return x, (rng.uniform(size=15) < special.expit(1.5 * x - 0.5)).astype(int)


def logistic_reference(slope: np.ndarray, intercept: np.ndarray) -> np.ndarray:
    """Log posterior up to a constant, in nats; slope and intercept broadcast."""
    total = -0.5 * ((slope / 1.5) ** 2 + intercept**2)
    for at, label in zip(*logistic_data(), strict=True):
        logit = slope * at + intercept
        total = total + label * logit - np.logaddexp(0, logit)
    return total


def logistic() -> Target:
    """Bayesian logistic regression, slope and intercept, by quadrature on a fine grid.

    The reference shares no code with the library. Simpson's rule for the distribution functions
    leaves errors of 1e-7 and linear interpolation of 1e-5, far below a standard error.
    """
    x, y = logistic_data()
    slopes, intercepts = np.linspace(-5, 9, NUM_NODES), np.linspace(-6, 6, NUM_NODES)
    joint = np.exp(logistic_reference(slopes[:, None], intercepts))
    of_slope = distribution(joint.sum(axis=1)[None], slopes)

    def of_intercept(slope: np.ndarray) -> np.ndarray:
        """Distribution functions of the intercept given each slope, (draw, node)."""
        log_conditional = logistic_reference(slope[:, None], intercepts)
        log_conditional -= log_conditional.max(axis=1, keepdims=True)
        return distribution(np.exp(log_conditional), intercepts)

    def sample(seed: int, num_draws: int) -> Draws:
        uniform = np.random.default_rng(seed).uniform(size=(num_draws, 2))
        slope = np.interp(uniform[:, 0], of_slope[0], slopes)
        return np.column_stack([slope, invert(of_intercept(slope), intercepts, uniform[:, 1])])

    def whiten(draws: Draws) -> Draws:
        slope, intercept = draws.T
        first = np.interp(slope, slopes, of_slope[0])
        second = evaluate(of_intercept(slope), intercepts, intercept)
        return stats.norm.ppf(np.clip(np.column_stack([first, second]), 1e-12, 1 - 1e-12))

    density = joint / joint.sum()
    means = np.array([slopes @ density.sum(axis=1), density.sum(axis=0) @ intercepts])
    centred = slopes - means[0], intercepts - means[1]
    cross = centred[0] @ density @ centred[1]
    covariance = np.array(
        [
            [centred[0] ** 2 @ density.sum(axis=1), cross],
            [cross, density.sum(axis=0) @ centred[1] ** 2],
        ]
    )

    def moments(draws: Draws) -> Draws:
        away = draws - means
        products = away[:, [0, 0, 1]] * away[:, [0, 1, 1]] - covariance[[0, 0, 1], [0, 1, 1]]
        return np.column_stack([away, products])

    network = MLP(1, hidden=())
    posterior = Posterior(network, LOGISTIC_PRIOR, Bernoulli(), (x[:, None], y))
    scale = GaussianTarget("logistic", means, np.linalg.cholesky(covariance))
    return Target("logistic", posterior.log_density, posterior.data, scale, sample, whiten, moments)


def distribution(density: np.ndarray, nodes: np.ndarray) -> np.ndarray:
    """Distribution functions at the nodes from densities (draw, node), up to constants."""
    integral = cumulative_simpson(density, x=nodes, axis=1, initial=0.0)
    return np.maximum.accumulate(integral / integral[:, -1:], axis=1)


def evaluate(functions: np.ndarray, nodes: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Each function (draw, node) at its own point, linearly interpolated on evenly spaced nodes."""
    place = np.clip((at - nodes[0]) / (nodes[1] - nodes[0]), 0, len(nodes) - 1.001)
    left, row = place.astype(int), np.arange(len(at))
    share = place - left
    return (1 - share) * functions[row, left] + share * functions[row, left + 1]


def invert(functions: np.ndarray, nodes: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The points at which increasing functions (draw, node) take their values, interpolated."""
    row = np.arange(len(values))
    right = np.clip(np.sum(functions < values[:, None], axis=1), 1, len(nodes) - 1)
    low, high = functions[row, right - 1], functions[row, right]
    share = (values - low) / np.maximum(high - low, 1e-300)
    return nodes[right - 1] + share * (nodes[right] - nodes[right - 1])


# ---------------------------------------------------------------- precisions

SHAPE, RATE = 4.0, 2.0
HIERARCHY = BayesianModel(
    MLP(1, hidden=(3,)), HierarchicalGamma(shape=SHAPE, rate=RATE), Normal(noise_std=1.0)
)


def hierarchical() -> Target:
    """Weights of a network and the logarithms of their precisions, under their joint prior.

    A funnel; its density has the Jacobian of the logarithm.
    """

    data = Data(jnp.ones((5, 2)), jnp.zeros((5, 1)), jnp.zeros(5))  # rows that do not count

    @jax.jit
    @jax.vmap
    def draw(key: PRNGKeyArray) -> Position:
        return ravel_pytree(HIERARCHY.sample_prior(key, data))[0]

    @jax.jit
    @jax.vmap
    def scaled(position: Position) -> Position:
        params = HIERARCHY.unravel(position, data)
        stds = HIERARCHY.prior.stds(HIERARCHY.network, params.network, params.prior)
        weights = jax.tree.map(jnp.divide, params.network, stds)
        return ravel_pytree(params._replace(network=weights))[0]

    def sample(seed: int, num_draws: int) -> Draws:
        return np.asarray(draw(jax.random.split(jax.random.key(seed), num_draws)))

    def whiten(draws: Draws) -> Draws:
        z = np.array(scaled(draws))
        precision = np.exp(z[:, -num_groups:])
        z[:, -num_groups:] = stats.norm.ppf(stats.gamma.cdf(precision, SHAPE, scale=1 / RATE))
        return z

    num_groups = HIERARCHY.template(data).prior.shape[0]
    draws = sample(99, 2000)
    scale = GaussianTarget("hierarchical", draws.mean(axis=0), np.diag(0.8 * draws.std(axis=0)))
    return Target("hierarchical", flat_log_density(HIERARCHY), data, scale, sample, whiten)


def gaussians(dimensions: tuple[int, ...] = (2, 20, 200)) -> list[Target]:
    """Standard and correlated ones."""
    strength = {2: 0.8}
    return [
        of_gaussian(gaussian)
        for dimension in dimensions
        for gaussian in (
            standard(dimension),
            correlated(dimension, correlation=strength.get(dimension, 0.5)),
        )
    ]


def others() -> list[Target]:
    """Those that are not Gaussian, and linear regression."""
    return [banana(), mixture(), linear(), logistic(), hierarchical()]
