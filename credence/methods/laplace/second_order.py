"""The posterior to second order around a point: what a Gaussian there says, in closed form.

The formulas are those of `credence.methods.laplace.method`.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float
from scipy.optimize import minimize_scalar

from credence.density.data import Data
from credence.density.posterior import BayesianModel, Params, Position, Posterior
from credence.errors import InputError
from credence.methods.laplace.curvature import Spectrum, active_weights, prior_stds
from credence.methods.laplace.modes import num_likelihood_parameters, whitening


class LocalGaussian(NamedTuple):
    """The log likelihood to second order around trained weights, along the `Spectrum`'s
    eigenvectors and in units of the prior: see `credence.methods.laplace.method`."""

    log_likelihood: float
    point: Float[np.ndarray, " weight"]
    gradient: Float[np.ndarray, " weight"]
    """Gradient of the log likelihood, in nats per unit of weight."""
    curvature: Float[np.ndarray, " weight"]
    is_full: bool
    """Whether the curvature is all of it, so that its Newton steps lead to a mode."""

    def slope(self, multiple: float) -> Float[np.ndarray, " weight"]:
        """Gradient of the log posterior that moves the mode."""
        return self.is_full * (self.gradient - multiple * self.point)

    def decrement(self) -> float:
        """Newton decrement of the posterior as it was given, in nats: what a step would gain."""
        return float(0.5 * np.sum((self.gradient - self.point) ** 2 / (self.curvature + 1)))

    def draw(self, noise: Float[np.ndarray, "draw weight"], multiple: float) -> np.ndarray:
        """Standard normal noise to weights, for a multiple of the prior's precisions."""
        variance = 1 / (self.curvature + multiple)
        mode = self.point + variance * self.slope(multiple)
        return mode + np.sqrt(variance) * noise

    def log_evidence(self, multiple: float) -> float:
        """Log of the integral of likelihood times prior, in nats."""
        precision = self.curvature + multiple
        gain = self.slope(multiple) ** 2 / precision
        terms = np.log(multiple / precision) - multiple * self.point**2 + gain
        return float(self.log_likelihood + 0.5 * np.sum(terms))

    def effective_weights(self, multiple: float) -> float:
        """Number of weights that the data determine."""
        return float(np.sum(self.curvature / (self.curvature + multiple)))

    def best_multiple(self) -> float:
        """Multiple of the prior's precisions in [1e-4, 1e4] with the greatest evidence."""
        grid = np.linspace(np.log(1e-4), np.log(1e4), 200)
        loss = lambda log_multiple: -self.log_evidence(np.exp(log_multiple))  # noqa: E731
        best = int(np.argmin([loss(value) for value in grid]))
        bounds = (grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)])
        found = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-6})
        return float(np.exp(found.x))  # type: ignore[attr-defined]


class ParameterGaussian(NamedTuple):
    """The log posterior to second order in the likelihood's own parameters."""

    point: Float[np.ndarray, " parameter"]
    log_prior: float
    gradient: Float[np.ndarray, " parameter"]
    precision: Float[np.ndarray, "parameter parameter"]

    def decrement(self) -> float:
        """Newton decrement, in nats."""
        return float(0.5 * self.gradient @ np.linalg.solve(self.precision, self.gradient))

    def draw(self, noise: Float[np.ndarray, "draw parameter"]) -> np.ndarray:
        """Standard normal noise to parameters."""
        root = np.linalg.cholesky(np.linalg.inv(self.precision))
        mode = self.point + np.linalg.solve(self.precision, self.gradient)
        return mode + noise @ root.T

    def log_evidence(self) -> float:
        """What integrating over the parameters adds to the log evidence, in nats."""
        log_det = np.linalg.slogdet(self.precision / (2 * np.pi))[1]
        return float(self.log_prior - 0.5 * log_det + self.decrement())


NO_PARAMETERS = ParameterGaussian(np.zeros(0), 0.0, np.zeros(0), np.zeros((0, 0)))


class Around(NamedTuple):
    """The posterior to second order around a point."""

    position: Position
    spectrum: Spectrum
    weights: LocalGaussian
    likelihood: ParameterGaussian
    """The parameters of the noise; none where it is fixed."""

    def decrement(self) -> float:
        """Newton decrement, in nats: what a step would gain."""
        return self.weights.decrement() + self.likelihood.decrement()

    def whitening(self, posterior: Posterior, layers: str) -> np.ndarray:
        """Coordinates in which the posterior is round there, see `lbfgs`.

        A matrix where the curvature is whole. Of another one, the standard deviation of every
        weight: what is left is the correlations.
        """
        noise = np.zeros(num_likelihood_parameters(posterior))  # which stay where they are fixed
        if len(self.likelihood.point):
            noise = np.diag(self.likelihood.precision) ** -0.5
        if self.weights.is_full and layers == "all":
            return whitening(self.spectrum, posterior, noise, self.position)
        scale = np.append(prior_stds(posterior, "all"), noise)
        scale[active_weights(posterior, layers)] *= np.sqrt(self.spectrum.inverse_diagonal())
        return scale.astype(self.position.dtype)


def local_gaussian(
    position: Position, posterior: Posterior, found: Spectrum, layers: str, *, is_full: bool
) -> LocalGaussian:
    """The log likelihood around a position, in the coordinates of its spectrum."""
    active, stds = active_weights(posterior, layers), prior_stds(posterior, layers)
    log_probs, gradient = jax.device_get(_likelihood(position, posterior.data, posterior.model))
    weight = np.asarray(posterior.data.weight, float)
    return LocalGaussian(
        float(weight @ np.asarray(log_probs, float)),
        found.to_eigen(np.asarray(position, float)[active] / stds),
        found.to_eigen(np.asarray(gradient, float)[active] * stds),
        found.values,
        is_full,
    )


@partial(jax.jit, static_argnums=2)
def _likelihood(
    position: Position, data: Data, model: BayesianModel
) -> tuple[Float[Array, " point"], Position]:
    """Log likelihood of every row, and the gradient of their weighted sum."""

    def log_likelihood(position: Position) -> tuple[Float[Array, ""], Float[Array, " point"]]:
        params = model.unravel(position, data)
        log_probs = model.pointwise_log_likelihood(params, data.x, data.y)
        return jnp.dot(data.weight, log_probs, precision="highest"), log_probs

    gradient, log_probs = jax.grad(log_likelihood, has_aux=True)(position)
    return log_probs, gradient


def likelihood_gaussian(position: Position, posterior: Posterior) -> ParameterGaussian:
    """The likelihood's own parameters around a position.

    Raises:
        InputError: where the log posterior has no maximum in them.
    """
    params = posterior.unravel(position).likelihood
    if not jax.tree.leaves(params):
        return NO_PARAMETERS
    log_prior, gradient, hessian = jax.device_get(
        _likelihood_parameters(position, posterior.data, posterior.model)
    )
    precision = -np.asarray(hessian, float)
    if not np.all(np.linalg.eigvalsh(precision) > 0):
        raise InputError(
            f"The parameters of {posterior.model.likelihood} have no mode where training ended "
            f"({np.asarray(ravel_pytree(params)[0])}): train longer, or fix the noise."
        )
    return ParameterGaussian(
        np.asarray(ravel_pytree(params)[0], float),
        float(log_prior),
        np.asarray(gradient, float),
        precision,
    )


@partial(jax.jit, static_argnums=2)
def _likelihood_parameters(
    position: Position, data: Data, model: BayesianModel
) -> tuple[Float[Array, ""], Float[Array, " parameter"], Float[Array, "parameter parameter"]]:
    """Log prior of the likelihood's parameters; gradient and Hessian of the log posterior."""
    params = model.unravel(position, data)
    flat, unravel = ravel_pytree(params.likelihood)

    def log_density(flat: Float[Array, " parameter"]) -> Float[Array, ""]:
        changed: Params = params._replace(likelihood=unravel(flat))
        return model.likelihood.log_prior(changed.likelihood) + model.log_likelihood(changed, data)

    log_prior = model.likelihood.log_prior(params.likelihood)
    return log_prior, jax.grad(log_density)(flat), jax.hessian(log_density)(flat)
