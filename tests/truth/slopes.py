"""Orders of accuracy: how errors fall when the step is halved."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from tools.targets import standard

from credence.kernels.base import Kernel
from credence.kernels.mcmc.hmc import hmc
from credence.kernels.mcmc.mala import mala
from credence.kernels.mcmc.microcanonical import adjusted_mclmc, mclmc
from credence.kernels.sgmcmc.sghmc import sghmc
from credence.kernels.sgmcmc.ula import ula

from .cells import Size, long_chains
from .rows import ones
from .targets import of_gaussian

PerChain = Float[np.ndarray, " chain"]
FINITE_STEP = 0.3
"""How far a slope between finite steps may be from its limit."""


class Slope(NamedTuple):
    """log2 of the ratio of an error at steps h and h / 2."""

    kernel: str
    quantity: str
    theory: float
    measured: float
    error: float
    """Standard error of `measured`."""


def between(kernel: str, quantity: str, theory: float, coarse: PerChain, fine: PerChain) -> Slope:
    """The slope of means over chains that ran with the same keys; its error by the delta method."""
    relative = coarse / coarse.mean() - fine / fine.mean()
    error = relative.std(ddof=1) / len(coarse) ** 0.5 / np.log(2)
    return Slope(
        kernel, quantity, theory, float(np.log2(coarse.mean() / fine.mean())), float(error)
    )


TARGET = of_gaussian(standard(20))


def one_step(
    build: Callable[..., Kernel],
    quantity: str,
    theory: float,
    read: Callable[[Any], Any],
    step_size: float,
    settings: dict[str, Any],
    size: Size,
) -> Slope:
    """Slope of what Info says about one step, a trajectory of fixed length where there is one."""
    starts = TARGET.sample(5, size.num_chains)

    def error(step_size: float) -> PerChain:
        every = {"step_size": step_size, "inverse_mass": ones(TARGET), **settings}
        _, info = long_chains(build, TARGET.log_density, 1, every, TARGET.data, starts, 6)
        return np.asarray(read(info))[:, 0]

    return between(build.__name__, quantity, theory, error(step_size), error(step_size / 2))


def stationary(
    build: Callable[..., Kernel],
    theory: float,
    step_size: float,
    num_steps: int,
    settings: Callable[[float], dict[str, Any]],
    size: Size,
    label: str = "",
) -> Slope:
    """Slope of the mean square's bias, over chains of a fixed length; a third is for warm-up."""
    starts = TARGET.sample(5, size.num_chains // 8)

    def error(step_size: float, num_steps: int) -> PerChain:
        every = {"step_size": step_size, "inverse_mass": ones(TARGET), **settings(step_size)}
        draws, _ = long_chains(build, TARGET.log_density, num_steps, every, TARGET.data, starts, 7)
        return np.mean(np.asarray(draws)[:, num_steps // 3 :] ** 2, axis=(1, 2)) - 1

    coarse, fine = error(step_size, num_steps), error(step_size / 2, 2 * num_steps)
    return between(build.__name__ + label, "bias of E w^2", theory, coarse, fine)


def slope_jobs(size: Size) -> list[Callable[[], Slope]]:
    """All slopes, not yet run."""
    refused = lambda info: 1 - info.acceptance_rate  # noqa: E731
    energy = lambda info: abs(info.energy_change)  # noqa: E731
    length = {"trajectory_length": 1.6}
    walk = {"trajectory_length": 3.2}
    none: Callable[[float], dict[str, Any]] = lambda step: {}  # noqa: E731
    decohering: Callable[[float], dict[str, Any]] = lambda step: {"decoherence_length": 2.0}  # noqa: E731
    fixed: Callable[[float], dict[str, Any]] = lambda step: {"friction": 0.3}  # noqa: E731
    rate: Callable[[float], dict[str, Any]] = lambda step: {"friction": 0.5 * step}  # noqa: E731
    return [
        partial(one_step, hmc, "mean refusal", 2.0, refused, 0.2, length, size),
        partial(
            one_step,
            adjusted_mclmc,
            "mean absolute energy error",
            2.0,
            energy,
            0.2,
            walk,
            size,
        ),
        partial(one_step, mala, "mean refusal", 1.5, refused, 0.1, {}, size),
        partial(stationary, mclmc, 2.0, 0.8, 100, decohering, size),
        partial(stationary, ula, 1.0, 0.3, 600, none, size),
        partial(stationary, sghmc, 2.0, 0.6, 600, fixed, size, ", friction fixed"),
        partial(stationary, sghmc, 2.0, 0.6, 600, rate, size, ", friction per time fixed"),
    ]
