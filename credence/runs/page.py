"""report.html from what a RUN folder holds."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from credence.ensembles.findings import Finding
from credence.ensembles.inputs import Effect, Importances, from_document
from credence.ensembles.provenance import Provenance
from credence.ensembles.scores import JUDGED
from credence.ensembles.stack import read_provenance
from credence.estimators.document import EstimatorDocument
from credence.html.wording import cut_short, divergent
from credence.report import (
    ClassificationTarget,
    Convergence,
    Level,
    LogScores,
    RegressionTarget,
    Reliability,
    ReportData,
    RowTable,
    RunRecord,
    judge,
    write_report,
)
from credence.runs.documents import (
    GROUPS,
    LEFT_OUT,
    Evaluation,
    Metrics,
    read_evaluation_arrays,
    read_findings,
    read_metrics,
)
from credence.runs.folder import FILES, Manifest, ensemble_files, read_manifest, require_file
from credence.storage import read_json, reading


class Record(NamedTuple):
    """The result of a RUN folder, in memory after the fit or read back."""

    manifest: Manifest
    metrics: Metrics
    evaluation: Evaluation
    arrays: dict[str, np.ndarray]
    findings: tuple[Finding, ...]
    provenance: Provenance
    labels: tuple[str, ...]
    """Labels of a classification, in the order of the probabilities."""


def write_page(folder: Path) -> Path:
    """Write RUN/report.html and return its path.

    Raises:
        InputError: where the folder is not a finished run.
        StorageError: where its files are damaged or have changed, or the report cannot be written.
    """
    path = folder / "report.html"
    write_report(report_data(folder), path)
    return path


def verdict_of(record: Record) -> dict[str, Any]:
    """The verdict as entries of metrics.json: its level, what speaks against trusting, and
    what to do about it."""
    judged = judge(report_of(record))
    against = [check for check in judged.checks if check.level > Level.TRUST]
    return {
        "verdict": judged.level.name.lower(),
        "verdict_reasons": [f"{check.subject}: {check.sentence}" for check in against],
        "verdict_advice": list(judged.advice),
    }


def report_data(folder: Path) -> ReportData:
    """What the report shows, read from the folder.

    Raises:
        InputError: where the folder is not a finished run.
        StorageError: where its files are damaged, have changed, or do not fit together.
    """
    record = read_record(folder)
    with reading(folder):
        return report_of(record)


def read_record(folder: Path) -> Record:
    """Read what a folder says of its result.

    Raises:
        InputError: where the folder is not a finished run.
        StorageError: where its files are damaged, have changed, or do not fit together.
    """
    manifest = read_manifest(folder)
    for name in ("metrics.json", "evaluation.json", "evaluation.npz"):
        require_file(folder / name)
    manifest.require_files(folder, *FILES, *ensemble_files(folder, ".json"))
    metrics = read_metrics(folder / "metrics.json")
    evaluation = read_json(folder / "evaluation.json", Evaluation)
    arrays = read_evaluation_arrays(folder / "evaluation.npz", metrics)
    provenance = read_provenance(folder / "ensemble")
    labels: tuple[str, ...] = ()
    if metrics["task"] == "classification":
        estimator = read_json(folder / "ensemble" / "estimator.json", EstimatorDocument)
        labels = tuple(map(str, estimator.get("classes", ())))
    findings = read_findings(folder, metrics, arrays)
    return Record(manifest, metrics, evaluation, arrays, findings, provenance, labels)


def report_of(record: Record) -> ReportData:
    """What the report shows.

    Raises:
        ValueError: where parts of the record do not fit together.
    """
    metrics, settings = record.metrics, record.manifest.settings
    importances, effects = _inputs(record)
    return ReportData(
        title=f"Predicting {settings.target}",
        task=metrics["task"],
        method=metrics["method"],
        method_reason=metrics["method_reason"],
        n_train=metrics["n_train"],
        n_test=metrics["n_test"],
        metrics=metrics,
        convergence=_convergence(record),
        targets=_targets(record),
        left_out=_left_out(record),
        findings=record.findings,
        importances=importances,
        effects=effects,
        has_own_split=record.evaluation.get("has_own_split", False),
        run=RunRecord(
            command=settings.command,
            seed=settings.seed,
            settings=record.provenance.settings,
            versions=record.manifest.versions,
            seconds=metrics["seconds"],
            data_fingerprint=record.manifest.fingerprint,
            created=record.provenance.created,
            notes=(*record.evaluation["notes"], *_stopped_note(metrics)),
        ),
    )


def _inputs(record: Record) -> tuple[Importances | None, tuple[Effect, ...]]:
    """What the inputs do, of runs that found out."""
    document = record.evaluation.get("inputs")
    return (None, ()) if document is None else from_document(document)


def _stopped_note(metrics: Metrics) -> tuple[str, ...]:
    """A note that the run was cut short, if it was."""
    note = cut_short(metrics["stopped"], metrics["num_draws"], metrics.get("num_draws_asked"))
    return (note,) if note else ()


def _convergence(record: Record) -> Convergence:
    metrics, arrays = record.metrics, record.arrays
    return Convergence(
        converged=metrics["converged"],
        reason=with_divergences(metrics),
        unseen_rows=metrics.get("unseen_rows", 0),
        max_rhat=metrics["max_rhat_function"],
        min_ess=metrics["min_ess_function"],
        rhat=arrays.get("rhat"),
        ess_bulk=arrays.get("ess_bulk"),
        ess_tail=arrays.get("ess_tail"),
        traces=arrays.get("traces"),
        trace_names=tuple(record.evaluation["trace_names"]),
    )


def with_divergences(metrics: Metrics) -> str:
    """The sentence on convergence, and one on steps that diverged, if there were any."""
    steps = metrics["num_draws"] * metrics.get("num_chains", 1)
    sentence = divergent(metrics.get("divergences"), steps)
    return f"{metrics['convergence_reason']} {sentence}".strip()


def _scores(arrays: dict[str, np.ndarray]) -> LogScores | None:
    """Log scores beside those of simple models, of runs that kept them."""
    if "log_prob_marginal" not in arrays or "log_prob_linear" not in arrays:
        return None
    network = arrays.get("log_prob")
    if network is None:
        if "probabilities" not in arrays:
            return None
        rows = np.arange(len(arrays["y"]))
        with np.errstate(divide="ignore"):
            network = np.log(arrays["probabilities"][rows, arrays["y"]])
    return LogScores(network, arrays["log_prob_marginal"], arrays["log_prob_linear"])


def _targets(record: Record) -> tuple[RegressionTarget, ...] | tuple[ClassificationTarget, ...]:
    """The test rows, beside what simple models say of them."""
    metrics, evaluation = record.metrics, record.evaluation
    least_sure = RowTable(
        index=tuple(evaluation["least_sure"]),
        columns=tuple(evaluation["columns"]),
        values=tuple(tuple(row) for row in evaluation["rows"]),
        names=tuple(evaluation["row_names"]),
    )
    if any(not 0 <= row < metrics["n_test"] for row in least_sure.index):
        raise ValueError(f"least_sure names rows beyond the {metrics['n_test']} there are")
    more: dict[str, Any] = {"least_sure": least_sure, "scores": _scores(record.arrays)}
    if metrics["task"] == "regression":
        more["conformal_share"] = metrics.get("coverage_95_conformal")
    return _predicted(record, "", **more)


def _left_out(record: Record) -> tuple[RegressionTarget, ...] | tuple[ClassificationTarget, ...]:
    """Training rows as predicted by networks that had not seen them; none in most runs."""
    return _predicted(record, LEFT_OUT) if f"{LEFT_OUT}y" in record.arrays else ()


def _predicted(
    record: Record, prefix: str, **more: Any
) -> tuple[RegressionTarget, ...] | tuple[ClassificationTarget, ...]:
    """Rows from the arrays whose names begin so."""
    task = record.metrics["task"]
    rows: dict[str, Any] = {name: record.arrays[prefix + name] for name in JUDGED[task]}
    rows["groups"] = record.arrays.get(prefix + GROUPS)
    rows |= {"name": record.evaluation["target"], **more}
    if task == "regression":
        return (RegressionTarget(**rows),)
    table = Reliability.of(rows["probabilities"], rows["y"])
    return (ClassificationTarget(labels=record.labels, reliability=table, **rows),)
