"""Markov kernels: one step of one chain, as pure functions that know no driver.

    kernel = kernels.mala(log_density, step_size=0.1, inverse_mass=variances)
    final, draws = kernels.sample(key, kernel, position, data, num_draws=1000)

A builder takes log_density(position, data), in nats and summed over all data, and settings by
keyword; it returns `Kernel(init, step)`: see `credence.kernels.base` for the contract and
docs/how_to/own_kernel.md for a page to read. Names are imported when first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from credence.kernels.ascent.dropout import dropout
    from credence.kernels.ascent.lbfgs import lbfgs
    from credence.kernels.ascent.optimizer import adam, ascend, sgd
    from credence.kernels.ascent.variational import variational
    from credence.kernels.base import Kernel
    from credence.kernels.evaluation.evaluation import value, value_and_gradient
    from credence.kernels.evaluation.hessian import hessian_columns
    from credence.kernels.mcmc.gibbs import gibbs_precisions, with_gibbs
    from credence.kernels.mcmc.hmc import hmc, leapfrogs, nuts
    from credence.kernels.mcmc.mala import mala
    from credence.kernels.mcmc.microcanonical import adjusted_mclmc, mclmc
    from credence.kernels.mcmc.pcn import pcn
    from credence.kernels.sampling import sample
    from credence.kernels.sgmcmc.cyclical import cyclical
    from credence.kernels.sgmcmc.rms_sgld import rms_sgld
    from credence.kernels.sgmcmc.sghmc import scale_adapted_sghmc, sghmc
    from credence.kernels.sgmcmc.ula import ula

EXACT = {
    "adjusted_mclmc": "mcmc.microcanonical",
    "gibbs_precisions": "mcmc.gibbs",
    "hmc": "mcmc.hmc",
    "leapfrogs": "mcmc.hmc",
    "mala": "mcmc.mala",
    "nuts": "mcmc.hmc",
    "pcn": "mcmc.pcn",
    "with_gibbs": "mcmc.gibbs",
}
"""Builders of kernels that leave the density invariant, and where they are."""
BIASED = {
    "cyclical": "sgmcmc.cyclical",
    "mclmc": "mcmc.microcanonical",
    "rms_sgld": "sgmcmc.rms_sgld",
    "scale_adapted_sghmc": "sgmcmc.sghmc",
    "sghmc": "sgmcmc.sghmc",
    "ula": "sgmcmc.ula",
}
"""Those whose step size biases them; `ula` on minibatches is SGLD."""
OTHERS = {
    "adam": "ascent.optimizer",
    "ascend": "ascent.optimizer",
    "dropout": "ascent.dropout",
    "hessian_columns": "evaluation.hessian",
    "lbfgs": "ascent.lbfgs",
    "sgd": "ascent.optimizer",
    "value": "evaluation.evaluation",
    "value_and_gradient": "evaluation.evaluation",
    "variational": "ascent.variational",
}
"""Those that climb, or stay and evaluate."""

_HOME = EXACT | BIASED | OTHERS | {"Kernel": "base", "sample": "sampling"}

__all__ = [
    "Kernel",
    "adam",
    "adjusted_mclmc",
    "ascend",
    "cyclical",
    "dropout",
    "gibbs_precisions",
    "hessian_columns",
    "hmc",
    "lbfgs",
    "leapfrogs",
    "mala",
    "mclmc",
    "nuts",
    "pcn",
    "rms_sgld",
    "sample",
    "scale_adapted_sghmc",
    "sgd",
    "sghmc",
    "ula",
    "value",
    "value_and_gradient",
    "variational",
    "with_gibbs",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'credence.kernels' has no attribute {name!r}")
    return getattr(import_module(f"credence.kernels.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
