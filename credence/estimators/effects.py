"""What a fitted estimator makes of its inputs, found by changing them and predicting again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from credence.ensembles.inputs import Effect, Importances
from credence.errors import InputError, did_you_mean, quoted
from credence.preprocessing import TablePreprocessor, as_frame

MOST_PREDICTED = 20_000
"""Rows that importances predict, all shuffles together."""
MOST_SHUFFLES = 5
MOST_COLUMNS = 1000
"""Columns that are shuffled one after the other."""
NUM_VALUES = 15
"""Values of an input at which its effect is found."""
MOST_NAMES = 12
"""Names of a column of categories whose effect is found."""
ROWS_OF_EFFECT = 50
QUANTILES = (0.05, 0.95)
ENDS = (0.02, 0.98)
"""Quantiles of a column between which its effect is found; beyond there are next to no rows."""


def importances(
    log_prob: Callable[[Any, Any], Float[np.ndarray, " point"]],
    columns: Sequence[str],
    X: Any,
    y: Any,
    seed: int,
) -> Importances:
    """Shuffle columns and predict again: see `BNN.importances`.

    Args:
        log_prob: (X, y) -> log density of the truth of every row.
        columns: those that the fit saw.
    """
    rng = np.random.default_rng(seed)
    frame, truth = as_frame(X)[list(columns)], np.asarray(y)
    most = MOST_PREDICTED // len(columns)
    if len(columns) > MOST_COLUMNS:
        raise InputError(
            f"importances() shuffles one column after the other, and {len(columns)} columns are "
            f"more than {MOST_COLUMNS}."
        )
    if len(frame) < 2 or len(truth) != len(frame):
        raise InputError(
            f"importances() shuffles the values of a column: give it two rows or more, each with a "
            f"target, got {len(frame)} rows and {len(truth)} targets."
        )
    kept = rng.permutation(len(frame))[:most]
    frame, truth = frame.iloc[kept].reset_index(drop=True), truth[kept]
    num_rows = len(frame)
    num_shuffles = min(MOST_SHUFFLES, max(1, most // num_rows))
    places = [rng.permutation(num_rows) for _ in range(num_shuffles)]
    shuffled = [
        _with_column(frame, name, frame[name].to_numpy()[place])
        for name in columns
        for place in places
    ]
    table = pd.concat([frame, *shuffled], ignore_index=True)
    found = log_prob(_like(X, table), np.concatenate([truth] * (1 + len(shuffled))))
    found = np.asarray(found, float).reshape(-1, num_rows)
    worse = found[0] - found[1:].reshape(len(columns), num_shuffles, num_rows).mean(1)
    error = worse.std(axis=1, ddof=1) / np.sqrt(num_rows)
    return Importances(tuple(columns), worse.mean(1), error)


def effect(
    functions: Callable[[Any], Float[np.ndarray, "chain draw point *output"]],
    weights: Float[np.ndarray, "chain draw"] | None,
    preprocessor: TablePreprocessor,
    X: Any,
    name: str | int,
    seed: int,
) -> Effect:
    """Set a column to values and predict again: see `BNN.effect`.

    Args:
        functions: X -> what every network predicts of every row.
        weights: how much each network counts, sum one, possibly signed; None for equally.
        preprocessor: tells numbers from names.
    """
    columns = preprocessor.feature_names_in_
    name = _as_named(name, columns)
    if name not in columns:
        raise InputError(
            f"The fit saw no column {name!r}.{did_you_mean(name, set(columns))} It saw "
            f"{quoted(columns)}."
        )
    frame = as_frame(X)[columns]
    kept = np.random.default_rng(seed).permutation(len(frame))[:ROWS_OF_EFFECT]
    is_number = name in preprocessor.number_columns
    values = _values(frame[name], is_number)
    rows = frame.iloc[kept].reset_index(drop=True)
    tables = (_like(X, _with_column(rows, name, value)) for value in values)
    found = [_mean_over_rows(functions(table)) for table in tables]
    curves = np.stack(found, axis=1)  # (network, value, output)
    told = tuple(values) if is_number else tuple(map(str, values))
    return Effect(name, told, *_mean_and_band(curves, weights))


def _mean_and_band(
    curves: Float[np.ndarray, "network value output"],
    weights: Float[np.ndarray, "chain draw"] | None,
) -> tuple[Float[np.ndarray, "value output"], ...]:
    """Mean over networks by their weights, and quantiles of those whose weight is not negative."""
    if weights is None:
        return curves.mean(0), *np.quantile(curves, QUANTILES, axis=0)
    each = np.asarray(weights, float).ravel()
    kept = each > 0
    band = np.quantile(curves[kept], QUANTILES, axis=0, weights=each[kept], method="inverted_cdf")
    return np.tensordot(each, curves, axes=1), *band


def _as_named(name: str | int, columns: Sequence[str]) -> str:
    """The name of a column as the fit has it: 3 is '3', or 'x3' of an array."""
    text = str(name)
    is_position = not isinstance(name, str) and text not in columns and f"x{text}" in columns
    return f"x{text}" if is_position else text


def _mean_over_rows(functions: np.ndarray) -> Float[np.ndarray, "network output"]:
    chains, draws, rows = functions.shape[:3]
    return functions.reshape(chains * draws, rows, -1).mean(1)


def _values(column: pd.Series, is_number: bool) -> list[Any]:
    """Choose values of a column: between quantiles of numbers, or the most common names."""
    present = column.dropna()
    if not len(present):
        raise InputError(f"Column {column.name!r} has no values in these rows.")
    if not is_number:
        counts = present.value_counts()
        return counts[counts > 0].index[:MOST_NAMES].tolist()  # categories may not occur
    numbers = present.to_numpy(float)
    found = np.unique(numbers)
    if len(found) <= NUM_VALUES:
        return found.tolist()
    low, high = np.quantile(numbers, ENDS)
    return np.linspace(low, high, NUM_VALUES).tolist()


def _with_column(frame: pd.DataFrame, name: str, values: Any) -> pd.DataFrame:
    """A copy with other values in a column of any name; `assign` takes none called self."""
    changed = frame.copy()
    changed[name] = values
    return changed


def _like(X: Any, frame: pd.DataFrame) -> Any:
    """The rows as the caller gives them: a DataFrame, or an array."""
    return frame if isinstance(X, pd.DataFrame) else frame.to_numpy()
