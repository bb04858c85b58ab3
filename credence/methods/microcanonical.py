"""Microcanonical Langevin Monte Carlo: the fastest sampler here for network posteriors."""

import math
from dataclasses import dataclass
from typing import ClassVar

from credence.density.posterior import Posterior
from credence.errors import InputError, require_positive
from credence.kernels.base import Recipe
from credence.kernels.mcmc.microcanonical import adjusted_mclmc
from credence.methods.hamiltonian import Hamiltonian


@dataclass(frozen=True, kw_only=True)
class MCLMC(Hamiltonian):
    """Metropolis-adjusted microcanonical Langevin Monte Carlo with persistent direction: exact.

    Args beyond those of `Hamiltonian`:
        trajectory_length: mean integration time of a step, in units where the posterior's scales
            are 1.
        decoherence_length: integration time in which the direction is forgotten.
    """

    name: ClassVar[str] = "mclmc"
    summary: ClassVar[str] = "microcanonical Langevin Monte Carlo, Metropolis-adjusted: exact"

    num_warmup: int = 200
    target_acceptance_rate: float = 0.9
    trajectory_length: float = 1.0
    decoherence_length: float = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(trajectory_length=self.trajectory_length)
        if not 0 <= self.decoherence_length < math.inf:
            raise InputError(
                f"decoherence_length must be >= 0 and finite, got {self.decoherence_length}; "
                "2 is usual."
            )

    def _recipe(self, posterior: Posterior) -> Recipe:
        static = (
            ("decoherence_length", self.decoherence_length),
            ("trajectory_length", self.trajectory_length),
        )
        return Recipe(adjusted_mclmc, posterior.log_density, static)
