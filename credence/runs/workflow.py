"""Fit a table into a RUN folder, finish a run that was stopped, predict, write the report.

What computes is imported by the functions that need it, so that bad input is refused at once.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from credence.datasets.catalogue.registry import DATASETS
from credence.datasets.catalogue.registry import load as load_dataset
from credence.datasets.catalogue.specs import DatasetSpec
from credence.datasets.checks import CheckedTable, check_table, require_column
from credence.datasets.names import with_text_names
from credence.datasets.tables import read_table
from credence.errors import InputError, StorageError
from credence.runs.folder import (
    FitSettings,
    Manifest,
    claim,
    read_manifest,
    require_file,
    require_same_table,
    require_usable,
    table_fingerprint,
)
from credence.runs.stopwatch import Stopwatch
from credence.storage import locked, read_json, write_arrays, write_json

if TYPE_CHECKING:
    from credence.estimators import BNNClassifier, BNNRegressor
    from credence.methods import Method


@dataclass(frozen=True)
class Fitted:
    """A run with a result."""

    folder: Path
    metrics: dict[str, Any]
    notes: list[str]


@dataclass(frozen=True)
class Rows:
    """A checked table, divided."""

    table: CheckedTable
    train: pd.DataFrame
    test: pd.DataFrame


def fit(
    settings: FitSettings, folder: Path, *, progress: bool = False, watch: Stopwatch | None = None
) -> Fitted:
    """Check everything, then fit into a new RUN folder.

    Args:
        watch: counts the time; by default from here on.
    Raises:
        InputError: for a table, target, setting or folder that cannot be used; nothing is written.
        StorageError: where another process fits there, or the folder cannot be written; `resume`
            goes on once it can.
        Interrupted: on Ctrl-C before there was a draw; `resume` goes on.
    """
    watch = watch or Stopwatch()
    frame, table = read(settings)
    check_settings(settings, table.task)
    rows = split(settings, table)
    from credence.ensembles.provenance import package_versions

    require_usable(folder, "manifest.json")
    with locked(folder):
        claim(folder, Manifest(settings, table_fingerprint(frame), package_versions()))
        return _finish(folder, settings, rows, progress, watch)


def resume(
    folder: Path,
    *,
    max_seconds: float | None = None,
    progress: bool = False,
    watch: Stopwatch | None = None,
) -> Fitted:
    """Go on with a run where it stopped; a finished one is only read.

    Args:
        max_seconds: of the whole run, what it took before included; by default what it was given.
        watch: counts the time; by default from here on.
    Raises:
        InputError: where the folder is not a run.
        StorageError: where its table has changed, or another process fits there.
    """
    watch = watch or Stopwatch()
    check_seed_and_time(0, max_seconds)
    if read_manifest(folder).status == "done":
        return _finished(folder)
    with locked(folder):
        manifest = read_manifest(folder)
        if manifest.status == "done":
            return _finished(folder)
        frame, table = read(manifest.settings)
        require_same_table(manifest, table_fingerprint(frame))
        check_settings(manifest.settings, table.task)
        limit = max_seconds or manifest.settings.max_seconds
        settings = replace(manifest.settings, max_seconds=limit)
        return _finish(folder, settings, split(settings, table), progress, watch)


def _finished(folder: Path) -> Fitted:
    """What a run that is done has left.

    Raises:
        InputError: where a file is missing.
        StorageError: where one is damaged, or has changed.
    """
    from credence.runs.documents import Evaluation, read_metrics

    for name in ("metrics.json", "evaluation.json"):
        require_file(folder / name)
    read_manifest(folder).require_files(folder, "metrics.json", "evaluation.json")
    metrics = read_metrics(folder / "metrics.json")
    if "verdict" not in metrics or "verdict_reasons" not in metrics:
        raise StorageError(f"{folder / 'metrics.json'} has no verdict: fit again in a new folder.")
    notes = read_json(folder / "evaluation.json", Evaluation)["notes"]
    return Fitted(folder, dict(metrics), notes)


def predict(
    folder: Path, table: str, *, coverage: float = 0.95, id_column: str = ""
) -> tuple[pd.DataFrame, list[str]]:
    """The prediction table for new rows, and notes on them.

    Columns mean, std, lower, upper, or label, probability_LABEL, entropy_total,
    entropy_aleatoric, entropy_epistemic. Before them stands the column that says which row it is.

    Args:
        id_column: of the table, copied as it stands there; without it the column is called `row`
            and counts the table's rows from 0.
    Raises:
        InputError: where the folder is not a finished run, or the table lacks columns.
        StorageError: where its files are damaged, or have changed.
    """
    manifest = read_manifest(folder)
    if manifest.status == "running":
        raise InputError(f"{folder} is not finished: `credence resume {folder}` finishes it.")
    if not 0 < coverage < 1:
        raise InputError(f"--coverage must be between 0 and 1, got {coverage}; 0.95 is usual.")
    from credence.estimators.storage import EstimatorDocument
    from credence.preprocessing import TablePreprocessor

    manifest.require_files(folder, "ensemble/ensemble.json", "ensemble/estimator.json")
    saved = read_json(folder / "ensemble" / "estimator.json", EstimatorDocument)
    text_columns = TablePreprocessor.from_json(saved["preprocessor"]).text_columns
    frame = with_text_names(read_table(table, text_columns))
    if frame.empty:
        raise InputError(f"{table} has no rows: there is nothing to predict.")
    ids = _row_ids(table, frame, id_column)
    from credence.estimators import load

    model = load(folder / "ensemble")
    if ids.name in prediction_columns(model):
        raise InputError(
            f"The predictions have a column '{ids.name}' of their own: rename that of the table."
        )
    features = model.preprocessor_.feature_names_in_
    aside = {manifest.settings.target, id_column} - set(features)
    inputs = frame.drop(columns=list(aside), errors="ignore")
    notes = model.preprocessor_.check_columns(inputs)
    predictions = prediction_table(model, inputs[features], coverage)
    predictions.insert(0, str(ids.name), ids)
    return predictions, notes


def _row_ids(table: str, frame: pd.DataFrame, id_column: str) -> pd.Series:
    """What tells the rows apart: a column of the table, or their numbers."""
    if not id_column:
        return pd.Series(np.arange(len(frame)), frame.index, name="row")
    require_column(frame, id_column)
    return read_table(table, text_columns=(id_column,)).rename(columns=str)[id_column]


def prediction_columns(model: BNNRegressor | BNNClassifier) -> list[str]:
    """The names that scripts rely on, in their order."""
    from credence.estimators import BNNClassifier

    if not isinstance(model, BNNClassifier):
        return ["mean", "std", "lower", "upper"]
    entropies = ("entropy_total", "entropy_aleatoric", "entropy_epistemic")
    return ["label", *(f"probability_{label}" for label in model.classes_), *entropies]


def prediction_table(
    model: BNNRegressor | BNNClassifier, x: pd.DataFrame, coverage: float
) -> pd.DataFrame:
    """One row per row of x; columns as `prediction_columns` names them."""
    from credence.estimators import BNNClassifier

    if isinstance(model, BNNClassifier):
        probabilities = model.predict_proba(x)
        labels = model.classes_[np.argmax(probabilities, axis=1)]
        values = [labels, *probabilities.T, *model.decompose_uncertainty(x).values()]
    else:
        values = [*model.predict(x, return_std=True), *model.predict_interval(x, coverage)]
    return pd.DataFrame(dict(zip(prediction_columns(model), values, strict=True)), x.index)


def known_spec(settings: FitSettings) -> DatasetSpec | None:
    """The named data set that the table is, if it is one; a file of that name comes first."""
    return None if Path(settings.table).exists() else DATASETS.get(settings.table)


def read(settings: FitSettings) -> tuple[pd.DataFrame, CheckedTable]:
    """The table as it is, and checked; a known data set brings its own task.

    Raises:
        InputError: for a table that cannot be used.
    """
    frame = read_table(settings.table, settings.categorical)
    spec, task = known_spec(settings), settings.task
    for column in settings.drop:
        require_column(frame, column)
    frame = frame.drop(columns=list(settings.drop))
    if task == "auto" and spec is not None and settings.target == spec.target:
        task = spec.task
    return frame, check_table(frame, settings.target, task, categorical=settings.categorical)


def check_settings(settings: FitSettings, task: str) -> None:
    """Refuse bad settings before anything is compiled.

    Args:
        task: whose likelihoods are known; "auto" knows them all.
    Raises:
        InputError: with the setting's name.
    """
    from credence import methods
    from credence.estimators.checks import named
    from credence.models import LIKELIHOODS, MLP, PRIORS

    known = {
        "regression": LIKELIHOODS,
        "classification": ("categorical",),
        "auto": (*LIKELIHOODS, "bernoulli", "categorical"),
    }
    named("likelihood", settings.likelihood, dict.fromkeys(("auto", *known[task])))
    if settings.prior != "auto":
        named("prior", settings.prior, PRIORS)
    methods.check_name(settings.method)
    MLP(1, settings.hidden, settings.activation)
    method_of(settings)
    check_seed_and_time(settings.seed, settings.max_seconds)
    for name in ("num_draws", "num_chains"):
        count = getattr(settings, name)
        if count is not None and count < 1:
            raise InputError(f"--{name.replace('_', '-')} must be >= 1, got {count}.")
    if not 0 < settings.test_fraction < 1:
        raise InputError(
            f"--test-fraction must be between 0 and 1, got {settings.test_fraction}; 0.2 is usual."
        )


def check_seed_and_time(seed: int, max_seconds: float | None) -> None:
    """Refuse a seed or a time budget out of range."""
    if not 0 <= seed < 2**32:
        raise InputError(f"--seed must be between 0 and {2**32 - 1}, got {seed}.")
    if max_seconds is not None and not max_seconds > 0:
        raise InputError(f"--max-seconds must be > 0, got {max_seconds}.")


def split(settings: FitSettings, table: CheckedTable) -> Rows:
    """Training and held-out rows: a known data set's own split, else at random by the seed.

    Raises:
        InputError: where too few rows remain to learn from, or a label only occurs in the test.
    """
    frame, spec = table.frame, known_spec(settings)
    dataset = None if spec is None else load_dataset(spec.name)
    if dataset is not None and dataset.train is not None and dataset.test is not None:
        parts = (frame.index.intersection(rows) for rows in (dataset.train, dataset.test))
        train, test = (frame.loc[rows] for rows in parts)
    else:
        train, test = _random_split(settings, table)
    if table.task == "classification":
        unseen = set(test[table.target]) - set(train[table.target])
        if unseen:
            raise InputError(
                f"The label '{min(map(str, unseen))}' is so rare that all its rows were held out: "
                "merge rare labels, or give a smaller --test-fraction or another --seed."
            )
    return Rows(table, train, test)


def _random_split(settings: FitSettings, table: CheckedTable) -> tuple[pd.DataFrame, pd.DataFrame]:
    from sklearn.model_selection import train_test_split

    frame = table.frame
    num_test = max(1, round(settings.test_fraction * len(frame)))
    strata = None
    if table.task == "classification":
        labels = frame[table.target]
        num_labels = labels.nunique()
        if labels.value_counts().min() >= 2 and num_labels <= num_test <= len(frame) - num_labels:
            strata = labels
    if len(frame) - num_test < 2:
        raise InputError(
            f"Holding {num_test} of {len(frame)} rows back for testing leaves too few to learn "
            "from: give a table with more rows, or a smaller --test-fraction."
        )
    return train_test_split(frame, test_size=num_test, random_state=settings.seed, stratify=strata)


def build_model(
    settings: FitSettings, task: str, folder: Path, progress: bool
) -> BNNRegressor | BNNClassifier:
    """The estimator that the settings describe."""
    from credence.estimators import BNNClassifier, BNNRegressor

    estimator = BNNRegressor if task == "regression" else BNNClassifier
    method = method_of(settings)
    return estimator(
        hidden=settings.hidden,
        activation=settings.activation,
        prior=None if settings.prior == "auto" else settings.prior,
        likelihood=None if settings.likelihood == "auto" else settings.likelihood,
        method=method,
        num_draws=settings.num_draws if method == settings.method else None,
        num_chains=settings.num_chains if method == settings.method else None,
        max_seconds=settings.max_seconds,
        checkpoint_folder=folder / "checkpoint",
        progress=progress,
        random_state=settings.seed,
    )


def method_of(settings: FitSettings) -> str | Method:
    """The method by its name, or as an object where it has settings of its own.

    Raises:
        InputError: for settings of no named method, or such as the method does not have.
    """
    from credence.methods import METHODS, check_name
    from credence.methods.settings import with_settings

    texts = list(settings.method_settings)
    if settings.max_depth is not None:
        texts.append(f"max_depth={settings.max_depth}")
    if settings.method == "auto":
        if texts:
            raise InputError(
                f"--set {texts[0]} is a setting of a method, but --method auto chooses among "
                "several: name one with --method NAME; `credence methods` lists them."
            )
        return "auto"
    kind = METHODS[check_name(settings.method)]
    usual = kind.given(num_draws=settings.num_draws, num_chains=settings.num_chains)
    return with_settings(kind, texts, **usual) if texts else settings.method


def _finish(
    folder: Path, settings: FitSettings, rows: Rows, progress: bool, watch: Stopwatch
) -> Fitted:
    """Fit (or go on fitting), evaluate, write everything, mark the run done.

    After Ctrl-C there may be a result from the draws so far; the run then stays resumable.
    """
    from credence.runs.evaluation import (
        convergence_arrays,
        emulation_arrays,
        evaluate,
        metrics,
    )
    from credence.runs.page import verdict_of, write_page

    target = rows.table.target
    watch.lap("read")
    model = build_model(settings, rows.table.task, folder, progress)
    model.fit(rows.train.drop(columns=target), rows.train[target])
    watch.lap("fit")
    x, y = rows.test.drop(columns=target), rows.test[target]
    model.judge(x)
    found = evaluate(model, x, y)
    numbers = metrics(model, found, len(rows.train))
    manifest = read_manifest(folder).started()
    arrays = found | convergence_arrays(model, x) | emulation_arrays(model)
    watch.lap("judge")
    manifest.write(folder)
    model.save(folder / "ensemble")
    _save_evaluation(folder, rows.table, x, arrays)
    write_json(folder / "metrics.json", numbers)
    watch.lap("write")
    numbers |= verdict_of(folder)
    watch.lap("judge")
    phases = numbers["seconds"]
    numbers["seconds"] = watch.seconds(phases)  # until the page is written, which tells it
    write_json(folder / "metrics.json", numbers)
    write_page(folder)
    watch.lap("write")
    numbers["seconds"] = watch.seconds(phases)
    write_json(folder / "metrics.json", numbers)
    was_interrupted = numbers["stopped"] == "interrupt"
    manifest.ended(folder, "interrupted" if was_interrupted else "done").write(folder)
    if not was_interrupted:
        shutil.rmtree(folder / "checkpoint", ignore_errors=True)
    return Fitted(folder, numbers, rows.table.notes)


def _save_evaluation(
    folder: Path, table: CheckedTable, x: pd.DataFrame, found: dict[str, np.ndarray]
) -> None:
    """Arrays and the rows worth showing: the report can be written again without the table."""
    write_arrays(folder / "evaluation.npz", found)
    spread = found["std"] if "std" in found else found["entropy_total"]
    least_sure = np.argsort(-spread, kind="stable")[:8]
    rows = x.iloc[least_sure]
    about = {
        "target": table.target,
        "notes": table.notes,
        "columns": [str(name) for name in x.columns],
        "least_sure": least_sure.tolist(),
        "rows": [[_cell(value) for value in row] for row in rows.itertuples(index=False)],
        "row_names": [f"row {label + 1}" for label in rows.index],
        "trace_names": [f"row {x.index[i] + 1}" for i in found.get("trace_rows", ())],
    }
    write_json(folder / "evaluation.json", about)


def _cell(value: Any) -> Any:
    """A table's value as JSON data."""
    if pd.isna(value):
        return None
    if isinstance(value, bool | int | float | str):
        return value
    return value.item() if isinstance(value, np.generic) else str(value)
