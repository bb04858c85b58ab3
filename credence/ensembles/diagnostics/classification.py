"""Scores of class probabilities[point, label] against integer labels[point].

`sample_weight` weighs the points as in scikit-learn. Probabilities that are not finite, negative,
or do not sum to 1 are refused with a ValueError.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from credence.ensembles.diagnostics._checks import labelled_probabilities, point_mean, point_shares


class PrecisionRecall(NamedTuple):
    """Precision and recall of the predictions above a confidence; one entry per threshold."""

    precision: Float[np.ndarray, " threshold"]
    recall: Float[np.ndarray, " threshold"]


def accuracy(
    probabilities: Float[np.ndarray, "point label"],
    labels: Int[np.ndarray, " point"],
    sample_weight: Float[np.ndarray, " point"] | None = None,
) -> float:
    """Share of points whose most probable class is the true one; of tied classes the first."""
    return top_k_accuracy(probabilities, labels, 1, sample_weight)


def top_k_accuracy(
    probabilities: Float[np.ndarray, "point label"],
    labels: Int[np.ndarray, " point"],
    k: int,
    sample_weight: Float[np.ndarray, " point"] | None = None,
) -> float:
    """Share of points whose true class is among the k most probable; of tied classes the first."""
    p, labels = labelled_probabilities(probabilities, labels)
    if not 1 <= k <= p.shape[1]:
        raise ValueError(f"k must be between 1 and the {p.shape[1]} classes, got {k}.")
    top = np.argsort(-p, axis=1, kind="stable")[:, :k]
    return float(point_mean((top == labels[:, None]).any(axis=1), sample_weight))


def brier(
    probabilities: Float[np.ndarray, "point label"],
    labels: Int[np.ndarray, " point"],
    sample_weight: Float[np.ndarray, " point"] | None = None,
    *,
    halve: bool = False,
) -> float:
    """Brier's (1950) score: the mean of Σ_class (p - 1{true class})², from 0 (best) to 2.

    For two classes this is twice the usual binary (p_1 - y)², which `halve=True` gives.
    scikit-learn halves for two classes and not for more.
    """
    p, labels = labelled_probabilities(probabilities, labels)
    is_true = labels[:, None] == np.arange(p.shape[1])
    score = float(point_mean(((p - is_true) ** 2).sum(axis=1), sample_weight))
    return score / 2 if halve else score


def log_loss(
    probabilities: Float[np.ndarray, "point label"],
    labels: Int[np.ndarray, " point"],
    sample_weight: Float[np.ndarray, " point"] | None = None,
    *,
    clip: float = 0.0,
) -> float:
    """Negative log likelihood: mean of -log p(true class), in nats per point.

    Infinite if a true class was given probability 0: that is what the score says. `clip` raises
    smaller probabilities of true classes to that value; state it wherever the number is shown.
    """
    p, labels = labelled_probabilities(probabilities, labels)
    of_truth = np.maximum(p[np.arange(len(p)), labels], clip)
    with np.errstate(divide="ignore"):
        return float(point_mean(-np.log(of_truth), sample_weight))


def auroc(
    probabilities: Float[np.ndarray, "point label"],
    labels: Int[np.ndarray, " point"],
    sample_weight: Float[np.ndarray, " point"] | None = None,
) -> float:
    """Area under the ROC curve: two classes, or the plain mean of one class against the rest.

    Classes without a positive or without a negative example are left out of the mean; NaN if
    that leaves none. By scikit-learn.
    """
    from sklearn.metrics import roc_auc_score

    p, labels = labelled_probabilities(probabilities, labels)
    share = point_shares(len(p), sample_weight)
    used = share > 0  # a point without weight cannot stand for its class
    p, labels, share = p[used], labels[used], share[used]
    classes = [1] if p.shape[1] == 2 else range(p.shape[1])
    areas = [
        roc_auc_score(labels == k, p[:, k], sample_weight=share)
        for k in classes
        if 0 < np.count_nonzero(labels == k) < len(labels)
    ]
    return float(np.mean(areas)) if areas else float("nan")


def precision_recall(
    probabilities: Float[np.ndarray, "point label"],
    labels: Int[np.ndarray, " point"],
    thresholds: Sequence[float] | Float[np.ndarray, " threshold"],
    sample_weight: Float[np.ndarray, " point"] | None = None,
) -> PrecisionRecall:
    """Precision and recall of the predictions whose confidence is above each threshold.

        precision = right and confident / confident,   recall = right and confident / right

    The confidence of a point is its largest probability. NaN where the divisor is 0.
    """
    p, labels = labelled_probabilities(probabilities, labels)
    share = point_shares(len(p), sample_weight)
    confident = p.max(axis=1) > np.asarray(thresholds, dtype=np.float64)[:, None]
    right = p.argmax(axis=1) == labels
    with np.errstate(invalid="ignore"):
        both = confident @ (share * right)
        return PrecisionRecall(both / (confident @ share), both / (right @ share))
