"""The page's building blocks: section, figure, legend, key numbers, tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import NamedTuple

from credence.report.data import AnyTarget, RowTable, finite_rows
from credence.report.markup import Html, element, escape, join, shorten
from credence.report.wording import count, number, with_unit

MIN_DRAWN = 5  # test rows; with fewer, a chart says nothing
MAX_COLUMNS = 10  # of the user's table
MAX_CELL = 40  # characters

NOT_CONVERGED = "Not converged: run again, all of this may come out differently."


class KeyNumber(NamedTuple):
    value: str
    name: str
    note: str


class Column(NamedTuple):
    """One column that the report adds to the user's rows."""

    title: str
    cells: Sequence[str]


def masthead(title: str, facts: str) -> Html:
    """The head of a page: what it is, and the button that `theme.js` makes work."""
    return element(
        "header",
        element("div", element("h1", title), element("p", facts, class_="small")),
        element("button", "Dark", id="theme", type="button", hidden=""),
    )


def section(title: str, *children: str, is_converged: bool) -> Html:
    """A titled section; one whose run did not converge says so."""
    warning = () if is_converged else (element("p", NOT_CONVERGED, class_="warning"),)
    return element("section", element("h2", title), *warning, *children)


def too_few(n: int) -> Html:
    """What stands in for the charts of next to no rows."""
    return element("p", f"{count(n, 'test row')} with finite predictions: too few to draw.")


def pair(*figures: Html) -> Html:
    """Figures side by side, their charts level; under one another on a phone."""
    return element("div", *figures, class_="pair level")


def columns(*stacks: Sequence[Html]) -> Html:
    """Stacks of figures side by side, under one another on a phone."""
    return element("div", *(element("div", *s, class_="stack") for s in stacks), class_="pair")


def figure(
    title: str, reading: str, chart: Html, legend: Html | None = None, note: str = ""
) -> Html:
    """A chart under the sentence that says what it shows."""
    foot = [*([legend] if legend else []), *([element("p", note, class_="small")] if note else [])]
    return element(
        "figure",
        element("div", element("h3", title), element("p", reading)),
        chart,
        element("figcaption", *foot),
    )


def key(**names: str) -> Html:
    """Legend: name of a colour variable = what it stands for."""
    items = (
        element("li", element("span", class_="swatch", style=f"--colour: var(--{colour})"), text)
        for colour, text in names.items()
    )
    return element("ul", *items, class_="legend")


def key_numbers(numbers: Sequence[KeyNumber]) -> Html:
    """Large numbers, each with its name and what it means."""
    items = (
        element(
            "div",
            element("dt", item.name),
            element("dd", item.value, class_="value"),
            element("dd", item.note, class_="note"),
        )
        for item in numbers
    )
    return element("dl", *items, class_="numbers")


def named_scores(
    metrics: Mapping[str, object], scores: Mapping[str, tuple[str, str, str]]
) -> list[KeyNumber]:
    """Those of metrics.json that are there; a score has a title, a note and a unit."""
    return [
        KeyNumber(with_unit(metrics[name], unit), title, note)
        for name, (title, note, unit) in scores.items()
        if name in metrics
    ]


def target_chapters(
    whole: AnyTarget,
    prefix: str,
    drawn: Sequence[Callable[[AnyTarget, str], Html]],
    least_sure: Callable[[AnyTarget], Html],
    *,
    is_converged: bool,
) -> list[Html]:
    """The sections of one target: predictions, calibration, uncertainty, rows least sure of.

    Args:
        prefix: keeps ids apart.
        drawn: the first three, of the rows with finite predictions; next to none are not drawn.
        least_sure: the last, of all rows.
    """
    target = finite_rows(whole)
    titles = ("Predictions against truth", "Calibration", "Where the uncertainty comes from")
    if len(target.y) < MIN_DRAWN:
        built = [(titles[0], too_few(len(target.y)))]
    else:
        built = [(title, draw(target, prefix)) for title, draw in zip(titles, drawn, strict=True)]
    if whole.least_sure is not None and whole.least_sure.index:
        built.append(("The rows it is least sure of", least_sure(whole)))
    return [section(title, body, is_converged=is_converged) for title, body in built]


def table(head: Sequence[str], rows: Sequence[Sequence[str]], class_: str | None = None) -> Html:
    """A table whose first cell names the row; cells may be whole `td` or `th` elements."""
    body = (
        element("tr", _cell(row[0], "th", scope="row"), *(_cell(cell, "td") for cell in row[1:]))
        for row in rows
    )
    top = element("tr", *(_cell(title, "th", scope="col") for title in head))
    whole = element("table", element("thead", top), element("tbody", *body), class_=class_)
    return element("div", whole, class_="scroll", tabindex="0", role="region", aria_label="Table")


def row_table(rows: RowTable, added: Sequence[Column]) -> Html:
    """The user's rows: what the report adds first, then their columns, as many as fit."""
    shown = rows.columns[:MAX_COLUMNS]
    names = rows.names or tuple(f"test row {i + 1}" for i in rows.index)
    titles = (element("th", column.title, class_="result", scope="col") for column in added)
    head = ["Row", *titles, *(shorten(name, MAX_CELL) for name in shown)]
    body = [
        [
            shorten(name, MAX_CELL),
            *(_result(column.cells[i]) for column in added),
            *(_value(value) for value in values[: len(shown)]),
        ]
        for i, (name, values) in enumerate(zip(names, rows.values, strict=True))
    ]
    hidden = len(rows.columns) - len(shown)
    note = f"{count(hidden, 'more column')} not shown." if hidden else ""
    return join(
        [table(head, body, class_="rows"), *([element("p", note, class_="small")] if note else [])]
    )


def settings(items: Sequence[tuple[str, str]]) -> Html:
    """Names and values under one another."""
    pairs = (element("dt", name) + element("dd", value) for name, value in items)
    return element("dl", *(Html(pair) for pair in pairs), class_="settings")


def _cell(content: str, name: str, **attributes: str) -> Html:
    is_cell = isinstance(content, Html) and content.startswith(("<td", "<th"))
    return escape(content) if is_cell else element(name, content, **attributes)


def _result(content: str) -> Html:
    is_cell = isinstance(content, Html) and content.startswith("<td")
    return escape(content) if is_cell else element("td", content, class_="result")


def _value(value: object) -> Html:
    """A value of the user's table."""
    if value is None or (isinstance(value, Real) and value != value):
        return element("td", "missing", class_="missing")
    if isinstance(value, Real) and not isinstance(value, bool):
        return element("td", number(value, 5))
    return element("td", shorten(str(value), MAX_CELL))
