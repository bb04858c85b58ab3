"""Langevin and Hamiltonian samplers on minibatches: biased by their step size, cheap per step.

Train a member per chain, find a metric in a warm-up pooled over chains, then sample with both step
size and metric frozen. All chains see the same minibatches.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from credence.errors import InputError, Interrupted
from credence.kernels.base import Kernel, Recipe, Settings
from credence.kernels.cyclical import cyclical
from credence.kernels.gibbs import with_gibbs
from credence.kernels.rms_sgld import rms_sgld
from credence.kernels.sghmc import check_friction, scale_adapted_sghmc, sghmc
from credence.kernels.ula import ula
from credence.methods.base import Drawn, Method
from credence.methods.deep_ensemble import Training, train
from credence.methods.preconditioning import gradient_metric, tuned
from credence.methods.schedules import rows_per_step
from credence.models.priors import HierarchicalGamma, require_positive
from credence.posterior import Posterior
from credence.run import Adapter, Driver, PhaseResult, fixed

ROUND = 10
"""Draws in a round of the warm-up, and between checkpoints: one program serves both."""


@dataclass(frozen=True, kw_only=True)
class StochasticGradient(Method):
    """What these samplers share.

    Args:
        num_draws: per chain, after warm-up.
        num_chains: independent chains but for their common minibatches.
        num_warmup: steps per chain to find the metric.
        thinning: steps per draw; None makes it 10 passes over the data, at least 20 steps.
        step_size: as the kernel's; None finds, in the warm-up's metric, the largest whose leapfrogs
            with full gradients would be accepted at target_acceptance_rate. The bias grows with it.
        target_acceptance_rate: see there.
        batch_size: rows per step, from shuffled epochs; None uses all rows up to 1024, 128 beyond.
        num_cycles: of a cosine step size (Zhang et al., 2020); 0 keeps the step size constant.
        exploration_share: of each cycle, without noise and without draws.
        gibbs: draw a hierarchical prior's precisions from their conditional law after every step.
        training: of the members where chains start.
    """

    num_draws: int = 1000
    num_chains: int = 4
    num_warmup: int = 4000
    thinning: int | None = None
    step_size: float | None = None
    target_acceptance_rate: float = 0.9
    batch_size: int | None = None
    num_cycles: int = 0
    exploration_share: float = 0.5
    gibbs: bool = False
    training: Training = field(default=Training())

    def __post_init__(self) -> None:
        require_positive(
            num_draws=self.num_draws,
            num_chains=self.num_chains,
            num_warmup=self.num_warmup,
            thinning=self.thinning or 1,
            step_size=1 if self.step_size is None else self.step_size,
            batch_size=self.batch_size or 1,
        )
        if not 0 <= self.exploration_share < 1:
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

    def _kernel(self) -> tuple[Callable[..., Kernel], tuple[tuple[str, Any], ...]]:
        """The builder, and its static settings."""
        raise NotImplementedError

    def _adapter(self, key: PRNGKeyArray, posterior: Posterior, positions: Any) -> Adapter:
        """What finds the settings in the warm-up."""
        raise NotImplementedError

    def _frozen(self, memory: Any, posterior: Posterior) -> Settings:
        """The settings to sample with, from what the warm-up remembers."""
        raise NotImplementedError

    def _steps_per_draw(self, posterior: Posterior) -> int:
        return self.thinning or max(20, 10 * -(-posterior.num_points // self._rows(posterior)))

    def _rows(self, posterior: Posterior) -> int:
        if self.batch_size is not None and self.batch_size > posterior.num_points:
            raise InputError(
                f"batch_size={self.batch_size} is more than the {posterior.num_points} rows: use "
                "at most that, or None for all."
            )
        return rows_per_step(self.batch_size, posterior.num_points)

    def _run(self, key: PRNGKeyArray, posterior: Posterior, driver: Driver) -> Drawn:
        if self.gibbs and not isinstance(posterior.model.prior, HierarchicalGamma):
            raise InputError(f"gibbs=True needs prior='hierarchical', got {posterior.model.prior}.")
        batch_size, thinning = self._rows(posterior), self._steps_per_draw(posterior)
        key_train, key_metric, key_warmup, key_sample = jax.random.split(key, 4)
        start = train(
            key_train, posterior, driver, self.num_chains, self.training, budget_share=0.25
        )
        adapter = self._adapter(key_metric, posterior, start.positions)
        build, static = self._kernel()
        if self.gibbs:
            static = (("kernel", build), ("model", posterior.model), *static)
            build = with_gibbs
        warmup = driver.phase(
            "warmup",
            key_warmup,
            Recipe(build, posterior.log_density, static),
            start.positions,
            posterior.data,
            adapter,
            num_steps=self.num_warmup,
            thinning=thinning,
            block_steps=ROUND * thinning,
            batch_size=batch_size,
            keep_draws=False,
            budget_share=0.5,
        )
        settings = self._frozen(warmup.memory, posterior)
        if self.num_cycles:
            return self._sample_cycles(key_sample, posterior, driver, warmup, settings)
        sample = driver.phase(
            "sample",
            key_sample,
            Recipe(build, posterior.log_density, static),
            warmup.positions,
            posterior.data,
            fixed(**settings),
            num_steps=self.num_draws * thinning,
            thinning=thinning,
            block_steps=ROUND * thinning,
            batch_size=batch_size,
            may_stop_early=True,
            states=warmup.states,
        )
        return Drawn(sample.draws, sample.info)

    def _sample_cycles(
        self,
        key: PRNGKeyArray,
        posterior: Posterior,
        driver: Driver,
        warmup: PhaseResult,
        settings: Settings,
    ) -> Drawn:
        """Draws of the sampling part of every cycle."""
        kernel, static = self._kernel()
        draws_per_cycle = -(-self.num_draws // self.num_cycles)
        thinning = self._steps_per_draw(posterior)
        length = math.ceil(draws_per_cycle / (1 - self.exploration_share)) * thinning
        sample = driver.phase(
            "sample",
            key,
            Recipe(cyclical, posterior.log_density, (("kernel", kernel), *static)),
            warmup.positions,
            posterior.data,
            fixed(
                **settings,
                steps_per_cycle=np.int32(length),
                exploration_share=np.float32(self.exploration_share),
            ),
            num_steps=self.num_cycles * length,
            thinning=thinning,
            block_steps=length,
            batch_size=self._rows(posterior),
            may_stop_early=True,
        )
        kept = np.flatnonzero(sample.info["is_exploring"][0] == 0)[: self.num_draws]
        if len(kept) == 0:
            raise Interrupted("Stopped while the first cycle explored, before there was a draw.")
        return Drawn(
            sample.draws[:, kept],
            {name: values[:, kept] for name, values in sample.info.items()},
        )


@dataclass(frozen=True, kw_only=True)
class SGLD(StochasticGradient):
    """Stochastic gradient Langevin dynamics (Welling & Teh, 2011).

    Args beyond those of `StochasticGradient`:
        preconditioner: "warmup", the metric of `credence.methods.preconditioning`; "none"; or
            "rms", Li et al. (2016), frozen after the warm-up (step_size, there 1e-3 / rows by
            default, is then in its units).
    """

    name: ClassVar[str] = "sgld"
    summary: ClassVar[str] = "stochastic gradient Langevin dynamics (biased by the step size)"

    preconditioner: str = "warmup"

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_preconditioner(self.preconditioner, "rms")

    def _kernel(self) -> tuple[Callable[..., Kernel], tuple[tuple[str, Any], ...]]:
        return (rms_sgld if self.preconditioner == "rms" else ula), ()

    def _adapter(self, key: PRNGKeyArray, posterior: Posterior, positions: Any) -> Adapter:
        if self.preconditioner == "rms":
            step_size = self.step_size or 1e-3 / posterior.num_points
            return fixed(step_size=np.float32(step_size), decay=np.float32(0.99))
        metric = metric_adapter(self, key, posterior, positions)
        return Adapter(
            metric.memory,
            lambda memory: self._langevin(metric.settings(memory), posterior),
            metric.update,
        )

    def _frozen(self, memory: Any, posterior: Posterior) -> Settings:
        if self.preconditioner == "rms":
            return {**memory, "decay": np.float32(1.0)}
        return self._langevin(tuned(memory), posterior)

    def _langevin(self, settings: Settings, posterior: Posterior) -> Settings:
        """The kernel's settings from those of the metric.

        Along a direction of precision p (in the metric) a step h adds h p / 4 to the variance, and
        the noise of b of N rows N/b - 1 times that: h is the square of a leapfrog's, times b/N.
        """
        inverse_mass = settings["inverse_mass"]
        found = settings["step_size"] ** 2 * self._rows(posterior) / posterior.num_points
        step_size = found if self.step_size is None else self.step_size
        return {
            "step_size": np.asarray(step_size, inverse_mass.dtype),
            "inverse_mass": inverse_mass,
        }


@dataclass(frozen=True, kw_only=True)
class ULA(SGLD):
    """The unadjusted Langevin algorithm: `SGLD` with all rows in every step."""

    name: ClassVar[str] = "ula"
    summary: ClassVar[str] = "unadjusted Langevin algorithm (biased by the step size)"

    def _steps_per_draw(self, posterior: Posterior) -> int:
        return self.thinning or max(20, 10 * -(-posterior.num_points // self._rows(posterior)))

    def _rows(self, posterior: Posterior) -> int:
        return posterior.num_points


@dataclass(frozen=True, kw_only=True)
class SGHMC(StochasticGradient):
    """Stochastic gradient Hamiltonian Monte Carlo (Chen, Fox & Guestrin, 2014).

    As there, no injected noise is left out for that of the gradients: shuffled epochs cancel most
    of it, and the step size bounds the rest.

    Args beyond those of `StochasticGradient`:
        friction: share of the velocity lost per step, in (0, 1].
        preconditioner: "warmup", the metric of `credence.methods.preconditioning`; "none"; or
            "scale_adapted", Springenberg et al. (2016), with step_size .03 by default.
    """

    name: ClassVar[str] = "sghmc"
    summary: ClassVar[str] = "stochastic gradient Hamiltonian Monte Carlo (biased by the step size)"

    friction: float = 0.1
    preconditioner: str = "warmup"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_friction(self.friction)
        _check_preconditioner(self.preconditioner, "scale_adapted")

    def _kernel(self) -> tuple[Callable[..., Kernel], tuple[tuple[str, Any], ...]]:
        return (scale_adapted_sghmc if self.preconditioner == "scale_adapted" else sghmc), ()

    def _adapter(self, key: PRNGKeyArray, posterior: Posterior, positions: Any) -> Adapter:
        if self.preconditioner == "scale_adapted":
            return fixed(
                step_size=np.float32(self.step_size or 0.03),
                friction=np.float32(self.friction),
                is_adapting=np.asarray(True),
            )
        metric = metric_adapter(self, key, posterior, positions)
        return Adapter(
            metric.memory,
            lambda memory: self._with_friction(metric.settings(memory), posterior),
            metric.update,
        )

    def _frozen(self, memory: Any, posterior: Posterior) -> Settings:
        if self.preconditioner == "scale_adapted":
            return {**memory, "is_adapting": np.asarray(False)}
        return self._with_friction(tuned(memory), posterior)

    def _with_friction(self, settings: Settings, posterior: Posterior) -> Settings:
        """The kernel's settings from those of the metric.

        Along a direction of precision p (in the metric) the noise of b of N rows adds to the
        variance step_size^2 p (N/b - 1) / (2 friction): kept at what the step itself may add.
        """
        dtype = settings["inverse_mass"].dtype
        noise = (posterior.num_points / self._rows(posterior) - 1) / (2 * self.friction)
        found = settings["step_size"] / (1 + noise) ** 0.5
        step_size = found if self.step_size is None else self.step_size
        return {
            **settings,
            "step_size": np.asarray(step_size, dtype),
            "friction": np.asarray(self.friction, dtype),
        }


def metric_adapter(
    method: SGLD | SGHMC, key: PRNGKeyArray, posterior: Posterior, positions: Any
) -> Adapter:
    """What finds step size and metric in the warm-up."""
    return gradient_metric(
        key,
        posterior,
        positions,
        num_rounds=max(1, round(method.num_warmup / (ROUND * method._steps_per_draw(posterior)))),
        target_acceptance_rate=method.target_acceptance_rate,
        unit_metric=method.preconditioner == "none",
    )


def _check_preconditioner(value: str, published: str) -> None:
    if value not in ("warmup", published, "none"):
        raise InputError(
            f"Unknown preconditioner {value!r}: use 'warmup', {published!r} or 'none'."
        )
