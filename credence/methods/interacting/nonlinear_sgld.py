"""Nonlinear MCMC on minibatches: Langevin particles that jump to tempered partners."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from credence.density.posterior import Posterior, minibatch
from credence.engine.driver import Driver
from credence.engine.phases import PhaseResult, fixed
from credence.engine.plan import Plan
from credence.ensembles.findings import Finding
from credence.errors import InputError, check_particles, check_share, require_positive
from credence.kernels.base import Recipe
from credence.methods.base import Drawn
from credence.methods.interacting.auxiliaries import check_temperature, usual_temperature
from credence.methods.interacting.auxiliary import Auxiliary, Rows, tempered, tempered_on_rows
from credence.methods.interacting.cloud_jumps import check_jumps
from credence.methods.interacting.kernel import interacting
from credence.methods.interacting.partner_warnings import warn_of_partners
from credence.methods.interacting.partners import Partners
from credence.methods.stochastic_gradient import Langevin, minibatch_rows


@dataclass(frozen=True, kw_only=True)
class NonlinearSGLD(Langevin):
    """SGLD particles that also jump to partners on the posterior to the power 1/T.

    Vuckovic, "Nonlinear MCMC for Bayesian Machine Learning" (2022), section 4.2, with a log
    posterior that is scaled to all rows and a temperature that is a setting. The particles are the
    chains of the ensemble; they share partners and are not independent.

    Nothing here is exact. Both kernels are biased by their step size, as `SGLD` is. Jumps are
    biased too, by the noise of the potentials of the minibatch that all particles of a step share:
    the exponential of what networks differ by in its noise has a mean above 1, so that
    Boltzmann-Gibbs jumps prefer networks whose loss changes most from batch to batch; and partners
    have just moved along this minibatch's gradient, so that their log G is a little too high, and
    accept-reject jumps are accepted a little too often.
    `potential_rows` takes the same rows in every step instead. There is no such noise then, but
    jumps leave posterior^(1/T) (posterior of these rows, scaled to all)^(1 - 1/T) as it is, and
    with all rows they are right.

    Args beyond those of `Langevin`:
        jump: "ar", accept-reject, or "bg", Boltzmann-Gibbs.
        jump_probability: in (0, 1).
        temperature: T > 1 of the partners; None is 1 + sqrt(2 / weights), log potentials that vary
            by about one nat.
        potential_rows: rows drawn once for the potentials of all steps; None takes each step's
            minibatch.
        selection: of "bg": "multinomial", "stratified" or "systematic".
        synchronous: True lets all particles jump in the same steps, so that the others cost no
            potential; False throws a coin for each particle.
    Raises:
        InputError: for fewer than 2 particles, a probability outside (0, 1), T <= 1, cycles, Gibbs
            steps or a preconditioner of its own memory, which a jump would overwrite.

    Scalars: those of `kernels.interacting.InteractingInfo`.
    """

    name: ClassVar[str] = "nonlinear_sgld"
    summary: ClassVar[str] = "SGLD particles that jump to tempered partners (biased by the steps)"
    sources: ClassVar[tuple[str, ...]] = (
        'Vuckovic, "Nonlinear MCMC for Bayesian machine learning" (2022)',
        'Welling & Teh, "Bayesian learning via stochastic gradient Langevin dynamics" (2011)',
    )
    findings: ClassVar[tuple[type[Finding], ...]] = (Partners,)

    num_chains: int = 10
    jump: str = "ar"
    jump_probability: float = 0.1
    temperature: float | None = None
    potential_rows: int | None = None
    selection: str = "multinomial"
    synchronous: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_particles(self.num_chains)
        check_jumps(self.jump, self.selection)
        require_positive(potential_rows=self.potential_rows)
        check_share(jump_probability=self.jump_probability)
        check_temperature(self.temperature)
        if self.preconditioner == self.published:
            raise InputError(
                f"preconditioner='{self.published}' remembers where its chain was, but jumps lead "
                "elsewhere: use 'warmup' or 'none'."
            )
        if self.num_cycles or self.gibbs:
            raise InputError("num_cycles and gibbs do not go together with jumps: leave them out.")
        if self.exploration_share != Langevin.exploration_share:
            raise InputError(
                f"exploration_share={self.exploration_share} is of cycles, and there are none with "
                "jumps: leave it out."
            )

    def _rows(self, posterior: Posterior) -> int:
        return minibatch_rows(self.batch_size, posterior)

    def _draws(
        self,
        key: PRNGKeyArray,
        posterior: Posterior,
        driver: Driver,
        plan: Plan,
        warmup: PhaseResult,
    ) -> Drawn:
        """Phase "sample": partners start where the particles are, with the same settings."""
        key_rows, key_sample = jax.random.split(key)
        density, arrays = self._auxiliary(key_rows, posterior)
        static = (
            ("auxiliary", density),
            ("auxiliary_kernel", plan.recipe.build),
            ("jump", self.jump),
            ("kernel", plan.recipe.build),
            ("selection", self.selection),
            ("synchronous", self.synchronous),
        )
        jumping = fixed(
            arrays=arrays,
            settings=plan.settings,
            auxiliary_settings=plan.settings,
            jump_probability=np.asarray(self.jump_probability, warmup.positions.dtype),
        )
        recipe = Recipe(interacting, posterior.log_density, static, interacts=True)
        plan = replace(plan, recipe=recipe, adapter=jumping)
        sample = driver.phase("sample", key_sample, plan, warmup.positions, posterior.data)
        found = warn_of_partners(
            sample,
            auxiliary="tempered",
            compares=self.jump == "ar",
            synchronous=self.synchronous,
        )
        return Drawn.by(sample)._replace(found=found)

    def _auxiliary(self, key: PRNGKeyArray, posterior: Posterior) -> tuple[Auxiliary, Any]:
        """The partners' density, and its arrays."""
        temperature = jnp.asarray(self.temperature or usual_temperature(posterior.num_weights))
        if self.potential_rows is None:
            return tempered(posterior.log_density), temperature
        num_rows = min(self.potential_rows, posterior.num_points)
        index = jax.random.permutation(key, posterior.num_points)[:num_rows]
        rows = minibatch(posterior.data, index, jnp.ones(num_rows, temperature.dtype))
        num_batches = -(-num_rows // self._rows(posterior))
        return tempered_on_rows(posterior.log_density, num_batches), Rows(temperature, rows)
