"""Everything a table must satisfy before a model is fitted, checked at once and said in sentences.

What cannot be right is refused (`InputError`). What can be put right without changing its meaning
is put right, and said in a note.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from credence.datasets.columns import (
    checked_column,
    is_numeric,
    is_row_number,
    refuse_infinity,
    steps,
    where,
)
from credence.datasets.names import with_text_names
from credence.datasets.scales import scale_of_target
from credence.errors import InputError, did_you_mean, plural, quoted

MAX_WHOLE_NUMBER_CLASSES = 10  # ten digits are classes; more whole numbers are a quantity
MIN_ROWS_PER_CLASS = 5  # on average, for whole numbers to be taken for classes
TASKS = ("regression", "classification")
MOST_EXACT = 2**53
"""Whole numbers below it are exact in double precision."""
FAR = 100
"""How often a number lies farther from the median than the middle nine tenths of a column are wide,
to be told of."""
MOST_COMMON_VALUES = 20
"""Different values in a column up to which rows may well be equal by chance."""
IDENTIFIER = re.compile(r"(^|[_\W])(?i:id|key|uuid)$|[a-z]I[dD]$")
"""Names that columns have which only tell rows apart: id, customer_id, customerId."""


@dataclass(frozen=True)
class CheckedTable:
    """A table that is ready to be fitted.

    Attributes:
        frame: inputs and target; index labels are those of the rows received. Numeric columns are
            finite or missing; the target has no missing value.
        target: the name of the target column.
        task: "regression" or "classification".
        notes: what was inferred, left out or will be filled in, one sentence each.
    """

    frame: pd.DataFrame
    target: str
    task: str
    notes: list[str]

    @property
    def inputs(self) -> pd.DataFrame:
        """The columns to predict from."""
        return self.frame.drop(columns=self.target)


def check_table(
    frame: pd.DataFrame,
    target: str | int,
    task: str = "auto",
    *,
    categorical: Sequence[str | int] = (),
) -> CheckedTable:
    """Checks a table with its target, and says what it found.

    Args:
        frame: one row per example, one column per input, and the target.
        target: the name of the column to predict.
        task: "regression", "classification" or "auto" (see `infer_task`).
        categorical: columns whose values are names even if they look like numbers.
    Raises:
        InputError: for a table, target or column that no model can be fitted to.
    """
    frame = with_text_names(frame)
    target, *categorical = map(str, (target, *categorical))
    notes: list[str] = []
    for name in (target, *categorical):
        require_column(frame, name)
    frame = frame.astype(dict.fromkeys(categorical, "category"))
    num_rows = len(frame)
    frame = _with_known_target(frame, target, notes)
    y = checked_column(frame[target], notes)
    task = _checked_task(y, task, notes)
    is_named = isinstance(y.dtype, pd.CategoricalDtype)
    if task == "classification" and (is_named or len(y) < num_rows):
        y = _whole(y)
    _check_classes(y) if task == "classification" else _check_quantity(y)
    inputs = _checked_inputs(frame.drop(columns=target), notes)
    table = pd.concat([inputs, y], axis=1)
    if copies := _copies(table):
        notes.append(copies)
    return CheckedTable(table, target, task, notes)


def require_column(frame: pd.DataFrame, name: str) -> None:
    """Refuses a name that is not a column, and suggests the nearest one."""
    if name not in frame:
        raise InputError(
            f"The table has no column '{name}'.{did_you_mean(name, frame.columns)} "
            f"Its columns are {quoted(frame.columns, most=12)}."
        )


def infer_task(y: pd.Series) -> tuple[str, str]:
    """The task that a target suggests, and the reason in words.

    Text, categories and true/false are classes. Numbers are a quantity, except whole numbers with
    exactly two different values, or with at most 10 that have 5 rows each on average.
    """
    distinct = y.nunique()
    if not is_numeric(y):
        return "classification", f"'{y.name}' holds names ({distinct} different ones)"
    if not (y == y.round()).all():
        two = ", two different ones (--task classification, if they are labels)"
        return "regression", f"'{y.name}' holds numbers with decimals{two if distinct == 2 else ''}"
    few = distinct <= MAX_WHOLE_NUMBER_CLASSES and len(y) >= MIN_ROWS_PER_CLASS * distinct
    reason = f"'{y.name}' holds {distinct} different whole numbers in {plural(len(y), 'row')}"
    return ("classification" if distinct == 2 or few else "regression"), reason


def _with_known_target(frame: pd.DataFrame, target: str, notes: list[str]) -> pd.DataFrame:
    """The rows whose target is known: at least two."""
    known = frame[target].notna()
    if len(frame) and not known.any():
        raise InputError(f"The target '{target}' has no values: every row of it is missing.")
    if not known.all():
        missing = plural(int((~known).sum()), "row")
        notes.append(f"Left out {missing} whose target '{target}' is missing.")
    if known.sum() < 2:
        raise InputError(
            f"The table has {plural(int(known.sum()), 'row')} with a known target: a model needs "
            "at least 2 to learn from, and many more to be of use."
        )
    return frame[known]


def _whole(y: pd.Series) -> pd.Series:
    """Labels 0.0 and 1.0 as 0 and 1: a missing one had made whole numbers real ones."""
    if isinstance(y.dtype, pd.CategoricalDtype):
        labels = _whole(y.cat.categories.to_series())
        return y.cat.rename_categories(labels.tolist())
    if not pd.api.types.is_float_dtype(y) or not ((y % 1 == 0) & (y.abs() < MOST_EXACT)).all():
        return y
    return y.astype("int64")


def _checked_task(y: pd.Series, task: str, notes: list[str]) -> str:
    if task == "auto":
        task, reason = infer_task(y)
        otherwise = (
            f"; set --task {TASKS[task == 'regression']} if it is not" if is_numeric(y) else ""
        )
        notes.append(f"The task is {task}, because {reason}{otherwise}.")
    if task not in TASKS:
        raise InputError(
            f"task must be 'auto', 'regression' or 'classification', got '{task}'."
            f"{did_you_mean(task, ('auto', *TASKS))}"
        )
    if task == "regression" and not is_numeric(y):
        raise InputError(
            f"The target '{y.name}' holds names such as '{y.iloc[0]}', not numbers: "
            "choose --task classification, or write plain numbers, without currency signs or "
            "thousands separators."
        )
    return task


def _check_quantity(y: pd.Series) -> None:
    refuse_infinity(y)
    if y.nunique() == 1:
        raise InputError(_constant(y))
    scale_of_target(f"The target '{y.name}'", y.to_numpy(float))


def _check_classes(y: pd.Series) -> None:
    """Refuse what are no labels, fewer than two classes, or a class with one example."""
    _check_labels(y)
    counts = y.value_counts()
    counts = counts[counts > 0]  # declared categories that do not occur
    if len(counts) == 1:
        raise InputError(_constant(y))
    single = counts.index[counts == 1]
    if len(single):
        noun = "a class" if len(single) == 1 else f"{len(single)} classes"
        raise InputError(
            f"The target '{y.name}' has {noun} with one example only ({quoted(single, most=4)}): "
            "merge or remove them; a quantity needs plain numbers and --task regression."
        )


def _check_labels(y: pd.Series) -> None:
    """Refuse labels that are neither text nor whole numbers."""
    if is_numeric(y):
        refuse_infinity(y)
        labels = y[y % 1 != 0]
    elif isinstance(y.dtype, pd.CategoricalDtype):
        labels = y[[not isinstance(label, str | bool | int | np.integer) for label in y]]
    else:
        return
    if len(labels):
        names = f"have them read as text by --categorical '{y.name}'"
        if not is_numeric(y):
            names = "write them as text"
        raise InputError(
            f"The target '{y.name}' has labels that are neither text nor whole numbers, such as "
            f"{labels.iloc[0]}: choose --task regression, or {names}."
        )


def _constant(y: pd.Series) -> str:
    return (
        f"The target '{y.name}' is constant: all {plural(len(y), 'row')} hold '{y.iloc[0]}', so "
        "there is nothing to learn. Choose another target, or rows where it varies."
    )


def _checked_inputs(frame: pd.DataFrame, notes: list[str]) -> pd.DataFrame:
    """The usable inputs: without columns that are empty, number the rows or identify them."""
    from credence.datasets.encoding import learn_numbers  # loads scikit-learn

    columns = {name: checked_column(frame[name], notes) for name in frame}
    reasons = {name: reason for name, column in columns.items() if (reason := _useless(column))}
    notes.extend(f"Left out the column '{name}': {reason}." for name, reason in reasons.items())
    inputs = pd.DataFrame(columns, index=frame.index).drop(columns=list(reasons))
    if inputs.empty:
        raise InputError(" ".join(["The table has no usable column beside the target.", *notes]))
    numeric = [name for name in inputs if is_numeric(inputs[name])]
    learn_numbers(inputs[numeric])  # refuses what is infinite, or too large to standardise
    notes.extend(
        f"'{name}' {reason}; leave it out if that tells nothing (--drop '{name}')."
        for name in numeric
        if (reason := _identifies(inputs[name]))
    )
    notes.extend(note for name in numeric if (note := _far_value(inputs[name])))
    if constant := [name for name in inputs if inputs[name].nunique(dropna=False) == 1]:
        notes.append(f"The same value is in every row of {quoted(constant)}: that tells nothing.")
    missing = inputs.isna().sum()
    if missing.any():
        notes.append(
            f"{plural(int(missing.sum()), 'missing value')} in {quoted(missing[missing > 0].index)}"
            ": numbers are filled with the median and flagged, names count as 'missing'."
        )
    return inputs


def _far_value(column: pd.Series) -> str | None:
    """Warn of a number so far from the others that it hides how these differ; or None."""
    values = column.dropna()
    low, middle, high = values.quantile([0.05, 0.5, 0.95])
    away = (column - middle).abs()
    if len(values) < 20 or not away.max() > FAR * (high - low) > 0:
        return None
    position = int(np.nanargmax(away.to_numpy(float)))
    return (
        f"'{column.name}' holds {column.iloc[position]:g} in {where(column, position)}, while nine "
        f"in ten of its values lie between {low:g} and {high:g}. If that is a mistake, correct it: "
        "beside it the others look alike, and little can be learnt from them."
    )


def _copies(frame: pd.DataFrame) -> str | None:
    """Warn of rows that are equal in all columns, where that is no matter of course; or None."""
    is_varied = any(frame[name].nunique() > MOST_COMMON_VALUES for name in frame)
    count = int(frame.duplicated().sum()) if is_varied else 0
    if not count:
        return None
    return (
        f"{count:,} of the {plural(len(frame), 'row')} are copies of others, in all columns. Test "
        "rows that are copies of training rows flatter the scores: drop copies if they are the "
        "same observation."
    )


def _identifies(column: pd.Series) -> str | None:
    """Why a column of numbers may tell which row it is rather than something of it, or None."""
    values = column.dropna()
    if len(values) <= 20:
        return None
    if (steps(column) == 1).all():
        return "numbers the rows"
    is_whole = bool((values.to_numpy(float) % 1 == 0).all())
    if IDENTIFIER.search(str(column.name)) and is_whole and values.is_unique:
        return "has another whole number in every row, and the name of an identifier"
    return None


def tells_rows_apart(column: pd.Series) -> str | None:
    """Why names identify rows, or are free text, rather than describe the rows; or None."""
    values = column.dropna()
    if is_numeric(column) or len(values) < 20 or values.nunique() <= 0.9 * len(values):
        return None
    return (
        f"{values.nunique()} of its {len(values)} values differ, so it identifies rows "
        "(or is free text) rather than describing them"
    )


def _useless(column: pd.Series) -> str | None:
    """Why an input column cannot help, or None."""
    values = column.dropna()
    if values.empty:
        return "all its values are missing"
    if is_row_number(column):
        return "it has no name and numbers the rows"
    return tells_rows_apart(column)
