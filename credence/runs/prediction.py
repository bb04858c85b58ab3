"""Predictions for new rows by a run, as a table; by its early answer as long as it goes on.

What computes is imported by the functions that need it, so that bad input is refused at once.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from credence.datasets.checks import require_column
from credence.datasets.names import with_text_names
from credence.datasets.tables import read_table
from credence.errors import ExtrapolationWarning, InputError, plural
from credence.runs.folder import ensemble_files, read_manifest
from credence.storage import reading

if TYPE_CHECKING:
    from credence.estimators import BNNClassifier, BNNRegressor


def predict(
    folder: Path, table: str, *, coverage: float = 0.95, id_column: str = ""
) -> tuple[pd.DataFrame, list[str]]:
    """The prediction table for new rows, and notes on them.

    Columns mean, std, lower_95, upper_95, or with another coverage in percent, and where rows are
    known that no network has seen (not yet in an early answer) lower_95_conformal,
    upper_95_conformal; or label, probability_LABEL, entropy_total, entropy_aleatoric,
    entropy_epistemic. Before them stands the column that says which row it is,
    and last stands `outside`: whether the row has a number far outside those of training, or a name
    that training did not have.

    Args:
        id_column: of the table, copied as it stands there; without it the column is called `row`
            and counts the table's rows from 1, as messages do.
    Raises:
        InputError: where the folder is no run or cannot answer yet, or the table lacks columns.
        StorageError: where its files are damaged, or have changed.
    """
    manifest = read_manifest(folder)
    if not 0 < coverage < 1:
        raise InputError(f"--coverage must be between 0 and 1, got {coverage}; 0.95 is usual.")
    from credence.estimators.storage import read_document, restored
    from credence.preprocessing import TablePreprocessor

    place, goes_on = folder / "ensemble", manifest.status == "running"
    if goes_on:
        place = _early_answer(folder)
    else:
        manifest.require_files(folder, "ensemble/estimator.json", *ensemble_files(folder, ".json"))
    saved = read_document(place)
    with reading(place / "estimator.json"):
        if saved.get("y_ndim", 1) != 1:
            raise ValueError("it predicts several targets, and a run has one")
    text_columns = TablePreprocessor.from_json(saved["preprocessor"]).text_columns
    frame = with_text_names(read_table(table, text_columns))
    if frame.empty:
        raise InputError(f"{table} has no rows: there is nothing to predict.")
    ids = _row_ids(table, frame, id_column)
    model = restored(place, saved)
    if ids.name in prediction_columns(model, coverage):
        raise InputError(
            f"The predictions have a column '{ids.name}' of their own: rename that of the table."
        )
    features = model.preprocessor_.feature_names_in_
    aside = {manifest.settings.target, id_column} - set(features)
    inputs = frame.drop(columns=list(aside), errors="ignore")
    notes = model.preprocessor_.check_columns(inputs)
    if goes_on:
        notes = [f"{folder} is not finished. {model.method_reason_}", *notes]
    if manifest.status == "interrupted":
        notes = [f"{folder} was interrupted: `credence resume {folder}` finishes it.", *notes]
    predictions = prediction_table(model, inputs[features], coverage)
    predictions.insert(0, str(ids.name), ids)
    return predictions, [*notes, *_note_on_outside(predictions)]


def _note_on_outside(predictions: pd.DataFrame) -> list[str]:
    """Count the rows that are unlike those of training, if any are."""
    num_outside = int(predictions["outside"].sum())
    if not num_outside:
        return []
    told = f"{num_outside:,} of {plural(len(predictions), 'row')}"
    return [f"In {told} the column 'outside' is True: predictions there rest on no data."]


def _early_answer(folder: Path) -> Path:
    """Find what a run keeps that goes on.

    Raises:
        InputError: where there is nothing yet.
    """
    from credence.estimators.early import EARLY_FOLDER

    early = folder / "checkpoint" / EARLY_FOLDER
    if not (early / "estimator.json").exists():
        raise InputError(
            f"{folder} is not finished, and has no early answer: wait, or, if it was stopped, "
            f"`credence resume {folder}` finishes it."
        )
    return early


def _row_ids(table: str, frame: pd.DataFrame, id_column: str) -> pd.Series:
    """The names of the rows: a column of the table, or their numbers."""
    if not id_column:
        return pd.Series(np.arange(1, len(frame) + 1), frame.index, name="row")
    require_column(frame, id_column)
    ids = read_table(table, text_columns=(id_column,), missing=False)
    return ids.rename(columns=str)[id_column]


def prediction_columns(model: BNNRegressor | BNNClassifier, coverage: float) -> list[str]:
    """The names that scripts rely on, in their order; those of intervals say their coverage."""
    from credence.estimators import BNNClassifier

    if not isinstance(model, BNNClassifier):
        ends = [f"{end}_{100 * coverage:.10g}" for end in ("lower", "upper")]
        conformal = [f"{end}_conformal" for end in ends] * model.is_recalibrated
        return ["mean", "std", *ends, *conformal, "outside"]
    entropies = ("entropy_total", "entropy_aleatoric", "entropy_epistemic")
    return ["label", *(f"probability_{label}" for label in model.classes_), *entropies, "outside"]


def prediction_table(
    model: BNNRegressor | BNNClassifier, x: pd.DataFrame, coverage: float
) -> pd.DataFrame:
    """One row per row of x; columns as `prediction_columns` names them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExtrapolationWarning)  # the column `outside` says it
        values = [*_values(model, x, coverage), model.is_outside(x)]
    names = prediction_columns(model, coverage)
    return pd.DataFrame(dict(zip(names, values, strict=True)), x.index)


def _values(
    model: BNNRegressor | BNNClassifier, x: pd.DataFrame, coverage: float
) -> list[np.ndarray]:
    """The columns of numbers and labels."""
    from credence.estimators import BNNClassifier

    if isinstance(model, BNNClassifier):
        probabilities = model.predict_proba(x)
        labels = model.classes_[np.argmax(probabilities, axis=1)]
        return [labels, *probabilities.T, *model.decompose_uncertainty(x).values()]
    values = [*model.predict(x, return_std=True), *model.predict_interval(x, coverage)]
    if model.is_recalibrated:
        values += model.predict_interval(x, coverage, conformal=True)
    return values
