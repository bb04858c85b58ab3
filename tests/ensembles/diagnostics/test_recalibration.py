"""Conformal levels and temperatures against their laws."""

import numpy as np
import pytest
from scipy import stats
from tools.exact import assert_mean
from tools.labels import draw_labels

from credence.ensembles.diagnostics.recalibration import (
    LEAST_LEVEL,
    MOST_KNOTS,
    best_temperature,
    checked,
    closed,
    conformal_levels,
    from_pit,
    from_probabilities,
    opened,
    tempered,
)


def held(num_rows: int, *coverages: float) -> list[np.ndarray]:
    """Whether a new row's transform lies between the levels; the model is wrong: normal with half
    the spread, and its mean is off by .3."""
    z = np.random.default_rng(num_rows).normal(size=(8000, num_rows + 1))
    pit = stats.norm.cdf(2 * (z - 0.3))
    found, new = [from_pit(row[:-1]) for row in pit], pit[:, -1]
    levels = (np.transpose([conformal_levels(each, wanted) for each in found])
              for wanted in coverages)  # fmt: skip
    return [((low <= new) & (new <= high)).astype(float) for low, high in levels]


@pytest.mark.parametrize(("num_rows", "coverage"), [(39, 0.95), (199, 0.9), (99, 0.5)])
def test_conformal_intervals_hold_whatever_the_model(num_rows: int, coverage: float) -> None:
    """Probability of coverage is exactly 1 - 2 k / (n + 1), k the place of the lower end; ends that
    are three places off are caught."""
    right, planted = held(num_rows, coverage, coverage - 6 / (num_rows + 1))
    assert_mean(right, coverage, 0.01)
    with pytest.raises(AssertionError, match="standard errors off"):
        assert_mean(planted, coverage, 0.01)


def test_rows_that_are_too_few_give_the_widest_interval() -> None:
    pit = np.linspace(0.1, 0.9, 38)
    assert conformal_levels(from_pit(pit), 0.95) == (0, 1)
    assert closed((0, 1)) == (LEAST_LEVEL, 1 - LEAST_LEVEL)
    assert opened(np.ones(2), 0).tolist() == [-np.inf] * 2
    assert opened(np.ones(2), 1).tolist() == [np.inf] * 2
    assert opened(np.ones(2), 0.3).tolist() == [1, 1]
    assert conformal_levels(from_pit(np.linspace(0.1, 0.9, 39)), 0.95) == (0.1, 0.9)


def test_truths_that_the_model_thought_impossible_open_the_interval() -> None:
    pit = np.append(np.linspace(0.1, 0.9, 180), np.ones(20))
    low, high = conformal_levels(from_pit(pit), 0.9)
    assert 0.1 < low < 0.2
    assert high == 1


def test_of_many_rows_some_are_kept_and_intervals_are_rather_wider() -> None:
    pit = np.random.default_rng(0).uniform(size=50_001)
    found = from_pit(pit)
    assert len(found["pit"]) == MOST_KNOTS
    for coverage in (0.5, 0.9, 0.95, 0.99):
        low, high = conformal_levels(found, coverage)
        place = round(50_002 * (1 - coverage) / 2 - 0.5)
        exact = np.sort(pit)[[place - 1, 50_001 - place]]
        assert exact[0] - 0.002 < low <= exact[0]
        assert exact[1] <= high < exact[1] + 0.002


def test_rows_that_stand_for_several_count_as_often() -> None:
    """Transforms of new rows are uniform. Those of calibration rows have density 1/2 + u, and rows
    the weight that undoes it: coverage is as it should be, half a row more at each end. Without
    weights it is .875, which is caught."""
    uniform = np.random.default_rng(3).uniform(size=(400, 1999))
    pit = (np.sqrt(1 + 8 * uniform) - 1) / 2

    def covered(weight: np.ndarray | None) -> np.ndarray:
        weights = [None] * len(pit) if weight is None else weight
        found = map(lambda row, each: from_pit(row, weight=each), pit, weights)
        return np.array([np.diff(conformal_levels(each, 0.9))[0] for each in found])

    assert_mean(covered(1 / (0.5 + pit)), 0.9 + 1 / 2000, 0.001)
    with pytest.raises(AssertionError, match="standard errors off"):
        assert_mean(covered(None), 0.9 + 1 / 2000, 0.001)


def test_only_ratios_of_weights_count() -> None:
    pit = np.random.default_rng(4).uniform(size=300)
    weight = np.where(np.arange(300) < 100, 0.0, 7.0)
    assert from_pit(pit, weight=weight) == from_pit(pit[100:])
    assert checked(from_pit(pit, weight=pit + 0.1), is_classifier=False)


def test_the_temperature_undoes_what_made_probabilities_too_sure() -> None:
    """Labels are drawn from p; the model says p sharpened by a factor 3, so T = 3 is the truth."""
    rng = np.random.default_rng(0)
    truth = tempered(rng.dirichlet(np.ones(4), size=60_000), 0.7)
    y = draw_labels(rng, truth)
    sharp = tempered(truth, 1 / 3)
    found = best_temperature(sharp, y)
    halves = [best_temperature(sharp[i::20], y[i::20]) for i in range(20)]
    error = np.std(halves, ddof=1) / 20**0.5
    assert abs(found - 3) < 4.5 * error < 0.2
    assert abs(best_temperature(truth, y) - 1) < 4.5 * error
    np.testing.assert_allclose(tempered(sharp, 3.0), truth, atol=1e-12)


def test_a_temperature_knows_rows_that_stand_for_several() -> None:
    rng = np.random.default_rng(5)
    probabilities = rng.dirichlet(np.ones(3), size=40)
    y = draw_labels(rng, tempered(probabilities, 0.6))
    weight = np.array([0.0, 1.0, 4.0, 2.0] * 10)
    many = np.repeat(np.arange(40), weight.astype(int))
    found = best_temperature(probabilities, y, weight)
    np.testing.assert_allclose(found, best_temperature(probabilities[many], y[many]), rtol=1e-4)
    assert abs(found / best_temperature(probabilities, y) - 1) > 0.01


def test_temperatures_stay_finite() -> None:
    certain, likely = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[0.9, 0.1], [0.1, 0.9]])
    assert best_temperature(likely, np.array([0, 1])) < 0.1
    assert best_temperature(certain, np.array([1, 0])) > 15
    np.testing.assert_allclose(tempered(certain, 1.0), certain, atol=1e-300)


def test_damaged_files_are_refused() -> None:
    good = from_pit(np.linspace(0.1, 0.9, 9))
    assert checked(good, is_classifier=False) == good
    wrong = [
        {"num_rows": 9},
        good | {"num_rows": 10},
        good | {"pit": good["pit"][:-1]},
        good | {"pit": [2.0, *good["pit"][1:]]},
        good | {"pit": good["pit"][::-1]},
    ]
    for each in wrong:
        with pytest.raises(ValueError, match=r"places|values"):
            checked(each, is_classifier=False)  # type: ignore[arg-type]
    labels = from_probabilities(np.array([[0.7, 0.3]] * 10), np.array([0] * 7 + [1] * 3))
    assert checked(labels, is_classifier=True) == labels
    for temperature in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(ValueError, match="temperature"):
            checked({"num_rows": 9, "temperature": temperature}, is_classifier=True)
