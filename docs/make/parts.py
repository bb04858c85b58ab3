"""Parts of a page: a table as text, and a chart as a file."""

import re
from collections.abc import Iterable, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import kept  # noqa: F401  (finds the benchmarks)
import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from rows import markdown as table_lines

from credence.html.svg import STYLE


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of a page."""
    return "\n".join(table_lines(heads, rows))


WIDTH = 700.0
"""How wide a figure of panels side by side is, in SVG units."""


def panels(rows: int, columns: int, *, height: float, **shared: Any) -> tuple[Figure, np.ndarray]:
    """A figure as wide as a page, and its axes (row, column); `new_figure` stacks them instead."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH / 72, height / 72))
        return figure, figure.subplots(rows, columns, squeeze=False, **shared)


def write_figure(figures: Path, name: str, chart: str) -> None:
    """The chart as a file of its own, with the page's colours for both themes."""
    name = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    light, dark = (colours(file) for file in ("style.css", "dark.css"))
    style = (
        f"<style>svg{{{light}font-family:sans-serif}}"
        f"@media(prefers-color-scheme:dark){{svg{{{dark}background:var(--paper)}}}}</style>"
    )
    box = re.search(r'viewBox="([\d.]+) ([\d.]+) ([\d.]+) ([\d.]+)"', chart)
    assert box is not None
    size = f'xmlns="http://www.w3.org/2000/svg" width="{float(box[3]):.0f}pt"'
    text = chart.replace("<svg ", f"<svg {size} ", 1).replace("<title", style + "<title", 1)
    (figures / f"{name}.svg").write_text(text, encoding="utf-8")


def colours(file: str) -> str:
    """Variables of a style sheet that are colours."""
    text = resources.files("credence.html").joinpath(file).read_text(encoding="utf-8")
    return "".join(f"--{name}:{value};" for name, value in re.findall(r"--([\w-]+): (#\w+)", text))
