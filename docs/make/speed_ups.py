"""Effective draws per second over SGHMC's, between chains that are long enough to converge."""

from typing import Any

from experiment_tables import drawn, number, rhat_of
from kept import kept
from parts import markdown

NAME = "fbnn_converged"


def table() -> str:
    """One row a chain; its speed-up where both have converged."""
    heads = (
        "data, training rows", "method", "chains x draws", "seconds", "R-hat", "worst ESS",
        "ESS / s", "speed-up", "accuracy", "NLL",
    )  # fmt: skip
    summary = kept(NAME)
    rows = [cells(each, row) for each in summary["problems"] for row in each["rows"]]
    return f"{markdown(heads, rows)}\n\nCommit {summary['commit']}."


def cells(problem: dict[str, Any], row: dict[str, Any]) -> tuple[str, ...]:
    """One chain on one data set."""
    return (
        f"{problem['name'].partition('_')[0]}, {problem['n_train']:,}",
        row["label"],
        drawn(row),
        number(row["total_seconds"]),
        rhat_of(row),
        number(row["ess_function"][0]),
        number(row["ess_per_second"]),
        row["speed_up_text"],
        number(row["accuracy"]),
        number(row["nll"]),
    )
