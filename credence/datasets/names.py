"""Names of columns: text, each once."""

from collections import Counter

import pandas as pd

from credence.errors import InputError, plural, quoted


def with_text_names(frame: pd.DataFrame) -> pd.DataFrame:
    """The table with column names as text.

    Raises:
        InputError: for no columns, and names that are missing, of several levels, or not unique.
    """
    if frame.columns.nlevels > 1:
        raise InputError(
            f"The table has column names of {frame.columns.nlevels} levels, such as "
            f"{frame.columns[0]}: join each into one name, for example with "
            "table.columns = table.columns.map('_'.join)."
        )
    if frame.columns.empty:
        raise InputError("The table has no columns: pass at least one.")
    missing = int(frame.columns.isna().sum())
    if missing:
        raise InputError(
            f"The table has {plural(missing, 'column')} whose name is missing (None or NaN): "
            "give every column a name."
        )
    frame = frame.rename(columns=str)
    check_names(list(frame.columns), "The table")
    return frame


def check_names(names: list[str], where: str) -> None:
    """Refuses duplicate column names."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(
            f"{where} has more than one column named {quoted(twice)}: rename or remove the others."
        )
