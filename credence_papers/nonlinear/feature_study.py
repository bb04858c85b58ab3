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

from credence.compare.seeds import mean_and_error
from credence.errors import CredenceError, Interrupted
from credence_papers.cache import Cache
from credence_papers.nonlinear.feature_contenders import (
    BASELINE,
    REFERENCE,
    Contender,
    FeatureEffort,
    wanted,
)
from credence_papers.nonlinear.feature_page import cells, render
from credence_papers.nonlinear.feature_rows import CORRUPTIONS, SEVERITY, check_images
from credence_papers.nonlinear.feature_runs import (
    SCORES,
    WORSE,
    FeatureProblem,
    LazyRows,
    measured,
)
from credence_papers.nonlinear.feature_said import Said, against_baseline, against_reference
from credence_papers.nonlinear.images import PUBLISHED
from credence_papers.nonlinear.patch_features import PatchFeatures
from credence_papers.study import Row, Study

MEANS = (
    *SCORES,
    *(f"{kind}_{score}" for kind in CORRUPTIONS for score in WORSE),
    *("total_variation", "kl", "std_ratio", "nll_more", "nll_more_over_rows"),
    *("strangers_auroc", "max_rhat", "min_ess", "potential_ess", "accepted_jumps"),
    *("accepted_of_tried", "work", "seconds"),
)
"""Numbers of a contender that are averaged over seeds."""

PATHS = ("path_work", "path_accuracy", "path_cloud_accuracy", "path_nll")

REFERENCE_SEED = 0
"""The reference is the same for all seeds: it runs once."""
REFERENCE_RHAT = 1.01
"""R-hat from which the reference is none: nothing is compared with it."""

TOLD = ("problem", "contender", "accuracy", "NLL", "ECE, all classes", "R-hat", "seconds")
"""Columns of the table in a terminal."""


@dataclass(frozen=True, kw_only=True)
class FeatureStudy(Study[FeatureProblem, FeatureEffort]):
    """Samplers on features of photographs."""

    def effort(self, problem: FeatureProblem, size: str) -> FeatureEffort:
        """How much is run of a problem."""
        return problem.effort(self.efforts[size])

    def seeds_of(self, problem: FeatureProblem, size: str) -> int:
        """Seeds of the size, or fewer."""
        number = super().seeds_of(problem, size)
        return number if problem.num_seeds is None else min(number, problem.num_seeds)

    def check(self, problem: FeatureProblem, effort: FeatureEffort, seed: int) -> None:
        """Look for the images before anything starts."""
        check_images()

    def run_one(
        self, problem: FeatureProblem, effort: FeatureEffort, seed: int, cache: Cache
    ) -> dict[str, Any]:
        """Every contender; the features are computed when the first one needs them.

        One that fails is told as failed and not kept, so that the next call tries it again.
        """
        rows, found, files = LazyRows(effort, cache), {}, {}
        for contender in wanted(effort):
            own_seed = REFERENCE_SEED if contender.label == REFERENCE else seed
            label = f"{problem.name}, {contender.label}, seed {own_seed}"
            settings = [problem, contender, contender.at(effort), rows.made_of, own_seed]
            path = cache.path(label, settings).with_suffix(".npz")
            run = partial(measured, problem, contender, effort, own_seed, rows, path)
            try:
                found[contender.label] = cache.resumed(label, settings, run)
                files[contender.label] = path
            except Interrupted:
                raise
            except (CredenceError, MemoryError, RuntimeError) as error:  # JAX's are RuntimeErrors
                found[contender.label] = {"failed": str(error)}
                cache.watch.say(f"{label}: failed: {error}")
        return compared(found, files)

    def rows(
        self, problem: FeatureProblem, effort: FeatureEffort, results: Mapping[int, Any]
    ) -> list[Row]:
        """A row per contender: means over the seeds, with standard errors of several."""
        return [
            {
                "problem": problem.name,
                "label": contender.label,
                **over_seeds(_runs(contender, results)),
            }
            for contender in wanted(effort)
        ]

    def sentence(self, row: Row) -> str:
        """Accuracy and calibration."""
        if row.get("failed"):
            return f"{row['problem']}, {row['label']}: failed: {row['failed']}"
        ece = 100 * row["ece_all_classes"]
        return f"{row['problem']}, {row['label']}: accuracy {row['accuracy']:.4f}, ECE {ece:.3f} %"

    def summary(self, effort: FeatureEffort, rows: list[Row]) -> dict[str, Any]:
        """The rows, beside what was published; whether none failed and the reference converged."""
        return {
            "num_train": effort.num_train,
            "num_test": effort.num_test,
            "num_features": 4 * effort.features.num_centres,
            "particles": effort.particles,
            "num_draws": effort.num_draws,
            "severity": SEVERITY,
            "published": list(PUBLISHED),
            "contenders": rows,
            "failed": sum("failed" in row for row in rows),
            "converged": not any("failed" in row for row in rows)
            and all(row.get("is_converged", True) for row in rows),
        }

    def render(self, summary: dict[str, Any]) -> str:
        """The page as text."""
        return render(summary)

    def table(self, summary: dict[str, Any]) -> Table:
        """The table for a terminal, of the columns that it has room for."""
        heads, rows = cells(summary)
        found = Table(*TOLD)
        for row in rows:
            found.add_row(*(row[heads.index(head)] for head in TOLD))
        return found


def compared(found: dict[str, Any], files: Mapping[str, Path]) -> dict[str, Any]:
    """The results of a seed beside what they say against the reference and the linear baseline.

    A reference that has not converged is marked, and nothing is compared with it.
    """
    said = {label: Said.read(path) for label, path in files.items() if path.exists()}
    told = {label: dict(result) for label, result in found.items()}
    is_converged = REFERENCE in said and _is_converged(told[REFERENCE])
    if REFERENCE in said:
        told[REFERENCE]["is_converged"] = is_converged
    for label, each in said.items():
        if is_converged:
            told[label] |= against_reference(each, said[REFERENCE])
        if BASELINE in said and label != BASELINE:
            told[label] |= against_baseline(each, said[BASELINE])
    return told


def _is_converged(result: Mapping[str, Any]) -> bool:
    """Whether R-hat is known and below what a reference needs."""
    rhat = result.get("max_rhat")
    return rhat is not None and float(rhat) < REFERENCE_RHAT


def _runs(contender: Contender, results: Mapping[int, Any]) -> list[dict[str, Any]]:
    """A contender's results by seed; the reference has one."""
    runs = [run[contender.label] for run in results.values()]
    return runs[:1] if contender.label == REFERENCE else runs


def over_seeds(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Means over the seeds, standard errors (None of one seed), the curves and their mean.

    A mean is None where a seed has no number: a mean of the others would flatter the method.
    """
    found: dict[str, Any] = {"num_seeds": len(runs)}
    for run in runs:
        found |= {name: run[name] for name in ("failed", "is_converged") if name in run}
    for name in MEANS:
        found[name], found[f"{name}_error"] = mean_and_error([run.get(name) for run in runs])
    for name in PATHS:
        if all(name in run for run in runs):
            found[name] = np.mean([run[name] for run in runs], axis=0).tolist()
            found[f"{name}_by_seed"] = [run[name] for run in runs]
    return found


EVIDENT_STD = 8.0
"""The prior of the softmax with the largest evidence of 1, 3, 8, 20 and 50, by `laplace` with
Kronecker factors: -55,134, -48,283, -46,511, -49,071 and -55,760 nats."""

CIFAR10_FEATURES = FeatureStudy(
    name="cifar10_features",
    description="Photographs as features of patches: nonlinear MCMC against linear, on a softmax "
    "and on one hidden layer",
    problems=(
        FeatureProblem(
            name="softmax",
            description="CIFAR-10, 1600 features of whitened 6x6 patches, a Bayesian softmax.",
            hidden=(),
            prior_std=EVIDENT_STD,
        ),
        FeatureProblem(
            name="hidden_64",
            description="The same features, a layer of 64 tanh neurons under the default prior.",
            hidden=(64,),
            contenders=(
                "SGLD (linear)",
                "Nonlinear (BG)",
                "Nonlinear (AR)",
                "Nonlinear (BG), RMSprop partners at 1e-4 (published)",
                "SGHMC",
                "Deep ensemble",
            ),
            num_seeds=2,
        ),
        FeatureProblem(
            name="held_out",
            description="The softmax without the classes 8 and 9, ships and trucks, whose test "
            "images are strangers; features are learnt from unlabelled images of all classes.",
            hidden=(),
            prior_std=EVIDENT_STD,
            strangers=(8, 9),
            contenders=(
                "SGLD (linear)",
                "Nonlinear (BG)",
                "Nonlinear (AR)",
                "Deep ensemble",
                "Laplace",
            ),
            num_seeds=3,
        ),
        FeatureProblem(
            name="softmax_early",
            description="The softmax after one pass of training and one of warm-up, with a draw "
            "every quarter of a pass, and as many networks without partners as with them: "
            "accuracy against gradients.",
            hidden=(),
            prior_std=EVIDENT_STD,
            contenders=(
                "SGLD (linear)",
                "SGLD, RMSprop at 1e-4 (published linear)",
                "Nonlinear (BG)",
                "Nonlinear (AR)",
                "Nonlinear (BG), RMSprop partners at 1e-4 (published)",
                "SGHMC",
            ),
            is_early=True,
        ),
    ),
    efforts={
        "smoke": FeatureEffort(
            num_train=300,
            num_test=100,
            features=PatchFeatures(num_centres=10, num_patches=1000, num_rounds=3),
            particles=2,
            batch_size=50,
            step_size=0.01,
            passes={"train": 1, "warmup": 2, "draw": 1},
            num_draws=4,
            reference={"num_chains": 2, "num_draws": 4, "num_warmup": 8},
        ),
        "laptop": FeatureEffort(
            num_train=50_000,
            num_test=10_000,
            features=PatchFeatures(),
            particles=4,
            batch_size=256,
            step_size=0.002,
            passes={"train": 5, "warmup": 10, "draw": 5},
            num_draws=20,
        ),
        "paper": FeatureEffort(
            num_train=50_000,
            num_test=10_000,
            features=PatchFeatures(num_patches=400_000, num_rounds=50),
            particles=4,
            batch_size=256,
            step_size=0.002,
            passes={"train": 5, "warmup": 10, "draw": 5},
            num_draws=20,
            reference={"num_chains": 4, "num_draws": 480, "num_warmup": 200},
        ),
    },
    num_seeds={"paper": 5},
    source='Vuckovic, "Nonlinear MCMC for Bayesian Machine Learning" (2022), section 4.2, table 1 '
    'and figure 2; features after Coates, Lee & Ng, "An analysis of single-layer networks in '
    'unsupervised feature learning" (2011)',
)
