"""Intervals and probabilities made to hold on rows that no network has seen."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import credence
from credence import BNNClassifier, BNNRegressor
from credence.errors import InputError, StorageError
from credence.methods import HMC, Stacking, Training
from credence.methods.stacking.folds import FoldChains
from credence.models import Normal
from credence.runs.prediction import prediction_columns
from credence.storage import write_json

pytestmark = pytest.mark.filterwarnings(
    f"ignore::{ConvergenceWarning.__module__}.ConvergenceWarning"
)
CHAINS = HMC(num_draws=100, num_warmup=100, num_chains=2)
FOLDS = FoldChains(
    num_chains=4, num_folds=4, num_draws=20, num_warmup=40, training=Training(max_epochs=300)
)


def line(num_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """y = 10 x plus skewed noise of spread 1."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, (num_rows, 1))
    return x, 10 * x[:, 0] + rng.exponential(size=num_rows)


def labels(num_rows: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels whose log odds are x: nothing is certain."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, (num_rows, 1))
    return x, np.where(rng.uniform(size=num_rows) < 1 / (1 + np.exp(-x[:, 0])), "yes", "no")


@pytest.fixture(scope="module")
def too_sure() -> BNNRegressor:
    """A model that is told a noise of a quarter of what there is."""
    model = BNNRegressor(hidden=(), likelihood=Normal(0.02), method=CHAINS, random_state=0)
    return model.fit(*line(200, 0)).calibrate(*line(399, 1))


def test_conformal_intervals_hold_where_those_of_the_model_do_not(too_sure: BNNRegressor) -> None:
    """Given the calibration rows, coverage scatters by about sqrt(.9 .1 / 399) = .015."""
    x, y = line(4000, 2)
    lower, upper = too_sure.predict_interval(x, 0.9)
    assert np.mean((lower <= y) & (y <= upper)) < 0.5
    lower, upper = too_sure.predict_interval(x, 0.9, conformal=True)
    assert abs(np.mean((lower <= y) & (y <= upper)) - 0.9) < 4.5 * (0.09 / 399 + 0.09 / 4000) ** 0.5
    numbers = too_sure.scores(x, y).numbers
    assert numbers["coverage_95"] < 0.5
    assert numbers["coverage_95_conformal"] > 0.9
    assert too_sure.predict_interval([[0.0]], 0.999, conformal=True)[1] == np.inf


def test_without_unseen_rows_there_is_no_conformal_interval() -> None:
    model = BNNRegressor(hidden=(), method=CHAINS, random_state=0).fit(*line(40, 0))
    assert not model.is_recalibrated
    with pytest.raises(InputError, match=r"call calibrate\(X, y\)"):
        model.predict_interval([[0.0]], conformal=True)
    assert "coverage_95_conformal" not in model.scores(*line(40, 1)).numbers
    model.calibrate(*line(60, 2))
    assert model.is_recalibrated
    model.fit(*line(40, 3))
    assert not model.is_recalibrated, "of the last fit only"


def test_what_calibrate_found_is_saved(too_sure: BNNRegressor, tmp_path: Path) -> None:
    too_sure.save(tmp_path)
    loaded: Any = credence.load(tmp_path)
    interval = {"coverage": 0.9, "conformal": True}
    np.testing.assert_array_equal(
        loaded.predict_interval([[1.0]], **interval), too_sure.predict_interval([[1.0]], **interval)
    )
    document = json.loads((tmp_path / "estimator.json").read_text())
    document["recalibration"]["pit"][0] = 2.0
    del document["sha256"], document["format"]
    write_json(tmp_path / "estimator.json", document)
    with pytest.raises(StorageError, match="pit"):
        credence.load(tmp_path)


def test_a_stack_knows_its_left_out_rows(tmp_path: Path) -> None:
    """Normal noise is too wide or too narrow somewhere; the ends of the interval are asked for."""
    stacking = Stacking(models=("0/fan_in/normal",), chains=FOLDS)
    model = BNNRegressor(method=stacking, random_state=0).fit(*line(400, 0))
    x, y = line(4000, 1)
    lower, upper = model.predict_interval(x, 0.9, conformal=True)
    for is_outside in (y < lower, y > upper):
        error = (0.05 * 0.95 * (1 / 400 + 1 / 4000)) ** 0.5
        assert abs(is_outside.mean() - 0.05) < 4.5 * error
    lower, _ = model.predict_interval(x, 0.9)
    assert np.mean(y < lower) < 0.02, "nothing of an exponential law is far below its mean"
    columns = prediction_columns(model, 0.9)
    ends = ["lower_90", "upper_90", "lower_90_conformal", "upper_90_conformal"]
    assert columns == ["mean", "std", *ends, "outside"]
    model.save(tmp_path)
    loaded: Any = credence.load(tmp_path)
    assert loaded.recalibration_ == model.recalibration_
    assert loaded.recalibration_["num_rows"] == 400


def test_rows_without_weight_are_not_there_and_others_count_by_theirs() -> None:
    """They are fitted by no network, weigh no model, and scale no column."""
    x, y = line(60, 0)
    weight, is_odd = np.tile([1.0, 0.0, 2.0, 0.0], 15), np.arange(60) % 2 == 1
    x[is_odd], y[is_odd] = 1e6, 1e6
    stacking = Stacking(models=("0/fan_in/normal",), chains=FOLDS)
    model = BNNRegressor(method=stacking, random_state=0).fit(x, y, sample_weight=weight)
    without = BNNRegressor(method=stacking, random_state=0)
    without.fit(x[~is_odd], y[~is_odd], sample_weight=weight[~is_odd])
    assert model.recalibration_["num_rows"] == 30
    np.testing.assert_array_equal(model.predict(x[~is_odd]), without.predict(x[~is_odd]))
    assert model.is_outside(x)[is_odd].all()
    assert model.left_out_ is not None
    places = model.left_out_["row"]
    assert sorted(places) == list(range(0, 60, 2)), "among all rows of the fit"
    np.testing.assert_allclose(y[places], model.left_out_["y"], rtol=1e-5)
    np.testing.assert_allclose(np.diff(model.left_out_["weight"]), np.diff(weight[places]))
    steps = np.diff(model.recalibration_["places"])
    np.testing.assert_allclose(sorted(set(steps.round(6))), [2 / 3, 4 / 3], rtol=1e-5)


def test_probabilities_are_tempered(tmp_path: Path) -> None:
    """A network that is told of each row thirty times is far too sure."""
    x, y = labels(60, 0)
    model = BNNClassifier(hidden=(16,), prior="unit", method=CHAINS, random_state=0)
    model.fit(x, y, sample_weight=np.full(60, 30.0)).calibrate(*labels(2000, 1))
    assert model.recalibration_["temperature"] > 1.5
    x, y = labels(2000, 2)
    raw, tempered = model.predict_proba(x), model.predict_proba(x, tempered=True)
    np.testing.assert_array_equal(raw.argmax(axis=1), tempered.argmax(axis=1))
    own = np.searchsorted(model.classes_, y)
    gain = np.log(tempered[np.arange(2000), own]) - np.log(raw[np.arange(2000), own])
    assert gain.mean() > 3 * gain.std() / 2000**0.5
    numbers = model.scores(x, y).numbers
    assert numbers["nll_tempered"] == pytest.approx(numbers["nll"] - gain.mean(), rel=1e-6)
    assert numbers["ece_tempered"] < numbers["ece"]
    model.save(tmp_path)
    loaded: Any = credence.load(tmp_path)
    np.testing.assert_array_equal(loaded.predict_proba(x, tempered=True), tempered)


def test_a_stack_of_classifiers_knows_its_temperature() -> None:
    stacking = Stacking(models=("8/fan_in/own",), chains=FOLDS)
    model = BNNClassifier(method=stacking, random_state=0).fit(*labels(400, 0))
    assert 0.5 < model.recalibration_["temperature"] < 2


def test_several_targets_have_no_conformal_interval() -> None:
    x, y = line(60, 0)
    both = np.stack([y, -y], axis=1)
    stacking = Stacking(models=("0/fan_in/normal",), chains=FOLDS)
    model = BNNRegressor(method=stacking, random_state=0).fit(x, both)
    assert not model.is_recalibrated
    with pytest.raises(InputError, match="one target"):
        model.calibrate(x, both)
