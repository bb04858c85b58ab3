"""Figures 5 to 7 of the FBNN paper, ours: emulated against true, intervals, reliability.

    CREDENCE_DATA=... python docs/make/fbnn_figures.py FOLDER [--seconds 60] [--plot docs/figures]

Red wine (11-10-10-1) for the intervals, the first version's simulated classification (3-5-5-1) for
reliability. Methods: SGHMC; CES as published (SGHMC calibrates, pCN follows a network, without
correction); CES exact (a coreset, NUTS, delayed acceptance); and a deep ensemble. Runs are kept in
FOLDER; --plot draws what is there.
"""

import argparse
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np

LABELS = {
    "sghmc": "SGHMC",
    "exact": "CES, exact",
    "published": "CES as published",
    "deep_ensemble": "Deep ensemble",
}
COLOURS = {
    "sghmc": "#7f7f7f",
    "exact": "#3b6ea5",
    "published": "#c0504d",
    "deep_ensemble": "#2e8b57",
}
NUM_BINS = 12
TAILS = (0.025, 0.975)


def problem(name: str) -> tuple[Any, Any]:
    """Posterior, and the arrays of the experiment's problem."""
    from credence import Posterior
    from credence.compare import find
    from credence.compare.problem import load
    from credence.compare.specs import RowLimits
    from credence.models import MLP, Bernoulli, Gaussian, Normal

    experiment = find("fbnn" if name == "wine" else "fbnn_first_version")
    source = next(each.source for each in experiment.problems if each.name == name)
    arrays = load(source, RowLimits())
    hidden, likelihood = ((10, 10), Normal()) if name == "wine" else ((5, 5), Bernoulli())
    network = MLP(1, hidden)
    data = arrays.x_train, arrays.y_train
    return Posterior(network, Gaussian(), likelihood, data), arrays


def candidates() -> dict[str, Any]:
    """Methods by name."""
    from credence import methods

    chains = {"num_draws": 500, "num_chains": 4, "max_error": np.inf}
    published = {"calibration": "sghmc", "emulator": "network", "sampler": "pcn"}
    return {
        "sghmc": methods.SGHMC(num_draws=500, num_chains=4),
        "exact": methods.CES(**chains),
        "published": methods.CES(
            **published,
            **chains,
            correction="none",
            reference="prior",
            num_refinements=0,
            num_calibration=50,
            num_warmup=250,
        ),
        "deep_ensemble": methods.DeepEnsemble(),
    }


def measured(name: str, method: str, seconds: float) -> dict[str, Any]:
    """What the figures show of one run."""
    from credence.ensembles.diagnostics import rhat
    from credence.methods.surrogate.emulation import emulation

    posterior, arrays = problem(name)
    ensemble = candidates()[method].run(0, posterior, max_seconds=seconds)
    x, y = np.asarray(arrays.x_test), np.asarray(arrays.y_test)
    found = emulation(ensemble.scalars)
    predictive = ensemble.predictive(x)
    functions = ensemble.functions(x[:50])[..., 0]
    cell = {
        "method": method,
        "problem": name,
        "first_component": (centred := x - x.mean(axis=0)) @ np.linalg.svd(centred)[2][0],
        "y": y,
        "seconds": ensemble.cost.total_seconds,
        "rhat": float(rhat(functions).max()) if ensemble.is_chain else None,
        "numbers": None if found is None else found.numbers(),
        "true": None if found is None else found.true[:, ::5],
        "emulated": None if found is None else found.emulated[:, ::5],
    }
    if name == "wine":
        cell["mean"] = np.asarray(predictive.mean())[:, 0]
        cell["interval"] = [np.asarray(q)[:, 0] for q in predictive.quantiles(TAILS)]
    else:
        cell["probabilities"] = np.asarray(predictive.mean())
    return json.loads(json.dumps(cell, default=lambda value: np.asarray(value).tolist()))


def main() -> None:
    """Run what is missing, then draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    for name in ("wine", "simulated_classification"):
        for method in LABELS:
            file = options.folder / f"{name}-{method}.json"
            if not file.exists() and not options.plot:
                cell = measured(name, method, options.seconds)
                file.write_text(json.dumps(cell))
                print(name, method, cell["rhat"], cell["seconds"], cell["numbers"], flush=True)
    if options.plot:
        cells = [json.loads(file.read_text()) for file in sorted(options.folder.glob("*.json"))]
        for draw, path in (
            (emulated, "fbnn-emulated"),
            (intervals, "fbnn-intervals"),
            (reliability, "fbnn-reliability"),
        ):
            figure = draw({(cell["problem"], cell["method"]): cell for cell in cells})
            figure.savefig(options.plot / f"{path}.svg", metadata={"Date": None})


def panels(count: int) -> tuple[Any, Any]:
    """A figure and its axes, side by side."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.4 * count, 3.3), layout="constrained")
    axes = figure.subplots(1, count, squeeze=False)[0]
    for each in axes:
        each.grid(alpha=0.3)
        each.spines[["top", "right"]].set_visible(False)
    return figure, axes


def emulated(cells: dict[tuple[str, str], Any]) -> Any:
    """Emulated against true log density, simulated classification, by chain: figure 5."""
    name = "simulated_classification"
    shown = [method for method in ("exact", "published") if (name, method) in cells]
    figure, axes = panels(len(shown))
    for each, method in zip(axes, shown, strict=True):
        cell = cells[name, method]
        true, guess = np.asarray(cell["true"]), np.asarray(cell["emulated"])
        for x, y in zip(true, guess, strict=True):
            each.plot(x, y, ".", markersize=3)
        ends = [true.min(), true.max()]
        each.plot(ends, ends, color="#444444", linewidth=0.8, linestyle="--")
        error = cell["numbers"]["error"]
        each.set(title=f"{LABELS[method]}\n{error:.1f} nats off", xlabel="True, nats")
    axes[0].set_ylabel("Emulated, nats")
    return figure


def intervals(cells: dict[tuple[str, str], Any]) -> Any:
    """Means and 95 % predictive intervals of wine over its first component: figure 6."""
    shown = [m for m in ("sghmc", "exact", "published") if ("wine", m) in cells]
    figure, axes = panels(len(shown))
    for each, method in zip(axes, shown, strict=True):
        cell = cells["wine", method]
        x, y = np.asarray(cell["first_component"]), np.asarray(cell["y"])
        order = np.argsort(x)
        groups = np.array_split(order, NUM_BINS)
        place = smoothed(x, groups)
        colour, (low, high) = COLOURS[method], cell["interval"]
        each.plot(x, y, ".", color="#bbbbbb", markersize=3)
        each.fill_between(
            place, smoothed(low, groups), smoothed(high, groups), color=colour, alpha=0.25
        )
        each.plot(place, smoothed(cell["mean"], groups), "--", color=colour)
        truth = [np.quantile(y[group], TAILS) for group in groups]
        each.plot(place, smoothed(y, groups), color="#222222", linewidth=1)
        each.plot(place, truth, color="#222222", linewidth=0.6)
        inside = np.mean((np.asarray(low) <= y) & (y <= np.asarray(high)))
        title = f"{LABELS[method]}\ncovers {inside:.0%}, R-hat {cell['rhat']:.2f}"
        each.set(title=title, xlabel="First component")
        each.set_ylim(-4, 4)
    axes[0].set_ylabel("Quality, standardised")
    return figure


def smoothed(values: Any, groups: list[np.ndarray]) -> list[float]:
    """Means over groups of rows."""
    return [float(np.asarray(values)[group].mean()) for group in groups]


def reliability(cells: dict[tuple[str, str], Any]) -> Any:
    """Accuracy against confidence in bins of equal mass, simulated classification: figure 7."""
    from credence.ensembles.diagnostics import ece, reliability_diagram

    name = "simulated_classification"
    shown = [method for method in LABELS if (name, method) in cells]
    figure, axes = panels(len(shown))
    for each, method in zip(axes, shown, strict=True):
        cell = cells[name, method]
        p, y = np.asarray(cell["probabilities"], float), np.asarray(cell["y"])
        found = reliability_diagram(p, y, num_bins=8, bins="equal_mass")
        each.plot([0.5, 1], [0.5, 1], color="#444444", linewidth=0.8, linestyle="--")
        error = np.sqrt(found.accuracy * (1 - found.accuracy) / found.count)
        each.errorbar(found.confidence, found.accuracy, error, fmt="o-", color=COLOURS[method])
        size = ece(p, y, bins="equal_mass")
        each.set(title=f"{LABELS[method]}: ECE {size:.3f}", xlabel="Confidence", ylim=(0.3, 1.05))
    axes[0].set_ylabel("Accuracy")
    return figure


if __name__ == "__main__":
    main()
