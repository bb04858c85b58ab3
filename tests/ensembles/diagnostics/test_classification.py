"""Scores of class probabilities against scikit-learn and hand-computed values."""

import numpy as np
import pytest
import sklearn.metrics
from tools.diagnostics_samples import random_probabilities

from credence.ensembles.diagnostics import (
    accuracy,
    auroc,
    brier,
    log_loss,
    precision_recall,
    top_k_accuracy,
)


@pytest.fixture(params=[False, True], ids=["unweighted", "weighted"])
def example(request):
    p, labels, weight = random_probabilities(0)
    return p, labels, weight if request.param else None


@pytest.fixture
def binary_example():
    p, labels, weight = random_probabilities(1, num_classes=2)
    return p, labels, weight


def test_accuracy(example):
    p, labels, weight = example
    expected = sklearn.metrics.accuracy_score(labels, p.argmax(axis=1), sample_weight=weight)
    assert accuracy(p, labels, weight) == pytest.approx(expected)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_top_k_accuracy(example, k):
    p, labels, weight = example
    expected = sklearn.metrics.top_k_accuracy_score(labels, p, k=k, sample_weight=weight)
    assert top_k_accuracy(p, labels, k, weight) == pytest.approx(expected)
    assert top_k_accuracy(p, labels, 4, weight) == pytest.approx(1)


def test_of_tied_classes_the_first_counts():
    p, labels = np.full((4, 4), 0.25), np.arange(4)
    assert [top_k_accuracy(p, labels, k) for k in (1, 2, 3, 4)] == [0.25, 0.5, 0.75, 1]


def test_top_k_refuses_more_than_the_classes():
    p, labels, _ = random_probabilities(2)
    for k in (0, 5):
        with pytest.raises(ValueError, match="between 1 and the 4 classes"):
            top_k_accuracy(p, labels, k)


def test_brier_is_the_sum_over_classes(example):
    p, labels, weight = example
    per_point = ((p - np.eye(4)[labels]) ** 2).sum(axis=1)
    assert brier(p, labels, weight) == pytest.approx(np.average(per_point, weights=weight))


def test_half_of_brier_is_the_binary_convention(binary_example):
    p, labels, weight = binary_example
    expected = sklearn.metrics.brier_score_loss(labels, p[:, 1], sample_weight=weight)
    assert brier(p, labels, weight, halve=True) == pytest.approx(expected)
    assert brier(p, labels, weight) == pytest.approx(2 * expected)


def test_log_loss(example):
    p, labels, weight = example
    expected = sklearn.metrics.log_loss(labels, p, sample_weight=weight, labels=range(4))
    assert log_loss(p, labels, weight) == pytest.approx(expected)


def test_an_impossible_truth_costs_infinity_unless_clipped():
    p, labels = np.array([[1.0, 0.0], [0.5, 0.5]]), np.array([1, 0])
    assert log_loss(p, labels) == np.inf
    assert log_loss(p, labels, clip=1e-3) == pytest.approx((np.log(1e3) + np.log(2)) / 2)
    assert log_loss(p, labels, np.array([0.0, 1.0])) == pytest.approx(np.log(2))


def test_auroc_macro(example):
    p, labels, weight = example
    is_class = labels[:, None] == np.arange(4)
    expected = sklearn.metrics.roc_auc_score(is_class, p, average="macro", sample_weight=weight)
    assert auroc(p, labels, weight) == pytest.approx(expected)


def test_auroc_counts_pairs_in_the_right_order_and_half_of_ties():
    p = np.array([0.1, 0.4, 0.4, 0.8, 0.4])
    labels = np.array([0, 0, 1, 1, 0])
    pairs = [(p[i] > p[j]) + (p[i] == p[j]) / 2 for i in (2, 3) for j in (0, 1, 4)]
    assert auroc(np.stack([1 - p, p], axis=1), labels) == pytest.approx(np.mean(pairs))


def test_auroc_leaves_absent_classes_out():
    p, labels, _ = random_probabilities(3, num_classes=3)
    seen = labels != 2
    expected = np.mean(
        [sklearn.metrics.roc_auc_score(labels[seen] == k, p[seen, k]) for k in (0, 1)]
    )
    assert auroc(p[seen], labels[seen]) == pytest.approx(expected)
    assert auroc(p, labels, seen.astype(float)) == pytest.approx(expected)
    assert np.isnan(auroc(p[:1], labels[:1]))
    assert np.isnan(auroc(p[:5], np.zeros(5, dtype=int)))


def test_precision_and_recall_by_hand():
    p = np.array([[0.9, 0.1], [0.4, 0.6], [0.8, 0.2], [0.45, 0.55]])
    labels = np.array([0, 1, 1, 1])  # right, right, wrong, right
    precision, recall = precision_recall(p, labels, (0.2, 0.6, 0.7, 0.95))
    np.testing.assert_allclose(precision, [3 / 4, 1 / 2, 1 / 2, np.nan])
    np.testing.assert_allclose(recall, [1, 1 / 3, 1 / 3, 0])
    weighted = precision_recall(p, labels, np.array([0.7]), np.array([3.0, 1.0, 1.0, 0.0]))
    np.testing.assert_allclose(weighted, [[3 / 4], [3 / 4]])


def test_recall_of_a_model_that_is_never_right_is_undefined():
    result = precision_recall(np.array([[0.9, 0.1]]), np.array([1]), (0.5,))
    assert result.precision == 0
    assert np.isnan(result.recall)


@pytest.mark.parametrize("score", [accuracy, brier, log_loss, auroc])
def test_one_row_and_bad_input(score):
    p, labels = np.array([[0.2, 0.8]]), np.array([1])
    assert np.isnan(score(p, labels)) == (score is auroc)
    with pytest.raises(ValueError, match="not finite"):
        score(np.array([[np.nan, 0.8]]), labels)
    with pytest.raises(ValueError, match="two or more classes"):
        score(np.array([[1.0]]), np.array([0]))
