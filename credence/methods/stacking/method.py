"""Stacking: sample several models, score each on rows its chains left out, and combine them."""

from dataclasses import asdict, dataclass, field, replace
from functools import reduce
from operator import add
from pathlib import Path
from time import perf_counter
from typing import ClassVar

import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from credence.density.posterior import Posterior
from credence.engine.progress import NoProgress, Progress
from credence.ensembles.diagnostics.stacking import mean_with_error
from credence.ensembles.ensemble import Ensemble
from credence.ensembles.findings import Finding
from credence.ensembles.provenance import Provenance
from credence.ensembles.stack import Candidate, Stack
from credence.ensembles.weighing import weighed
from credence.errors import InputError, Interrupted, check_share, plural, require_positive
from credence.html.wording import duration
from credence.methods.base import Algorithm, as_key, fingerprint
from credence.methods.stacking.candidates import Candidates
from credence.methods.stacking.folds import SAMPLING_SHARE, FoldChains
from credence.methods.stacking.left_out import (
    left_out,
    mean_weights,
    mixed_cdfs,
    predict_left_out,
    shape_of_mixture,
    temperature_of_mixture,
)
from credence.methods.stacking.models import ModelSpec, usual_models

SECONDS_OF_A_MODEL = 10.0
"""Time in which a model can be compiled and sampled at all."""
SECONDS_TO_COMPILE = 5.5
"""How long it takes to compile a model's programs on two cores, measured."""
WORK_PER_SECOND = 5.4e10
"""Rows times weights times gradients that a model may use, for each second that it takes, of tables
of at most 1000 rows on two cores, measured. Most models end before they have used all."""
SLOWER_BY_ROWS = 0.28
"""The power of the rows with which that falls in larger tables: measured up to 41,000 rows, where
forecasts were 0.96 to 1.4 times what it took; and 2 times with wide networks on 100,000."""


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
            encoded inputs. None are usual ones of its task.
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

        Where time is limited, one model is tried for every 10 seconds, at least one, and each has
        an equal share of what is left; after Ctrl-C the models that have draws are stacked.
        """
        start, progress = perf_counter(), progress or NoProgress()
        wanted = self.models or usual_models(posterior)
        texts = _affordable(wanted, max_seconds)
        if max_seconds is not None and len(texts) < len(wanted):
            enough = f"enough for {len(texts)} of {plural(len(wanted), 'model')}."
            progress.say(f"{max_seconds:.3g} s are {enough}")
        specs = [ModelSpec.read(text) for text in texts]
        jobs = [spec.posterior(posterior) for spec in specs]
        expected = min(sum(map(self.expected_seconds, jobs)), max_seconds or np.inf)
        about = f"about {duration(expected)} on two free cores, and the final checks"
        progress.say(f"{plural(len(jobs), 'model')} to try: {about}.")
        ends_at = None if max_seconds is None else start + max_seconds
        place = None if folder is None else Path(folder)
        ensembles = self._sample(as_key(key), specs, jobs, place, progress, ends_at)
        provenance = Provenance(
            self.name,
            asdict(self) | {"models": list(texts)},
            int(key) if isinstance(key, int | np.integer) else None,
            fingerprint(posterior),
            _stopped(ensembles, len(specs), is_cut=len(texts) < len(wanted)),
        )
        return self._stack(ensembles, specs, posterior, provenance, start)

    def affordable_passes(self, posterior: Posterior) -> float:
        """How often all chains of one model may pass over the rows while they are trained."""
        return self.chains.affordable_passes(posterior, self.max_work)

    def expected_seconds(self, posterior: Posterior) -> float:
        """How long one model is expected to take on two cores, compiling included."""
        chains = self.chains
        most = chains.training.max_epochs
        most += (chains.num_warmup + chains.num_draws) * chains.max_integration_steps
        num_passes = min(most, (1 + SAMPLING_SHARE) * self.affordable_passes(posterior))
        pace = WORK_PER_SECOND / max(posterior.num_points / 1000, 1.0) ** SLOWER_BY_ROWS
        return SECONDS_TO_COMPILE + chains.work(posterior, num_passes) / pace

    def _sample(
        self,
        key: PRNGKeyArray,
        specs: list[ModelSpec],
        jobs: list[Posterior],
        folder: Path | None,
        progress: Progress,
        ends_at: float | None,
    ) -> list[Ensemble]:
        """Sample one model after another; all, or those that time and Ctrl-C leave.

        Raises:
            Interrupted: on Ctrl-C before there was a draw.
        """
        ensembles: list[Ensemble] = []
        keys = jax.random.split(key, len(specs))
        for index, (spec, job) in enumerate(zip(specs, jobs, strict=True)):
            place = None if folder is None else folder / f"model_{index}"
            progress.say(f"Model {index + 1} of {len(specs)}: {spec.describe()}.")
            share = _share(ends_at, len(specs) - index)
            chains = self.chains.within(job, self.max_work)
            try:
                ensembles.append(
                    chains.run(keys[index], job, folder=place, progress=progress, max_seconds=share)
                )
            except Interrupted:
                if not ensembles:
                    raise
                break
            if ensembles[-1].provenance.stopped == "interrupt":
                break
        return ensembles

    def _stack(
        self,
        ensembles: list[Ensemble],
        specs: list[ModelSpec],
        posterior: Posterior,
        provenance: Provenance,
        start: float,
    ) -> Stack:
        """Score the models on rows that they have not seen, and weigh them."""
        found = [left_out(each, self.chains, posterior) for each in ensembles]
        scores = np.stack([each.log_probs for each in found], axis=1)
        stacked = weighed(
            ensembles,
            scores,
            [
                Candidate(index, None, *mean_with_error(column), None, 0.0, specs[index].describe())
                for index, column in enumerate(scores.T)
            ],
            cost=reduce(add, (each.cost for each in ensembles)),
            provenance=provenance,
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
            shape=shape_of_mixture(cdfs, self.chains.num_chains),
            temperature=temperature_of_mixture(found, stacked.part_weights, posterior),
        )
        stacked = predict_left_out(stacked, self.chains, posterior, cdfs)
        seconds = dict(stacked.cost.seconds)
        seconds["weigh"] = max(perf_counter() - start - sum(seconds.values()), 0.0)
        return replace(stacked, cost=replace(stacked.cost, seconds=seconds))


def _share(ends_at: float | None, num_models: int) -> float | None:
    """Seconds for one of the models that are left."""
    return None if ends_at is None else max(ends_at - perf_counter(), 1e-3) / num_models


def _affordable(models: tuple[str, ...], max_seconds: float | None) -> tuple[str, ...]:
    """The first of the models, as many as there is time for; at least one."""
    if max_seconds is None:
        return models
    return models[: max(int(max_seconds / SECONDS_OF_A_MODEL), 1)]


def _stopped(ensembles: list[Ensemble], num_models: int, *, is_cut: bool) -> str:
    """How the run ended: of models that time or Ctrl-C cut short, the worst.

    Args:
        is_cut: whether models were left out for want of time.
    """
    ends = {each.provenance.stopped for each in ensembles}
    if "interrupt" in ends or len(ensembles) < num_models:
        return "interrupt"
    return "time" if is_cut or "time" in ends else "finished"
