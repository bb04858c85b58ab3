"""report.html from what a RUN folder holds."""

from pathlib import Path
from typing import Any

import numpy as np

from credence.ensembles.diagnostics.calibration import reliability_diagram
from credence.ensembles.saved import EnsembleDocument
from credence.estimators.storage import EstimatorDocument
from credence.html.wording import cut_short
from credence.report import (
    ClassificationTarget,
    Convergence,
    Emulation,
    Level,
    RegressionTarget,
    Reliability,
    ReportData,
    RowTable,
    RunRecord,
    judge,
    write_report,
)
from credence.runs.documents import (
    ARRAYS,
    Evaluation,
    Metrics,
    read_evaluation_arrays,
    read_metrics,
)
from credence.runs.folder import FILES, read_manifest, require_file
from credence.storage import read_json, reading


def write_page(folder: Path) -> Path:
    """Write RUN/report.html and return its path.

    Raises:
        InputError: where the folder is not a finished run.
        StorageError: where its files are damaged or have changed, or the report cannot be written.
    """
    path = folder / "report.html"
    write_report(report_data(folder), path)
    return path


def verdict_of(folder: Path) -> dict[str, Any]:
    """The verdict as entries of metrics.json: its level, and what speaks against trusting."""
    judged = judge(report_data(folder))
    against = [check for check in judged.checks if check.level > Level.TRUST]
    return {
        "verdict": judged.level.name.lower(),
        "verdict_reasons": [f"{check.subject}: {check.sentence}" for check in against],
    }


def report_data(folder: Path) -> ReportData:
    """What the report shows, read from the folder.

    Raises:
        InputError: where the folder is not a finished run.
        StorageError: where its files are damaged, have changed, or do not fit together.
    """
    manifest = read_manifest(folder)
    for name in ("metrics.json", "evaluation.json", "evaluation.npz"):
        require_file(folder / name)
    manifest.require_files(folder, *(name for name in FILES if name != "ensemble/ensemble.npz"))
    metrics = read_metrics(folder / "metrics.json")
    evaluation = read_json(folder / "evaluation.json", Evaluation)
    arrays = read_evaluation_arrays(folder / "evaluation.npz", metrics)
    provenance = read_json(folder / "ensemble" / "ensemble.json", EnsembleDocument)["provenance"]
    settings = manifest.settings
    with reading(folder):
        return ReportData(
            title=f"Predicting {settings.target}",
            task=metrics["task"],
            method=metrics["method"],
            method_reason=metrics["method_reason"],
            n_train=metrics["n_train"],
            n_test=metrics["n_test"],
            metrics=metrics,
            convergence=_convergence(metrics, evaluation, arrays),
            targets=_targets(folder, metrics, evaluation, arrays),
            emulation=_emulation(metrics, arrays),
            run=RunRecord(
                command=settings.command,
                seed=settings.seed,
                settings=provenance.settings,
                versions=manifest.versions,
                seconds=metrics["seconds"],
                data_fingerprint=manifest.fingerprint,
                created=provenance.created,
                notes=(*evaluation["notes"], *_stopped_note(metrics)),
            ),
        )


def _stopped_note(metrics: Metrics) -> tuple[str, ...]:
    """A note that the run was cut short, if it was."""
    note = cut_short(metrics["stopped"], metrics["num_draws"], metrics.get("num_draws_asked"))
    return (note,) if note else ()


def _emulation(metrics: Metrics, arrays: dict[str, np.ndarray]) -> Emulation | None:
    """True densities and their stand-ins for the report; None where an old run left none."""
    if "emulation_true" not in arrays or "emulation" not in metrics:
        return None
    true, emulated = arrays["emulation_true"], arrays["emulation_emulated"]
    if true.shape != emulated.shape:
        raise ValueError(f"emulation_true {true.shape} differs from {emulated.shape} emulated")
    return Emulation(true, emulated, numbers=metrics["emulation"])


def _convergence(
    metrics: Metrics, evaluation: Evaluation, arrays: dict[str, np.ndarray]
) -> Convergence:
    return Convergence(
        converged=metrics["converged"],
        reason=metrics["convergence_reason"],
        max_rhat=metrics["max_rhat_function"],
        min_ess=metrics["min_ess_function"],
        rhat=arrays.get("rhat"),
        ess_bulk=arrays.get("ess_bulk"),
        ess_tail=arrays.get("ess_tail"),
        traces=arrays.get("traces"),
        trace_names=tuple(evaluation["trace_names"]),
    )


def _targets(
    folder: Path, metrics: Metrics, evaluation: Evaluation, arrays: dict[str, np.ndarray]
) -> tuple[RegressionTarget, ...] | tuple[ClassificationTarget, ...]:
    least_sure = RowTable(
        index=tuple(evaluation["least_sure"]),
        columns=tuple(evaluation["columns"]),
        values=tuple(tuple(row) for row in evaluation["rows"]),
        names=tuple(evaluation["row_names"]),
    )
    if any(not 0 <= row < metrics["n_test"] for row in least_sure.index):
        raise ValueError(f"least_sure names rows beyond the {metrics['n_test']} there are")
    shared: dict[str, Any] = {"name": evaluation["target"], "least_sure": least_sure}
    shared |= {name: arrays[name] for name in ARRAYS[metrics["task"]]}
    if metrics["task"] == "regression":
        return (RegressionTarget(**shared),)
    estimator = read_json(folder / "ensemble" / "estimator.json", EstimatorDocument)
    diagram = reliability_diagram(arrays["probabilities"], arrays["y"])
    return (
        ClassificationTarget(
            labels=tuple(map(str, estimator.get("classes", ()))),
            reliability=Reliability(diagram.confidence, diagram.accuracy, diagram.count),
            **shared,
        ),
    )
