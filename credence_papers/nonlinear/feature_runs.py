"""One contender on features of photographs: run, scored, and its curve told."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from credence.density.posterior import Posterior
from credence.ensembles.averages import AveragedPredictions
from credence.ensembles.diagnostics.convergence import assess
from credence.ensembles.diagnostics.cost import Cost
from credence.ensembles.ensemble import Ensemble
from credence.ensembles.scores import (
    Rows,
    averaged_scores,
    classification_scores,
    separation,
)
from credence.errors import Interrupted
from credence.models import MLP, Categorical, Gaussian
from credence.spacing import evenly_spaced
from credence.storage import jsonable
from credence_papers.cache import Cache
from credence_papers.nonlinear.feature_contenders import VALUE, Contender, FeatureEffort
from credence_papers.nonlinear.feature_rows import CORRUPTIONS, SEVERITY, FeatureRows, feature_rows
from credence_papers.nonlinear.feature_said import Said

NUM_LABELS = 10
SCORES = ("accuracy", "nll", "ece", "ece_all_classes", "mce", "mce_all_classes", "brier")
JUDGED = 200
"""Test rows by which the convergence of kept draws is judged."""
WORSE = ("accuracy", "nll", "ece")
"""Scores of images that were made worse."""


@dataclass(frozen=True, kw_only=True)
class FeatureProblem:
    """A network on the features.

    Args:
        hidden: widths of its hidden layers; () is a softmax.
        prior_std: of biases, and of weights times the root of a layer's inputs.
        strangers: classes that no label stands for.
        contenders: only these, by label; () takes all of the effort.
        num_seeds: at most so many; None takes as many as the size has.
        is_early: whether draws begin after one pass of training and one of warm-up, and lie close
            together: see `FeatureProblem.effort`.
    """

    name: str
    description: str = field(compare=False)
    hidden: tuple[int, ...]
    prior_std: float = 1.0
    strangers: tuple[int, ...] = ()
    contenders: tuple[str, ...] = field(default=(), compare=False)
    num_seeds: int | None = field(default=None, compare=False)
    is_early: bool = False

    def effort(self, effort: FeatureEffort) -> FeatureEffort:
        """How much is run of it.

        Where it is early, samplers without partners have as many networks as the others have
        particles, and make twice as many steps: averages of as many networks are compared.
        """
        if self.contenders:
            effort = replace(effort, contenders=effort.contenders or self.contenders)
        if not self.is_early:
            return effort
        passes = {"train": 1, "warmup": 1, "draw": 0.25}
        return replace(effort, passes=passes, num_draws=2 * effort.num_draws, networks_for_one=1)


class LazyRows:
    """The features, read once where a contender is not in the cache."""

    def __init__(self, effort: FeatureEffort, cache: Cache) -> None:
        self.effort, self.cache = effort, cache
        self.made_of = [
            effort.features, effort.num_train, effort.num_test, CORRUPTIONS, SEVERITY
        ]  # fmt: skip
        self.found: FeatureRows | None = None

    def __call__(self) -> FeatureRows:
        if self.found is None:
            effort, folder = self.effort, self.cache.folder.parent
            self.found = feature_rows(
                effort.features,
                effort.num_train,
                effort.num_test,
                folder,
                self.cache.watch,
            )
        return self.found


def measured(
    problem: FeatureProblem,
    contender: Contender,
    effort: FeatureEffort,
    seed: int,
    rows: LazyRows,
    predictions: Path,
    folder: Path,
) -> dict[str, Any]:
    """Scores of one contender, there and where images are strange, its curve, its convergence and
    its cost.

    Args:
        predictions: file in which what it says of the test images is kept.
        folder: of the run's checkpoints.
    Raises:
        Interrupted: on Ctrl-C; the next call goes on where this one stopped.
    """
    found = rows().without(problem.strangers)
    effort = replace(effort, num_train=len(found.x_train))
    network = MLP(NUM_LABELS - len(problem.strangers), problem.hidden)
    prior = Gaussian("fan_in", problem.prior_std, problem.prior_std)
    posterior = Posterior(network, prior, Categorical(), (found.x_train, found.y_train))
    method = contender.build(effort)
    if contender.is_streamed:
        averaged = method.run_averaged(
            seed, posterior, found.x_test, found.y_test, others=found.x_others, folder=folder
        )
        _require_finished(averaged)
        said = Said.of_averages(averaged, found.y_test)
        told = _of_averages(averaged, found, effort)
    else:
        ensemble = method.run(seed, posterior, folder=folder)
        _require_finished(ensemble)
        said = Said.of_members(ensemble, found.x_test, found.y_test)
        told = _of_members(ensemble, found)
    said.write(predictions)
    about = {"features_sha256": found.sha256, "weights": posterior.num_weights}
    return jsonable({**told, **about}, spell_infinite=True)


def _require_finished(run: AveragedPredictions | Ensemble) -> None:
    """Refuse what a stopped run left: kept, it would pass for a whole one."""
    if run.provenance.stopped != "finished":
        raise Interrupted("Stopped before all draws were there; run again to go on.")


def _of_averages(
    averaged: AveragedPredictions, found: FeatureRows, effort: FeatureEffort
) -> dict[str, Any]:
    """What a streamed run tells; its curve begins after training and warm-up, whose work counts."""
    numbers, rows = averaged_scores(averaged, found.y_test)
    gradients = averaged.scalars["num_gradients"].sum(axis=0) * effort.batch_size
    values = averaged.scalars.get("num_evaluations", np.zeros((1, averaged.num_draws)))
    sampled = np.cumsum(gradients + values.sum(axis=0) * effort.batch_size * VALUE)
    before = work(averaged.cost) - sampled[-1]
    paths = averaged.averages.paths
    return {
        **{score: numbers[score] for score in SCORES},
        **_of_others(averaged, found, rows),
        "max_rhat": averaged.max_rhat(),
        "potential_ess": _mean_of(averaged.scalars, "potential_ess"),
        "accepted_jumps": _mean_of(averaged.scalars, "is_accepted_jump"),
        "accepted_of_tried": _accepted_of_tried(averaged.scalars),
        **_cost(averaged.cost),
        "path_work": (before + sampled).tolist(),
        "path_accuracy": (1 - np.asarray(paths["error"], float)).tolist(),
        "path_cloud_accuracy": (1 - np.asarray(paths["cloud_error"], float)).tolist(),
        "path_nll": np.asarray(paths["nll"], float).tolist(),
    }


def _of_others(averaged: AveragedPredictions, found: FeatureRows, rows: Rows) -> dict[str, float]:
    """Scores of the images made worse, and how well the entropy tells strangers from the rest."""
    told, start, others = {}, 0, averaged.others
    assert others is not None
    for kind in found.x_worse:
        part = others.rows(start, start := start + len(found.y_test))
        told |= _named(kind, averaged_scores(part, found.y_test).numbers)
    if len(found.x_strangers):
        unlabelled = np.zeros(len(found.x_strangers), int)
        strange = averaged_scores(others.rows(start), unlabelled).rows
        told["strangers_auroc"] = separation(rows["entropy_total"], strange["entropy_total"])
    return told


def _named(kind: str, numbers: Mapping[str, Any]) -> dict[str, float]:
    """The scores of one kind of images."""
    return {f"{kind}_{score}": numbers[score] for score in WORSE}


def _of_members(ensemble: Ensemble, found: FeatureRows) -> dict[str, Any]:
    """Scores of an ensemble; chains are judged by `JUDGED` test rows, evenly spaced."""
    strangers = found.x_strangers if len(found.x_strangers) else None
    numbers = classification_scores(ensemble, found.x_test, found.y_test, strangers).numbers
    told: dict[str, Any] = {
        name: value
        for kind, x in found.x_worse.items()
        for name, value in _named(
            kind, classification_scores(ensemble, x, found.y_test).numbers
        ).items()
    }
    if strangers is not None:
        told["strangers_auroc"] = numbers["ood_auroc"]
    if ensemble.is_chain:
        functions = ensemble.functions(found.x_test[evenly_spaced(len(found.x_test), JUDGED)])
        judged = assess(functions, max_functions=functions[0, 0].size)
        told["max_rhat"], told["min_ess"] = judged.max_rhat_function, judged.min_ess_function
    return {
        **{score: numbers[score] for score in SCORES},
        **told,
        **_cost(ensemble.cost),
    }


def work(cost: Cost) -> float:
    """Gradients of one row; a value without gradient counts a third."""
    values = cost.likelihood_evaluations - cost.gradient_evaluations
    return cost.gradient_evaluations + VALUE * values


def _cost(cost: Cost) -> dict[str, float]:
    return {"work": work(cost), "seconds": cost.total_seconds}


def _accepted_of_tried(scalars: Mapping[str, np.ndarray]) -> float | None:
    """Share of the tried jumps that were accepted; None where none was tried."""
    tried = float(np.sum(scalars.get("is_jump", 0)))
    return float(np.sum(scalars["is_accepted_jump"])) / tried if tried else None


def _mean_of(scalars: Mapping[str, np.ndarray], name: str) -> float | None:
    return float(np.mean(scalars[name])) if name in scalars else None
