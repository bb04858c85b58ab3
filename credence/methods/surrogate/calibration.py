"""The samplers whose draws teach an emulator."""

import numpy as np
from jaxtyping import Float, PRNGKeyArray

from credence.density.posterior import Posterior
from credence.engine.driver import Driver
from credence.methods.base import Method
from credence.methods.pcn import PCN
from credence.methods.stochastic_gradient import SGHMC
from credence.methods.surrogate.public_code import PublicPCN, PublicSGHMC, under_own_prior
from credence.methods.training import Training

MODE, PUBLIC, PUBLIC_PCN = "mode", "sghmc_public", "pcn_public"
"""Every chain's own mode; the FBNN paper's calibrations, from a random start."""
CALIBRATIONS = (MODE, "sghmc", "pcn", PUBLIC, PUBLIC_PCN)
"""Ways to calibrate, by their names."""


def sampler_of(name: str, num_draws: int, num_chains: int, training: Training) -> Method:
    """The sampler that calibrates; it need not converge."""
    if name in (PUBLIC, PUBLIC_PCN):
        raw = PublicSGHMC if name == PUBLIC else PublicPCN
        return raw(num_draws=num_draws, num_chains=num_chains)
    kind = {"sghmc": SGHMC, "pcn": PCN}[name]
    return kind(num_draws=num_draws, num_chains=num_chains, training=training)


def calibration_draws(
    key: PRNGKeyArray, sampler: Method, known: Posterior, driver: Driver
) -> Float[np.ndarray, "chain draw weight"]:
    """The draws of the sampler that calibrates, as positions of the posterior."""
    found = np.asarray(sampler.draw(key, known, driver).positions)
    return under_own_prior(found, known) if isinstance(sampler, PublicSGHMC) else found
