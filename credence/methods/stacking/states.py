"""A quick look by trees: does each value of an input stand for a state of its own?

The setting of a machine, a place, a day written as a number: rows with one such value have much in
common that rows with the next values have not. Networks of smooth functions of the input miss
that, and so do encodings with fewer knots than values. Where values are no states, a row is
predicted about as well as the mean of what is predicted at the values next to its own.
"""

from collections.abc import Collection
from typing import Any

import numpy as np
from jaxtyping import Float

GROUP = 8
"""Neighbouring values in a group: trees tell 255 groups apart, and 255 values of a group."""
LEAST_LOSS = 0.15
"""Share of the squared error that must be lost: states have lost a quarter and more, the steepest
smooth inputs up to a tenth."""
LEAST_ERRORS = 4.0
"""Standard errors that it must be."""
MOST_ROWS = 50_000
"""Rows that are looked at."""
OUTLYING = 0.005
"""Share of the targets on each side that are brought to the next one within."""


def inputs_with_states(x: Any, y: Any, weight: Any, inputs: Collection[int]) -> frozenset[int]:
    """Find the inputs whose values seem to be states, by rows that trees have not seen.

    Args:
        x: inputs (row, feature).
        y: targets (row,).
        weight: how many observations each row stands for (row,).
        inputs: those that are asked about.
    """
    if not inputs:
        return frozenset()
    rows = np.random.default_rng(0).permutation(len(x))[:MOST_ROWS]
    ranks, y, weight = (np.asarray(each)[rows].astype(float) for each in (x, y, weight))
    y = np.clip(y, *np.quantile(y, [OUTLYING, 1 - OUTLYING]))
    held = len(ranks) // 5
    if not min(weight[:held].sum(), weight[held:].sum()) > 0:
        return frozenset()
    for index in inputs:
        ranks[:, index] = np.unique(ranks[:, index], return_inverse=True)[1]
    trees = _trees()
    trees.fit(_grouped(ranks[held:], inputs), y[held:], weight[held:])

    def errors(*changes: np.ndarray) -> Float[np.ndarray, " row"]:
        """Squared errors of the mean prediction for changed ranks."""
        seen = [trees.predict(_grouped(each, inputs)) for each in changes]
        return (np.mean(seen, axis=0) - y[:held]) ** 2

    own = errors(ranks[:held])
    return frozenset(
        index
        for index in inputs
        if _is_loss(errors(*_neighbours(ranks, index, held)), own, weight[:held])
    )


def _trees() -> Any:
    from sklearn.ensemble import HistGradientBoostingRegressor

    return HistGradientBoostingRegressor(max_iter=300, early_stopping=True, random_state=0)


def _grouped(ranks: np.ndarray, inputs: Collection[int]) -> np.ndarray:
    """Ranks as groups of neighbours, and beside them the places in the groups."""
    grouped, some = ranks.copy(), sorted(inputs)
    grouped[:, some] //= GROUP
    return np.concatenate([grouped, ranks[:, some] % GROUP], axis=1)


def _neighbours(ranks: np.ndarray, index: int, held: int) -> list[np.ndarray]:
    """The first rows with the values below and above their own of an input."""
    found = []
    for step in (-1, 1):
        moved = ranks[:held].copy()
        moved[:, index] = np.clip(moved[:, index] + step, 0, ranks[:, index].max())
        found.append(moved)
    return found


def _is_loss(
    between: Float[np.ndarray, " row"],
    own: Float[np.ndarray, " row"],
    weight: Float[np.ndarray, " row"],
) -> bool:
    """Tell whether errors are larger, beyond chance and by enough to matter."""
    share = weight / weight.sum()
    loss = share @ (between - own)
    error = np.sqrt(share**2 @ (between - own - loss) ** 2)
    return bool(loss > max(LEAST_LOSS * (share @ own), LEAST_ERRORS * error))
