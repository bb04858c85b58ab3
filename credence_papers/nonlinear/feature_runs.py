"""One contender on features of photographs: run, scored, and its curve told."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from credence.density.posterior import Posterior
from credence.ensembles.averages import AveragedPredictions
from credence.ensembles.diagnostics.convergence import assess
from credence.ensembles.diagnostics.cost import Cost
from credence.ensembles.ensemble import Ensemble
from credence.ensembles.scores import averaged_scores, classification_scores
from credence.methods import METHODS
from credence.methods.base import Method
from credence.models import MLP, Categorical, Gaussian
from credence.storage import jsonable
from credence_papers.cache import Cache
from credence_papers.nonlinear.feature_contenders import Contender, FeatureEffort
from credence_papers.nonlinear.feature_rows import FeatureRows, feature_rows

NUM_LABELS = 10
SCORES = ("accuracy", "nll", "ece", "ece_all_classes", "mce", "mce_all_classes", "brier")


@dataclass(frozen=True, kw_only=True)
class FeatureProblem:
    """A network on the features.

    Args:
        hidden: widths of its hidden layers; () is a softmax.
        prior_std: of biases, and of weights times the root of a layer's inputs.
    """

    name: str
    description: str
    hidden: tuple[int, ...]
    prior_std: float = 1.0


class LazyRows:
    """The features, read once where a contender is not in the cache."""

    def __init__(self, effort: FeatureEffort, cache: Cache) -> None:
        self.effort, self.cache = effort, cache
        self.made_of = [effort.features, effort.num_train, effort.num_test]
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
    cache: Cache,
    name: str,
) -> dict[str, Any]:
    """Scores of one contender, its curve, its convergence and its cost.

    A run that is stopped goes on from its checkpoints.
    """
    found, folder = rows(), cache.folder.parent / "checkpoints" / name[:16]
    network = MLP(NUM_LABELS, problem.hidden)
    prior = Gaussian("fan_in", problem.prior_std, problem.prior_std)
    posterior = Posterior(network, prior, Categorical(), (found.x_train, found.y_train))
    method = METHODS.find(contender.method).from_settings(contender.at(effort))
    assert isinstance(method, Method)
    if contender.is_streamed:
        told = _of_averages(
            method.run_averaged(seed, posterior, found.x_test, found.y_test, folder=folder),
            found.y_test,
            effort,
        )
    else:
        told = _of_members(method.run(seed, posterior, folder=folder), found)
    shutil.rmtree(folder, ignore_errors=True)
    return jsonable({**told, "features_sha256": found.sha256, "weights": posterior.num_weights})


def _of_averages(
    averaged: AveragedPredictions, y: np.ndarray, effort: FeatureEffort
) -> dict[str, Any]:
    """What a streamed run tells; its curve begins after training and warm-up, whose work counts."""
    numbers = averaged_scores(averaged, y).numbers
    gradients = averaged.scalars["num_gradients"].sum(axis=0) * effort.batch_size
    values = averaged.scalars.get("num_evaluations", np.zeros((1, averaged.num_draws)))
    sampled = np.cumsum(gradients + values.sum(axis=0) * effort.batch_size / 3)
    before = work(averaged.cost) - sampled[-1]
    paths = averaged.averages.paths
    return {
        **{score: numbers[score] for score in SCORES},
        "max_rhat": averaged.max_rhat(),
        "potential_ess": _mean_of(averaged.scalars, "potential_ess"),
        "accepted_jumps": _mean_of(averaged.scalars, "is_accepted_jump"),
        **_cost(averaged.cost),
        "path_work": (before + sampled).tolist(),
        "path_accuracy": (1 - np.asarray(paths["error"], float)).tolist(),
        "path_cloud_accuracy": (1 - np.asarray(paths["cloud_error"], float)).tolist(),
        "path_nll": np.asarray(paths["nll"], float).tolist(),
    }


def _of_members(ensemble: Ensemble, found: FeatureRows) -> dict[str, Any]:
    """What an ensemble tells; chains are judged by 20 test rows."""
    numbers = classification_scores(ensemble, found.x_test, found.y_test).numbers
    rhat = None
    if ensemble.is_chain:
        rhat = assess(ensemble.functions(found.x_test[:20])).max_rhat_function
    return {
        **{score: numbers[score] for score in SCORES},
        "max_rhat": rhat,
        **_cost(ensemble.cost),
    }


def work(cost: Cost) -> float:
    """Gradients of one row; a value without gradient counts a third."""
    values = cost.likelihood_evaluations - cost.gradient_evaluations
    return cost.gradient_evaluations + values / 3


def _cost(cost: Cost) -> dict[str, float]:
    return {"work": work(cost), "seconds": cost.total_seconds}


def _mean_of(scalars: Mapping[str, np.ndarray], name: str) -> float | None:
    return float(np.mean(scalars[name])) if name in scalars else None
