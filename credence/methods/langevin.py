"""The Metropolis-adjusted Langevin algorithm as a method."""

from dataclasses import dataclass
from typing import Any, ClassVar

from credence.density.posterior import LogDensity, Posterior
from credence.kernels.base import Kernel, Recipe
from credence.kernels.mcmc.mala import mala
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


def one_leapfrog(log_density: LogDensity, *, step_size: Any, inverse_mass: Any) -> Kernel:
    """`mala` with the step size of a leapfrog, in units of the weights: h is its square."""
    return mala(log_density, step_size=step_size**2, inverse_mass=inverse_mass)
