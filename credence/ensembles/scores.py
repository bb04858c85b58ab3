"""Scores on held-out rows: one pass through the members gives every number that is shown.

`credence fit`, `credence compare` and the papers take their numbers from here:

    mse, rmse               of the predictive mean, in the target's unit
    nll                     minus log predictive density (probability) of the truth, nats per row
    nll_floor               the same of labels, none of which counts as less probable than
                            NLL_FLOOR: signed weights may leave a true label without probability
    crps                    continuous ranked probability score, in the target's unit
    coverage_95             share of truths in the 95 % predictive interval, noise included
    coverage_95_credible    share in the 95 % interval of the noise-free prediction; papers that
                            report coverages far below 95 % often mean this one
    coverage_95_conformal   share in the 95 % conformal interval, where there is one
    nll_tempered, ece_tempered    of probabilities that were tempered, where there are such
    accuracy, brier, auroc  of the class probabilities
    ece                     expected calibration error of the top label, 15 bins of equal width
    ece_equal_mass          the same with bins of equal mass
    ece_all_classes         over all point x class probabilities: much smaller with many classes
    mce, mce_all_classes    maximum calibration error over either: of the worst bin of equal width,
                            however few rows it has, so that it may be chance
    mce_equal_mass          the same of the top label with bins of equal mass, none of few rows
    epistemic_id            mean epistemic entropy, nats, of the test rows: what the members of the
                            ensemble disagree by; 0 for one network
    epistemic_correct, epistemic_wrong    the same over rows that are labelled rightly or not
    epistemic_others        the same over strangers: inputs of classes that no label stands for
    ood_auroc               how well the total entropy tells strangers from test rows
    ood_auroc_epistemic     how well the epistemic entropy does
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from credence.ensembles.averages import AveragedPredictions
from credence.ensembles.diagnostics import calibration, classification, regression
from credence.ensembles.diagnostics.recalibration import (
    Recalibration,
    closed,
    conformal_levels,
    opened,
    recalibrated,
)
from credence.ensembles.predictions import Predictions, filled
from credence.ensembles.predictor import Inputs, Predictor
from credence.errors import InputError
from credence.storage import require_array

INTERVALS = {95: (0.025, 0.975), 50: (0.25, 0.75)}
"""Quantiles between which intervals lie, by their coverage in percent."""
LEVELS = {
    f"{end}_{coverage}": level
    for coverage, ends in INTERVALS.items()
    for end, level in zip(("lower", "upper"), ends, strict=True)
}
"""The same by their names."""
JUDGED = {
    "regression": ("y", "mean", "std", *LEVELS, "pit", "aleatoric_std", "epistemic_std"),
    "classification": (
        *("y", "predicted", "probabilities"),
        *("entropy_total", "entropy_aleatoric", "entropy_epistemic"),
    ),
}
"""Values row by row by which a task is judged."""
DISTANCES = ("std", "crps", "aleatoric_std", "epistemic_std")
"""Values in the target's unit that have no place on its axis."""
NLL_FLOOR = 1e-3
"""Probability below which `nll_floor` does not look."""
SMALLEST_ENTROPY = 1e-5
"""Smallest entropy above rounding, in nats; what is below counts as none."""

Rows = dict[str, np.ndarray]


class Scores(NamedTuple):
    """Scores of an ensemble on held-out rows."""

    numbers: dict[str, Any]
    """Scores over all rows, by name; None where a number does not apply."""
    rows: Rows
    """Row by row: the truth "y" and what was predicted, with names as in evaluation.npz."""

    def __repr__(self) -> str:
        return f"Scores(numbers={self.numbers!r}, rows=<{', '.join(self.rows)}>)"


@runtime_checkable
class Units(Protocol):
    """The way from a target to what a network sees, and back: a `TargetScaler`, say."""

    @property
    def scale(self) -> tuple[float, ...]:
        """One unit of what the network sees, in the target's."""
        ...

    def transform(self, y: Any) -> Any:
        """Targets as the network sees them."""
        ...

    def inverse(self, z: Any) -> Any:
        """Targets in their own unit."""
        ...

    def inverse_scale(self, std: Any) -> Any:
        """Distances in the target's unit."""
        ...


def regression_scores(
    ensemble: Predictor,
    x: Inputs,
    y: Float[np.ndarray, " point"],
    units: Units,
    recalibration: Recalibration | None = None,
) -> Scores:
    """Score predictions of one numeric target, everything in its unit.

    Args:
        x: held-out inputs, any number of rows.
        y: truths, in the target's own unit.
        recalibration: what other unseen rows say; it gives conformal intervals.
    """
    levels, ends = LEVELS, {}
    if recalibration is not None:
        both = conformal_levels(recalibration, 0.95)
        ends = dict(zip(CONFORMAL, both, strict=True))
        levels = levels | dict(zip(CONFORMAL, closed(both), strict=True))
    found = regression_rows(ensemble, x, units.transform(y), levels, with_crps=True)
    rows = in_units(found, units) | {"y": y}
    rows |= {name: opened(rows[name], level) for name, level in ends.items()}
    return Scores(_regression_numbers(sound_rows(rows)), rows)


def sound_rows(rows: Rows) -> Rows:
    """The rows whose prediction is finite. Numbers are of these, and the verdict of a report tells
    how many are not.

    Raises:
        InputError: where there are none.
    """
    predicted = rows["mean"] if "mean" in rows else rows["probabilities"]
    keep = np.isfinite(predicted.reshape(len(predicted), -1)).all(axis=1)
    if not keep.any():
        raise InputError(
            "No prediction is finite, so there is nothing to score: look for extreme numbers among "
            "the inputs, or for a network whose outputs overflow."
        )
    return rows if keep.all() else {name: values[keep] for name, values in rows.items()}


def _regression_numbers(rows: Rows) -> dict[str, Any]:
    """Sum rows up by numbers in the target's unit."""
    y = rows["y"]
    rmse = regression.rmse(rows["mean"], y)
    numbers = {
        "mse": rmse**2,
        "rmse": rmse,
        "nll": -float(rows["log_prob"].mean()),
        "crps": float(rows["crps"].mean()),
        "coverage_95": regression.interval_coverage(rows["lower_95"], rows["upper_95"], y),
        "coverage_95_credible": None,
    }
    if CREDIBLE[0] in rows:
        lower, upper = (rows[name] for name in CREDIBLE)
        numbers["coverage_95_credible"] = regression.interval_coverage(lower, upper, y)
    if CONFORMAL[0] in rows:
        lower, upper = (rows[name] for name in CONFORMAL)  # perhaps infinite
        numbers["coverage_95_conformal"] = float(np.mean((lower <= y) & (y <= upper)))
    return numbers


CREDIBLE = ("lower_95_credible", "upper_95_credible")
"""Rows that an ensemble of several equal members has beside the others."""
CONFORMAL = ("lower_95_conformal", "upper_95_conformal")
"""Rows that there are where other unseen rows say how wide intervals must be."""


def in_units(rows: Rows, units: Units) -> Rows:
    """Change what `regression_rows` found to the target's own unit."""
    unchanged = {name: rows[name] for name in ("row", "weight") if name in rows}
    found = {name: np.asarray(rows[name], float) for name in rows if name not in unchanged}
    log_scale = float(np.log(units.scale).sum())
    unchanged |= {"pit": found.pop("pit"), "log_prob": found.pop("log_prob") - log_scale}
    distances = {name: units.inverse_scale(found.pop(name)) for name in DISTANCES if name in found}
    return {name: units.inverse(place) for name, place in found.items()} | distances | unchanged


def regression_rows(
    ensemble: Predictor,
    x: Inputs,
    z: Float[np.ndarray, " point"],
    levels: Mapping[str, float] = LEVELS,
    *,
    with_crps: bool = False,
) -> Rows:
    """Predict one target at every row, beside the truth, both as the network sees targets.

    Args:
        z: truths.
        levels: of the quantiles that are wanted, by name.
        with_crps: whether the continuous ranked probability score is wanted, which needs draws.
    """
    is_mixture = ensemble.is_equally_weighted and ensemble.num_members > 1
    key = jax.random.key(0)  # of the draws behind the CRPS: the same for all ensembles

    def summarise(predictive: Predictions, rows: slice) -> dict[str, Any]:
        truth = filled(z[:, None].astype(np.float32), rows, predictive.num_points)
        quantiles = predictive.quantiles(tuple(levels.values()))
        found = {
            "mean": predictive.mean(),
            "std": predictive.std(),
            **dict(zip(levels, quantiles, strict=True)),
            "aleatoric_std": jnp.sqrt(predictive.aleatoric_variance()),
            "epistemic_std": jnp.sqrt(predictive.epistemic_variance()),
            "pit": jnp.clip(predictive.cdf(truth), 0, 1),
        }
        if with_crps:
            found["crps"] = predictive.crps(truth, jax.random.fold_in(key, rows.start))
        if is_mixture:
            members = np.asarray(predictive.member_means())
            found |= dict(zip(CREDIBLE, np.quantile(members, INTERVALS[95], axis=0), strict=True))
        one_target = {name: value[:, 0] for name, value in found.items()}
        return one_target | {"log_prob": predictive.log_prob(truth)}

    return {"y": z, **ensemble.over_batches(x, summarise)}


def classification_scores(
    ensemble: Predictor,
    x: Inputs,
    y: Int[np.ndarray, " point"],
    x_others: Float[np.ndarray, "stranger *feature"] | None = None,
    *,
    recalibration: Recalibration | None = None,
) -> Scores:
    """Score class probabilities.

    Args:
        x: held-out inputs, any number of rows.
        y: their labels, counted from 0.
        x_others: strangers, inputs of classes that no label stands for.
        recalibration: what other unseen rows say; it gives tempered probabilities.
    """
    rows = classification_rows(ensemble, x, y)
    sound = sound_rows(rows)
    numbers, doubt = _classification_numbers(sound), _doubt(sound)
    if recalibration is not None:
        q = recalibrated(recalibration, sound["probabilities"])
        numbers["nll_tempered"] = classification.log_loss(q, sound["y"])
        numbers["ece_tempered"] = calibration.ece(q, sound["y"])
    if x_others is not None:
        others = _classification_pass(ensemble, x_others)
        numbers["epistemic_others"] = float(_doubt(others).mean())
        numbers["ood_auroc"] = separation(sound["entropy_total"], others["entropy_total"])
        numbers["ood_auroc_epistemic"] = separation(doubt, _doubt(others))
    return Scores(numbers, rows)


def averaged_scores(averaged: AveragedPredictions, y: Int[np.ndarray, " point"]) -> Scores:
    """Score class probabilities that were averaged as draws came.

    Args:
        y: labels of the rows at which they were averaged, counted from 0.
    """
    p = valid(averaged.mean())
    total = -np.sum(p * np.log(np.where(p > 0, p, 1.0)), axis=1)
    aleatoric = np.clip(averaged.entropy_aleatoric(), 0.0, total)
    rows = {
        "probabilities": p,
        "entropy_total": total,
        "entropy_aleatoric": aleatoric,
        "entropy_epistemic": total - aleatoric,
    }
    rows = _with_truth(rows, y)
    return Scores(_classification_numbers(sound_rows(rows)), rows)


def _classification_numbers(rows: Rows) -> dict[str, Any]:
    """What rows say without others to compare with."""
    p, y, doubt = rows["probabilities"], rows["y"], _doubt(rows)
    is_wrong = rows["predicted"] != y
    return {
        "accuracy": classification.accuracy(p, y),
        "nll": classification.log_loss(p, y),
        "nll_floor": classification.log_loss(p, y, clip=NLL_FLOOR),
        "brier": classification.brier(p, y),
        "auroc": classification.auroc(p, y),
        "ece": calibration.ece(p, y),
        "ece_equal_mass": calibration.ece(p, y, bins="equal_mass"),
        "ece_all_classes": calibration.ece(p, y, over="all_classes"),
        "mce": calibration.mce(p, y),
        "mce_all_classes": calibration.mce(p, y, over="all_classes"),
        "mce_equal_mass": calibration.mce(p, y, bins="equal_mass"),
        "epistemic_id": float(doubt.mean()),
        "epistemic_correct": _mean_or_none(doubt[~is_wrong]),
        "epistemic_wrong": _mean_or_none(doubt[is_wrong]),
    }


def classification_rows(ensemble: Predictor, x: Inputs, y: Int[np.ndarray, " point"]) -> Rows:
    """Predict labels at every row, beside the truth.

    Args:
        y: truths, counted from 0.
    """
    return _with_truth(_classification_pass(ensemble, x), y)


def _with_truth(rows: Rows, y: Int[np.ndarray, " point"]) -> Rows:
    """Rows with their labels, the most probable ones, and the log probability of the truth."""
    p = rows["probabilities"]
    with np.errstate(divide="ignore"):
        log_prob = np.log(p[np.arange(len(p)), y])
    return {"y": y, **rows, "predicted": np.argmax(p, axis=1), "log_prob": log_prob}


def check_rows(arrays: Mapping[str, np.ndarray], task: str, prefix: str = "") -> int:
    """Check arrays that were read from a file, and count their rows.

    Args:
        prefix: of their names.
    Raises:
        ValueError: where a value by which the task is judged is missing, or they do not fit
            together.
    """
    num_rows = len(arrays[f"{prefix}y"]) if f"{prefix}y" in arrays else 0
    for name in JUDGED[task]:
        is_index = name in ("y", "predicted") and task == "classification"
        dimension = 2 if name == "probabilities" else 1
        require_array(arrays, prefix + name, "iu" if is_index else "fiu", dimension)
        if (found := len(arrays[prefix + name])) != num_rows:
            raise ValueError(f"{prefix}{name} has {found} rows, not {num_rows}")
    if task == "classification":
        num_labels = arrays[f"{prefix}probabilities"].shape[1]
        for name in (f"{prefix}y", f"{prefix}predicted"):
            if not np.isin(arrays[name], np.arange(num_labels)).all():
                raise ValueError(f"{name} holds labels beyond the {num_labels} there are")
    return num_rows


def _classification_pass(ensemble: Predictor, x: Inputs) -> Rows:
    """Class probabilities and entropies at every row."""

    def summarise(predictive: Predictions, rows: slice) -> dict[str, Any]:
        return {
            "probabilities": predictive.mean(),
            **{f"entropy_{name}": each for name, each in predictive.entropies().items()},
        }

    found = ensemble.over_batches(x, summarise)
    found = {name: value.astype(float) for name, value in found.items()}
    return found | {"probabilities": valid(found["probabilities"])}


def valid(probabilities: Float[np.ndarray, "point class"]) -> Float[np.ndarray, "point class"]:
    """Probabilities that sum to one in double precision; signed weights may leave negative ones,
    which become zero."""
    positive = np.maximum(probabilities.astype(float), 0.0)
    return positive / positive.sum(axis=1, keepdims=True)


def _doubt(rows: Rows) -> Float[np.ndarray, " point"]:
    """Epistemic entropy; below SMALLEST_ENTROPY there is only rounding."""
    epistemic = rows["entropy_epistemic"]
    return np.where(epistemic < SMALLEST_ENTROPY, 0.0, epistemic)


def separation(lower: Float[np.ndarray, " lower"], higher: Float[np.ndarray, " higher"]) -> float:
    """Chance that one of `higher` is above one of `lower`, ties half: the area under the ROC."""
    from sklearn.metrics import roc_auc_score

    is_higher = np.repeat([0, 1], [len(lower), len(higher)])
    return float(roc_auc_score(is_higher, np.concatenate([lower, higher])))


def _mean_or_none(values: Float[np.ndarray, " point"]) -> float | None:
    return float(values.mean()) if len(values) else None
