"""Charts of what predictions make of their inputs. Each returns one `<svg>`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from credence.ensembles.inputs import Effect, Importances
from credence.html.markup import Html, shorten
from credence.html.svg import ACCENT, BAND, CHAINS, MUTED, label, new_figure, to_svg

MAX_INPUTS = 12
MAX_LABELS = len(CHAINS)
LONGEST_NAME = 18  # characters


def importance_chart(found: Importances, name: str, reading: str) -> Html:
    """Loss that shuffling an input adds, with two standard errors, the largest first."""
    shown = found.order[:MAX_INPUTS]
    names = [shorten(found.names[i], LONGEST_NAME) for i in shown]
    left = 24.0 + 5.8 * max(map(len, names))
    figure, (axes,) = new_figure(height=62.0 + 22.0 * len(shown))
    places = np.arange(len(shown))[::-1]
    axes.barh(places, found.nats[shown], height=0.62, color=ACCENT, alpha=0.85)
    axes.plot(*_whiskers(found, shown, places), color=MUTED, linewidth=1.2)
    axes.grid(visible=False, axis="y")
    label(axes, "", "Nats per row that are lost without it")
    axes.set_yticks(places, [f"@@input{i}@@" for i in range(len(shown))])
    figure.subplots_adjust(left=left / (72 * figure.get_figwidth()))
    texts = {f"input{i}": name for i, name in enumerate(names)}
    return to_svg(figure, name, "Importance of the inputs", reading, texts)


def _whiskers(
    found: Importances, shown: Sequence[int], places: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Two standard errors to both sides, as one broken line."""
    ends = np.stack(
        [found.nats[shown] - 2 * found.error[shown], found.nats[shown] + 2 * found.error[shown]]
    )
    gap = np.full(len(places), np.nan)
    x = np.stack([ends[0], ends[1], gap], axis=1).ravel()
    return x, np.stack([places, places, gap], axis=1).ravel()


def effect_chart(found: Effect, outputs: Sequence[int], axis: str, name: str, reading: str) -> Html:
    """The prediction against an input: a curve, or a dot for each name, with nine of ten networks.

    Args:
        outputs: drawn, each in a colour; a band only where there is one.
        axis: what the prediction is of, any text.
    """
    figure, (axes,) = new_figure(height=220)
    names = [value for value in found.values if isinstance(value, str)]
    x = np.arange(len(names)) if names else np.array(found.values, float)
    for output, colour in zip(outputs, CHAINS, strict=False):
        mean, lower, upper = (b[:, output] for b in (found.mean, found.lower, found.upper))
        if names:
            for place, low, high in zip(x, lower, upper, strict=True):
                axes.plot([place, place], [low, high], color=colour, alpha=0.35, linewidth=4)
            axes.plot(x, mean, color=colour, linestyle="none", marker="o", markersize=5)
        else:
            if len(outputs) == 1:
                axes.fill_between(x, lower, upper, color=BAND, linewidth=0)
            axes.plot(x, mean, color=colour, linewidth=1.8)
    axes.margins(x=0.04 if not names else 0.08)
    label(axes, "@@axis@@", "@@input@@")
    texts = {"axis": shorten(axis, 48), "input": shorten(found.name, 40)}
    if names:
        axes.grid(visible=False, axis="x")
        axes.set_xticks(x, [f"@@name{i}@@" for i in range(len(names))])
        room = max(4, 44 // len(names))
        texts |= {f"name{i}": shorten(value, room) for i, value in enumerate(names)}
    return to_svg(figure, name, f"Effect of {found.name}", reading, texts)
