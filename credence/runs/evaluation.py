"""How a fitted estimator does on held-out rows: arrays for the report, numbers for metrics.json."""

import math
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from credence.ensembles.diagnostics import calibration, classification, regression
from credence.estimators import BNNClassifier, BNNRegressor
from credence.methods.surrogate.emulation import emulation
from credence.methods.transdimensional.architecture import architecture_posterior
from credence.storage import jsonable

Arrays = dict[str, np.ndarray]
NUM_TRACES = 6


def evaluate(model: BNNRegressor | BNNClassifier, x: pd.DataFrame, y: pd.Series) -> Arrays:
    """Predictions at the held-out rows; keys as in the report's target classes."""
    if isinstance(model, BNNRegressor):
        return _evaluate_regression(model, x, y.to_numpy(float))
    return _evaluate_classification(model, x, y)


def scores(model: BNNRegressor | BNNClassifier, found: Arrays) -> dict[str, float]:
    """The task's numbers of metrics.json."""
    if isinstance(model, BNNRegressor):
        return {
            "rmse": regression.rmse(found["mean"], found["y"]),
            "nll": regression.nll(found["log_prob"]),
            "crps": float(np.mean(found["crps"])),
            "coverage_95": regression.interval_coverage(
                found["lower_95"], found["upper_95"], found["y"]
            ),
        }
    probabilities, y = found["probabilities"], found["y"]
    all_labels = len(np.unique(y)) == probabilities.shape[1]
    return {
        "accuracy": classification.accuracy(probabilities, y),
        "nll": classification.log_loss(probabilities, y),
        "ece": calibration.ece(probabilities, y),
        "brier": classification.brier(probabilities, y),
        "auroc": classification.auroc(probabilities, y) if all_labels else math.nan,
    }


def metrics(model: BNNRegressor | BNNClassifier, found: Arrays, n_train: int) -> dict[str, Any]:
    """All of metrics.json; its seconds are those of the method's own phases, and what is not finite
    is None."""
    judged, cost = model.diagnostics_, model.ensemble_.cost
    numbers = {
        "task": "regression" if isinstance(model, BNNRegressor) else "classification",
        "method": model.method_.name,
        "method_reason": model.method_reason_,
        "n_train": n_train,
        "n_test": len(found["y"]),
        **scores(model, found),
        "converged": judged.converged,
        "convergence_reason": judged.reason,
        "max_rhat_function": judged.max_rhat_function,
        "min_ess_function": judged.min_ess_function,
        "num_chains": model.ensemble_.num_chains,
        "num_draws": model.ensemble_.num_draws,
        "num_draws_asked": getattr(model.method_, "num_draws", None),
        "stopped": model.ensemble_.provenance.stopped,
        **_evidence(model, n_train),
        **_architecture(model),
        **_emulation(model),
        "divergences": int(np.sum(model.ensemble_.scalars.get("is_divergent", np.zeros(1)) > 0)),
        "seconds": {name: round(value, 3) for name, value in cost.seconds.items()},
        "likelihood_evaluations": cost.likelihood_evaluations,
        "gradient_evaluations": cost.gradient_evaluations,
    }
    return jsonable(numbers)


def _evidence(model: BNNRegressor | BNNClassifier, n_train: int) -> dict[str, float]:
    """Log evidence of the training targets in their own units, where the method estimates it."""
    found = model.ensemble_.log_evidence()
    if found is None:
        return {}
    log_scale = np.log(model.target_scaler_.scale).sum() if isinstance(model, BNNRegressor) else 0.0
    return {
        "log_evidence": float(found.nats - n_train * log_scale),
        "log_evidence_error": found.standard_error,
    }


def _architecture(model: BNNRegressor | BNNClassifier) -> dict[str, Any]:
    """The posterior of the network's size, where the method changes it."""
    found = architecture_posterior(model.ensemble_.scalars)
    return {} if found is None else {"architecture": found.to_dict()}


def _emulation(model: BNNRegressor | BNNClassifier) -> dict[str, Any]:
    """What is known of an emulator, where one was used."""
    found = emulation(model.ensemble_.scalars)
    chosen = model.ensemble_.provenance.found
    return {} if found is None else {"emulation": found.numbers() | chosen}


def emulation_arrays(model: BNNRegressor | BNNClassifier) -> Arrays:
    """True and emulated log densities along the chains, where there are any."""
    found = emulation(model.ensemble_.scalars)
    if found is None:
        return {}
    return {"emulation_true": found.true, "emulation_emulated": found.emulated}


def convergence_arrays(model: BNNRegressor | BNNClassifier, x: pd.DataFrame) -> Arrays:
    """R-hat and ESS of the predictions at held-out rows, and a few traces."""
    from credence.ensembles.diagnostics import convergence

    if not model.ensemble_.is_chain:
        return {}
    rows = np.linspace(0, len(x) - 1, min(len(x), 50)).round().astype(int)
    functions = model.sample_functions(x.iloc[rows])
    if isinstance(model, BNNClassifier):
        functions = functions[..., -1]
    functions = functions.reshape(*functions.shape[:3], -1)[..., 0]
    found = {"traces": functions[:, :, :: max(1, len(rows) // NUM_TRACES)][:, :, :NUM_TRACES]}
    found["trace_rows"] = rows[:: max(1, len(rows) // NUM_TRACES)][:NUM_TRACES]
    if functions.shape[0] > 1 and functions.shape[1] >= convergence.MIN_DRAWS:
        found["rhat"] = convergence.rhat(functions)
    if functions.shape[1] >= convergence.MIN_DRAWS:
        found["ess_bulk"] = convergence.ess_bulk(functions, model.ensemble_.families)
        found["ess_tail"] = convergence.ess_tail(functions, model.ensemble_.families)
    return found


def _evaluate_regression(
    model: BNNRegressor, x: pd.DataFrame, y: Float[np.ndarray, " point"]
) -> Arrays:
    mean, std = model.predict(x, return_std=True)
    quantiles = model.predict_quantiles(x, (0.025, 0.25, 0.75, 0.975))
    names = ("lower_95", "lower_50", "upper_50", "upper_95")
    parts = model.decompose_uncertainty(x)
    truth = model.evaluate(x, y)
    return {
        "y": y,
        "mean": mean,
        "std": std,
        **{name: quantiles[:, i] for i, name in enumerate(names)},
        "pit": np.clip(truth["cdf"], 0, 1),
        "log_prob": truth["log_prob"],
        "crps": truth["crps"],
        "aleatoric_std": parts["aleatoric"],
        "epistemic_std": parts["epistemic"],
    }


def _evaluate_classification(model: BNNClassifier, x: pd.DataFrame, y: pd.Series) -> Arrays:
    probabilities = model.predict_proba(x)
    parts = model.decompose_uncertainty(x)
    return {
        "y": pd.Index(model.classes_).get_indexer(pd.Index(y)),
        "predicted": np.argmax(probabilities, axis=1),
        "probabilities": probabilities,
        **{f"entropy_{name}": value for name, value in parts.items()},
    }
