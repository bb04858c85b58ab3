"""A method on one problem: its scores on held-out rows, its convergence, in weights too.

Names of the numbers, here and in every table, beside those of `credence.ensembles.scores` and of
the findings of single methods:

    ess_function            (min, median, max) bulk ESS of predictions at held-out rows
    ess_weights             (min, median, max) bulk ESS of single weights, of all chains together
    draws_per_effective_draw    (min, median, max) draws of a chain over the bulk ESS of a weight in
                            it: 1 is best. Some papers print this under the name of ESS.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from jaxtyping import Float

from credence.compare.problem import Arrays
from credence.density.posterior import Posterior
from credence.ensembles.averages import AveragedPredictions
from credence.ensembles.diagnostics import convergence
from credence.ensembles.diagnostics.convergence import Convergence
from credence.ensembles.ensemble import Ensemble
from credence.ensembles.findings import Finding, judged, with_findings
from credence.ensembles.predictor import Predictor
from credence.ensembles.scores import averaged_scores, classification_scores, regression_scores
from credence.methods import findings as findings_of
from credence.spacing import evenly_spaced
from credence.storage import jsonable

MAX_FUNCTIONS = 200
"""Predictions (row x output) whose R-hat and ESS are computed."""
MAX_WEIGHTS = 200
"""Weights whose ESS is computed; of more, so many at random. They take seconds, of 2000 draws."""
MOST_NLL = 1e3
"""Largest NLL of a row; a label without probability would have an infinite one."""

UNKNOWN = {
    "ess_function": None,
    "ess_weights": None,
    "draws_per_effective_draw": None,
    "weights_judged": 0,
}
"""What is said of draws where there are no chains, or where they were not kept."""

Numbers = dict[str, Any]
ByRow = dict[str, list[float | None]]


def scores(
    ensemble: Predictor, arrays: Arrays, findings: Iterable[Finding] | None = None
) -> tuple[Numbers, ByRow]:
    """Scores on the test rows, and row by row "nll" and "error" (squared, or 1 for a wrong label).

    Args:
        findings: of the method; by default those of the registered one that made the ensemble.
    A number that is not finite or does not apply is None.
    """
    if arrays.scaler is None:
        found = classification_scores(ensemble, arrays.x_test, arrays.y_test, arrays.x_others)
        rows = found.rows
        error = rows["predicted"] != rows["y"]
        nll = np.minimum(-rows["log_prob"], MOST_NLL)
    else:
        y = arrays.scaler.inverse(np.asarray(arrays.y_test, float))
        found = regression_scores(ensemble, arrays.x_test, y, arrays.scaler)
        rows = found.rows
        error, nll = (rows["mean"] - rows["y"]) ** 2, -rows["log_prob"]
    numbers = jsonable(found.numbers)
    for each in findings_of(ensemble).values() if findings is None else findings:
        numbers |= each.scores()
    return numbers, _by_row(nll, error)


def judge_averaged(
    averaged: AveragedPredictions,
    arrays: Arrays,
    posterior: Posterior,
    findings: Iterable[Finding],
) -> tuple[Numbers, ByRow]:
    """Scores and convergence of predictions that were averaged as draws came; no ESS is known.

    "paths" are errors and NLL draw by draw: see `credence.ensembles.averages.PATHS`.
    """
    found = averaged_scores(averaged, arrays.y_test)
    rows = found.rows
    nll = np.minimum(-rows["log_prob"], MOST_NLL)
    verdict = Convergence(
        averaged.max_rhat(), None, None, None, averaged.num_chains, averaged.num_draws,
        *averaged.verdict(),
    )  # fmt: skip
    return {
        "scores": jsonable(found.numbers),
        "convergence": jsonable(vars(with_findings(verdict, findings))),
        **UNKNOWN,
        "num_weights": posterior.num_weights,
        "paths": jsonable({name: list(path) for name, path in averaged.averages.paths.items()}),
    }, _by_row(nll, rows["predicted"] != rows["y"])


def _by_row(nll: np.ndarray, error: np.ndarray) -> ByRow:
    """Numbers row by row, with six digits; None for what is not finite."""
    by_row = {"nll": nll, "error": error}
    return {
        name: jsonable([float(f"{value:.6g}") for value in values])
        for name, values in by_row.items()
    }


def judge(
    ensemble: Predictor,
    x_test: Float[np.ndarray, "point *feature"],
    findings: Iterable[Finding] | None = None,
) -> Numbers:
    """Convergence in function space and in weights; nothing to judge where there is no chain.

    Args:
        findings: as of `scores`.
    """
    findings = findings_of(ensemble).values() if findings is None else findings
    if not (isinstance(ensemble, Ensemble) and ensemble.is_chain):
        return {"convergence": vars(judged(ensemble, None, findings)), **_no_chain(ensemble)}
    quantities = ensemble.monitored(x_test[:1]).shape[-1]
    rows = evenly_spaced(len(x_test), max(1, MAX_FUNCTIONS // quantities))
    functions = ensemble.monitored(x_test[rows])
    weights, total = flat_weights(ensemble)
    return {
        "convergence": jsonable(vars(judged(ensemble, functions, findings))),
        "ess_function": ess_summary(functions, ensemble.families),
        "ess_weights": ess_summary(weights, ensemble.families),
        "draws_per_effective_draw": draws_per_effective_draw(weights),
        "weights_judged": weights.shape[-1],
        "num_weights": total,
    }


def ess_summary(
    draws: Float[np.ndarray, "chain draw *shape"],
    families: Float[np.ndarray, "chain draw"] | None = None,
) -> list[float] | None:
    """Smallest, median and largest bulk ESS; None where it cannot be computed."""
    ess = finite_ess(draws, families)
    return [float(q) for q in np.quantile(ess, (0, 0.5, 1))] if ess.size else None


def finite_ess(
    draws: Float[np.ndarray, "chain draw *shape"],
    families: Float[np.ndarray, "chain draw"] | None = None,
) -> Float[np.ndarray, " quantity"]:
    """Bulk ESS of the quantities that move; none where there are too few draws.

    Where nothing moves at all the chain stands still, and everything has an ESS of 1.
    """
    if draws.shape[1] < convergence.MIN_DRAWS or not np.isfinite(draws).all():
        return np.empty(0)
    if not np.ptp(draws, axis=1).any():
        return np.ones(draws[0, 0].size)
    ess = np.ravel(convergence.ess_bulk(draws, families))
    return ess[np.isfinite(ess)]


def draws_per_effective_draw(
    weights: Float[np.ndarray, "chain draw weight"],
) -> list[float] | None:
    """Smallest, median and largest draws per effective draw of single weights in single chains.

    A chain that draws independently has 1; a random walk that goes nowhere has nearly as many as it
    has draws. No other chain is asked, so that it does not see chains apart from each other.
    """
    each = [finite_ess(weights[chain : chain + 1]) for chain in range(len(weights))]
    known = [ess for ess in each if ess.size]
    if not known:
        return None
    ratios = weights.shape[1] / np.concatenate(known)
    return [float(q) for q in np.quantile(ratios, (0, 0.5, 1))]


def flat_weights(ensemble: Ensemble) -> tuple[Float[np.ndarray, "chain draw weight"], int]:
    """Some weights of every draw, MAX_WEIGHTS at most, and how many there are in all.

    They are chosen at random.
    """
    import jax

    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(ensemble.params)]
    flat = [leaf.reshape(*leaf.shape[:2], -1) for leaf in leaves]
    total = ensemble.num_weights
    chosen = np.sort(np.random.default_rng(0).permutation(total)[:MAX_WEIGHTS])
    return np.concatenate(flat, axis=-1)[:, :, chosen], total


def _no_chain(ensemble: Predictor) -> Numbers:
    return {**UNKNOWN, "num_weights": ensemble.num_weights}
