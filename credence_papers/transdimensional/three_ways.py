"""One question, three answers: how large should the network be?

Reversible jump gives p(size | data) in one run; SMC gives the evidence of every size alone, hence
the same probabilities another way; cross-validation asks how well every size predicts rows that
it has not seen. The first two must agree. The third need not: it forgives neurons that do no harm.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float

from credence.compare import scoring
from credence.compare.problem import Arrays
from credence.density.posterior import Posterior
from credence.ensembles.diagnostics.convergence import MIN_DRAWS, mcse_mean
from credence.ensembles.diagnostics.stacking import mean_with_error
from credence.methods import SMC
from credence.methods.evidence import LogEvidence
from credence.models import MLP
from credence_papers.cache import number


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
    name: str,
    posterior: Posterior,
    arrays: Arrays,
    jumps: tuple[np.ndarray, np.ndarray],
    log_prior: Mapping[int, float],
    ways: Ways,
    seed: int,
    *,
    is_deep: bool,
) -> dict[str, Any]:
    """All three answers at the sizes compared.

    Args:
        name: of the problem, by which every size has random numbers of its own.
        posterior: of any size; widths and depths are replaced.
        jumps: shares of the sizes by reversible jump, and their Monte Carlo errors.
        log_prior: of sizes.
        is_deep: whether sizes are hidden layers, each as wide as the first; otherwise neurons.
    Returns:
        JSON data: "sizes" and lists of their length: "jumps", "jumps_error", "evidence",
        "evidence_error" (probabilities among these sizes), "log_evidence", "log_evidence_error"
        (nats), "nll", "nll_error" (nats per row), "nll_behind", "nll_behind_error" (of the
        difference from the best size, row by row).
    """
    smc = SMC(num_particles=ways.num_particles, num_runs=ways.num_runs)
    evidences, scores = [], []
    for size in ways.sizes:
        sized = of_size(posterior, size, is_deep=is_deep)
        evidence = LogEvidence.of(smc.run(number([name, "evidence", seed, size]), sized))
        assert evidence is not None
        evidences.append((evidence.nats, evidence.standard_error))
        scores.append(cross_validated(sized, arrays, ways, seed, f"{name}, {size}"))
    log, log_error = np.array(evidences, float).T
    joint = log + np.array([log_prior[size] for size in ways.sizes])
    probabilities = np.exp(joint - np.logaddexp.reduce(joint))
    nll, nll_error = np.transpose(list(map(mean_with_error, scores)))
    behind = np.array(scores) - scores[int(np.argmin(nll))]
    nll_behind, nll_behind_error = np.transpose(list(map(mean_with_error, behind)))
    columns = {
        "jumps": jumps[0],
        "jumps_error": jumps[1],
        "evidence": probabilities,
        "evidence_error": share_errors(probabilities, log_error),
        "log_evidence": log,
        "log_evidence_error": log_error,
        "nll": nll,
        "nll_error": nll_error,
        "nll_behind": nll_behind,
        "nll_behind_error": nll_behind_error,
    }
    return {"sizes": list(ways.sizes)} | {key: each.tolist() for key, each in columns.items()}


def jump_shares(
    drawn: Float[np.ndarray, "chain draw"], sizes: tuple[int, ...], ess: float
) -> tuple[np.ndarray, np.ndarray]:
    """Shares of these sizes among the draws of any of them, with Monte Carlo errors.

    The error is that of a ratio, by first order. That of a size which no draw has, or all have, is
    not known: one effective draw stands for it.

    Args:
        drawn: the size of every draw.
        ess: effective draws of the size.
    """
    is_there = np.asarray(drawn)[..., None] == np.array(sizes)
    among = is_there.any(axis=-1, keepdims=True)
    share_of_any = max(float(among.mean()), 1e-12)
    shares = is_there.mean(axis=(0, 1)) / share_of_any
    errors = np.full(len(sizes), np.nan)
    if drawn.shape[1] >= MIN_DRAWS:
        errors = mcse_mean((is_there - shares * among) / share_of_any)
    least = 1 / (ess * share_of_any) if np.isfinite(ess) else 1.0
    return shares, np.nan_to_num(errors, nan=min(least, 1.0))


def of_size(posterior: Posterior, size: int, *, is_deep: bool) -> Posterior:
    """The same model and data with a network of that size."""
    network, data = posterior.model.network, posterior.data
    assert isinstance(network, MLP)
    hidden = network.hidden[:1] * size if is_deep else (size,)
    sized = MLP(network.num_outputs, hidden, network.activation)
    rows = (data.x, data.y, data.weight)
    return Posterior(sized, posterior.model.prior, posterior.model.likelihood, rows)


def cross_validated(
    posterior: Posterior, arrays: Arrays, ways: Ways, seed: int, name: str
) -> np.ndarray:
    """Negative log predictive density of every training row by the folds without it, nats.

    Args:
        seed: of the folds; runs depend on the name as well.
    """
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
        key = number([name, "fold", seed, fold])
        held_out = replace(arrays, x_test=x[is_out], y_test=y[is_out])
        scores[is_out] = scoring.scores(smc.run(key, known), held_out)[1]["nll"]
    return scores


def share_errors(probabilities: np.ndarray, log_errors: np.ndarray) -> np.ndarray:
    """Standard errors of shares p_i of exp(log z), by first order: p_i (e_i - sum_j p_j e_j)."""
    spread = np.outer(probabilities, -probabilities) + np.diag(probabilities)
    return np.sqrt((spread**2) @ log_errors**2)
