"""The table of small networks at equal gradients, from `results/nonlinear_networks`."""

from collections.abc import Iterator
from typing import Any

from experiment_tables import made_by, number, rhat, scored
from kept import kept
from parts import markdown

from credence.compare.seeds import mean_and_error

NAME = "nonlinear_networks"


def table() -> str:
    """One row a sampler; its NLL beside that of MALA on the same splits."""
    summary = kept(NAME)
    heads = (
        "data", "sampler", "gradients of a row, 10⁶", "R-hat of the worst split", "worst ESS",
        "NLL", "NLL above MALA's", "95 % coverage", "seconds",
    )  # fmt: skip
    rows = [row for each in summary["problems"] for row in cells(each, summary["baseline"])]
    return "\n\n".join([made_by(summary), markdown(heads, rows)])


def cells(problem: dict[str, Any], baseline: str) -> Iterator[tuple[str, ...]]:
    """The rows of one data set."""
    linear = next(row for row in problem["rows"] if row["label"] == baseline)
    for row in problem["rows"]:
        yield (
            problem["name"],
            row["label"],
            number(row["gradient_evaluations"] / 1e6),
            rhat(row["max_rhat_function"]),
            number(row["ess_function"][0]),
            scored(row, "nll"),
            "-" if row is linear else above(row, linear),
            number(row["coverage_95"]),
            number(row["total_seconds"]),
        )


def above(row: dict[str, Any], linear: dict[str, Any]) -> str:
    """Mean and standard error of the difference, split by split."""
    pairs = zip(row["scores_by_seed"]["nll"], linear["scores_by_seed"]["nll"], strict=True)
    mean, error = mean_and_error([ours - theirs for ours, theirs in pairs])
    return f"{mean:.3f} ± {error:.3f}"
