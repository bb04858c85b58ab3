"""Means and standard deviations at any offset and in any unit, and targets that are refused."""

from fractions import Fraction

import numpy as np
import pytest

from credence.datasets.scales import mean_and_std, scale_of_inputs, scale_of_target
from credence.errors import InputError

SPREAD = np.random.default_rng(0).normal(size=(200, 1))


@pytest.mark.parametrize("offset", [0.0, 1e8, -1e12, 1e15])
@pytest.mark.parametrize("unit", [1e-300, 1e-30, 1.0, 1e30, 1e290])
def test_an_offset_costs_no_digits(offset: float, unit: float) -> None:
    """The moments of the rounded values, against fractions."""
    x = (offset + SPREAD) * unit
    mean, std = (float(found[0]) for found in mean_and_std(x))
    values = [Fraction(value) for value in x[:, 0].tolist()]
    exact_mean = sum(values) / len(values)
    exact_variance = sum((value - exact_mean) ** 2 for value in values) / len(values)
    step = np.spacing(max(abs(mean), std))
    assert abs(Fraction(mean) - exact_mean) <= 2 * step
    error = Fraction(std) ** 2 / exact_variance - 1
    assert abs(error) <= 1e-14 + 2 * (step / std) ** 2  # a mean that is wrong by a step


def test_rows_of_no_weight_do_not_count_whatever_they_hold() -> None:
    x = np.array([[1e300], [1.0], [2.0], [5.0]])
    weight = np.array([0.0, 1.0, 2.0, 1.0])
    expected = mean_and_std(np.array([[1.0], [2.0], [2.0], [5.0]]))
    np.testing.assert_allclose(mean_and_std(x, weight), expected, rtol=1e-15)


@pytest.mark.parametrize("size", [1e-200, 1e-30, 1e30, 1e300])
def test_only_the_ratios_of_weights_matter(size: float) -> None:
    weight = np.random.default_rng(1).random(len(SPREAD))
    expected = mean_and_std(SPREAD, weight)
    np.testing.assert_allclose(mean_and_std(SPREAD, size * weight), expected, rtol=1e-13)


@pytest.mark.parametrize("constant", [0.0, 0.1, -1e30, 1e300])
def test_a_constant_has_no_spread(constant: float) -> None:
    mean, std = mean_and_std(np.full((7, 1), constant))
    assert mean[0] == constant
    assert std[0] == 0


def test_inputs_that_only_rounding_tells_apart_count_as_constant() -> None:
    x = np.array([[0.1 + 0.2, 5.0, 1e30], [0.3, 5.0, 1e30 + 2e14], [0.3, 5.0, 1e30]])
    mean, std = mean_and_std(x)
    scale = scale_of_inputs(mean, std)
    assert scale[:2].tolist() == [1, 1]
    assert np.abs((x - mean) / scale).max() < 1e-2


@pytest.mark.parametrize(
    ("y", "sentence"),
    [
        (np.full(5, 2.0), r"constant \(all 5 values are 2\)"),
        (1e16 + 2.0 * np.arange(9), "nearly constant: .* from 10000000000000008 by 5.16"),
        (1e30 + SPREAD[:, 0], "constant"),
        (1e200 * SPREAD[:, 0], "too large values .* Change their unit"),
        (1e-200 * SPREAD[:, 0], "too small values .* Change their unit"),
        (np.array([1.0, np.nan]), "missing or infinite"),
    ],
)
def test_a_target_that_numbers_cannot_carry_is_refused(y: np.ndarray, sentence: str) -> None:
    with pytest.raises(InputError, match=f"^The price (is|has) .*{sentence}"):
        scale_of_target("The price", y)
    scale_of_target("The price", 1e12 + SPREAD[:, 0])  # four decimals are left
