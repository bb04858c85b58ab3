"""Matplotlib figures as small, accessible inline SVG whose colours follow the page's theme.

Matplotlib draws with one placeholder colour per role, which become CSS variables. Text stays text,
in the page's font. Text from users enters last, escaped, so Matplotlib never parses or measures it.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from credence.html.markup import Html, element, escape
from credence.html.parts import CURVE_COLOURS
from credence.html.wording import number

# Placeholder colours of the roles that style.css and dark.css define as variables.
INK = "#010201"
MUTED = "#010202"
GRID = "#010203"
PAPER = "#010204"
ACCENT = "#010205"
SECOND = "#010206"
ALARM = "#010207"
BAND = "#010208"
CHAINS = (ACCENT, SECOND, "#01020a", "#01020b")
VARIABLES = {
    INK: "ink",
    MUTED: "muted",
    GRID: "grid",
    PAPER: "paper",
    ALARM: "alarm",
    BAND: "band",
    **dict(zip(CHAINS, CURVE_COLOURS, strict=True)),
}

STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "path.simplify": False,
    "font.family": ["DejaVu Sans"],  # bundled with Matplotlib; only for measuring
    "font.size": 9.0,
    "text.color": INK,
    "axes.edgecolor": GRID,
    "axes.facecolor": "none",
    "axes.labelsize": 9.0,
    "axes.labelpad": 6.0,
    "axes.linewidth": 0.8,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.spines.bottom": False,
    "axes.grid": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "xtick.color": GRID,
    "ytick.color": GRID,
    "xtick.labelcolor": MUTED,
    "ytick.labelcolor": MUTED,
    "xtick.labelsize": 9.0,
    "ytick.labelsize": 9.0,
    "xtick.major.size": 0.0,
    "ytick.major.size": 0.0,
    "xtick.major.pad": 6.0,
    "ytick.major.pad": 5.0,
    "figure.facecolor": "none",
    "lines.solid_capstyle": "round",
    "patch.linewidth": 0.0,
}

WIDTH, HEIGHT = 340.0, 270.0  # in SVG units, near the CSS pixels of half a page


def new_figure(
    rows: int = 1, height: float = HEIGHT, left: float = 24.0, width: float = WIDTH, **grid: Any
) -> tuple[Figure, list[Axes]]:
    """A figure of `rows` axes under one another, half a page wide; margins in SVG units."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(width / 72, height / 72))
        axes = figure.subplots(rows, 1, squeeze=False, gridspec_kw=grid or None)[:, 0]
    figure.subplots_adjust(
        left=left / width, right=1 - 14 / width, bottom=38 / height, top=1 - 24 / height
    )
    return figure, list(axes)


def label(
    axes: Axes, y: str, x: str = "", percent_y: bool = False, percent_x: bool = False
) -> None:
    """Name the axes: y above the axis, never rotated; x below. Give the labels of y their room."""
    axes.annotate(
        y,
        xy=(0, 1),
        xycoords=("figure fraction", "axes fraction"),
        xytext=(0, 10),
        textcoords="offset points",
        color=INK,
    )
    axes.set_xlabel(x, color=INK)
    for axis, is_percent in ((axes.xaxis, percent_x), (axes.yaxis, percent_y)):
        axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
        axis.set_major_formatter(FuncFormatter(_tick_percent if is_percent else _tick))
    low, high = axes.get_ylim()
    ticks = [tick for tick in axes.get_yticks() if low <= tick <= high]
    longest = max((len(axes.yaxis.get_major_formatter()(tick)) for tick in ticks), default=0)
    figure = axes.get_figure()
    assert isinstance(figure, Figure)
    needed = (10 + 5.8 * longest) / (72 * figure.get_figwidth())
    figure.subplots_adjust(left=max(needed, figure.subplotpars.left))


def _tick(value: float, _position: int | None = None) -> str:
    return number(0.0 if abs(value) < 1e-12 else value, 6)


def _tick_percent(value: float, _position: int | None = None) -> str:
    return f"{100 * value:.3g}\u202f%"


def to_svg(
    figure: Figure,
    name: str,
    title: str,
    description: str,
    texts: Mapping[str, str] | None = None,
    tips: Mapping[str, Sequence[str]] | None = None,
) -> Html:
    """The figure as one `<svg>` element.

    Args:
        name: unique on the page; prefixes every id.
        title, description: what a screen reader says.
        texts: user's text for each placeholder that the figure shows as `@@placeholder@@`.
        tips: for the `gid` of a line of markers, what the mouse over each of them shows.
    """
    buffer = io.StringIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with mpl.rc_context({**STYLE, "svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", metadata=nothing)
    source = buffer.getvalue()
    view_box = re.search(r'viewBox="([^"]+)"', source)
    assert view_box is not None  # Matplotlib always writes one
    body = source[source.index(">", view_box.end()) + 1 : source.rindex("</svg>")]
    return Html(
        f'<svg class="chart" role="img" viewBox="{view_box[1]}" '
        f'aria-labelledby="{name}-title {name}-description">'
        + element("title", title, id=f"{name}-title")
        + element("desc", description, id=f"{name}-description")
        + _with_tips(_fill_in(_compact(_theme(body), name), texts or {}), name, tips or {})
        + "</svg>"
    )


def _with_tips(body: str, name: str, tips: Mapping[str, Sequence[str]]) -> str:
    """Markers get a `<title>` each, which browsers show under the mouse."""
    for group, told in tips.items():
        start = body.index(f'id="{name}-{group}"')
        waiting = iter(told)

        def with_title(use: re.Match[str], waiting: Iterator[str] = waiting) -> str:
            return f"{use[1]}>{element('title', next(waiting))}</use>"

        marked = re.sub(r"(<use [^>]*?) ?/>", with_title, body[start:], count=len(told))
        body = body[:start] + marked
    return body


def _theme(body: str) -> str:
    """Placeholder colours become variables; the font is left to the page, its size is kept."""
    for colour, variable in VARIABLES.items():
        body = body.replace(colour, f"var(--{variable})")
    body = re.sub(r"font: ([\d.]+px)[^;\"]*", r"font-size: \1", body)  # Matplotlib < 3.10
    return re.sub(r"font-family: [^;\"]*;? *", "", body)


def _compact(body: str, name: str) -> str:
    """Drop what the page does not need; ids get the chart's name."""
    body = re.sub(r"<!--.*?-->|<style.*?</style>|<defs>\s*</defs>", "", body, flags=re.S)
    body = re.sub(r'\bid="', f'id="{name}-', body)
    body = re.sub(r'xlink:href="#', f'href="#{name}-', body)
    body = re.sub(r"url\(#", f"url(#{name}-", body)
    body = re.sub(r"<[^>]*>", _round_numbers, body)
    body = re.sub(r"\s*\n\s*", " ", body)
    return re.sub(r'<use [^>]* style="([^"]*)"/>(?: <use [^>]* style="\1"/>)*', _share_style, body)


def _round_numbers(tag: re.Match[str]) -> str:
    """Two decimals are finer than any screen; text between the tags is left alone."""
    return re.sub(r"\d+\.\d{2,}", lambda m: f"{float(m[0]):.2f}".rstrip("0").rstrip("."), tag[0])


def _share_style(match: re.Match[str]) -> str:
    """Neighbouring markers of one style say so once."""
    return f'<g style="{match[1]}">' + match[0].replace(f' style="{match[1]}"', "") + "</g>"


def _fill_in(body: str, texts: Mapping[str, str]) -> str:
    return re.sub(r"@@(\w+)@@", lambda m: escape(texts[m[1]]), body)
