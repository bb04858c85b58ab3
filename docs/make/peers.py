"""The page on what `fit` gives without options, and the README's table, from committed results.

The rows in `results/` come from `benchmarks/default_model.py` and `benchmarks/default_classes.py`;
`python docs/make/pages.py` writes the page.
"""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from kept import ROOT, kept_rows
from parts import markdown

sys.path.insert(0, str(ROOT / "benchmarks"))
import default_classes
import default_model

OURS = "auto"
INTRODUCTION = """# What `fit` gives without options, beside what you might use instead

Does it pay to take Credence in place of gradient boosting, a Gaussian process or a plain network?
`BNNRegressor().fit(X, y)` and `credence fit` try several networks and combine them
([stacking](../explanation/stacking.md)). This page compares that with other methods on the same
rows: how good their predictions and intervals are, and how long they take. It is made by
`python docs/make/pages.py` from the rows in `results/`.

**Read it with care.** The tables are not complete: the column `splits` says how many of the 20
published splits (5 of protein, 5 of labels) were run; where there are few, differences are within
the errors. Seconds are of the rows that ran on two cores; these were shared with other work, so
that seconds are upper bounds, and programs that an earlier split had compiled were read from disk.
Other rows ran on one core, beside much else, for their predictions alone. The targets of wine are
whole numbers: networks that bend much learn that, and put density where they are, which no
published method did; read its RMSE.
The row of `auto` on protein is of commit 4906b56, with five folds in place of ten and without the
model with kinks.
"""


def of_model(rows: list[dict[str, Any]], name: str, model: str) -> list[dict[str, Any]]:
    """Find the rows of a model on a data set."""
    return [row for row in rows if (row["data"], row["model"]) == (name, model)]


def common_splits(rows: list[dict[str, Any]]) -> dict[str, list[int]]:
    """The splits that all models have, by data set; without data sets that have none."""
    found = {}
    for name in dict.fromkeys(row["data"] for row in rows):
        of_each = [{row["split"] for row in of_model(rows, name, m)} for m in names_of(rows)]
        if common := set.intersection(*of_each):
            found[name] = sorted(common)
    return found


def mean_scores(rows: list[dict[str, Any]], scores: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Means over the splits that all models have, by data set: one row a model, sorted by name."""

    def means(name: str, model: str, splits: list[int]) -> list[float]:
        mine = [row for row in of_model(rows, name, model) if row["split"] in splits]
        return [float(np.mean([row[score] for row in mine])) for score in scores]

    return {
        name: np.array([means(name, model, splits) for model in names_of(rows)])
        for name, splits in common_splits(rows).items()
    }


def names_of(rows: list[dict[str, Any]]) -> list[str]:
    """The models without a time limit."""
    return sorted({row["model"] for row in rows if "@" not in row["model"]})


def mean_ranks(means: dict[str, np.ndarray]) -> np.ndarray:
    """Mean rank over data sets; shape (models, scores)."""
    return np.mean([[np.sum(each < row, 0) + 1 for row in each] for each in means.values()], 0)


def ranks(rows: list[dict[str, Any]], scores: tuple[str, ...]) -> list[str]:
    """Mean rank of every model over data sets, by means over the splits that all models have."""
    means = mean_scores(rows, scores)
    if not means:
        return []
    models = names_of(rows)
    rows_of = zip(scores, mean_ranks(means).T, strict=True)
    table = markdown(["", *models], [[score, *map("{:.2f}".format, of)] for score, of in rows_of])
    return [f"Mean rank over {len(means)} data sets (1 is best):", "", table, ""]


FULL_NAMES = {
    "auto": "**Credence, no options**",
    "boosting": "scikit-learn's gradient boosting",
    "gp": "Gaussian process",
    "lightgbm": "LightGBM with conformal intervals",
    "logistic": "logistic regression",
    "mlps": "five scikit-learn networks",
    "ngboost": "NGBoost",
}


def headline() -> str:
    """The README's table of numbers: mean ranks, how often intervals hold, and what it takes."""
    rows = kept_rows("default_model")
    means = mean_scores(rows, ("nll", "crps", "rmse", "coverage_95"))

    def held(index: int) -> str:
        shares = [100 * each[index, 3] for each in means.values()]
        return f"{min(shares):.0f} to {max(shares):.0f} %"

    heads = ("", "log loss", "CRPS", "RMSE", "95 % intervals hold", "seconds")
    splits = sorted(map(len, common_splits(rows).values()))
    return (
        f"{markdown(heads, ranked(rows, means, 3, held))}\n\n"
        f"Mean rank over {len(means)} UCI regressions (1 is best), lowest and highest coverage of "
        "a data set, and median seconds of a fit on two cores; "
        f"{splits[0]} to {splits[-1]} of the 20 published splits each, which all models have."
    )


def headline_of_labels() -> str:
    """The README's table of labels: mean ranks, accuracy, and what it takes."""
    rows = kept_rows("default_classes")
    means = mean_scores(rows, ("log_loss", "ece", "accuracy"))

    def right(index: int) -> str:
        return f"{100 * np.mean([each[index, 2] for each in means.values()]):.1f} %"

    heads = ("", "log loss", "calibration error", "right", "seconds")
    table = markdown(heads, ranked(rows, means, 2, right)).replace(" with conformal intervals", "")
    splits = sorted(map(len, common_splits(rows).values()))
    return (
        f"{table}\n\n"
        f"Mean rank over {len(means)} tables with 2 to 10 labels (1 is best), mean accuracy, and "
        f"median seconds of a fit on two cores; {splits[0]} random splits each."
    )


def ranked(
    rows: list[dict[str, Any]],
    means: dict[str, np.ndarray],
    num_ranks: int,
    more: Callable[[int], str],
) -> list[list[str]]:
    """Mean ranks of all models by the first scores, the best in the first of them on top.

    Args:
        more: (index of a model) -> what else is told of it, before its seconds.
    """
    models, places = names_of(rows), mean_ranks(means)
    found = []
    for index in np.argsort(places[:, 0]):
        of_sets = [of_model(rows, name, models[index]) for name in means]
        seconds = np.median([np.median(default_model.seconds_of(each)) for each in of_sets])
        cells = [f"{place:.1f}" for place in places[index, :num_ranks]]
        took = f"{seconds:.0f}" if seconds >= 1 else "below 1"
        found.append([FULL_NAMES[models[index]], *cells, more(index), took])
    return found


TREES = ("boosting", "lightgbm")


def ratios_to_trees(rows: list[dict[str, Any]], name: str) -> list[float]:
    """The default's mean RMSE over that of each kind of trees, on the splits that both have."""
    found = []
    for model in TREES:
        both = of_model(rows, name, OURS), of_model(rows, name, model)
        splits = set.intersection(*({row["split"] for row in mine} for mine in both))
        if splits:
            ours, theirs = (
                np.mean([row["rmse"] for row in mine if row["split"] in splits]) for mine in both
            )
            found.append(float(ours / theirs))
    return found


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
        ratio = max([ours["rmse"] / rmse, *ratios_to_trees(rows, name)])
        words = "at or below" if ours["nll"] <= nll else "above"
        lines.append(
            f"- {name}: NLL {ours['nll']:.3g} is {words} the best published, {nll:g}; RMSE is "
            f"{ratio:.2f} times the better of MC dropout and gradient boosting; 95 % "
            f"intervals hold {100 * ours['coverage_95']:.1f} % "
            f"({len(mine)} of {default_model.num_splits(name)} splits)."
        )
    return lines


def page() -> str:
    """The whole page."""
    tables = kept_rows("default_model")
    classes = kept_rows("default_classes")
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
    return "\n".join([*lines, ""])
