"""Measure where emulation pays: seconds to 400 effective draws of predictions, by number of rows.

    python benchmarks/emulation.py [--problem teacher] [--rows 2000 200000] [--methods nuts ces]

Regression with noise .3. "teacher": 10 inputs; the data come from a network of the shape that is
fitted, one hidden layer of 3 tanh neurons (38 parameters with the noise), so that many rows leave
one mode and its mirror images. "sine": sin x_1 + x_2 / 2 of 3 inputs, fitted by 3-5-5-1 (57
parameters); many rows leave curved valleys. Every method has 4 chains and so many seconds for all
that it does: training, calibration, emulator, warm-up, sampling; a short run before it compiles.

Effective draws are the smallest bulk ESS of the noise-free prediction at 20 new inputs; seconds "to
400" are all seconds before sampling, and those of sampling in proportion, compilation apart; where
R-hat is not below 1.05 all seconds that were spent, as a lower bound. "off" is the largest distance
between predictive means and those of the method named first, in its standard deviations.

mclmc: all rows, no emulator. ces: delayed acceptance with the coreset, along which NUTS moves;
ces_mclmc: MCLMC; ces_taylor: the Taylor emulator; none: the coreset uncorrected; published: the
network emulator, uncorrected.
"""

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

CHAINS = 4
LABELS = {
    "nuts": "NUTS",
    "mclmc": "MCLMC",
    "ces": "CES, exact (coreset)",
    "ces_mclmc": "CES, exact (coreset, MCLMC)",
    "none": "CES, uncorrected (coreset)",
    "pcn": "pCN",
    "sghmc": "SGHMC",
}
COLUMNS = (
    "method",
    "draws",
    "R-hat",
    "ESS",
    "seconds",
    "to 400",
    "off",
    "accepted",
    "error, nats",
    "k-hat",
)


def problem(kind: str, num_rows: int) -> tuple[Any, np.ndarray]:
    """Posterior, and new inputs."""
    from credence import Posterior
    from credence.models import MLP, Gaussian, Normal

    rng = np.random.default_rng(0)
    num_inputs, hidden = (10, (3,)) if kind == "teacher" else (3, (5, 5))
    x = rng.normal(size=(num_rows, num_inputs)).astype(np.float32)
    if kind == "teacher":
        signal = np.tanh(x @ (rng.normal(size=(10, 3)) / 3)) @ np.array([1.5, -1.0, 0.7])
    else:
        signal = np.sin(x[:, 0]) + 0.5 * x[:, 1]
    y = (signal + 0.3 * rng.normal(size=num_rows)).astype(np.float32)
    posterior = Posterior(MLP(1, hidden), Gaussian(scaling="fan_in"), Normal(), (x, y))
    return posterior, rng.normal(size=(20, num_inputs)).astype(np.float32)


def candidates() -> dict[str, Any]:
    """Methods by name; each draws until its seconds are over."""
    from credence import methods
    from credence.methods.surrogate.emulators import Coreset, Taylor

    endless = {"num_chains": CHAINS, "num_draws": 200_000}
    ces = {**endless, "max_error": np.inf}
    published = {"calibration": "sghmc", "emulator": "network", "sampler": "pcn", "thinning": 20}
    return {
        "nuts": methods.NUTS(**endless),
        "mclmc": methods.MCLMC(**endless),
        "pcn": methods.PCN(**endless),
        "sghmc": methods.SGHMC(**endless),
        "ces": methods.CES(emulator=Coreset(), **ces),
        "ces_mclmc": methods.CES(emulator=Coreset(), sampler="mclmc", **ces),
        "ces_taylor": methods.CES(emulator=Taylor(), **ces),
        "none": methods.CES(emulator=Coreset(), correction="none", **ces),
        "published": methods.CES(correction="none", reference="prior", **published, **ces),
    }


def main() -> None:
    """Print a table per number of rows, or draw the plot of what was saved."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[1000, 10_000, 100_000, 200_000])
    parser.add_argument("--problem", choices=("teacher", "sine"), default="teacher")
    parser.add_argument("--methods", nargs="+", default=list(LABELS))
    parser.add_argument("--seconds", type=float, nargs="+", default=[120.0], help="each, or one")
    parser.add_argument(
        "--save", type=Path, help="folder of one JSON file per cell; done ones stay"
    )
    parser.add_argument("--plot", type=Path, help="SVG file, drawn from the folder --save")
    options = parser.parse_args()
    if options.plot:
        return plot(options.save, options.plot)
    warnings.simplefilter("ignore")
    for num_rows in options.rows:
        posterior, x_new = problem(options.problem, num_rows)
        print(f"\n{num_rows:,} rows, {posterior.num_weights} weights\n")
        print("| " + " | ".join(COLUMNS) + " |")
        print("|" + "---|" * len(COLUMNS), flush=True)
        reference = None
        budgets = options.seconds * (len(options.methods) if len(options.seconds) == 1 else 1)
        for name, seconds in zip(options.methods, budgets, strict=True):
            file = options.save and options.save / f"{num_rows}-{name}.json"
            if file is None or not file.exists():
                cell = measured(name, posterior, x_new, seconds)
                if file is not None:
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_text(json.dumps({"rows": num_rows, **cell}, indent=1))
            else:
                cell = json.loads(file.read_text())
            reference = reference or cell
            print(row(cell, reference), flush=True)
    return None


def measured(name: str, posterior: Any, x_new: np.ndarray, seconds: float) -> dict[str, Any]:
    """What a method did in its seconds."""
    from credence.ensembles.diagnostics import ess_bulk, rhat
    from credence.errors import CredenceError
    from credence.methods.surrogate.emulation import emulation

    start = time.perf_counter()
    try:
        candidates()[name].run(1, posterior, max_seconds=1.0)  # a block of each phase: compiles
        ensemble = candidates()[name].run(0, posterior, max_seconds=seconds)
    except CredenceError as error:
        spent = time.perf_counter() - start
        return {"method": name, "error": str(error)[:80], "seconds": spent, "is_reached": False}
    functions = np.asarray(ensemble.functions(x_new)[..., 0], float)
    worst, size = float(rhat(functions).max()), float(ess_bulk(functions).min())
    phases = {key: value for key, value in ensemble.cost.seconds.items() if key != "compile"}
    spent = sum(phases.values())
    found = emulation(ensemble.scalars)
    return {
        "method": name,
        "draws": functions.shape[1],
        "rhat": worst,
        "ess": size,
        "seconds": spent,
        "phases": phases,
        "to_400": spent + phases["sample"] * (400 / size - 1),
        "is_reached": worst < 1.05,
        "mean": functions.mean(axis=(0, 1)).tolist(),
        "std": functions.std(axis=(0, 1)).tolist(),
        "emulation": None if found is None else found.numbers(),
    }


def row(cell: dict[str, Any], reference: dict[str, Any]) -> str:
    """A line of the table."""
    if "error" in cell:
        return f"| {cell['method']} | {cell['error']} | | | {cell['seconds']:.0f} | | | | |"
    off = "-"
    if "mean" in reference and cell is not reference:
        distance = np.abs(np.subtract(cell["mean"], reference["mean"])) / reference["std"]
        off = f"{distance.max():.2f}"
    numbers = cell["emulation"] or {}
    shown = [numbers.get(key) for key in ("acceptance_rate", "error", "pareto_k")]
    cells = [
        cell["method"],
        cell["draws"],
        f"{cell['rhat']:.3f}",
        f"{cell['ess']:.0f}",
        f"{cell['seconds']:.0f}",
        f"{cell['to_400']:.0f}" if cell["is_reached"] else f"> {cell['seconds']:.0f}",
        off,
        *("-" if value is None else f"{float(value):.2g}" for value in shown),
    ]
    return "| " + " | ".join(map(str, cells)) + " |"


def plot(folder: Path, path: Path) -> None:
    """Seconds to 400 effective draws against rows; lower bounds as open triangles."""
    from matplotlib.figure import Figure

    cells = [json.loads(file.read_text()) for file in sorted(folder.glob("*.json"))]
    figure = Figure(figsize=(6.4, 4.4), layout="constrained")
    axes = figure.subplots()
    colours = (
        "#3b6ea5",
        "#111111",
        "#c0504d",
        "#e08fb0",
        "#7f7f7f",
        "#2e8b57",
        "#d99a2b",
        "#8064a2",
    )
    for number, (name, text) in enumerate(LABELS.items()):
        mine = sorted((cell for cell in cells if cell["method"] == name), key=lambda c: c["rows"])
        colour, shift = colours[number], 1.06 ** (number - 2)  # or markers hide each other
        reached = [(c["rows"] * shift, c["to_400"]) for c in mine if c["is_reached"]]
        missed = [(c["rows"] * shift, c["seconds"]) for c in mine if not c["is_reached"]]
        if reached:
            axes.plot(*zip(*reached, strict=True), "o-", color=colour, label=text, markersize=5)
        if missed:
            label = None if reached else text
            axes.plot(
                *zip(*missed, strict=True), "^", color=colour, mfc="none", label=label, markersize=8
            )
    axes.set(xscale="log", yscale="log", xlabel="Rows", ylabel="Seconds to 400 effective draws")
    axes.plot([], [], "^", color="#444444", mfc="none", label="not reached: at least")
    axes.grid(alpha=0.3)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.legend(frameon=False, fontsize=8)
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main()
