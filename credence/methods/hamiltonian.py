"""HMC, NUTS, MALA and MCLMC: exact samplers on a posterior's gradient.

Train a member per chain, find step size and metric in a warm-up pooled over chains, then sample
with both frozen.
"""

import math
import time
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import jax
from jaxtyping import Array, Float, PRNGKeyArray

from credence.adaptation.tunable_kernels import check_weights, tunable_kernel
from credence.adaptation.windows import first_window_adaptation
from credence.density.posterior import Posterior
from credence.engine.driver import Driver
from credence.errors import require_positive
from credence.kernels.base import Recipe
from credence.kernels.mcmc.hmc import hmc, nuts
from credence.kernels.mcmc.mala import one_leapfrog
from credence.kernels.mcmc.microcanonical import adjusted_mclmc, check_lengths
from credence.methods.base import Drawn
from credence.methods.chains import TrainedChains, shares_passes

Positions = Float[Array, "chain weight"]


@dataclass(frozen=True, kw_only=True)
class Hamiltonian(TrainedChains):
    """What these samplers share.

    Arguments as `TrainedChains`; the acceptance rate is .8 as in Stan.
    """

    reads_disk: ClassVar[bool] = True

    @abstractmethod
    def _recipe(self, posterior: Posterior) -> Recipe:
        """The kernel, with a step size and a metric as its settings."""

    def _within(self, most_gradients: Callable[[], int]) -> "Hamiltonian":
        """This sampler with trajectories of so many gradients at most, where they can be long."""
        return self

    def _run(self, key: PRNGKeyArray, posterior: Posterior, driver: Driver) -> Drawn:
        key_train, key_step, key_warmup, key_sample, key_scout = jax.random.split(key, 5)
        start = self._start(key_train, posterior, driver)
        data = posterior.anchored(start[0])
        adapter = first_window_adaptation(
            key_step,
            start,
            data,
            log_density=posterior.log_density,
            num_rounds=self._rounds().number,
            target_acceptance_rate=self.target_acceptance_rate,
        )
        sampler = self
        if driver.max_seconds is not None:
            sampler = self._within(partial(gradients_in_time, posterior, start, driver))
            if sampler != self:
                driver.progress.say(
                    f"Trajectories are shortened, so that {driver.max_seconds:.3g} seconds last "
                    "for some draws; the draws are exact, but less independent."
                )
        plan = self._rounds().plan(sampler._recipe(posterior), adapter)
        warmup = driver.phase("warmup", key_warmup, plan, start, data)
        plan = self._sample_plan(plan, warmup.memory, thinning=self.thinning)
        sample = driver.phase("sample", key_sample, plan, warmup.positions, data)
        starts = self._scout(key_scout, posterior, driver, plan, sample, data)
        return Drawn.by(sample)._replace(found=starts)


@dataclass(frozen=True, kw_only=True)
class NUTS(Hamiltonian):
    """The no-U-turn sampler (Hoffman & Gelman, 2014).

    Args beyond those of `Hamiltonian`:
        max_doublings: a trajectory has at most 2^max_doublings - 1 gradients; fewer where a time
            budget would not last for ten of them.
    """

    name: ClassVar[str] = "nuts"
    summary: ClassVar[str] = "no-U-turn sampler: exact, the reference"
    sources: ClassVar[tuple[str, ...]] = (
        (
            'Hoffman & Gelman, "The No-U-Turn sampler: adaptively setting path lengths in '
            'Hamiltonian Monte Carlo" (2014)'
        ),
    )

    max_doublings: int = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(max_doublings=self.max_doublings)

    def _recipe(self, posterior: Posterior) -> Recipe:
        static = (("max_doublings", self.max_doublings),)
        return Recipe(nuts, posterior.log_density, static, fixed_cost=shares_passes(posterior))

    def _within(self, most_gradients: Callable[[], int]) -> "Hamiltonian":
        return replace(self, max_doublings=min(self.max_doublings, doublings(most_gradients())))


@dataclass(frozen=True, kw_only=True)
class Leapfrogs(Hamiltonian):
    """A sampler whose trajectories are leapfrogs of a chosen integration time: HMC and MCLMC.

    Args beyond those of `Hamiltonian`:
        trajectory_length: mean integration time, in units where the posterior's scales are 1.
        max_integration_steps: bound on the gradients of one trajectory; lower where a time budget
            would not last for ten of them.
    """

    trajectory_length: float = 1.0
    max_integration_steps: int = 256

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(
            trajectory_length=self.trajectory_length,
            max_integration_steps=self.max_integration_steps,
        )

    def _within(self, most_gradients: Callable[[], int]) -> "Hamiltonian":
        most = min(self.max_integration_steps, most_gradients())
        return replace(self, max_integration_steps=most)


@dataclass(frozen=True, kw_only=True)
class HMC(Leapfrogs):
    """Hamiltonian Monte Carlo with jittered trajectories (Duane et al., 1987).

    Arguments as `Leapfrogs`.
    """

    name: ClassVar[str] = "hmc"
    summary: ClassVar[str] = "Hamiltonian Monte Carlo: exact"
    sources: ClassVar[tuple[str, ...]] = (
        'Duane, Kennedy, Pendleton & Roweth, "Hybrid Monte Carlo" (1987)',
        'Neal, "Bayesian learning for neural networks" (1996)',
    )

    def _recipe(self, posterior: Posterior) -> Recipe:
        static = (
            ("max_integration_steps", self.max_integration_steps),
            ("trajectory_length", self.trajectory_length),
        )
        return Recipe(hmc, posterior.log_density, static, fixed_cost=shares_passes(posterior))


@dataclass(frozen=True, kw_only=True)
class MALA(Hamiltonian):
    """The Metropolis-adjusted Langevin algorithm (Roberts & Tweedie, 1996).

    Arguments as `Hamiltonian`; the acceptance rate is the optimal one of Roberts & Rosenthal,
    "Optimal scaling of discrete approximations to Langevin diffusions" (1998).
    """

    name: ClassVar[str] = "mala"
    summary: ClassVar[str] = "Metropolis-adjusted Langevin algorithm: exact"
    sources: ClassVar[tuple[str, ...]] = (
        (
            'Roberts & Tweedie, "Exponential convergence of Langevin distributions and '
            'their discrete approximations" (1996)'
        ),
    )

    num_warmup: int = 2000
    thinning: int = 20
    target_acceptance_rate: float = 0.574

    def _recipe(self, posterior: Posterior) -> Recipe:
        return Recipe(one_leapfrog, posterior.log_density)


@dataclass(frozen=True, kw_only=True)
class MCLMC(Leapfrogs):
    """Metropolis-adjusted microcanonical Langevin Monte Carlo with persistent direction: exact.

    Args beyond those of `Leapfrogs`:
        decoherence_length: integration time in which the direction is forgotten.
    """

    name: ClassVar[str] = "mclmc"
    summary: ClassVar[str] = "microcanonical Langevin Monte Carlo, Metropolis-adjusted: exact"
    sources: ClassVar[tuple[str, ...]] = (
        'Robnik, De Luca, Silverstein & Seljak, "Microcanonical Hamiltonian Monte Carlo" (2023)',
        (
            'Robnik, Cohn-Gordon & Seljak, "Metropolis adjusted microcanonical Hamiltonian '
            'Monte Carlo" (2025)'
        ),
    )

    num_warmup: int = 200
    target_acceptance_rate: float = 0.9
    max_integration_steps: int = 1024
    decoherence_length: float = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_lengths(self.trajectory_length, self.decoherence_length)

    def prepared(self, posterior: Posterior) -> Posterior:
        """The posterior itself; refuses a single weight."""
        check_weights(tunable_kernel(self.name), posterior.num_weights)
        return posterior

    def _recipe(self, posterior: Posterior) -> Recipe:
        static = (
            ("decoherence_length", self.decoherence_length),
            ("max_integration_steps", self.max_integration_steps),
            ("trajectory_length", self.trajectory_length),
        )
        return Recipe(adjusted_mclmc, posterior.log_density, static)


LONGEST = 10
"""Trajectories of full length that a time budget lasts for: both phases make some at any rate."""


def gradients_in_time(posterior: Posterior, positions: Positions, driver: Driver) -> int:
    """The most gradients of a trajectory that the time left allows; a resumed run has as many."""

    def decide() -> int:
        return gradients_in(driver.seconds_left, gradient_seconds(posterior, positions))

    return driver.decided("gradients", int, decide)


def gradients_in(seconds: float, seconds_per_gradient: float) -> int:
    """The most gradients of trajectories of which `LONGEST` fit in so many seconds, at least 1."""
    return max(1, math.floor(seconds / (LONGEST * seconds_per_gradient)))


def doublings(most_gradients: int) -> int:
    """The doublings of a trajectory of at most so many gradients, at least 1."""
    return max(1, math.floor(math.log2(most_gradients)))


def gradient_seconds(posterior: Posterior, positions: Positions) -> float:
    """Wall time of a gradient at all positions, compiled before it is timed."""
    gradients = jax.jit(jax.vmap(jax.grad(posterior.log_density), (0, None)))
    jax.block_until_ready(gradients(positions, posterior.data))
    start = time.perf_counter()
    jax.block_until_ready(gradients(positions, posterior.data))
    return time.perf_counter() - start
