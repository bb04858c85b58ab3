"""Classifiers side by side: what `fit` gives without options, and what a user might take instead.

    CREDENCE_DATA=... python benchmarks/default_classes.py --out FOLDER
    CREDENCE_DATA=... python benchmarks/default_classes.py --out FOLDER --datasets vehicle
    python benchmarks/default_classes.py --out FOLDER --table

Tables of scikit-learn and of CREDENCE_DATA, at random 80 % to fit and 20 % to score, five times;
every model sees the same rows. Log loss in nats, calibration error (ECE) of the top label in 15
bins, and beside it the one that these probabilities would have on as many rows if they were right:
with few rows it is far from 0. `tempered` is the same of probabilities that were tempered by
left-out rows. What is done already is in FOLDER/rows.jsonl and is not done again. Seconds are those
of the fit.

Models: `auto` and any other method of the library; `boosting`, scikit-learn's histogram gradient
boosting with early stopping; `lightgbm`, stopped early on a fifth of the training rows; `logistic`
regression; `mlps`, five scikit-learn networks of 50-50, stopped early.
"""

import os
import resource
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rows import commit, mean_error, run

SCORES = ("accuracy", "log_loss", "ece", "ece_by_chance", "log_loss_tempered", "ece_tempered")
DATASETS = ("cancer", "wine3", "digits", "credit_approval", "vehicle", "spambase", "magic_gamma")
NUM_SPLITS = 5


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
    """Training and test rows: x, y, x, y."""
    x, y = table_of(name)
    order = np.random.default_rng(number).permutation(len(y))
    train, test = np.split(order, [round(0.8 * len(y))])
    return x[train], y[train], x[test], y[test]


def scores_of(probabilities: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Accuracy, log loss and calibration error."""
    from credence.ensembles.diagnostics import calibration, classification

    p = np.asarray(probabilities, float)
    p = np.clip(p, 1e-12, None)
    p /= p.sum(axis=1, keepdims=True)
    return {
        "accuracy": classification.accuracy(p, y),
        "log_loss": classification.log_loss(p, y),
        "ece": calibration.ece(p, y),
        "ece_by_chance": float(np.mean([calibration.ece(p, labels) for labels in drawn(p)])),
    }


def drawn(p: np.ndarray, num_draws: int = 200) -> np.ndarray:
    """Labels that follow these probabilities, row by row."""
    uniform = np.random.default_rng(0).uniform(size=(num_draws, len(p), 1))
    return np.minimum((p.cumsum(axis=1) < uniform).sum(axis=2), p.shape[1] - 1)


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
        found |= {f"{name}_tempered": tempered[name] for name in ("log_loss", "ece")}
    tried = model.findings_.get("models")
    return {
        **found,
        "seconds": seconds,
        "seconds_by_phase": dict(model.ensemble_.cost.seconds),
        "method": model.method_.name,
        "models": None if tried is None else list(tried.tried),
    }


def peer(model: str, x: np.ndarray, y: np.ndarray, seed: int) -> Any:
    """A classifier that a user might take instead, fitted."""
    from sklearn.ensemble import HistGradientBoostingClassifier, VotingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import train_test_split
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if model == "boosting":
        return HistGradientBoostingClassifier(
            early_stopping=True, max_iter=1000, random_state=seed
        ).fit(x, y)
    if model == "logistic":
        return make_pipeline(StandardScaler(), LogisticRegression(max_iter=5000)).fit(x, y)
    if model == "lightgbm":
        from lightgbm import LGBMClassifier, early_stopping

        x_fit, x_stop, y_fit, y_stop = train_test_split(
            x, y, test_size=0.2, stratify=y, random_state=seed
        )
        stop = early_stopping(100, verbose=False)
        found = LGBMClassifier(
            n_estimators=5000, learning_rate=0.03, num_leaves=15, random_state=seed, verbose=-1
        )
        return found.fit(x_fit, y_fit, eval_set=[(x_stop, y_stop)], callbacks=[stop])
    members = [
        (
            str(i),
            MLPClassifier((50, 50), early_stopping=True, max_iter=2000, random_state=10 * seed + i),
        )
        for i in range(5)
    ]
    return make_pipeline(StandardScaler(), VotingClassifier(members, voting="soft")).fit(x, y)


PEERS = ("boosting", "lightgbm", "logistic", "mlps")


def row_of(name: str, number: int, model: str) -> dict[str, Any]:
    """One model on one split."""
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
    return {**what, **found, "peak_memory_mib": peak}


def table_lines(rows: list[dict[str, Any]]) -> list[str]:
    """Means and standard errors over splits, as a Markdown table."""
    heads = "accuracy | log loss | ECE | by chance | log loss, tempered | ECE, tempered | seconds"
    lines = [f"| data | model | splits | {heads} |", f"|{'---|' * 10}"]
    for name in DATASETS:
        for model in dict.fromkeys(row["model"] for row in rows if row["data"] == name):
            mine = [row for row in rows if (row["data"], row["model"]) == (name, model)]
            scores = [[row[score] for row in mine if score in row] for score in SCORES]
            cells = [mean_error(values) if values else "" for values in scores]
            seconds = np.median([row["seconds"] for row in mine])
            lines.append(
                f"| {name} | {model} | {len(mine)} | {' | '.join(cells)} | {seconds:.1f} |"
            )
    return lines


def main() -> None:
    run(__doc__, DATASETS, ("auto", *PEERS), lambda name: NUM_SPLITS, row_of, table_lines)


if __name__ == "__main__":
    main()
