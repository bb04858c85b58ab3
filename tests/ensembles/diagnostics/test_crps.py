"""CRPS against numerical integration of its definition and brute-force pair sums."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm
from tools.diagnostics_samples import REFUSED, z_score

from credence.ensembles.diagnostics import crps, crps_normal, crps_normal_mixture, crps_sample


def crps_by_integration(cdf, y, low=-60.0, high=60.0):
    """∫ (F(x) - 1{x >= y})² dx."""
    below = quad(lambda x: cdf(x) ** 2, low, y, epsabs=1e-10, limit=500, points=[0.0])[0]
    above = quad(lambda x: (1 - cdf(x)) ** 2, y, high, epsabs=1e-10, limit=500, points=[0.0])[0]
    return below + above


def mixture(seed, num_members, num_points, signed=False):
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(num_members, num_points))
    stds = rng.uniform(0.3, 1.5, size=(num_members, num_points))
    weight = rng.uniform(0.5, 1.5, size=num_members)
    weight[::4] *= -1 if signed else 1
    return means, stds, rng.normal(size=num_points), weight / weight.sum()


def test_normal():
    mean, std, y = np.array([0.3, -2.0, 1.0]), np.array([1.0, 3.0, 0.2]), np.array([1.0, 4.0, 1.0])
    expected = [
        crps_by_integration(norm(m, s).cdf, t) for m, s, t in zip(mean, std, y, strict=True)
    ]
    np.testing.assert_allclose(crps_normal(mean, std, y), expected, atol=1e-7)


def test_a_point_forecast_scores_its_absolute_error():
    y, mean, zero = np.array([1.0, -2.0, 3.0]), np.array([0.0, 1.0, 3.0]), np.zeros(3)
    np.testing.assert_allclose(crps_normal(mean, zero, y), abs(y - mean))
    np.testing.assert_allclose(crps_sample(mean[None], y, fair=False), abs(y - mean))
    np.testing.assert_allclose(crps_normal_mixture(mean[None], zero[None], y), abs(y - mean))


def test_the_crps_of_draws_does_not_see_where_they_lie():
    draws = np.random.default_rng(0).normal(size=(1000, 1))
    found = crps_sample(1e12 + draws, np.array([1e12]))
    np.testing.assert_allclose(found, crps_sample(draws, np.zeros(1)), rtol=1e-3)


@pytest.mark.parametrize("signed", [False, True])
def test_mixture(signed):
    means, stds, y, weight = mixture(0, 9, 4, signed)
    expected = [
        crps_by_integration(lambda x, i=i: weight @ norm.cdf(x, means[:, i], stds[:, i]), y[i])
        for i in range(4)
    ]
    np.testing.assert_allclose(crps_normal_mixture(means, stds, y, weight), expected, atol=1e-7)


@pytest.mark.parametrize("signed", [False, True])
def test_the_grid_gives_the_pair_sum_to_rounding(signed):
    means, stds, _, weight = mixture(1, 1500, 1, signed)
    means, stds = means[:, 0], stds[:, 0]
    num_nodes = int(crps._num_nodes(means, stds))
    assert num_nodes < 1500  # so that the public function would choose the grid
    on_grid = crps._spread_on_grid(means, stds, weight, num_nodes)
    assert on_grid == pytest.approx(crps._spread_of_pairs(means, stds, weight), rel=1e-12)


def test_blocks_do_not_change_the_result(monkeypatch):
    for num_members in (30, 1500):  # pairs, grid
        means, stds, y, weight = mixture(2, num_members, 2)
        whole = crps_normal_mixture(means, stds, y, weight)
        monkeypatch.setattr(crps, "MAX_PAIRS", 70)
        np.testing.assert_allclose(crps_normal_mixture(means, stds, y, weight), whole)
        monkeypatch.undo()


def test_a_mixture_of_equals_is_a_normal():
    mean, std, y = np.array([0.5, 1.0]), np.array([1.0, 2.0]), np.array([0.0, 3.0])
    same = crps_normal_mixture(np.tile(mean, (500, 1)), np.tile(std, (500, 1)), y)
    np.testing.assert_allclose(same, crps_normal(mean, std, y), rtol=1e-12)


def test_a_mixture_of_points_is_a_sample():
    means, _, y, weight = mixture(3, 20, 3)
    expected = crps_sample(means, y, weight, fair=False)
    np.testing.assert_allclose(crps_normal_mixture(means, np.zeros((20, 1)), y, weight), expected)


def test_a_std_may_be_shared_by_the_points():
    means, stds, y, _ = mixture(4, 5, 3)
    shared = crps_normal_mixture(means, stds[:, :1], y)
    full = crps_normal_mixture(means, np.repeat(stds[:, :1], 3, axis=1), y)
    np.testing.assert_array_equal(shared, full)


@pytest.mark.parametrize("fair", [False, True])
def test_sample_by_brute_force(fair):
    rng = np.random.default_rng(5)
    draws, y = rng.normal(size=(12, 3, 2)).round(1), rng.normal(size=(3, 2))  # with ties
    distance = abs(draws[:, None] - draws).sum(axis=(0, 1)) / (12 * 11 if fair else 12**2)
    expected = abs(draws - y).mean(axis=0) - distance / 2
    np.testing.assert_allclose(crps_sample(draws, y, fair=fair), expected)


def test_sample_by_integration():
    draws = np.array([-1.0, 0.5, 2.0])
    steps = crps_by_integration(lambda x: (draws <= x).mean(), 0.2, -3, 4)
    score = crps_sample(draws[:, None], np.array([0.2]), fair=False)
    np.testing.assert_allclose(score, [steps], atol=1e-4)  # quad meets jumps


def test_weights_count_like_repeated_draws():
    rng = np.random.default_rng(6)
    draws, y, times = rng.normal(size=(8, 3)), rng.normal(size=3), rng.integers(0, 4, size=8)
    repeated = crps_sample(np.repeat(draws, times, axis=0), y, fair=False)
    weighted = crps_sample(draws, y, times.astype(float), fair=False)
    np.testing.assert_allclose(weighted, repeated)


@pytest.mark.parametrize("weight", [None, np.array([3.0, 1.0, 2.0])])
def test_the_fair_score_is_unbiased(weight):
    y = np.full(20_000, 0.4)
    draws = np.random.default_rng(7).normal(size=(3, 20_000))
    exact = crps_normal(np.zeros(1), np.ones(1), y[:1])[0]
    assert z_score(crps_sample(draws, y, weight), exact) < 4.5
    assert z_score(crps_sample(draws, y, weight, fair=False), exact) > 8  # planted: not fair


def test_units():
    means, stds, y, weight = mixture(8, 10, 3)
    score = crps_normal_mixture(means, stds, y, weight)
    scaled = crps_normal_mixture(7 * means + 5, 7 * stds, 7 * y + 5, weight)
    np.testing.assert_allclose(scaled, 7 * score)


def test_refuses_bad_input():
    means, stds, y, weight = mixture(9, 4, 3)
    with pytest.raises(ValueError, match="standard deviations"):
        crps_normal(means[0], -stds[0], y)
    with pytest.raises(ValueError, match="not finite"):
        crps_normal_mixture(means, stds * np.nan, y)
    with pytest.raises(ValueError, match="not finite"):
        crps_sample(means, y * np.inf)
    with pytest.raises(ValueError, match="fair"):
        crps_sample(means[:1], y)
    with pytest.raises(ValueError, match="fair"):
        crps_sample(means, y, np.array([1.0, 1.0, -0.5, 1.0]))
    with pytest.raises(ValueError, match="sum > 0"):
        crps_sample(means, y, -weight)
    for wrong in (
        lambda: crps_sample(means, y[:2]),
        lambda: crps_normal_mixture(means, stds, y[:2]),
    ):
        with pytest.raises(REFUSED):
            wrong()
