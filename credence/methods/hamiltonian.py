"""HMC and NUTS: exact samplers on a posterior's gradient.

Train a member per chain, find step size and metric in a warm-up pooled over chains, then sample
with both frozen.
"""

from dataclasses import dataclass, field
from typing import ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from credence.errors import InputError
from credence.kernels.base import Recipe
from credence.kernels.blackjax_kernels import hmc, nuts
from credence.methods.base import Drawn, Method
from credence.methods.deep_ensemble import Training, train
from credence.methods.tuning import reasonable_step_size, tuned, window_adaptation
from credence.models.priors import require_positive
from credence.posterior import Posterior
from credence.run import Driver, fixed

ROUND = 25
"""Steps of a round of the warm-up, and draws between checkpoints: one program serves both."""


@dataclass(frozen=True, kw_only=True)
class Hamiltonian(Method):
    """What HMC and NUTS share.

    Args:
        num_draws: per chain, after warm-up.
        num_chains: independent chains; 4 so that R-hat means something.
        num_warmup: steps per chain to tune step size and metric.
        thinning: steps per draw.
        target_acceptance_rate: .8 as in Stan.
        training: of the members where chains start.
    """

    num_draws: int = 1000
    num_chains: int = 4
    num_warmup: int = 500
    thinning: int = 1
    target_acceptance_rate: float = 0.8
    training: Training = field(default=Training())

    def __post_init__(self) -> None:
        require_positive(
            num_draws=self.num_draws,
            num_chains=self.num_chains,
            num_warmup=self.num_warmup,
            thinning=self.thinning,
        )
        if not 0 < self.target_acceptance_rate < 1:
            raise InputError(
                f"target_acceptance_rate must be between 0 and 1, got "
                f"{self.target_acceptance_rate}; .8 is usual."
            )

    def _recipe(self, posterior: Posterior) -> Recipe:
        raise NotImplementedError

    def _run(self, key: PRNGKeyArray, posterior: Posterior, driver: Driver) -> Drawn:
        key_train, key_step, key_warmup, key_sample = jax.random.split(key, 4)
        start = train(
            key_train, posterior, driver, self.num_chains, self.training, budget_share=0.25
        )
        recipe, data = self._recipe(posterior), posterior.anchored(start.positions[0])
        inverse_mass = jnp.full(posterior.num_weights, 0.1, start.positions.dtype)
        step_size = reasonable_step_size(
            key_step, start.positions, inverse_mass, data, log_density=posterior.log_density
        )
        warmup = driver.phase(
            "warmup",
            key_warmup,
            recipe,
            start.positions,
            data,
            window_adaptation(
                float(step_size),
                inverse_mass,
                num_rounds=max(1, round(self.num_warmup / ROUND)),
                target_acceptance_rate=self.target_acceptance_rate,
            ),
            num_steps=self.num_warmup,
            block_steps=ROUND,
            keep_draws=False,
            budget_share=0.5,
        )
        sample = driver.phase(
            "sample",
            key_sample,
            recipe,
            warmup.positions,
            data,
            fixed(**tuned(warmup.memory)),
            num_steps=self.num_draws * self.thinning,
            thinning=self.thinning,
            block_steps=ROUND * self.thinning,
            may_stop_early=True,
        )
        return Drawn(sample.draws, sample.info)


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
        return Recipe(nuts, posterior.log_density, static, fixed_cost=False)


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
        return Recipe(hmc, posterior.log_density, static, fixed_cost=False)
