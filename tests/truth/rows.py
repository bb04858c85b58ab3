"""The kernels of the table, each with settings that follow from a target's widths and dimension.

Where theory says how a step must shrink with the dimension d to keep the acceptance, it does from
d = 20 on: d^(-1/4) for leapfrogs, d^(-1/3) for MALA's variance, d^(-1/2) for pCN.
A new kernel joins with a row in `EXACT`; it needs nothing else.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from credence.kernels.base import Kernel
from credence.kernels.mcmc.gibbs import gibbs_precisions, with_gibbs
from credence.kernels.mcmc.hmc import hmc, nuts
from credence.kernels.mcmc.mala import mala
from credence.kernels.mcmc.microcanonical import adjusted_mclmc, mclmc
from credence.kernels.mcmc.pcn import pcn
from credence.kernels.sgmcmc.rms_sgld import rms_sgld
from credence.kernels.sgmcmc.sghmc import scale_adapted_sghmc, sghmc
from credence.kernels.sgmcmc.ula import ula
from credence.methods.interacting.auxiliary import MIXTURE, gaussian
from credence.methods.interacting.kernel import interacting
from credence.methods.surrogate.surrogate_hmc import surrogate_hmc

from .targets import HIERARCHY, Target


class Row(NamedTuple):
    """A kernel; every setting that is not an array belongs into `build`."""

    name: str
    build: Callable[..., Kernel]
    settings: Callable[[Target], dict[str, Any]]
    num_steps: Callable[[Target], int]
    """Number of steps after which a chain has moved well away from its start."""
    num_draws: int
    """Number of draws of each long chain."""
    only: str = ""
    """The one target it can move on, if there is only one."""
    counts_rows: bool = False
    """Whether it scales by the number of data, which targets without data do not have."""


def shrink(target: Target, power: float) -> float:
    """(20 / d)^power, at most 1."""
    return min(1.0, 20 / target.dimension) ** power


def leapfrog(target: Target) -> float:
    """A good leapfrog step."""
    return 0.8 * float(target.scale.stds[0]) * shrink(target, 1 / 4)


def ones(target: Target) -> Any:
    """An inverse mass of ones: no preconditioning."""
    return jnp.ones(target.dimension)


def hmc_settings(target: Target) -> dict[str, Any]:
    """Settings of HMC and adjusted MCLMC."""
    return {
        "step_size": leapfrog(target),
        "inverse_mass": ones(target),
        "trajectory_length": 1.5 * float(target.scale.stds[-1]),
    }


def nuts_settings(target: Target) -> dict[str, Any]:
    """Settings of NUTS."""
    return {"step_size": leapfrog(target), "inverse_mass": ones(target)}


def mala_settings(target: Target) -> dict[str, Any]:
    """Settings of MALA."""
    variance = 0.8 * float(target.scale.stds[0]) ** 2 * shrink(target, 1 / 3)
    return {"step_size": variance, "inverse_mass": ones(target)}


def pcn_settings(target: Target) -> dict[str, Any]:
    """Settings of pCN: a reference a little off, and wider, so that the accept ratio matters."""
    std = np.linalg.norm(target.scale.cholesky, axis=1)
    return {
        "step_size": 0.6 * shrink(target, 1 / 2),
        "reference_mean": jnp.asarray(target.scale.mean + 0.1 * std),
        "reference_std": jnp.asarray(1.1 * std),
    }


def surrogate_settings(target: Target) -> dict[str, Any]:
    """Settings of HMC along a Gaussian surrogate: another mean, wider, without correlations."""
    std = np.linalg.norm(target.scale.cholesky, axis=1)
    return {
        "step_size": leapfrog(target),
        "inverse_mass": ones(target),
        "surrogate": jnp.asarray([target.scale.mean + 0.1 * std, 0.9 / std**2]),
    }


class Cloud(NamedTuple):
    """Two particles, and where the first is."""

    position: Any
    states: Any


def first_of_two(log_density: Any, **settings: Any) -> Kernel:
    """The first of two interacting particles: both start where it does, and with fresh partners and
    accept-reject jumps it has the law of the target whatever the other one does. Its Info has the
    work of both."""
    kernel = interacting(log_density, axes=("particle",), **settings)

    def init(position: Any, data: Any) -> Cloud:
        both = jnp.stack([position, position])
        return Cloud(position, jax.vmap(kernel.init, (0, None))(both, data))

    def step(key: Any, cloud: Cloud, data: Any) -> tuple[Cloud, Any]:
        both = jax.vmap(kernel.step, (0, 0, None), axis_name="particle")
        states, info = both(jax.random.split(key), cloud.states, data)
        return Cloud(states.position[0], states), jax.tree.map(jnp.sum, info)

    return Kernel(init, step)


def cloud_settings(target: Target) -> dict[str, Any]:
    """Settings of MALA with jumps to draws of a Gaussian a little off, and wider."""
    std = np.linalg.norm(target.scale.cholesky, axis=1)
    return {
        "arrays": gaussian(target.scale.mean + 0.1 * std, 1.2 * std),
        "settings": mala_settings(target),
        "auxiliary_settings": {},
        "jump_probability": 0.3,
    }


def gaussian_gradient(position: Any, surrogate: Any) -> Any:
    """Gradient of a Gaussian's log density, from its mean and precisions."""
    mean, precision = surrogate
    return -precision * (position - mean)


def mclmc_settings(target: Target) -> dict[str, Any]:
    """Settings of MCLMC without a test."""
    return {
        "step_size": 0.3 * float(target.scale.stds[0]),
        "inverse_mass": ones(target),
        "decoherence_length": 1.5 * float(target.scale.stds[-1]),
    }


def ula_settings(target: Target) -> dict[str, Any]:
    """Settings of unadjusted Langevin."""
    return {"step_size": 0.2 * float(target.scale.stds[0]) ** 2, "inverse_mass": ones(target)}


def rms_settings(target: Target) -> dict[str, Any]:
    """Settings of RMS-SGLD: its metric is about number of rows times the smallest width."""
    num_rows = float(jnp.sum(target.data.weight))
    return {"step_size": 0.2 * float(target.scale.stds[0]) / num_rows, "damping": 0.1}


def sghmc_settings(target: Target) -> dict[str, Any]:
    """Settings of SGHMC."""
    step = 0.3 * float(target.scale.stds[0])
    return {"step_size": step, "friction": 0.2, "inverse_mass": ones(target)}


def adapting_settings(target: Target) -> dict[str, Any]:
    """Settings of SGHMC while its scale adapts: G = 1 / sqrt(V) is about the smallest width."""
    step = 0.3 * float(target.scale.stds[0]) ** 0.5
    return {"step_size": step, "friction": 0.2, "is_adapting": jnp.asarray(True)}


def steps(number: int, *, power: float = 0.0, each: float = 0.0) -> Callable[[Target], int]:
    """number, growing as d^power from d = 20 on, and by `each` for every unit of (widest /
    narrowest)^2: the law by which a random walk mixes."""

    def num_steps(target: Target) -> int:
        spread = float(target.scale.stds[-1] / target.scale.stds[0]) ** 2
        return round((number + each * spread) / shrink(target, power))

    return num_steps


EXACT = [
    Row("hmc", hmc, hmc_settings, steps(4), 500),
    Row("nuts", nuts, nuts_settings, steps(3), 500),
    Row("adjusted_mclmc", adjusted_mclmc, hmc_settings, steps(4), 500),
    Row("mala", mala, mala_settings, steps(20, power=1 / 3, each=1.0), 5000),
    Row("pcn", pcn, pcn_settings, steps(30, power=1.0, each=1.0), 5000),
    Row(
        "surrogate_hmc",
        partial(surrogate_hmc, gradient=gaussian_gradient, num_integration_steps=3),
        surrogate_settings,
        steps(30, power=1.0, each=1.0),
        5000,
    ),
    Row(
        "interacting",
        partial(first_of_two, auxiliary=MIXTURE, kernel=mala, auxiliary_kernel=None, jump="ar"),
        cloud_settings,
        steps(20, power=1 / 3, each=1.0),
        5000,
    ),
    Row(
        "gibbs_precisions",
        partial(gibbs_precisions, model=HIERARCHY),
        lambda target: {},
        steps(2),
        500,
        only="hierarchical",
    ),
    Row(
        "mala, then gibbs",
        partial(with_gibbs, kernel=mala, model=HIERARCHY),
        mala_settings,
        steps(30),
        5000,
        only="hierarchical",
    ),
]
"""They leave every target invariant."""

UNADJUSTED = [
    Row("mclmc", mclmc, mclmc_settings, steps(100), 5000),
    Row("ula", ula, ula_settings, steps(150), 5000),
    Row("sghmc", sghmc, sghmc_settings, steps(150), 5000),
    Row("rms_sgld, adapting", rms_sgld, rms_settings, steps(300), 5000, counts_rows=True),
    Row(
        "scale_adapted_sghmc, adapting",
        scale_adapted_sghmc,
        adapting_settings,
        steps(300),
        5000,
        counts_rows=True,
    ),
]
"""They leave no target invariant: their bias is reported, not judged."""
