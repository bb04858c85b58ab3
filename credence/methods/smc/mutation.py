"""How particles move between two weighings, tuned from the particles themselves.

Chada, Jasra, Law & Singh, "Bayesian Deep Learning with Multilevel Trace-class Neural Networks",
remark 5.1: the cloud's moments precondition the kernel, its acceptance sets the step size, and
what the particles forget sets how many steps they take.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Array, Float

from credence.adaptation.tunable_kernels import Tunable, checked_kernel, tunable_kernel
from credence.adaptation.windows import newton_step
from credence.errors import (
    InputError,
    check_name,
    check_numbers,
    check_share,
    refuse_unread,
    require_positive,
)
from credence.kernels.base import Recipe, Settings
from credence.kernels.mcmc.pcn import pcn
from credence.kernels.resampling import RESAMPLING
from credence.methods.smc.bridge import Bridge, mutation

STEPS_PER_LOOK = 5
"""Steps of the kernel between two looks at acceptance and at what the particles still remember."""

PLATEAU = 0.05
"""Growth of the distance per look below which particles are as far away as they get."""

WASTED = 0.5
"""Share of the target acceptance rate, below which a look only tells that steps were too large:
particles that moved are then the few that could."""

FORGOTTEN = 0.5
"""Usual autocorrelation at which a particle has forgotten where it came from."""

MOST_STEPS = 100
"""Usual bound on the steps at a temperature."""

USUAL_LENGTH = 1.5
"""Usual length of a trajectory, in standard deviations of the particles."""

STUCK = 0.99
"""Autocorrelation above which a given number of steps has not moved the particles."""


class StuckParticlesWarning(UserWarning):
    """Particles remember where they came from: evidence and posterior may be off by more than the
    spread of the runs shows."""


@dataclass(frozen=True, kw_only=True)
class Mutation:
    """What moves particles, how far, and when they are weighed again.

    Args:
        kernel: "hmc", "mala", "nuts", "mclmc", "pcn" with the prior as its reference as in the
            paper, "pcn_cloud" with the moments of the particles as reference, or a `Tunable` of
            your own. All are exact.
        num_steps: of the kernel at every temperature; None: until the particles have forgotten
            where they came from, or their distance from there grows no more (they fill their
            mode), the step size tuned on the way.
        autocorrelation: of a particle's old and new weights, at which it has forgotten, for
            num_steps=None; None is 0.5.
        max_steps: bound on num_steps=None, for every draw of a chain where there are chains; None
            is 100.
        target_acceptance_rate: of the step size; None: the kernel's usual one.
        trajectory_length: of HMC and MCLMC, in standard deviations of the particles; None is 1.5.
        resampling: "systematic", "stratified", "multinomial" or "residual".
        ess_target: effective sample size of the weights to keep, over the number of particles.
    Raises:
        InputError: for an unknown name, a number out of range, and a setting that nothing reads.
    """

    kernel: str | Tunable = "hmc"
    num_steps: int | None = None
    autocorrelation: float | None = None
    max_steps: int | None = None
    target_acceptance_rate: float | None = None
    trajectory_length: float | None = None
    resampling: str = "systematic"
    ess_target: float = 0.5

    def __post_init__(self) -> None:
        check_numbers(self)
        object.__setattr__(self, "kernel", checked_kernel("mutation kernel", self.kernel))
        if "trajectory_length" not in self.tunable.options:
            reader = f"of HMC and MCLMC and nothing to kernel='{self.kernel}'"
            refuse_unread(self, reader, "trajectory_length")
        if self.num_steps is not None:
            reader = f"of num_steps=None, and here num_steps={self.num_steps} says when to stop"
            refuse_unread(self, reader, "autocorrelation", "max_steps")
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
        """The recipe by which the driver builds the mutation on a bridge."""
        build = self.tunable.build
        static = (("build", build), ("carries_terms", build is pcn))
        return Recipe(mutation, bridge, static, self.tunable.fixed_cost)

    @property
    def tunable(self) -> Tunable:
        """The kernel, for particles that move abreast."""
        return tunable_kernel(str(self.kernel)).for_particles

    def first(
        self, reference_mean: Float[Any, " weight"], reference_std: Float[Any, " weight"]
    ) -> "Tuning":
        """The tuning before any particle has moved; the reference is pCN's, a Gaussian prior."""
        return Tuning(
            np.log(np.asarray(self.tunable.first_step)),
            np.zeros((), np.int32),
            np.zeros(()),
            np.zeros(()),
            np.zeros(()),
            reference_mean,
            reference_std,
            reference_mean,
            reference_std,
        )

    def settings(self, tuning: "Tuning", temperature: Any) -> Settings:
        """The mutation's settings at a temperature."""
        is_prior = self.tunable.reference == "prior"
        reference = tuning.reference_mean, tuning.reference_std
        return {
            "temperature": temperature,
            "num_steps": np.asarray(self._steps_per_look, np.int32),
            "scale": tuning.std,
            "settings": self.tunable.settings(
                tuning.step_size,
                tuning.std**2,
                reference if is_prior else (tuning.mean, tuning.std),
                trajectory_length=self.trajectory_length or USUAL_LENGTH,
            ),
        }

    def after(self, tuning: "Tuning", info: Mapping[str, Array]) -> "Tuning":
        """The tuning after a look: a step size by acceptance, and what particles still remember."""
        tunable = self.tunable
        acceptance = float(np.mean(np.asarray(info["acceptance_rate"])))
        moved = tuning.log_step_size + newton_step(acceptance, self._target, order=tunable.order)
        distance, before = np.mean(np.asarray(info["distance"], float)), float(tuning.distance)
        return tuning._replace(
            log_step_size=np.asarray(np.minimum(moved, np.log(tunable.largest_step))),
            steps_taken=np.asarray(tuning.steps_taken + self._steps_per_look, np.int32),
            acceptance_rate=np.asarray(acceptance),
            distance=np.asarray(distance),
            growth=np.asarray(distance / before - 1 if before > 0 else np.inf),
        )

    def is_done(self, tuning: "Tuning") -> bool:
        """Whether the particles stop at their temperature: moved enough by steps of a good size, or
        out of steps."""
        return (
            self.num_steps is not None
            or self._have_moved(tuning)
            or int(tuning.steps_taken) >= self._most_steps
        )

    def is_stuck(self, tuning: "Tuning") -> bool:
        """Whether particles that stop here have not moved enough; where num_steps is given, whether
        they have not moved at all."""
        if self.num_steps is not None:
            return bool(1 - 0.5 * tuning.distance > STUCK)
        return not self._have_moved(tuning)

    @property
    def steps_in_stds(self) -> bool:
        """Whether the cloud's standard deviations are the unit of the steps, not the prior's."""
        return self.tunable.reference != "prior"

    def _have_moved(self, tuning: "Tuning") -> bool:
        if tuning.acceptance_rate < WASTED * self._target:
            return False
        has_forgotten = 1 - 0.5 * tuning.distance <= (self.autocorrelation or FORGOTTEN)
        return bool(has_forgotten or tuning.growth < PLATEAU)

    @property
    def _steps_per_look(self) -> int:
        usual = min(STEPS_PER_LOOK, self._most_steps)
        return usual if self.num_steps is None else self.num_steps

    @property
    def _most_steps(self) -> int:
        return self.max_steps or MOST_STEPS

    @property
    def _target(self) -> float:
        usual = self.tunable.target_acceptance_rate
        return usual if self.target_acceptance_rate is None else self.target_acceptance_rate


def check_mutation(mutation: Any) -> None:
    """Refuse what does not say how particles move, such as the name of a kernel."""
    if not isinstance(mutation, Mutation):
        raise InputError(
            f"mutation must be a Mutation, such as Mutation(kernel='hmc'), got {mutation!r}."
        )


class Tuning(NamedTuple):
    """What a mutation is tuned to."""

    log_step_size: Any
    steps_taken: Any
    """Number of steps taken at the present temperature."""
    acceptance_rate: Any
    """Share of the proposals of the last look that were accepted."""
    distance: Any
    """Mean squared distance of the particles from where they came to the present temperature.

    It is in units of the particles' variances: twice one minus the autocorrelation.
    """
    growth: Any
    """Growth of the distance in the last look, as a share."""
    mean: Float[Any, " weight"]
    """Moments of the cloud."""
    std: Float[Any, " weight"]
    reference_mean: Float[Any, " weight"]
    """Moments of a Gaussian prior."""
    reference_std: Float[Any, " weight"]

    def afresh(self) -> "Tuning":
        """The tuning where particles begin to be looked at: none of what they did before counts."""
        none = 0 * self.distance
        steps_taken = 0 * self.steps_taken
        return self._replace(
            steps_taken=steps_taken, acceptance_rate=none, distance=none, growth=none
        )

    def at_next(self, mean: Any, std: Any, log_change: Any) -> "Tuning":
        """The tuning at a new temperature.

        Args:
            mean, std: moments of the cloud weighed for it.
            log_change: of the step size.
        """
        log_step_size = self.log_step_size + log_change
        return self.afresh()._replace(log_step_size=log_step_size, mean=mean, std=std)

    @property
    def step_size(self) -> Any:
        """The step size, in the precision of the weights."""
        return np.exp(self.log_step_size).astype(self.std.dtype)
