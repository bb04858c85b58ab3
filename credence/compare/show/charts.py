"""Charts of a comparison: error against time, calibration, effective draws per second."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from credence.html.markup import Html, shorten
from credence.html.svg import ACCENT, ALARM, BAND, MUTED, SECOND, label, new_figure, to_svg
from credence.html.wording import number
from credence.report.judging.evidence import binomial_interval

Rows = list[dict[str, Any]]

MAX_LABEL = 24
LEGEND = {"accent": "converged", "alarm": "not converged", "second": "not a chain"}


def colour(row: dict[str, Any]) -> str:
    """The colour that shows whether a row has converged."""
    return {True: ACCENT, False: ALARM, None: SECOND}[row["converged"]]


def error_chart(rows: Rows, score: str, title: str, name: str, reading: str) -> Html:
    """A score against the seconds of all phases, each method named at its point."""
    rows = [row for row in rows if row[score] is not None]
    figure, (axes,) = new_figure(height=330)
    seconds = np.array([row["total_seconds"] for row in rows])
    values = np.array([row[score] for row in rows])
    for row, x, y in zip(rows, seconds, values, strict=True):
        axes.plot(x, y, marker="o", markersize=5, markeredgewidth=0, color=colour(row))
    label(axes, title, "Seconds, all phases", percent_y=score == "accuracy")
    _log_x(axes, seconds, room=4.0)
    low, high = _spread(values)
    axes.set_ylim(low, high)
    heights = _apart(values, 0.052 * (high - low))
    texts = {f"m{i}": shorten(row["label"], MAX_LABEL) for i, row in enumerate(rows)}
    for i, (x, y) in enumerate(zip(seconds, heights, strict=True)):
        axes.annotate(
            f"@@m{i}@@", (x, y), (7, 0), textcoords="offset points", va="center", color=MUTED,
            fontsize=8,
        )  # fmt: skip
    return to_svg(figure, name, title, reading, texts)


def coverage_chart(rows: Rows, num_rows: int, name: str, reading: str) -> Html:
    """Coverage of 95 % intervals with the range that chance alone explains in 99 of 100 cases."""
    rows = [row for row in rows if row["coverage_95"] is not None]
    figure, axes, texts = _by_method(rows)
    lower, upper = (float(end) for end in binomial_interval(num_rows, 0.95))
    axes.axvspan(lower, min(upper, 1.0), color=BAND, linewidth=0)
    axes.axvline(0.95, color=MUTED, linewidth=0.8, dashes=(4, 3))
    for i, row in enumerate(rows):
        _dot(axes, row, "coverage_95", -i)
        if row["coverage_95_credible"] is not None:
            axes.plot(row["coverage_95_credible"], -i, marker="o", markersize=5, color=colour(row),
                      markerfacecolor="none", linestyle="none")  # fmt: skip
    axes.set_xlim(-0.02, 1.03)
    _name_rows(axes, rows, "Share of truths inside", percent_x=True)
    return to_svg(figure, name, "Coverage of 95 % intervals", reading, texts)


def ece_chart(rows: Rows, name: str, reading: str) -> Html:
    """Expected calibration error of the top label."""
    rows = [row for row in rows if row["ece"] is not None]
    figure, axes, texts = _by_method(rows)
    for i, row in enumerate(rows):
        _dot(axes, row, "ece", -i)
    axes.set_xlim(0, 1.1 * max(0.02, *(row["ece"] for row in rows)))
    _name_rows(axes, rows, "Expected calibration error, top label")
    return to_svg(figure, name, "Expected calibration error", reading, texts)


def speed_chart(rows: Rows, name: str, reading: str) -> Html:
    """Smallest function-space ESS per second of all phases."""
    figure, axes, texts = _by_method(rows)
    for i, row in enumerate(rows):
        axes.barh(-i, row["ess_per_second"], height=0.5, color=colour(row), alpha=0.85)
    axes.grid(visible=False, axis="y")
    _name_rows(axes, rows, "Smallest effective sample size per second")
    return to_svg(figure, name, "Effective draws per second", reading, texts)


def _by_method(rows: Rows) -> tuple[Any, Axes, dict[str, str]]:
    """A figure with a line per method."""
    figure, (axes,) = new_figure(height=70 + 21.0 * len(rows))
    texts = {f"m{i}": shorten(row["label"], MAX_LABEL) for i, row in enumerate(rows)}
    return figure, axes, texts


def _dot(axes: Axes, row: dict[str, Any], score: str, height: float) -> None:
    axes.plot(row[score], height, marker="o", markersize=6, markeredgewidth=0, color=colour(row),
              linestyle="none")  # fmt: skip


def _name_rows(axes: Axes, rows: Rows, x: str, percent_x: bool = False) -> None:
    """Names of the methods on the left, with room for the longest."""
    label(axes, "", x, percent_x=percent_x)
    axes.set_ylim(-len(rows) + 0.4, 0.6)
    axes.set_yticks(-np.arange(len(rows), dtype=float), [f"@@m{i}@@" for i in range(len(rows))])
    longest = max(len(shorten(row["label"], MAX_LABEL)) for row in rows)
    figure = axes.get_figure()
    assert figure is not None
    figure.subplots_adjust(left=min(0.45, (14 + 5.2 * longest) / 340))


def _log_x(axes: Axes, values: np.ndarray, room: float) -> None:
    """A logarithmic axis with whole powers and halves of them, and room on the right."""
    axes.set_xscale("log")
    low, high = values.min() / 1.15, values.max() * room
    axes.set_xlim(low, high)
    narrow = np.log10(high / low) < 1.5
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if narrow else (1,), numticks=6))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))


def _spread(values: np.ndarray) -> tuple[float, float]:
    """Limits with room above and below."""
    low, high = float(values.min()), float(values.max())
    margin = 0.12 * (high - low) or 0.1 * abs(high) or 1.0
    return low - margin, high + margin


def _apart(values: np.ndarray, distance: float) -> np.ndarray:
    """Heights of labels: the values, moved so that neighbours keep their distance."""
    order = np.argsort(values, kind="stable")
    placed = values[order].astype(float)
    for _ in range(200):
        gaps = np.diff(placed)
        overlap = np.maximum(distance - gaps, 0)
        if not (overlap > 1e-9 * distance).any():
            break
        placed[:-1] -= overlap / 2
        placed[1:] += overlap / 2
    heights = np.empty_like(placed)
    heights[order] = placed
    return heights
