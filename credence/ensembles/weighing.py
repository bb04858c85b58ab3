"""Weigh ensembles by what they say of rows they have not seen, and stack them.

Yao, Vehtari, Simpson & Gelman, "Using stacking to average Bayesian predictive distributions"
(2018): the weights give unseen rows the highest probability. Models that are all wrong may do well
together, and one that is nearly right gets nearly all the weight.

Yao, Vehtari & Gelman, "Stacking for non-mixing Bayesian computations: the curse and blessing of
multimodal posteriors" (2022): chains that stay in modes of their own are models of their own. So
each chain gets a weight, by default.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from jaxtyping import Float

from credence.ensembles.candidate import Candidate
from credence.ensembles.diagnostics.cost import Cost
from credence.ensembles.diagnostics.importance import MIN_DRAWS
from credence.ensembles.diagnostics.stacking import (
    LeaveOneOut,
    leave_one_out,
    mean_with_error,
    stacking_weights,
)
from credence.ensembles.ensemble import Ensemble
from credence.ensembles.predictions import Predictions, filled
from credence.ensembles.predictor import Inputs
from credence.ensembles.provenance import Provenance
from credence.ensembles.stack import Stack
from credence.errors import InputError, check_share

FEW_ROWS = 30
"""Rows below which weights say little; they are then drawn towards equal ones."""


def stack(
    ensembles: Sequence[Ensemble],
    x: Inputs,
    y: Any,
    *,
    held_out: bool = False,
    weight: Any = None,
    by_chain: bool = True,
    least_weight: float = 0.01,
) -> Stack:
    """Combine ensembles so that their mixture predicts unseen rows best.

    Args:
        ensembles: of one task, fitted to the same rows.
        x, y: rows, as the ensembles saw them: standardised inputs, targets in their units. Rows
            that the ensembles were fitted to are scored by leave-one-out.
        held_out: whether no ensemble has seen these rows; they are then scored as they are.
        weight: how many observations each row stands for, >= 0, as the ensembles were told; None
            for one.
        by_chain: weigh each Markov chain of an ensemble by itself.
        least_weight: what has less is left out, and the other weights are scaled up.
    Raises:
        InputError: for no ensembles, targets that do not fit, signed weights of draws, weights of
            rows that are negative or of another number, ensembles fitted to other rows than one
            another, or anything but chains of at least 25 draws where rows are to be left out one
            by one.
    """
    check_share("0.01 is usual", least_weight=least_weight)
    if not ensembles:
        raise InputError("stack got no ensembles: pass at least one.")
    if len({each.provenance.data_fingerprint for each in ensembles}) > 1 and not held_out:
        raise InputError(
            "The ensembles were fitted to rows that differ, so none of these rows can be left out "
            "of all: pass rows that no ensemble has seen, with held_out=True."
        )
    x, y, weight = _counted(x, y, weight)
    parts = [
        (index, chain, part)
        for index, ensemble in enumerate(ensembles)
        for chain, part in _parts(ensemble, by_chain)
    ]
    found = [_scores(part, x, y, weight, held_out) for _, _, part in parts]
    candidates = [
        _candidate(index, chain, each, weight, is_held_out=held_out)
        for (index, chain, _), each in zip(parts, found, strict=True)
    ]
    first = ensembles[0].provenance
    return weighed(
        [part for _, _, part in parts],
        np.stack([each.log_probs for each in found], axis=1),
        candidates,
        cost=reduce(add, (ensemble.cost for ensemble in ensembles)),
        provenance=Provenance("stack", {"held_out": held_out}, None, first.data_fingerprint),
        row_weight=weight,
        least_weight=least_weight,
    )


def weighed(
    parts: Sequence[Ensemble],
    log_probs: Float[np.ndarray, "point part"],
    candidates: Sequence[Candidate],
    *,
    cost: Cost,
    provenance: Provenance,
    row_weight: Float[np.ndarray, " point"] | None = None,
    least_weight: float = 0.01,
) -> Stack:
    """The stack of parts whose scores of unseen rows are known.

    Args:
        parts: candidates as ensembles.
        log_probs: log p_k(y_i | rows without i), nats.
        candidates: what is known of each part but for its weight.
        cost, provenance: of the stack.
        row_weight: how many observations each row stands for; None for one.
        least_weight: what has less is left out, and the other weights are scaled up.
    """
    prior_rows = 1.0 if len(log_probs) >= FEW_ROWS else float(FEW_ROWS)
    weights = stacking_weights(log_probs, weight=row_weight, prior_rows=prior_rows)
    weights = np.where(weights >= min(least_weight, weights.max()), weights, 0.0)
    weights /= weights.sum()
    kept = np.flatnonzero(weights)
    return Stack(
        tuple(parts[int(i)] for i in kept),
        weights[kept],
        cost,
        provenance,
        tuple(
            replace(each, weight=float(weight))
            for each, weight in zip(candidates, weights, strict=True)
        ),
        len(log_probs),
    )


def _parts(ensemble: Ensemble, by_chain: bool) -> list[tuple[int | None, Ensemble]]:
    """The chains of an ensemble, or the whole of it."""
    if ensemble.weights is not None and np.any(np.asarray(ensemble.weights) < 0):
        raise InputError(
            f"{ensemble} has signed weights, and a stack is a mixture: leave it out of the stack."
        )
    if not (by_chain and ensemble.is_chain):
        return [(None, ensemble)]
    chain_of = np.indices((ensemble.num_chains, ensemble.num_draws))[0]
    return [
        (chain, ensemble.subset(chain_of == chain, is_chain=True))
        for chain in range(ensemble.num_chains)
    ]


def _candidate(
    ensemble: int,
    chain: int | None,
    scores: LeaveOneOut,
    row_weight: np.ndarray | None,
    *,
    is_held_out: bool,
) -> Candidate:
    """A part of the stack before it is weighed."""
    log_score, log_score_error = mean_with_error(scores.log_probs, row_weight)
    return Candidate(
        ensemble=ensemble,
        chain=chain,
        log_score=log_score,
        log_score_error=log_score_error,
        share_unreliable=None if is_held_out else scores.share_unreliable,
        weight=0.0,
    )


def _counted(x: Any, y: Any, weight: Any) -> tuple[Any, Any, np.ndarray | None]:
    """The rows that count, with their weights.

    Raises:
        InputError: for weights that are negative, not finite or of another number, or all zero.
    """
    if weight is None:
        return x, y, None
    weight = np.asarray(weight, float)
    is_sound = weight.shape == (len(x),) and np.isfinite(weight).all() and (weight >= 0).all()
    if not (is_sound and weight.any()):
        raise InputError(f"weight must be {len(x)} numbers >= 0, one per row, some of them above.")
    counts = weight > 0
    return np.asarray(x)[counts], np.asarray(y)[counts], weight[counts]


def _scores(
    ensemble: Ensemble, x: Inputs, y: Any, weight: np.ndarray | None, held_out: bool
) -> LeaveOneOut:
    """Log probabilities of rows that the ensemble has not seen, or as if it had not."""
    y = np.asarray(ensemble.model.likelihood.checked_targets(y))
    if len(y) != len(x):
        raise InputError(f"x has {len(x)} rows and y has {len(y)}: they must match row by row.")
    of_draws = None if ensemble.weights is None else np.ravel(ensemble.weights)
    counting = ensemble.num_members if of_draws is None else np.count_nonzero(of_draws)
    if not held_out and not (ensemble.is_chain and counting >= MIN_DRAWS):
        raise InputError(
            f"Rows can only be left out of Markov chains of at least {MIN_DRAWS} draws, got "
            f"{ensemble}: draw more, or pass rows that no ensemble has seen, with held_out=True."
        )

    if held_out:
        found = log_probs(ensemble, x, y)
        return LeaveOneOut(found, np.full(len(found), -np.inf))
    by_member = log_probs(ensemble, x, y, by_member=True).T
    return leave_one_out(by_member, weight=weight, draw_weight=of_draws)


def log_probs(
    ensemble: Ensemble, x: Inputs, y: np.ndarray, *, by_member: bool = False
) -> Float[np.ndarray, "point *member"]:
    """Log probability of every row by an ensemble, or by each of its members, in nats.

    Args:
        x, y: rows, as the ensemble saw them.
    """

    def of_batch(predictive: Predictions, rows: slice) -> dict[str, Any]:
        truth = filled(y, rows, predictive.num_points)
        if by_member:
            return {"log_prob": predictive.member_log_probs(truth).T}
        return {"log_prob": predictive.log_prob(truth)}

    return ensemble.over_batches(x, of_batch)["log_prob"].astype(float)
