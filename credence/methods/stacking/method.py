"""Stacking: sample several models, score each on rows its chains left out, and combine them."""

from dataclasses import asdict, dataclass, field, replace
from functools import reduce
from operator import add
from pathlib import Path
from time import perf_counter
from typing import ClassVar, NamedTuple

import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from credence.density.posterior import Posterior
from credence.engine.checkpoint import kept_decision
from credence.engine.phases import seconds_spent
from credence.engine.progress import NoProgress, Progress
from credence.ensembles.candidate import Candidate
from credence.ensembles.diagnostics.stacking import mean_with_error
from credence.ensembles.ensemble import Ensemble
from credence.ensembles.findings import Finding
from credence.ensembles.provenance import Provenance
from credence.ensembles.stack import Stack
from credence.ensembles.weighing import weighed
from credence.errors import (
    InputError,
    Interrupted,
    check_share,
    plural,
    require_positive,
    time_limit,
)
from credence.html.wording import duration
from credence.methods.algorithm import Algorithm
from credence.methods.base import as_key, fingerprint
from credence.methods.stacking.candidates import UNTRIED, Candidates
from credence.methods.stacking.encoding import Encodings
from credence.methods.stacking.folds import FoldChains
from credence.methods.stacking.left_out import (
    left_out,
    mean_weights,
    mixed_cdfs,
    predict_left_out,
    shape_of_mixture,
    temperature_of_mixture,
)
from credence.methods.stacking.models import OWN_MODEL, ModelSpec, usual_models
from credence.methods.stacking.pace import (
    Budget,
    affordable,
    expected_seconds,
    least_seconds,
    work_within,
)


class Trial(NamedTuple):
    """A model to try."""

    place: int
    """Among all that are wanted: there may not be time for some."""
    text: str
    description: str
    job: Posterior
    key: PRNGKeyArray
    least_seconds: float

    def folder_in(self, folder: Path) -> Path:
        """The folder of its checkpoints, within that of the run."""
        return folder / f"model_{self.place}"

    def has_begun(self, folder: Path | None) -> bool:
        """Whether an earlier process has begun to sample it."""
        return folder is not None and self.folder_in(folder).exists()


@dataclass(frozen=True, kw_only=True)
class Stacking(Algorithm):
    """Bayesian stacking of several models, by cross-validation.

    Yao, Vehtari, Simpson & Gelman, "Using stacking to average Bayesian predictive distributions"
    (2018). Each model is sampled by chains that leave out a fold of the rows; the weights are those
    with which the models together give left-out rows the highest probability. Leave-one-out by
    importance weights would be cheaper, but of networks that bend much it is far too kind: one row
    decides too much of what the posterior says of it.

    Args:
        models: what to try, HIDDEN/PRIOR/LIKELIHOOD each, such as 50-50/unit/student_t; "own" in
            place of a part is that of the posterior, and ple-50-50 and plv-50-50 are networks of
            encoded inputs. None are usual ones of its task; of a model that was named, that one.
        least_weight: models with less are left out.
        chains: how each model is sampled.
        max_work: rows times weights that a row uses times gradients of all chains, at most, of
            each model of a table of 1000 rows: about 15 seconds on two cores. Larger tables take
            longer, by the square root of their rows, with shorter trajectories and at last fewer
            draws.
    """

    name: ClassVar[str] = "stacking"
    summary: ClassVar[str] = "several models, cross-validated and weighted by stacking"
    sources: ClassVar[tuple[str, ...]] = (
        (
            'Yao, Vehtari, Simpson & Gelman, "Using stacking to average Bayesian predictive '
            'distributions" (2018)'
        ),
        'Ranjan & Gneiting, "Combining probability forecasts" (2010)',
        'Gneiting & Ranjan, "Combining predictive distributions" (2013)',
        'Yao, Vehtari & Gelman, "Stacking for non-mixing Bayesian computations" (2022)',
        'Sommer, Robnik, Nozadze, Seljak & Ruegamer, "Microcanonical Langevin ensembles" (2025)',
    )
    is_chain: ClassVar[bool] = False
    findings: ClassVar[tuple[type[Finding], ...]] = (Candidates,)

    models: tuple[str, ...] = ()
    least_weight: float = 0.01
    chains: FoldChains = field(default=FoldChains())
    max_work: float = 2.5e11

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.models, str):
            raise InputError(f"models must be a list, got {self.models!r}.")
        require_positive(max_work=self.max_work)
        check_share("0.01 is usual", least_weight=self.least_weight)
        object.__setattr__(self, "models", tuple(self.models))
        for model in self.models:
            ModelSpec.read(model)

    def for_named_model(self) -> "Stacking":
        """The models that were asked for, or the named one alone."""
        return self if self.models else replace(self, models=(OWN_MODEL,))

    def run(
        self,
        key: PRNGKeyArray | int,
        posterior: Posterior,
        *,
        folder: str | Path | None = None,
        progress: Progress | None = None,
        max_seconds: float | None = None,
    ) -> Stack:
        """Sample every model and stack them; arguments and errors as of `Algorithm.run`.

        Where time is limited, as many models are tried as there is time for, at least one; if need
        be with shorter training and trajectories, and fewer draws. After Ctrl-C the models that
        have draws are stacked.
        """
        chains = self.chains.for_groups(posterior)
        if chains != self.chains:
            method = replace(self, chains=chains)
            return method.run(
                key, posterior, folder=folder, progress=progress, max_seconds=max_seconds
            )
        max_seconds = time_limit(max_seconds)
        start, progress = perf_counter(), progress or NoProgress()
        folder = None if folder is None else Path(folder)
        budget = Budget.of(max_seconds, posterior.num_points, seconds_spent(folder))
        wanted = self._trials(as_key(key), posterior)
        chosen = affordable(_least_seconds(wanted), budget.seconds_left)
        trials = [each for each in wanted if each.place in chosen or each.has_begun(folder)]
        if max_seconds is not None and len(trials) < len(wanted):
            enough = f"enough for {len(trials)} of {plural(len(wanted), 'model')}."
            progress.say(f"The fit has {max_seconds:.3g} s, {enough}")
        expected = sum(self.expected_seconds(each.job) for each in trials)
        about = f"about {duration(min(expected, budget.seconds_left))} on two free cores"
        more = "and compilation and the final checks"
        progress.say(f"{plural(len(trials), 'model')} to try: {about}, {more}.")
        ensembles, is_cut = self._sample(trials, folder, progress, budget)
        provenance = Provenance(
            self.name,
            asdict(self) | {"models": [each.text for each in trials]},
            int(key) if isinstance(key, int | np.integer) else None,
            fingerprint(posterior),
            _stopped(ensembles, len(trials), is_cut=is_cut or len(trials) < len(wanted)),
            found={UNTRIED: _untried(wanted, trials)},
        )
        return self._stack(ensembles, trials, posterior, provenance, start)

    def affordable_passes(self, posterior: Posterior) -> float:
        """How often all chains of one model may pass over the rows while they are trained."""
        return self.chains.affordable_passes(posterior, self.max_work)

    def expected_seconds(self, posterior: Posterior) -> float:
        """How long one model is expected to take on two cores, compiling included."""
        return expected_seconds(self.chains, posterior, self.max_work)

    def _trials(self, key: PRNGKeyArray, posterior: Posterior) -> list[Trial]:
        """All models that are wanted."""
        encodings = Encodings(posterior.data)
        texts = self.models or usual_models(posterior, encodings)
        trials = []
        for place, (text, own) in enumerate(
            zip(texts, jax.random.split(key, len(texts)), strict=True)
        ):
            spec = ModelSpec.read(text)
            job = spec.posterior(posterior, encodings)
            needed = least_seconds(self.chains, job)
            trials.append(Trial(place, text, spec.describe(), job, own, needed))
        return trials

    def _sample(
        self, trials: list[Trial], folder: Path | None, progress: Progress, budget: Budget
    ) -> tuple[list[Ensemble], bool]:
        """Sample one model after another; all, or those that time and Ctrl-C leave.

        Returns:
            the ensembles, and whether one of them was planned shorter for want of time.
        Raises:
            Interrupted: on Ctrl-C before there was a draw.
        """
        ensembles, is_cut = list[Ensemble](), False
        for number, trial in enumerate(trials):
            progress.say(f"Model {number + 1} of {len(trials)}: {trial.description}.")
            seconds = budget.share(_least_seconds(trials[number:]))
            chains = self._planned(trial, seconds, folder)
            is_cut |= chains != self.chains.within(trial.job, self.max_work)
            own = None if folder is None else trial.folder_in(folder)
            try:
                ensembles.append(
                    chains.run(
                        trial.key,
                        trial.job,
                        folder=own,
                        progress=progress,
                        max_seconds=None if np.isinf(seconds) else seconds + seconds_spent(own),
                    )
                )
            except Interrupted:
                if not ensembles:
                    raise
                break
            if ensembles[-1].provenance.stopped == "interrupt":
                break
        return ensembles, is_cut

    def _planned(self, trial: Trial, seconds: float, folder: Path | None) -> FoldChains:
        """The chains of a model with the work that so many seconds are for.

        A model that has begun keeps its plan when the run is resumed; all its work, if it has none.
        """
        share = min(1.0, work_within(self.chains, trial.job, seconds) / self.max_work)
        if folder is not None:
            path, has_begun = folder / f"share_of_work_{trial.place}.json", trial.has_begun(folder)
            if not has_begun:
                path.unlink(missing_ok=True)
            share = kept_decision(path, float, lambda: 1.0 if has_begun else share)
        return self.chains.within(trial.job, share * self.max_work)

    def _stack(
        self,
        ensembles: list[Ensemble],
        trials: list[Trial],
        posterior: Posterior,
        provenance: Provenance,
        start: float,
    ) -> Stack:
        """Score the models on rows that they have not seen, and weigh them."""
        found = [left_out(each, self.chains, posterior) for each in ensembles]
        scores = np.stack([each.log_probs for each in found], axis=1)
        row_weight = np.asarray(posterior.data.weight, float)
        stacked = weighed(
            ensembles,
            scores,
            [
                _candidate(index, trial.description, *mean_with_error(column, row_weight))
                for index, (trial, column) in enumerate(zip(trials, scores.T, strict=False))
            ],
            cost=reduce(add, (each.cost for each in ensembles)),
            provenance=provenance,
            row_weight=row_weight,
            least_weight=self.least_weight,
        )
        found = [
            each
            for each, candidate in zip(found, stacked.candidates, strict=True)
            if candidate.weight
        ]
        cdfs = mixed_cdfs(found, stacked.part_weights)
        stacked = replace(
            stacked,
            mean_weights=mean_weights(found, posterior),
            shape=shape_of_mixture(cdfs, self.chains.num_chains, row_weight),
            temperature=temperature_of_mixture(found, stacked.part_weights, posterior),
        )
        stacked = predict_left_out(stacked, self.chains, posterior, cdfs)
        seconds = dict(stacked.cost.seconds)
        seconds["weigh"] = max(perf_counter() - start - sum(seconds.values()), 0.0)
        return replace(stacked, cost=replace(stacked.cost, seconds=seconds))


def _untried(wanted: list[Trial], trials: list[Trial]) -> list[str]:
    """Descriptions of the models that there was no time for."""
    places = {each.place for each in trials}
    return [each.description for each in wanted if each.place not in places]


def _least_seconds(trials: list[Trial]) -> list[float]:
    """The shortest times that are worth giving to the models."""
    return [each.least_seconds for each in trials]


def _candidate(index: int, description: str, log_score: float, log_score_error: float) -> Candidate:
    """A model, before it is weighed."""
    return Candidate(
        ensemble=index,
        chain=None,
        log_score=log_score,
        log_score_error=log_score_error,
        share_unreliable=None,
        weight=0.0,
        name=description,
    )


def _stopped(ensembles: list[Ensemble], num_models: int, *, is_cut: bool) -> str:
    """How the run ended: of models that time or Ctrl-C cut short, the worst.

    Args:
        is_cut: whether models were left out or shortened for want of time.
    """
    ends = {each.provenance.stopped for each in ensembles}
    if "interrupt" in ends or len(ensembles) < num_models:
        return "interrupt"
    return "time" if is_cut or "time" in ends else "finished"
