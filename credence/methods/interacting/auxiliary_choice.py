"""Auxiliary densities for a posterior: where the partners of its particles live.

What matters is that the potential, posterior over auxiliary, is bounded and does not vary by many
nats from one auxiliary draw to the next: `Interacting` measures it.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from credence.density.posterior import (
    BayesianModel,
    Position,
    Posterior,
    flat_log_prior,
    flat_prior_draw,
)
from credence.engine.driver import Driver
from credence.errors import InputError
from credence.methods.interacting.auxiliary import (
    FULL_GAUSSIAN,
    MIXTURE,
    Auxiliary,
    FullGaussian,
    Mixture,
    tempered,
)
from credence.methods.laplace.curvature import prior_stds, spectrum
from credence.methods.laplace.modes import climb, weight_scale, whitening
from credence.methods.laplace.second_order import likelihood_gaussian

MODE_STEPS = 10_000
"""Most steps of L-BFGS to the point that "laplace" is fitted at."""
USUAL_WIDENING = 1.2
"""Usual factor on standard deviations: tails heavier than those of a nearly Gaussian posterior."""


class Chosen(NamedTuple):
    """An auxiliary density and its arrays."""

    density: Auxiliary
    arrays: Any


def choose(
    name: str,
    key: PRNGKeyArray,
    posterior: Posterior,
    driver: Driver,
    members: Float[Array, "member weight"],
    *,
    temperature: float,
    widening: float,
) -> Chosen:
    """The auxiliary density of that name.

    Args:
        name: one of `AUXILIARIES`.
        members: trained networks.
        temperature: of "tempered"; in "ladder" of the first rung, and the ratio of the others.
        widening: of the standard deviations of "laplace" and "ensemble".
    """
    at = _Fit(key, posterior, driver, members, temperature, widening)
    return AUXILIARIES[name](at)


def usual_temperature(num_weights: int) -> float:
    """T = 1 + sqrt(2 / d): for a Gaussian posterior the potentials then vary by one nat.

    Under posterior^(1/T) minus the log posterior is T/2 times a chi^2 of d degrees of freedom, so
    log G = (1 - 1/T) log posterior has the variance (T - 1)^2 d / 2.
    """
    return 1 + (2 / num_weights) ** 0.5


def check_temperature(temperature: float | None, *, may_be_cold: bool = False) -> None:
    """Refuse a temperature at which partners are no wider than the posterior; None is the usual.

    Args:
        may_be_cold: lets partners be narrower: see `ColdPartnersWarning`.
    """
    if temperature is None or 1 < temperature < np.inf or (may_be_cold and 0 < temperature < 1):
        return
    if may_be_cold:
        raise InputError(
            f"temperature must be > 0, finite and not 1, got {temperature}: at 1 all potentials "
            "are equal, and jumps only copy partners. Use one a little above 1, or leave it out."
        )
    raise InputError(
        f"temperature must be > 1 and finite, got {temperature}: at 1 partners live on the "
        "posterior itself, and below their tails are too light."
    )


class _Fit(NamedTuple):
    """What an auxiliary density may be made from."""

    key: PRNGKeyArray
    posterior: Posterior
    driver: Driver
    members: Float[Array, "member weight"]
    temperature: float
    widening: float


def _tempered(at: _Fit) -> Chosen:
    temperature = jnp.asarray(at.temperature, at.members.dtype)
    return Chosen(tempered(at.posterior.log_density), temperature)


def _prior(at: _Fit) -> Chosen:
    return Chosen(prior(at.posterior.model), at.posterior.data)


def _laplace(at: _Fit) -> Chosen:
    """N(w, widening^2 (H + P)^-1) at the point w that L-BFGS finds from the first member."""
    posterior, start = at.posterior, at.members[0]
    scale = weight_scale(posterior, start, noise_is_fixed=False)
    refined = climb(
        "refine", at.key, posterior, at.driver, start, scale, MODE_STEPS, budget_share=0.35
    )
    mode = refined.positions[0]
    found = spectrum(mode, posterior, "full", "all")
    root = np.asarray(whitening(found, posterior, _noise_stds(mode, posterior), mode), float)
    lower = np.linalg.cholesky(at.widening**2 * root @ root.T)
    return Chosen(FULL_GAUSSIAN, FullGaussian(mode, jnp.asarray(lower, start.dtype)))


def _ensemble(at: _Fit) -> Chosen:
    """Gaussians around all members, equally weighted, with the diagonal of (H + P)^-1."""
    stds = [np.append(_weight_stds(w, at.posterior), _noise_stds(w, at.posterior))
            for w in at.members]  # fmt: skip
    std = jnp.asarray(at.widening * np.stack(stds), at.members.dtype)
    return Chosen(MIXTURE, Mixture(at.members, std, jnp.zeros(len(std), std.dtype)))


STRUCTURES = {"laplace": "full", "ensemble": "diagonal"}
"""Curvatures that an auxiliary density is made of, see `credence.methods.laplace.curvature`."""
AUXILIARIES: dict[str, Callable[[_Fit], Chosen]] = {
    "tempered": _tempered,
    "ladder": _tempered,
    "prior": _prior,
    "laplace": _laplace,
    "ensemble": _ensemble,
}
"""The functions that make auxiliary densities, by the densities' names."""


@lru_cache(maxsize=256)
def prior(model: BayesianModel) -> Auxiliary:
    """A model's prior, drawn from afresh; G is the likelihood, and the arrays are the data."""
    density = flat_log_prior(model)
    return Auxiliary(
        log_density=lambda position, data, _: density(position, data),
        log_potential=lambda log_target, position, data, _: log_target - density(position, data),
        sample=partial(flat_prior_draw, model),
    )


def _weight_stds(position: Position, posterior: Posterior) -> Float[np.ndarray, " active"]:
    """Standard deviations of every weight of the network alone, the others fixed."""
    values = spectrum(position, posterior, "diagonal", "all").values
    return prior_stds(posterior, "all") / np.sqrt(values + 1)


def _noise_stds(position: Position, posterior: Posterior) -> Float[np.ndarray, " parameter"]:
    """Standard deviations of the likelihood's parameters.

    They are 1 where the log posterior is not concave in them.
    """
    precision = np.diag(likelihood_gaussian(position, posterior).precision)
    return np.where(precision > 0, np.abs(precision) + 1e-12, 1.0) ** -0.5
