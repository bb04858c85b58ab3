"""The sections of one target, and the table of the user's rows that ends them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Real
from typing import NamedTuple

from credence.html.markup import Html, element, escape, join, shorten
from credence.html.parts import MIN_DRAWN, section, table, too_few
from credence.html.wording import count, number
from credence.report.data import AnyTarget, RowTable, finite_rows, independent

MAX_COLUMNS = 10  # of the user's table
MAX_CELL = 40  # characters


class Column(NamedTuple):
    """One column that the report adds to the user's rows."""

    title: str
    cells: Sequence[str]


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
        predictions, calibration, uncertainty = drawn
        alone = independent(target)
        bodies = (
            predictions(target, prefix),
            join([*_of_groups(target, alone), calibration(alone, prefix)]),
            uncertainty(target, prefix),
        )
        built = list[tuple[str, Html]](zip(titles, bodies, strict=True))
    if whole.least_sure is not None and whole.least_sure.index:
        built.append(("The rows it is least sure of", least_sure(whole)))
    return [section(title, body, is_converged=is_converged) for title, body in built]


def _of_groups(target: AnyTarget, alone: AnyTarget) -> list[Html]:
    """A sentence on the rows of groups; none where every row stands alone."""
    if target.groups is None:
        return []
    sentence = (
        "Rows of a group hang together, so that they tell less of new groups than their number "
        "says. Here, and in the verdict, is one row of every group, drawn at random: "
        f"{number(len(alone.y))} of {count(len(target.y), 'test row')}."
    )
    return [element("p", sentence)]


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
