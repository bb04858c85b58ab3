"""report.html from what a RUN folder holds."""

from pathlib import Path
from typing import Any

import numpy as np

from credence.ensembles.diagnostics.calibration import reliability_diagram
from credence.errors import InputError
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
from credence.runs.folder import read_json, read_manifest

INTERVALS = ("lower_50", "upper_50", "lower_95", "upper_95")
REGRESSION = ("y", "mean", "std", *INTERVALS, "pit", "aleatoric_std", "epistemic_std")
ENTROPIES = ("entropy_total", "entropy_aleatoric", "entropy_epistemic")
CLASSIFICATION = ("y", "predicted", "probabilities", *ENTROPIES)


def write_page(folder: Path) -> Path:
    """Write RUN/report.html and return its path.

    Raises:
        InputError: where the folder is not a finished run.
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
    """What the report shows, read from the folder."""
    manifest = read_manifest(folder)
    numbers, about = read_json(folder / "metrics.json"), read_json(folder / "evaluation.json")
    settings = manifest.settings
    ensemble = read_json(folder / "ensemble" / "ensemble.json")
    try:
        with np.load(folder / "evaluation.npz", allow_pickle=False) as file:
            found = dict(file)
    except (OSError, ValueError) as error:
        raise InputError(f"{folder}/evaluation.npz cannot be read ({error}): fit again.") from error
    return ReportData(
        title=f"Predicting {settings.target}",
        task=numbers["task"],
        method=numbers["method"],
        method_reason=numbers["method_reason"],
        n_train=numbers["n_train"],
        n_test=numbers["n_test"],
        metrics=numbers,
        convergence=_convergence(numbers, about, found),
        targets=_targets(folder, about, found),
        emulation=_emulation(numbers, found),
        run=RunRecord(
            command=settings.command,
            seed=settings.seed,
            settings=ensemble["provenance"]["settings"],
            versions=manifest.versions,
            seconds=numbers["seconds"],
            data_fingerprint=manifest.fingerprint,
            created=ensemble["provenance"]["created"],
            notes=(*about["notes"], *_stopped_note(numbers)),
        ),
    )


def _stopped_note(numbers: dict[str, Any]) -> tuple[str, ...]:
    """That the run was cut short, if it was."""
    note = cut_short(numbers["stopped"], numbers["num_draws"], numbers.get("num_draws_asked"))
    return (note,) if note else ()


def _emulation(numbers: dict[str, Any], found: dict[str, np.ndarray]) -> Emulation | None:
    """Where a run before this version left none there is none."""
    if "emulation_true" not in found or "emulation" not in numbers:
        return None
    arrays = found["emulation_true"], found["emulation_emulated"]
    return Emulation(*arrays, numbers=numbers["emulation"])


def _convergence(
    numbers: dict[str, Any], about: dict[str, Any], found: dict[str, np.ndarray]
) -> Convergence:
    return Convergence(
        converged=numbers["converged"],
        reason=numbers["convergence_reason"],
        max_rhat=numbers["max_rhat_function"],
        min_ess=numbers["min_ess_function"],
        rhat=found.get("rhat"),
        ess_bulk=found.get("ess_bulk"),
        ess_tail=found.get("ess_tail"),
        traces=found.get("traces"),
        trace_names=tuple(about["trace_names"]),
    )


def _targets(
    folder: Path, about: dict[str, Any], found: dict[str, np.ndarray]
) -> tuple[RegressionTarget, ...] | tuple[ClassificationTarget, ...]:
    least_sure = RowTable(
        index=tuple(about["least_sure"]),
        columns=tuple(about["columns"]),
        values=tuple(tuple(row) for row in about["rows"]),
        names=tuple(about["row_names"]),
    )
    shared: dict[str, Any] = {"name": about["target"], "least_sure": least_sure}
    if "mean" in found:
        shared |= {name: found[name] for name in REGRESSION}
        return (RegressionTarget(**shared),)
    shared |= {name: found[name] for name in CLASSIFICATION}
    estimator = read_json(folder / "ensemble" / "estimator.json")
    diagram = reliability_diagram(found["probabilities"], found["y"])
    return (
        ClassificationTarget(
            labels=tuple(map(str, estimator["classes"])),
            reliability=Reliability(diagram.confidence, diagram.accuracy, diagram.count),
            **shared,
        ),
    )
