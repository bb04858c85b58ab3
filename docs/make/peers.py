"""What `fit` gives without options beside what else there is: ranks, and the README's tables.

The rows in `results/` come from `benchmarks/default_model.py` and `benchmarks/default_classes.py`.
"""

from collections.abc import Callable, Iterable
from typing import Any

import default_classes
import default_model
import numpy as np
from kept import kept_rows
from parts import markdown

OURS = "auto"
SCORES = {"nll": "NLL", "crps": "CRPS", "rmse": "RMSE", "log_loss": "log loss", "ece": "ECE"}
"""How tables name them."""


def of_model(rows: list[dict[str, Any]], name: str, model: str) -> list[dict[str, Any]]:
    """Find the rows of a model on a data set."""
    return [row for row in rows if (row["data"], row["model"]) == (name, model)]


def common_splits(rows: list[dict[str, Any]]) -> dict[str, list[int]]:
    """The splits that all models have, by data set; without data sets that have none."""
    found = {}
    for name in dict.fromkeys(row["data"] for row in rows):
        if common := shared_splits(of_model(rows, name, model) for model in names_of(rows)):
            found[name] = sorted(common)
    return found


def shared_splits(of_each: Iterable[list[dict[str, Any]]]) -> set[int]:
    """The splits that all of these lists of rows have."""
    return set.intersection(*({row["split"] for row in mine} for mine in of_each))


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
    table = markdown(
        ["", *models], [[SCORES[score], *map("{:.2f}".format, of)] for score, of in rows_of]
    )
    return [f"Mean rank over {len(means)} data sets (1 is best):", "", table, ""]


def rows_of_labels() -> list[dict[str, Any]]:
    """Rows of classifiers, each with the calibration error over all rows of its table."""
    rows = kept_rows("default_classes")

    def ece(row: dict[str, Any]) -> float:
        return default_classes.ece_of(of_model(rows, row["data"], row["model"]))[0]

    return [{**row, "ece": ece(row)} for row in rows]


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

    ranked_by = ("log loss (rank)", "CRPS (rank)", "RMSE (rank)")
    heads = ("", *ranked_by, "95 % intervals hold", "seconds")
    splits = sorted(map(len, common_splits(rows).values()))
    return (
        f"{markdown(heads, ranked(rows, means, 3, held))}\n\n"
        f"Mean rank over {len(means)} UCI regressions ({', '.join(sorted(means))}; 1 is best), "
        "lowest and highest coverage of a data set, and median seconds of a fit on two cores. Each "
        "data set has 20 published splits into training and test rows. Scores are means over those "
        f"that all models ran, {splits[0]} to {splits[-1]} of the 20. {of_protein(rows)}"
    )


def of_protein(rows: list[dict[str, Any]]) -> str:
    """Tell of the ninth data set, which not all models ran."""
    ours, *theirs = (of_model(rows, "protein", model) for model in (OURS, "lightgbm", "boosting"))
    error, *others = (float(np.mean([row["rmse"] for row in mine])) for mine in (ours, *theirs))
    assert all(0.98 * error < other < error for other in others), "slightly smaller"
    minutes = np.median(default_model.seconds_of(ours)) / 60
    return (
        "A ninth, protein, was not run by all; there LightGBM and scikit-learn's gradient boosting "
        f"have a slightly smaller RMSE, and a fit of Credence took {minutes:.0f} minutes."
    )


def headline_of_labels() -> str:
    """The README's table of labels: mean ranks, accuracy, and what it takes."""
    rows = rows_of_labels()
    means = mean_scores(rows, ("log_loss", "ece", "accuracy"))

    def right(index: int) -> str:
        return f"{100 * np.mean([each[index, 2] for each in means.values()]):.1f} %"

    heads = ("", "log loss (rank)", "calibration error (rank)", "right", "seconds")
    table = markdown(heads, ranked(rows, means, 2, right)).replace(" with conformal intervals", "")
    least = min(map(len, common_splits(rows).values()))
    is_whole = least == default_classes.NUM_FOLDS
    missing = "" if is_whole else f" Scores are of those that all models ran, {least} or more."
    return (
        f"{table}\n\n"
        f"Mean rank over {len(means)} tables with 2 to 10 labels (1 is best), share of labels that "
        "are right, and median seconds of a fit on two cores. The rows of a table are cut into "
        f"{default_classes.NUM_FOLDS} parts, and each part is predicted from the others.{missing}"
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
