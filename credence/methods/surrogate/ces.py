"""Calibrate, emulate, sample: chains that follow an emulator of the likelihood."""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from credence.adaptation.reference import prior_reference
from credence.adaptation.tunable_kernels import Tunable, check_weights
from credence.density.posterior import Posterior
from credence.engine.driver import Driver
from credence.engine.phases import PhaseResult
from credence.engine.plan import Plan
from credence.ensembles.diagnostics.importance import MIN_DRAWS
from credence.ensembles.findings import Finding
from credence.errors import (
    InputError,
    OutOfTime,
    UnreadSetting,
    check_name,
    refuse_unread,
    require_positive,
)
from credence.methods.algorithm import Algorithm, from_fields
from credence.methods.base import Drawn, Method
from credence.methods.chains import TrainedChains, shares_passes
from credence.methods.laplace.modes import summits
from credence.methods.surrogate.calibration import (
    CALIBRATIONS,
    MODE,
    PUBLIC,
    PUBLIC_PCN,
    calibration_draws,
    sampler_of,
)
from credence.methods.surrogate.chains import (
    MOST_STEPS,
    Warmup,
    check_step,
    checked_sampler,
    has_reference,
    sampler_named,
    steps_adaptation,
    with_step,
)
from credence.methods.surrogate.correction import CORRECTIONS, DELAYED, Correction
from credence.methods.surrogate.emulation import Emulation
from credence.methods.surrogate.emulators import (
    EMULATORS,
    Coreset,
    Emulated,
    Emulator,
    Error,
    Points,
    SurrogateDensity,
    arrays_of,
    emulator_named,
    error_of,
)
from credence.methods.surrogate.fitting import split
from credence.methods.surrogate.true_likelihood import (
    Target,
    check_points,
    points_at,
)
from credence.methods.surrogate.worth import checked_error, outlook

CALIBRATED, EXPLORED, WARMED_UP = 0.3, 0.55, 0.7
"""Shares of max_seconds used up when these must end."""
MOST_CLIMB = 1000
"""Steps of L-BFGS towards a mode."""
MIN_CALIBRATION = 10
"""Draws per chain that leave some to fit and some to hold out."""
TOO_FEW_DRAWS = (
    "Time ran out when the calibration had one draw of each chain: an emulator learns from more, "
    "and is tested on others. Give more seconds, or use method='mclmc', which needs no emulator."
)


@dataclass(frozen=True, kw_only=True)
class CES(TrainedChains):
    """Calibrate, emulate, sample (Moslemi, Meng, Lan & Shahbaba, "Scaling up Bayesian neural
    networks with neural networks", 2024, algorithm 3, there FBNN), and what makes it exact.

    Modes or a sampler's draws calibrate: with the likelihood there, they train an emulator of it.
    Chains then move by the emulator, which sees no data, or few. With delayed acceptance the true
    likelihood decides after every `surrogate_steps` whether they stay there: exact, however poor
    the emulator, which costs acceptance alone.

    The target acceptance rate is that of the emulator's chain; num_warmup and thinning count
    evaluations of the likelihood.

    Args beyond those of `TrainedChains`:
        calibration: "mode", every chain's own; or the draws of "sghmc", "pcn", or, raw from a
            random start as the FBNN paper has them, "sghmc_public" and "pcn_public".
        calibration_rows: at random, that these samplers see, and the training before them; None for
            all in memory, or of those on disk as many as fit 256 MB. The emulator learns from all
            rows.
        num_calibration: draws per chain for the emulator to learn from; a fifth is held out.
        num_refinements: rounds in which the emulator's chain, half as long as the warm-up, leads to
            as many more draws, and the emulator learns from them too; 0 as published.
        emulator: an emulator; or the name of one of `emulators.EMULATORS`, or "published:DATASET"
            for the network that the FBNN paper gives for a data set of its own.
        sampler: of the emulator's chain: "hmc", "nuts", "mclmc" or "mala" along its gradient,
            "pcn", a `Tunable` of your own, or, without correction, "sghmc".
        correction: "delayed_acceptance" (see `credence.methods.surrogate.delayed_acceptance`);
            "psis", importance weights of the draws, which the tail index k-hat may refute; or
            "none", as published.
        surrogate_steps: of the emulator's chain from one evaluation of the likelihood to the next;
            None tunes them in the warm-up.
        step_size: of the emulator's chain, which then samples from the calibration's last draws on,
            without a warm-up, as published; None tunes it in the warm-up.
        reference: of pCN: "posterior", the calibration's moments; or "prior", as published. None is
            the first.
        max_error: nats by which the emulator may be off at held-out draws (root mean square).

    Scalars: acceptance_rate (of the likelihood), first_acceptance_rate (of the emulator's chain),
    log_density and log_surrogate (nats, means over a draw's steps; of the draws themselves with
    "psis", and without correction, there at 50 draws of a chain, else NaN), emulator_error (nats),
    emulator_error_share (of the variance), and pareto_k with "psis".
    """

    name: ClassVar[str] = "ces"
    reads_disk: ClassVar[bool] = True
    summary: ClassVar[str] = "calibrate, emulate, sample (FBNN): exact by delayed acceptance"
    sources: ClassVar[tuple[str, ...]] = (
        (
            'Moslemi, Meng, Lan & Shahbaba, "Scaling up Bayesian neural networks with '
            'neural networks" (2024)'
        ),
        'Cleary, Garbuno-Inigo, Lan, Schneider & Stuart, "Calibrate, emulate, sample" (2021)',
        'Christen & Fox, "Markov chain Monte Carlo using an approximation" (2005)',
    )
    findings: ClassVar[tuple[type[Finding], ...]] = (Emulation,)

    calibration: str = "mode"
    calibration_rows: int | None = None
    num_calibration: int = 100
    num_refinements: int = 2
    emulator: Emulator | str = field(default=Coreset())
    sampler: str | Tunable = "nuts"
    correction: str = "delayed_acceptance"
    surrogate_steps: int | None = None
    step_size: float | None = None
    reference: str | None = None
    max_error: float = 10.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_name("correction", self.correction, CORRECTIONS)
        object.__setattr__(self, "sampler", checked_sampler(self.sampler, self._correction))
        check_name("calibration", self.calibration, CALIBRATIONS)
        check_name("reference", self._reference, ("posterior", "prior"))
        if not has_reference(str(self.sampler)):
            refuse_unread(self, f"of pCN and nothing to sampler='{self.sampler}'", "reference")
        if isinstance(self.emulator, str):
            object.__setattr__(self, "emulator", emulator_named(self.emulator))
        require_positive(
            max_error=None if self.max_error == np.inf else self.max_error,
            surrogate_steps=self.surrogate_steps,
            step_size=self.step_size,
            calibration_rows=self.calibration_rows,
        )
        if self.step_size is not None:
            check_step(self.step_size, str(self.sampler))
            refuse_unread(self, "what step sizes are tuned to", "target_acceptance_rate")
            if self._correction.tests_moves and self.surrogate_steps is None:
                raise InputError(
                    f"With step_size={self.step_size:g} there is no warm-up, and nothing tunes how "
                    "many steps lead to a draw: give surrogate_steps too."
                )
        if self.calibration == MODE:
            reader = "of samplers that calibrate and nothing to calibration='mode'"
            refuse_unread(self, reader, "calibration_rows")
        if self.calibration in (PUBLIC, PUBLIC_PCN) and self.training != type(self).training:
            raise UnreadSetting(
                "training is of networks where chains start, and those of "
                f"calibration='{self.calibration}' start at random, as published: leave it out.",
                "training",
            )
        if self.num_refinements < 0:
            raise InputError(f"num_refinements must be >= 0, got {self.num_refinements}.")
        if self.calibration == "mode" and (self.num_refinements == 0 or self._emulator.needs_draws):
            raise InputError(
                "A mode per chain is too little to teach an emulator: calibrate by draws "
                "(calibration='sghmc'), or use emulator='coreset' with num_refinements >= 1."
            )
        if self.correction == "psis" and self.num_draws < MIN_DRAWS:
            raise InputError(
                f"correction='psis' smooths the weights of at least {MIN_DRAWS} draws per chain, "
                f"got num_draws={self.num_draws}: draw more, or use "
                "correction='delayed_acceptance'."
            )
        if self.num_calibration < MIN_CALIBRATION:
            raise InputError(
                f"num_calibration must be at least {MIN_CALIBRATION}, got {self.num_calibration}: "
                "the emulator learns from these draws; 100 are usual."
            )

    @classmethod
    def from_settings(cls, settings: dict[str, Any], *, is_saved: bool = False) -> Algorithm:
        """Read settings as `Method.from_settings` does; the emulator may be given by its name."""
        settings = dict(settings)
        if isinstance(found := settings.pop("emulator", cls.emulator), dict):
            fields = dict(found)
            found = from_fields(EMULATORS[fields.pop("name")], fields, is_saved=is_saved)
        return replace(super().from_settings(settings, is_saved=is_saved), emulator=found)

    def prepared(self, posterior: Posterior) -> Posterior:
        """The posterior itself.

        Raises:
            InputError: where calibration, emulator or chain cannot take it.
        """
        check_weights(sampler_named(str(self.sampler)).warmup, posterior.num_weights)
        draws = (1 + self.num_refinements) * self.num_chains * self.num_calibration
        self._emulator.check(posterior, draws)
        if self.calibration != MODE:
            self._sampler.prepared(posterior)
        asks_prior = self._reference == "prior" or self.calibration == MODE
        if asks_prior and has_reference(str(self.sampler)):
            prior_reference(posterior)
        return posterior

    def _run(self, key: PRNGKeyArray, posterior: Posterior, driver: Driver) -> Drawn:
        key_calibrate, key_rounds, key_emulate, key_move, key_reweigh = jax.random.split(key, 5)
        driver.progress.say(outlook(posterior, self._emulator, str(self.sampler)))
        points, target = self._calibrate(key_calibrate, posterior, driver)
        for number in range(1, self.num_refinements + 1):
            key_fit, key_explore = jax.random.split(jax.random.fold_in(key_rounds, number))
            emulated, _ = self._emulate(f"emulate {number}", key_fit, points, target)
            if emulated.is_likelihood:
                break
            points = self._explore(number, key_explore, emulated, points, target)
        emulated, error = self._emulate("emulate", key_emulate, points, target)
        if error is None:
            raise OutOfTime(TOO_FEW_DRAWS)
        drawn = self._move(key_move, emulated, points, target)
        drawn = self._correction.afterwards(key_reweigh, drawn, emulated, target)
        shape = drawn.positions.shape[:2]
        errors = {"emulator_error": error.nats, "emulator_error_share": error.share}
        scalars = {name: np.full(shape, number) for name, number in errors.items()}
        found = {**emulated.about, "is_likelihood": emulated.is_likelihood}
        return drawn._replace(scalars=drawn.scalars | scalars, found=found)

    def _calibrate(
        self, key: PRNGKeyArray, posterior: Posterior, driver: Driver
    ) -> tuple[Points, Target]:
        """Modes, or draws of a sampler that need not have converged, and the likelihood there."""
        key_draw, key_part, key_evaluate = jax.random.split(key, 3)
        with driver.part("calibrate", cost_class="calibrate", budget_share=CALIBRATED):
            if self.calibration == "mode":
                key_train, key_climb = jax.random.split(key_draw)
                start = self._start(key_train, posterior, driver, budget_share=0.5)
                modes = summits(key_climb, posterior, driver, start, MOST_CLIMB)
                positions = np.asarray(modes)[:, None]
            else:
                known = posterior.part(key_part, self.calibration_rows)
                positions = calibration_draws(key_draw, self._sampler, known, driver)
            target = Target(posterior, posterior.anchored(jnp.asarray(positions[0, -1])), driver)
            points = points_at("evaluate", key_evaluate, positions, target)
        check_points(points)
        return points, target

    def _emulate(
        self, name: str, key: PRNGKeyArray, points: Points, target: Target
    ) -> tuple[Emulated, Error | None]:
        """The emulator that the points teach, and its error at those held out, if there are any."""
        to_fit, held_out = split(points) if points.positions.shape[1] > 1 else (points, None)
        with target.driver.part(name, cost_class="emulate", budget_share=EXPLORED):
            emulated = self._emulator.fit(key, to_fit, *target)
        if emulated.is_likelihood:
            return emulated, Error(0.0, 0.0)
        if held_out is None:
            return emulated, None
        error = error_of(emulated, held_out)
        return emulated, checked_error(error, target.driver, self.max_error, self.num_calibration)

    def _explore(
        self, number: int, key: PRNGKeyArray, emulated: Emulated, points: Points, target: Target
    ) -> Points:
        """More points: where the emulator's chain leads, kept by the likelihood near the posterior.

        An uncorrected chain finds the emulator's errors faster, but hundreds of nats away, where
        there is no end of them.
        """
        key_move, key_evaluate = jax.random.split(key)
        until = CALIBRATED + (EXPLORED - CALIBRATED) * number / self.num_refinements
        with target.driver.part(f"calibrate {number}", cost_class="calibrate", budget_share=until):
            shorter = replace(self, num_warmup=max(1, self.num_warmup // 2))
            _, found = shorter._warmed_up(
                key_move, emulated, points, target, DELAYED, keep_draws=True, budget_share=1.0
            )
            newest = found.draws[:, -self.num_calibration :]
            more = points_at("evaluate", key_evaluate, newest, target)
        return Points(*(np.concatenate(parts, axis=1) for parts in zip(points, more, strict=True)))

    def _move(self, key: PRNGKeyArray, emulated: Emulated, points: Points, target: Target) -> Drawn:
        """Warm up and sample by the emulator, from where the calibration ended."""
        key_warmup, key_sample = jax.random.split(key)
        states = self._correction.states(emulated, points)
        if self.step_size is None:
            plan, warmup = self._warmed_up(
                key_warmup, emulated, points, target, self._correction, budget_share=WARMED_UP
            )
            memory, states = warmup.memory, warmup.states
        else:
            plan = self._warmup(key_warmup, emulated, points, target, self._correction)
            memory = plan.adapter.memory
        build = sampler_named(str(self.sampler)).build
        cost = self._fixed_cost(target.posterior)
        recipe = self._correction.recipe(build, emulated, target.posterior, cost)
        plan = self._sample_plan(plan, memory, thinning=self.thinning)
        plan = replace(plan, recipe=recipe)
        return Drawn.by(target.driver.phase("sample", key_sample, plan, states, target.data))

    def _warmed_up(
        self,
        key: PRNGKeyArray,
        emulated: Emulated,
        points: Points,
        target: Target,
        correction: Correction,
        **varied: Any,
    ) -> tuple[Plan, PhaseResult]:
        """Warm up from the last points on.

        Args:
            varied: what differs from the usual plan of a warm-up.
        """
        key_tune, key_move = jax.random.split(key)
        plan = replace(self._warmup(key_tune, emulated, points, target, correction), **varied)
        states = correction.states(emulated, points)
        return plan, target.driver.phase("warmup", key_move, plan, states, target.data)

    def _warmup(
        self,
        key: PRNGKeyArray,
        emulated: Emulated,
        points: Points,
        target: Target,
        correction: Correction,
    ) -> Plan:
        """The plan of a warm-up, with what tunes the emulator's chain."""
        sampler = sampler_named(str(self.sampler))
        arrays = arrays_of(emulated, target.data)
        start = Warmup(
            key,
            points,
            target.posterior,
            SurrogateDensity(target.posterior.model, emulated.log_likelihood),
            jax.tree.map(lambda leaf: leaf[0], arrays),
            self._rounds(self.thinning).number,
            self.target_acceptance_rate,
            self._reference,
        )
        usual = None if correction.tests_moves else sampler.steps
        adapter = steps_adaptation(
            sampler,
            start,
            {"surrogates": arrays},
            num_steps=self.surrogate_steps or usual,
            most=affordable(target.posterior, emulated.flops * sampler.warmup.evaluations),
        )
        if self.step_size is not None:
            adapter = with_step(adapter, self.step_size)
        cost = self._fixed_cost(target.posterior)
        recipe = correction.recipe(sampler.warmup.build, emulated, target.posterior, cost)
        plan = self._rounds(self.thinning).plan(recipe, adapter)
        return replace(plan, surrogate_flops=emulated.flops)

    def _fixed_cost(self, posterior: Posterior) -> bool:
        """Whether chains move abreast."""
        return sampler_named(str(self.sampler)).fixed_cost or shares_passes(posterior)

    @property
    def _reference(self) -> str:
        return "posterior" if self.reference is None else self.reference

    @property
    def _correction(self) -> Correction:
        return CORRECTIONS[self.correction]

    @property
    def _sampler(self) -> Method:
        """What draws in the calibration."""
        return sampler_of(self.calibration, self.num_calibration, self.num_chains, self.training)

    @property
    def _emulator(self) -> Emulator:
        assert isinstance(self.emulator, Emulator)  # since __post_init__
        return self.emulator


def affordable(posterior: Posterior, flops_per_step: float) -> int:
    """Steps of the emulator's chain that cost as much as one likelihood."""
    exact = 2.0 * posterior.num_points * posterior.num_weights
    return int(np.clip(exact / max(flops_per_step, 1.0), 1, MOST_STEPS))
