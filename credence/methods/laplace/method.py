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
from typing import ClassVar

import jax
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from credence.density.posterior import Position, Posterior
from credence.engine.driver import Driver
from credence.ensembles.findings import Finding
from credence.errors import InputError, check_name, check_share, refuse_unread, require_positive
from credence.methods.base import Drawn, Method
from credence.methods.evidence import LogEvidence
from credence.methods.laplace.curvature import (
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
)
from credence.methods.laplace.second_order import (
    NO_PARAMETERS,
    Around,
    ParameterGaussian,
    likelihood_gaussian,
    local_gaussian,
)
from credence.methods.training import Training, held_out, num_held_out, train

HELD_OUT = 0.2
"""Usual share of the rows that the noise is learnt from."""
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
        held_out_fraction: share of the rows for noise="held_out"; they count for the weights in the
            end. None is 0.2.
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
    held_out_fraction: float | None = None
    refine_steps: int = 10_000

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(num_draws=self.num_draws, refine_steps=self.refine_steps)
        check_share("0.2 is usual", held_out_fraction=self.held_out_fraction)
        for name, known in CHOICES.items():
            check_name(name, getattr(self, name), known)
        if self.noise == "mode":
            reader = "of noise='held_out' and nothing to 'mode', which takes all rows"
            refuse_unread(self, reader, "held_out_fraction")
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
        key_noise, key_climb = jax.random.split(key_mode)
        if fixed := training.validation_fraction > 0:
            rows = held_out(key_train, posterior, training)
            start, seen = noise_of(key_noise, rows, posterior, driver, start)
            _check_noise(likelihood_gaussian(start, seen))
        found = self._mode(key_climb, start, posterior, driver, fixed, trained.num_steps)
        mode, weights, likelihood = found.position, found.weights, found.likelihood
        active = active_weights(posterior, self.layers)
        multiple = 1.0 if self.prior_precision == "prior" else weights.best_multiple()

        positions = np.tile(np.asarray(mode), (self.num_draws, 1))
        stds = prior_stds(posterior, self.layers)
        eigen = weights.draw(normals(key_weights, self.num_draws, len(stds)), multiple)
        positions[:, active] = stds * found.spectrum.from_eigen(eigen)
        of_noise = likelihood.draw(normals(key_likelihood, self.num_draws, len(likelihood.point)))
        positions[:, positions.shape[1] - of_noise.shape[1] :] = of_noise
        scalars = {
            "log_evidence": weights.log_evidence(multiple) + likelihood.log_evidence(),
            "effective_weights": weights.effective_weights(multiple),
            "newton_decrement": found.decrement(),
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
        share = self.held_out_fraction or HELD_OUT
        training = replace(self.training, validation_fraction=share)
        if num_held_out(posterior, training) == 0:
            raise InputError(
                f"held_out_fraction={share} of {posterior.num_points} rows leaves "
                "none to estimate the noise on: raise it, fix the noise, or use noise='mode'."
            )
        return training

    def _mode(
        self,
        key: PRNGKeyArray,
        start: Position,
        posterior: Posterior,
        driver: Driver,
        noise_is_fixed: bool,
        num_trained: int,
    ) -> Around:
        """Climb from trained weights to a mode.

        Args:
            num_trained: steps of the training, for the message.

        Raises:
            InputError: where there is none.
        """
        key_refine, key_polish = jax.random.split(key)
        around = partial(self._around, posterior=posterior, noise_is_fixed=noise_is_fixed)
        scale = weight_scale(posterior, start, noise_is_fixed=noise_is_fixed)
        refined = climb("refine", key_refine, posterior, driver, start, scale, self.refine_steps)
        found, num_steps = around(refined.positions[0]), refined.num_steps
        if found.decrement() > MOST_DECREMENT:

            def whitened(position: Position) -> tuple[float, np.ndarray]:
                there = around(position)
                return there.decrement(), there.whitening(posterior, self.layers)

            mode, root = found.position, found.whitening(posterior, self.layers)
            polished = climb(
                "polish", key_polish, posterior, driver, mode, root, POLISH_STEPS, whitened
            )
            found, num_steps = around(polished.positions[0]), num_steps + polished.num_steps
        if not found.decrement() <= MOST_DECREMENT:
            raise InputError(_no_mode(found.decrement(), num_trained, num_steps))
        return found

    def _around(self, position: Position, posterior: Posterior, noise_is_fixed: bool) -> Around:
        """The posterior to second order around a point, in weights and noise."""
        found = spectrum(position, posterior, self.structure, self.layers)
        is_full = self.structure == "full"
        weights = local_gaussian(position, posterior, found, self.layers, is_full=is_full)
        likelihood = NO_PARAMETERS if noise_is_fixed else likelihood_gaussian(position, posterior)
        return Around(position, found, weights, likelihood)


def _check_noise(noise: ParameterGaussian) -> None:
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


def normals(key: PRNGKeyArray, num_draws: int, size: int) -> Float[np.ndarray, "draw weight"]:
    """Standard normal draws, in double precision from here on."""
    return np.asarray(_normal(key, (num_draws, size)), float)


@partial(jax.jit, static_argnums=1)
def _normal(key: PRNGKeyArray, shape: tuple[int, int]) -> Float[Array, "draw weight"]:
    return jax.random.normal(key, shape)
