"""A random network as surrogate of a log density: one hidden layer, of which only the last is fit.

In whitened coordinates x = W (w - mean) the potential U = -log density is approximated by

    z(x) = sum_i v_i softplus(a_i . x + b_i)  [ + |x|^2 / 2 ],

a_i ~ N(0, I / dimension) and b_i ~ N(0, 1) drawn once, v by ridge regression: Zhang, Shahbaba &
Zhao, "Hamiltonian Monte Carlo acceleration using surrogate functions with random bases" (2017).
They fit the values of U; gradients say `dimension` times as much about each point and are all that
the dynamics use (as in their "Variational Hamiltonian Monte Carlo via score matching", 2018). The
bracket, a Gaussian with the points' mean and covariance (variances, where there are too few points
for more), is ours: to learn a quadratic in all directions takes about dimension^2 / 2 bases.

What it cannot do: the gradient of the sum lies in the span of the a_i, and bases at random rarely
point where a posterior is curved. It suits smooth posteriors of tens of parameters; for posteriors
of networks it explains next to nothing.
"""

from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float, PRNGKeyArray
from scipy.linalg import solve

from credence.density.posterior import Position
from credence.errors import InputError
from credence.methods.surrogate.fitting import Equations, split

FITS = ("gradients", "values")

PENALTIES = 10.0 ** np.arange(-10.0, 4.0)
"""Ridge penalties tried, in units of the Gram matrix's trace, a bound on its eigenvalues."""


POINTS_PER_WEIGHT = 10
"""Points per weight from which their covariance whitens; with fewer, only their variances."""


class RandomNetwork(NamedTuple):
    """A surrogate of a log density."""

    mean: Float[Any, " weight"]
    whitening: Float[Any, "weight *weight"]
    """W: a matrix, or the diagonal of one."""
    directions: Float[Any, "feature weight"]
    """a_i, in whitened coordinates."""
    offsets: Float[Any, " feature"]
    coefficients: Float[Any, " feature"]
    precision: Float[Any, ""]
    """1 with the Gaussian part, 0 without."""


class GradientPoints(NamedTuple):
    """Points at which a log density was evaluated, and what it was there, by chain."""

    positions: Float[np.ndarray, "chain draw weight"]
    log_densities: Float[np.ndarray, "chain draw"]
    gradients: Float[np.ndarray, "chain draw weight"]


def surrogate_gradient(position: Position, network: RandomNetwork) -> Position:
    """Gradient of the surrogate log density -z, in nats per unit of weight."""
    is_full = network.whitening.ndim == 2
    centred = position - network.mean
    x = network.whitening @ centred if is_full else network.whitening * centred
    slopes = network.coefficients * jax.nn.sigmoid(network.directions @ x + network.offsets)
    gradient = -(slopes @ network.directions + network.precision * x)
    return gradient @ network.whitening if is_full else gradient * network.whitening


def random_bases(
    key: PRNGKeyArray, num_features: int, num_weights: int
) -> tuple[Float[np.ndarray, "feature weight"], Float[np.ndarray, " feature"]]:
    """Directions a_i and offsets b_i, such that a_i . x is about N(0, 1) in whitened x."""
    key_directions, key_offsets = jax.random.split(key)
    directions = jax.random.normal(key_directions, (num_features, num_weights))
    offsets = jax.random.normal(key_offsets, (num_features,))
    return np.asarray(directions) / num_weights**0.5, np.asarray(offsets)


def untrained(
    bases: tuple[Float[np.ndarray, "feature weight"], Float[np.ndarray, " feature"]],
    *,
    num_points: int,
    gaussian_part: bool,
) -> RandomNetwork:
    """Coefficients of zero, mean 0 and W = 1; a matrix where num_points suffice for one."""
    directions, offsets = bases
    zero = np.zeros_like(directions[0])
    is_full = num_points >= POINTS_PER_WEIGHT * zero.size
    return RandomNetwork(
        zero,
        np.eye(zero.size, dtype=zero.dtype) if is_full else zero + 1,
        directions,
        offsets,
        np.zeros_like(offsets),
        np.asarray(float(gaussian_part), zero.dtype),
    )


def fit_random_network(
    network: RandomNetwork, points: GradientPoints, *, fit: str
) -> tuple[RandomNetwork, Float[np.ndarray, ""]]:
    """The network fitted to points, and r2: the share of held-out gradients that it explains.

    On the host in double precision, from sums over points: O(points features weights).

    Args:
        network: of `untrained`; its bases, Gaussian part and shapes are kept.
        points: at least two per chain; the last fifth of each chain is held out.
        fit: "gradients" or "values" of the log density.
    Returns:
        r2 = 1 - |g - g_z|^2 / |g|^2 over the held-out points in whitened coordinates, g the true
        and g_z the surrogate's gradient; 1 is perfect, 0 no better than no gradient at all.
    Raises:
        InputError: where the log density or a gradient is not finite at some point.
    """
    if not all(np.isfinite(part).all() for part in points):
        raise InputError(
            "The log density is not finite at some points of the exploration, so no surrogate can "
            "be fitted: check the model, or train longer before sampling."
        )
    mean, whitening, x = whiten(points, is_full=network.whitening.ndim == 2)
    train, held_out = split(x)
    equations = {"gradients": gradient_equations, "values": value_equations}[fit]
    coefficients = ridge(equations(network, train), equations(network, held_out))
    error = gradient_equations(network, held_out).squared_error(coefficients)
    r2 = 1 - error / np.sum(held_out.gradients**2)
    fitted = network._replace(mean=mean, whitening=whitening, coefficients=coefficients)
    dtype = points.positions.dtype
    return RandomNetwork(*(np.asarray(part, dtype) for part in fitted)), np.asarray(r2)


def whiten(
    points: GradientPoints, *, is_full: bool
) -> tuple[Float[np.ndarray, " weight"], Float[np.ndarray, "weight *weight"], GradientPoints]:
    """Mean, W, and the points in whitened coordinates, where gradients are W^-T times theirs.

    A hundredth of the variances is added to the covariance's diagonal in proportion to weights per
    point, so that W exists.
    """
    positions, gradients = points.positions.astype(float), points.gradients.astype(float)
    flat = _rows(positions)
    mean, std = flat.mean(axis=0), np.maximum(flat.std(axis=0), 1e-6)
    if is_full:
        ridge = 0.01 * len(std) / len(flat) * np.diag(std**2)
        cholesky = np.linalg.cholesky(np.cov(flat.T).reshape(len(std), -1) + ridge)
        whitening = np.linalg.inv(cholesky)
        x, whitened_gradients = (positions - mean) @ whitening.T, gradients @ cholesky
    else:
        whitening = 1 / std
        x, whitened_gradients = (positions - mean) * whitening, gradients * std
    return (
        mean,
        whitening,
        GradientPoints(x, points.log_densities.astype(float), whitened_gradients),
    )


def gradient_equations(network: RandomNetwork, points: GradientPoints) -> Equations:
    """Equations from gradients of U at whitened points: basis i has sigmoid(a_i . x + b_i) a_i."""
    # In double precision: rounding in single made the Gram matrix of few weights indefinite.
    x, directions = _rows(points.positions), network.directions.astype(float)
    to_explain = -_rows(points.gradients) - network.precision * x
    slopes = 1 / (1 + np.exp(-(x @ directions.T + network.offsets)))
    return Equations(
        (directions @ directions.T) * (slopes.T @ slopes),
        np.sum(slopes * (to_explain @ directions.T), axis=0),
        float(np.sum(to_explain**2)),
    )


def value_equations(network: RandomNetwork, points: GradientPoints) -> Equations:
    """Equations from values of U, up to a constant: basis i has softplus(a_i . x + b_i)."""
    x = _rows(points.positions)
    to_explain = -points.log_densities.ravel() - 0.5 * network.precision * np.sum(x**2, axis=1)
    to_explain = to_explain - to_explain.mean()
    values = np.logaddexp(0, x @ network.directions.T + network.offsets)
    values = values - values.mean(axis=0)
    return Equations(values.T @ values, values.T @ to_explain, float(np.sum(to_explain**2)))


def ridge(train: Equations, held_out: Equations) -> Float[np.ndarray, " feature"]:
    """Ridge regression with the penalty, of `PENALTIES`, that leaves least of what is held out."""
    unit = np.trace(train.gram) * np.eye(len(train.gram))
    path = [
        solve(train.gram + penalty * unit, train.moment, assume_a="pos") for penalty in PENALTIES
    ]
    return min(path, key=held_out.squared_error)


def _rows(
    array: Float[np.ndarray, "chain draw weight"],
) -> Float[np.ndarray, "point weight"]:
    return array.reshape(-1, array.shape[-1])
