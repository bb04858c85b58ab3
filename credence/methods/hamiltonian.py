"""HMC and NUTS: exact samplers on a posterior's gradient.

Train a member per chain, find step size and metric in a warm-up pooled over chains, then sample
with both frozen.
"""

from dataclasses import dataclass
from typing import ClassVar

import jax
from jaxtyping import PRNGKeyArray

from credence.kernels.base import Recipe
from credence.kernels.blackjax_kernels import hmc, nuts
from credence.methods.base import Drawn
from credence.methods.chains import Chains, shares_passes
from credence.methods.tuning import first_window_adaptation, tuned
from credence.phases import fixed
from credence.posterior import Posterior
from credence.run import Driver


@dataclass(frozen=True, kw_only=True)
class Hamiltonian(Chains):
    """What HMC and NUTS share.

    Arguments as `Chains`; the acceptance rate is .8 as in Stan.
    """

    reads_disk: ClassVar[bool] = True

    thinning: int = 1

    def _recipe(self, posterior: Posterior) -> Recipe:
        raise NotImplementedError

    def _run(self, key: PRNGKeyArray, posterior: Posterior, driver: Driver) -> Drawn:
        key_train, key_step, key_warmup, key_sample, key_scout = jax.random.split(key, 5)
        start = self._start(key_train, posterior, driver)
        recipe, data = self._recipe(posterior), posterior.anchored(start[0])
        adapter = first_window_adaptation(
            key_step,
            start,
            data,
            log_density=posterior.log_density,
            num_rounds=self._num_rounds(),
            target_acceptance_rate=self.target_acceptance_rate,
        )
        warmup = self._warm_up(key_warmup, driver, recipe, start, data, adapter)
        settings = fixed(**tuned(warmup.memory))
        sample = self._sample(
            key_sample, driver, recipe, warmup.positions, data, settings, thinning=self.thinning
        )
        starts = self._scout(key_scout, posterior, driver, recipe, sample, data, settings)
        return Drawn.by(sample)._replace(found=starts)


@dataclass(frozen=True, kw_only=True)
class NUTS(Hamiltonian):
    """The no-U-turn sampler (Hoffman & Gelman, 2014).

    Args beyond those of `Hamiltonian`:
        max_doublings: a trajectory has at most 2^max_doublings - 1 gradients.
    """

    name: ClassVar[str] = "nuts"
    summary: ClassVar[str] = "no-U-turn sampler: exact, the reference"

    max_doublings: int = 10

    def _recipe(self, posterior: Posterior) -> Recipe:
        static = (("max_doublings", self.max_doublings),)
        return Recipe(nuts, posterior.log_density, static, fixed_cost=shares_passes(posterior))


@dataclass(frozen=True, kw_only=True)
class HMC(Hamiltonian):
    """Hamiltonian Monte Carlo with jittered trajectories (Duane et al., 1987).

    Args beyond those of `Hamiltonian`:
        trajectory_length: mean integration time, in units where the posterior's scales are 1.
        max_integration_steps: bound on the gradients of one trajectory.
    """

    name: ClassVar[str] = "hmc"
    summary: ClassVar[str] = "Hamiltonian Monte Carlo: exact"

    trajectory_length: float = 1.0
    max_integration_steps: int = 256

    def _recipe(self, posterior: Posterior) -> Recipe:
        static = (
            ("max_integration_steps", self.max_integration_steps),
            ("trajectory_length", self.trajectory_length),
        )
        return Recipe(hmc, posterior.log_density, static, fixed_cost=shares_passes(posterior))
