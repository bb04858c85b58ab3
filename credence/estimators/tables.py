"""Tables as estimators are given them: checked against what `fit` saw, with warnings."""

import warnings
from typing import Any

import pandas as pd
from sklearn.utils.validation import validate_data

from credence.datasets.checks import tells_rows_apart
from credence.datasets.names import with_text_names
from credence.errors import ExtrapolationWarning, IdentifierWarning, level_of_caller
from credence.estimators.checks import numbers_wanted
from credence.preprocessing import Table, TablePreprocessor


def checked_table(estimator: Any, X: Any, *, reset: bool) -> Table:
    """X as a table, with the columns that `fit` saw.

    Args:
        estimator: was fitted to such columns, or is told of them.
        reset: whether this is the table of `fit`, whose columns the estimator remembers.
    """
    if isinstance(X, pd.DataFrame):
        X = with_text_names(X)
        validate_data(estimator, X, skip_check_array=True, reset=reset)
        is_of_array = not reset and not hasattr(estimator, "feature_names_in_")
        return X.set_axis(estimator.preprocessor_.feature_names_in_, axis=1) if is_of_array else X
    with numbers_wanted("X", "Pass a DataFrame, whose columns may hold names."):
        X = validate_data(estimator, X, dtype="numeric", ensure_all_finite="allow-nan", reset=reset)
    names = getattr(estimator, "feature_names_in_", None)
    return X if names is None else pd.DataFrame(X, columns=names)


def warn_of_news(
    preprocessor: TablePreprocessor, table: Table, told: frozenset[str]
) -> frozenset[str]:
    """Warn of what a table to predict for has that training did not have.

    Args:
        told: texts that were warned of already; each is warned of once.
    Returns:
        Those, and what is warned of now.
    """
    news = " ".join(preprocessor.check_columns(table))
    if not news or news in told:
        return told
    text = f"{news} `is_outside` finds rows with new names or numbers far outside."
    warnings.warn(text, ExtrapolationWarning, stacklevel=level_of_caller())
    return told | {news}


def warn_of_identifiers(table: pd.DataFrame) -> None:
    """Warn of columns of names that tell the training rows apart."""
    for name, column in table.items():
        if reason := tells_rows_apart(column):
            text = f"Column '{name}': {reason}. Leave it out of X: it says nothing of new rows."
            warnings.warn(text, IdentifierWarning, stacklevel=level_of_caller())
