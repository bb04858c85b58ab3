"""The page of the prior-rate figures: one HTML file."""

from math import log2
from typing import Any

from credence.html.document import document
from credence.html.markup import Html, element
from credence.html.parts import columns, figure, key_of_curves, masthead, section, table
from credence.html.wording import number
from credence_papers.multilevel.error_cost.charts import rate_chart

READING = (
    "Second moment of the difference between a network and one half as wide. Dots: Monte Carlo, "
    "with two standard errors; lines: exact where known, else through the dots; dashes: theory for "
    "wide networks."
)


def render(summary: dict[str, Any]) -> str:
    """The page as text; all text in `summary` is escaped."""
    facts = (
        f"Credence · {number(summary['draws'])} draws · size {summary['size']} · "
        f"seed {summary['seed']}"
    )
    head = masthead(summary["description"], facts)
    drawn = [_panel(rows, name, f"r{i}") for i, (name, rows) in enumerate(panels(summary).items())]
    pairs = [columns(drawn[i : i + 1], drawn[i + 1 : i + 2]) for i in range(0, len(drawn), 2)]
    source = element("p", summary["source"], class_="small")
    body = section("Increments under the prior", element("p", READING), *pairs, is_converged=True)
    rates = section("Rates", _table(summary), source, is_converged=True)
    return document(f"Prior rates: {summary['experiment']}", element("main", head, body, rates))


def panels(summary: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Curves by the chart they belong to."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row in summary["curves"]:
        found.setdefault(row["panel"], []).append(row)
    return found


def panel_chart(rows: list[dict[str, Any]], name: str) -> Html:
    """The chart of one panel."""
    slopes = {row["name"]: row["theory"] for row in rows}
    return rate_chart(rows, slopes, "E (f_fine − f_coarse)²", name, READING)


def _panel(rows: list[dict[str, Any]], title: str, name: str) -> Html:
    legend = key_of_curves(row["name"] for row in rows)
    return figure(title, "", panel_chart(rows, name), legend)


def _table(summary: dict[str, Any]) -> Html:
    rows = [
        [
            f"{row['panel']}, {row['name']}",
            _fixed(row["slope"]),
            "–" if row["exact"] is None else _fixed(_exact_slope(row)),
            _fixed(row["theory"]),
            str(row["widths"][-1]),
        ]
        for row in summary["curves"]
    ]
    head = ["Prior and network", "Slope, wider half", "Exact, last step", "Theory", "Widest"]
    return table(head, rows)


def _fixed(value: float) -> str:
    return f"{value + 0.0:.2f}".replace("-0.00", "0.00").replace("-", "−")


def _exact_slope(row: dict[str, Any]) -> float:
    """The exact slope, in powers of two, between the last two widths."""
    return log2(row["exact"][-1] / row["exact"][-2])
