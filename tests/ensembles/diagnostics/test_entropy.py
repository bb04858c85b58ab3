"""Splits of entropy and variance in cases with known answers."""

import numpy as np
import pytest

from credence.ensembles.diagnostics import decompose_entropy, decompose_variance


def test_members_that_agree_have_no_epistemic_part():
    p = np.tile([[[0.25, 0.75]]], (7, 1, 1))
    total, aleatoric, epistemic = decompose_entropy(p)
    np.testing.assert_allclose(total, -0.25 * np.log(0.25) - 0.75 * np.log(0.75))
    np.testing.assert_allclose(aleatoric, total)
    np.testing.assert_allclose(epistemic, 0, atol=1e-15)


def test_certain_members_that_disagree_have_only_an_epistemic_part():
    p = np.array([[[1.0, 0.0]], [[0.0, 1.0]]])
    total, aleatoric, epistemic = decompose_entropy(p)
    np.testing.assert_allclose([total, aleatoric, epistemic], [[np.log(2)], [0], [np.log(2)]])


def test_the_epistemic_part_is_the_mean_kullback_leibler_divergence_to_the_average():
    p = np.random.default_rng(0).dirichlet(np.ones(5), size=(6, 10))
    weight = np.arange(1.0, 7)
    average = np.average(p, axis=0, weights=weight)
    divergence = np.average((p * np.log(p / average)).sum(axis=-1), axis=0, weights=weight)
    np.testing.assert_allclose(decompose_entropy(p, weight).epistemic, divergence)


def test_signed_weights_stay_in_range():
    p = np.array([[[0.9, 0.1]], [[0.2, 0.8]]])
    total, aleatoric, epistemic = decompose_entropy(p, np.array([2.0, -1.0]))
    assert [*total, *aleatoric, *epistemic] == [0, 0, 0]  # the average (1.6, -0.6) becomes (1, 0)
    total, aleatoric, epistemic = decompose_entropy(p[:, :, ::-1].copy(), np.array([1.1, -0.1]))
    average = 1.1 * 0.1 - 0.1 * 0.8
    np.testing.assert_allclose(
        total, -average * np.log(average) - (1 - average) * np.log1p(-average)
    )
    assert (aleatoric <= total).all()
    np.testing.assert_allclose(aleatoric + epistemic, total)


def test_law_of_total_variance():
    rng = np.random.default_rng(1)
    means, variances = rng.normal(size=(5, 4, 2)), rng.uniform(size=(5, 4, 2))
    weight = rng.uniform(size=5)
    total, aleatoric, epistemic = decompose_variance(means, variances, weight)
    second_moment = np.average(means**2 + variances, axis=0, weights=weight)
    np.testing.assert_allclose(
        total, second_moment - np.average(means, axis=0, weights=weight) ** 2
    )
    np.testing.assert_allclose(aleatoric, np.average(variances, axis=0, weights=weight))
    np.testing.assert_allclose(decompose_variance(means, variances).epistemic, means.var(axis=0))
    np.testing.assert_allclose(aleatoric + epistemic, total)


def test_a_variance_may_be_shared_by_the_points():
    means = np.random.default_rng(2).normal(size=(5, 4))
    shared = decompose_variance(means, np.arange(5.0)[:, None])
    np.testing.assert_allclose(shared.aleatoric, np.full(4, 2.0))


def test_signed_weights_never_give_a_negative_variance():
    means, variances = np.array([[0.0], [10.0], [0.0]]), np.array([[1.0], [9.0], [1.0]])
    parts = decompose_variance(means, variances, np.array([1.0, -0.5, 0.5]))
    assert [float(part[0]) for part in parts] == [0, 0, 0]


def test_one_member_has_no_epistemic_part():
    p = np.random.default_rng(3).dirichlet(np.ones(3), size=(1, 4))
    np.testing.assert_allclose(decompose_entropy(p).epistemic, 0, atol=1e-15)
    np.testing.assert_array_equal(decompose_variance(np.ones((1, 2)), np.ones((1, 2))).epistemic, 0)


def test_refuses_bad_input():
    p = np.full((3, 2, 2), 0.5)
    with pytest.raises(ValueError, match="not finite"):
        decompose_entropy(p * np.nan)
    with pytest.raises(ValueError, match="not logits"):
        decompose_entropy(p * 3)
    with pytest.raises(ValueError, match="member_weight must be 3 numbers"):
        decompose_entropy(p, np.array([1.0, -2.0, 0.5]))
    with pytest.raises(ValueError, match="variances must be >= 0"):
        decompose_variance(p, -p)
