"""Experiments and their results as tables for a terminal."""

from collections.abc import Iterable
from typing import Any

from rich import box
from rich.console import Console, Group
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column, Table
from rich.text import Text

from credence.compare.results import DOUBT
from credence.compare.seeds import of_seeds
from credence.compare.specs import SIZES, Experiment, Outcome, RowLimits

SHOWN = {
    "regression": ("rmse", "nll", "coverage_95"),
    "classification": ("accuracy", "nll", "ece"),
}
"""Scores of a task that fit a terminal; the page and the JSON have all."""


class RichWatch:
    """A bar, and a line per finished cell, on standard error."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.bars = Progress(
            TextColumn("cells"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
        )
        self.task = self.bars.add_task("")

    def __enter__(self) -> "RichWatch":
        return self

    def __exit__(self, *_: object) -> None:
        if self.bars.live.is_started:
            self.bars.stop()

    def start(self, total: int, done: int) -> None:
        """Open a progress bar of `total` cells, of which `done` were read from files."""
        self.bars.update(self.task, total=total, completed=done)
        self.bars.start()
        if done:
            self.say(f"{done} of {total} cells are finished already.")

    def finished(self, outcome: Outcome) -> None:
        """Print a finished cell's line, and count it."""
        self.bars.advance(self.task)
        self.say(cell_line(outcome))

    def say(self, message: str) -> None:
        """Print a message above the bar."""
        self.console.print(message, markup=False, highlight=False, soft_wrap=True)


def cell_line(outcome: Outcome) -> str:
    """One finished cell in a line."""
    cell = outcome.cell
    name = f"{cell.problem}, {cell.label}{f', seed {cell.seed}' if cell.seed else ''}:"
    if not outcome.is_done:
        return f"{name} failed. {outcome.result['error']}"
    scores = outcome.result["scores"]
    shown = SHOWN[outcome.result["problem"]["task"]]
    numbers = ", ".join(f"{score} {number(scores[score])}" for score in shown)
    seconds = sum(outcome.result["cost"]["seconds"].values())
    verdict = {True: ", converged", False: ", not converged", None: ""}
    early = ", out of time" if outcome.result.get("stopped") == "time" else ""
    found = verdict[outcome.result["convergence"]["converged"]]
    return f"{name} {numbers}; {seconds:.1f} s{early}{found}"


def experiment_list(descriptions: dict[str, str], problems: dict[str, str]) -> Table:
    """What there is to run; both are by the experiment's name."""
    listing = Table(Column("name", no_wrap=True), "problems", "description")
    for name, description in descriptions.items():
        listing.add_row(name, problems[name], description)
    return listing


def experiment_details(experiment: Experiment) -> Group:
    """Problems, methods and settings of one experiment."""
    problems = Table("problem", "what it is", "rows (train, test) by size", "published rows")
    for each in experiment.problems:
        limits = "; ".join(f"{size} {_limits(each.rows.get(size, RowLimits()))}" for size in SIZES)
        problems.add_row(each.name, each.description, limits, str(len(each.published)))
    methods = Table("label", "method", *(f"settings, {size}" for size in SIZES))
    for each in experiment.methods:
        methods.add_row(each.label, each.method, *(_settings(each.at(size)) for size in SIZES))
    head = Text(f"{experiment.description}\n{experiment.source}\nBaseline: {experiment.baseline}")
    return Group(head, problems, methods, Text("\n".join(f"- {r}" for r in experiment.reasons)))


def results(summary: dict[str, Any]) -> Group:
    """The table of results, a part per problem."""
    return Group(*(_problem(each, summary["baseline"]) for each in summary["problems"]))


def _problem(problem: dict[str, Any], baseline: str) -> Group:
    """The table, and why rows of it have no numbers. It fits 80 columns: names and heads break at
    spaces, nothing is cut."""
    scores = _shown(problem)
    has_chains = any(row["converged"] is not None for row in problem["rows"])
    is_compared = any(row.get("speed_up") is not None for row in problem["rows"])
    about_chains = ("draws", "R-hat", "ESS") if has_chains else ()
    about_chains += ("speed up",) if is_compared else ()
    heads = (*(score.replace("_", " ") for score in scores), "time, s", *about_chains)
    listing = Table(
        Column("method", min_width=_longest_word(row["label"] for row in problem["rows"])),
        *(Column(name, justify="right") for name in heads),
        title=_title(problem, f"speed-up over {baseline}" if is_compared else ""),
        box=box.SIMPLE_HEAD,
        show_edge=False,
        padding=(0, 1, 0, 0),
    )
    for row in problem["rows"]:
        if row["status"] == "failed":
            listing.add_row(row["label"], "failed")
            continue
        ess = row["ess_function"]
        of_chain = (
            f"{row['num_chains']}×{row['num_draws']}",
            number(row["max_rhat_function"]),
            "-" if ess is None else f"{ess[0]:.0f}",
            "-" if row["speed_up"] is None else row["speed_up_text"],
        )
        listing.add_row(
            row["label"],
            *(with_published(row, score) for score in scores),
            f"{row['total_seconds']:.1f}",
            *of_chain[: len(about_chains)],
        )
    late = [row["label"] for row in problem["rows"] if row.get("stopped") == "time"]
    told = [sentence for row in problem["rows"] for sentence in of_seeds(row)]
    told += [f"Out of time, with the draws it had by then: {', '.join(late)}."] if late else []
    return Group(listing, *map(Text, told), Text())


def _title(problem: dict[str, Any], of_speed: str) -> str:
    """The problem's name, and what a reader of its table has to know."""
    has_published = any(row.get("published") for row in problem["rows"])
    parts = (problem["name"], "in brackets: published" if has_published else "", of_speed)
    return ", ".join(filter(None, parts))


def _longest_word(names: Iterable[str]) -> int:
    """Letters of the longest part between two spaces."""
    return max(len(word) for name in names for word in name.split())


def _shown(problem: dict[str, Any]) -> list[str]:
    """The usual scores of the task, and those that the paper has and we have."""
    usual = SHOWN.get(problem["task"], ())
    printed = {score for row in problem["rows"] for score in row["published"]}
    return [*usual, *(s for s in ("auroc", *DOUBT) if s in printed and s not in usual)]


def with_published(row: dict[str, Any], score: str) -> str:
    """Our number with its standard error, and the published one in brackets."""
    published, error = row["published"].get(score), row.get("standard_errors", {}).get(score)
    own = number(row.get(score)) + (f" ± {error:.1g}" if error is not None else "")
    return own + (f" ({number(published)})" if published is not None else "")


def number(value: float | None) -> str:
    """Four digits; '-' where there is none."""
    return "-" if value is None else f"{value:.4g}"


def _limits(rows: RowLimits) -> str:
    if rows.train is None and rows.test is None:
        return "all"
    return f"{rows.train or 'all'}, {rows.test or 'all'}"


def _settings(settings: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in settings.items()) or "defaults"
