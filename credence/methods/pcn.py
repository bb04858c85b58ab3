"""Preconditioned Crank-Nicolson: exact, and without gradients."""

from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from credence.adaptation.reference import prior_reference, reference_adaptation
from credence.density.posterior import Posterior
from credence.engine.driver import Driver
from credence.errors import check_name
from credence.kernels.base import Recipe
from credence.kernels.mcmc.pcn import pcn
from credence.methods.base import Drawn
from credence.methods.chains import TrainedChains


@dataclass(frozen=True, kw_only=True)
class PCN(TrainedChains):
    """Preconditioned Crank-Nicolson (Cotter, Roberts, Stuart & White, 2013).

    Args beyond those of `TrainedChains`, whose acceptance rate is .234, optimal in high dimension:
        reference: "prior", the Gaussian prior as in the paper; or "posterior", a Gaussian with the
            running moments of the warm-up's draws. Both are exact.
    """

    name: ClassVar[str] = "pcn"
    reads_disk: ClassVar[bool] = True
    summary: ClassVar[str] = "preconditioned Crank-Nicolson: exact, without gradients"
    sources: ClassVar[tuple[str, ...]] = (
        (
            'Cotter, Roberts, Stuart & White, "MCMC methods for functions: modifying old '
            'algorithms to make them faster" (2013)'
        ),
    )
    round_draws: ClassVar[int] = 10

    num_warmup: int = 10_000
    thinning: int = 50
    target_acceptance_rate: float = 0.234
    reference: str = "posterior"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_name("reference", self.reference, ("prior", "posterior"))

    def _run(self, key: PRNGKeyArray, posterior: Posterior, driver: Driver) -> Drawn:
        key_train, key_warmup, key_sample = jax.random.split(key, 3)
        prior = prior_reference(posterior) if self.reference == "prior" else None
        start = self._start(key_train, posterior, driver)
        data = posterior.anchored(start[0])
        mean, std = prior or near(start)
        adapter = reference_adaptation(
            np.asarray(mean, start.dtype),
            np.asarray(std, start.dtype),
            num_rounds=self._rounds(self.thinning).number,
            target_acceptance_rate=self.target_acceptance_rate,
            fit_reference=self.reference == "posterior",
        )
        recipe = Recipe(pcn, posterior.log_density)
        plan = self._rounds(self.thinning).plan(recipe, adapter)
        warmup = driver.phase("warmup", key_warmup, plan, start, data)
        plan = self._sample_plan(plan, warmup.memory, thinning=self.thinning)
        return Drawn.by(driver.phase("sample", key_sample, plan, warmup.positions, data))


def near(
    positions: Float[Array, "chain weight"],
) -> tuple[Float[Array, " weight"], Float[Array, " weight"]]:
    """A broad reference around where the chains start."""
    return positions.mean(axis=0), jnp.sqrt(positions.var(axis=0) + 0.1)
