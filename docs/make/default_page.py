"""The page on what `fit` gives without options, from the rows of the benchmarks.

`python docs/make/pages.py` writes it.
"""

from typing import Any

import budgets
import default_classes
import default_model
import numpy as np
from kept import kept_rows
from peers import OURS, SCORES, names_of, of_model, ranks, rows_of_labels, shared_splits
from rows import commits

INTRODUCTION = """# What `fit` gives without options, beside what you might use instead

Does it pay to take Credence in place of gradient boosting, a Gaussian process or a plain network?
`BNNRegressor().fit(X, y)` and `credence fit` try several networks and combine them
([stacking](../explanation/stacking.md)). This page compares that with other methods on the same
rows: how good their predictions and intervals are, and how long they take. It is made by
`python docs/make/pages.py` from the rows in `results/`.

**Read it with care.** Credence ran all 20 published splits of every data set (of protein all 5);
the column `splits` says how many the other models ran. Where these are few, small differences mean
nothing. Seconds are rough: other programs ran at the same time, and some fits were made by earlier
versions of the default ([notes](#notes)). *NLL* is the mean negative log likelihood of a test row,
which others call log loss, and *CRPS* a distance between the predicted distribution and the target;
of both, lower is better. Do not compare the NLL on wine, whose targets are whole numbers: a model
gets a low NLL there by predicting exactly these, and no published method did that. (The mean rank
in NLL counts wine all the same.)

RMSE and CRPS are in units of the target (boston: thousand dollars), NLL is in nats per row. ± is
one standard error over the splits. The rows are made by `python benchmarks/default_model.py --out
results/default_model`, and those of labels by `python benchmarks/default_classes.py --out
results/default_classes`, on a virtual machine with two cores. The scripts say which data sets and
settings they use, and where the published numbers come from.
"""
NOTES = """## Notes

- Seconds are of the rows that ran on two cores. Other rows ran on one, for their predictions alone.
- Programs that an earlier split had compiled were read from disk.
- Rows were made by several versions of the default, as the commits below show. Split 0 of protein
  had five folds in place of ten, and no network with kinks. Concrete, wine and yacht were fitted
  before the way changed in which networks are mixed, boston, energy and power after it, and
  kin8nm, naval and protein partly. We have not measured what each of these changes is worth.
- Seconds of Credence on concrete, wine and yacht are medians of two fits each.
- Not all models learnt from all training rows: the rows of boosting are of 68 % of them and those
  of LightGBM of 80 %, because the others said when to stop and how wide intervals are, and the
  Gaussian process had 2000 at most. Leaves of the trees had at least 20 rows, which is much for
  the smallest tables, and scikit-learn's networks for labels stopped after 10 rounds without a
  gain, those for numbers after 50. `benchmarks/default_model.py` and
  `benchmarks/default_classes.py` now fit the trees to all rows, with leaves of 5 or 20 rows, and
  let all networks wait for 50 rounds. The tables are to be made again.
"""
TREES = ("boosting", "lightgbm")


def ratios_to_trees(rows: list[dict[str, Any]], name: str) -> list[float]:
    """The default's mean RMSE over that of each kind of trees, on the splits that both have."""
    found = []
    for model in TREES:
        ours, theirs, num_splits = side_by_side(rows, name, model, "rmse")
        if num_splits:
            found.append(ours / theirs)
    return found


def side_by_side(
    rows: list[dict[str, Any]], name: str, model: str, score: str
) -> tuple[float, float, int]:
    """Means of the default and of a model on the splits that both have, and how many these are."""
    both = of_model(rows, name, OURS), of_model(rows, name, model)
    splits = shared_splits(both)
    if not splits:
        return float("nan"), float("nan"), 0
    ours, theirs = (
        float(np.mean([row[score] for row in mine if row["split"] in splits])) for mine in both
    )
    return ours, theirs, len(splits)


def where_others_win(rows: list[dict[str, Any]], scores: tuple[str, ...]) -> list[str]:
    """Say where another model has a better mean than the default, on the splits that both have."""
    lines = []
    for name in dict.fromkeys(row["data"] for row in rows):
        for score in scores:
            better = [
                found for model in names_of(rows) if (found := ahead(rows, name, model, score))
            ]
            lines += [f"- {name}, {SCORES[score]}: {', '.join(better)}."] if better else []
    return lines


def ahead(rows: list[dict[str, Any]], name: str, model: str, score: str) -> str | None:
    """Set that model's mean against the default's, where it is better."""
    ours, theirs, num_splits = side_by_side(rows, name, model, score)
    is_better = theirs < ours
    return f"{model} {theirs:.3g} against {ours:.3g} ({num_splits} splits)" if is_better else None


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
        compared = f"NLL {ours['nll']:.3g} is {words} the best published, {nll:g}"
        lines.append(
            f"- {name}: {compared if name != 'wine' else 'NLL does not compare'}; RMSE is "
            f"{ratio:.2f} times the best of MC dropout, boosting and LightGBM; 95 % "
            f"intervals hold {100 * ours['coverage_95']:.1f} % "
            f"({len(mine)} of {default_model.num_splits(name)} splits)."
        )
    return lines


def of_budgets(rows: list[dict[str, Any]]) -> list[str]:
    """Show how good predictions are after how many seconds."""
    lines = ["## What time buys", "", budgets.READING, ""]
    for name in budgets.tried(rows):
        splits = len(budgets.common_splits(rows, name))
        lines += [
            f"![Log loss against seconds: {name}](../figures/budgets-{name}.svg)",
            "",
            f"Above: {name}, {splits} of its splits.",
            "",
        ]
    return lines


def page() -> str:
    """The whole page."""
    tables = kept_rows("default_model")
    classes = rows_of_labels()
    lines = [
        INTRODUCTION,
        "## Numbers",
        "",
        "`auto` is Credence without options, `boosting` scikit-learn's gradient boosting, `gp` a",
        "Gaussian process, `lightgbm` LightGBM with conformal intervals, `mlps` five scikit-learn",
        "networks; `benchmarks/default_model.py` has their settings. `published` has the RMSE of",
        "MC dropout and the best NLL of five published methods. Mean ranks are over the splits",
        "that all models ran; rows of the table are over those that each ran. `conformal` is the",
        "coverage of conformal 95 % intervals, which the default has beside the others. `auto@10`",
        "had 10 seconds. `MiB` is the peak memory of the process, which may have run other models",
        "before: the smallest over the splits.",
        "",
        *ranks(tables, ("nll", "crps", "rmse")),
        *beside_published(tables),
        "",
        "The default is not the best everywhere. These models have a better mean on the splits",
        "that both ran:",
        "",
        *where_others_win(tables, ("nll", "crps", "rmse")),
        "",
        *default_model.table_lines(tables),
        "",
        *of_budgets(tables),
        "## Labels",
        "",
        "Every row of a table is scored once, in one of five folds.",
        "The calibration error (ECE) is over all these rows. *By chance* is the one that the same",
        "probabilities would have if they were right: with few rows it is not 0. *Tempered*",
        "probabilities are sharpened or softened by rows that the networks left out",
        "(`predict_proba(tempered=True)`).",
        "",
        *ranks(classes, ("log_loss", "ece")),
        "Other models have a better mean here:",
        "",
        *where_others_win(classes, ("log_loss",)),
        "",
        *default_classes.table_lines(classes),
        "",
        NOTES.rstrip(),
        f"- Commits that ran: {commits(tables + classes)}. Seeds are the numbers of the splits.",
    ]
    return "\n".join([*lines, ""])
