"""Scores of an ensemble on held-out rows: error, calibration, convergence.

Names of the numbers, here and in every table:

    mse, rmse               of the predictive mean, in the target's unit
    nll                     minus log predictive density (probability) of the truth, nats per row
    nll_floor               the same of labels, none of which counts as less probable than
                            NLL_FLOOR: signed weights may leave a true label without probability
    crps                    continuous ranked probability score, in the target's unit
    coverage_95             share of truths in the 95 % predictive interval, noise included
    coverage_95_credible    share in the 95 % interval of the noise-free prediction; papers that
                            report coverages far below 95 % often mean this one
    accuracy, brier, auroc  of the class probabilities
    ece                     expected calibration error of the top label, 15 bins of equal width
    ece_equal_mass          the same with bins of equal mass
    ece_all_classes         over all point x class probabilities: much smaller with many classes
    epistemic_id            mean epistemic entropy, nats, of the test rows: what the members of the
                            ensemble disagree by; 0 for one network
    epistemic_correct, epistemic_wrong    the same over rows that are labelled rightly or not
    epistemic_others        the same over strangers: inputs of classes that no label stands for
    ood_auroc               how well the total entropy tells strangers from test rows
    ood_auroc_epistemic     how well the epistemic entropy does
    ess_share               effective sample size of the weights between two levels, as a share
    emulator_error          of a CES run's emulator along its chain, in nats, root mean square
    emulator_pareto_k       tail index of the importance weights of uncorrected draws; "inf" where
                            they have no mean
    emulator_acceptance     share that the true likelihood accepted, where it decided
    ess_function            (min, median, max) bulk ESS of predictions at held-out rows
    ess_weights             (min, median, max) bulk ESS of single weights, as papers report it
"""

import math
from typing import Any

import numpy as np
from jaxtyping import Float

from credence.compare.problem import Arrays
from credence.ensembles.diagnostics import (
    calibration,
    classification,
    convergence,
    regression,
)
from credence.ensembles.diagnostics.starts import with_starts
from credence.ensembles.ensemble import Ensemble
from credence.ensembles.predictive import Predictive
from credence.methods.surrogate.emulation import emulation
from credence.methods.transdimensional.architecture import architecture_posterior, with_architecture
from credence.storage import jsonable

MAX_FUNCTIONS = 200
"""Predictions (row x output) whose R-hat and ESS are computed."""
MAX_WEIGHTS = 1000
"""Weights whose ESS is computed; of more, so many at random."""
TAILS = (0.025, 0.975)
NLL_FLOOR = 1e-3
"""Probability below which `nll_floor` does not look."""
SMALLEST_ENTROPY = 1e-5
"""Smallest entropy that single precision tells from 0, in nats; what is below counts as none."""

Numbers = dict[str, Any]


def scores(ensemble: Ensemble, arrays: Arrays) -> tuple[Numbers, dict[str, list[float]]]:
    """Scores on the test rows, and row by row "nll" and "error" (squared, or 1 for a wrong label).

    A number that is not finite or does not apply is None.
    """
    score = _score_regression if arrays.task == "regression" else _score_classification
    numbers, rows = score(ensemble, arrays)
    return (
        jsonable(numbers) | _emulator(ensemble),
        {name: [float(f"{value:.6g}") for value in values] for name, values in rows.items()},
    )


def _emulator(ensemble: Ensemble) -> Numbers:
    """What is known of an emulator, where one was used."""
    found = emulation(ensemble.scalars)
    if found is None:
        return {}
    numbers = found.numbers()
    names = {"error": "error", "pareto_k": "pareto_k", "acceptance_rate": "acceptance"}
    return {f"emulator_{ours}": numbers[name] for name, ours in names.items()}


def _score_regression(ensemble: Ensemble, arrays: Arrays) -> tuple[Numbers, dict[str, Any]]:
    import jax
    import jax.numpy as jnp

    assert arrays.scaler is not None
    is_mixture = ensemble.num_members > 1 and ensemble.weights is None
    key = jax.random.key(0)  # of the draws behind the CRPS: the same for all methods

    def summarise(predictive: Predictive, rows: slice) -> dict[str, Any]:
        size = predictive.outputs.shape[1]
        truth = jnp.asarray(np.resize(arrays.y_test[rows], (size, 1)), jnp.float32)
        members = np.asarray(predictive.member_means())[..., 0]
        return {
            "mean": predictive.mean()[:, 0],
            "interval": np.stack([q[:, 0] for q in predictive.quantiles(TAILS)], axis=-1),
            "credible": np.quantile(members, TAILS, axis=0).T,
            "log_prob": predictive.log_prob(truth),
            "crps": predictive.crps(truth, jax.random.fold_in(key, rows.start))[:, 0],
        }

    found = ensemble.over_batches(arrays.x_test, summarise)
    y, mean = (arrays.scaler.inverse(np.asarray(z, float)) for z in (arrays.y_test, found["mean"]))
    nll = math.log(arrays.scaler.scale[0]) - found["log_prob"].astype(float)
    (low, high), (low_mean, high_mean) = found["interval"].T, found["credible"].T
    numbers = {
        "mse": regression.rmse(mean, y) ** 2,
        "rmse": regression.rmse(mean, y),
        "nll": float(nll.mean()),
        "crps": float(arrays.scaler.inverse_scale(found["crps"].astype(float)).mean()),
        "coverage_95": regression.interval_coverage(low, high, arrays.y_test),
        "coverage_95_credible": regression.interval_coverage(low_mean, high_mean, arrays.y_test)
        if is_mixture
        else None,
    }
    return numbers, {"nll": nll, "error": (mean - y) ** 2}


def _score_classification(ensemble: Ensemble, arrays: Arrays) -> tuple[Numbers, dict[str, Any]]:
    found = ensemble.over_batches(arrays.x_test, _labels_and_doubt)
    p = np.maximum(found["p"].astype(float), 0.0)  # signed weights may leave negative ones
    p, y = p / p.sum(axis=1, keepdims=True), arrays.y_test
    is_wrong = np.argmax(p, axis=1) != y
    with np.errstate(divide="ignore"):
        nll = -np.log(p[np.arange(len(p)), y])
    numbers = {
        "accuracy": classification.accuracy(p, y),
        "nll": float(nll.mean()),
        "nll_floor": classification.log_loss(p, y, clip=NLL_FLOOR),
        "brier": classification.brier(p, y),
        "auroc": classification.auroc(p, y),
        "ece": calibration.ece(p, y),
        "ece_equal_mass": calibration.ece(p, y, bins="equal_mass"),
        "ece_all_classes": calibration.ece(p, y, over="all_classes"),
        "epistemic_id": float(found["epistemic"].mean()),
        "epistemic_correct": _mean_or_none(found["epistemic"][~is_wrong]),
        "epistemic_wrong": _mean_or_none(found["epistemic"][is_wrong]),
    }
    if arrays.x_others is not None:
        numbers |= _strangers(ensemble, arrays.x_others, found)
    if "ess_share" in ensemble.scalars:
        numbers["ess_share"] = float(np.mean(ensemble.scalars["ess_share"]))
    return numbers, {"nll": np.minimum(nll, 1e3), "error": is_wrong}


def _labels_and_doubt(predictive: Predictive, rows: slice) -> dict[str, Any]:
    """Class probabilities and entropies; below SMALLEST_ENTROPY there is only rounding."""
    epistemic = np.asarray(predictive.entropy_epistemic())
    return {
        "p": predictive.mean(),
        "total": predictive.entropy_total(),
        "epistemic": np.where(epistemic < SMALLEST_ENTROPY, 0.0, epistemic),
    }


def _strangers(ensemble: Ensemble, x: Float[np.ndarray, "point feature"], known: Any) -> Numbers:
    """Whether doubt tells strangers from test rows."""
    strange = ensemble.over_batches(x, _labels_and_doubt)
    return {
        "epistemic_others": float(strange["epistemic"].mean()),
        "ood_auroc": separation(known["total"], strange["total"]),
        "ood_auroc_epistemic": separation(known["epistemic"], strange["epistemic"]),
    }


def separation(lower: Float[np.ndarray, " lower"], higher: Float[np.ndarray, " higher"]) -> float:
    """Chance that one of `higher` is above one of `lower`, ties half: the area under the ROC."""
    from sklearn.metrics import roc_auc_score

    is_higher = np.repeat([0, 1], [len(lower), len(higher)])
    return float(roc_auc_score(is_higher, np.concatenate([lower, higher])))


def _mean_or_none(values: Float[np.ndarray, " point"]) -> float | None:
    return float(values.mean()) if len(values) else None


def judge(ensemble: Ensemble, x_test: Float[np.ndarray, "point feature"]) -> Numbers:
    """Convergence in function space and in weights; nothing to judge where there is no chain."""
    if not ensemble.is_chain:
        return {"convergence": vars(convergence.assess(None)), **_no_chain(ensemble)}
    quantities = ensemble.monitored(x_test[:1]).shape[-1]
    num_points = min(len(x_test), max(1, MAX_FUNCTIONS // quantities))
    rows = np.linspace(0, len(x_test) - 1, num_points).round().astype(int)
    functions = ensemble.monitored(x_test[rows])
    weights, total = flat_weights(ensemble)
    families = ensemble.families
    judged = convergence.assess(functions, max_functions=MAX_FUNCTIONS, families=families)
    judged = with_starts(judged, ensemble.provenance.found.get("starts"))
    judged = with_architecture(judged, architecture_posterior(ensemble.scalars))
    return {
        "convergence": jsonable(vars(judged)),
        "ess_function": ess_summary(functions, families),
        "ess_weights": ess_summary(weights, families),
        "weights_judged": weights.shape[-1],
        "num_weights": total,
    }


def ess_summary(
    draws: Float[np.ndarray, "chain draw *shape"],
    families: Float[np.ndarray, "chain draw"] | None = None,
) -> list[float] | None:
    """Smallest, median and largest bulk ESS; None where it cannot be computed."""
    if draws.shape[1] < convergence.MIN_DRAWS or not np.isfinite(draws).all():
        return None
    ess = convergence.ess_bulk(draws, families)
    ess = ess[np.isfinite(ess)]
    return [float(q) for q in np.quantile(ess, (0, 0.5, 1))] if ess.size else None


def flat_weights(ensemble: Ensemble) -> tuple[Float[np.ndarray, "chain draw weight"], int]:
    """Some weights of every draw, MAX_WEIGHTS at most, and how many there are in all.

    They are chosen at random.
    """
    import jax

    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(ensemble.params)]
    flat = [leaf.reshape(*leaf.shape[:2], -1) for leaf in leaves]
    total = sum(leaf.shape[-1] for leaf in flat)
    chosen = np.sort(np.random.default_rng(0).permutation(total)[:MAX_WEIGHTS])
    return np.concatenate(flat, axis=-1)[:, :, chosen], total


def _no_chain(ensemble: Ensemble) -> Numbers:
    _, total = flat_weights(ensemble)
    return {"ess_function": None, "ess_weights": None, "weights_judged": 0, "num_weights": total}
