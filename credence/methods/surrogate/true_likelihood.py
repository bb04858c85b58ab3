"""What the true likelihood says of an emulator's draws: points to learn from, weights, checks."""

import warnings
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from credence.density.data import Data
from credence.density.posterior import BayesianModel, Posterior, flat_log_prior
from credence.engine.driver import Driver
from credence.engine.plan import Plan
from credence.ensembles.diagnostics.importance import (
    MIN_DRAWS,
    MOST_PARETO_K,
    Smoothed,
    normalised,
    pareto_smoothed,
)
from credence.errors import InputError
from credence.kernels.base import Recipe
from credence.kernels.evaluation.evaluation import value
from credence.methods.base import Drawn
from credence.methods.surrogate.emulators import Emulated, Points, emulate
from credence.spacing import evenly_spaced

CHECKED = 50
"""Draws per chain whose true likelihood says how far an uncorrected emulator is off."""


class UnreliableWeightsWarning(UserWarning):
    """Importance weights whose tail is too heavy."""


UnreliableWeights = UnreliableWeightsWarning
"""The name of the warning in earlier versions."""


class Target(NamedTuple):
    """What is sampled, and what runs the phases."""

    posterior: Posterior
    data: Data
    """Anchored at a draw of the calibration."""
    driver: Driver


def points_at(
    name: str, key: PRNGKeyArray, positions: Float[np.ndarray, "chain draw weight"], target: Target
) -> Points:
    """What an emulator can learn at positions, evaluated as a phase of the driver."""
    posterior, data = target.posterior, target.data
    flat = jnp.asarray(positions.reshape(-1, positions.shape[-1]))
    plan = Plan(Recipe(value, posterior.log_density), name, num_steps=1, keep_draws=False)
    found = target.driver.phase(name, key, plan, flat, data)
    log_priors = np.asarray(_log_priors(flat, data, model=posterior.model), float)
    log_densities = np.asarray(found.states.log_density, float)
    values = (log_densities - log_priors, log_densities)
    return Points(positions, *(value.reshape(positions.shape[:2]) for value in values))


def check_points(points: Points) -> None:
    """Refuse what nothing can be learnt from.

    Raises:
        InputError: where the log likelihood is not finite, or the same everywhere.
    """
    if not np.all(np.isfinite(points.log_likelihoods)):
        raise InputError(
            "The log likelihood is not finite at some draws of the calibration, so that no "
            "emulator can learn it: check the likelihood, or calibrate for longer."
        )
    if points.log_likelihoods.shape[1] > 1 and np.ptp(points.log_likelihoods) < 1e-6:
        raise InputError(
            "The log likelihood is the same at all draws of the calibration: either its chains do "
            "not move (smaller steps, or calibration='pcn'), or the data say nothing about the "
            "weights, and draws of the prior would do."
        )


def reweighed(key: PRNGKeyArray, drawn: Drawn, emulated: Emulated, target: Target) -> Drawn:
    """Each chain's draws with Pareto-smoothed importance weights, chains counting the same."""
    positions = np.asarray(drawn.positions)
    points = points_at("reweigh", key, positions, target)
    by_emulator = emulate(emulated, positions)
    log_ratios = points.log_likelihoods - by_emulator
    smoothed = [_weights_of(chain) for chain in log_ratios]
    worst = max(found.pareto_k for found in smoothed)
    if np.isnan(worst):
        warnings.warn(
            f"Time left {log_ratios.shape[1]} draws per chain, too few to judge their importance "
            f"weights by: Pareto smoothing needs {MIN_DRAWS}. Give more seconds.",
            UnreliableWeightsWarning,
            stacklevel=2,
        )
    if worst > MOST_PARETO_K:
        warnings.warn(
            f"Importance weights are not to be trusted: Pareto k-hat {worst:.2f} is above "
            f"{MOST_PARETO_K}. The emulator's draws miss part of the posterior; use "
            "correction='delayed_acceptance'.",
            UnreliableWeightsWarning,
            stacklevel=2,
        )
    shape = log_ratios.shape
    scalars = {
        "log_density": points.log_densities,
        "log_surrogate": points.log_densities + by_emulator - points.log_likelihoods,
        "pareto_k": np.broadcast_to([[found.pareto_k] for found in smoothed], shape),
    }
    weights = np.stack([found.weights for found in smoothed]) / shape[0]
    return drawn._replace(scalars=drawn.scalars | scalars, weights=weights)


def _weights_of(log_ratios: Float[np.ndarray, " draw"]) -> Smoothed:
    """Smoothed weights; those of too few draws as they are, with a tail index of NaN."""
    if len(log_ratios) >= MIN_DRAWS:
        return pareto_smoothed(log_ratios)
    return Smoothed(normalised(log_ratios), np.nan)


def checked(key: PRNGKeyArray, drawn: Drawn, emulated: Emulated, target: Target) -> Drawn:
    """True and emulated log density at a few draws of every chain, NaN at the others: it changes
    nothing, but tells how far the emulator is off where it led."""
    positions = np.asarray(drawn.positions)
    num_chains, num_draws, _ = positions.shape
    some = evenly_spaced(num_draws, CHECKED)
    points = points_at("reweigh", key, positions[:, some], target)
    log_priors = points.log_densities - points.log_likelihoods
    values = {
        "log_density": points.log_densities,
        "log_surrogate": log_priors + emulate(emulated, points.positions),
    }
    scalars = {name: np.full((num_chains, num_draws), np.nan) for name in values}
    for name, known in values.items():
        scalars[name][:, some] = known
    return drawn._replace(scalars=drawn.scalars | scalars)


@partial(jax.jit, static_argnames="model")
def _log_priors(
    positions: Float[Array, "point weight"], data: Data, *, model: BayesianModel
) -> Float[Array, " point"]:
    return jax.vmap(flat_log_prior(model), (0, None))(positions, data)
