"""Figures 5 to 7 of the FBNN paper, ours: emulated against true, intervals, reliability.

    CREDENCE_DATA=... python docs/make/fbnn_figures.py FOLDER [--seconds 60] [--plot docs/figures]

Problems, models and methods are rows of the tables in `credence_papers.fbnn`: red wine
(11-10-10-1) for the intervals, the first version's simulated classification (3-5-5-1) for the
others. Runs are kept in FOLDER; --plot draws those that are there, of the same --seconds.
"""

import argparse
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from credence.compare.specs import SIZES, CellSpec
from credence_papers.fbnn.tables import FBNN, FBNN_FIRST_VERSION

WINE, LABELS = "wine", "simulated_classification"
EXPERIMENTS = {WINE: FBNN, LABELS: FBNN_FIRST_VERSION}
"""The problems, and the tables where they stand."""
PUBLISHED = "FBNN (SGHMC-pCN)"
EMULATING = (PUBLISHED, "FBNN (pCN-SGHMC)")
PREDICTING = ("BNN-SGHMC", "NUTS on all rows", PUBLISHED)
SHOWN = {WINE: PREDICTING, LABELS: (*PREDICTING, "Ensemble-DNN", EMULATING[1])}
"""Rows of the tables, by problem."""
COLOURS = dict(
    zip(SHOWN[LABELS], ("#7f7f7f", "#3b6ea5", "#c0504d", "#2e8b57", "#8064a2"), strict=True)
)
NUM_BINS = 12
TAILS = (0.025, 0.975)


def shown(size: str, seconds: float | None) -> list[CellSpec]:
    """The cells of the tables that the figures show."""
    return [
        cell
        for problem, labels in SHOWN.items()
        for cell in EXPERIMENTS[problem].only((problem,), labels).cells(size, max_seconds=seconds)
    ]


def measured(cell: CellSpec) -> dict[str, Any]:
    """What the figures show of one run."""
    from credence.compare.cell import build_method, build_posterior
    from credence.compare.problem import load_cell
    from credence.ensembles.diagnostics import rhat
    from credence.methods.surrogate.emulation import emulation

    arrays = load_cell(cell)
    posterior = build_posterior(cell, arrays)
    ensemble: Any = build_method(cell).run(cell.seed, posterior, max_seconds=cell.max_seconds)
    x, y = np.asarray(arrays.x_test), np.asarray(arrays.y_test)
    found = emulation(ensemble.scalars)
    predictive = ensemble.predictive(x)
    functions = ensemble.functions(x[:50])[..., 0]
    told = {
        "method": cell.label,
        "problem": cell.problem,
        "first_component": (centred := x - x.mean(axis=0)) @ np.linalg.svd(centred)[2][0],
        "y": y,
        "seconds": ensemble.cost.total_seconds,
        "rhat": float(rhat(functions).max()) if ensemble.is_chain else None,
        "numbers": None if found is None else found.numbers(),
        "true": None if found is None else found.true,
        "emulated": None if found is None else found.emulated,
    }
    if arrays.task == "regression":
        told["mean"] = np.asarray(predictive.mean())[:, 0]
        told["interval"] = [np.asarray(q)[:, 0] for q in predictive.quantiles(TAILS)]
    else:
        told["probabilities"] = np.asarray(predictive.mean())
    return json.loads(json.dumps(told, default=lambda value: np.asarray(value).tolist()))


def main() -> None:
    """Run what is missing, or draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, help="for a run; the tables have no limit")
    parser.add_argument("--size", choices=SIZES, default="laptop")
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    files = {
        options.folder / f"{cell.name}.json": cell for cell in shown(options.size, options.seconds)
    }
    if options.plot:
        found = [json.loads(file.read_text()) for file in files if file.exists()]
        runs = {(each["problem"], each["method"]): each for each in found}
        for draw in (emulated, intervals, reliability):
            path = options.plot / f"fbnn-{draw.__name__}.svg"
            draw(runs).savefig(path, metadata={"Date": None})
        return
    for file, cell in files.items():
        if not file.exists():
            run = measured(cell)
            file.write_text(json.dumps(run))
            print(cell.name, run["rhat"], run["seconds"], run["numbers"], flush=True)


def panels(count: int) -> tuple[Any, Any]:
    """A figure and its axes, side by side."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.4 * count, 3.3), layout="constrained")
    axes = figure.subplots(1, count, squeeze=False)[0]
    for each in axes:
        each.grid(alpha=0.3)
        each.spines[["top", "right"]].set_visible(False)
    return figure, axes


Runs = dict[tuple[str, str], Any]
"""What the figures show of the runs, by problem and label."""


def emulated(runs: Runs) -> Any:
    """Emulated against true log density, simulated classification, by chain: figure 5."""
    there = [label for label in EMULATING if (LABELS, label) in runs]
    figure, axes = panels(len(there))
    for each, label in zip(axes, there, strict=True):
        cell = runs[LABELS, label]
        true, guess = np.asarray(cell["true"]), np.asarray(cell["emulated"])
        for x, y in zip(true, guess, strict=True):
            each.plot(x, y, ".", markersize=3)
        ends = [true.min(), true.max()]
        each.plot(ends, ends, color="#444444", linewidth=0.8, linestyle="--")
        error = cell["numbers"]["error"]
        each.set(title=f"{label}\n{error:.1f} nats off", xlabel="True, nats")
    axes[0].set_ylabel("Emulated, nats")
    return figure


def intervals(runs: Runs) -> Any:
    """Means and 95 % predictive intervals of wine over its first component: figure 6."""
    there = [label for label in PREDICTING if (WINE, label) in runs]
    figure, axes = panels(len(there))
    for each, label in zip(axes, there, strict=True):
        cell = runs[WINE, label]
        x, y = np.asarray(cell["first_component"]), np.asarray(cell["y"])
        order = np.argsort(x)
        groups = np.array_split(order, NUM_BINS)
        place = smoothed(x, groups)
        colour, (low, high) = COLOURS[label], cell["interval"]
        each.plot(x, y, ".", color="#bbbbbb", markersize=3)
        each.fill_between(
            place, smoothed(low, groups), smoothed(high, groups), color=colour, alpha=0.25
        )
        each.plot(place, smoothed(cell["mean"], groups), "--", color=colour)
        truth = [np.quantile(y[group], TAILS) for group in groups]
        each.plot(place, smoothed(y, groups), color="#222222", linewidth=1)
        each.plot(place, truth, color="#222222", linewidth=0.6)
        inside = np.mean((np.asarray(low) <= y) & (y <= np.asarray(high)))
        title = f"{label}\ncovers {inside:.0%}, R-hat {cell['rhat']:.2f}"
        each.set(title=title, xlabel="First component")
        each.set_ylim(-4, 4)
    axes[0].set_ylabel("Quality, standardised")
    return figure


def smoothed(values: Any, groups: list[np.ndarray]) -> list[float]:
    """Means over groups of rows."""
    return [float(np.asarray(values)[group].mean()) for group in groups]


def reliability(runs: Runs) -> Any:
    """Accuracy against confidence in bins of equal mass, simulated classification: figure 7."""
    from credence.ensembles.diagnostics import ece, reliability_diagram

    there = [label for label in SHOWN[LABELS] if (LABELS, label) in runs]
    figure, axes = panels(len(there))
    for each, label in zip(axes, there, strict=True):
        cell = runs[LABELS, label]
        p, y = np.asarray(cell["probabilities"], float), np.asarray(cell["y"])
        found = reliability_diagram(p, y, num_bins=8, bins="equal_mass")
        each.plot([0.5, 1], [0.5, 1], color="#444444", linewidth=0.8, linestyle="--")
        error = np.sqrt(found.accuracy * (1 - found.accuracy) / found.count)
        each.errorbar(found.confidence, found.accuracy, error, fmt="o-", color=COLOURS[label])
        size = ece(p, y, bins="equal_mass")
        each.set(title=f"{label}\nECE {size:.3f}", xlabel="Confidence", ylim=(0.3, 1.05))
    axes[0].set_ylabel("Accuracy")
    return figure


if __name__ == "__main__":
    main()
