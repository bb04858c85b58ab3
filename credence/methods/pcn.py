"""Preconditioned Crank-Nicolson: exact, and without gradients."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from credence.errors import InputError
from credence.kernels.base import Recipe, Settings
from credence.kernels.pcn import pcn
from credence.methods.base import Drawn, Method
from credence.methods.deep_ensemble import Training, train
from credence.methods.tuning import metric_ends, move_step_size
from credence.models.priors import GaussianPrior, require_positive
from credence.posterior import Params, Posterior
from credence.run import Adapter, Block, Driver, fixed

ROUND = 10
"""Draws in a round of the warm-up, and between checkpoints: one program serves both."""


@dataclass(frozen=True, kw_only=True)
class PCN(Method):
    """Preconditioned Crank-Nicolson (Cotter, Roberts, Stuart & White, 2013).

    Args:
        num_draws: per chain, after warm-up.
        num_chains: independent chains.
        num_warmup: steps per chain to tune the step size, and the reference where it is fitted.
        thinning: steps per draw.
        reference: "prior", the Gaussian prior as in the paper; or "posterior", a Gaussian with the
            running moments of the warm-up's draws. Both are exact.
        target_acceptance_rate: of the proposals; .234 is optimal in high dimension.
        training: of the members where chains start.
    """

    name: ClassVar[str] = "pcn"
    summary: ClassVar[str] = "preconditioned Crank-Nicolson: exact, without gradients"

    num_draws: int = 1000
    num_chains: int = 4
    num_warmup: int = 10_000
    thinning: int = 50
    reference: str = "posterior"
    target_acceptance_rate: float = 0.234
    training: Training = field(default=Training())

    def __post_init__(self) -> None:
        require_positive(
            num_draws=self.num_draws,
            num_chains=self.num_chains,
            num_warmup=self.num_warmup,
            thinning=self.thinning,
        )
        if self.reference not in ("prior", "posterior"):
            raise InputError(f"Unknown reference {self.reference!r}: use 'prior' or 'posterior'.")
        if not 0 < self.target_acceptance_rate < 1:
            raise InputError(
                f"target_acceptance_rate must be between 0 and 1, got "
                f"{self.target_acceptance_rate}; .234 is usual."
            )

    def _run(self, key: PRNGKeyArray, posterior: Posterior, driver: Driver) -> Drawn:
        key_train, key_warmup, key_sample = jax.random.split(key, 3)
        prior = prior_reference(posterior) if self.reference == "prior" else None
        start = train(
            key_train, posterior, driver, self.num_chains, self.training, budget_share=0.25
        )
        recipe, data = Recipe(pcn, posterior.log_density), posterior.anchored(start.positions[0])
        mean, std = prior or near(start.positions)
        block_steps = ROUND * self.thinning
        adapter = reference_adaptation(
            np.asarray(mean, start.positions.dtype),
            np.asarray(std, start.positions.dtype),
            num_rounds=max(1, round(self.num_warmup / block_steps)),
            target_acceptance_rate=self.target_acceptance_rate,
            fit_reference=self.reference == "posterior",
        )
        warmup = driver.phase(
            "warmup",
            key_warmup,
            recipe,
            start.positions,
            data,
            adapter,
            num_steps=self.num_warmup,
            thinning=self.thinning,
            block_steps=block_steps,
            keep_draws=False,
            budget_share=0.5,
        )
        sample = driver.phase(
            "sample",
            key_sample,
            recipe,
            warmup.positions,
            data,
            fixed(**tuned(warmup.memory)),
            num_steps=self.num_draws * self.thinning,
            thinning=self.thinning,
            block_steps=block_steps,
            may_stop_early=True,
        )
        return Drawn(sample.draws, sample.info)


def prior_reference(
    posterior: Posterior,
) -> tuple[Float[Array, " weight"], Float[Array, " weight"]]:
    """Mean and standard deviation of the prior; a learnt noise gets N(where it starts, 1).

    Raises:
        InputError: where the prior is not Gaussian.
    """
    model, data = posterior.model, posterior.data
    if not isinstance(model.prior, GaussianPrior):
        raise InputError(
            f"pCN with the prior as reference needs a Gaussian prior, got {model.prior}: use "
            "prior='fan_in', or reference='posterior'."
        )
    template = model.template(data)
    zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), template.network)
    stds = jax.tree.map(
        lambda leaf, std: jnp.broadcast_to(jnp.asarray(std, leaf.dtype), leaf.shape),
        zeros,
        model.prior.stds(model.network, zeros),
    )
    noise = model.likelihood.init(data.y.shape[1] if data.y.ndim == 2 else 1)
    ones = jax.tree.map(jnp.ones_like, noise)
    return posterior.ravel(Params(zeros, noise, ())), posterior.ravel(Params(stds, ones, ()))


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
            log_step_size=np.minimum(memory.log_step_size, np.log(0.99)),
            total=memory.total + draws.sum(axis=0),
            total_square=memory.total_square + (draws**2).sum(axis=0),
            num_draws=memory.num_draws + len(draws),
        )
        is_end = fit_reference and int(memory.round) in ends
        return _fitted(memory) if is_end else memory

    return Adapter(first, settings, update)


def tuned(memory: Memory) -> Settings:
    """The settings to sample with: the averaged step size and the last reference."""
    return _settings(memory, np.minimum(memory.mean_log_step_size, np.log(0.99)))


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
