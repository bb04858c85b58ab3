"""Reliability diagrams against hand-computed values, scikit-learn and a known calibration error."""

import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from tools.diagnostics_samples import REFUSED, random_probabilities, z_score

from credence.ensembles.diagnostics import ece, mce, reliability_diagram

ALL_SETTINGS = [
    {"bins": bins, "over": over, "num_bins": num_bins}
    for bins in ("equal_width", "equal_mass")
    for over in ("top_label", "all_classes")
    for num_bins in (1, 10)
]


def binary(probability_of_1):
    p = np.asarray(probability_of_1)
    return np.stack([1 - p, p], axis=-1)


def test_top_label_by_hand():
    p, labels = binary([0.7, 0.7, 0.1, 0.95]), np.array([1, 0, 0, 0])
    diagram = reliability_diagram(p, labels, num_bins=10)
    assert diagram.count.tolist() == [0, 0, 0, 0, 0, 0, 2, 0, 1, 1]
    np.testing.assert_allclose(diagram.confidence[[6, 8, 9]], [0.7, 0.9, 0.95])
    np.testing.assert_allclose(diagram.accuracy[[6, 8, 9]], [0.5, 1, 0])
    assert np.isnan(diagram.accuracy[:6]).all()
    assert diagram.ece == pytest.approx(0.5 * 0.2 + 0.25 * 0.1 + 0.25 * 0.95)
    assert diagram.mce == pytest.approx(0.95)


def test_all_classes_by_hand():
    p, labels = np.array([[0.6, 0.35, 0.05], [0.25, 0.7, 0.05]]), np.array([0, 2])
    diagram = reliability_diagram(p, labels, num_bins=2, over="all_classes")
    assert diagram.count.tolist() == [4, 2]
    np.testing.assert_allclose(diagram.confidence, [0.7 / 4, 0.65])
    np.testing.assert_allclose(diagram.accuracy, [1 / 4, 1 / 2])
    assert diagram.ece == pytest.approx(4 / 6 * 0.075 + 2 / 6 * 0.15)


def test_bins_are_open_below_and_closed_above():
    p = binary([0.5, 0.75, 1.0, 0.50001])
    labels = np.ones(4, dtype=int)
    assert reliability_diagram(p, labels, num_bins=4).count.tolist() == [0, 1, 2, 1]


def test_equal_width_agrees_with_scikit_learn():
    p, labels, _ = random_probabilities(0)
    diagram = reliability_diagram(p, labels, num_bins=12)
    accuracy, confidence = calibration_curve(p.argmax(axis=1) == labels, p.max(axis=1), n_bins=12)
    used = diagram.count > 0
    np.testing.assert_allclose(diagram.accuracy[used], accuracy)
    np.testing.assert_allclose(diagram.confidence[used], confidence)


def test_equal_mass_divides_the_points_evenly():
    p, labels, weight = random_probabilities(1)
    for num_points in (10, 60, 200):
        some = reliability_diagram(
            p[:num_points], labels[:num_points], num_bins=10, bins="equal_mass"
        )
        assert (some.count == num_points / 10).all()
    weighted = reliability_diagram(p, labels, weight, num_bins=10, bins="equal_mass")
    heaviest = weight.max() / weight.sum()
    np.testing.assert_allclose(weighted.share, 0.1, atol=heaviest)


def test_equal_mass_keeps_ties_together():
    p, labels = binary([0.9] * 8 + [1.0] * 2), np.ones(10, dtype=int)
    diagram = reliability_diagram(p, labels, num_bins=5, bins="equal_mass")
    np.testing.assert_allclose(diagram.edges, [0, 0.9, 1])
    assert diagram.count.tolist() == [8, 2]
    certain = reliability_diagram(binary([1.0, 0.0]), np.array([1, 0]), bins="equal_mass")
    assert certain.count.tolist() == [2]


@pytest.mark.parametrize("settings", ALL_SETTINGS)
def test_weights_count_like_repeated_points(settings):
    p, labels, _ = random_probabilities(2)
    times = np.random.default_rng(2).integers(0, 4, size=len(labels))
    repeated = reliability_diagram(np.repeat(p, times, 0), np.repeat(labels, times), **settings)
    weighted = reliability_diagram(p, labels, times.astype(float), **settings)
    np.testing.assert_allclose(weighted.share.sum(), 1)
    assert weighted.ece == pytest.approx(repeated.ece)
    assert weighted.mce == pytest.approx(repeated.mce)


@pytest.mark.parametrize("settings", ALL_SETTINGS)
def test_ece_and_mce_read_the_same_diagram(settings):
    p, labels, weight = random_probabilities(3)
    diagram = reliability_diagram(p, labels, weight, **settings)
    assert ece(p, labels, weight, **settings) == diagram.ece
    assert mce(p, labels, weight, **settings) == diagram.mce
    assert diagram.ece <= diagram.mce


@pytest.mark.parametrize("bins", ["equal_width", "equal_mass"])
def test_overconfidence_of_ten_percent_is_measured(bins):
    def replicate(rng, excess):
        confidence = rng.choice([0.7, 0.9], size=1000)
        labels = (rng.random(1000) < confidence - excess).astype(int)
        return ece(binary(confidence), labels, bins=bins)

    rng = np.random.default_rng(4)
    # |accuracy - confidence| is unbiased because its sign is certain: 10 % is 4.5 to 7 sd of a bin
    assert z_score([replicate(rng, 0.1) for _ in range(200)], 0.1) < 4.5
    assert z_score([replicate(rng, 0.08) for _ in range(200)], 0.1) > 8  # planted: 8 % only


def test_the_worst_bin_of_equal_mass_is_not_one_of_few_points():
    """Each gap of calibrated labels is chance; two points at .7 are at least .2 off."""
    rng = np.random.default_rng(6)
    confidence = np.concatenate([rng.uniform(0.9, 1, 2990), np.repeat([0.55, 0.65, 0.7, 0.8], 2)])

    def z_scores(excess):
        is_right = rng.random(len(confidence)) < confidence - excess
        found = reliability_diagram(binary(confidence), is_right.astype(int), bins="equal_mass")
        variance = found.confidence * (1 - found.confidence) / found.count
        gaps = abs(found.accuracy - found.confidence)
        assert mce(binary(confidence), is_right.astype(int), bins="equal_mass") == gaps.max()
        assert found.count.min() > 150
        return gaps / np.sqrt(variance)

    assert z_scores(0.0).max() < 4.5
    assert z_scores(0.1).max() > 8  # planted: too sure by ten per cent
    labels = (rng.random(len(confidence)) < confidence).astype(int)
    assert mce(binary(confidence), labels) >= 0.2


@pytest.mark.parametrize("settings", ALL_SETTINGS)
def test_one_row_and_absent_classes(settings):
    p = np.array([[0.0, 0.2, 0.8]])
    assert 0 <= ece(p, np.array([2]), **settings) <= 1
    assert ece(np.array([[0.0, 1.0]]), np.array([1]), **settings) == 0
    lumped = settings["over"] == "all_classes" and settings["num_bins"] == 1
    assert ece(np.array([[1.0, 0.0]]), np.array([1]), **settings) == (0 if lumped else 1)


def test_refuses_bad_input():
    p, labels, weight = random_probabilities(5)
    with pytest.raises(ValueError, match="not finite"):
        ece(np.where(p > 0.9, np.nan, p), labels)
    with pytest.raises(ValueError, match="not logits"):
        ece(2 * p, labels)
    with pytest.raises(ValueError, match="encode the labels"):
        ece(p, labels + 1)
    with pytest.raises(REFUSED):
        ece(p, labels[:-1])
    with pytest.raises(REFUSED):
        ece(p, labels.astype(float))
    with pytest.raises(REFUSED):
        ece(p[:, 0], labels)
    with pytest.raises(ValueError, match="sample_weight must be"):
        ece(p, labels, -weight)
    with pytest.raises(ValueError, match="is empty"):
        ece(p[:0], labels[:0])
    with pytest.raises(ValueError, match="num_bins must be"):
        ece(p, labels, num_bins=0)
    for wrong in ({"bins": "wide"}, {"over": "top"}):
        with pytest.raises(REFUSED):
            ece(p, labels, **wrong)
