"""Langevin and Hamiltonian samplers on minibatches: biased by their step size, cheap per step.

Train a member per chain, find a metric in a warm-up pooled over chains, then sample with both step
size and metric frozen. All chains see the same minibatches.
"""

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from credence.adaptation.gradient_metric import gradient_metric
from credence.density.posterior import Posterior
from credence.engine.driver import Driver
from credence.engine.phases import Adapter, PhaseResult, fixed
from credence.engine.plan import Plan
from credence.errors import (
    InputError,
    Interrupted,
    check_name,
    refuse_unread,
    require_positive,
)
from credence.kernels.base import Kernel, Recipe, Settings
from credence.kernels.mcmc.gibbs import with_gibbs
from credence.kernels.sgmcmc.cyclical import CyclicalState, cyclical
from credence.kernels.sgmcmc.rms_sgld import rms_sgld
from credence.kernels.sgmcmc.sghmc import check_friction, scale_adapted_sghmc, sghmc
from credence.kernels.sgmcmc.ula import ula
from credence.methods.base import Drawn
from credence.methods.chains import Rounds, TrainedChains
from credence.methods.minibatch_steps import (
    check_batch_size,
    friction_noise,
    minibatch_rows,
    rms_settings,
    usual_friction,
)
from credence.models.priors import HierarchicalGamma

EXPLORATION = 0.5
"""Usual share of a cycle that explores."""
FEWEST_ROUNDS = 8
"""Rounds of a warm-up: a metric that is found in one serves no step of it, and rests on as many
gradients as there are chains."""


@dataclass(frozen=True, kw_only=True)
class StochasticGradient(TrainedChains):
    """What these samplers share.

    Args beyond those of `TrainedChains`:
        thinning: None makes it 10 passes over the data, at least 20 steps.
        step_size: as the kernel's; None finds, in the warm-up's metric, the largest whose leapfrogs
            with full gradients would be accepted at target_acceptance_rate. The bias grows with it.
        preconditioner: "warmup", the metric of `credence.adaptation.gradient_metric`; "none"; or
            that of the kernel's own paper.
        batch_size: rows per step, from shuffled epochs, the same for all chains; "all" uses all
            rows, and None those up to 8192, 1024 beyond, and of images 128.
        num_cycles: of a cosine step size (Zhang et al., 2020); 0 keeps the step size constant.
        exploration_share: of each cycle, without noise and without draws; None is 0.5.
        gibbs: draw a hierarchical prior's precisions from their conditional law after every step.
    """

    streams: ClassVar[bool] = True
    round_draws: ClassVar[int] = 10
    published: ClassVar[str]
    """The preconditioner of the kernel's own paper."""

    num_warmup: int = 4000
    thinning: int | None = None  # type: ignore[assignment]
    target_acceptance_rate: float = 0.9
    step_size: float | None = None
    preconditioner: str = "warmup"
    batch_size: int | str | None = None
    num_cycles: int = 0
    exploration_share: float | None = None
    gibbs: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(step_size=self.step_size)
        check_batch_size(self.batch_size)
        check_name("preconditioner", self.preconditioner, ("warmup", self.published, "none"))
        if not 0 <= self._exploration_share < 1:
            raise InputError(
                f"exploration_share must be in [0, 1), got {self.exploration_share}; 0.5 is usual."
            )
        if self.num_cycles < 0 or self.num_cycles > self.num_draws:
            raise InputError(
                f"num_cycles must be between 0 and num_draws={self.num_draws}, "
                f"got {self.num_cycles}."
            )
        if self.gibbs and self.num_cycles:
            raise InputError("gibbs=True and num_cycles > 0 do not go together: choose one.")
        self._check_that_all_settings_matter()

    def _check_that_all_settings_matter(self) -> None:
        """Refuse those that nothing would read."""
        if not self.num_cycles:
            refuse_unread(self, "of cycles, and num_cycles=0 has none", "exploration_share")
        is_tuned = self.step_size is None and self.preconditioner != self.published
        if not is_tuned:
            reader = (
                "of a step size that the warm-up tunes, which it does not with "
                f"step_size={self.step_size} and preconditioner='{self.preconditioner}'"
            )
            refuse_unread(self, reader, "target_acceptance_rate")

    @property
    def _exploration_share(self) -> float:
        return EXPLORATION if self.exploration_share is None else self.exploration_share

    def _check_stream(self) -> None:
        """Refuse cycles too, whose explorations are no draws."""
        super()._check_stream()
        if self.num_cycles:
            raise InputError(
                f"num_cycles={self.num_cycles} chooses among the draws when all are there, and "
                "cannot average predictions as they come: use run(), or num_cycles=0."
            )

    @abstractmethod
    def _kernel(self) -> Callable[..., Kernel]:
        """The builder of the kernel."""

    @abstractmethod
    def _published_settings(self, posterior: Posterior) -> tuple[Settings, Settings]:
        """Settings of the kernel with the preconditioner of its own paper: while it adapts, and
        when it no longer does."""

    @abstractmethod
    def _stable(self, leapfrog: Any, num_rows: int, num_points: int) -> Any:
        """The kernel's step size from a leapfrog's in the same metric, with num_rows per step."""

    def _settings(self, metric: Settings, posterior: Posterior) -> Settings:
        """The kernel's settings from those of the metric."""
        found = self._stable(metric["step_size"], self._rows(posterior), posterior.num_points)
        step_size = found if self.step_size is None else self.step_size
        return {**metric, "step_size": np.asarray(step_size, metric["inverse_mass"].dtype)}

    def _adapter(self, key: PRNGKeyArray, posterior: Posterior, positions: Any) -> Adapter:
        """What finds the settings in the warm-up."""
        if self.preconditioner == self.published:
            adapting, frozen = self._published_settings(posterior)
            return Adapter((), lambda memory: adapting, tuned=lambda memory: frozen)
        metric = gradient_metric(
            key,
            posterior,
            positions,
            num_rounds=self._warmup_rounds(posterior).number,
            target_acceptance_rate=self.target_acceptance_rate if self.step_size is None else None,
            unit_metric=self.preconditioner == "none",
        )
        return Adapter(
            metric.memory,
            lambda memory: self._settings(metric.settings(memory), posterior),
            metric.update,
            tuned=lambda memory: self._settings(metric.tuned(memory), posterior),
        )

    def _steps_per_draw(self, posterior: Posterior) -> int:
        return self.thinning or max(20, 10 * -(-posterior.num_points // self._rows(posterior)))

    def _warmup_rounds(self, posterior: Posterior) -> Rounds:
        """Rounds of as many steps as draws are apart, or of fewer, so that there are enough."""
        most = max(1, self.num_warmup // (FEWEST_ROUNDS * self.round_draws))
        return self._rounds(min(self._steps_per_draw(posterior), most))

    @abstractmethod
    def _rows(self, posterior: Posterior) -> int:
        """Rows that a step sees."""

    def _run(self, key: PRNGKeyArray, posterior: Posterior, driver: Driver) -> Drawn:
        if self.gibbs and not isinstance(posterior.model.prior, HierarchicalGamma):
            raise InputError(f"gibbs=True needs prior='hierarchical', got {posterior.model.prior}.")
        thinning = self._steps_per_draw(posterior)  # may refuse batch_size
        key_train, key_metric, key_warmup, key_sample = jax.random.split(key, 4)
        start, data = self._start(key_train, posterior, driver), posterior.data
        adapter = self._adapter(key_metric, posterior, start)
        recipe = Recipe(self._kernel(), posterior.log_density)
        if self.gibbs:
            static = (("kernel", self._kernel()), ("model", posterior.model))
            recipe = Recipe(with_gibbs, posterior.log_density, static)
        plan = self._warmup_rounds(posterior).plan(recipe, adapter)
        plan = replace(plan, batch_size=self._rows(posterior))
        warmup = driver.phase("warmup", key_warmup, plan, start, data)
        plan = self._sample_plan(plan, warmup.memory, thinning=thinning)
        return self._draws(key_sample, posterior, driver, plan, warmup)

    def _draws(
        self,
        key: PRNGKeyArray,
        posterior: Posterior,
        driver: Driver,
        plan: Plan,
        warmup: PhaseResult,
    ) -> Drawn:
        """Phase "sample", by the plan or by one that is made of it."""
        if self.num_cycles:
            return self._cycles(key, posterior, driver, plan, warmup.states)
        return Drawn.by(driver.phase("sample", key, plan, warmup.states, posterior.data))

    def _cycles(
        self,
        key: PRNGKeyArray,
        posterior: Posterior,
        driver: Driver,
        plan: Plan,
        states: Any,
    ) -> Drawn:
        """Draws of the sampling part of every cycle, on from states of the kernel: they hold what
        it learnt in the warm-up."""
        draws_per_cycle = -(-self.num_draws // self.num_cycles)
        length = math.ceil(draws_per_cycle / (1 - self._exploration_share)) * plan.thinning
        num_exploring = length - draws_per_cycle * plan.thinning
        cycles = fixed(
            **plan.settings,
            steps_per_cycle=np.int32(length),
            exploration_share=np.float32((num_exploring - 0.5) / length),  # not at a step
        )
        plan = replace(
            plan,
            recipe=Recipe(cyclical, posterior.log_density, (("kernel", self._kernel()),)),
            adapter=cycles,
            num_steps=self.num_cycles * length,
            block_steps=length,
        )
        start = CyclicalState(states, jnp.zeros(self.num_chains, jnp.int32))
        sample = driver.phase("sample", key, plan, start, posterior.data)
        kept = np.flatnonzero(sample.info["is_exploring"][0] == 0)[: self.num_draws]
        if len(kept) == 0:
            raise Interrupted("Stopped while the first cycle explored, before there was a draw.")
        return Drawn(
            sample.draws[:, kept],
            {name: values[:, kept] for name, values in sample.info.items()},
        )


@dataclass(frozen=True, kw_only=True)
class Langevin(StochasticGradient):
    """What Langevin samplers share.

    Args beyond those of `StochasticGradient`:
        preconditioner: its own is "rms", Li et al. (2016), frozen after the warm-up (step_size,
            there 1e-3 / rows by default, is then in its units).
    """

    published: ClassVar[str] = "rms"

    def _kernel(self) -> Callable[..., Kernel]:
        return rms_sgld if self.preconditioner == "rms" else ula

    def _published_settings(self, posterior: Posterior) -> tuple[Settings, Settings]:
        return rms_settings(self.step_size, posterior.num_points, np.float32)

    def _stable(self, leapfrog: Any, num_rows: int, num_points: int) -> Any:
        """Along a direction of precision p (in the metric) a step h adds h p / 4 to the variance,
        and the noise of b of N rows N/b - 1 times that: h is the square of a leapfrog's, times b/N.
        """
        return leapfrog**2 * num_rows / num_points


@dataclass(frozen=True, kw_only=True)
class SGLD(Langevin):
    """Stochastic gradient Langevin dynamics (Welling & Teh, 2011).

    Arguments as `Langevin`.
    """

    name: ClassVar[str] = "sgld"
    summary: ClassVar[str] = "stochastic gradient Langevin dynamics (biased by the step size)"
    sources: ClassVar[tuple[str, ...]] = (
        'Welling & Teh, "Bayesian learning via stochastic gradient Langevin dynamics" (2011)',
    )

    def _rows(self, posterior: Posterior) -> int:
        return minibatch_rows(self.batch_size, posterior)


@dataclass(frozen=True, kw_only=True)
class ULA(Langevin):
    """The unadjusted Langevin algorithm: `SGLD` with all rows in every step.

    Arguments as `Langevin`, but batch_size, which is refused.
    """

    name: ClassVar[str] = "ula"
    summary: ClassVar[str] = "unadjusted Langevin algorithm (biased by the step size)"
    sources: ClassVar[tuple[str, ...]] = (
        (
            'Roberts & Tweedie, "Exponential convergence of Langevin distributions and '
            'their discrete approximations" (1996)'
        ),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.batch_size is not None:
            raise InputError(
                f"ula takes all rows in every step, got batch_size={self.batch_size}: leave it "
                "out, or use sgld, which takes minibatches."
            )

    def _rows(self, posterior: Posterior) -> int:
        return posterior.num_points


@dataclass(frozen=True, kw_only=True)
class SGHMC(StochasticGradient):
    """Stochastic gradient Hamiltonian Monte Carlo (Chen, Fox & Guestrin, 2014).

    As there, no injected noise is left out for that of the gradients: shuffled epochs cancel most
    of it, and the step size bounds the rest. "scale_adapted" leaves it out as Springenberg et al.
    do, but for the share of the squared gradients that is none: with b of N rows they are about
    N / b times the precision, so 1 - b / N of them is noise, and nothing where a step sees all.

    Args beyond those of `StochasticGradient`:
        friction: share of the velocity lost per step, in (0, 1]; None is .01 where a step sees all
            rows and .1 where it does not (`benchmarks/friction.py`).
        preconditioner: its own is "scale_adapted", Springenberg et al. (2016), with step_size .03
            by default.
    """

    name: ClassVar[str] = "sghmc"
    summary: ClassVar[str] = "stochastic gradient Hamiltonian Monte Carlo (biased by the step size)"
    sources: ClassVar[tuple[str, ...]] = (
        'Chen, Fox & Guestrin, "Stochastic gradient Hamiltonian Monte Carlo" (2014)',
    )

    published: ClassVar[str] = "scale_adapted"

    friction: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.friction is not None:
            check_friction(self.friction)

    def _rows(self, posterior: Posterior) -> int:
        return minibatch_rows(self.batch_size, posterior)

    def _kernel(self) -> Callable[..., Kernel]:
        return scale_adapted_sghmc if self.preconditioner == "scale_adapted" else sghmc

    def _published_settings(self, posterior: Posterior) -> tuple[Settings, Settings]:
        frozen = {
            "step_size": np.float32(self.step_size or 0.03),
            "friction": np.float32(self._friction(self._rows(posterior), posterior.num_points)),
            "is_adapting": np.asarray(False),
            "noise_share": np.float32(1 - self._rows(posterior) / posterior.num_points),
        }
        return {**frozen, "is_adapting": np.asarray(True)}, frozen

    def _settings(self, metric: Settings, posterior: Posterior) -> Settings:
        settings = super()._settings(metric, posterior)
        friction = self._friction(self._rows(posterior), posterior.num_points)
        return {**settings, "friction": np.asarray(friction, settings["step_size"].dtype)}

    def _friction(self, num_rows: int, num_points: int) -> float:
        """The friction that was asked for, or the usual one."""
        return self.friction or usual_friction(num_rows, num_points)

    def _stable(self, leapfrog: Any, num_rows: int, num_points: int) -> Any:
        """The gradients' noise and the step together add to the variance what a leapfrog may."""
        friction = self._friction(num_rows, num_points)
        return leapfrog / (1 + friction_noise(friction, num_rows, num_points)) ** 0.5
