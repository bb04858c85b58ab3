"""The Laplace approximation: a Gaussian around a trained network.

MacKay, "A practical Bayesian framework for backpropagation networks" (1992); Daxberger et al.,
"Laplace redux: effortless Bayesian deep learning" (2021). One network is trained to a mode w* of
the posterior; weights are then drawn from N(w*, (H + P)^-1) with H the generalised Gauss-Newton
curvature of the log likelihood there (`credence.methods.laplace.curvature`) and P the prior's
precisions.

H belongs to the network linearised around w*, so by default the draws are members of that model
(Immer, Korzepa & Bauer, "Improving predictions of Bayesian neural nets via local linearization",
2021). With the full H everything about it is known in closed form, for any multiple t of the prior
precisions: its own mode, one Newton step from w*, and the evidence there (Antoran et al., "Adapting
the linearised Laplace model evidence for modern deep learning", 2022). Along eigenvectors of H in
units of the prior, with eigenvalues l_i, trained weights v_i and slopes s_i = z_i - t v_i of the
log posterior,

    mode_i = v_i + s_i / (l_i + t),    variance_i = 1 / (l_i + t),
    log evidence = log L(w*) + sum_i [log(t / (l_i + t)) - t v_i^2 + s_i^2 / (l_i + t)] / 2.

With parts of H left out a Newton step leads astray, and the mode stays at w*: s_i = 0 above, as in
"Laplace redux".
"""

from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PRNGKeyArray
from scipy.optimize import minimize_scalar

from credence.density.posterior import BayesianModel, Data, Params, Position, Posterior
from credence.engine.driver import Driver
from credence.ensembles.findings import Finding
from credence.errors import InputError, check_share, require_positive
from credence.methods.base import Drawn, Method
from credence.methods.evidence import LogEvidence
from credence.methods.laplace.curvature import (
    Spectrum,
    active_weights,
    check_structure,
    prior_stds,
    spectrum,
)
from credence.methods.laplace.modes import (
    MOST_DECREMENT,
    POLISH_STEPS,
    climb,
    noise_of,
    num_likelihood_parameters,
    weight_scale,
    whitening,
)
from credence.methods.training import Training, held_out, num_held_out, train

CHOICES = {
    "structure": ("full", "kronecker", "diagonal"),
    "layers": ("all", "last"),
    "prior_precision": ("prior", "evidence"),
    "noise": ("held_out", "mode"),
}


@dataclass(frozen=True, kw_only=True)
class Laplace(Method):
    """Gaussian approximation around one trained network.

    A learnt noise (any parameters of the likelihood) is by default estimated on held-out rows and
    then fixed, as is usual: a network is trained without them, stopped where it predicts them best,
    and the noise is what maximises their likelihood there, times its prior. All rows then find the
    mode of the weights given this noise. It has a relative error of about 1 / sqrt(2 x held-out
    rows), which the draws do not show; it holds the error of a network trained on fewer rows, so
    it is rather too large than too small.

    noise="mode" takes the joint mode of noise and weights instead, and the noise gets a Gaussian of
    its own, from the Hessian of the log posterior, independent of the weights: the Fisher
    information between location and scale is zero. At the joint mode the noise explains residuals
    of rows that the weights have seen; it is too small by about the share of effective weights in
    the rows (see the scalar "effective_weights"), and with many weights there is no such mode. Use
    it for few weights, and tables too small to hold out rows.

    Scalars, the same for every draw: log_evidence (nats; given the noise where it was held out;
    with layers="last" given the other weights), effective_weights = sum l_i / (l_i + t) (MacKay's
    gamma), newton_decrement (nats) and prior_precision (t).

    Args:
        num_draws: independent draws.
        structure: "full" (up to 10,000 weights), "kronecker" (an MLP) or "diagonal" curvature.
        layers: "all" weights, or the "last" layer of an MLP, given the others.
        prior_precision: "prior" approximates the posterior as it was given; "evidence" multiplies
            the prior's precisions by the one number in [1e-4, 1e4] that has the greatest evidence:
            another prior, learnt from the data.
        linearized: draws predict with the linearised network; False puts them into the network.
        noise: "held_out" learns it from rows that the weights have not seen, "mode" together with
            the weights; no difference for a likelihood without parameters.
        held_out_fraction: share of the rows for the noise; they count for the weights in the end.
        training: of the network, on all rows or those that are not held out.
        refine_steps: most steps of L-BFGS from there to the mode. Where these do not reach it,
            structure="full" of all layers goes on with at most 5000 in the coordinates of the
            curvature, new every 50, where a quadratic is round.
    Raises, when run:
        InputError: where the point found is not a mode, the prior not Gaussian, or network and
            structure do not go together.
    """

    name: ClassVar[str] = "laplace"
    summary: ClassVar[str] = "Gaussian around one trained network, linearised (approximate)"
    sources: ClassVar[tuple[str, ...]] = (
        'MacKay, "A practical Bayesian framework for backpropagation networks" (1992)',
        'Daxberger et al., "Laplace redux: effortless Bayesian deep learning" (2021)',
        (
            'Immer, Korzepa & Bauer, "Improving predictions of Bayesian neural nets via '
            'local linearization" (2021)'
        ),
        (
            'Antoran et al., "Adapting the linearised Laplace model evidence for modern '
            'deep learning" (2022)'
        ),
    )
    findings: ClassVar[tuple[type[Finding], ...]] = (LogEvidence,)
    is_chain: ClassVar[bool] = False

    num_draws: int = 1000
    structure: str = "full"
    layers: str = "all"
    prior_precision: str = "prior"
    linearized: bool = True
    training: Training = field(default=Training(validation_fraction=0.0))
    noise: str = "held_out"
    held_out_fraction: float = 0.2
    refine_steps: int = 10_000

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(num_draws=self.num_draws, refine_steps=self.refine_steps)
        check_share("0.2 is usual", held_out_fraction=self.held_out_fraction)
        for name, known in CHOICES.items():
            if getattr(self, name) not in known:
                raise InputError(
                    f"Unknown {name}={getattr(self, name)!r}: choose one of {', '.join(known)}."
                )
        if self.training.validation_fraction > 0:
            raise InputError(
                "A Laplace approximation is around a mode for all rows, got "
                f"validation_fraction={self.training.validation_fraction}: use 0. Rows for the "
                "noise alone are held_out_fraction."
            )
        if self.prior_precision == "evidence" and not self.linearized:
            raise InputError(
                "prior_precision='evidence' moves the mode of the linearised network, and that of "
                "the network itself would need training again: use linearized=True, or "
                "prior_precision='prior'."
            )

    def _run(self, key: PRNGKeyArray, posterior: Posterior, driver: Driver) -> Drawn:
        check_structure(posterior, self.structure, self.layers)
        training = self._training(posterior)
        key_train, key_mode, key_weights, key_likelihood = jax.random.split(key, 4)
        trained = train(key_train, posterior, driver, 1, training, budget_share=0.5)
        start = trained.positions[0]
        key_noise, key_refine, key_polish = jax.random.split(key_mode, 3)
        if fixed := training.validation_fraction > 0:
            rows = held_out(key_train, posterior, training)
            start, seen = noise_of(key_noise, rows, posterior, driver, start)
            _check_noise(likelihood_gaussian(start, seen))
        scale = weight_scale(posterior, start, noise_is_fixed=fixed)
        refined = climb("refine", key_refine, posterior, driver, start, scale, self.refine_steps)
        mode, num_refined = refined.positions[0], refined.num_steps
        found, weights, likelihood = self._around(mode, posterior, fixed)
        decrement = weights.decrement() + likelihood.decrement()
        if decrement > MOST_DECREMENT and self.structure == "full" and self.layers == "all":

            def whitened(position: Position) -> tuple[float, np.ndarray]:
                found, weights, likelihood = self._around(position, posterior, fixed)
                noise = np.zeros(1) if fixed else np.diag(likelihood.precision) ** -0.5
                root = whitening(found, posterior, noise, position)
                return weights.decrement() + likelihood.decrement(), root

            _, root = whitened(mode)
            polished = climb(
                "polish", key_polish, posterior, driver, mode, root, POLISH_STEPS, whitened
            )
            mode, num_refined = polished.positions[0], num_refined + polished.num_steps
            found, weights, likelihood = self._around(mode, posterior, fixed)
            decrement = weights.decrement() + likelihood.decrement()
        if not decrement <= MOST_DECREMENT:
            raise InputError(_no_mode(decrement, trained.num_steps, num_refined))
        active = active_weights(posterior, self.layers)
        multiple = 1.0 if self.prior_precision == "prior" else weights.best_multiple()

        positions = np.tile(np.asarray(mode), (self.num_draws, 1))
        noise = lambda key, size: np.asarray(_normal(key, (self.num_draws, size)), float)  # noqa: E731
        stds = prior_stds(posterior, self.layers)
        eigen = weights.draw(noise(key_weights, len(stds)), multiple)
        positions[:, active] = stds * found.from_eigen(eigen)
        last = slice(positions.shape[1] - len(likelihood.point), None)
        positions[:, last] = likelihood.draw(noise(key_likelihood, len(likelihood.point)))
        scalars = {
            "log_evidence": weights.log_evidence(multiple) + likelihood.log_evidence(),
            "effective_weights": weights.effective_weights(multiple),
            "newton_decrement": decrement,
            "prior_precision": multiple,
        }
        return Drawn(
            positions[None],
            {name: np.full((1, self.num_draws), value) for name, value in scalars.items()},
            mode if self.linearized else None,
        )

    def _training(self, posterior: Posterior) -> Training:
        """The training to use: with rows held out where a noise is to be estimated on them.

        Raises:
            InputError: where there are none to hold out, or none left.
        """
        if self.noise == "mode" or not num_likelihood_parameters(posterior):
            return self.training
        training = replace(self.training, validation_fraction=self.held_out_fraction)
        if num_held_out(posterior, training) == 0:
            raise InputError(
                f"held_out_fraction={self.held_out_fraction} of {posterior.num_points} rows leaves "
                "none to estimate the noise on: raise it, fix the noise, or use noise='mode'."
            )
        return training

    def _around(
        self, mode: Position, posterior: Posterior, noise_is_fixed: bool
    ) -> tuple[Spectrum, "LocalGaussian", "ParameterGaussian"]:
        """The posterior to second order around a point, in weights and noise."""
        found = spectrum(mode, posterior, self.structure, self.layers)
        weights = local_gaussian(
            mode, posterior, found, self.layers, is_full=self.structure == "full"
        )
        likelihood = NO_PARAMETERS if noise_is_fixed else likelihood_gaussian(mode, posterior)
        return found, weights, likelihood


def _check_noise(noise: "ParameterGaussian") -> None:
    """Refuse a search for the noise that did not end at a mode."""
    if not noise.decrement() <= MOST_DECREMENT:
        raise InputError(
            f"The held-out rows have no most likely noise near {noise.point}: the Newton decrement "
            f"is {noise.decrement():.2g} nats. Raise held_out_fraction, or fix the noise."
        )


def _no_mode(decrement: float, num_trained: int, num_refined: int) -> str:
    return (
        f"No mode was found: after {num_trained:,} steps of training and "
        f"{num_refined:,} of refinement the Newton decrement is {decrement:.2g} nats, and "
        f"a Gaussian around the point needs at most {MOST_DECREMENT}. Raise refine_steps, "
        "training.max_epochs or max_seconds. A network with kinks (relu) may have no smooth mode: "
        "use tanh, silu or gelu. One that fits every row may have a learnt noise shrink to zero: "
        "use noise='held_out', fix it, or use a stronger prior."
    )


class LocalGaussian(NamedTuple):
    """The log likelihood to second order around trained weights, along the `Spectrum`'s
    eigenvectors and in units of the prior: see the module's docstring."""

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


@partial(jax.jit, static_argnums=1)
def _normal(key: PRNGKeyArray, shape: tuple[int, int]) -> Float[Array, "draw weight"]:
    return jax.random.normal(key, shape)
