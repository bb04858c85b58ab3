"""Takes checked rows to a RUN folder with a result: fit, judge, write.

What computes is imported by the functions that need it, so that bad input is refused at once.
"""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from credence.datasets.checks import CheckedTable
from credence.runs.documents import GROUPS, LEFT_OUT
from credence.runs.folder import FitSettings, Manifest, read_manifest
from credence.runs.stopwatch import Stopwatch
from credence.runs.warned import warnings_kept
from credence.storage import jsonable, write_arrays, write_json

if TYPE_CHECKING:
    from credence.ensembles.findings import Finding
    from credence.ensembles.inputs import InputsDocument
    from credence.ensembles.scores import Scores
    from credence.estimators import BNNClassifier, BNNRegressor
    from credence.methods import Algorithm
    from credence.runs.documents import Evaluation
    from credence.runs.page import Record

NUM_EFFECTS = 3
"""Inputs whose effects the report shows."""
FEWEST_ROWS_OF_EFFECTS = 10
"""Test rows from which on inputs are shuffled among them."""
SECONDS_TO_JUDGE = 8.0
"""A fit of a small table takes so long beside its method, to score, compare and write."""
ROWS_JUDGED_PER_SECOND = 1000
"""Test rows, where there are many, that are judged in a second, measured with four models."""


@dataclass(frozen=True)
class Fitted:
    """A run with a result."""

    folder: Path
    metrics: dict[str, Any]
    notes: list[str]
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class Rows:
    """A checked table, divided."""

    table: CheckedTable
    train: pd.DataFrame
    test: pd.DataFrame
    has_own_split: bool = False
    """Whether the data set says which rows are which."""
    groups: pd.Series | None = None
    """A number for the group of every row of the table, by the row's label, where somebody said
    which belong together."""

    def groups_of(self, part: pd.DataFrame) -> np.ndarray | None:
        """The number of every row's group; None where there are no groups."""
        return None if self.groups is None else self.groups.loc[part.index].to_numpy()


def build_model(
    settings: FitSettings,
    method: str | Algorithm,
    task: str,
    folder: Path,
    progress: bool,
    max_seconds: float | None,
) -> BNNRegressor | BNNClassifier:
    """The estimator that the settings describe, with what is left of their time budget."""
    from credence.estimators import BNNClassifier, BNNRegressor

    estimator = BNNRegressor if task == "regression" else BNNClassifier
    return estimator(
        hidden=settings.hidden,
        activation=settings.activation,
        prior=None if settings.prior == "auto" else settings.prior,
        likelihood=None if settings.likelihood == "auto" else settings.likelihood,
        method=method,
        num_draws=settings.num_draws if method == settings.method else None,
        num_chains=settings.num_chains if method == settings.method else None,
        max_seconds=max_seconds,
        checkpoint_folder=folder / "checkpoint",
        progress=progress,
        random_state=settings.seed,
    )


def seconds_of_fit(budget: float | None, spent: float, num_test: int) -> float | None:
    """Seconds of a command's budget that are left for the fit: some are kept to judge and write.

    Args:
        num_test: rows that are held out.
    """
    if budget is None:
        return None
    return max(budget - spent - SECONDS_TO_JUDGE - num_test / ROWS_JUDGED_PER_SECOND, 0.5 * budget)


def finish(
    folder: Path,
    settings: FitSettings,
    method: str | Algorithm,
    rows: Rows,
    progress: bool,
    watch: Stopwatch,
) -> Fitted:
    """Fit (or go on fitting), judge from memory, write everything once, mark the run done.

    After Ctrl-C there may be a result from the draws so far; the run then stays resumable.
    """
    from credence.report import write_report
    from credence.runs.page import report_of, verdict_of

    target = rows.table.target
    watch.lap("read")
    left = seconds_of_fit(settings.max_seconds, sum(watch.laps.values()), len(rows.test))
    model = build_model(settings, method, rows.table.task, folder, progress, left)
    with warnings_kept() as told:
        model.fit(
            rows.train.drop(columns=target), rows.train[target], groups=rows.groups_of(rows.train)
        )
    manifest = read_manifest(folder).started()
    manifest.write(folder)  # before any of its files changes
    model.save(folder / "ensemble")  # whatever happens to what judges it
    watch.lap("fit")
    record = judged(model, manifest, rows, told)
    numbers: Any = record.metrics
    numbers |= verdict_of(record)
    watch.lap("judge")
    model.save(folder / "ensemble")
    write_arrays(folder / "evaluation.npz", record.arrays)
    write_json(folder / "evaluation.json", record.evaluation)
    watch.lap("write")
    phases = numbers["seconds"]
    numbers["seconds"] = watch.seconds(phases)  # until the page is written, which tells it
    write_report(report_of(record), folder / "report.html")
    watch.lap("write")
    numbers["seconds"] = watch.seconds(phases)
    write_json(folder / "metrics.json", numbers)
    was_interrupted = numbers["stopped"] == "interrupt"
    manifest.ended(folder, "interrupted" if was_interrupted else "done").write(folder)
    if not was_interrupted:
        shutil.rmtree(folder / "checkpoint", ignore_errors=True)
    return Fitted(folder, numbers, rows.table.notes, record.findings)


def _calibrate(model: BNNRegressor | BNNClassifier, found: Scores) -> None:
    """Calibrate by the test rows, where the method left none out and they are enough and finite."""
    from credence.ensembles.diagnostics.recalibration import FEWEST_ROWS

    predicted = found.rows["probabilities" if "probabilities" in found.rows else "pit"]
    is_possible = len(predicted) >= FEWEST_ROWS and np.isfinite(predicted).all()
    if is_possible and not model.is_recalibrated:
        model.calibrate_by(found)


def judged(
    model: BNNRegressor | BNNClassifier, manifest: Manifest, rows: Rows, told: Sequence[str]
) -> Record:
    """Collect what the folder is to hold, but for the verdict, from one pass over the test rows.

    Args:
        told: what the fit warned of.
    """
    from credence.runs.evaluation import arrays_of, metrics
    from credence.runs.page import Record
    from credence.runs.references import references_of

    target = rows.table.target
    x, y = rows.test.drop(columns=target), rows.test[target]
    model.judge(x)
    found = model.scores(x, y)
    arrays = arrays_of(model, found, x)
    provenance = model.ensemble_.provenance
    _calibrate(model, found)
    beside = references_of(model, rows.train, rows.test, target)
    arrays |= beside.rows | groups_beside(model, rows)
    document = evaluation_document(rows.table, x, arrays)
    document["notes"] = [*document["notes"], *told]
    document["has_own_split"] = rows.has_own_split
    if (inputs := inputs_of(model, x, y)) is not None:
        document["inputs"] = inputs
    numbers: Any = metrics(model, found, len(rows.train)) | jsonable(beside.numbers)
    return Record(
        manifest,
        numbers,
        document,
        arrays,
        tuple(model.findings_.values()),
        dataclasses.replace(provenance, settings=jsonable(provenance.settings)),
        tuple(map(str, getattr(model, "classes_", np.empty(0)).tolist())),
    )


def groups_beside(model: BNNRegressor | BNNClassifier, rows: Rows) -> dict[str, np.ndarray]:
    """The groups of the test rows, and of training rows that networks left out, if there are."""
    of_test, of_train = rows.groups_of(rows.test), rows.groups_of(rows.train)
    if of_test is None or of_train is None:
        return {}
    found = {GROUPS: of_test}
    if (left_out := model.left_out_) is not None:
        found[LEFT_OUT + GROUPS] = of_train[left_out["row"]]
    return found


def inputs_of(
    model: BNNRegressor | BNNClassifier, x: pd.DataFrame, y: pd.Series
) -> InputsDocument | None:
    """Find what the test rows say of the inputs: importances, and the effects of the largest."""
    from credence.ensembles.inputs import to_document
    from credence.estimators.effects import MOST_COLUMNS

    if not 1 < x.shape[1] <= MOST_COLUMNS or len(x) < FEWEST_ROWS_OF_EFFECTS:
        return None
    found = model.importances(x, y)
    if not np.isfinite(found.nats).all():
        return None  # a test row that is impossible to the networks
    names = [found.names[i] for i in found.order if x[found.names[i]].notna().any()]
    return to_document(found, tuple(model.effect(x, name) for name in names[:NUM_EFFECTS]))


def evaluation_document(
    table: CheckedTable, x: pd.DataFrame, arrays: dict[str, np.ndarray]
) -> Evaluation:
    """Choose the rows worth showing: the report can be written again without the table."""
    from credence.report import least_sure_index

    least_sure = least_sure_index(arrays["std"] if "std" in arrays else arrays["entropy_total"])
    rows = x.iloc[least_sure]
    return {
        "target": table.target,
        "notes": table.notes,
        "columns": [str(name) for name in x.columns],
        "least_sure": least_sure,
        "rows": [[_cell(value) for value in row] for row in rows.itertuples(index=False)],
        "row_names": [f"row {label + 1}" for label in rows.index],
        "trace_names": [f"row {x.index[i] + 1}" for i in arrays.get("trace_rows", ())],
    }


def _cell(value: Any) -> Any:
    """A table's value as JSON data."""
    if pd.isna(value):
        return None
    if isinstance(value, bool | int | float | str):
        return value
    return value.item() if isinstance(value, np.generic) else str(value)
