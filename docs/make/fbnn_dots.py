"""Figures 2 to 4 of the FBNN paper: every method's error, accuracy and speed-up on every data set.

The paper draws bars of its own numbers; here are both, published and ours, from the results of
`fbnn`, `fbnn_full` and `fbnn_first_version`. Speed-ups of ours are those of `fbnn_converged` where
it has them: most chains of the other runs have not converged.
"""

from pathlib import Path
from typing import Any

from kept import kept
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator
from parts import WIDTH, panels, write_figure

from credence.html.markup import Html
from credence.html.svg import ACCENT, INK, MUTED, SECOND, to_svg
from credence.html.wording import number

EXPERIMENTS = ("fbnn", "fbnn_full", "fbnn_first_version")
TITLES = {
    "boston": "Boston",
    "wine": "Wine",
    "simulated_regression": "Simulated\nregression",
    "adult": "Adult",
    "mnist": "MNIST",
    "celeba": "CelebA",
    "simulated_classification": "Simulated\nclasses",
}
SHORTER = {
    "FBNN (SGHMC-pCN) with the public code's emulator": "FBNN, the public code's emulator",
    "BNN-SGHMC with the public code's steps": "BNN-SGHMC, the public code's",
}
READING = "Hollow: published. Filled: ours. Where a dot is missing, there is no number."
NAMES, LINE = 178.0, 15.5
"""How wide the methods' names are, and how high a line is, in SVG units."""

Pair = tuple[float | None, float | None]


def figures(folder: Path) -> None:
    """Draw the three."""
    problems = [each for name in EXPERIMENTS for each in kept(name)["problems"]]
    for name, title in (("mse", "Mean squared error"), ("accuracy", "Accuracy")):
        shown = [each for each in problems if any(row.get(name) for row in each["rows"])]
        write_figure(folder, f"fbnn-{name}", chart(shown, name, title))
    write_figure(folder, "fbnn-speed-up", chart(with_converged(problems), "speed_up", "Speed-up"))


def with_converged(problems: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Problems with the speed-ups of the runs on 2000 rows that were long enough to converge."""
    longer = {each["name"]: each["rows"] for each in kept("fbnn_converged")["problems"]}
    found = []
    for problem in problems:
        speed_ups = {row["label"]: row["speed_up"] for row in longer.get(problem["name"], [])}
        rows = [{**row, "speed_up": speed_ups.get(row["label"])} for row in problem["rows"]]
        found.append({**problem, "rows": rows if speed_ups else problem["rows"]})
    return found


def chart(problems: list[dict[str, Any]], name: str, title: str) -> Html:
    """Draw a panel for each data set side by side, and a line for each method through them."""
    pairs = [numbers(problem["rows"], name) for problem in problems]
    methods = list(dict.fromkeys(method for each in pairs for method in each))
    height = LINE * len(methods) + 64
    figure, (axes,) = panels(1, len(problems), height=height, sharey=True)
    edges = {"bottom": 24 / height, "top": 1 - 36 / height}
    figure.subplots_adjust(left=NAMES / WIDTH, right=1 - 12 / WIDTH, wspace=0.12, **edges)
    for each, problem, found in zip(axes, problems, pairs, strict=True):
        draw(each, found, methods)
        each.set_title(TITLES[problem["name"]], color=INK, fontsize=9, loc="left")
        settle(each, is_share=name == "accuracy")
    axes[0].set_yticks(range(len(methods)), [SHORTER.get(each, each) for each in methods])
    axes[0].tick_params(axis="y", labelcolor=INK)
    axes[0].set_ylim(len(methods) - 0.4, -0.6)
    return to_svg(figure, f"fbnn-{name}", f"{title}, published and ours", READING)


def numbers(rows: list[dict[str, Any]], name: str) -> dict[str, Pair]:
    """Find the published number and ours by method."""
    pairs = {row["label"]: (row["published"].get(name), row.get(name)) for row in rows}
    return {method: pair for method, pair in pairs.items() if any(pair)}


def draw(axes: Axes, found: dict[str, Pair], methods: list[str]) -> None:
    """Draw a hollow dot and a filled one on each method's line."""
    for method, (published, ours) in found.items():
        place = methods.index(method)
        if published and ours:
            axes.plot((published, ours), (place, place), color=MUTED, linewidth=0.6)
        if ours:
            axes.plot(ours, place, "o", color=ACCENT, markersize=4.5)
        if published:
            axes.plot(published, place, "o", color=SECOND, markerfacecolor="none", markersize=6)


def settle(axes: Axes, *, is_share: bool) -> None:
    """Scale the axis of the numbers: shares evenly, all others by their logarithms."""
    if is_share:
        axes.set_xlim(None, 1.0)
        axes.xaxis.set_major_locator(MaxNLocator(3, prune="upper"))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:.0f} %"))
        return
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    axes.set_xlim(min(low, 0.9), max(high, 11))  # two numbers to read
    axes.xaxis.set_major_locator(LogLocator(numticks=5))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
