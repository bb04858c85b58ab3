"""Charts of one numeric target. Each takes arrays and a name, and returns one `<svg>`."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Int

from credence.html.markup import Html, shorten
from credence.html.svg import ACCENT, ALARM, BAND, MUTED, SECOND, label, new_figure, to_svg
from credence.html.wording import digits_to_tell, number
from credence.report.data import RegressionTarget, is_inside
from credence.report.judging.evidence import (
    binomial_band,
    central_coverage,
    pit_counts,
)
from credence.spacing import evenly_spaced

MAX_POINTS = 1500  # drawn in the scatter plot
MAX_INTERVALS = 40  # drawn one by one
MAX_TIPS = 500  # points of the scatter plot that tell of themselves under the mouse
LEVELS = np.linspace(0.05, 0.95, 19)
NUM_FIFTHS = 5


def predictions_chart(target: RegressionTarget, name: str, reading: str) -> Html:
    """Truth against predictive mean, with 95 % intervals and the line on which they agree."""
    figure, (axes,) = new_figure()
    shown = np.argsort(target.mean, kind="stable")[evenly_spaced(len(target.y), MAX_POINTS)]
    mean, y, inside = target.mean[shown], target.y[shown], is_inside(target)[shown]
    axes.plot(
        *_segments(mean, target.lower_95[shown], target.upper_95[shown]),
        color=ACCENT,
        alpha=0.16 if len(shown) < 400 else 0.08,
        linewidth=1.6 if len(shown) < 400 else 1.0,
    )
    ends = [min(mean.min(), y.min()), max(mean.max(), y.max())]
    axes.plot(ends, ends, color=MUTED, linewidth=0.8, dashes=(4, 3))
    size = 3.6 if len(shown) < 400 else 2.4
    dots = {"linestyle": "none", "marker": "o", "markersize": size, "markeredgewidth": 0}
    axes.plot(mean[inside], y[inside], color=ACCENT, alpha=0.75, gid="inside", **dots)
    axes.plot(mean[~inside], y[~inside], color=ALARM, alpha=0.95, gid="outside", **dots)
    axes.margins(x=0.03)
    label(axes, "Observed @@target@@", "Predicted @@target@@")
    texts = {"target": _axis_name(target, 28)}
    tips = row_tips(target, shown) if len(shown) <= MAX_TIPS else {}
    title = f"Observed against predicted {target.name}"
    return to_svg(figure, name, title, reading, texts, tips)


def intervals_chart(target: RegressionTarget, name: str, reading: str) -> Html:
    """Single rows in order of their prediction: 50 % and 95 % interval, and the truth."""
    figure, (axes,) = new_figure()
    shown = np.argsort(target.mean, kind="stable")[evenly_spaced(len(target.y), MAX_INTERVALS)]
    x = np.arange(len(shown), dtype=float)
    y, inside = target.y[shown], is_inside(target)[shown]
    wide = _segments(x, target.lower_95[shown], target.upper_95[shown])
    narrow = _segments(x, target.lower_50[shown], target.upper_50[shown])
    axes.plot(*wide, color=ACCENT, alpha=0.35, linewidth=1.4)
    axes.plot(*narrow, color=ACCENT, alpha=0.55, linewidth=3.6)
    dots = {"linestyle": "none", "marker": "o", "markersize": 3.4, "markeredgewidth": 0}
    axes.plot(x[inside], y[inside], color=MUTED, gid="inside", **dots)
    axes.plot(x[~inside], y[~inside], color=ALARM, gid="outside", **dots)
    label(axes, "@@target@@", "Test rows, in order of their prediction")
    axes.set_xticks([])
    texts = {"target": _axis_name(target, 48)}
    title = f"Intervals of {target.name}, row by row"
    return to_svg(figure, name, title, reading, texts, row_tips(target, shown))


def row_tips(target: RegressionTarget, shown: Int[np.ndarray, " row"]) -> dict[str, list[str]]:
    """Tell of each row its number among the test rows, prediction, interval and truth."""
    tips: dict[str, list[str]] = {"inside": [], "outside": []}
    inside = is_inside(target)
    for i in shown:
        values = np.stack([target.mean, target.lower_95, target.upper_95, target.y])[:, i]
        width, size = float(values[2] - values[1]), float(np.abs(values).max())
        mean, low, high, y = (number(value, digits_to_tell(width, size)) for value in values)
        tips["inside" if inside[i] else "outside"].append(
            f"Test row {i + 1}: predicted {mean}, 95 % from {low} to {high}; observed {y}"
        )
    return {group: told for group, told in tips.items() if told}


def coverage_chart(target: RegressionTarget, name: str, reading: str) -> Html:
    """Empirical against nominal coverage of central intervals, with the 99 % band of all levels."""
    figure, (axes,) = new_figure()
    levels = np.concatenate([[0], LEVELS, [1]])
    axes.fill_between(levels, *binomial_band(len(target.y), levels), color=BAND, linewidth=0)
    axes.plot([0, 1], [0, 1], color=MUTED, linewidth=0.8, dashes=(4, 3))
    coverage = central_coverage(target.pit, LEVELS)
    axes.plot(LEVELS, coverage, color=ACCENT, linewidth=1.6, marker="o", markersize=3)
    axes.set(xlim=(0, 1), ylim=(0, 1))
    label(axes, "Rows that fell inside", "Claim of the interval", percent_y=True, percent_x=True)
    return to_svg(figure, name, f"Calibration of intervals of {target.name}", reading)


def pit_chart(target: RegressionTarget, name: str, reading: str) -> Html:
    """Histogram of the PIT with the 99 % band of all bars of a flat one."""
    figure, (axes,) = new_figure()
    counts, n = pit_counts(target.pit), len(target.y)
    bins = len(counts)
    lower, upper = (n * end[0] for end in binomial_band(n, np.full(bins, 1 / bins)))
    axes.axhspan(lower, upper, color=BAND, linewidth=0)
    axes.axhline(n / bins, color=MUTED, linewidth=0.8, dashes=(4, 3))
    centres = (np.arange(bins) + 0.5) / bins
    outside = (counts < lower) | (counts > upper)
    colours = np.where(outside, ALARM, ACCENT).tolist()
    axes.bar(centres, counts, width=0.86 / bins, color=colours, alpha=0.85)
    axes.set_xlim(0, 1)
    axes.grid(visible=False, axis="x")
    label(axes, "Test rows", "Where the truth fell in the predicted range", percent_x=True)
    return to_svg(figure, name, f"PIT histogram of {target.name}", reading)


def split_chart(target: RegressionTarget, name: str, reading: str) -> Html:
    """Histogram over rows of the epistemic share of the predictive variance."""
    figure, (axes,) = new_figure()
    counts, edges = np.histogram(epistemic_share(target), bins=20, range=(0, 1))
    centres = (edges[:-1] + edges[1:]) / 2
    axes.bar(centres, counts, width=0.043, color=SECOND, alpha=0.85)
    axes.set_xlim(0, 1)
    axes.grid(visible=False, axis="x")
    label(axes, "Test rows", "Share of the variance that more data could remove", percent_x=True)
    return to_svg(figure, name, f"Split of the uncertainty of {target.name}", reading)


def error_chart(target: RegressionTarget, name: str, reading: str) -> Html:
    """Root mean squared error of rows grouped by predictive std, beside that std."""
    figure, (axes,) = new_figure()
    observed, claimed = error_by_std(target)
    x = np.arange(len(observed), dtype=float)
    axes.bar(x, observed, width=0.6, color=ACCENT, alpha=0.85)
    for position, height in zip(x, claimed, strict=True):
        axes.plot([position - 0.36, position + 0.36], [height] * 2, color=SECOND, linewidth=2.2)
    axes.grid(visible=False, axis="x")
    axes.set_ylim(bottom=0)
    label(axes, "Error of the prediction@@unit@@")
    names = {0: "most sure", len(observed) - 1: "least sure"}
    axes.set_xticks(x, [names.get(i, "") for i in range(len(x))])
    texts = {"unit": f", {shorten(target.unit, 24)}" if target.unit else ""}
    return to_svg(figure, name, f"Error of {target.name} by certainty", reading, texts)


def epistemic_share(target: RegressionTarget) -> Float[np.ndarray, " point"]:
    """Epistemic share of the variance, per row; 0 where there is no variance."""
    total = target.epistemic_std**2 + target.aleatoric_std**2
    return np.divide(target.epistemic_std**2, total, out=np.zeros_like(total), where=total > 0)


def error_by_std(
    target: RegressionTarget, groups: int = NUM_FIFTHS
) -> tuple[Float[np.ndarray, " group"], Float[np.ndarray, " group"]]:
    """Root mean square of the errors and of the predictive std, in equal groups by std."""
    order = np.argsort(target.std, kind="stable")
    parts = np.array_split(order, min(groups, len(order)))
    error = target.y - target.mean
    observed = [np.sqrt(np.mean(error[part] ** 2)) for part in parts]
    claimed = [np.sqrt(np.mean(target.std[part] ** 2)) for part in parts]
    return np.array(observed), np.array(claimed)


def _segments(
    x: Float[np.ndarray, " row"], low: Float[np.ndarray, " row"], high: Float[np.ndarray, " row"]
) -> tuple[np.ndarray, np.ndarray]:
    """Vertical lines as one broken line, so that they become one path."""
    gap = np.full_like(x, np.nan)
    return np.stack([x, x, gap], axis=1).ravel(), np.stack([low, high, gap], axis=1).ravel()


def _axis_name(target: RegressionTarget, length: int) -> str:
    unit = f" ({shorten(target.unit, 14)})" if target.unit else ""
    return shorten(target.name, length - len(unit)) + unit
