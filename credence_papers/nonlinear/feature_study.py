"""CIFAR-10 as features of patches: table 1 and figure 2 of nonlinear MCMC, on two cores.

Vuckovic, "Nonlinear MCMC for Bayesian Machine Learning" (2022), section 4.2, asks whether jumps
make samplers of a large network faster early on and better calibrated. Here the network is a
softmax, or one hidden layer, on 1600 features of all 50,000 images: small enough for potentials of
all rows, and for a reference that converges.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from credence.density.posterior import Posterior
from credence.ensembles.averages import AveragedPredictions
from credence.ensembles.diagnostics.convergence import assess
from credence.ensembles.diagnostics.cost import Cost
from credence.ensembles.ensemble import Ensemble
from credence.ensembles.scores import averaged_scores, classification_scores
from credence.methods import METHODS
from credence.models import MLP, Categorical, Gaussian
from credence.storage import jsonable
from credence_papers.cache import Cache, digest
from credence_papers.nonlinear.feature_contenders import Contender, FeatureEffort, wanted
from credence_papers.nonlinear.feature_page import cells, render
from credence_papers.nonlinear.feature_rows import FeatureRows, check_images, feature_rows
from credence_papers.nonlinear.images import PUBLISHED
from credence_papers.nonlinear.patch_features import PatchFeatures
from credence_papers.study import Row, Study

NUM_LABELS = 10
SCORES = ("accuracy", "nll", "ece", "ece_all_classes", "mce", "mce_all_classes", "brier")
MEANS = (*SCORES, "max_rhat", "potential_ess", "accepted_jumps", "work", "seconds")
"""Numbers of a contender that are averaged over seeds."""


@dataclass(frozen=True, kw_only=True)
class FeatureProblem:
    """A network on the features.

    Args:
        hidden: widths of its hidden layers; () is a softmax.
    """

    name: str
    description: str
    hidden: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class FeatureStudy(Study[FeatureProblem, FeatureEffort]):
    """Samplers on features of photographs."""

    def check(self, problem: FeatureProblem, effort: FeatureEffort, seed: int) -> None:
        """Look for the images before anything starts."""
        check_images()

    def run_one(
        self, problem: FeatureProblem, effort: FeatureEffort, seed: int, cache: Cache
    ) -> dict[str, Any]:
        """Every contender; the features are computed when the first one needs them."""
        rows = _Rows(effort, cache)
        return {
            contender.label: cache.kept(
                f"{problem.name}, {contender.label}, seed {seed}",
                about := [problem, contender, contender.at(effort), rows.made_of, seed],
                partial(_measured, problem, contender, effort, seed, rows, cache, digest(about)),
            )
            for contender in wanted(effort)
        }

    def rows(
        self, problem: FeatureProblem, effort: FeatureEffort, results: Mapping[int, Any]
    ) -> list[Row]:
        """A row per contender: means over the seeds, with standard errors of several."""
        return [
            {
                "problem": problem.name,
                "label": contender.label,
                **over_seeds([run[contender.label] for run in results.values()]),
            }
            for contender in wanted(effort)
        ]

    def sentence(self, row: Row) -> str:
        """Accuracy and calibration."""
        ece = 100 * row["ece_all_classes"]
        return f"{row['problem']}, {row['label']}: accuracy {row['accuracy']:.4f}, ECE {ece:.3f} %"

    def summary(self, effort: FeatureEffort, rows: list[Row]) -> dict[str, Any]:
        """The rows, beside what was published."""
        return {
            "num_train": effort.num_train,
            "num_test": effort.num_test,
            "num_features": 4 * effort.features.num_centres,
            "particles": effort.particles,
            "num_draws": effort.num_draws,
            "published": list(PUBLISHED),
            "contenders": rows,
        }

    def render(self, summary: dict[str, Any]) -> str:
        """The page as text."""
        return render(summary)

    def table(self, summary: dict[str, Any]) -> Table:
        """The table for a terminal."""
        heads, rows = cells(summary)
        found = Table(*heads)
        for row in rows:
            found.add_row(*row)
        return found


class _Rows:
    """The features, read once where a contender is not in the cache."""

    def __init__(self, effort: FeatureEffort, cache: Cache) -> None:
        self.effort, self.cache = effort, cache
        self.made_of = [effort.features, effort.num_train, effort.num_test]
        self.found: FeatureRows | None = None

    def __call__(self) -> FeatureRows:
        if self.found is None:
            effort, folder = self.effort, self.cache.folder.parent
            self.found = feature_rows(
                effort.features, effort.num_train, effort.num_test, folder, self.cache.watch
            )
        return self.found


def _measured(
    problem: FeatureProblem,
    contender: Contender,
    effort: FeatureEffort,
    seed: int,
    rows: _Rows,
    cache: Cache,
    name: str,
) -> dict[str, Any]:
    """Scores of one contender, its curve, its convergence and its cost.

    A run that is stopped goes on from its checkpoints.
    """
    found, folder = rows(), cache.folder.parent / "checkpoints" / name[:16]
    network = MLP(NUM_LABELS, problem.hidden)
    posterior = Posterior(network, Gaussian(), Categorical(), (found.x_train, found.y_train))
    method = METHODS.find(contender.method).from_settings(contender.at(effort))
    if contender.is_streamed:
        told = _of_averages(
            method.run_averaged(seed, posterior, found.x_test, found.y_test, folder=folder),
            found.y_test,
            effort,
        )
    else:
        told = _of_members(method.run(seed, posterior, folder=folder), found)
    _forget(folder)
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


def _forget(folder: Path) -> None:
    """Delete the checkpoints of a finished run."""
    import shutil

    shutil.rmtree(folder, ignore_errors=True)


def over_seeds(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Means over the seeds, standard errors (None of one seed), and the mean curve."""
    found: dict[str, Any] = {}
    for name in MEANS:
        values = [run[name] for run in runs if run.get(name) is not None]
        found[name] = float(np.mean(values)) if values else None
        several = len(values) > 1
        error = np.std(values, ddof=1) / len(values) ** 0.5 if several else None
        found[f"{name}_error"] = None if error is None else float(error)
    for name in ("path_work", "path_accuracy", "path_cloud_accuracy", "path_nll"):
        if all(name in run for run in runs):
            found[name] = np.mean([run[name] for run in runs], axis=0).tolist()
    return found


CIFAR10_FEATURES = FeatureStudy(
    name="cifar10_features",
    description="Photographs as features of patches: nonlinear MCMC against linear, on a softmax "
    "and on one hidden layer",
    problems=(
        FeatureProblem(
            name="softmax",
            description="CIFAR-10, 1600 features of whitened 6x6 patches, a Bayesian softmax.",
            hidden=(),
        ),
        FeatureProblem(
            name="hidden_64",
            description="The same features, a layer of 64 tanh neurons.",
            hidden=(64,),
        ),
    ),
    efforts={
        "smoke": FeatureEffort(
            num_train=300,
            num_test=100,
            features=PatchFeatures(num_centres=10, num_patches=1000, num_rounds=3),
            particles=2,
            batch_size=50,
            passes={"train": 1, "warmup": 2, "draw": 1},
            num_draws=4,
            reference={"num_chains": 2, "num_draws": 4, "num_warmup": 8},
        ),
        "laptop": FeatureEffort(
            num_train=50_000,
            num_test=10_000,
            features=PatchFeatures(),
            particles=5,
            batch_size=256,
            passes={"train": 1, "warmup": 2, "draw": 1},
            num_draws=10,
            contenders=(
                "SGLD (linear)",
                "SGLD, RMSprop (linear)",
                "Nonlinear (BG)",
                "Nonlinear (AR)",
                "Nonlinear (BG), potentials of all rows",
                "Nonlinear (AR), potentials of all rows",
                "Nonlinear (BG), RMSprop partners at 1e-4 (published)",
                "SGHMC",
                "Deep ensemble",
            ),
        ),
        "paper": FeatureEffort(
            num_train=50_000,
            num_test=10_000,
            features=PatchFeatures(num_patches=400_000, num_rounds=50),
            particles=10,
            batch_size=256,
            passes={"train": 5, "warmup": 20, "draw": 5},
            num_draws=100,
            reference={"num_chains": 4, "num_draws": 1000, "num_warmup": 1000},
        ),
    },
    num_seeds={"paper": 5},
    source='Vuckovic, "Nonlinear MCMC for Bayesian Machine Learning" (2022), section 4.2, table 1 '
    'and figure 2; features after Coates, Lee & Ng, "An analysis of single-layer networks in '
    'unsupervised feature learning" (2011)',
)
