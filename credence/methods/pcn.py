"""Preconditioned Crank-Nicolson: exact, and without gradients."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from credence.adaptation.reference import prior_reference
from credence.adaptation.windows import metric_ends, move_step_size
from credence.density.posterior import Posterior
from credence.engine.blocks import Block
from credence.engine.driver import Driver
from credence.engine.phases import Adapter, fixed
from credence.errors import InputError
from credence.kernels.base import Recipe, Settings
from credence.kernels.mcmc.pcn import LARGEST_STEP, pcn
from credence.methods.base import Drawn
from credence.methods.chains import Chains


@dataclass(frozen=True, kw_only=True)
class PCN(Chains):
    """Preconditioned Crank-Nicolson (Cotter, Roberts, Stuart & White, 2013).

    Args beyond those of `Chains`, whose acceptance rate is .234, optimal in high dimension:
        reference: "prior", the Gaussian prior as in the paper; or "posterior", a Gaussian with the
            running moments of the warm-up's draws. Both are exact.
    """

    name: ClassVar[str] = "pcn"
    reads_disk: ClassVar[bool] = True
    summary: ClassVar[str] = "preconditioned Crank-Nicolson: exact, without gradients"
    round_draws: ClassVar[int] = 10

    num_warmup: int = 10_000
    thinning: int = 50
    target_acceptance_rate: float = 0.234
    reference: str = "posterior"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.reference not in ("prior", "posterior"):
            raise InputError(f"Unknown reference {self.reference!r}: use 'prior' or 'posterior'.")

    def _run(self, key: PRNGKeyArray, posterior: Posterior, driver: Driver) -> Drawn:
        key_train, key_warmup, key_sample = jax.random.split(key, 3)
        prior = prior_reference(posterior) if self.reference == "prior" else None
        start = self._start(key_train, posterior, driver)
        recipe, data = Recipe(pcn, posterior.log_density), posterior.anchored(start[0])
        mean, std = prior or near(start)
        adapter = reference_adaptation(
            np.asarray(mean, start.dtype),
            np.asarray(std, start.dtype),
            num_rounds=self._num_rounds(self.thinning),
            target_acceptance_rate=self.target_acceptance_rate,
            fit_reference=self.reference == "posterior",
        )
        warmup = self._warm_up(
            key_warmup, driver, recipe, start, data, adapter, thinning=self.thinning
        )
        settings = fixed(**tuned(warmup.memory))
        sample = self._sample(
            key_sample, driver, recipe, warmup.positions, data, settings, thinning=self.thinning
        )
        return Drawn.by(sample)


def near(
    positions: Float[Array, "chain weight"],
) -> tuple[Float[Array, " weight"], Float[Array, " weight"]]:
    """A broad reference around where the chains start."""
    return positions.mean(axis=0), jnp.sqrt(positions.var(axis=0) + 0.1)


class Memory(NamedTuple):
    """What the warm-up remembers between rounds (numpy, fixed shapes)."""

    round: np.ndarray
    rounds_since_metric: np.ndarray
    """Rounds since the reference last changed."""
    log_step_size: np.ndarray
    mean_log_step_size: np.ndarray
    """Average since then, its first round left out."""
    reference_mean: Float[np.ndarray, " weight"]
    reference_std: Float[np.ndarray, " weight"]
    total: Float[np.ndarray, " weight"]
    """Sum of the window's draws, and of their squares."""
    total_square: Float[np.ndarray, " weight"]
    num_draws: np.ndarray


def reference_adaptation(
    mean: Float[np.ndarray, " weight"],
    std: Float[np.ndarray, " weight"],
    *,
    num_rounds: int,
    target_acceptance_rate: float,
    fit_reference: bool,
) -> Adapter:
    """Adapter of `step_size` and, at the ends of doubling windows, of the reference.

    The reference becomes the mean and standard deviation of all chains' draws in the window.
    """
    ends = metric_ends(num_rounds)
    zero, none = np.zeros_like(mean), np.zeros(())
    small = np.log(np.asarray(0.1))
    first = Memory(none, none, small, small, mean, std, zero, zero, none)

    def settings(memory: Memory) -> Settings:
        return _settings(memory, memory.log_step_size)

    def update(memory: Memory, block: Block) -> Memory:
        acceptance = float(np.mean(np.asarray(block.info["acceptance_rate"])))
        draws = np.asarray(block.draws).reshape(-1, mean.size)
        memory = move_step_size(memory, acceptance, target_acceptance_rate, order=1.0)
        memory = memory._replace(
            round=memory.round + 1,
            log_step_size=np.minimum(memory.log_step_size, np.log(LARGEST_STEP)),
            total=memory.total + draws.sum(axis=0),
            total_square=memory.total_square + (draws**2).sum(axis=0),
            num_draws=memory.num_draws + len(draws),
        )
        is_end = fit_reference and int(memory.round) in ends
        return _fitted(memory) if is_end else memory

    return Adapter(first, settings, update)


def tuned(memory: Memory) -> Settings:
    """The settings to sample with: the averaged step size and the last reference."""
    return _settings(memory, np.minimum(memory.mean_log_step_size, np.log(LARGEST_STEP)))


def _settings(memory: Memory, log_step_size: Any) -> Settings:
    return {
        "step_size": np.exp(log_step_size).astype(memory.reference_mean.dtype),
        "reference_mean": memory.reference_mean,
        "reference_std": memory.reference_std,
    }


def _fitted(memory: Memory) -> Memory:
    """A reference with the window's moments; then a new window."""
    mean = memory.total / memory.num_draws
    variance = np.maximum(memory.total_square / memory.num_draws - mean**2, 1e-8)
    zero = np.zeros_like(mean)
    return memory._replace(
        rounds_since_metric=np.zeros(()),
        reference_mean=mean,
        reference_std=np.sqrt(variance).astype(mean.dtype),
        total=zero,
        total_square=zero,
        num_draws=np.zeros(()),
    )
