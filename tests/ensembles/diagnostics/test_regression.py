"""Scores of numbers and intervals against scikit-learn and hand-computed values."""

import numpy as np
import pytest
import sklearn.metrics
from scipy.stats import norm
from tools.diagnostics_samples import REFUSED

from credence.ensembles.diagnostics import (
    interval_coverage,
    mae,
    mean_interval_width,
    nll,
    pit_summary,
    rmse,
)


@pytest.mark.parametrize("shape", [(50,), (50, 3)])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("score", "reference"),
    [
        (rmse, sklearn.metrics.root_mean_squared_error),
        (mae, sklearn.metrics.mean_absolute_error),
    ],
)
def test_errors_agree_with_scikit_learn(score, reference, shape, weighted):
    rng = np.random.default_rng(0)
    y, prediction = rng.normal(size=shape), rng.normal(size=shape)
    weight = rng.uniform(size=50) if weighted else None
    expected = reference(y, prediction, sample_weight=weight)
    assert score(prediction, y, weight) == pytest.approx(expected)


def test_coverage_and_width_by_hand():
    lower, upper = np.array([0.0, 0.0, 0.0, 0.0]), np.array([1.0, 2.0, 3.0, 4.0])
    y = np.array([1.0, 2.1, 0.0, -0.1])  # on the edge, above, on the edge, below
    weight = np.array([2.0, 1.0, 1.0, 0.0])
    assert interval_coverage(lower, upper, y) == 0.5
    all_rows = np.zeros(69)  # 69 shares of 1 / 69 do not add up to 1
    assert interval_coverage(all_rows, all_rows, all_rows) == 1.0
    assert interval_coverage(lower, upper, y, weight) == 0.75
    assert mean_interval_width(lower, upper) == 2.5
    assert mean_interval_width(lower, upper, weight) == pytest.approx(7 / 4)
    two_targets = [np.stack([a, a + 10], axis=1) for a in (lower, upper, y)]
    assert interval_coverage(*two_targets, weight) == 0.75


def test_nll():
    log_density = np.array([-1.0, -3.0, -np.inf])
    assert nll(log_density[:2]) == 2
    assert nll(log_density[:2], np.array([3.0, 1.0])) == 1.5
    assert nll(log_density) == np.inf
    assert nll(log_density, np.array([1.0, 1.0, 0.0])) == 2
    for wrong in (np.nan, np.inf):
        with pytest.raises(ValueError, match="not finite"):
            nll(np.array([-1.0, wrong]))


def test_pit_by_hand():
    summary = pit_summary(np.array([0.1, 0.6]))
    assert summary.ks_distance == pytest.approx(0.4)  # just before 0.6: F = 0.5... after 0.1: 0.4
    assert summary.mean == pytest.approx(0.35)
    assert summary.std == pytest.approx(0.25)
    assert pit_summary(np.array([0.5])).ks_distance == 0.5
    assert pit_summary(np.zeros(3)).ks_distance == 1


def test_pit_sees_a_spread_that_is_too_small():
    y = np.random.default_rng(1).normal(size=3000)
    honest = pit_summary(norm.cdf(y))
    assert honest.p_value > 1e-4
    assert honest.std == pytest.approx(1 / np.sqrt(12), abs=0.01)
    overconfident = pit_summary(norm.cdf(y / 0.7))  # planted: predicted sd 30 % too small
    assert overconfident.p_value < 1e-8
    assert overconfident.std > 0.33
    assert pit_summary(norm.cdf(y + 0.2)).p_value < 1e-8  # planted: predictions too low
    assert pit_summary(norm.cdf(y + 0.2)).mean > 0.54


def test_refuses_bad_input():
    y = np.array([1.0, 2.0])
    for score in (rmse, mae):
        with pytest.raises(ValueError, match="prediction has 1 values that are not finite"):
            score(np.array([np.nan, 1.0]), y)
        with pytest.raises(REFUSED):
            score(y[:1], y)
        with pytest.raises(ValueError, match="is empty"):
            score(y[:0], y[:0])
    with pytest.raises(ValueError, match="swap the arguments"):
        interval_coverage(y, y - 1, y)
    with pytest.raises(ValueError, match="swap the arguments"):
        mean_interval_width(y, y - 1)
    with pytest.raises(ValueError, match=r"outside 0 \.\. 1"):
        pit_summary(y)
    with pytest.raises(ValueError, match="not finite"):
        pit_summary(np.array([0.5, np.nan]))
