"""The chart of `benchmarks/emulation.py`: seconds to 400 effective draws against rows."""

from pathlib import Path
from typing import Any

import numpy as np
from emulation import COLUMNS, ENOUGH
from kept import kept_rows
from matplotlib.axes import Axes
from parts import write_figure

from credence.html.markup import Html
from credence.html.svg import ACCENT, ALARM, CHAINS, INK, MUTED, SECOND, new_figure, to_svg
from credence_papers.multilevel.error_cost.charts import log_axes

NAME = "emulation-pays"
COLOURS = dict(zip(COLUMNS, (INK, SECOND, ACCENT, *CHAINS[2:], MUTED, ALARM), strict=True))
READING = (
    "A dot is a run that converged, a triangle one that did not in the seconds that it had: there "
    "the method takes longer."
)


def figures(folder: Path) -> None:
    """Draw the chart, where the benchmark has been run."""
    rows = [row for row in kept_rows("emulation") if row["problem"] == "teacher" and "ess" in row]
    if rows:
        write_figure(folder, NAME, chart(rows))


def chart(rows: list[dict[str, Any]]) -> Html:
    """A line for each method on logarithmic axes."""
    figure, (axes,) = new_figure(height=380, width=520)
    for name in COLUMNS:
        if mine := [row for row in rows if row["method"] == name]:
            draw(axes, name, mine)
    axes.plot([], [], "^", color=MUTED, markerfacecolor="none", label="takes longer than this")
    title = f"Seconds to {ENOUGH} effective draws"
    log_axes(axes, title, "Rows")
    axes.legend(frameon=False, labelcolor=INK, fontsize=9, loc="upper left")
    return to_svg(figure, NAME, f"{title} against rows", READING)


def draw(axes: Axes, name: str, rows: list[dict[str, Any]]) -> None:
    """A line with a dot for each table on which the method converged, triangles for the others."""
    colour, newest = COLOURS[name], {row["num_rows"]: row for row in rows}
    reached = [(n, row["seconds_to_400"]) for n, row in newest.items() if row["is_converged"]]
    missed = [(n, row["seconds_spent"]) for n, row in newest.items() if not row["is_converged"]]
    axes.plot(*columns(reached), "o-", color=colour, markersize=5, label=COLUMNS[name][0])
    axes.plot(*columns(missed), "^", color=colour, markersize=7, markerfacecolor="none")


def columns(points: list[tuple[int, float]]) -> np.ndarray:
    """Rows in order, and their seconds."""
    return np.array(sorted(points)).reshape(-1, 2).T
