"""The Metropolis-adjusted Langevin algorithm as a method."""

from dataclasses import dataclass
from typing import ClassVar

from credence.density.posterior import Posterior
from credence.kernels.base import Recipe
from credence.kernels.mcmc.mala import one_leapfrog
from credence.methods.hamiltonian import Hamiltonian


@dataclass(frozen=True, kw_only=True)
class MALA(Hamiltonian):
    """The Metropolis-adjusted Langevin algorithm (Roberts & Tweedie, 1996).

    Arguments as `Hamiltonian`; the acceptance rate is the optimal one of Roberts & Rosenthal,
    "Optimal scaling of discrete approximations to Langevin diffusions" (1998).
    """

    name: ClassVar[str] = "mala"
    summary: ClassVar[str] = "Metropolis-adjusted Langevin algorithm: exact"

    num_warmup: int = 2000
    thinning: int = 20
    target_acceptance_rate: float = 0.574

    def _recipe(self, posterior: Posterior) -> Recipe:
        return Recipe(one_leapfrog, posterior.log_density)
