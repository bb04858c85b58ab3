"""A quick look by trees: does each value of an input stand for a state of its own?

The setting of a machine, a place, a day written as a number: rows with one such value have much in
common that their neighbours in the order of the values have not. Networks of smooth functions of
the input miss that, and so do encodings with fewer knots than values. Trees that see whether
neighbouring values differ cannot tell such states from a steep function. So this look says only
whether a model of states is worth trying.
"""

from typing import Any

import numpy as np
from jaxtyping import Float

MERGED = 8
"""Neighbouring values that are made one, to see what is lost."""
LEAST_LOSS = 0.05
"""Share of the squared error that must be lost."""
LEAST_ERRORS = 3.0
"""Standard errors that it must be."""
MOST_ROWS = 50_000
"""Rows that are looked at."""


def has_states(x: Any, y: Any, inputs: frozenset[int]) -> bool:
    """Tell whether held-out rows are predicted worse where neighbouring values of an input are one.

    Args:
        x: inputs (row, feature), and y: targets (row,).
        inputs: those that are asked about.
    """
    random = np.random.default_rng(0)
    rows = random.permutation(len(x))[:MOST_ROWS]
    x, y = np.array(x, float)[rows], np.asarray(y, float)[rows]
    for index in inputs:
        x[:, index] = np.unique(x[:, index], return_inverse=True)[1]
    whole = _squared_errors(x, y) if inputs else y
    return any(_is_loss(_squared_errors(_merged(x, index), y), whole) for index in inputs)


def _merged(x: np.ndarray, index: int) -> np.ndarray:
    """The same with neighbouring values of an input, which are ranks, made one."""
    merged = x.copy()
    merged[:, index] //= MERGED
    return merged


def _squared_errors(x: np.ndarray, y: np.ndarray) -> Float[np.ndarray, " row"]:
    """Errors on the first fifth of the rows of trees that learn from the others."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    held = len(x) // 5
    trees = HistGradientBoostingRegressor(max_iter=500, early_stopping=True, random_state=0)
    return (trees.fit(x[held:], y[held:]).predict(x[:held]) - y[:held]) ** 2


def _is_loss(merged: Float[np.ndarray, " row"], whole: Float[np.ndarray, " row"]) -> bool:
    loss = merged - whole
    error = loss.std() / len(loss) ** 0.5
    return bool(loss.mean() > max(LEAST_LOSS * whole.mean(), LEAST_ERRORS * error))
