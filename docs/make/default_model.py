"""The page on what `fit` gives without options, from the committed results.

    python docs/make/default_model.py > docs/results/default_model.md

The rows in `results/` come from `benchmarks/default_model.py` and `benchmarks/default_classes.py`.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))
import default_classes  # noqa: E402
import default_model  # noqa: E402

OURS = "auto"
INTRODUCTION = """# What `fit` gives without options, beside what you might use instead

`BNNRegressor().fit(X, y)` and `credence fit` try several networks and combine them
([stacking](../explanation/stacking.md)). This page compares that with other methods on the same
rows. It is made by `python docs/make/default_model.py` from the rows in `results/`.

**Read it with care.** The tables are not complete: the column `splits` says how many of the 20
published splits (5 of protein, 5 of labels) were run; where there are few, differences are within
the errors. Two cores were shared with other work, so seconds are upper bounds; programs that an
earlier split had compiled were read from disk. The targets of wine are whole numbers: networks that
bend much learn that, and put density where they are, which no published method did; read its RMSE.
The row of `auto` on protein is of commit 4906b56, with five folds in place of ten and without the
model with kinks.
"""


def of_model(rows: list[dict[str, Any]], name: str, model: str) -> list[dict[str, Any]]:
    """Find the rows of a model on a data set."""
    return [row for row in rows if (row["data"], row["model"]) == (name, model)]


def ranks(rows: list[dict[str, Any]], scores: tuple[str, ...]) -> list[str]:
    """Mean rank of every model over data sets, by means over the splits that all models have."""
    models = sorted({row["model"] for row in rows if "@" not in row["model"]})
    found: dict[str, list[list[int]]] = {score: [] for score in scores}
    for name in dict.fromkeys(row["data"] for row in rows):
        by_model = {
            model: {row["split"]: row for row in of_model(rows, name, model)} for model in models
        }
        common = set.intersection(*(set(each) for each in by_model.values()))
        if not common:
            continue
        for score in scores:
            means = [np.mean([by_model[model][i][score] for i in common]) for model in models]
            found[score].append([sum(other < mean for other in means) + 1 for mean in means])
    num_sets = len(found[scores[0]])
    if not num_sets:
        return []
    lines = [
        f"Mean rank over {num_sets} data sets (1 is best):",
        "",
        f"| | {' | '.join(models)} |",
        f"|{'---|' * (len(models) + 1)}",
    ]
    for score in scores:
        mean = np.mean(found[score], axis=0)
        lines.append(f"| {score} | {' | '.join(f'{value:.2f}' for value in mean)} |")
    return [*lines, ""]


def beside_published(rows: list[dict[str, Any]]) -> list[str]:
    """Compare the default with the best published numbers, set by set."""
    lines = []
    for name, (rmse, nll) in default_model.PUBLISHED.items():
        mine = of_model(rows, name, OURS)
        if not mine:
            continue
        ours = {
            score: np.mean([row[score] for row in mine]) for score in ("rmse", "nll", "coverage_95")
        }
        splits = {row["split"] for row in mine}
        trees = [
            np.mean([row["rmse"] for row in of_model(rows, name, model) if row["split"] in splits])
            for model in ("boosting", "lightgbm")
            if of_model(rows, name, model)
        ]
        best = min([rmse, *trees])
        words = "at or below" if ours["nll"] <= nll else "above"
        lines.append(
            f"- {name}: NLL {ours['nll']:.3g} is {words} the best published, {nll:g}; RMSE is "
            f"{ours['rmse'] / best:.2f} times the better of MC dropout and gradient boosting; 95 % "
            f"intervals hold {100 * ours['coverage_95']:.1f} % "
            f"({len(mine)} of {default_model.num_splits(name)} splits)."
        )
    return lines


def main() -> None:
    """Print the page."""
    tables = default_model.done(ROOT / "results" / "default_model")
    classes = default_model.done(ROOT / "results" / "default_classes")
    commits = sorted({row["commit"] for row in tables + classes})
    lines = [
        INTRODUCTION,
        f"Commits that ran: {', '.join(commits)}. Seeds are the numbers of the splits.",
        "",
        "## Numbers",
        "",
        "The protocol and the peers are those of `benchmarks/default_model.py`; `published` has",
        "the RMSE of MC dropout and the best NLL of five published methods. `conformal` is the",
        "coverage of conformal 95 % intervals, which the default has beside the others. `auto@10`",
        "had 10 seconds.",
        "",
        *ranks(tables, ("nll", "crps", "rmse")),
        *beside_published(tables),
        "",
        *default_model.table_lines(tables),
        "",
        "## Labels",
        "",
        *ranks(classes, ("log_loss", "ece")),
        *default_classes.table_lines(classes),
    ]
    print("\n".join(lines))


if __name__ == "__main__":
    main()
