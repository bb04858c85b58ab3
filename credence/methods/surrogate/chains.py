"""Chains that move by a surrogate: their kernels, and what tunes them."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from credence.adaptation.reference import prior_reference, reference_adaptation
from credence.adaptation.tunable_kernels import Tunable, checked_kernel, tunable_kernel
from credence.adaptation.windows import window_adaptation
from credence.density.posterior import Posterior
from credence.engine.blocks import Block
from credence.engine.phases import Adapter
from credence.errors import InputError
from credence.kernels.base import Kernel, Settings
from credence.kernels.sgmcmc.sghmc import sghmc
from credence.methods.surrogate.correction import Correction
from credence.methods.surrogate.emulators import Points

SECOND_STAGE = 0.6
"""Acceptance rate of the target that the number of the surrogate's steps is tuned to."""
MOST_STEPS = 1000
"""Most steps of a surrogate's chain per evaluation of the target."""
SGHMC = "sghmc"
"""The one chain that is no row of `credence.adaptation.tunable_kernels`: it has no exact law."""
EVALUATIONS = 50
"""Evaluations of the surrogate from draw to draw, where no target has a say."""
FRICTION = 0.1
"""Friction of SGHMC on a surrogate."""
SHORTER = 0.3
"""SGHMC's step over that of an accepted leapfrog: its error is not corrected."""


class Warmup(NamedTuple):
    """What the adapter of a surrogate's chain starts from."""

    key: PRNGKeyArray
    points: Points
    """The points of the calibration."""
    posterior: Posterior
    surrogate: Any
    """Log density of (position, arrays)."""
    arrays: Any
    """Arrays of a member of the surrogate."""
    num_rounds: int
    target_acceptance_rate: float
    reference: str


class Sampler(NamedTuple):
    """A chain that moves by a surrogate."""

    build: Callable[..., Kernel]
    steps: int
    """Steps from draw to draw where no target has a say."""
    fixed_cost: bool
    warmup: Tunable
    """Moves in the warm-up."""
    found: Callable[[Settings], Settings] = lambda settings: settings
    """(its settings) -> the chain's own."""
    warmup_steps: int | None = None
    """Steps of the warm-up in place of the chain's, where it moves by another kernel."""


def sampler_named(name: str) -> Sampler:
    """A chain by the name of its kernel.

    "sghmc", as published, leaves no density invariant; HMC finds its metric.
    """
    kernel = tunable_kernel("hmc" if name == SGHMC else name)
    kernel = kernel.reversible_together or kernel
    steps = max(1, EVALUATIONS // kernel.evaluations)
    if name == SGHMC:
        return Sampler(sghmc, EVALUATIONS, True, kernel, _shorter, steps)
    return Sampler(kernel.build, steps, kernel.fixed_cost, kernel)


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
        num_steps: where it is given; else tuned, up to `most`, to `SECOND_STAGE`. A warm-up by
            another kernel has a number of its own.
    """
    inner = chain_adaptation(sampler.warmup, start)
    in_warmup = num_steps and (sampler.warmup_steps or num_steps)

    def settings(found: Settings, num_steps: float) -> Settings:
        return {**shared, "settings": found, "num_steps": np.asarray(np.round(num_steps), np.int32)}

    def current(memory: Memory) -> float:
        return float(np.exp(memory.log_num_steps))

    def update(memory: Memory, block: Block) -> Memory:
        info = {**block.info, "acceptance_rate": block.info["first_acceptance_rate"]}
        log_num_steps = memory.log_num_steps
        if num_steps is None and "acceptance_rate" in block.info:
            surplus = float(np.mean(np.asarray(block.info["acceptance_rate"]))) - SECOND_STAGE
            log_num_steps = np.clip(log_num_steps + 2 * surplus, 0.0, np.log(most))
        return Memory(inner.update(memory.inner, block._replace(info=info)), log_num_steps)

    def tuned(memory: Memory) -> Settings:
        found = sampler.found(inner.tuned(memory.inner))
        return settings(found, num_steps or current(memory))

    return Adapter(
        Memory(inner.memory, np.log(np.asarray(float(in_warmup or 1)))),
        lambda memory: settings(inner.settings(memory.inner), current(memory)),
        update,
        tuned=tuned,
    )


def chain_adaptation(kernel: Tunable, start: Warmup) -> Adapter:
    """What tunes a kernel along a surrogate, from where the calibration ended."""
    return (_metric if kernel.reference is None else _reference)(kernel, start)


def _metric(kernel: Tunable, start: Warmup) -> Adapter:
    """Step size and metric, from the calibration's variances within chains, if there are any."""
    positions = start.points.positions
    if positions.shape[1] == 1:
        return kernel.tuning(
            start.key,
            jnp.asarray(positions[:, 0]),
            start.arrays,
            log_density=start.surrogate,
            num_rounds=start.num_rounds,
            target_acceptance_rate=start.target_acceptance_rate,
        )
    variance = positions.var(axis=1, ddof=1).mean(axis=0)
    return window_adaptation(
        positions.shape[-1] ** -0.25,
        jnp.asarray(np.maximum(variance, 1e-8 * variance.max())),
        num_rounds=start.num_rounds,
        target_acceptance_rate=start.target_acceptance_rate,
        order=kernel.order,
        largest=kernel.largest_step,
    )


def _reference(kernel: Tunable, start: Warmup) -> Adapter:
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
        order=kernel.order,
        largest=kernel.largest_step,
    )


def _shorter(found: Settings) -> Settings:
    """SGHMC's settings from those of HMC."""
    step_size, dtype = found["step_size"], found["step_size"].dtype
    friction = np.asarray(FRICTION, dtype)
    return {**found, "step_size": np.asarray(SHORTER * step_size, dtype), "friction": friction}


def with_step(adapter: Adapter, step_size: float) -> Adapter:
    """The same adapter, of `steps_adaptation`, with a step size that is given."""

    def given(settings: Settings) -> Settings:
        found = settings["settings"]
        step = np.asarray(step_size, np.asarray(found["step_size"]).dtype)
        return {**settings, "settings": {**found, "step_size": step}}

    return Adapter(
        adapter.memory,
        lambda memory: given(adapter.settings(memory)),
        adapter.update,
        tuned=lambda memory: given(adapter.tuned(memory)),
    )


def has_reference(sampler: str) -> bool:
    """Whether a chain moves around a Gaussian reference."""
    return sampler != SGHMC and tunable_kernel(sampler).reference is not None


def check_step(step_size: float, sampler: str) -> None:
    """Refuse a step that is too large for a chain.

    Raises:
        InputError: for a step of pCN above 1.
    """
    largest = np.inf if sampler == SGHMC else tunable_kernel(sampler).largest_step
    if step_size > largest:
        raise InputError(
            f"step_size must be at most {largest:g} with sampler='{sampler}', got {step_size:g}."
        )


def checked_sampler(sampler: str | Tunable, correction: Correction) -> str:
    """The name of what moves along an emulator.

    Raises:
        InputError: for an unknown chain, or one that the correction cannot correct.
    """
    if sampler != SGHMC:
        return checked_kernel("sampler", sampler, correction.why_not)
    if not correction.takes_sghmc:
        raise InputError(
            "SGHMC leaves no density exactly invariant, so that nothing can correct it: use "
            "sampler='hmc' or 'pcn', or correction='none' for what was published."
        )
    return SGHMC
