"""Interacting particles: nonlinear MCMC with Boltzmann-Gibbs and accept-reject jumps."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import jax
from jaxtyping import Array, Float, PRNGKeyArray

from credence.adaptation.reference import prior_reference
from credence.adaptation.tunable_kernels import Tunable, checked_kernel, tunable_kernel
from credence.density.posterior import Posterior
from credence.engine.blocks import init_states
from credence.engine.driver import Driver
from credence.ensembles.findings import Finding
from credence.errors import (
    InputError,
    check_name,
    check_particles,
    check_share,
    refuse_unread,
    require_positive,
)
from credence.kernels.base import Kernel, Recipe
from credence.methods.algorithm import Algorithm
from credence.methods.base import Drawn, Method
from credence.methods.chains import Rounds
from credence.methods.interacting.auxiliary_choice import (
    AUXILIARIES,
    STRUCTURES,
    USUAL_WIDENING,
    Chosen,
    check_temperature,
    choose,
    usual_temperature,
)
from credence.methods.interacting.cloud_jumps import check_jumps, check_past
from credence.methods.interacting.jump_tuning import PROBABILITIES
from credence.methods.interacting.kernel import interacting
from credence.methods.interacting.partner_warnings import CHOOSE, warn_of_partners
from credence.methods.interacting.partners import Partners
from credence.methods.interacting.setup import Setup, starts_of_partners
from credence.methods.interacting.tempered_ladder import tempered_ladder
from credence.methods.laplace.curvature import check_structure
from credence.methods.training import Training, train


@dataclass(frozen=True, kw_only=True)
class Interacting(Method):
    """Nonlinear MCMC: particles that also jump to partners on an auxiliary density.

    Vuckovic, "Nonlinear MCMC for Bayesian Machine Learning" (2022); see
    `credence.methods.interacting.kernel`. Every particle has a partner that moves on the auxiliary
    density; with some probability the particle jumps to one of all partners, chosen or accepted by
    the potential G = posterior / auxiliary, and otherwise moves by an ordinary exact kernel.

    The particles are the chains of the ensemble. They share partners, so they are not independent:
    R-hat between them may look better than it is. Independent runs with other keys tell.

    Args:
        jump: "ar", accept-reject: no bias from the number of particles where partners are drawn
            afresh and num_past is 1; or "bg", Boltzmann-Gibbs, with a bias of O(1 / particles).
        jump_probability: in (0, 1); .1 as in the paper.
        target_jump_rate: share of all steps that should be accepted jumps; the warm-up then tunes
            jump_probability, between .01 and .5. None keeps what is given.
        kernel: "hmc", "mala", "nuts", "pcn" with a Gaussian prior as its reference, or a `Tunable`
            of your own whose State follows from the position.
        auxiliary: "tempered", posterior^(1/T); "ladder", interacting particles on several powers of
            the posterior, each jumping to the next hotter ones; "prior"; "laplace", a full Gaussian
            around one network; "ensemble", a mixture of Gaussians around trained networks.
        temperature: T > 1 of "tempered", or the hottest of "ladder", the others geometric; None
            makes neighbours differ by the factor 1 + sqrt(2 / weights), potentials that vary by
            about one nat.
        num_rungs: of "ladder", each a temperature above 1; None is 4. A rung costs as
            much as the particles.
        widening: of the standard deviations of "laplace" and "ensemble": above 1 for tails heavier
            than the posterior's; None is 1.2.
        auxiliary_kernel: "fresh", independent draws, where the auxiliary density has a sampler (all
            but "tempered" and "ladder"); or as `kernel`. None takes the first that is possible.
        num_particles: at least 2.
        num_draws: per particle, after warm-up.
        num_warmup: steps to tune the step sizes of both kernels, without jumps for three quarters.
        thinning: steps per draw.
        target_acceptance_rate: of both kernels; None is the usual one.
        trajectory_length: of HMC, in posterior standard deviations; None is 1.
        order: "mixture", a jump or a move, as in the paper; "composition", a move and then
            perhaps a jump, as in its code. Both are exact.
        selection: of "bg": "multinomial", "stratified" or "systematic".
        num_past: how many of each partner's latest states are jumped to.
        synchronous: True lets all particles jump in the same steps, so that the others cost no
            potential; False throws a coin for each particle. Needs num_past=1.
        training: of the networks where particles start.
    Raises:
        InputError: for fewer than 2 particles, a probability outside (0, 1), an unknown name, a
            setting that has no effect with the others.

    Scalars: those of `InteractingInfo`, as means over the steps of a draw.
    """

    name: ClassVar[str] = "interacting"
    summary: ClassVar[str] = "nonlinear MCMC: particles that jump to partners elsewhere"
    sources: ClassVar[tuple[str, ...]] = (
        'Vuckovic, "Nonlinear MCMC for Bayesian machine learning" (2022)',
    )
    aliases: ClassVar[dict[str, str]] = {"num_chains": "num_particles"}
    findings: ClassVar[tuple[type[Finding], ...]] = (Partners,)

    round_draws: ClassVar[int] = 25
    """Draws in a round of the warm-up; see `Rounds`."""

    jump: str = "ar"
    jump_probability: float = 0.1
    target_jump_rate: float | None = None
    kernel: str | Tunable = "hmc"
    auxiliary: str = "tempered"
    temperature: float | None = None
    num_rungs: int | None = None
    widening: float | None = None
    auxiliary_kernel: str | Tunable | None = None
    num_particles: int = 16
    num_draws: int = 500
    num_warmup: int = 500
    thinning: int = 1
    target_acceptance_rate: float | None = None
    trajectory_length: float | None = None
    order: str = "mixture"
    selection: str = "multinomial"
    num_past: int = 1
    synchronous: bool = False
    training: Training = field(default=Training())

    def __post_init__(self) -> None:
        super().__post_init__()
        check_particles(self.num_particles)
        check_jumps(self.jump, self.selection)
        check_past(self.num_past, self.synchronous)
        object.__setattr__(self, "kernel", checked_kernel("kernel", self.kernel, not_linear))
        check_name("auxiliary density", self.auxiliary, AUXILIARIES)
        check_name("order", self.order, ("mixture", "composition"))
        if self.auxiliary_kernel not in (None, "fresh"):
            name = checked_kernel("auxiliary kernel", self.auxiliary_kernel, not_linear)
            object.__setattr__(self, "auxiliary_kernel", name)
        require_positive(
            num_draws=self.num_draws,
            num_warmup=self.num_warmup,
            thinning=self.thinning,
            trajectory_length=self.trajectory_length,
            widening=self.widening,
        )
        check_share(
            jump_probability=self.jump_probability,
            target_jump_rate=self.target_jump_rate,
            target_acceptance_rate=self.target_acceptance_rate,
        )
        if self.target_jump_rate is not None and self.target_jump_rate > PROBABILITIES[1]:
            raise InputError(
                f"target_jump_rate must be at most {PROBABILITIES[1]}, the largest probability of "
                f"a jump, got {self.target_jump_rate}."
            )
        check_temperature(self.temperature)
        self._check_that_all_settings_matter()
        if self.auxiliary == "ladder" and self.auxiliary_kernel is not None:
            raise InputError(
                f"All rungs of auxiliary='ladder' move by kernel='{self.kernel}': leave out "
                f"auxiliary_kernel='{self.auxiliary_kernel}'."
            )
        if self.num_rungs is not None and self.num_rungs < 2:
            raise InputError(
                f"num_rungs must be at least 2, got {self.num_rungs}; one rung is "
                "auxiliary='tempered'."
            )
        if self.auxiliary_kernel == "fresh" and self.auxiliary == "tempered":
            raise InputError(
                "A tempered posterior has no exact draws: use auxiliary_kernel='hmc', 'mala' or "
                "'pcn', or another auxiliary density."
            )

    def _check_that_all_settings_matter(self) -> None:
        """Refuse those that nothing would read."""
        owners = {
            "temperature": ("tempered", "ladder"),
            "num_rungs": ("ladder",),
            "widening": ("laplace", "ensemble"),
        }
        for name, auxiliaries in owners.items():
            if self.auxiliary not in auxiliaries:
                of = " and ".join(f"auxiliary='{each}'" for each in auxiliaries)
                refuse_unread(self, f"of {of} and nothing to '{self.auxiliary}'", name)
        if not any("trajectory_length" in kernel.options for kernel in self._linear_kernels):
            reader = f"of HMC and nothing to kernel='{self.kernel}'"
            refuse_unread(self, reader, "trajectory_length")
        if self.target_jump_rate is not None and self._rounds.number < 2:
            raise InputError(
                f"target_jump_rate={self.target_jump_rate} is met in the warm-up, and "
                f"num_warmup={self.num_warmup} leaves no step with jumps: give at least "
                f"{self._rounds.round_steps + 1}."
            )

    @classmethod
    def from_settings(cls, settings: dict[str, Any], *, is_saved: bool = False) -> Algorithm:
        """Read settings as `Method.from_settings`; rungs were named levels in 0.1's files."""
        named = {"num_rungs" if n == "num_levels" else n: value for n, value in settings.items()}
        return super().from_settings(named, is_saved=is_saved)

    def _run(self, key: PRNGKeyArray, posterior: Posterior, driver: Driver) -> Drawn:
        keys = dict(zip(_KEYS, jax.random.split(key, len(_KEYS)), strict=True))
        if self.auxiliary in STRUCTURES:
            check_structure(posterior, STRUCTURES[self.auxiliary], "all")
        if any(kernel.reference == "prior" for kernel in self._linear_kernels):
            prior_reference(posterior)  # may refuse the prior
        members = train(
            keys["train"],
            posterior,
            driver,
            self.num_particles,
            self.training,
            budget_share=0.25,
        ).positions
        chosen = self._chosen(keys["auxiliary"], posterior, driver, members)
        recipe = self._recipe(posterior, chosen)
        data = posterior.anchored(members[0])
        adapter = self._setup(posterior, chosen).adapter(
            keys["step"],
            members,
            data,
            num_rounds=self._rounds.number,
            target_acceptance_rate=self.target_acceptance_rate,
            jump_probability=self.jump_probability,
            target_jump_rate=self.target_jump_rate,
            synchronous=self.synchronous,
        )
        partners = starts_of_partners(keys["partners"], chosen, members)
        first = partial(
            init_states,
            settings=adapter.settings(adapter.memory),
            data=data,
            recipe=recipe,
        )
        states = first(members)._replace(auxiliary=first(partners).auxiliary)
        plan = self._rounds.plan(recipe, adapter)
        warmup = driver.phase("warmup", keys["warmup"], plan, states, data)
        plan = plan.sampling(warmup.memory, num_draws=self.num_draws)
        sample = driver.phase("sample", keys["sample"], plan, warmup.states, data)
        found = warn_of_partners(
            sample,
            auxiliary=self.auxiliary,
            compares=self.jump == "ar",
            advice=CHOOSE,
            is_fresh=self._mover == "fresh",
            synchronous=self.synchronous,
        )
        return Drawn.by(sample)._replace(found=found)

    def _chosen(
        self,
        key: PRNGKeyArray,
        posterior: Posterior,
        driver: Driver,
        members: Float[Array, "member weight"],
    ) -> Chosen:
        return choose(
            self.auxiliary,
            key,
            posterior,
            driver,
            members,
            temperature=self._temperature(posterior),
            widening=self.widening or USUAL_WIDENING,
        )

    def _setup(self, posterior: Posterior, chosen: Chosen) -> Setup:
        """How both kernels are tuned."""
        return Setup(
            posterior,
            chosen,
            self._linear_kernels,
            num_rungs=self._num_temperatures if self.auxiliary == "ladder" else None,
            trajectory_length=self.trajectory_length or 1.0,
        )

    def _recipe(self, posterior: Posterior, chosen: Chosen) -> Recipe:
        """The recipe by which the driver builds the kernel."""
        kernel, *mover = self._linear_kernels
        static = {
            "composed": self.order == "composition",
            "jump": self.jump,
            "kernel": kernel.build,
            "num_past": self.num_past,
            "selection": self.selection,
            "synchronous": self.synchronous,
        }
        build: Callable[..., Kernel] = tempered_ladder
        if self.auxiliary != "ladder":
            build = interacting
            static["auxiliary"] = chosen.density
            static["auxiliary_kernel"] = mover[0].build if mover else None
        return Recipe(build, posterior.log_density, tuple(sorted(static.items())), interacts=True)

    @property
    def _mover(self) -> str:
        """The name of what moves the partners."""
        usual = self.kernel if self.auxiliary in ("tempered", "ladder") else "fresh"
        return str(self.auxiliary_kernel or usual)

    @property
    def _linear_kernels(self) -> list[Tunable]:
        """K, and Q unless partners are drawn afresh."""
        names = [str(self.kernel)] + [self._mover] * (self._mover != "fresh")
        return [tunable_kernel(name).for_particles for name in names]

    @property
    def _num_temperatures(self) -> int:
        """Number of temperatures at which partners live."""
        return (self.num_rungs or USUAL_RUNGS) if self.auxiliary == "ladder" else 1

    def _temperature(self, posterior: Posterior) -> float:
        """Ratio of neighbouring temperatures on the ladder."""
        if self.temperature is None:
            return usual_temperature(posterior.num_weights)
        return self.temperature ** (1 / self._num_temperatures)

    @property
    def _rounds(self) -> Rounds:
        """The rounds of the warm-up."""
        return Rounds(self.num_warmup, self.round_draws, self.thinning)


USUAL_RUNGS = 4
"""Usual number of the partners' temperatures on a ladder."""


def not_linear(tunable: Tunable) -> str | None:
    """Why a kernel cannot move particles that also jump."""
    if not tunable.state_follows_position:
        return (
            "a jump takes a particle to another position but not the rest of its state (a "
            "direction, a count of steps), which would then depend on whether jumps were accepted, "
            "and no step would leave the posterior invariant. Use 'hmc', 'mala' or 'nuts'."
        )
    if tunable.reference == "draws":
        return "its reference is not tuned here. Use 'pcn', whose reference is the prior."
    return None


_KEYS = ("train", "auxiliary", "step", "partners", "warmup", "sample")
