"""What CES says of its emulator, on laws whose distance and tail index are known."""

import json
from dataclasses import replace

import numpy as np
import pytest

from credence.ensembles.diagnostics import hellinger, pareto_smoothed
from credence.ensembles.diagnostics.convergence import assess
from credence.ensembles.findings import with_findings
from credence.methods.surrogate.emulation import Emulation, emulation

RNG = np.random.default_rng(0)


def scalars(spread: float, *, is_exact: bool, num_draws: int = 4000) -> dict[str, np.ndarray]:
    """Posterior N(0, 1), emulated N(0, spread^2), up to constants."""
    z = RNG.normal(size=(2, num_draws)) * (1 if is_exact else spread)
    found = {
        "log_density": 7 - 0.5 * z**2,
        "log_surrogate": -3 - 0.5 * z**2 / spread**2,
        "first_acceptance_rate": np.full(z.shape, 0.8),
        "emulator_error": np.full(z.shape, 0.5),
        "emulator_error_share": np.full(z.shape, 0.1),
    }
    return found | ({"acceptance_rate": np.full(z.shape, 0.6)} if is_exact else {})


@pytest.mark.parametrize("is_exact", [True, False])
def test_distance_is_that_of_two_gaussians(is_exact: bool) -> None:
    """d^2 = 1 - sqrt(2 s / (1 + s^2)), from draws of either."""
    found = emulation(scalars(0.7, is_exact=is_exact))
    assert found is not None
    assert found.hellinger == pytest.approx((1 - (1.4 / 1.49) ** 0.5) ** 0.5, rel=0.15)
    assert (found.acceptance_rate is not None) == is_exact
    assert (found.pareto_k is None) == is_exact
    assert found.held_out_error == 0.5


def test_error_is_the_spread_of_the_difference() -> None:
    """Var(c z^2) = 2 c^2, c = (1 / s^2 - 1) / 2."""
    found = emulation(scalars(0.7, is_exact=True))
    assert found is not None
    exact = 2**0.5 * 0.5 * (1 / 0.49 - 1)
    assert found.error == pytest.approx(exact, rel=4.5 * (15 / 8000) ** 0.5)
    assert found.correlation == pytest.approx(1)


def test_narrow_emulators_are_refuted_and_near_ones_not() -> None:
    """The tail index of N(0, 1) over N(0, s^2) is 1 - s^2."""
    narrow, near = (emulation(scalars(s, is_exact=False)) for s in (0.3, 0.95))
    assert narrow is not None
    assert near is not None
    assert narrow.pareto_k is not None
    assert near.pareto_k is not None
    assert narrow.pareto_k > 0.7 > near.pareto_k


def test_no_verdict_relies_on_an_emulator_that_is_refuted() -> None:
    """Chains that mix well, on the emulator's law; k-hat is read back from a saved run, too."""
    functions = RNG.normal(size=(4, 1000, 3))
    for spread, relied_on in ((0.3, False), (0.95, True)):
        found = emulation(scalars(spread, is_exact=False))
        assert found is not None
        again = Emulation.read(json.loads(json.dumps(found.entries())), found.arrays())
        for each in (found.judged(), again):
            verdict = with_findings(assess(functions), [each])
            assert verdict.converged is relied_on
            assert ("do not take them for the posterior's" in verdict.reason) is not relied_on
    exact = emulation(scalars(0.3, is_exact=True))
    assert exact is not None
    assert exact.judged().settled is None


def test_no_verdict_relies_on_an_emulator_that_time_kept_from_learning() -> None:
    functions = RNG.normal(size=(4, 1000, 3))
    near = emulation(scalars(0.95, is_exact=False))
    assert near is not None
    starved = replace(near, chosen={"trained_epochs": 7})
    again = Emulation.read(json.loads(json.dumps(starved.entries())), starved.arrays())
    for each in (starved.judged(), again):
        verdict = with_findings(assess(functions), [each])
        assert not verdict.converged
        assert "Time ended the emulator's training after 7 epochs" in verdict.reason
    exact = emulation(scalars(0.3, is_exact=True))
    assert exact is not None
    assert replace(exact, chosen={"trained_epochs": 7}).judged().settled is None


def test_draws_without_a_true_density_are_left_out() -> None:
    full = scalars(0.9, is_exact=False)
    some = {
        **full,
        "log_density": np.where(np.arange(4000) % 100 == 0, full["log_density"], np.nan),
    }
    found = emulation(some)
    assert found is not None
    assert found.true.shape == found.emulated.shape == (2, 40)
    assert emulation({**full, "log_density": np.full((2, 4000), np.nan)}) is None


def test_other_methods_have_none() -> None:
    assert emulation({"acceptance_rate": np.ones((2, 5))}) is None


def test_numbers_are_json_even_where_they_are_infinite() -> None:
    hopeless = scalars(0.7, is_exact=False, num_draws=100)
    hopeless["log_surrogate"] = -1e6 * np.arange(200.0).reshape(2, 100)
    found = emulation(hopeless)
    assert found is not None
    assert json.loads(json.dumps(found.numbers(), allow_nan=False))["pareto_k"] == "inf"


def test_one_draw_with_all_the_weight_has_no_moments() -> None:
    """Here the fit of the tail finds equal values, all of them zero."""
    found = pareto_smoothed(np.append(0.0, -1e6 * np.ones(99)))
    assert found.pareto_k == np.inf
    assert found.weights[0] == pytest.approx(1)


def test_equal_weights_leave_nothing_to_mistrust() -> None:
    found = pareto_smoothed(np.full(50, 3.0))
    assert found.pareto_k == -np.inf
    np.testing.assert_allclose(found.weights, 1 / 50)
    assert hellinger(np.full(50, 3.0)) == pytest.approx(0)
