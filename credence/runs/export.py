"""Prediction tables as CSV text that is safe to open in a spreadsheet, without digits of noise.

A spreadsheet takes text that starts with =, +, -, @, a tab or a line break for a formula, and runs
it. A label or an id of someone else's table may be such text, so it gets a ' in front, as OWASP
advises. Text that already has such a ' gets one more: one ' less gives back the text that was.
Numbers stay numbers, also those in text.
"""

import csv
import re

import pandas as pd

from credence.html.wording import digits_to_tell

FORMULA = re.compile(r"'*[=+\-@\t\r\n]")
NUMBER = re.compile(r"[+-]?\d*[.,]?\d+(e[+-]?\d+)?", re.IGNORECASE)

FEWEST_DIGITS = 7
"""Those that a number in single precision has: networks compute in it."""
MOST_DIGITS = 17
"""Those of a number in double precision."""


def rounded(predictions: pd.DataFrame) -> pd.DataFrame:
    """The table with seven significant digits, and more where a narrow spread needs them: four
    of the smallest.

    The first column says which row it is, and stays as it is; so does a label.
    """
    digits = _digits(predictions)
    computed = predictions.iloc[:, 1:].drop(columns="label", errors="ignore")
    numbers = computed.select_dtypes(include="floating")
    return predictions.assign(**{name: _round_off(numbers[name], digits) for name in numbers})


def _round_off(column: pd.Series, digits: int) -> list[float]:
    """Numbers with so many significant digits."""
    written = f"%.{digits}g"
    return [float(written % value) for value in column.tolist()]


def _digits(predictions: pd.DataFrame) -> int:
    """How many digits numbers as large as these need to be told apart."""
    if "std" not in predictions:
        return FEWEST_DIGITS
    width, size = predictions["std"].min(), predictions["mean"].abs().max()
    return min(max(FEWEST_DIGITS, 2 + digits_to_tell(float(width), float(size))), MOST_DIGITS)


def csv_text(table: pd.DataFrame) -> str:
    """The table as CSV without its index; no text in it reads as a formula."""
    safe = table.rename(columns=as_plain_text)
    for name in safe.select_dtypes(exclude="number"):
        safe[name] = safe[name].map(as_plain_text, na_action="ignore")
    text = safe.to_csv(index=False, lineterminator="\n")
    if "\r" in text:  # a line break to those who read, but Python does not quote it
        text = safe.to_csv(index=False, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    return text


def as_plain_text(value: object) -> object:
    """Text that a spreadsheet would run, with a ' in front; anything else as it is."""
    if not isinstance(value, str) or NUMBER.fullmatch(value) or not FORMULA.match(value):
        return value
    return f"'{value}"
