"""Boosted trees of all training rows: folds say how many trees, and how small their leaves may be.

LightGBM and scikit-learn's histogram gradient boosting, of numbers and of labels, for
`default_model.py` and `default_classes.py`.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

LEAVES = (5, 20)
"""Fewest rows of a leaf that are tried; 20 is usual, and too many for a few hundred rows."""
NUM_FOLDS, HELD = 5, 0.15


class Kind(NamedTuple):
    """One library's trees."""

    stopped: Callable[[np.ndarray, np.ndarray, int], tuple[Any, int]]
    """Fit (x, y, rows of a leaf) until held-out rows gain no more; with the number of trees."""
    of_all: Callable[[np.ndarray, np.ndarray, int, int], Any]
    """Fit (x, y, rows of a leaf, number of trees) to all rows."""


class Tuned(NamedTuple):
    """What folds say, and the model that follows them."""

    model: Any
    leaf: int
    left_out: np.ndarray
    """Predictions of every training row by the fold without it."""


def boosting(estimator: type[Any], seed: int) -> Kind:
    """scikit-learn's, such as `HistGradientBoostingRegressor`."""

    def stopped(x: np.ndarray, y: np.ndarray, leaf: int) -> tuple[Any, int]:
        model = estimator(
            early_stopping=True, validation_fraction=HELD, max_iter=1000, min_samples_leaf=leaf,
            random_state=seed,
        ).fit(x, y)  # fmt: skip
        return model, model.n_iter_

    def of_all(x: np.ndarray, y: np.ndarray, leaf: int, num_trees: int) -> Any:
        return estimator(
            early_stopping=False, max_iter=num_trees, min_samples_leaf=leaf, random_state=seed
        ).fit(x, y)

    return Kind(stopped, of_all)


def lightgbm(estimator: type[Any], seed: int, *, are_labels: bool) -> Kind:
    """LightGBM's, such as `LGBMRegressor`."""
    from lightgbm import early_stopping
    from sklearn.model_selection import train_test_split

    settings = {"learning_rate": 0.03, "num_leaves": 15, "random_state": seed, "verbose": -1}

    def stopped(x: np.ndarray, y: np.ndarray, leaf: int) -> tuple[Any, int]:
        x_fit, x_stop, y_fit, y_stop = train_test_split(
            x, y, test_size=HELD, stratify=y if are_labels else None, random_state=seed
        )
        model = estimator(n_estimators=5000, min_child_samples=leaf, **settings)
        stop = early_stopping(100, verbose=False)
        model.fit(x_fit, y_fit, eval_set=[(x_stop, y_stop)], callbacks=[stop])
        return model, model.best_iteration_

    def of_all(x: np.ndarray, y: np.ndarray, leaf: int, num_trees: int) -> Any:
        return estimator(n_estimators=num_trees, min_child_samples=leaf, **settings).fit(x, y)

    return Kind(stopped, of_all)


def tuned(
    kind: Kind,
    x: np.ndarray,
    y: np.ndarray,
    folds: Iterable[tuple[np.ndarray, np.ndarray]],
    predict: Callable[[Any, np.ndarray], np.ndarray],
    loss: Callable[[np.ndarray, np.ndarray], float],
) -> Tuned:
    """Fit the leaves and as many trees as folds like best to all rows.

    Args:
        folds: places of the rows of each: to fit, and left out.
        predict: (model, x) -> predictions, a row each.
        loss: (y, predictions) -> what should be small.
    """
    folds = list(folds)
    found = []
    for leaf in LEAVES:
        models = [kind.stopped(x[fit], y[fit], leaf) for fit, _ in folds]
        order = np.argsort(np.concatenate([out for _, out in folds]))
        parts = [predict(model, x[out]) for (model, _), (_, out) in zip(models, folds, strict=True)]
        left_out = np.concatenate(parts)[order]
        num_trees = round(np.mean([number for _, number in models]))
        found.append((loss(y, left_out), leaf, num_trees, left_out))
    _, leaf, num_trees, left_out = min(found, key=lambda each: each[0])
    return Tuned(kind.of_all(x, y, leaf, num_trees), leaf, left_out)
