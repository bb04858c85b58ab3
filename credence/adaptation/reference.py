"""Gaussian references of pCN: a prior as numbers, or moments that a warm-up finds."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from credence.adaptation.windows import SMALLEST_VARIANCE, metric_ends, move_step_size
from credence.density.data import num_targets
from credence.density.posterior import Posterior
from credence.engine.blocks import Block
from credence.engine.phases import Adapter
from credence.errors import InputError
from credence.kernels.base import Settings
from credence.kernels.mcmc.pcn import LARGEST_STEP
from credence.models.priors import GaussianPrior


def network_stds(posterior: Posterior) -> Float[np.ndarray, " weight"]:
    """Prior standard deviation of every weight of the network, whose prior is Gaussian."""
    model = posterior.model
    template = model.template(posterior.data).network
    zeros = jax.tree.map(lambda leaf: np.zeros(leaf.shape), template)
    stds = model.prior.stds(model.network, zeros)  # type: ignore[attr-defined]  # Gaussian
    full = jax.tree.map(lambda zero, std: np.broadcast_to(std, zero.shape), zeros, stds)
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(full)]).astype(float)


def prior_reference(
    posterior: Posterior,
) -> tuple[Float[Array, " weight"], Float[Array, " weight"]]:
    """Mean and standard deviation of the prior; a learnt noise gets N(where it starts, 1).

    Raises:
        InputError: where the prior is not Gaussian.
    """
    model = posterior.model
    if not isinstance(model.prior, GaussianPrior):
        raise InputError(
            f"pCN with the prior as reference needs a Gaussian prior, got {model.prior}: use "
            "prior='fan_in', or another reference or kernel."
        )
    stds = network_stds(posterior)
    noise, _ = ravel_pytree(model.likelihood.init(num_targets(posterior.data)))
    mean, std = np.append(np.zeros_like(stds), noise), np.append(stds, np.ones_like(noise))
    return jnp.asarray(mean, float), jnp.asarray(std, float)


class ReferenceMemory(NamedTuple):
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
    """Sum of the window's draws less the reference's mean, and of the squares; in float64."""
    total_square: Float[np.ndarray, " weight"]
    num_draws: np.ndarray


def reference_adaptation(
    mean: Float[np.ndarray, " weight"],
    std: Float[np.ndarray, " weight"],
    *,
    num_rounds: int,
    target_acceptance_rate: float,
    fit_reference: bool,
    order: float = 1.0,
    largest: float = LARGEST_STEP,
) -> Adapter:
    """Adapter of `step_size` and, at the ends of doubling windows, of the reference.

    The reference becomes the mean and standard deviation of all chains' draws in the window.
    """
    ends = metric_ends(num_rounds)
    zero, none = np.zeros(mean.shape), np.zeros(())
    small = np.log(np.asarray(0.1))
    first = ReferenceMemory(none, none, small, small, mean, std, zero, zero, none)

    def settings(memory: ReferenceMemory, log_step_size: Any) -> Settings:
        return {
            "step_size": np.exp(log_step_size).astype(memory.reference_mean.dtype),
            "reference_mean": memory.reference_mean,
            "reference_std": memory.reference_std,
        }

    def update(memory: ReferenceMemory, block: Block) -> ReferenceMemory:
        acceptance = float(np.mean(np.asarray(block.info["acceptance_rate"])))
        draws = np.asarray(block.draws, float).reshape(-1, mean.size) - memory.reference_mean
        memory = move_step_size(memory, acceptance, target_acceptance_rate, order=order)
        memory = memory._replace(
            round=memory.round + 1,
            log_step_size=np.minimum(memory.log_step_size, np.log(largest)),
            total=memory.total + draws.sum(axis=0),
            total_square=memory.total_square + (draws**2).sum(axis=0),
            num_draws=memory.num_draws + len(draws),
        )
        is_end = fit_reference and int(memory.round) in ends
        return _fitted(memory) if is_end else memory

    return Adapter(
        first,
        lambda memory: settings(memory, memory.log_step_size),
        update,
        tuned=lambda memory: settings(
            memory, np.minimum(memory.mean_log_step_size, np.log(largest))
        ),
    )


def _fitted(memory: ReferenceMemory) -> ReferenceMemory:
    """A reference with the window's moments; then a new window."""
    dtype, zero = memory.reference_mean.dtype, np.zeros_like(memory.total)
    shift = memory.total / memory.num_draws
    variance = memory.total_square / memory.num_draws - shift**2
    std = np.sqrt(np.maximum(variance, SMALLEST_VARIANCE))
    return memory._replace(
        rounds_since_metric=np.zeros(()),
        reference_mean=(memory.reference_mean + shift).astype(dtype),
        reference_std=std.astype(dtype),
        total=zero,
        total_square=zero,
        num_draws=np.zeros(()),
    )
