"""Classifiers side by side: what `fit` gives without options, and what a user might take instead.

    CREDENCE_DATA=... python benchmarks/default_classes.py --out FOLDER
    CREDENCE_DATA=... python benchmarks/default_classes.py --out FOLDER --datasets vehicle
    python benchmarks/default_classes.py --out FOLDER --table

Tables of scikit-learn and of CREDENCE_DATA, by five folds in a random order: every row is scored
once, by a model that was fitted to the other four fifths, and every model sees the same rows. Log
loss in nats. The calibration error (ECE) of the top label, in 15 bins, is over all rows of a table;
beside it is the one that these probabilities would have on as many rows if they were right: with
few rows it is far from 0. `tempered` is the same of probabilities that were tempered by left-out
rows. What is done already is in FOLDER/rows.jsonl and is not done again. Seconds are those of the
fit.

Models: `auto` and any other method of the library; `boosting`, scikit-learn's histogram gradient
boosting, and `lightgbm`, both on all training rows: how many trees, and whether a leaf has at least
5 rows or 20, five folds say, each stopped early; `logistic` regression; `mlps`, five scikit-learn
networks of 50-50, stopped early.
"""

import os
import resource
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import trees
from rows import commit, mean_error, run

SCORES = ("accuracy", "log_loss", "log_loss_tempered")
DATASETS = ("cancer", "wine3", "digits", "credit_approval", "vehicle", "spambase", "magic_gamma")
NUM_FOLDS, NUM_BINS = 5, 15


def table_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Inputs as numbers, categories one-hot and gaps filled by the median; labels from 0."""
    from sklearn import datasets

    bundled = {
        "cancer": datasets.load_breast_cancer,
        "digits": datasets.load_digits,
        "wine3": datasets.load_wine,
    }
    if name in bundled:
        return bundled[name](return_X_y=True)
    frame = pd.read_parquet(Path(os.environ["CREDENCE_DATA"]) / "tables" / f"{name}.parquet")
    target = frame.columns[-1]
    x = pd.get_dummies(frame.drop(columns=target)).astype(float)
    return x.fillna(x.median()).to_numpy(), pd.factorize(frame[target], sort=True)[0]


def split_of(name: str, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training and test rows of a fold: x, y, x, y."""
    x, y = table_of(name)
    folds = np.array_split(np.random.default_rng(0).permutation(len(y)), NUM_FOLDS)
    test = folds.pop(number)
    train = np.concatenate(folds)
    return x[train], y[train], x[test], y[test]


def scores_of(probabilities: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """Accuracy, log loss, and what tells the calibration error of the rows of all folds."""
    from credence.ensembles.diagnostics import classification

    p = np.asarray(probabilities, float)
    p = np.clip(p, 1e-12, None)
    p /= p.sum(axis=1, keepdims=True)
    return {
        "accuracy": classification.accuracy(p, y),
        "log_loss": classification.log_loss(p, y),
        "bins": bins_of(p.max(axis=1), p.argmax(axis=1) == y).tolist(),
    }


def bins_of(stated: np.ndarray, is_right: np.ndarray) -> np.ndarray:
    """Sums of four things over the rows of each bin; shape (bins, 4).

    Rows; what was stated; what was right; the variance of what is right if what was stated is so.
    """
    which = np.clip(np.ceil(stated * NUM_BINS).astype(int) - 1, 0, NUM_BINS - 1)
    each = np.stack([np.ones_like(stated), stated, is_right, stated * (1 - stated)], axis=1)
    bins = np.zeros((NUM_BINS, 4))
    np.add.at(bins, which, each)
    return bins


def ece_of(rows: list[dict[str, Any]], bins: str = "bins") -> tuple[float, float]:
    """The calibration error over the rows of all folds, and what chance alone makes of it.

    By chance the number of right ones in a bin is about normal around what was stated.
    """
    num, stated, right, variance = np.sum([row[bins] for row in rows], axis=0).T
    by_chance = np.sqrt(2 / np.pi * variance)
    return float(abs(right - stated).sum() / num.sum()), float(by_chance.sum() / num.sum())


def network_scores(method: str, rows: Any, seed: int) -> dict[str, Any]:
    """Scores of a method of the library with its default settings."""
    from credence import BNNClassifier

    x, y, x_test, y_test = rows
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = BNNClassifier(method=method, random_state=seed).fit(x, y)
    seconds = time.perf_counter() - start
    found: dict[str, Any] = scores_of(model.predict_proba(x_test), y_test)
    if model.is_recalibrated:
        tempered = scores_of(model.predict_proba(x_test, tempered=True), y_test)
        found |= {f"{name}_tempered": tempered[name] for name in ("log_loss", "bins")}
    tried = model.findings_.get("models")
    return {
        **found,
        "seconds": seconds,
        "seconds_by_phase": dict(model.ensemble_.cost.seconds),
        "method": model.method_.name,
        "models": None if tried is None else list(tried.tried),
    }


def boosted(model: str, x: np.ndarray, y: np.ndarray, seed: int) -> Any:
    """Boosted trees of that name, of all rows."""
    from sklearn.metrics import log_loss
    from sklearn.model_selection import StratifiedKFold

    if model == "boosting":
        from sklearn.ensemble import HistGradientBoostingClassifier

        kind = trees.boosting(HistGradientBoostingClassifier, seed)
    else:
        from lightgbm import LGBMClassifier

        kind = trees.lightgbm(LGBMClassifier, seed, are_labels=True)
    folds = StratifiedKFold(trees.NUM_FOLDS, shuffle=True, random_state=seed).split(x, y)
    return trees.tuned(kind, x, y, folds, lambda model, x: model.predict_proba(x), log_loss).model


def peer(model: str, x: np.ndarray, y: np.ndarray, seed: int) -> Any:
    """A classifier that a user might take instead, fitted."""
    from sklearn.ensemble import VotingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if model == "logistic":
        return make_pipeline(StandardScaler(), LogisticRegression(max_iter=5000)).fit(x, y)
    if model in ("boosting", "lightgbm"):
        return boosted(model, x, y, seed)
    members = [
        (
            str(i),
            MLPClassifier(
                (50, 50),
                max_iter=2000,
                early_stopping=True,
                n_iter_no_change=50,
                random_state=10 * seed + i,
            ),
        )
        for i in range(5)
    ]
    return make_pipeline(StandardScaler(), VotingClassifier(members, voting="soft")).fit(x, y)


PEERS = ("boosting", "lightgbm", "logistic", "mlps")


def row_of(name: str, number: int, model: str) -> dict[str, Any]:
    """One model on one split."""
    from credence.environment import num_cores

    rows = split_of(name, number)
    if model in PEERS:
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted = peer(model, rows[0], rows[1], number)
            seconds = time.perf_counter() - start
            found = {**scores_of(fitted.predict_proba(rows[2]), rows[3]), "seconds": seconds}
    else:
        found = network_scores(model, rows, number)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    what = {"data": name, "split": number, "model": model, "seed": number, "commit": commit()}
    return {**what, **found, "num_cores": num_cores(), "peak_memory_mib": peak}


def table_lines(rows: list[dict[str, Any]]) -> list[str]:
    """Means and standard errors over folds, and calibration over all rows, as a Markdown table."""
    heads = "accuracy | log loss | log loss, tempered | ECE | by chance | ECE, tempered | seconds"
    lines = [f"| data | model | folds | {heads} |", f"|{'---|' * 10}"]
    for name in DATASETS:
        for model in dict.fromkeys(row["model"] for row in rows if row["data"] == name):
            mine = [row for row in rows if (row["data"], row["model"]) == (name, model)]
            scores = [[row[score] for row in mine if score in row] for score in SCORES]
            cells = [mean_error(values) if values else "" for values in scores]
            cells += [f"{ece:.4f}" for ece in ece_of(mine)]
            is_tempered = all("bins_tempered" in row for row in mine)
            cells.append(f"{ece_of(mine, 'bins_tempered')[0]:.4f}" if is_tempered else "")
            seconds = np.median([row["seconds"] for row in mine])
            lines.append(
                f"| {name} | {model} | {len(mine)} | {' | '.join(cells)} | {seconds:.1f} |"
            )
    return lines


def main() -> None:
    run(__doc__, DATASETS, ("auto", *PEERS), lambda name: NUM_FOLDS, row_of, table_lines)


if __name__ == "__main__":
    main()
