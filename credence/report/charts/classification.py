"""Charts of one label. Each takes arrays and a name, and returns one `<svg>`."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from credence.html.markup import Html
from credence.html.svg import ACCENT, ALARM, BAND, MUTED, SECOND, label, new_figure, to_svg
from credence.report.data import ClassificationTarget
from credence.report.judging.laws import binomial_interval
from credence.report.judging.levels import ALPHA
from credence.spacing import evenly_spaced

MAX_STEPS = 300  # points of a curve over rows


def confidence_chart(target: ClassificationTarget, name: str, reading: str) -> Html:
    """Histogram of the probability of the predicted label, right and wrong rows stacked."""
    figure, (axes,) = new_figure()
    low = min(1 / len(target.labels), float(target.confidence.min()))
    edges = np.linspace(low, 1, 13)
    right, _ = np.histogram(target.confidence[target.is_correct], bins=edges)
    wrong, _ = np.histogram(target.confidence[~target.is_correct], bins=edges)
    centres, width = (edges[:-1] + edges[1:]) / 2, 0.86 * (edges[1] - edges[0])
    axes.bar(centres, right, width=width, color=ACCENT, alpha=0.85)
    axes.bar(centres, wrong, width=width, bottom=right, color=ALARM, alpha=0.85)
    axes.grid(visible=False, axis="x")
    label(axes, "Test rows", "Probability of the predicted label", percent_x=True)
    return to_svg(figure, name, f"Confidence of the predictions of {target.name}", reading)


def reliability_chart(target: ClassificationTarget, name: str, reading: str) -> Html:
    """Accuracy against confidence with the 99 % band of all bins, over the rows in each."""
    figure, (axes, below) = new_figure(2, height=320, height_ratios=(3, 1), hspace=0.42)
    used = target.reliability.count > 0
    confidence, accuracy = target.reliability.confidence[used], target.reliability.accuracy[used]
    count = target.reliability.count[used]
    for x, n in zip(confidence, count, strict=True):
        axes.plot(
            [x, x],
            binomial_interval(int(n), float(x), ALPHA / len(count)),
            color=BAND,
            linewidth=9,
            solid_capstyle="butt",
        )
    axes.plot([0, 1], [0, 1], color=MUTED, linewidth=0.8, dashes=(4, 3))
    axes.plot(confidence, accuracy, color=ACCENT, linewidth=1.4, marker="o", markersize=4)
    low = max(0.0, min(1 / len(target.labels), confidence.min(), accuracy.min()) - 0.06)
    axes.set(xlim=(low, 1.03), ylim=(low, 1.03))
    label(axes, "Share that was right", percent_y=True, percent_x=True)
    below.bar(confidence, count, width=0.025 * (1.03 - low), color=ACCENT, alpha=0.85)
    below.set_xlim(low, 1.03)
    below.grid(visible=False, axis="x")
    label(below, "Test rows", "Probability of the predicted label", percent_x=True)
    below.set_yticks([0.0, float(count.max())])
    return to_svg(figure, name, f"Reliability of the probabilities of {target.name}", reading)


def split_chart(target: ClassificationTarget, name: str, reading: str) -> Html:
    """Mean aleatoric and epistemic entropy of the rows predicted right and wrong."""
    figure, (axes,) = new_figure(height=190, left=44)
    groups = [g for g in (target.is_correct, ~target.is_correct) if g.any()]
    names = [
        word for word, g in (("right", target.is_correct), ("wrong", ~target.is_correct)) if g.any()
    ]
    aleatoric = np.array([target.entropy_aleatoric[g].mean() for g in groups])
    epistemic = np.array([target.entropy_epistemic[g].mean() for g in groups])
    y = -np.arange(len(groups), dtype=float)
    axes.barh(y, aleatoric, height=0.55, color=ACCENT, alpha=0.85)
    axes.barh(y, epistemic, height=0.55, left=aleatoric, color=SECOND, alpha=0.85)
    axes.grid(visible=False, axis="y")
    label(axes, "Rows predicted", "Mean entropy, nats")
    axes.set_yticks(y, names)
    return to_svg(figure, name, f"Split of the uncertainty of {target.name}", reading)


def selective_chart(target: ClassificationTarget, name: str, reading: str) -> Html:
    """Accuracy on the rows that are left when only the surest are answered."""
    figure, (axes,) = new_figure(height=190)
    kept, accuracy = selective_accuracy(target)
    first = int(np.searchsorted(kept, min(0.1, 30 / len(kept))))  # before that, single rows decide
    shown = first + evenly_spaced(len(kept) - first, MAX_STEPS)
    axes.plot(kept[shown], accuracy[shown], color=ACCENT, linewidth=1.6)
    axes.axhline(accuracy[-1], color=MUTED, linewidth=0.8, dashes=(4, 3))
    axes.set_xlim(0, 1)
    low = float(accuracy[shown].min())
    axes.set_ylim(max(0.0, low - 0.15 * (1 - low) - 0.01), 1 + 0.05 * (1 - low) + 0.002)
    label(axes, "Accuracy", "Rows answered, surest first", percent_y=True, percent_x=True)
    return to_svg(figure, name, f"Accuracy of {target.name} on the surest rows", reading)


def selective_accuracy(
    target: ClassificationTarget,
) -> tuple[Float[np.ndarray, " point"], Float[np.ndarray, " point"]]:
    """Accuracy on the k rows of smallest total entropy, for k = 1..n, as (k/n, accuracy)."""
    order = np.argsort(target.entropy_total, kind="stable")
    k = np.arange(1, len(order) + 1)
    return k / len(order), np.cumsum(target.is_correct[order]) / k
