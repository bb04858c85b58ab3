"""What commands say and the statuses they end with; JSON and listings go to standard output.

Markup counts in the sentences of this program only, never in what people bring: names of files and
columns, labels, errors. So consoles read no markup, and `say` takes a sentence that is written in
the code (its type, LiteralString, has this checked) and puts values into it as they are.
"""

import json
import string
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, LiteralString, TextIO

import typer
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

BAD_INPUT = 2
NOT_CONVERGED = 3
INTERRUPTED = 130

VERDICTS: dict[str, LiteralString] = {
    "trust": "[bold green]Trust:[/bold green] the uncertainty held up on rows it never saw.",
    "care": "[bold yellow]Use with care.[/bold yellow]",
    "cannot_tell": "[bold magenta]Cannot tell:[/bold magenta] not enough rows to tell.",
    "do_not_trust": "[bold red]Do not trust.[/bold red]",
}

MODELS = {"": "this model", "_linear": "linear model", "_marginal": "no inputs"}
"""Models in the table of scores, by the ending of their names in metrics.json."""

STANDARD_STREAMS = {
    "-": "stdout",
    "/dev/stdout": "stdout",
    "/dev/fd/1": "stdout",
    "/dev/stderr": "stderr",
    "/dev/fd/2": "stderr",
}
"""What people write in place of a file's name, and the stream of `sys` that they mean."""


def _console(**settings: Any) -> Console:
    """A console that takes text as it is: no [markup], no :emoji:, no colours of its own."""
    return Console(markup=False, emoji=False, highlight=False, **settings)


console = _console(stderr=True)


MARK = "\0"
"""A mark for the place in a sentence where a value belongs."""


class _Values(string.Formatter):
    """Formats a sentence to one with marks, and keeps the text of every value."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def format_field(self, value: Any, format_spec: str) -> str:
        self.texts.append(super().format_field(value, format_spec))
        return MARK


def filled(sentence: LiteralString, *values: object, **named_values: object) -> Text:
    """A sentence with markup, filled as by `str.format` with values that have none.

    The values enter last: no way of escaping them in markup holds for backslashes at their end.
    """
    found = _Values()
    marked = Text.from_markup(found.format(sentence, *values, **named_values), emoji=False)
    parts, start = [], 0
    for text in found.texts:
        place = marked.plain.index(MARK, start)
        parts += [marked[start:place], Text(text, marked.get_style_at_offset(console, place))]
        start = place + 1
    return Text.assemble(*parts, marked[start:])


def say(sentence: LiteralString, *values: object, **named_values: object) -> None:
    """Print a sentence; see `filled`."""
    console.print(filled(sentence, *values, **named_values), soft_wrap=True)


def notes(sentences: list[str]) -> None:
    """Print what was done to the data."""
    for sentence in sentences:
        say("Note: {}", sentence)


def warn(message: object, *_: Any, **__: Any) -> None:
    """Print a warning without the line of code that raised it; for `warnings.showwarning`."""
    say("[yellow]Warning: {}[/yellow]", message)


def complain(error: object) -> None:
    """Print why nothing was done."""
    say("[red]Error: {}[/red]", error)


def standard_stream(out: Path) -> TextIO | None:
    """The standard stream that a file's name stands for, if it does."""
    name = STANDARD_STREAMS.get(str(out))
    return None if name is None else getattr(sys, name)


def finish(result: dict[str, Any], as_json: bool) -> None:
    """End a command that computed something, with its status."""
    if as_json:
        print(json.dumps(result))
    if result["converged"] is False:
        raise typer.Exit(NOT_CONVERGED)


def show(table: RenderableType, content: Any, as_json: bool) -> None:
    """What was asked to be seen, on standard output: as a table, or as JSON."""
    if as_json:
        print(json.dumps(content))
    else:
        _console().print(table)


def summary(metrics: dict[str, Any], sentences: Iterable[str] = ()) -> None:
    """Print what a finished run found, the verdict first.

    Args:
        sentences: on what the method learnt beside predictions.
    """
    from credence.html.wording import count, cut_short, divergent, score, steps
    from credence.runs.documents import SCORES

    say(VERDICTS[metrics["verdict"]])
    for reason in metrics["verdict_reasons"]:
        say("  {}", reason)
    if advice := metrics.get("verdict_advice"):
        say("  [bold]What you can do:[/bold]")
    for sentence in advice or ():
        say("  - {}", sentence)
    if metrics["converged"]:
        say("Converged: {}", metrics["convergence_reason"])
    told = divergent(metrics.get("divergences"), metrics["num_draws"] * metrics["num_chains"])
    if told and not any(told in reason for reason in metrics["verdict_reasons"]):
        say("{}", told)
    if metrics["stopped"] != "finished":
        asked = metrics.get("num_draws_asked")
        say("{}", cut_short(metrics["stopped"], metrics["num_draws"], asked))
    say("Method [bold]{}[/bold]: {}", metrics["method"], metrics["method_reason"])
    for sentence in sentences:
        say("{}", sentence)
    shown = SCORES[metrics["task"]]
    listing = Table("", *shown, title=f"On {count(metrics['n_test'], 'held-out row')}")
    for ending, model in MODELS.items():
        values = [metrics.get(name + ending) for name in shown]
        if ending == "" or any(value is not None for value in values):
            cells = (score(name, value) for name, value in zip(shown, values, strict=True))
            listing.add_row(model, *cells)
    console.print(listing)
    total, parts = steps(metrics["seconds"], shortest=0.05)
    listed = ", ".join(f"{name} {value:.1f}" for name, value in parts.items())
    say("It took {:.1f} s: {}.", total, listed)
