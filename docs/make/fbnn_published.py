"""The table of the FBNN paper's own method, run as its public code does, from rows.

    credence experiment run fbnn --problems adult --out RUN \\
        --methods "FBNN (SGHMC-pCN),BNN-SGHMC (first 200)"
    python docs/make/fbnn_published.py RUN...    # adds the rows of finished runs, or renews them
"""

import argparse
import json
from pathlib import Path
from typing import Any

from experiment_tables import both, number, rhat, triple
from kept import keep_rows, kept_rows
from parts import markdown
from rows import add_dirty, commits

NAME = "fbnn_as_published"
LABELS = {
    "BNN-SGHMC (first 200)": "SGHMC, first 200",
    "FBNN (SGHMC-pCN)": "FBNN (SGHMC-pCN)",
}
KEPT = (
    "problem", "label", "accuracy", "mse", "nll", "max_rhat_function", "ess_function",
    "ess_weights", "draws_per_effective_draw", "emulator_error", "emulator_pareto_k",
    "num_chains", "num_draws", "seconds", "published",
)  # fmt: skip
NAMES = {"simulated_classification": "simulated, 1000 x 3"}


def table() -> str:
    """Published beside ours, and what the published quantity hides."""
    heads = (
        "data, training rows", "method", "accuracy or MSE", "draws per effective draw of weights",
        "ESS of weights", "worst ESS of predictions", "R-hat", "emulator off by, nats", "k-hat",
        "seconds",
    )  # fmt: skip
    rows = kept_rows(NAME)
    return f"{markdown(heads, map(cells, rows))}\n\nCommit {commits(rows)}."


def cells(row: dict[str, Any]) -> tuple[str, ...]:
    """One method on one data set."""
    theirs, ratio = row["published"], "draws_per_effective_draw"
    is_labels = row["mse"] is None
    name = "accuracy" if is_labels else "mse"
    score = both(theirs.get(name), row[name])
    spent = sum(value for phase, value in row["seconds"].items() if phase != "compile")
    return (
        f"{NAMES.get(row['problem'], row['problem'])}, {row['n_train']:,}",
        LABELS[row["label"]],
        f"{score}{'' if is_labels else ' (MSE)'}",
        f"{triple(theirs.get(ratio))} / {triple(row[ratio])}",
        triple(row["ess_weights"]),
        number(row["ess_function"][0]),
        rhat(row["max_rhat_function"]),
        *(
            number(None if row[name] is None else float(row[name]))
            for name in ("emulator_error", "emulator_pareto_k")
        ),
        both(theirs.get("total_seconds"), spent),
    )


def keep(folder: Path) -> list[dict[str, Any]]:
    """The rows of a finished run, with what made them."""
    summary = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    about = {name: summary[name] for name in ("seed", "size", "versions")}
    return [
        {
            **{name: row.get(name) for name in KEPT},
            "n_train": problem["n_train"],
            **about,
            "commit": ", ".join(row["commits"]),
        }
        for problem in summary["problems"]
        for row in problem["rows"]
        if row["status"] == "done" and row["label"] in LABELS
    ]


def main() -> None:
    """Keep the rows of the folders that are named."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path)
    add_dirty(parser)
    options = parser.parse_args()
    new = [row for folder in options.folders for row in keep(folder)]
    again = {(row["problem"], row["label"]) for row in new}
    old = [row for row in kept_rows(NAME) if (row["problem"], row["label"]) not in again]
    keep_rows(NAME, new, old, is_dirty=options.dirty)


if __name__ == "__main__":
    main()
