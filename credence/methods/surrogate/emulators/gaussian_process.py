"""A Gaussian process in a few directions of the weights; in all others the prior."""

import warnings
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.linear_model import RidgeCV
from threadpoolctl import threadpool_limits

from credence.adaptation.reference import network_stds
from credence.density.data import Data
from credence.density.posterior import Position, Posterior
from credence.engine.driver import Driver
from credence.engine.plan import Plan
from credence.errors import check_name, require_positive
from credence.kernels.base import Recipe
from credence.kernels.evaluation.evaluation import evaluation
from credence.methods.surrogate.emulators.base import (
    Emulated,
    Emulator,
    Points,
    without_prior,
)
from credence.models.priors import GaussianPrior

SUBSPACES = ("active", "pca")
MOST_COMPONENTS = 10
"""Most directions of the subspace: as many as some two hundred draws can teach."""
MOST_POINTS = 500
"""Most points of the process per chain: fitting costs their number cubed."""
DRAWS_PER_COMPONENT = 8
PENALTIES = 10.0 ** np.arange(-6.0, 3.0)
"""Ridge penalties of the quadratic part, in units where its features have variance one."""


@dataclass(frozen=True, kw_only=True)
class GaussianProcess(Emulator):
    """A quadratic and a Gaussian process on what it leaves, in coordinates z of a subspace:

        l(w) ~ q(z) + k(z, Z) alpha,    z = V' (w - m) / s,

    m the mean of a chain's draws, s the prior's standard deviations. The standard emulator of
    calibrate-emulate-sample: Cleary, Garbuno-Inigo, Lan, Schneider & Stuart, "Calibrate, emulate,
    sample" (2021). Outside the span of V the emulated posterior is the prior: a chain along it
    moves there by the prior, as `Network` does implicitly, and delayed acceptance refuses what the
    data forbid. For small networks, whose draws of a chain say enough in every direction.

    q is clipped to be concave, so that the prior is not outdone far away, where the process, with
    a squared-exponential kernel (scikit-learn's, length scales by maximum likelihood), is zero.

    Args:
        num_components: columns of V; None for an eighth of a chain's draws, at most ten, or all
            weights where there are fewer.
        subspace: "active", eigenvectors of E (S g)(S g)', g the gradients of l at the draws (Zahm,
            Cui, Law, Spantini & Marzouk, "Certified dimension reduction in nonlinear Bayesian
            inverse problems", 2022); or "pca", of the draws' covariance in units of s.
    """

    needs_draws: ClassVar[bool] = True

    name: str = field(default="gaussian_process", init=False)

    num_components: int | None = None
    subspace: str = "active"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_name("subspace", self.subspace, SUBSPACES)
        require_positive(num_components=self.num_components)

    def fit(
        self, key: PRNGKeyArray, points: Points, posterior: Posterior, data: Data, driver: Driver
    ) -> Emulated:
        """Fit a quadratic and a Gaussian process to every chain's points."""
        _, num_draws, num_weights = points.positions.shape
        newest = jax.tree.map(lambda leaf: leaf[:, -MOST_POINTS:], points)
        usual = min(MOST_COMPONENTS, max(1, num_draws // DRAWS_PER_COMPONENT))
        num = min(num_weights, num_draws, self.num_components or usual)
        scale = scales(posterior)
        if self.subspace == "active" and num < num_weights:
            gradients = self._gradients(key, newest, posterior, data, driver)
        else:
            gradients = newest.positions
        with threadpool_limits(1, user_api="blas"):  # matrices too small to share among cores
            members = [
                fitted(positions, values, directions, scale, num, self.subspace)
                for positions, values, directions in zip(
                    newest.positions, newest.log_likelihoods, gradients, strict=True
                )
            ]
        dtype = points.positions.dtype
        arrays = jax.tree.map(lambda *leaves: jnp.asarray(np.stack(leaves), dtype), *members)
        flops = 2.0 * num * (num_weights + newest.positions.shape[1] + num)
        return Emulated(process_likelihood, arrays, flops)

    @staticmethod
    def _gradients(
        key: PRNGKeyArray, points: Points, posterior: Posterior, data: Data, driver: Driver
    ) -> Float[np.ndarray, "chain draw weight"]:
        """Gradients of the log likelihood at the points."""
        flat = jnp.asarray(points.positions.reshape(-1, posterior.num_weights))
        recipe = Recipe(evaluation, posterior.log_density)  # in chunks of bounded memory
        plan = Plan(recipe, "emulate", num_steps=1, keep_draws=False)
        found = driver.phase("gradients", key, plan, flat, data)
        _, gradients = without_prior(found.states, data, model=posterior.model)
        return np.asarray(gradients).reshape(points.positions.shape)


class Process(NamedTuple):
    """Arrays of a fitted emulator; leaves (member, ...)."""

    centre: Any
    """m, the mean of a chain's draws, (weight,)."""
    basis: Any
    """V' / s, (component, weight)."""
    slope: Any
    """Slope of the quadratic q at the centre, (component,)."""
    curvature: Any
    """Curvature of the quadratic q, negative semidefinite, (component, component)."""
    known: Any
    """Z, the known points over the length scales, (point, component)."""
    inverse_length: Any
    """One over the length scales, (component,)."""
    alpha: Any
    """Weights of the kernels at the known points, in nats, (point,)."""


def process_likelihood(position: Position, process: Process) -> Float[Array, ""]:
    """Emulated log likelihood, in nats up to a constant."""
    times = partial(jnp.matmul, precision="highest")
    z = times(process.basis, position - process.centre)
    quadratic = times(process.slope, z) + 0.5 * times(z, times(process.curvature, z))
    away = jnp.sum((z * process.inverse_length - process.known) ** 2, axis=-1)
    return quadratic + times(process.alpha, jnp.exp(-0.5 * away))


def scales(posterior: Posterior) -> Float[np.ndarray, " weight"]:
    """Prior standard deviations of all parameters; one where the prior has none or is learnt."""
    found = np.ones(posterior.num_weights)
    if isinstance(posterior.model.prior, GaussianPrior):
        weights = network_stds(posterior)
        found[: len(weights)] = weights
    return found


def fitted(
    positions: Float[np.ndarray, "draw weight"],
    log_likelihoods: Float[np.ndarray, " draw"],
    gradients: Float[np.ndarray, "draw weight"],
    scale: Float[np.ndarray, " weight"],
    num_components: int,
    subspace: str,
) -> Process:
    """One chain's emulator."""
    centre = positions.mean(axis=0, dtype=float)
    inputs = (np.asarray(positions, float) - centre) / scale
    spread = inputs if subspace == "pca" else np.asarray(gradients, float) * scale
    if num_components == inputs.shape[1]:
        basis = np.eye(num_components)
    else:
        basis = np.linalg.svd(spread, full_matrices=False)[2][:num_components]
    z, values = inputs @ basis.T, np.asarray(log_likelihoods, float)
    slope, curvature = concave(z, values)
    left = values - z @ slope - 0.5 * np.sum((z @ curvature) * z, axis=1)
    known, inverse_length, alpha = process_of(z, left - left.mean())
    return Process(centre, basis / scale, slope, curvature, known, inverse_length, alpha)


def concave(
    z: Float[np.ndarray, "draw component"], values: Float[np.ndarray, " draw"]
) -> tuple[Float[np.ndarray, " component"], Float[np.ndarray, "component component"]]:
    """Slope and curvature, with no eigenvalue above 0, of a quadratic by ridge regression."""
    num = z.shape[1]
    std = np.maximum(z.std(axis=0), 1e-12)
    unit = z / std
    rows, columns = np.triu_indices(num)
    products = unit[:, rows] * unit[:, columns]
    spread = np.maximum(products.std(axis=0), 1e-12)
    found = RidgeCV(PENALTIES).fit(np.hstack([unit, products / spread]), values).coef_
    upper = np.zeros((num, num))
    upper[rows, columns] = found[num:] / spread
    size, axes = np.linalg.eigh(upper + upper.T)
    curvature = (axes * np.minimum(size, 0)) @ axes.T
    left = values - 0.5 * np.sum((unit @ curvature) * unit, axis=1)
    slope = RidgeCV(PENALTIES).fit(unit, left).coef_
    return slope / std, curvature / np.outer(std, std)


def process_of(
    z: Float[np.ndarray, "draw component"], values: Float[np.ndarray, " draw"]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Known points and inverse length scales, and the weights of the kernels at these points."""
    std, size = np.maximum(z.std(axis=0), 1e-12), max(float(values.std()), 1e-12)
    kernel = ConstantKernel(1.0, (1e-3, 1e3)) * RBF(z.shape[1] ** 0.5, (1e-1, 1e3))
    process = GaussianProcessRegressor(kernel + WhiteKernel(0.1, (1e-6, 1e1)), alpha=1e-8)
    with warnings.catch_warnings():  # at a bound the process is constant or noise: it says nothing
        warnings.simplefilter("ignore", ConvergenceWarning)
        process.fit(z / std, values / size)
    signal = process.kernel_.k1
    inverse_length = 1 / (std * signal.k2.length_scale)
    return z * inverse_length, inverse_length, size * signal.k1.constant_value * process.alpha_
