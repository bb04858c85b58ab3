"""Interacting particles: nonlinear MCMC with Boltzmann-Gibbs and accept-reject jumps."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from credence.blocks import Block, init_states
from credence.diagnostics.convergence import rhat
from credence.diagnostics.importance import pareto_smoothed
from credence.errors import InputError, check_name
from credence.kernels.base import Kernel, Recipe, Settings
from credence.kernels.blackjax_kernels import leapfrogs
from credence.kernels.interacting import check_jumps, check_particles, interacting
from credence.kernels.pcn import pcn
from credence.methods.auxiliaries import AUXILIARIES, Chosen, choose, usual_temperature
from credence.methods.base import Drawn, Method
from credence.methods.deep_ensemble import Training, train
from credence.methods.langevin import one_leapfrog
from credence.methods.reference import prior_reference
from credence.methods.tuning import Memory as Window
from credence.methods.tuning import (
    first_window_adaptation,
    metric_ends,
    tuned,
    window_adaptation,
)
from credence.models.priors import require_positive
from credence.posterior import Data, Posterior
from credence.run import Adapter, Driver, PhaseResult, fixed

LEAST_ESS = 2.0
"""Effective auxiliary particles below which one has nearly all the weight."""
LEAST_SHARE = 0.05
"""The same as a share of all."""
LARGEST_K = 0.5
"""Tail index of the potentials above which they have no variance; it is 1 - s^2 where target and
auxiliary are Gaussians with standard deviations 1 and s < 1."""
FEWEST_FOR_K = 100
"""Auxiliary particles needed to tell a tail."""
PROBABILITIES = (0.01, 0.5)
"""Range of a jump probability that is tuned."""


LARGEST_RHAT = 1.1
"""Between partners, of their potential, above which they have not met."""
FEWEST_FOR_RHAT = 100
"""Draws per partner below which R-hat is mostly noise."""


class StuckPartnersWarning(UserWarning):
    """Partners live in different places: particles that jump to them mix, and yet find every place
    as often as partners were started there."""


class DegenerateAuxiliaryWarning(UserWarning):
    """Jumps lead to very few auxiliary particles: Boltzmann-Gibbs copies one of them, accept-reject
    refuses nearly all."""


@dataclass(frozen=True, kw_only=True)
class Interacting(Method):
    """Nonlinear MCMC: particles that also jump to partners on an auxiliary density.

    Vuckovic, "Nonlinear MCMC for Bayesian Machine Learning" (2022); see
    `credence.kernels.interacting`. Every particle has a partner that moves on the auxiliary
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
        kernel: "hmc", "mala", or "pcn" with a Gaussian prior as its reference.
        auxiliary: "tempered", posterior^(1/T); "prior"; "laplace", a full Gaussian around one
            network; "ensemble", a mixture of Gaussians around trained networks.
        temperature: T > 1 of "tempered"; None is 1 + sqrt(2 / weights), potentials that vary by
            about one nat.
        widening: of the standard deviations of "laplace" and "ensemble": above 1 for tails heavier
            than the posterior's.
        auxiliary_kernel: "fresh", independent draws, where the auxiliary density has a sampler (all
            but "tempered"); or as `kernel`. None takes the first that is possible.
        num_particles: at least 2.
        num_draws: per particle, after warm-up.
        num_warmup: steps to tune the step sizes of both kernels, without jumps for three quarters.
        thinning: steps per draw.
        target_acceptance_rate: of both kernels; None is the usual one.
        trajectory_length: of HMC, in posterior standard deviations.
        order: "mixture", a jump or a move, as in the paper; "composition", a move and then
            perhaps a jump, as in its code. Both are exact.
        selection: of "bg": "multinomial", "stratified" or "systematic".
        num_past: how many of each partner's latest states are jumped to.
        training: of the networks where particles start.
    Raises:
        InputError: for fewer than 2 particles, a probability outside (0, 1), an unknown name.

    Scalars: those of `InteractingInfo`, as means over the steps of a draw.
    """

    name: ClassVar[str] = "interacting"
    summary: ClassVar[str] = "nonlinear MCMC: particles that jump to partners elsewhere"
    aliases: ClassVar[dict[str, str]] = {"num_chains": "num_particles"}

    round_draws: ClassVar[int] = 25
    """Draws in a round of the warm-up, and between checkpoints."""

    jump: str = "ar"
    jump_probability: float = 0.1
    target_jump_rate: float | None = None
    kernel: str = "hmc"
    auxiliary: str = "tempered"
    temperature: float | None = None
    widening: float = 1.2
    auxiliary_kernel: str | None = None
    num_particles: int = 16
    num_draws: int = 500
    num_warmup: int = 500
    thinning: int = 1
    target_acceptance_rate: float | None = None
    trajectory_length: float = 1.0
    order: str = "mixture"
    selection: str = "multinomial"
    num_past: int = 1
    training: Training = field(default=Training())

    def __post_init__(self) -> None:
        super().__post_init__()
        check_particles(self.num_particles)
        check_jumps(self.jump, self.selection)
        check_name("kernel", self.kernel, FAMILIES)
        check_name("auxiliary density", self.auxiliary, AUXILIARIES)
        check_name("order", self.order, ("mixture", "composition"))
        check_name("auxiliary kernel", self.auxiliary_kernel or "fresh", ("fresh", *FAMILIES))
        require_positive(
            num_draws=self.num_draws,
            num_warmup=self.num_warmup,
            thinning=self.thinning,
            trajectory_length=self.trajectory_length,
            widening=self.widening,
            num_past=self.num_past,
        )
        for name in ("jump_probability", "target_jump_rate", "target_acceptance_rate"):
            share = getattr(self, name)
            if share is not None and not 0 < share < 1:
                raise InputError(f"{name} must be strictly between 0 and 1, got {share}.")
        if self.target_jump_rate is not None and self.target_jump_rate > PROBABILITIES[1]:
            raise InputError(
                f"target_jump_rate must be at most {PROBABILITIES[1]}, the largest probability of "
                f"a jump, got {self.target_jump_rate}."
            )
        if self.temperature is not None and not 1 < self.temperature < np.inf:
            raise InputError(
                f"temperature must be > 1 and finite, got {self.temperature}: at 1 partners live "
                "on the posterior itself, and below their tails are too light."
            )
        if self.temperature is not None and self.auxiliary != "tempered":
            raise InputError(
                f"temperature={self.temperature} is of auxiliary='tempered' and nothing to "
                f"'{self.auxiliary}': leave it out."
            )
        if self.auxiliary_kernel == "fresh" and self.auxiliary == "tempered":
            raise InputError(
                "A tempered posterior has no exact draws: use auxiliary_kernel='hmc', 'mala' or "
                "'pcn', or another auxiliary density."
            )

    def _run(self, key: PRNGKeyArray, posterior: Posterior, driver: Driver) -> Drawn:
        keys = dict(zip(_KEYS, jax.random.split(key, len(_KEYS)), strict=True))
        if "pcn" in (self.kernel, self._mover):
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
        system = _System(self, posterior, chosen)
        data = posterior.anchored(members[0])
        adapter = system.adapter(keys["step"], members, data)
        partners = system.partners(keys["partners"], members)
        first = partial(
            init_states,
            settings=adapter.settings(adapter.memory),
            data=data,
            recipe=system.recipe,
        )
        states = first(members)._replace(auxiliary=first(partners).auxiliary)
        warmup = self._phase(
            "warmup", keys["warmup"], driver, system.recipe, members, data, adapter, states
        )
        frozen = fixed(**system.tuned(warmup.memory))
        sample = self._phase(
            "sample", keys["sample"], driver, system.recipe, members, data, frozen, warmup.states
        )
        _warn_where_degenerate(sample, self)
        _warn_where_stuck(sample.info["log_potential"], self)
        return Drawn(sample.draws, sample.info)

    def _phase(
        self,
        name: str,
        key: PRNGKeyArray,
        driver: Driver,
        recipe: Recipe,
        positions: Float[Array, "chain weight"],
        data: Data,
        adapter: Adapter,
        states: Any,
    ) -> PhaseResult:
        is_warmup = name == "warmup"
        return driver.phase(
            name,
            key,
            recipe,
            positions,
            data,
            adapter,
            num_steps=self.num_warmup if is_warmup else self.num_draws * self.thinning,
            thinning=self.thinning,
            block_steps=self.round_draws * self.thinning,
            keep_draws=not is_warmup,
            budget_share=0.5 if is_warmup else 1.0,
            may_stop_early=not is_warmup,
            states=states,
        )

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
            temperature=self.temperature or usual_temperature(posterior.num_weights),
            widening=self.widening,
        )

    @property
    def _mover(self) -> str:
        """Of the partners."""
        usual = self.kernel if self.auxiliary == "tempered" else "fresh"
        return self.auxiliary_kernel or usual

    def _num_rounds(self) -> int:
        """Blocks of the warm-up."""
        return max(1, round(self.num_warmup / (self.round_draws * self.thinning)))


_KEYS = ("train", "auxiliary", "step", "partners", "warmup", "sample")


class Memory(NamedTuple):
    """What the warm-up remembers between rounds (numpy, fixed shapes)."""

    particles: Window
    """Step size and metric of K."""
    partners: Window
    """Of Q; the metric is that of the particles."""
    jump_acceptance: np.ndarray
    """Sum over the rounds with jumps."""
    rounds_with_jumps: np.ndarray


class _Family(NamedTuple):
    """A linear kernel and how it is set up."""

    build: Callable[..., Kernel]
    settings: Callable[[Interacting, Posterior, Settings], Settings]
    target_acceptance_rate: float


def _metric(method: Interacting, posterior: Posterior, found: Settings) -> Settings:
    return found


def _trajectory(method: Interacting, posterior: Posterior, found: Settings) -> Settings:
    steps = np.clip(np.ceil(method.trajectory_length / found["step_size"]), 1, 64)
    return {**found, "num_integration_steps": steps.astype(np.int32)}


def _from_prior(method: Interacting, posterior: Posterior, found: Settings) -> Settings:
    mean, std = prior_reference(posterior)
    step_size = np.minimum(found["step_size"], 0.99).astype(found["step_size"].dtype)
    return {"step_size": step_size, "reference_mean": mean, "reference_std": std}


FIRST_PCN_STEP = 0.3
"""Of the warm-up."""
FAMILIES = {
    "hmc": _Family(leapfrogs, _trajectory, 0.8),
    "mala": _Family(one_leapfrog, _metric, 0.574),
    "pcn": _Family(pcn, _from_prior, 0.234),
}
"""Linear kernels by name."""


class _System(NamedTuple):
    """Particles and partners of a posterior."""

    method: Interacting
    posterior: Posterior
    chosen: Chosen

    @property
    def recipe(self) -> Recipe:
        """For the driver."""
        method = self.method
        mover = None if method._mover == "fresh" else FAMILIES[method._mover].build
        static = (
            ("auxiliary", self.chosen.density),
            ("auxiliary_kernel", mover),
            ("composed", method.order == "composition"),
            ("jump", method.jump),
            ("kernel", FAMILIES[method.kernel].build),
            ("num_past", method.num_past),
            ("selection", method.selection),
        )
        return Recipe(interacting, self.posterior.log_density, static, interacts=True)

    def partners(
        self, key: PRNGKeyArray, members: Float[Array, "particle weight"]
    ) -> Float[Array, "particle weight"]:
        """Where partners start: drawn afresh where that is possible."""
        sample = self.chosen.density.sample
        return members if sample is None else _drawn(key, self.chosen, len(members))

    def adapter(
        self, key: PRNGKeyArray, members: Float[Array, "particle weight"], data: Data
    ) -> Adapter:
        """Tunes both kernels as `window_adaptation` does, without jumps until the metric is found:
        a jump to another mode says nothing about the width of one."""
        num_rounds = self.method._num_rounds()
        key_particles, key_partners = jax.random.split(key)
        windows = [
            self._window(each, name, members, data)
            for each, name in (
                (key_particles, self.method.kernel),
                (key_partners, self.method._mover),
            )
        ]
        particles, partners = windows
        last = metric_ends(num_rounds)[-1]
        zero = np.zeros(())

        def settings(memory: Memory) -> Settings:
            has_jumps = int(memory.particles.round) >= last
            return self.settings(
                particles.settings(memory.particles),
                partners.settings(memory.partners),
                self.probability(memory) if has_jumps else 0.0,
            )

        def update(memory: Memory, block: Block) -> Memory:
            counts = memory.particles.round >= last
            info = {"acceptance_rate": block.info["auxiliary_acceptance_rate"]}
            rate = np.mean(np.asarray(block.info["jump_acceptance_rate"], float))
            return Memory(
                particles.update(memory.particles, block),
                partners.update(memory.partners, block._replace(info=info)),
                memory.jump_acceptance + counts * rate,
                memory.rounds_with_jumps + counts,
            )

        first = Memory(particles.memory, partners.memory, zero, zero)
        return Adapter(first, settings, update)

    def _window(
        self, key: PRNGKeyArray, name: str, members: Float[Array, "particle weight"], data: Data
    ) -> Adapter:
        """Tunes a linear kernel: its step size, and a metric if it has one."""
        num_rounds, target = self.method._num_rounds(), self._target(name)
        if name == "pcn":
            return window_adaptation(
                FIRST_PCN_STEP,
                jnp.ones(members.shape[1], members.dtype),
                num_rounds=num_rounds,
                target_acceptance_rate=target,
                add_draws=lambda memory, draws: memory,  # it has no metric
            )
        return first_window_adaptation(
            key,
            members,
            data,
            log_density=self.posterior.log_density,
            num_rounds=num_rounds,
            target_acceptance_rate=target,
        )

    def tuned(self, memory: Memory) -> Settings:
        """What the warm-up found."""
        return self.settings(
            tuned(memory.particles), tuned(memory.partners), self.probability(memory)
        )

    def settings(self, particles: Settings, partners: Settings, probability: float) -> Settings:
        """Of the kernel `interacting`."""
        method, dtype = self.method, particles["step_size"].dtype
        mover = method._mover
        return {
            "arrays": self.chosen.arrays,
            "settings": FAMILIES[method.kernel].settings(method, self.posterior, particles),
            "auxiliary_settings": {}
            if mover == "fresh"
            else FAMILIES[mover].settings(method, self.posterior, partners),
            "jump_probability": np.asarray(probability, dtype),
        }

    def probability(self, memory: Memory) -> float:
        """Of a jump: as given, or so that accepted jumps have their target share of the steps."""
        target, count = self.method.target_jump_rate, float(memory.rounds_with_jumps)
        if target is None or count == 0:
            return self.method.jump_probability
        acceptance = float(memory.jump_acceptance) / count
        return float(np.clip(target / max(acceptance, 1e-6), *PROBABILITIES))

    def _target(self, name: str) -> float:
        """Acceptance rate that a kernel is tuned to; of fresh draws, any."""
        usual = FAMILIES[self.method.kernel if name == "fresh" else name].target_acceptance_rate
        return self.method.target_acceptance_rate or usual


def _drawn(key: PRNGKeyArray, chosen: Chosen, num: int) -> Float[Array, "particle weight"]:
    sample: Any = chosen.density.sample
    keys = jax.random.split(key, num)
    return jax.jit(jax.vmap(lambda key: sample(key, chosen.arrays)))(keys)


def _warn_where_degenerate(sample: PhaseResult, method: Interacting) -> None:
    """Say so where few auxiliary particles have nearly all the weight."""
    num = method.num_particles * method.num_past
    ess = float(np.mean(sample.info["potential_ess"]))
    rate = float(np.mean(sample.info["jump_acceptance_rate"]))
    log_potential = np.asarray(sample.states.past.log_potential, float).ravel()
    log_potential = log_potential[np.isfinite(log_potential)]
    has_tail = len(log_potential) >= FEWEST_FOR_K
    tail = pareto_smoothed(log_potential).pareto_k if has_tail else 0.0
    if ess >= max(LEAST_ESS if num > 2 else 1.05, LEAST_SHARE * num) and tail <= LARGEST_K:
        return
    heavy = f", Pareto k {tail:.2f} (above .5 they have no variance)" if has_tail else ""
    refused = f"; {100 * rate:.1f} % of jumps would be accepted" if method.jump == "ar" else ""
    warnings.warn(
        f"The potentials of the auxiliary density '{method.auxiliary}' are worth {ess:.1f} of "
        f"{num} particles{heavy}{refused}. Use one nearer to the posterior with heavier tails: "
        "'tempered' with a temperature nearer to 1, or a larger widening.",
        DegenerateAuxiliaryWarning,
        stacklevel=2,
    )


def _warn_where_stuck(
    log_potential: Float[np.ndarray, "particle draw"], method: Interacting
) -> None:
    """Say so where the potentials of partners that move by themselves disagree.

    R-hat of the particles cannot show it: they jump to all partners alike. Modes of one height
    stay unseen here too.
    """
    if method._mover == "fresh" or log_potential.shape[1] < FEWEST_FOR_RHAT:
        return
    finite = log_potential[:, np.isfinite(log_potential).all(axis=0)]
    between = float(rhat(finite)) if finite.shape[1] >= FEWEST_FOR_RHAT else np.inf
    if between < LARGEST_RHAT:
        return
    warnings.warn(
        f"The partners on the auxiliary density '{method.auxiliary}' have not met: R-hat of their "
        f"potentials is {between:.2f}. Each part of the posterior then counts as often as partners "
        "happened to start there, whatever R-hat the particles have. Draw more, or use an "
        "auxiliary density that is drawn from afresh: 'prior', 'laplace' or 'ensemble'.",
        StuckPartnersWarning,
        stacklevel=2,
    )
