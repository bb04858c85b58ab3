"""The page of linear against nonlinear MCMC on densities in the plane: one HTML file."""

from typing import Any

import numpy as np
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from credence.html.document import document
from credence.html.markup import Html, element
from credence.html.parts import columns, figure, key_of_curves, masthead, section, table
from credence.html.svg import BAND, CHAINS, MUTED, label, new_figure, to_svg
from credence.html.wording import number

DRAWN = ("MALA", "BG", "AR", "AR, fresh partners")
"""Rows of the charts; the table has all."""
READING = (
    "Unbiased squared maximum mean discrepancy from the exact law: mean over the seeds, shaded one "
    "standard deviation. Grey: twice the standard error that such a mean of as many independent "
    "exact draws has; in it a mean cannot be told from them, and a curve stops at its floor."
)

COLUMNS = (
    "Gradients of the target per iteration; mean over the last tenth of the way, with the standard "
    "error over the seeds; the mean half way; at the end with the inverse multiquadric kernel "
    "(1 + d²)^(-1/2), which sees far points too; the standard deviation for as many exact draws; "
    "seconds of a run, compilation of the first included."
)


def render(summary: dict[str, Any]) -> str:
    """The page as text; all text in `summary` is escaped."""
    facts = (
        f"Credence · {summary['particles']:,} particles · {summary['iterations']:,} iterations · "
        f"{summary['num_seeds']} seeds · size {summary['size']}"
    )
    head = masthead(summary["description"], facts)
    panels = [_panels(summary, target) for target in summary["targets"]]
    body = section("Distance from the exact law", element("p", READING), *panels, is_converged=True)
    source = element("p", summary["source"], class_="small")
    said = element("p", COLUMNS)
    rows = section(
        "At the end", said, _table(summary), _published(summary), source, is_converged=True
    )
    return document(f"Densities: {summary['experiment']}", element("main", head, body, rows))


def _panels(summary: dict[str, Any], target: dict[str, Any]) -> Html:
    """Two charts of a density: the discrepancy per iteration and per gradient."""
    legend = key_of_curves(DRAWN)
    name, title = target["name"], f"{target['name'].capitalize()}: {target['description']}"
    charts = [
        figure(
            f"{title}, per {per}",
            "",
            chart(summary, target, per=per, name=f"{name}-{per}"),
            legend,
        )
        for per in ("iteration", "gradient")
    ]
    return columns(charts[:1], charts[1:])


def chart(summary: dict[str, Any], target: dict[str, Any], *, per: str, name: str) -> Html:
    """Curves of one density, both axes logarithmic."""
    drawing, (axes,) = new_figure(left=40.0)
    rows = {r["sampler"]: r for r in summary["densities"] if r["target"] == target["name"]}
    error = target["noise"] / summary["num_seeds"] ** 0.5
    floor = error / 2
    for sampler, colour in zip(DRAWN, CHAINS, strict=True):
        row = rows[sampler]
        x = np.array(row["iterations"]) * (row["gradients"] if per == "gradient" else 1)
        kept = _spaced(x)
        mean, std = np.array(row["mean"])[kept], np.array(row["std"])[kept]
        low, high = np.maximum(mean - std, floor), np.maximum(mean + std, floor)
        axes.fill_between(x[kept], low, high, color=colour, alpha=0.2, linewidth=0)
        axes.plot(x[kept], np.maximum(mean, floor), color=colour, linewidth=1.5)
    x_label = "Iterations" if per == "iteration" else "Gradients of the target, per particle"
    label(axes, "MMD²", x_label)
    axes.axhspan(floor, 2 * error, color=BAND, linewidth=0)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_minor_locator(NullLocator())
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(bottom=floor)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(numticks=6))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda value, _: number(value)))
    axes.tick_params(labelcolor=MUTED)
    return to_svg(drawing, name, f"MMD² on {target['name']} per {per}", READING)


def _spaced(x: np.ndarray, num: int = 120) -> np.ndarray:
    """Indices about evenly spaced in log x."""
    wanted = np.geomspace(x[0], x[-1], num)
    return np.unique(np.searchsorted(x, wanted).clip(0, len(x) - 1))


def _table(summary: dict[str, Any]) -> Html:
    noises = {target["name"]: target["noise"] for target in summary["targets"]}
    rows = [
        [
            row["target"],
            row["sampler"],
            str(row["gradients"]),
            _with_error(row, "mmd2"),
            _scaled(row["half"]),
            _with_error(row, "imq"),
            _scaled(noises[row["target"]]),
            f"{row['seconds']:.1f}",
        ]
        for row in summary["densities"]
    ]
    head = [
        "Density",
        "Sampler",
        "Gradients",
        "1000 MMD²",
        "Half way",
        "1000 IMQ",
        "Noise",
        "Seconds",
    ]
    return table(head, rows)


def _with_error(row: dict[str, Any], name: str) -> str:
    """A number, and its standard error where there are several seeds."""
    error = row[f"{name}_error"]
    return _scaled(row[name]) + ("" if error is None else f" ± {_scaled(error)}")


def _scaled(value: float) -> str:
    return f"{1000 * value:.2f}".replace("-0.00", "0.00").replace("-", "−")


def _published(summary: dict[str, Any]) -> Html:
    """The paper gives curves without numbers; what its text says of them."""
    items = [
        element("li", f"{target['name']}: {target['published']}.") for target in summary["targets"]
    ]
    why = (
        "The paper prints curves and no numbers, so that ours cannot stand beside its values. Its "
        "text says, with reasons why ours may differ: its code's MALA tests proposals with a wrong "
        "variance and samples about the square of the target, as the rows 'faulty as published'; "
        "its exact rings miss the Jacobian, which leaves a perfect sampler at MMD² = 0.0166."
    )
    return element("div", element("p", why), element("ul", *items))
