"""One column of a table: which kind it is, and values that do not belong in it."""

import contextlib
import datetime
import decimal
import numbers
import re

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float

from credence.errors import InputError, plural, quoted

DAY = r"(?:0?[1-9]|[12]\d|3[01])"
"""A day, or a month."""
TWO_DIGITS = r"(?:0[1-9]|[12]\d|3[01])"
"""The same, written with two digits."""
MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|"
    r"sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
DATE = re.compile(
    rf"""(?: \d{{4}} ([-/.]) {TWO_DIGITS} \1 {TWO_DIGITS}
        | \d{{4}} ([-/]) {DAY} \2 {DAY}
        | {DAY} [./] {DAY} [./] \d{{4}}
        | {DAY} - {DAY} - (?:19|20)\d\d
        | {DAY} [-\ .]+ {MONTH} [-\ ,]+ (?:19|20)?\d\d
        | {DAY} {MONTH} (?:19|20)\d\d
        | {MONTH} \ {DAY} ,? \ (?:19|20)\d\d
    ) ([T\ ] \d{{1,2}}:\d\d .*)?""",
    re.VERBOSE | re.IGNORECASE,
)
PERHAPS_DATE = re.compile(rf"{DAY}([-/.]){DAY}\1\d\d")
"""Day, month and two digits of a year, in some order; or the number of a chapter."""
DECORATED = re.compile(
    r"""[$€£¥₹%\s]* [-+]?
    (?: \d{1,3} ([,.'\u2019\s]) \d{3} (\1 \d{3})* ([.,]\d+)? | \d+ ([.,]\d+)? )
    [$€£¥₹%\s]*""",
    re.VERBOSE,
)
"""A number with currency or percent signs, thousands separators or a decimal comma."""
WHOLE_NUMBER = re.compile(r"-?(0|[1-9]\d*)\.0")  # as pandas writes it
NAMES_AND_NUMBERS = (str, bool, np.bool_, numbers.Real, decimal.Decimal)
MOSTLY = 0.5  # a text column with at least this share of numbers, or of dates, was meant as such


def is_numeric(column: pd.Series) -> bool:
    """Whether the column holds numbers; true/false counts as names."""
    types = pd.api.types
    return types.is_numeric_dtype(column) and not types.is_bool_dtype(column)


def checked_column(column: pd.Series, notes: list[str]) -> pd.Series:
    """The column as numbers, or as names (text, categories, true/false).

    Numbers written as text become numbers, and a note says so.

    Raises:
        InputError: for dates, complex numbers, nested values, text among numbers, and numbers with
            signs or separators.
    """
    if isinstance(column.dtype, pd.CategoricalDtype):
        return column
    with contextlib.suppress(OverflowError):  # whole numbers beyond any float, before pandas 3
        column = column.infer_objects()
    if pd.api.types.is_datetime64_any_dtype(column) or isinstance(column.dtype, pd.PeriodDtype):
        raise InputError(_holds_dates(column))
    if is_numeric(column) and not pd.api.types.is_complex_dtype(column):
        return column
    if pd.api.types.is_bool_dtype(column) or column.isna().all():
        return column
    return _checked_text(column, notes)


def _checked_text(column: pd.Series, notes: list[str]) -> pd.Series:
    """A column of names as it is, or of numbers written as text as numbers."""
    values = column.dropna()
    types = set(map(type, values))
    if any(issubclass(kind, datetime.date) for kind in types):
        raise InputError(_holds_dates(column))
    other = [kind.__name__ for kind in types if not issubclass(kind, NAMES_AND_NUMBERS)]
    if other:
        raise InputError(
            f"The column '{column.name}' holds values of type {other[0]}, which are neither "
            "numbers nor text: remove it, or replace it by columns of numbers or names."
        )
    names = pd.Series(values.unique(), dtype=object)  # each once: columns may be long
    is_date = names.map(lambda name: bool(DATE.fullmatch(str(name).strip())))
    if is_date.mean() >= MOSTLY:
        raise InputError(_holds_dates(column[column.isin(names[is_date])]))
    is_number = names.map(_reads_as_number)
    texts = column.notna() & ~column.isin(names[is_number])
    if not texts.any():
        kind = "numbers of several kinds"
        if str in types:
            kind = "numbers written as text"
        elif types == {int} and values.abs().max() >= 2**63:
            kind = "whole numbers beyond 2^63"
        notes.append(
            f"The column '{column.name}' holds {kind}, and is used as numbers of 16 digits; "
            f"{_as_names(column)} if they are names."
        )
        return _parsed(column)
    if texts.sum() < (1 - MOSTLY) * column.count():
        raise InputError(_text_among_numbers(column, texts.to_numpy()))
    is_decorated = ~is_number & names.map(lambda name: bool(DECORATED.fullmatch(str(name))))
    is_perhaps = names.map(lambda name: bool(PERHAPS_DATE.fullmatch(str(name).strip())))
    if is_perhaps.mean() >= MOSTLY:
        notes.append(
            f"The column '{column.name}' holds names such as '{names[is_perhaps].iloc[0]}'. If "
            "these are dates, replace them by numbers that matter (days since a start, month, "
            f"weekday), or leave them out (--drop '{column.name}')."
        )
    if is_decorated.any() and (is_number | is_decorated).mean() >= MOSTLY:
        raise InputError(_decorated(column, names[is_decorated].iloc[0]))
    return column


def _reads_as_number(value: object) -> bool:
    if isinstance(value, bool | np.bool_):
        return False
    return not pd.isna(pd.to_numeric(value, errors="coerce"))


def refuse_infinity(column: pd.Series) -> None:
    """Refuses infinite values, naming the first."""
    infinite = np.isinf(column.to_numpy(np.float64, na_value=np.nan))
    if infinite.any():
        first = int(infinite.argmax())
        raise InputError(
            f"The column '{column.name}' holds {plural(int(infinite.sum()), 'infinite value')}, "
            f"the first in {where(column, first)}: replace it by a number, or leave it empty if "
            "it is not known."
        )


def as_numbers(column: pd.Series) -> Float[np.ndarray, " row"]:
    """The column as float64, NaN where missing.

    Raises:
        InputError: for infinities, and for values that are not numbers, or complex ones.
    """
    if pd.api.types.is_complex_dtype(column):
        raise InputError(
            f"The column '{column.name}' holds complex numbers: give their parts as two columns."
        )
    if not is_numeric(column):
        column = _parsed(column)
    refuse_infinity(column)
    return column.to_numpy(np.float64, na_value=np.nan)


def _parsed(column: pd.Series) -> pd.Series:
    """Numbers out of text; refuses what is not a number, naming the first."""
    parsed = _coerced(column.astype(object))
    wrong = (parsed.isna() & column.notna()).to_numpy()
    if wrong.any():
        first = int(wrong.argmax())
        raise InputError(
            f"The column '{column.name}' should hold numbers, but holds '{column.iloc[first]}' in "
            f"{where(column, first)}; {plural(int(wrong.sum()), 'such value')}. "
            "Leave missing values empty (or write NA)."
        )
    return parsed


def _coerced(values: pd.Series) -> pd.Series:
    """Numbers, NaN for what is none."""
    try:
        return pd.to_numeric(values, errors="coerce")
    except OverflowError:  # whole numbers of more than 308 digits: written out they become infinite
        return pd.to_numeric(values.map(str), errors="coerce")


def as_text(value: object) -> str:
    """A name as text; 3.0 is "3", because one missing value turns a column of 3 into one of 3.0,
    which a file then holds as text."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    text = str(value)
    return text.removesuffix(".0") if WHOLE_NUMBER.fullmatch(text) else text


def where(column: pd.Series, position: int) -> str:
    """The row of a value for people: `row 3 (line 4 of a file with a header line)`."""
    label = column.index[position]
    row = int(label) + 1 if isinstance(label, int | np.integer) else position + 1
    return f"row {row} (line {row + 1} of a file with a header line)"


def is_row_number(column: pd.Series) -> bool:
    """Whether an unnamed column counts the rows, as written by `DataFrame.to_csv`."""
    unnamed = column.name == "" or str(column.name).startswith("Unnamed:")
    return unnamed and is_numeric(column) and bool((steps(column) > 0).all())


def steps(column: pd.Series) -> Float[np.ndarray, " step"]:
    """Return the step to each number from the one before; in float64, as unsigned ones wrap."""
    return np.diff(column.to_numpy(np.float64, na_value=np.nan))


def _holds_dates(column: pd.Series) -> str:
    return (
        f"The column '{column.name}' holds dates such as '{column.dropna().iloc[0]}': replace it "
        "by numbers that matter (days since a start, month, weekday), or leave it out "
        f"(--drop '{column.name}'; in Python drop(columns={column.name!r})). If they are names, "
        f"{_as_names(column)}."
    )


def _decorated(column: pd.Series, example: object) -> str:
    return (
        f"The column '{column.name}' holds numbers that cannot be read, such as '{example}': write "
        "plain numbers with a decimal point, without currency signs, percent signs or thousands "
        f"separators. If they are names, {_as_names(column)}."
    )


def _text_among_numbers(column: pd.Series, is_text: Bool[np.ndarray, " row"]) -> str:
    texts = column[is_text]
    return (
        f"The column '{column.name}' holds numbers, but '{texts.iloc[0]}' in "
        f"{where(column, int(is_text.argmax()))}; {plural(len(texts), 'such value')}: "
        f"{quoted(texts.unique(), most=4)}. Leave missing values empty (or write NA); "
        f"if the column holds names, {_as_names(column)}."
    )


def _as_names(column: pd.Series) -> str:
    """Say what makes a column one of names."""
    return f"set --categorical '{column.name}' (in Python astype({{{column.name!r}: 'category'}}))"
