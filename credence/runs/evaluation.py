"""How a fitted estimator does on held-out rows: arrays for the report, numbers for metrics.json."""

from typing import Any

import numpy as np
import pandas as pd

from credence.ensembles.scores import JUDGED, Scores
from credence.estimators import BNNClassifier, BNNRegressor
from credence.runs.documents import LEFT_OUT, RECALIBRATED, SCORES
from credence.spacing import evenly_spaced
from credence.storage import jsonable

Arrays = dict[str, np.ndarray]
NUM_TRACES = 6
KEPT = {**JUDGED, "regression": (*JUDGED["regression"], "log_prob", "crps")}
"""Values row by row that evaluation.npz keeps, by task."""


def task_of(model: BNNRegressor | BNNClassifier) -> str:
    """What an estimator is for."""
    return "regression" if isinstance(model, BNNRegressor) else "classification"


def arrays_of(model: BNNRegressor | BNNClassifier, found: Scores, x: pd.DataFrame) -> Arrays:
    """Collect the arrays of evaluation.npz: predictions, convergence, and those of findings."""
    arrays = {name: found.rows[name] for name in KEPT[task_of(model)]}
    arrays |= convergence_arrays(model, x)
    if (left_out := model.left_out_) is not None:
        arrays |= {f"{LEFT_OUT}{name}": left_out[name] for name in JUDGED[task_of(model)]}
    for finding in model.findings_.values():
        arrays |= finding.arrays()
    return arrays


def task_scores(model: BNNRegressor | BNNClassifier, found: Scores) -> dict[str, Any]:
    """Choose the task's numbers of metrics.json; no AUROC where a label is not in the test."""
    numbers = {name: found.numbers[name] for name in SCORES[task_of(model)]}
    known = RECALIBRATED[task_of(model)]
    numbers |= {name: found.numbers[name] for name in known if name in found.numbers}
    rows = found.rows
    if "auroc" in numbers and len(np.unique(rows["y"])) < rows["probabilities"].shape[1]:
        numbers["auroc"] = None
    return numbers


def metrics(model: BNNRegressor | BNNClassifier, found: Scores, n_train: int) -> dict[str, Any]:
    """Collect metrics.json, but for the verdict; its seconds are those of the method's own phases,
    and what is not finite is None."""
    judged, cost = model.diagnostics_, model.ensemble_.cost
    numbers = {
        "task": task_of(model),
        "method": model.method_.name,
        "method_reason": model.method_reason_,
        "n_train": n_train,
        "n_test": len(found.rows["y"]),
        **task_scores(model, found),
        "converged": judged.converged,
        "convergence_reason": judged.reason,
        "unseen_rows": judged.unseen_rows,
        "max_rhat_function": judged.max_rhat_function,
        "min_ess_function": judged.min_ess_function,
        "num_chains": model.ensemble_.num_chains,
        "num_draws": model.ensemble_.num_draws,
        "num_draws_asked": getattr(model.method_, "num_draws", None),
        "stopped": model.ensemble_.provenance.stopped,
        "divergences": model.ensemble_.num_divergences,
        "seconds": {name: round(value, 3) for name, value in cost.seconds.items()},
        "likelihood_evaluations": cost.likelihood_evaluations,
        "gradient_evaluations": cost.gradient_evaluations,
    }
    entries = [finding.entries() for finding in model.findings_.values()]
    return {name: value for each in (*entries, jsonable(numbers)) for name, value in each.items()}


def convergence_arrays(model: BNNRegressor | BNNClassifier, x: pd.DataFrame) -> Arrays:
    """R-hat and ESS of what convergence is judged by at held-out rows, and traces of a few
    predictions.

    Of several labels or targets of a row, and its noise, the worst counts.
    """
    from credence.ensembles.diagnostics import convergence

    ensemble = model.ensemble_
    if not ensemble.is_chain:
        return {}
    found: Arrays = {}
    if ensemble.families is None:  # particles are in no order that a trace could show
        rows = evenly_spaced(len(x), NUM_TRACES)
        functions = model.sample_functions(x.iloc[rows])
        shown = -1 if isinstance(model, BNNClassifier) else 0
        found["traces"] = functions.reshape(*functions.shape[:3], -1)[..., shown]
        found["trace_rows"] = rows
    if ensemble.num_draws < convergence.MIN_DRAWS:
        return found
    judged = convergence.at_some_points(model.monitored(x))
    judged = judged[:, :, np.isfinite(judged).all(axis=(0, 1, 3))]
    if not judged.shape[2]:
        return found
    if len(judged) > 1:
        found["rhat"] = np.fmax.reduce(convergence.rhat(judged), axis=-1)
    for name, ess in (("ess_bulk", convergence.ess_bulk), ("ess_tail", convergence.ess_tail)):
        least = np.fmin.reduce(ess(judged, ensemble.families), axis=-1)
        found[name] = np.minimum(least, ensemble.weights_worth)
    return found
