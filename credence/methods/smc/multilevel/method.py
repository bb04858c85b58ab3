"""Multilevel sequential Monte Carlo: a telescoping sum over networks of growing width."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from credence.density.posterior import Posterior
from credence.engine.driver import Driver, compile_ahead
from credence.engine.progress import Progress
from credence.ensembles.ensemble import Ensemble
from credence.ensembles.findings import Finding
from credence.ensembles.predictor import Inputs
from credence.errors import (
    InputError,
    OutOfTime,
    check_name,
    check_particles,
    check_share,
    refuse_unread,
    require_positive,
)
from credence.methods.base import Drawn, Method
from credence.methods.evidence import LogEvidence
from credence.methods.smc.budget import Allotment, Counts, within_budget
from credence.methods.smc.method import PARTICLES_AND_RUNS, from_prior
from credence.methods.smc.multilevel import allocation, nested
from credence.methods.smc.multilevel.coupling import COUPLINGS, CoupledLevels
from credence.methods.smc.multilevel.levels import with_networks
from credence.methods.smc.multilevel.proposal import PROPOSALS, check_conditional
from credence.methods.smc.multilevel.reach import narrowest, share_left
from credence.methods.smc.mutation import Mutation, check_mutation
from credence.methods.smc.tempering import Tempering
from credence.methods.work import total_flops
from credence.models.networks.mlp import Network
from credence.models.priors import TraceClass
from credence.spacing import evenly_spaced

CHOICE = 2**31 - 2
"""The run's key is folded with this for the choice of its levels: all else has the same draws
whether they are told or found."""

PILOT_SHARE = 0.25
"""Share of a time budget after which the choice of the levels must end."""

MOST_PILOT_BYTES = 2**32
"""Bytes that the particles of a pilot's level may take."""

MOST_PILOT_ROWS = 50
"""Rows of the data at which a pilot's increments are compared."""


def are_widths(level: Any) -> bool:
    """Whether this is a tuple of whole numbers."""
    return isinstance(level, tuple) and all(isinstance(width, int) for width in level)


@dataclass(frozen=True, kw_only=True)
class MLSMC(Method):
    """Multilevel SMC: Chada, Jasra, Law & Singh, "Bayesian Deep Learning with Multilevel
    Trace-class Neural Networks", Algorithm 3.1 and the estimator (3.5).

    Level l is a network whose parameters are the leading block of level l + 1's, under a prior for
    which that block has the coarse prior's law (`models.TraceClass`). Particles that know level l
    are mutated there, get the new rows and columns from the prior, and are weighed by
    G = L_{l+1} / L_l. Many cheap coarse particles carry the variance, few fine ones the
    difference:

        E f ~ sum W f_1 + sum over l of (sum W f_l - mean f_{l-1}),

    which the ensemble holds as *signed* weights of networks embedded in the finest. Where the
    effective sample size of the weights G would fall below `direct_ess`, the step from level to
    level is tempered along L_l^(1 - t) L_{l+1}^t, each temperature with its own difference in the
    sum: (3.5) again, on a longer sequence of densities.

    Args:
        widths: hidden widths of every level, from coarse to fine, the last as the posterior's
            network; None: `num_levels` or as many as there are above `base`, each `ratio` wider;
            without those two and with one number of particles: the narrowest whose particles can be
            weighed to the finest at once, as small runs tell (see
            `credence.methods.smc.multilevel.reach`), and the finest; the finest alone where less
            than `direct_ess` of them is left even from the widest other level.
        num_levels, base, ratio: see `credence.methods.smc.multilevel.nested.widths`; without
            widths or coarse networks. None for ratio is 2.
        coarse: networks of the coarse levels, where they differ otherwise than in width.
        num_particles: of every level; one number is the coarsest level's, and `allocation.usual`
            says how many the others get. See `allocated` for a wanted variance. With a time budget
            at most so many of the coarsest level: a small run says how many it affords, and how
            many the others should get.
        num_runs: independent runs; their spread is the Monte Carlo error.
        coupling: "sequential" is the algorithm above. "independent", as in the paper's code: every
            increment from particles of its own, tempered from the fine prior to prior times
            max(L_{l-1}, L_l) and weighed from there to both levels.
        proposal: of the weights that are new at a level, with coupling="sequential". "prior", or
            "conditional": the weights from new neurons to the outputs from their law given the
            data and all else, exact for normal noise; for other likelihoods one Newton step, and a
            tenth of the draws from the prior.
        num_tries: draws of the new weights for each particle that knows the level below. All are
            weighed, and count, where that leads to the level at once; where particles are tempered,
            only the first does. Weighing is cheap beside moving, but all are kept: memory grows in
            proportion.
        direct_ess: effective sample size of the weights between levels, over the number of
            particles, from which on a level is reached by weights alone; the weight of a particle
            is the mean over its tries. Below it particles are tempered, with `mutation.ess_target`,
            and moved at the fine level, which costs as much as hundreds of them that are only
            weighed.
        mutation: how particles move and resample, and the ESS to keep.

    Scalars: log_evidence (nats) of the run; of a member its level, that level's evidence as the run
    has it (level_log_evidence, nats), the increment (term of the sum) in which it counts, and for
    that increment num_temperatures, 1 where weights alone lead to the level, and the flops that one
    particle cost.
    """

    name: ClassVar[str] = "mlsmc"
    summary: ClassVar[str] = "multilevel SMC over widths: exact in the limit, with evidence"
    sources: ClassVar[tuple[str, ...]] = (
        (
            'Chada, Jasra, Law & Singh, "Bayesian deep learning with multilevel trace-class '
            'neural networks"'
        ),
        'Beskos, Jasra, Law, Tempone & Zhou, "Multilevel sequential Monte Carlo samplers" (2017)',
    )
    findings: ClassVar[tuple[type[Finding], ...]] = (LogEvidence,)
    is_chain: ClassVar[bool] = False
    prior: ClassVar[str] = "trace_class"
    aliases: ClassVar[Mapping[str, str]] = PARTICLES_AND_RUNS

    widths: tuple[tuple[int, ...], ...] | None = None
    num_levels: int | None = None
    base: int | None = None
    ratio: float | None = None
    coarse: tuple[Network, ...] = ()
    num_particles: int | tuple[int, ...] = 500
    num_runs: int = 4
    coupling: str = "sequential"
    proposal: str = "prior"
    num_tries: int = 1
    direct_ess: float = 0.2
    mutation: Mutation = field(default=Mutation())

    def __post_init__(self) -> None:
        super().__post_init__()
        check_name("coupling", self.coupling, COUPLINGS)
        check_name("proposal", self.proposal, PROPOSALS)
        if self.proposal != "prior" and self.coupling != "sequential":
            raise InputError(
                f'proposal="{self.proposal}" is of particles that know the level below: use '
                'coupling="sequential".'
            )
        if self.num_tries > 1 and self.coupling != "sequential":
            raise InputError(
                f"num_tries={self.num_tries} are draws for particles that know the level below: "
                'use coupling="sequential".'
            )
        if self.coupling != "sequential":
            refuse_unread(self, "of coupling='sequential', where weights may lead on", "direct_ess")
        if self.widths is not None and self.coarse:
            raise InputError("widths say which levels there are, and so does coarse: give one.")
        if self.widths is not None or self.coarse:
            told = "coarse" if self.coarse else "widths"
            reader = f"of levels that are found, and {told} says which there are"
            refuse_unread(self, reader, "num_levels", "base", "ratio")
        require_positive(
            num_runs=self.num_runs,
            num_tries=self.num_tries,
            num_levels=self.num_levels,
            base=self.base,
            ratio=self.ratio,
        )
        check_mutation(self.mutation)
        check_share(direct_ess=self.direct_ess)
        counts = self.num_particles
        for count in counts if isinstance(counts, tuple) else (counts,):
            check_particles(count)
        if not all(map(are_widths, self.widths or ())):
            raise InputError(
                "widths are one tuple of hidden widths per level, as ((4,), (8,)), got "
                f"{self.widths}."
            )

    def levels(self, posterior: Posterior) -> list[Posterior]:
        """The posterior of every level, from coarse to fine; before anything is run.

        Where nobody says how many there are, they begin at the coarsest that can be weighed up to
        the next one under the prior (see `allocation.nats_between`).

        Raises:
            InputError: where the levels are not nested, or the prior is not.
        """
        network = posterior.model.network
        networks = [*self.coarse, network]
        if not self.coarse:
            hidden = self.widths or nested.widths(
                nested.hidden_of(network), self.num_levels, self.base, self.ratio or nested.RATIO
            )
            networks = [nested.narrowed(network, one) for one in nested.increasing(hidden)]
        if networks[-1] != network:
            raise InputError(
                f"The last level must be the posterior's own network, got {networks[-1]} for "
                f"{network}: end widths with {_hidden(network)}."
            )
        levels = with_networks(posterior, networks)
        return levels if self._levels_are_given else levels[allocation.coarsest(levels) :]

    @property
    def _levels_are_given(self) -> bool:
        """Whether the user says which levels there are."""
        return any((self.coarse, self.widths, self.num_levels, self.base))

    def _levels_of_run(
        self, key: PRNGKeyArray, posterior: Posterior, driver: Driver
    ) -> list[Posterior]:
        """The levels told; or the finest, and the narrowest from which small runs reach it.

        Where particles would be tempered even from the widest other level, the finest is alone.
        Where time does not suffice for small runs, the levels that the prior alone suggests.
        """
        if self._levels_are_given or isinstance(self.num_particles, tuple):
            return self.levels(posterior)
        levels = replace(self, base=nested.NARROWEST).levels(posterior)
        widths = [_hidden(level.model.network) for level in levels]

        def share(level: int) -> float:
            key_level, name = jax.random.fold_in(key, level), "-".join(map(str, widths[level]))
            how = {"proposal": self.proposal, "num_tries": self.num_tries}
            with driver.part(f"width {name}", budget_share=PILOT_SHARE):
                return share_left(key_level, driver, levels[level], posterior, self.mutation, **how)

        try:
            base, shares = narrowest(len(levels), share)
        except OutOfTime:
            base, shares = -1, []
        for width, left in zip(widths, shares, strict=False):
            driver.progress.say(f"{left:.0%} of particles at width {width[0]} reach the finest.")
        if shares and shares[-1] < self.direct_ess:
            driver.progress.say("No other level is near enough to the finest, which is alone then.")
            base = len(levels) - 1
        base = driver.decided("coarsest level", int, lambda: base)
        if base < 0:
            return self.levels(posterior)
        return [levels[base], *levels[max(base + 1, len(levels) - 1) :]]

    def counts(self, levels: Sequence[Posterior]) -> tuple[int, ...]:
        """Particles of every level.

        Raises:
            InputError: where there are more or fewer numbers than levels.
        """
        if not isinstance(self.num_particles, tuple):
            return allocation.usual(self.num_particles, [level.num_weights for level in levels])
        if len(self.num_particles) != len(levels):
            raise InputError(
                f"num_particles has {len(self.num_particles)} numbers for {len(levels)} levels: "
                "give one per level, or one number."
            )
        return self.num_particles

    def allocated(self, pilot: Ensemble, x: Inputs, variance: float) -> "MLSMC":
        """The same method with as many particles per level as a variance of predictions needs.

        Args:
            pilot: what this method returned, with num_runs >= 2.
            x: inputs at which predictions matter.
            variance: to reach, of one run, in squared units of the network's predictions.
        """
        found = allocation.increments(pilot, x)
        counts = allocation.for_variance(variance, found.variances, found.costs)
        if self._levels_are_given:
            return replace(self, num_particles=counts)
        widths = tuple(map(tuple, pilot.provenance.found["level_widths"]))
        return replace(self, num_particles=counts, widths=widths, ratio=None)

    def for_error(
        self,
        error: float,
        posterior: Posterior,
        x: Inputs,
        *,
        seed: int = 0,
        folder: str | Path | None = None,
        progress: Progress | None = None,
    ) -> tuple["MLSMC", Posterior]:
        """The cheapest settings, found by pilots, that estimate expectations of the network.

        Levels are added until the bias that the increments betray is at most error / sqrt(2);
        particles are allocated for a variance of error^2 / 2. The posterior's own network is the
        finest that is tried. A pilot has this method's settings, with 4 runs at least; where it
        shows too much bias it is repeated with the particles that the error asks for, since its
        noise counts as bias.

        Args:
            error: root mean square, in units of the network's predictions, over x, of one run.
            posterior: with a trace-class prior.
            x: inputs at which predictions matter.
            folder: where pilots are kept, a folder for each: those that are finished are not run
                again.
            progress: what shows the progress of every pilot.
        Returns:
            The method, and the posterior of the finest network that it needs.
        Raises:
            InputError: where the posterior's network is too narrow for the error, or a pilot would
                have more particles than memory holds.
        """
        require_positive(error=error)
        levels = self.levels(posterior)
        self.counts(levels)  # may refuse them
        tolerance, estimate = error / 2**0.5, np.inf
        for count in range(2, len(levels) + 1):
            target, factors = levels[count - 1], _decay(posterior, levels[:count])
            pilot = replace(self._upto(levels[:count]), num_runs=max(self.num_runs, 4))
            for attempt in range(2):  # the second with as little noise as the error asks for
                pilot.check_memory(levels[:count], error)
                place = below(folder, f"{count} levels, pilot {attempt + 1}")
                ensemble = pilot.run(seed + attempt, target, folder=place, progress=progress)
                pilot = pilot.allocated(ensemble, x, error**2 / 2)
                estimate = allocation.bias(allocation.increments(ensemble, x), factors)
                if estimate <= tolerance:
                    return replace(pilot, num_runs=self.num_runs), target
        raise InputError(
            f"The widest network, {posterior.model.network}, is still off by about {estimate:.2g}, "
            f"more than {tolerance:.2g}: give the posterior a wider network, or accept a "
            "larger error."
        )

    def check_memory(self, levels: Sequence[Posterior], error: float) -> None:
        """Refuse a pilot whose particles would not fit in memory."""
        finest, counts = levels[-1].num_weights, self.counts(levels)
        most = max(counts[0], self.num_tries * max(counts[1:]))  # all tries are kept
        itemsize = levels[-1].data.x.dtype.itemsize
        if itemsize * self.num_runs * finest * most > MOST_PILOT_BYTES:
            raise InputError(
                f"An error of {error:g} needs about {max(counts):.1g} particles of a level, more "
                "than memory holds: accept a larger error."
            )

    def _upto(self, levels: Sequence[Posterior]) -> "MLSMC":
        """The same method on fewer levels."""
        networks = tuple(level.model.network for level in levels)
        counts = self.num_particles
        few = {"num_particles": counts[: len(levels)]} if isinstance(counts, tuple) else {}
        if self.coarse:
            return replace(self, coarse=networks[:-1], **few)
        widths = tuple(map(_hidden, networks))
        return replace(self, widths=widths, num_levels=None, base=None, ratio=None, **few)

    def _run(self, key: PRNGKeyArray, posterior: Posterior, driver: Driver) -> Drawn:
        if self.proposal == "conditional":
            check_conditional(posterior.model, posterior.data)
        levels = self._levels_of_run(jax.random.fold_in(key, CHOICE), posterior, driver)
        counts = self.counts(levels)

        def allot(drawn: Drawn) -> Allotment:
            pilot = self._ensemble(posterior, drawn, driver)
            x = posterior.data.x
            return allocation.allotment(pilot, x[evenly_spaced(len(x), MOST_PILOT_ROWS)])

        drawn = within_budget(
            key,
            driver,
            counts,
            partial(self._climbed, driver, levels),
            allot=allot if self.num_runs > 1 and len(levels) > 1 else None,
        )
        widths = [list(_hidden(level.model.network)) for level in levels]
        return drawn if self.coarse else drawn._replace(found={"level_widths": widths})

    def _climbed(
        self, driver: Driver, levels: Sequence[Posterior], key: PRNGKeyArray, counts: Counts
    ) -> Drawn:
        """Take so many particles up all levels."""
        tempering = Tempering(self.mutation, self.num_runs)
        before = total_flops(driver.results.values())
        key_prior, key_temper, *keys = jax.random.split(key, 1 + len(levels))
        memory, data, log_anchor = from_prior(key_prior, levels[0], driver, tempering, counts[0])
        how = {"num_tries": self.num_tries, "direct_ess": self.direct_ess}
        coupled = CoupledLevels(driver, tempering, data, levels, counts, self.proposal, **how)
        shown = zip(levels, counts, strict=True)
        words = (f"{count} on {level.num_weights:,} weights" for level, count in shown)
        driver.progress.say(f"Particles of a run, level by level: {', '.join(words)}.")
        coupling = COUPLINGS[self.coupling]
        above = range(1, len(levels))
        with compile_ahead(partial(coupling.compile, coupled, level) for level in above) as ready:
            reached = [coupled.first(key_temper, memory)]
            spent = [before, total_flops(driver.results.values())]
            for level, key, wait in zip(above, keys, ready, strict=True):
                wait()
                with driver.part(f"level {level}"):
                    reached.append(coupling.climb(coupled, level, key, reached[-1]))
                spent.append(total_flops(driver.results.values()))
        return coupled.telescoped(reached, log_anchor, np.diff(spent).tolist())


def below(folder: str | Path | None, name: str) -> Path | None:
    """The folder of one of several runs; None where none is kept."""
    return None if folder is None else Path(folder) / name


def _hidden(network: Any) -> tuple[int, ...]:
    """Hidden widths of an MLP, inside a wrapper or not."""
    return getattr(getattr(network, "network", network), "hidden", ())


def _decay(posterior: Posterior, levels: Sequence[Posterior]) -> list[float]:
    """Factors by which the bias falls from level to level: ratio of widths^(2 alpha - 1)."""
    prior = posterior.model.prior
    if not isinstance(prior, TraceClass):
        raise InputError(f"Only a TraceClass prior says how fast levels converge, got {prior}.")
    widths = [_hidden(level.model.network) for level in levels]
    ratios = [
        min((m / n for n, m in zip(coarse, fine, strict=True)), default=1.0)
        for coarse, fine in pairwise(widths)
    ]
    if not ratios or min(ratios) <= 1:
        raise InputError(
            f"To estimate a bias every layer must get wider at every level, got {widths}."
        )
    return [ratio ** (2 * prior.alpha - 1) for ratio in ratios]
