"""How particles move between two weighings, tuned from the particles themselves.

Chada, Jasra, Law & Singh, "Bayesian Deep Learning with Multilevel Trace-class Neural Networks",
remark 5.1: the cloud's moments precondition the kernel, its acceptance sets the step size, and
what the particles forget sets how many steps they take.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Array, Float

from credence.errors import check_name, check_numbers, check_share
from credence.kernels.base import Kernel, Recipe, Settings
from credence.kernels.blackjax_kernels import leapfrogs, nuts
from credence.kernels.mala import mala
from credence.kernels.pcn import pcn
from credence.kernels.resampling import RESAMPLING
from credence.kernels.tempering import Bridge, mutation
from credence.methods.tuning import newton_step
from credence.models.priors import require_positive

STEPS_PER_LOOK = 5
"""Of the kernel, between two looks at acceptance and at what the particles still remember."""

PLATEAU = 0.05
"""Growth of the distance per look below which particles are as far away as they get."""

STUCK = 0.99
"""Autocorrelation above which a given number of steps has not moved the particles."""


class StuckParticlesWarning(UserWarning):
    """Particles remember where they came from: evidence and posterior may be off by more than the
    spread of the runs shows."""


@dataclass(frozen=True, kw_only=True)
class Mutation:
    """What moves particles, how far, and when they are weighed again.

    Args:
        kernel: "hmc", "mala", "nuts", "pcn" with the prior as its reference as in the paper, or
            "pcn_cloud" with the moments of the particles as reference. All are exact.
        num_steps: of the kernel at every temperature; None: until the particles have forgotten
            where they came from, or their distance from there grows no more (they fill their
            mode), the step size tuned on the way.
        autocorrelation: of a particle's old and new weights, at which it has forgotten.
        max_steps: bound on num_steps=None.
        target_acceptance_rate: of the step size; None: the kernel's usual one.
        trajectory_length: of HMC, in standard deviations of the particles.
        resampling: "systematic", "stratified", "multinomial" or "residual".
        ess_target: effective sample size of the weights to keep, over the number of particles.
    Raises:
        InputError: for an unknown name or a number out of range.
    """

    kernel: str = "hmc"
    num_steps: int | None = None
    autocorrelation: float = 0.5
    max_steps: int = 100
    target_acceptance_rate: float | None = None
    trajectory_length: float = 1.5
    resampling: str = "systematic"
    ess_target: float = 0.5

    def __post_init__(self) -> None:
        check_numbers(self)
        check_name("mutation kernel", self.kernel, _FAMILIES)
        check_name("resampling", self.resampling, RESAMPLING)
        require_positive(
            max_steps=self.max_steps,
            num_steps=self._steps_per_look,
            trajectory_length=self.trajectory_length,
        )
        check_share(
            autocorrelation=self.autocorrelation,
            ess_target=self.ess_target,
            target_acceptance_rate=self._target,
        )

    def recipe(self, bridge: Bridge) -> Recipe:
        """For the driver."""
        family = _FAMILIES[self.kernel]
        static = (("build", family.build), ("carries_terms", family.build is pcn))
        return Recipe(mutation, bridge, static, family.fixed_cost)

    def first(
        self, reference_mean: Float[Any, " weight"], reference_std: Float[Any, " weight"]
    ) -> "Tuning":
        """Before any particle has moved; the reference is pCN's, a Gaussian prior."""
        return Tuning(
            np.log(np.asarray(_FAMILIES[self.kernel].first_step)),
            np.zeros((), np.int32),
            np.zeros(()),
            np.zeros(()),
            reference_mean,
            reference_std,
            reference_mean,
            reference_std,
        )

    def settings(self, tuning: "Tuning", temperature: Any) -> Settings:
        """Of the mutation at a temperature."""
        return {
            "temperature": temperature,
            "num_steps": np.asarray(self._steps_per_look, np.int32),
            "scale": tuning.std,
            "settings": _FAMILIES[self.kernel].settings(self, tuning),
        }

    def after(self, tuning: "Tuning", info: Mapping[str, Array]) -> "Tuning":
        """Step size by acceptance, and what the particles now remember."""
        family = _FAMILIES[self.kernel]
        acceptance = float(np.mean(np.asarray(info["acceptance_rate"])))
        moved = tuning.log_step_size + newton_step(acceptance, self._target, order=family.order)
        distance, before = np.mean(np.asarray(info["distance"], float)), float(tuning.distance)
        return tuning._replace(
            log_step_size=np.asarray(np.minimum(moved, np.log(family.largest_step))),
            steps_taken=np.asarray(tuning.steps_taken + self._steps_per_look, np.int32),
            distance=np.asarray(distance),
            growth=np.asarray(distance / before - 1 if before > 0 else np.inf),
        )

    def is_done(self, tuning: "Tuning") -> bool:
        """Whether the particles stop at their temperature: moved enough, or out of steps."""
        return (
            self.num_steps is not None
            or self._have_moved(tuning)
            or int(tuning.steps_taken) >= self.max_steps
        )

    def is_stuck(self, tuning: "Tuning") -> bool:
        """Whether they stopped before they had moved enough; where num_steps is given, before they
        had moved at all."""
        if self.num_steps is not None:
            return bool(1 - 0.5 * tuning.distance > STUCK)
        return self.is_done(tuning) and not self._have_moved(tuning)

    def _have_moved(self, tuning: "Tuning") -> bool:
        has_forgotten = 1 - 0.5 * tuning.distance <= self.autocorrelation
        return bool(has_forgotten or tuning.growth < PLATEAU)

    @property
    def _steps_per_look(self) -> int:
        usual = min(STEPS_PER_LOOK, self.max_steps)
        return usual if self.num_steps is None else self.num_steps

    @property
    def _target(self) -> float:
        usual = _FAMILIES[self.kernel].target_acceptance_rate
        return usual if self.target_acceptance_rate is None else self.target_acceptance_rate


class Tuning(NamedTuple):
    """What a mutation is tuned to."""

    log_step_size: Any
    steps_taken: Any
    """At the present temperature."""
    distance: Any
    """Of the particles from where they came to it: mean square, in their variances; twice one
    minus the autocorrelation."""
    growth: Any
    """Of the distance in the last look, as a share."""
    mean: Float[Any, " weight"]
    """Moments of the cloud."""
    std: Float[Any, " weight"]
    reference_mean: Float[Any, " weight"]
    """Moments of a Gaussian prior."""
    reference_std: Float[Any, " weight"]

    def at_next(self, mean: Any, std: Any) -> "Tuning":
        """At a new temperature, with the moments of the cloud weighed for it."""
        none = 0 * self.distance
        return self._replace(
            steps_taken=0 * self.steps_taken, distance=none, growth=none, mean=mean, std=std
        )

    @property
    def step_size(self) -> Any:
        """In the precision of the weights."""
        return np.exp(self.log_step_size).astype(self.std.dtype)


@dataclass(frozen=True)
class _Family:
    """A kernel and how it is set up."""

    build: Callable[..., Kernel]
    settings: Callable[[Mutation, Tuning], Settings]
    target_acceptance_rate: float
    order: float
    """The root of the energy error is proportional to this power of the step size."""
    first_step: float
    largest_step: float = np.inf
    fixed_cost: bool = True


def _from_prior(mutation: Mutation, tuning: Tuning) -> Settings:
    return {
        "step_size": tuning.step_size,
        "reference_mean": tuning.reference_mean,
        "reference_std": tuning.reference_std,
    }


def _from_cloud(mutation: Mutation, tuning: Tuning) -> Settings:
    return {
        "step_size": tuning.step_size,
        "reference_mean": tuning.mean,
        "reference_std": tuning.std,
    }


def _metric(mutation: Mutation, tuning: Tuning) -> Settings:
    return {"step_size": tuning.step_size, "inverse_mass": tuning.std**2}


def _trajectory(mutation: Mutation, tuning: Tuning) -> Settings:
    steps = np.clip(np.ceil(mutation.trajectory_length / tuning.step_size), 1, 64)
    return {**_metric(mutation, tuning), "num_integration_steps": steps.astype(np.int32)}


_FAMILIES = {
    "hmc": _Family(leapfrogs, _trajectory, 0.8, 2.0, 0.3),
    "mala": _Family(mala, _metric, 0.574, 1.5, 0.1),
    "nuts": _Family(nuts, _metric, 0.8, 2.0, 0.3, fixed_cost=False),
    "pcn": _Family(pcn, _from_prior, 0.25, 1.0, 0.5, 0.99),
    "pcn_cloud": _Family(pcn, _from_cloud, 0.25, 1.0, 0.5, 0.99),
}
