"""How the labels of an ensemble rank: table 7.2 of the thesis."""

from credence.compare.problem import Arrays
from credence.ensembles.diagnostics import classification
from credence.ensembles.predictor import Predictor

THRESHOLDS = (0.2, 0.4)
"""Confidences at which precision and recall are given."""


def label_ranks(ensemble: Predictor, arrays: Arrays) -> dict[str, float]:
    """Shares of the test rows, for more labels than two: top k, precision and recall."""
    if len(arrays.labels) < 3:
        return {}
    found = ensemble.over_batches(arrays.x_test, lambda law, rows: {"p": law.mean()})["p"]
    probabilities = found.astype(float) / found.sum(axis=1, keepdims=True, dtype=float)
    scores = {
        f"top_{k}": classification.top_k_accuracy(probabilities, arrays.y_test, k) for k in (2, 3)
    }
    pairs = classification.precision_recall(probabilities, arrays.y_test, THRESHOLDS)
    for threshold, precision, recall in zip(THRESHOLDS, *pairs, strict=True):
        percent = round(100 * threshold)
        scores |= {f"precision_{percent}": float(precision), f"recall_{percent}": float(recall)}
    return scores
