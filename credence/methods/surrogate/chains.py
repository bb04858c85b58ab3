"""Chains that move by a surrogate: their kernels, and what tunes them."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from credence.adaptation import windows as tuning
from credence.adaptation.reference import prior_reference, reference_adaptation
from credence.density.posterior import Posterior
from credence.engine.blocks import Block
from credence.engine.phases import Adapter
from credence.errors import InputError, check_name
from credence.kernels.base import Kernel, Settings
from credence.kernels.mcmc.hmc import hmc, nuts
from credence.kernels.mcmc.pcn import pcn
from credence.kernels.sgmcmc.sghmc import sghmc
from credence.methods.surrogate.emulators import Points

SECOND_STAGE = 0.6
"""Acceptance rate of the target that the number of the surrogate's steps is tuned to."""
MOST_STEPS = 1000
"""Of a surrogate's chain per evaluation of the target."""
FRICTION = 0.1
"""Of SGHMC on a surrogate."""
SHORTER = 0.3
"""SGHMC's step over that of an accepted leapfrog: its error is not corrected."""


class Warmup(NamedTuple):
    """What the adapter of a surrogate's chain starts from."""

    key: PRNGKeyArray
    points: Points
    """Of the calibration."""
    posterior: Posterior
    surrogate: Any
    """Log density of (position, arrays)."""
    arrays: Any
    """Of a member of the surrogate."""
    num_rounds: int
    target_acceptance_rate: float
    reference: str


class Sampler(NamedTuple):
    """A surrogate's chain."""

    build: Callable[..., Kernel]
    adapter: Callable[[Warmup], Adapter]
    """Finds its settings."""
    steps: int
    """From draw to draw where no target has a say."""
    evaluations: int
    """Of the surrogate, about as many a step; a gradient counts three."""
    fixed_cost: bool = True
    warms_up: Callable[..., Kernel] | None = None
    """Kernel of the warm-up, where it is another."""
    found: Callable[[Settings], Settings] = lambda settings: settings
    """(settings of the warm-up's kernel) -> the chain's own."""


class Memory(NamedTuple):
    """What the warm-up remembers between rounds."""

    inner: Any
    log_num_steps: np.ndarray


def steps_adaptation(
    sampler: Sampler, start: Warmup, shared: Settings, *, num_steps: int | None, most: int
) -> Adapter:
    """Adapter of the surrogate's kernel, and of its number of steps per evaluation of the target.

    Args:
        sampler, start: the chain, and what the search for its settings starts from.
        shared: other settings, constant.
        num_steps: where it is given; else tuned, up to `most`, to `SECOND_STAGE`.
    """
    inner = sampler.adapter(start)

    def settings(found: Settings, memory: Memory) -> Settings:
        num_steps = np.asarray(np.round(np.exp(memory.log_num_steps)), np.int32)
        return {**shared, "settings": found, "num_steps": num_steps}

    def update(memory: Memory, block: Block) -> Memory:
        info = {**block.info, "acceptance_rate": block.info["first_acceptance_rate"]}
        log_num_steps = memory.log_num_steps
        if num_steps is None and "acceptance_rate" in block.info:
            surplus = float(np.mean(np.asarray(block.info["acceptance_rate"]))) - SECOND_STAGE
            log_num_steps = np.clip(log_num_steps + 2 * surplus, 0.0, np.log(most))
        return Memory(inner.update(memory.inner, block._replace(info=info)), log_num_steps)

    first = Memory(inner.memory, np.log(np.asarray(float(num_steps or 1))))
    return Adapter(
        first,
        lambda memory: settings(inner.settings(memory.inner), memory),
        update,
        tuned=lambda memory: settings(sampler.found(inner.tuned(memory.inner)), memory),
    )


def _metric(start: Warmup) -> Adapter:
    """Step size and metric, from the calibration's variances within chains, if there are any."""
    positions = start.points.positions
    if positions.shape[1] == 1:
        return tuning.first_window_adaptation(
            start.key,
            jnp.asarray(positions[:, 0]),
            start.arrays,
            log_density=start.surrogate,
            num_rounds=start.num_rounds,
            target_acceptance_rate=start.target_acceptance_rate,
        )
    variance = positions.var(axis=1, ddof=1).mean(axis=0)
    return tuning.window_adaptation(
        positions.shape[-1] ** -0.25,
        jnp.asarray(np.maximum(variance, 1e-8 * variance.max())),
        num_rounds=start.num_rounds,
        target_acceptance_rate=start.target_acceptance_rate,
    )


def _reference(start: Warmup) -> Adapter:
    """Step size and reference, the calibration's moments or the prior's."""
    positions = start.points.positions
    if start.reference == "prior" or positions.shape[1] == 1:
        mean, std = map(np.asarray, prior_reference(start.posterior))
    else:
        flat = positions.reshape(-1, positions.shape[-1])
        mean, std = flat.mean(axis=0), flat.std(axis=0)
    return reference_adaptation(
        mean,
        std,
        num_rounds=start.num_rounds,
        target_acceptance_rate=start.target_acceptance_rate,
        fit_reference=start.reference == "posterior",
    )


def _shorter(found: Settings) -> Settings:
    """SGHMC's settings from those of HMC."""
    step_size, dtype = found["step_size"], found["step_size"].dtype
    friction = np.asarray(FRICTION, dtype)
    return {**found, "step_size": np.asarray(SHORTER * step_size, dtype), "friction": friction}


SAMPLERS = {
    "hmc": Sampler(hmc, _metric, 1, 30, fixed_cost=False),
    "nuts": Sampler(nuts, _metric, 1, 100, fixed_cost=False),
    "pcn": Sampler(pcn, _reference, 50, 1),
    "sghmc": Sampler(sghmc, _metric, 50, 3, warms_up=hmc, found=_shorter),
}
"""By name."""


def check_sampler(name: str, is_corrected: bool) -> None:
    """Refuse an unknown chain, or one that nothing can correct."""
    check_name("sampler", name, SAMPLERS)
    if name == "sghmc" and is_corrected:
        raise InputError(
            "SGHMC leaves no density exactly invariant, so that nothing can correct it: use "
            "sampler='hmc' or 'pcn', or correction='none' for what was published."
        )
