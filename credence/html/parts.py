"""The page's building blocks: section, figure, legend, key numbers, tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from credence.html.markup import Html, element, escape
from credence.html.wording import count, score

MIN_DRAWN = 5  # test rows; with fewer, a chart says nothing

CURVE_COLOURS = ("accent", "second", "third", "fourth")
"""Variables of the colours that `svg.CHAINS` holds."""

NOT_CONVERGED = "Not converged: run again, all of this may come out differently."


class KeyNumber(NamedTuple):
    """A number that a page shows large, with its name."""

    value: str
    name: str
    note: str


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


def key_of_curves(names: Iterable[str]) -> Html:
    """Legend of curves that are drawn in these colours, in this order, as far as they go."""
    return key(**dict(zip(CURVE_COLOURS, names, strict=False)))


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
        KeyNumber(score(name, metrics[name], unit), title, note + _beside(metrics, name))
        for name, (title, note, unit) in scores.items()
        if name in metrics
    ]


def _beside(metrics: Mapping[str, object], name: str) -> str:
    """Scores of simple models of the same rows, where a run knows them."""
    names = {"linear": "a linear model", "marginal": "guessing without inputs"}
    known = [
        f"{words} has {score(name, metrics[key])}"
        for kind, words in names.items()
        if (key := f"{name}_{kind}") in metrics
    ]
    return f"; {', '.join(known)}" if known else ""


def table(head: Sequence[str], rows: Sequence[Sequence[str]], class_: str | None = None) -> Html:
    """A table whose first cell names the row; cells may be whole `td` or `th` elements."""
    body = (
        element("tr", _cell(row[0], "th", scope="row"), *(_cell(cell, "td") for cell in row[1:]))
        for row in rows
    )
    top = element("tr", *(_cell(title, "th", scope="col") for title in head))
    whole = element("table", element("thead", top), element("tbody", *body), class_=class_)
    return element("div", whole, class_="scroll", tabindex="0", role="region", aria_label="Table")


def settings(items: Sequence[tuple[str, str]]) -> Html:
    """Names and values under one another."""
    pairs = (element("dt", name) + element("dd", value) for name, value in items)
    return element("dl", *(Html(pair) for pair in pairs), class_="settings")


def _cell(content: str, name: str, **attributes: str) -> Html:
    is_cell = isinstance(content, Html) and content.startswith(("<td", "<th"))
    return escape(content) if is_cell else element(name, content, **attributes)
