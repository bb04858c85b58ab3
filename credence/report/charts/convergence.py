"""Charts that show whether the chains agree, in the predictions that they make."""

from __future__ import annotations

import numpy as np

from credence.ensembles.diagnostics.convergence import ESS_LIMIT, RHAT_LIMIT
from credence.html.markup import Html, element, shorten
from credence.html.svg import ACCENT, ALARM, CHAINS, MUTED, SECOND, label, new_figure, to_svg
from credence.report.data import Convergence
from credence.spacing import evenly_spaced

MAX_TRACES = 3
MAX_CHAINS = 4
MAX_DRAWS = 250  # drawn per chain


def trace_charts(convergence: Convergence, name: str, reading: str) -> Html:
    """Predictions draw by draw, one small chart per row of the table, one line per chain."""
    assert convergence.traces is not None
    traces = convergence.traces[:MAX_CHAINS, :, :MAX_TRACES]
    draws = evenly_spaced(traces.shape[1], MAX_DRAWS)
    charts = []
    for point in range(traces.shape[2]):
        figure, (axes,) = new_figure(height=112, width=230)
        for chain, colour in zip(traces[:, :, point], CHAINS, strict=False):
            axes.plot(draws, chain[draws], color=colour, linewidth=0.6, alpha=0.8)
        axes.margins(x=0.01)
        label(axes, "@@row@@", "Draw")
        axes.locator_params(nbins=3)
        axes.grid(visible=False, axis="x")
        row = shorten(convergence.trace_names[point], 30)
        title = f"Predictions draw by draw, {row}"
        charts.append(to_svg(figure, f"{name}{point}", title, reading, {"row": row}))
    return element("div", *charts, class_="small-charts")


def rhat_chart(convergence: Convergence, name: str, reading: str) -> Html:
    """Histogram of R-hat over predictions, with its limit; what is infinite is in the last bin."""
    assert convergence.rhat is not None
    rhat = convergence.rhat[~np.isnan(convergence.rhat)]
    finite = np.append(rhat[np.isfinite(rhat)], 1.0)
    figure, (axes,) = new_figure(height=165)
    low, high = finite.min(), max(RHAT_LIMIT + 0.005, finite.max())
    counts, edges = np.histogram(np.minimum(rhat, high), bins=24, range=(low, high))
    centres = (edges[:-1] + edges[1:]) / 2
    colours = np.where(centres > RHAT_LIMIT, ALARM, ACCENT).tolist()
    axes.bar(centres, counts, width=0.86 * (edges[1] - edges[0]), color=colours, alpha=0.85)
    axes.axvline(RHAT_LIMIT, color=MUTED, linewidth=0.8, dashes=(4, 3))
    axes.grid(visible=False, axis="x")
    label(axes, "Predictions", "R-hat")
    return to_svg(figure, name, "R-hat of the predictions", reading)


def ess_chart(convergence: Convergence, name: str, reading: str) -> Html:
    """Histograms of bulk and tail effective sample size over predictions, with their limit."""
    assert convergence.ess_bulk is not None
    figure, (axes,) = new_figure(height=165)
    sizes = [(convergence.ess_bulk, ACCENT), (convergence.ess_tail, SECOND)]
    finite = [(s[np.isfinite(s)], colour) for s, colour in sizes if s is not None]
    high = max(1.25 * ESS_LIMIT, *(s.max() for s, _ in finite if len(s)))
    edges = np.linspace(0, high, 31)
    for ess, colour in finite:
        axes.hist(ess, bins=edges.tolist(), color=colour, alpha=0.6)
    axes.axvline(ESS_LIMIT, color=MUTED, linewidth=0.8, dashes=(4, 3))
    axes.set_xlim(0, high)
    axes.grid(visible=False, axis="x")
    label(axes, "Predictions", "Effective sample size")
    return to_svg(figure, name, "Effective sample size of the predictions", reading)
