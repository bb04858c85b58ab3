"""Linear kernels of interacting particles, by name: how each is built, set up and tuned."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from credence.adaptation.reference import prior_reference
from credence.adaptation.windows import first_window_adaptation, window_adaptation
from credence.density.posterior import Data, LogDensity, Posterior
from credence.engine.phases import Adapter
from credence.kernels.base import Kernel, Settings
from credence.kernels.mcmc.hmc import leapfrogs
from credence.kernels.mcmc.mala import one_leapfrog
from credence.kernels.mcmc.pcn import LARGEST_STEP, pcn


class LinearKernel(NamedTuple):
    """A kernel whose State follows from its position, so that a jump may overwrite it."""

    build: Callable[..., Kernel]
    settings: Callable[[Settings, Posterior, float], Settings]
    """(step size and metric, posterior, trajectory length) -> the kernel's."""
    target_acceptance_rate: float


def _metric(found: Settings, posterior: Posterior, trajectory_length: float) -> Settings:
    return found


def _trajectory(found: Settings, posterior: Posterior, trajectory_length: float) -> Settings:
    steps = np.clip(np.ceil(trajectory_length / found["step_size"]), 1, 64)
    return {**found, "num_integration_steps": steps.astype(np.int32)}


def _from_prior(found: Settings, posterior: Posterior, trajectory_length: float) -> Settings:
    mean, std = prior_reference(posterior)
    step_size = np.minimum(found["step_size"], LARGEST_STEP).astype(found["step_size"].dtype)
    return {"step_size": step_size, "reference_mean": mean, "reference_std": std}


FIRST_PCN_STEP = 0.3
"""Of the warm-up."""
LINEAR_KERNELS = {
    "hmc": LinearKernel(leapfrogs, _trajectory, 0.8),
    "mala": LinearKernel(one_leapfrog, _metric, 0.574),
    "pcn": LinearKernel(pcn, _from_prior, 0.234),
}


def tuning(
    name: str,
    key: PRNGKeyArray,
    members: Float[Array, "particle weight"],
    data: Data,
    *,
    log_density: LogDensity,
    num_rounds: int,
    target_acceptance_rate: float | None,
) -> Adapter:
    """Of the kernel's step size, and of a metric if it has one; see `methods.tuning`.

    Args:
        target_acceptance_rate: None is the kernel's usual one.
    """
    target = target_acceptance_rate or LINEAR_KERNELS[name].target_acceptance_rate
    if name == "pcn":
        return window_adaptation(
            FIRST_PCN_STEP,
            jnp.ones(members.shape[1], members.dtype),
            num_rounds=num_rounds,
            target_acceptance_rate=target,
            add_draws=lambda memory, draws: memory,  # it has no metric
            order=1.0,
            largest=LARGEST_STEP,
        )
    return first_window_adaptation(
        key,
        members,
        data,
        log_density=log_density,
        num_rounds=num_rounds,
        target_acceptance_rate=target,
    )
