"""Predictions of a + b y are a + b times predictions of y, to the resolution of float64."""

import copy
import io
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest

from credence import BNNRegressor
from credence.errors import InputError
from credence.methods import DeepEnsemble, Training
from credence.preprocessing import TargetScaler
from credence.runs.evaluation import task_scores
from credence.runs.prediction import prediction_table

QUICK = DeepEnsemble(num_members=3, training=Training(max_epochs=100, learning_rate=0.03))
RNG = np.random.default_rng(0)
X = pd.DataFrame({"x": RNG.uniform(-2, 2, 60).round(3)})
Y = (X["x"].to_numpy() + RNG.normal(0, 0.3, 60)).round(3)
LOG_PROB_SLOPE = 50
"""Nats per standard deviation of y: noise of 0.3 leaves |y - mean| / 0.3^2 < 50 at 4 sd."""


class Unit(NamedTuple):
    """Targets a + b y in place of y."""

    a: float
    b: float

    @property
    def step(self) -> float:
        """Distance of neighbouring numbers where the targets lie."""
        return float(np.spacing(abs(self.a) + 4 * self.b))


UNITS = [
    Unit(sign * offset * size, size)
    for offset, sign in ((0, 1), (5e6, 1), (1e8, -1), (1e12, 1))
    for size in (1e-46, 1e-30, 1.0, 1e30, 1e39, 1e100)
] + [
    Unit(size * RNG.normal() * 10.0**power, size)
    for size, power in zip(10.0 ** RNG.uniform(-30, 30, 9), RNG.uniform(0, 12, 9), strict=True)
]


@pytest.fixture(scope="module")
def model() -> BNNRegressor:
    return BNNRegressor(hidden=(3,), method=QUICK, random_state=0).fit(X, Y)


@pytest.fixture(scope="module")
def plain_places(model: BNNRegressor) -> dict[str, np.ndarray]:
    return places(model)


@pytest.fixture(scope="module")
def plain_widths(model: BNNRegressor) -> dict[str, np.ndarray]:
    return widths(model)


def in_unit(model: BNNRegressor, unit: Unit) -> BNNRegressor:
    """The same networks, as a fit of a + b y would have them."""
    moved = copy.copy(model)
    moved.target_scaler_ = TargetScaler.fit(unit.a + unit.b * Y)
    return moved


def places(model: BNNRegressor) -> dict[str, np.ndarray]:
    """Whatever moves with an offset."""
    lower, upper = model.predict_interval(X, 0.5)
    return {
        "mean": model.predict(X),
        "lower": lower,
        "upper": upper,
        "quantiles": model.predict_quantiles(X),
        "draws": model.sample_y(X, 3, random_state=0),
        "functions": model.sample_functions(X),
    }


def widths(model: BNNRegressor) -> dict[str, np.ndarray]:
    """Whatever a change of scale changes, and an offset does not."""
    std = model.predict(X, return_std=True)[1]
    return {"std": std, **model.decompose_uncertainty(X)}


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: f"{unit.a:.1e}+{unit.b:.1e}y")
def test_predictions_are_in_any_unit(model, plain_places, plain_widths, unit: Unit) -> None:
    moved = in_unit(model, unit)
    # Rounding the targets moves their mean and standard deviation by half a step, and once more.
    for name, found in places(moved).items():
        plain = plain_places[name]
        assert found.dtype == np.float64, name
        allowed = (3 + np.abs(plain)) * unit.step
        assert (np.abs((found - unit.a) - unit.b * plain) <= allowed).all(), name
    for name, found in widths(moved).items():
        assert found.dtype == np.float64, name
        expected = unit.b * plain_widths[name]
        np.testing.assert_allclose(found, expected, rtol=4 * unit.step / unit.b)
    lower, upper = moved.predict_interval(X, 0.5)
    assert (lower < upper).all()


@pytest.mark.parametrize("unit", UNITS[::4], ids=lambda unit: f"{unit.a:.1e}+{unit.b:.1e}y")
def test_scores_and_files_are_in_any_unit(model: BNNRegressor, unit: Unit) -> None:
    """What runs write: held-out rows, the numbers of metrics.json and the table of predictions."""
    moved, rounding = in_unit(model, unit), 4 * unit.step / unit.b + 2.0**-23
    plain_scores = model.scores(X, Y)
    found_scores = moved.scores(X, unit.a + unit.b * Y)
    plain, found = plain_scores.rows, found_scores.rows
    assert {array.dtype for array in found.values()} == {np.dtype(np.float64)}
    shift = found["log_prob"] + np.log(unit.b) - plain["log_prob"]
    assert np.abs(shift).max() < LOG_PROB_SLOPE * 4 * rounding
    np.testing.assert_allclose(found["pit"], plain["pit"], atol=4 * 4 * rounding)
    np.testing.assert_allclose(found["crps"] / unit.b, plain["crps"], atol=4 * 4 * rounding)
    in_units, expected = task_scores(moved, found_scores), task_scores(model, plain_scores)
    for name in ("rmse", "crps"):
        assert in_units[name] / unit.b == pytest.approx(expected[name], rel=100 * rounding)
    assert np.isfinite(list(in_units.values())).all()

    table = prediction_table(moved, X, 0.95).drop(columns="outside")
    read = pd.read_csv(io.StringIO(table.to_csv(index=False)), dtype=str).astype(float)
    np.testing.assert_array_equal(read["mean"], found["mean"])
    np.testing.assert_array_equal(read["lower_95"], found["lower_95"])


def test_a_fit_at_an_offset_is_the_fit_without() -> None:
    """Inputs and targets on a grid that a binary offset and unit keep: bit for bit the same."""
    x = np.arange(-32, 32).reshape(-1, 1) / 64 + 1 / 128
    noise = np.where(np.arange(64) % 2, 1, -1) / 8
    y = x[:, 0] + noise  # both have mean 0, exactly
    fit = BNNRegressor(hidden=(3,), method=QUICK, random_state=0).fit
    plain = copy.copy(fit(x, y)).predict_quantiles(x)
    a, b = 2.0**-73, 2.0**-100
    found = fit(2.0**30 + x, a + b * y).predict_quantiles(2.0**30 + x)
    assert np.abs((found - a) - b * plain).max() <= 2 * np.spacing(a)


def test_without_standardising_single_precision_must_carry_the_target() -> None:
    def fit(y: np.ndarray) -> BNNRegressor:
        settings = {"hidden": (), "method": QUICK, "random_state": 0}
        return BNNRegressor(standardize_target=False, **settings).fit(X, y)

    for y in (1e6 + Y, 1e20 * Y, 1e-20 * Y):
        with pytest.raises(InputError, match="leave standardize_target at True"):
            fit(y)
    assert fit(100 + Y).target_scaler_ == TargetScaler((0.0,), (1.0,))


@pytest.mark.parametrize("offset", [1e15, 1e16, 1e30])
def test_a_target_without_resolution_is_refused(offset: float) -> None:
    with pytest.raises(InputError, match="constant"):
        BNNRegressor(hidden=(), method=QUICK).fit(X, offset + Y)
