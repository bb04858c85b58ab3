"""Trans-dimensional inference: experiments D1 (XOR), D2 (OptDigits) and D3 (Boston).

Berezowski, "Trans-dimensional inference over Bayesian neural networks", chapters 5 and 6: how wide
or how deep should the network be? Ours are exact reversible jumps; what they find stands beside
what is published, with the reasons why it differs.
"""

import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

import credence
from credence.checkpoint import write_text
from credence.diagnostics import classification
from credence.ensemble import Ensemble
from credence.experiments import scoring
from credence.experiments.architecture_data import boston, clouds, digits
from credence.experiments.problem import Arrays
from credence.experiments.runner import NoWatch, write_results
from credence.experiments.specs import check_size, chosen
from credence.methods import Transdimensional
from credence.models import MLP, Categorical, Gaussian, Normal
from credence.models.width_priors import DepthPrior, WidthPrior
from credence.posterior import Posterior
from credence.runs.folder import require_usable

ABOUT = "architectures.json"
THRESHOLDS = (0.2, 0.4)
"""Confidences at which precision and recall are given."""
NUM_TRACED = 200
"""Draws of a chain that a chart shows."""


@dataclass(frozen=True, kw_only=True)
class ArchitectureProblem:
    """A posterior over networks of many sizes.

    Args:
        data: seed -> arrays.
        likelihood: Categorical(a) for softmax(a z), or Normal(noise_std).
        max_width, width_prior: units of every hidden layer.
        max_depth: hidden layers; None is one, always.
        spacing: chain i starts with i times so many units; 0 spreads them over the support.
        settings: of `Transdimensional`, beside those of the effort.
        published: the thesis's numbers, under the names of our columns.
        reasons: why ours may differ.
    """

    name: str
    description: str
    data: Callable[[int], Arrays]
    likelihood: Any
    max_width: int
    width_prior: WidthPrior = field(default=WidthPrior())
    max_depth: int | None = None
    activation: str = "tanh"
    spacing: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    published: Mapping[str, float] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()

    def posterior(self, arrays: Arrays) -> Posterior:
        """Weights N(0, 1), of the widest and shallowest network."""
        outputs = self.likelihood.num_outputs(len(arrays.labels) or 1)
        network = MLP(outputs, (self.max_width,), self.activation)
        data = (arrays.x_train, arrays.y_train)
        return Posterior(network, Gaussian(scaling="unit"), self.likelihood, data)

    def method(self, effort: "Effort") -> Transdimensional:
        """With chains over the whole support at the start."""
        chains = effort.num_chains
        widths = tuple(self.spacing * (i + 1) for i in range(chains)) if self.spacing else None
        if widths and widths[-1] != self.max_width:
            widths = None  # fewer chains than published: spread
        return Transdimensional(
            max_width=self.max_width,
            width_prior=self.width_prior,
            max_depth=self.max_depth,
            depth_prior=DepthPrior(),
            initial_widths=widths,
            **{**vars(effort), **self.settings},
        )


@dataclass(frozen=True)
class Effort:
    """How much is run: settings of `Transdimensional`."""

    num_chains: int
    num_draws: int
    num_warmup: int
    num_starts: int = 1000
    max_doublings: int = 8


@dataclass(frozen=True, kw_only=True)
class ArchitectureStudy:
    """Problems of one experiment."""

    name: str
    description: str
    problems: tuple[ArchitectureProblem, ...]
    efforts: Mapping[str, Effort]
    source: str = ""


RATIO = (
    "the published acceptance ratio leaves out the densities of its NUTS steps, gives births a "
    "factor that deaths lack, and no factor to the borders: its histogram is not the posterior's"
)
PUBLISHED = Effort(16, 1000, 300)
SMOKE = Effort(2, 6, 4, 10, 3)
THESIS = 'Berezowski, "Trans-dimensional inference over Bayesian neural networks" (2021), '


def _xor(name: str, description: str, variance: float, **more: Any) -> ArchitectureProblem:
    return ArchitectureProblem(
        name=name,
        description=description,
        data=clouds(variance),
        likelihood=Categorical(0.5),
        max_width=16,
        spacing=1,
        **more,
    )


XOR = ArchitectureStudy(
    name="transdimensional_xor",
    description="How wide should a network be for XOR? Experiment D1",
    problems=(
        _xor(
            "xor",
            "four clouds of variance 0.015, 1 to 16 tanh units",
            0.015,
            published={"mode": 7, "accuracy": 1.0},
            reasons=(RATIO, "exact evidences rise up to 16 units, where the prior ends"),
        ),
        _xor(
            "noisy_xor",
            "four clouds of variance 0.1, 1 to 16 tanh units",
            0.1,
            published={"mode": 8, "accuracy": 0.92},
            reasons=(RATIO, "the published test set has another noise than the training set"),
        ),
        _xor(
            "xor_poisson",
            "as xor, with a Poisson prior of mean 5 over the width: the mode is inside the range",
            0.015,
            width_prior=WidthPrior("poisson", 5.0),
        ),
    ),
    efforts={"smoke": SMOKE, "laptop": PUBLISHED, "paper": PUBLISHED},
    source=THESIS + "sections 5.5 and 5.6",
)


def _digits(
    name: str, classes: int, temperature: float, published: Mapping[str, float]
) -> ArchitectureProblem:
    widest = 64 if classes == 5 else 128
    return ArchitectureProblem(
        name=name,
        description=f"{classes} digits, softmax({temperature} z), 1 to {widest} tanh units",
        data=digits(classes),
        likelihood=Categorical(temperature),
        max_width=widest,
        spacing=widest // 16,
        published=published,
        reasons=(
            RATIO,
            "the published chains did not move at first: NUTS took the exponential of log "
            "densities below -745",
            "our test images are by other writers than those learnt from, all that there are up "
            "to 200 of a class",
        ),
    )


def _columns(*values: float) -> dict[str, float]:
    """A row of tables 6.1, 7.2 and 7.3."""
    names: tuple[str, ...] = ("accuracy", "top_2", "top_3")
    names += ("precision_20", "recall_20", "precision_40", "recall_40", "mode", "mean", "across")
    return dict(zip(names, values, strict=True))


DIGITS = ArchitectureStudy(
    name="transdimensional_digits",
    description="How wide should a network be for handwritten digits? Experiment D2",
    problems=(
        _digits(
            "digits_5a", 5, 0.1,
            _columns(0.975, 0.993, 0.999, 0.975, 1.0, 0.9945, 0.9282, 48, 43.35, 0.112),
        ),
        _digits(
            "digits_5b", 5, 0.5,
            _columns(0.978, 0.993, 0.998, 0.978, 1.0, 0.9934, 0.9243, 30, 28.73, 0.098),
        ),
        _digits(
            "digits_10a", 10, 0.1,
            _columns(0.9065, 0.965, 0.9825, 0.9216, 0.9873, 1.0, 0.5047, 89, 81.34, 0.078),
        ),
        _digits(
            "digits_10b", 10, 0.5,
            _columns(0.926, 0.973, 0.984, 0.925, 1.0, 0.9773, 0.9107, 55, 60.31, 0.056),
        ),
    ),
    efforts={"smoke": SMOKE, "laptop": Effort(4, 200, 150, 200, 6), "paper": PUBLISHED},
    source=THESIS + "section 6.2",
)  # fmt: skip


def _boston(
    name: str, width: int, deepest: int, variance: float, published: tuple[float, ...]
) -> ArchitectureProblem:
    return ArchitectureProblem(
        name=name,
        description=f"1 to {deepest} hidden layers of {width} relu units, noise variance "
        f"{variance}",
        data=boston,
        likelihood=Normal(noise_std=variance**0.5),
        max_width=width,
        width_prior=WidthPrior(smallest=width),
        max_depth=deepest,
        activation="relu",
        published=dict(zip(("rmse", "mode", "mean", "across"), published, strict=True)),
        reasons=(
            RATIO,
            "the published error is the root mean square divided by the root of the number of "
            "rows; here it is multiplied back",
            "the published test rows are in part the training rows",
        ),
    )


BOSTON = ArchitectureStudy(
    name="transdimensional_boston",
    description="How deep should a network be for Boston housing? Experiment D3",
    problems=(
        _boston("boston_2a", 2, 8, 1.0, (3.75, 2, 3.74, 0.045)),
        _boston("boston_2b", 2, 8, 0.8, (3.90, 4, 3.73, 0.049)),
        _boston("boston_4a", 4, 4, 1.0, (3.55, 3, 2.67, 0.011)),
        _boston("boston_4b", 4, 4, 0.8, (3.42, 3, 3.07, 0.014)),
    ),
    efforts={"smoke": SMOKE, "laptop": PUBLISHED, "paper": PUBLISHED},
    source=THESIS + "section 6.3",
)


def run(
    study: ArchitectureStudy,
    out: str | Path,
    *,
    size: str = "laptop",
    seed: int = 0,
    problems: tuple[str, ...] = (),
    watch: NoWatch | None = None,
) -> dict[str, Any]:
    """Run what is not there yet; write and return the summary.

    Args:
        problems: only these; () takes all.
    Raises:
        InputError: for an unknown size or problem, an unusable folder, or data not to be had.
    """
    from credence.experiments.architectures_page import render

    watch, folder = watch or NoWatch(), Path(out)
    check_size(size)
    wanted = chosen("problem", problems, {each.name: 0 for each in study.problems})
    require_usable(folder, ABOUT)
    write_text(folder / ABOUT, json.dumps({"name": study.name, "size": size, "seed": seed}))
    rows = []
    for problem in study.problems:
        if problem.name in wanted:
            rows.append(_kept(folder, problem, study.efforts[size], seed))
            watch.say(sentence(rows[-1]))
    summary = {
        "experiment": study.name,
        "description": study.description,
        "source": study.source,
        "size": size,
        "seed": seed,
        "architectures": rows,
        "converged": all(row["convergence"]["converged"] for row in rows),
    }
    write_results(folder, summary, render)
    return summary


def sentence(row: Mapping[str, Any]) -> str:
    """What a problem came to."""
    found, scores = row["architecture"], row["scores"]
    size = found["width"] if found["depth"] is None else found["depth"]
    noun = "units" if found["depth"] is None else "layers"
    score = "accuracy" if "accuracy" in scores else "rmse"
    return (
        f"{row['name']}: most probable {size['mode']} {noun} (mean {size['mean']:.1f}), "
        f"{scores['across']:.1%} of jumps accepted, {score} {scores[score]:.3f}, "
        f"{row['total_seconds']:.0f} s"
    )


def _kept(folder: Path, problem: ArchitectureProblem, effort: Effort, seed: int) -> dict[str, Any]:
    """A run, read if it is there."""
    told = replace(problem, data=len, reasons=(), published={})
    name = f"{told} {effort} {seed} {credence.__version__}"
    path = folder / "runs" / f"{problem.name}-{zlib.crc32(name.encode()):08x}.json"
    if path.exists():
        return json.loads(path.read_text(encoding="utf-8"))
    path.parent.mkdir(parents=True, exist_ok=True)
    found = measured(problem, effort, seed)
    write_text(path, json.dumps(found, allow_nan=False))
    return found


def measured(problem: ArchitectureProblem, effort: Effort, seed: int) -> dict[str, Any]:
    """One run: the posterior over architectures, scores on test rows, convergence and cost."""
    arrays = problem.data(seed)
    ensemble = problem.method(effort).run(seed, problem.posterior(arrays))
    found = ensemble.architecture()
    assert found is not None
    tried = sum(each.tried for each in found.jumps.values())
    accepted = sum(each.accepted for each in found.jumps.values())
    size = found.width if found.depth is None else found.depth
    scores = {
        **scoring.scores(ensemble, arrays)[0],
        **{name: scoring.plain(value) for name, value in _ranked(ensemble, arrays).items()},
        "across": accepted / max(tried, 1),
        "within": float(np.mean(ensemble.scalars["acceptance_rate"])),
        "mode": size.mode,
        "mean": size.mean,
    }
    traced = ensemble.scalars["width" if found.depth is None else "depth"]
    every = max(1, traced.shape[1] // NUM_TRACED)
    return {
        "name": problem.name,
        "description": problem.description,
        "published": dict(problem.published),
        "reasons": list(problem.reasons),
        "n_train": len(arrays.x_train),
        "n_test": len(arrays.x_test),
        "chains": ensemble.num_chains,
        "draws": ensemble.num_draws,
        "architecture": found.to_dict(),
        "scores": scores,
        "convergence": scoring.judge(ensemble, arrays.x_test)["convergence"],
        "divergences": int(np.sum(ensemble.scalars["is_divergent"] > 0)),
        "traces": traced[:, ::every].astype(int).tolist(),
        "every": every,
        "seconds": dict(ensemble.cost.seconds),
        "total_seconds": ensemble.cost.total_seconds,
        "likelihood_evaluations": ensemble.cost.likelihood_evaluations,
        "gradient_evaluations": ensemble.cost.gradient_evaluations,
    }


def _ranked(ensemble: Ensemble, arrays: Arrays) -> dict[str, float]:
    """Shares of the test rows, for more labels than two: top k, precision and recall."""
    if len(arrays.labels) < 3:
        return {}
    found = ensemble.over_batches(arrays.x_test, lambda law, rows: {"p": law.mean()})["p"]
    probabilities = found.astype(float) / found.sum(axis=1, keepdims=True, dtype=float)
    scores = {
        f"top_{k}": classification.top_k_accuracy(probabilities, arrays.y_test, k) for k in (2, 3)
    }
    pairs = classification.precision_recall(probabilities, arrays.y_test, THRESHOLDS)
    for threshold, precision, recall in zip(THRESHOLDS, *pairs, strict=True):
        percent = round(100 * threshold)
        scores |= {f"precision_{percent}": float(precision), f"recall_{percent}": float(recall)}
    return scores
