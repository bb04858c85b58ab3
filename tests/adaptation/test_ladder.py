"""The powers of a ladder are placed where exchanges are refused equally often."""

import numpy as np

from credence.adaptation.ladder import first_powers, placed_anew, rung_metrics


def test_powers_divide_a_known_barrier_evenly() -> None:
    """A barrier of 6 t^(1/3), of which a pair's rate of refusal is the difference."""
    powers = first_powers(13)
    for _ in range(5):
        refused = np.diff(6 * powers ** (1 / 3))
        powers = placed_anew(powers, np.minimum(refused, 1))
    np.testing.assert_allclose(np.diff(6 * powers ** (1 / 3)), 0.5, rtol=0.02)
    assert powers[0] == 0
    assert powers[-1] == 1
    assert np.abs(np.diff(6 * first_powers(13) ** (1 / 3)) - 0.5).max() > 0.2, "they were not"


def test_powers_that_are_right_stay() -> None:
    powers = first_powers(9)
    np.testing.assert_allclose(placed_anew(powers, np.full(8, 0.4)), powers, atol=1e-12)


def test_metrics_lie_between_prior_and_posterior_by_their_precisions() -> None:
    """Those of a regression with one weight: a precision grows by its share of the data."""
    prior, posterior = np.array([4.0, 1.0]), np.array([0.5, 1.0])
    found = rung_metrics(prior, posterior, np.array([0.0, 0.25, 1.0]))
    np.testing.assert_allclose(found, [[4, 1], [1 / (0.75 / 4 + 0.25 * 2), 1], [0.5, 1]])
