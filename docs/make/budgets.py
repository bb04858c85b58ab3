"""Charts of log loss against seconds, from the rows of `benchmarks/default_model.py`."""

from pathlib import Path
from typing import Any

import numpy as np
from kept import kept_rows
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator
from parts import write_figure
from peers import FULL_NAMES, OURS, default_model, names_of, of_model, shared_splits

from credence.html.markup import Html
from credence.html.svg import ACCENT, INK, SECOND, label, new_figure, to_svg

NAMES = {
    **FULL_NAMES,
    "boosting": "scikit-learn's boosting",
    "gp": "Gaussian process",
    "lightgbm": "LightGBM",
    "mlps": "five networks",
}
READING = (
    "Mean log loss of test rows, over splits that all models have, against the median seconds of "
    "a fit. The line is Credence: one dot for each limit of time that it was given, the longest of "
    "300 seconds, and the last without one. It stops before its limit when its chains agree."
)


def figures(folder: Path) -> None:
    """Draw a chart for each data set on which budgets were tried."""
    rows = kept_rows("default_model")
    for name in tried(rows):
        write_figure(folder, f"budgets-{name}", chart(rows, name))


def tried(rows: list[dict[str, Any]]) -> list[str]:
    """The data sets on which budgets were tried."""
    return list(dict.fromkeys(row["data"] for row in rows if "@" in row["model"]))


def of_each_model(rows: list[dict[str, Any]], name: str) -> dict[str, list[dict[str, Any]]]:
    """The rows of every model that was run on a data set, with limits of time and without."""
    found = {model: of_model(rows, name, model) for model in names_of(rows) + limits(rows, name)}
    return {model: mine for model, mine in found.items() if mine}


def common_splits(rows: list[dict[str, Any]], name: str) -> set[int]:
    """The splits that all of these models have."""
    return shared_splits(of_each_model(rows, name).values())


def points(rows: list[dict[str, Any]], name: str) -> dict[str, tuple[float, float]]:
    """Median seconds of every model, and its mean log loss on the splits that all have."""
    common, found = common_splits(rows, name), {}
    for model, mine in of_each_model(rows, name).items():
        nll = np.mean([row["nll"] for row in mine if row["split"] in common])
        found[model] = (float(np.median(default_model.seconds_of(mine))), float(nll))
    return found


def limits(rows: list[dict[str, Any]], name: str) -> list[str]:
    """Credence with a limit, the shortest first."""
    found = {row["model"] for row in rows if row["data"] == name and "@" in row["model"]}
    return sorted(found, key=lambda model: float(model.partition("@")[2]))


def chart(rows: list[dict[str, Any]], name: str) -> Html:
    """Log loss against seconds, a line for Credence and a dot for each of the others."""
    found = points(rows, name)
    figure, (axes,) = new_figure(height=300, width=520)
    ours = [found[model] for model in [*limits(rows, name), OURS]]
    axes.plot(*zip(*ours, strict=True), color=ACCENT, marker="o", markersize=5, linewidth=1.6)
    others = [model for model in sorted(found, key=found.__getitem__) if not model.startswith(OURS)]
    for number, model in enumerate(others):
        axes.plot(*found[model], color=SECOND, marker="D", markersize=5, linestyle="none")
        beside = (6, -13 if number % 2 else 4)  # neighbours may be near, and names are long
        axes.annotate(NAMES[model], found[model], beside, textcoords="offset points", color=INK)
    axes.annotate("Credence", ours[0], (6, 4), textcoords="offset points", color=INK)
    axes.set_xscale("log")
    label(axes, "Mean log loss of a test row, nats", "Seconds of a fit")
    axes.set_xlim(None, 4 * max(seconds for seconds, _ in found.values()))
    axes.xaxis.set_major_locator(LogLocator(numticks=7))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    return to_svg(figure, f"budgets-{name}", f"Log loss against seconds: {name}", READING)
