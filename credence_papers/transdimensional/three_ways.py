"""One question, three answers: how large should the network be?

Reversible jump gives p(size | data) in one run; SMC gives the evidence of every size alone, hence
the same probabilities another way; cross-validation asks how well every size predicts rows that
it has not seen. The first two must agree. The third need not: it forgives neurons that do no harm.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from credence.compare import scoring
from credence.compare.problem import Arrays
from credence.density.posterior import Posterior
from credence.ensembles.diagnostics.stacking import mean_with_error
from credence.methods import SMC
from credence.methods.evidence import LogEvidence
from credence.models import MLP


@dataclass(frozen=True)
class Ways:
    """How the other two answers are found.

    Args:
        sizes: that are compared.
        num_particles, num_runs: of SMC at every size.
        num_folds: of cross-validation, by one run of SMC a fold.
    """

    sizes: tuple[int, ...]
    num_particles: int
    num_runs: int
    num_folds: int


def compared(
    posterior: Posterior,
    arrays: Arrays,
    found: Mapping[int, tuple[float, float]],
    log_prior: Mapping[int, float],
    ways: Ways,
    seed: int,
    *,
    is_deep: bool,
) -> dict[str, Any]:
    """All three answers at the sizes compared.

    Args:
        posterior: of any size; widths and depths are replaced.
        found: by reversible jump: size -> probability, its Monte Carlo error.
        log_prior: of sizes.
        is_deep: whether sizes are hidden layers, each as wide as the first; otherwise neurons.
    Returns:
        JSON data: "sizes" and lists of their length: "jumps", "jumps_error", "evidence",
        "evidence_error" (probabilities among these sizes), "log_evidence", "log_evidence_error"
        (nats), "nll", "nll_error" (nats per row).
    """
    smc = SMC(num_particles=ways.num_particles, num_runs=ways.num_runs)
    columns: dict[str, list[float]] = {
        name: [] for name in ("log", "log_error", "nll", "nll_error")
    }
    for size in ways.sizes:
        sized = of_size(posterior, size, is_deep=is_deep)
        evidence = LogEvidence.of(smc.run(seed, sized))
        assert evidence is not None
        scores = cross_validated(sized, arrays, ways, seed)
        values = evidence.nats, evidence.standard_error, *mean_with_error(scores)
        for column, value in zip(columns.values(), values, strict=True):
            column.append(float(value))
    log, log_error = np.array(columns["log"]), np.array(columns["log_error"])
    joint = log + np.array([log_prior[size] for size in ways.sizes])
    probabilities = np.exp(joint - np.logaddexp.reduce(joint))
    jumps = np.array([found.get(size, (0.0, 0.0)) for size in ways.sizes])
    jumps = jumps / max(jumps[:, 0].sum(), 1e-12)
    return {
        "sizes": list(ways.sizes),
        "jumps": jumps[:, 0].tolist(),
        "jumps_error": jumps[:, 1].tolist(),
        "evidence": probabilities.tolist(),
        "evidence_error": share_errors(probabilities, log_error).tolist(),
        "log_evidence": log.tolist(),
        "log_evidence_error": log_error.tolist(),
        "nll": columns["nll"],
        "nll_error": columns["nll_error"],
    }


def of_size(posterior: Posterior, size: int, *, is_deep: bool) -> Posterior:
    """The same model and data with a network of that size."""
    network, data = posterior.model.network, posterior.data
    assert isinstance(network, MLP)
    hidden = network.hidden[:1] * size if is_deep else (size,)
    sized = MLP(network.num_outputs, hidden, network.activation)
    rows = (data.x, data.y, data.weight)
    return Posterior(sized, posterior.model.prior, posterior.model.likelihood, rows)


def cross_validated(posterior: Posterior, arrays: Arrays, ways: Ways, seed: int) -> np.ndarray:
    """Negative log predictive density of every training row by the folds without it, nats."""
    x, y = arrays.x_train, arrays.y_train
    folds = np.random.default_rng(seed).permutation(len(x)) % ways.num_folds
    smc = SMC(num_particles=ways.num_particles, num_runs=1)
    scores = np.empty(len(x))
    for fold in range(ways.num_folds):
        is_out = folds == fold
        known = Posterior(
            posterior.model.network,
            posterior.model.prior,
            posterior.model.likelihood,
            (x[~is_out], y[~is_out]),
        )
        held_out = replace(arrays, x_test=x[is_out], y_test=y[is_out])
        scores[is_out] = scoring.scores(smc.run(seed + 1 + fold, known), held_out)[1]["nll"]
    return scores


def share_errors(probabilities: np.ndarray, log_errors: np.ndarray) -> np.ndarray:
    """Standard errors of shares p_i of exp(log z), by first order: p_i (e_i - sum_j p_j e_j)."""
    spread = np.outer(probabilities, -probabilities) + np.diag(probabilities)
    return np.sqrt((spread**2) @ log_errors**2)
