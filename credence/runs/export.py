"""Prediction tables as CSV text that is safe to open in a spreadsheet.

A spreadsheet takes text that starts with =, +, -, @, a tab or a line break for a formula, and runs
it. A label or an id of someone else's table may be such text, so it gets a ' in front, as OWASP
advises. Text that already has such a ' gets one more: one ' less gives back the text that was.
Numbers stay numbers, also those in text.
"""

import csv
import re

import pandas as pd

FORMULA = re.compile(r"'*[=+\-@\t\r\n]")
NUMBER = re.compile(r"[+-]?\d*[.,]?\d+(e[+-]?\d+)?", re.IGNORECASE)


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
