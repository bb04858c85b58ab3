"""Nonlinear MCMC on minibatches: Langevin particles that jump to tempered partners."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from credence.density.data import minibatch
from credence.density.posterior import Posterior
from credence.engine.blocks import init_states
from credence.engine.driver import Driver
from credence.engine.phases import PhaseResult, fixed
from credence.engine.plan import Plan
from credence.ensembles.findings import Finding
from credence.errors import InputError, check_particles, check_share, require_positive
from credence.kernels.base import Recipe
from credence.methods.base import Drawn
from credence.methods.interacting.auxiliary import Auxiliary, Rows, tempered, tempered_on_rows
from credence.methods.interacting.auxiliary_choice import check_temperature, usual_temperature
from credence.methods.interacting.cloud_jumps import check_jumps
from credence.methods.interacting.kernel import interacting
from credence.methods.interacting.partner_kernels import (
    AS_PARTICLES,
    Particles,
    PartnerKernel,
    Wanted,
    on_tempered,
    partner_kernel,
)
from credence.methods.interacting.partner_warnings import warn_of_partners, warn_where_cold
from credence.methods.interacting.partners import Partners
from credence.methods.minibatch_steps import minibatch_rows
from credence.methods.stochastic_gradient import Langevin


@dataclass(frozen=True, kw_only=True)
class NonlinearSGLD(Langevin):
    """SGLD particles that also jump to partners on the posterior to the power 1/T.

    Vuckovic, "Nonlinear MCMC for Bayesian Machine Learning" (2022), section 4.2, with a log
    posterior that is scaled to all rows and a temperature that is a setting. The particles are the
    chains of the ensemble; they share partners and are not independent.

    Nothing here is exact. Both kernels are biased by their step size, as `SGLD` is. Jumps are
    biased too, by the noise of the potentials of the minibatch that all particles of a step share:
    the exponential of what networks differ by in its noise has a mean above 1, so that
    Boltzmann-Gibbs jumps prefer networks whose loss changes most from batch to batch. Partners are
    weighed, and jumped to, where they were before they moved along this minibatch's gradient: after
    it they have fitted its noise, their log G is too high, and accept-reject jumps would be
    accepted too often.
    `potential_rows` takes the same rows in every step instead. There is no such noise then, but
    jumps leave posterior^(1/T) (posterior of these rows, scaled to all)^(1 - 1/T) as it is, and
    with all rows they are right.

    Args beyond those of `Langevin`:
        jump: "ar", accept-reject, or "bg", Boltzmann-Gibbs.
        jump_probability: in (0, 1).
        temperature: T of the partners; None is 1 + sqrt(2 / weights), log potentials that vary
            by about one nat. Below 1, as published, partners are narrower than the posterior, and
            log G has no bound: see `ColdPartnersWarning`.
        auxiliary_kernel: Q, which moves the partners: "sgld", as the particles move; "rms", SGLD
            with the RMSprop metric of Li et al. (2016), as published; "sghmc". The last two
            remember where a partner has been, as a particle's kernel may not, and have a warm-up of
            num_warmup steps of their own, after which the RMSprop metric is frozen.
        auxiliary_step_size: of Q, in its own unit; None drifts as particles do ("rms": 1e-3 /
            rows).
        auxiliary_friction: of "sghmc"; None is that of the method `sghmc`.
        potential_rows: rows drawn once for the potentials of all steps; None takes each step's
            minibatch.
        selection: of "bg": "multinomial", "stratified" or "systematic".
        synchronous: True lets all particles jump in the same steps, so that the others cost no
            potential; False throws a coin for each particle.
    Raises:
        InputError: for fewer than 2 particles, a probability outside (0, 1), T <= 0 or T = 1,
            cycles, Gibbs steps or a preconditioner of its own memory, which a jump would overwrite.

    Scalars: those of `InteractingInfo` in `credence.methods.interacting.kernel`.
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
    auxiliary_kernel: str = AS_PARTICLES
    auxiliary_step_size: float | None = None
    auxiliary_friction: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_particles(self.num_chains)
        check_jumps(self.jump, self.selection)
        require_positive(potential_rows=self.potential_rows)
        check_share(jump_probability=self.jump_probability)
        check_temperature(self.temperature, may_be_cold=True)
        self._partner_kernel.check()
        if self.preconditioner == self.published:
            raise InputError(
                f"preconditioner='{self.published}' remembers where its chain was, but jumps lead "
                "elsewhere: use 'warmup' or 'none', or give it to the partners, "
                "auxiliary_kernel='rms'."
            )
        if self.num_cycles or self.gibbs:
            raise InputError("num_cycles and gibbs do not go together with jumps: leave them out.")

    def _rows(self, posterior: Posterior) -> int:
        return minibatch_rows(self.batch_size, posterior)

    def _weighs_minibatches(self, posterior: Posterior) -> bool:
        """Whether potentials are of the rows along whose gradient the partners move."""
        return self.potential_rows is None and self._rows(posterior) < posterior.num_points

    @property
    def _partner_kernel(self) -> Wanted:
        """What is asked of Q."""
        return Wanted(self.auxiliary_kernel, self.auxiliary_step_size, self.auxiliary_friction)

    def _temperature(self, posterior: Posterior) -> float:
        return self.temperature or usual_temperature(posterior.num_weights)

    def prepared(self, posterior: Posterior) -> Posterior:
        """The same posterior; says so where partners are colder than it."""
        warn_where_cold(self._temperature(posterior))
        return posterior

    def _draws(
        self,
        key: PRNGKeyArray,
        posterior: Posterior,
        driver: Driver,
        plan: Plan,
        warmup: PhaseResult,
    ) -> Drawn:
        """Phase "sample": partners start where the particles are, or where phase "partners" ends,
        a warm-up of their own."""
        key_rows, key_partners, key_sample = jax.random.split(key, 3)
        density, arrays = self._auxiliary(key_rows, posterior)
        moving = self._moving(posterior, plan)
        static = (
            ("auxiliary", density),
            ("auxiliary_kernel", moving.build),
            ("jump", self.jump),
            ("kernel", plan.recipe.build),
            ("moves_last", self._weighs_minibatches(posterior)),
            ("selection", self.selection),
            ("synchronous", self.synchronous),
        )
        jumping = fixed(
            arrays=arrays,
            settings=plan.settings,
            auxiliary_settings=moving.settings,
            jump_probability=np.asarray(self.jump_probability, warmup.positions.dtype),
        )
        recipe = Recipe(interacting, posterior.log_density, static, interacts=True)
        sampling = replace(plan, recipe=recipe, adapter=jumping)
        start = warmup.positions
        if moving.has_warmup:
            tuning = self._partners_plan(posterior, plan, moving)
            partners = driver.phase("partners", key_partners, tuning, start, posterior.data)
            start = init_states(start, sampling.settings, posterior.data, recipe=recipe)
            start = start._replace(auxiliary=partners.states)
        sample = driver.phase("sample", key_sample, sampling, start, posterior.data)
        found = warn_of_partners(
            sample,
            auxiliary="tempered",
            compares=self.jump == "ar",
            synchronous=self.synchronous,
        )
        return Drawn.by(sample)._replace(found=found)

    def _moving(self, posterior: Posterior, plan: Plan) -> PartnerKernel:
        """The partners' kernel, beside particles that move by this plan."""
        particles = Particles(
            plan.recipe.build,
            plan.settings,
            self._rows(posterior),
            posterior.num_points,
            self._temperature(posterior),
        )
        return partner_kernel(self._partner_kernel, particles)

    def _partners_plan(self, posterior: Posterior, plan: Plan, moving: PartnerKernel) -> Plan:
        """The plan of phase "partners", in which they move alone."""
        temperature = np.asarray(self._temperature(posterior), plan.settings["step_size"].dtype)
        static = (("kernel", moving.build),)
        return replace(
            plan,
            recipe=Recipe(on_tempered, posterior.log_density, static),
            cost_class="warmup",
            adapter=fixed(partners_temperature=temperature, **moving.tuning),
            num_steps=self.num_warmup,
            keep_draws=False,
            budget_share=0.7,
            may_stop_early=False,
            streams=False,
        )

    def _auxiliary(self, key: PRNGKeyArray, posterior: Posterior) -> tuple[Auxiliary, Any]:
        """The partners' density, and its arrays."""
        temperature = jnp.asarray(self._temperature(posterior))
        if self.potential_rows is None:
            return tempered(posterior.log_density), temperature
        num_rows = min(self.potential_rows, posterior.num_points)
        index = jax.random.permutation(key, posterior.num_points)[:num_rows]
        rows = minibatch(posterior.data, index, jnp.ones(num_rows, temperature.dtype))
        num_batches = -(-num_rows // self._rows(posterior))
        return tempered_on_rows(posterior.log_density, num_batches), Rows(temperature, rows)
