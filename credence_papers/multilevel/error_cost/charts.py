"""Charts on two logarithmic axes: what an error costs, and how fast increments shrink."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from credence.html.markup import Html
from credence.html.svg import ACCENT, CHAINS, MUTED, SECOND, label, new_figure, to_svg
from credence_papers.multilevel.error_cost.results import comparable

COLOURS = {"smc": ACCENT, "mlsmc": SECOND}
MARKERS = {"smc": "o", "mlsmc": "D"}
AXES = {
    "flops": "Work of one run, counted operations",
    "seconds": "Seconds of one run",
    "nominal": "Nominal cost, as published",
}
POWERS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def cost_chart(problem: dict[str, Any], measure: str, name: str, reading: str) -> Html:
    """Cost against mean square error: points, envelopes, and the slopes that theory gives."""
    figure, (axes,) = new_figure(height=300)
    rows = [row for row in comparable(problem["points"], measure) if row["mse"] > 0]
    for row in rows:
        _measured(axes, row, measure)
    fits = problem["fits"].get(measure, {})
    for method, curve in fits.get("envelopes", {}).items():
        if curve["errors"]:
            axes.plot(curve["errors"], curve["costs"], color=COLOURS[method], linewidth=1.8)
            _theory(axes, curve, problem["theory"][method])
    title = AXES[measure]
    log_axes(axes, title, "Mean square error")
    return to_svg(figure, name, f"{title} against error", reading)


def rate_chart(
    rows: Sequence[dict[str, Any]], slopes: dict[str, float], title: str, name: str, reading: str
) -> Html:
    """Second moments of increments against the width: Monte Carlo dots, exact lines."""
    figure, (axes,) = new_figure(height=280)
    for row, colour in zip(rows, CHAINS, strict=False):
        widths, means = np.array(row["widths"], float), np.array(row["means"], float)
        errors = 2 * np.array(row["errors"], float)
        axes.errorbar(widths, means, errors, color=colour, marker="o", markersize=4,
                      linestyle="none", elinewidth=1.0)  # fmt: skip
        exact = row.get("exact")
        line = means if exact is None else np.array(exact, float)
        axes.plot(widths, line, color=colour, linewidth=1.4 if exact else 0.7)
        guide = slopes.get(row["name"])
        if guide is not None:
            half = len(widths) // 2
            dashes = 0.45 * line[half] * (widths[half:] / widths[half]) ** guide
            axes.plot(widths[half:], dashes, color=MUTED, linewidth=1.0, dashes=(4, 3))
    log_axes(axes, title, "Width of the finer network", base_x=2)
    return to_svg(figure, name, title, reading)


def log_axes(axes: Axes, y: str, x: str, base_x: int = 10) -> None:
    """Both axes logarithmic, with whole powers as ticks."""
    axes.set_xscale("log", base=base_x)
    axes.set_yscale("log")
    label(axes, y, x)
    for axis, base in ((axes.xaxis, base_x), (axes.yaxis, 10)):
        low, high = axis.get_view_interval()
        is_narrow = base == 10 and np.log10(high / low) < 1.6
        axis.set_major_locator(
            LogLocator(base=base, subs=(1, 2, 5) if is_narrow else (1,), numticks=7)
        )
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(_power if base == 10 else _whole))
    figure = axes.get_figure()
    assert figure is not None
    figure.subplots_adjust(left=0.14)


def _measured(axes: Axes, row: dict[str, Any], measure: str) -> None:
    """A point, and two standard errors of its mean square error."""
    low = max(row["mse"] - 2 * row["mse_error"], 0.2 * row["mse"])
    high = row["mse"] + 2 * row["mse_error"]
    colour, cost = COLOURS[row["method"]], row[measure]
    axes.plot([low, high], [cost, cost], color=colour, linewidth=1.0, alpha=0.45)
    axes.plot(row["mse"], cost, color=colour, marker=MARKERS[row["method"]], markersize=4.5,
              markeredgewidth=0, linestyle="none", alpha=0.85)  # fmt: skip


def _theory(axes: Axes, curve: dict[str, Any], exponent: float) -> None:
    """The theoretical slope through the middle of an envelope."""
    errors, costs = np.array(curve["errors"]), np.array(curve["costs"])
    middle = len(errors) // 2
    line = costs[middle] * (errors / errors[middle]) ** exponent
    axes.plot(errors, line, color=MUTED, linewidth=1.0, dashes=(4, 3))


def _power(value: float, _position: int | None = None) -> str:
    exponent = int(np.floor(np.log10(value) + 1e-9))
    leading = value / 10.0**exponent
    power = "10" + str(exponent).translate(POWERS)
    if 1e-2 <= value < 1e4:
        return f"{value:g}"
    return power if abs(leading - 1) < 1e-6 else f"{leading:.0f}·{power}"


def _whole(value: float, _position: int | None = None) -> str:
    return f"{value:g}"
