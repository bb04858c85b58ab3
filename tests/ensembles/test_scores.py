"""One pass gives the numbers that many passes gave, in bounded memory."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from tools.ensembles import X, make_ensemble

from credence import BNNClassifier, BNNRegressor
from credence.ensembles import ensemble as ensembles
from credence.ensembles import predictor
from credence.ensembles.diagnostics import calibration, classification, regression
from credence.ensembles.scores import (
    classification_scores,
    regression_scores,
    separation,
    sound_rows,
    valid,
)
from credence.errors import InputError
from credence.methods import DeepEnsemble, Training
from credence.preprocessing import TargetScaler

QUICK = DeepEnsemble(num_members=3, training=Training(max_epochs=30))
RNG = np.random.default_rng(0)
TABLE = pd.DataFrame({"x": RNG.uniform(-2, 2, 60), "z": RNG.normal(size=60)})
PRICE = 1000 + 300 * (TABLE["x"] + RNG.normal(0, 0.3, 60)).to_numpy()
UNITS = TargetScaler((1000.0,), (300.0,))


def test_a_regression_is_scored_as_by_its_single_predictions() -> None:
    """Scores are those of separate calls to predict, quantiles, uncertainties and truths."""
    model = BNNRegressor(hidden=(3,), method=QUICK, random_state=0).fit(TABLE, PRICE)
    numbers, rows = model.scores(TABLE, PRICE)
    mean, std = model.predict(TABLE, return_std=True)
    quantiles = model.predict_quantiles(TABLE, (0.025, 0.25, 0.75, 0.975))
    parts, truth = model.decompose_uncertainty(TABLE), model.evaluate(TABLE, PRICE)
    expected: dict[str, Any] = {
        "y": PRICE, "mean": mean, "std": std, "lower_95": quantiles[:, 0],
        "lower_50": quantiles[:, 1], "upper_50": quantiles[:, 2], "upper_95": quantiles[:, 3],
        "pit": np.clip(truth["cdf"], 0, 1), "log_prob": truth["log_prob"], "crps": truth["crps"],
        "aleatoric_std": parts["aleatoric"], "epistemic_std": parts["epistemic"],
    }  # fmt: skip
    for name, values in expected.items():
        np.testing.assert_allclose(rows[name], values, rtol=1e-9, err_msg=name)
    assert numbers["rmse"] == pytest.approx(regression.rmse(mean, PRICE))
    assert numbers["nll"] == pytest.approx(regression.nll(truth["log_prob"]))
    assert numbers["crps"] == pytest.approx(truth["crps"].mean())
    covered = regression.interval_coverage(quantiles[:, 0], quantiles[:, 3], PRICE)
    assert numbers["coverage_95"] == covered
    assert numbers["coverage_95_credible"] < covered


def test_a_classification_is_scored_as_by_its_single_predictions() -> None:
    dear = np.where(PRICE > 1000, "yes", "no")
    model = BNNClassifier(hidden=(3,), method=QUICK, random_state=0).fit(TABLE, dear)
    numbers, rows = model.scores(TABLE, dear)
    p, parts, y = (
        model.predict_proba(TABLE),
        model.decompose_uncertainty(TABLE),
        (dear == "yes") * 1,
    )
    np.testing.assert_allclose(rows["probabilities"], p, rtol=1e-12)
    for name, values in parts.items():
        np.testing.assert_allclose(rows[f"entropy_{name}"], values, rtol=1e-9)
    expected = {
        "accuracy": classification.accuracy(p, y), "nll": classification.log_loss(p, y),
        "ece": calibration.ece(p, y), "brier": classification.brier(p, y),
        "auroc": classification.auroc(p, y),
    }  # fmt: skip
    for name, value in expected.items():
        assert numbers[name] == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("classes", [0, 3])
def test_rows_go_through_the_members_once_and_in_batches(
    classes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the size of a batch the scores are the same, but for the draws behind the CRPS."""
    ensemble = make_ensemble(classes=classes)
    x, sizes = np.tile(X, (30, 1)), []
    outputs = ensembles.Ensemble.outputs
    monkeypatch.setattr(
        ensembles.Ensemble, "outputs", lambda self, x: sizes.append(len(x)) or outputs(self, x)
    )
    found = []
    for size in (256, 64):
        monkeypatch.setattr(predictor, "batch_rows", lambda *_, size=size: size)
        if classes:
            found.append(classification_scores(ensemble, x, np.arange(210) % classes))
        else:
            found.append(regression_scores(ensemble, x, RNG.normal(1000, 300, 210), UNITS))
    assert sizes == [256, 64, 64, 64, 64]
    for name in found[0].rows.keys() - {"y", "crps", "pit", "log_prob"}:
        np.testing.assert_allclose(found[0].rows[name], found[1].rows[name], rtol=1e-5)


def test_signed_weights_leave_no_negative_probability() -> None:
    weights = np.array([[0.9, -0.8, 0.9], [0.9, -0.8, -0.1]])
    p = classification_scores(make_ensemble(classes=3, weights=weights), X, np.arange(7) % 3).rows[
        "probabilities"
    ]
    assert (p >= 0).all()
    np.testing.assert_allclose(p.sum(axis=1), 1)
    np.testing.assert_allclose(valid(np.array([[0.75, 0.75, -0.5]])), [[0.5, 0.5, 0.0]])


def test_several_targets_are_refused() -> None:
    y = np.column_stack([PRICE, -PRICE])
    model = BNNRegressor(hidden=(2,), method=QUICK, random_state=0).fit(TABLE, y)
    with pytest.raises(InputError, match="evaluate"):
        model.scores(TABLE, y)


def test_separation_counts_ties_half() -> None:
    low, high = np.array([0.0, 1.0]), np.array([1.0, 2.0])
    assert separation(low, high) == (1 + 1 + 1 + 0.5) / 4
    assert separation(high, low) == 0.5 / 4


def test_rows_without_a_finite_prediction_are_left_to_the_verdict() -> None:
    """Numbers are those of the other rows; where there are none, a sentence says so."""
    rows = {"mean": np.array([1.0, np.nan, 3.0]), "y": np.arange(3.0)}
    assert sound_rows(rows)["y"].tolist() == [0, 2]
    assert sound_rows({"probabilities": np.eye(2)})["probabilities"].tolist() == [[1, 0], [0, 1]]
    with pytest.raises(InputError, match="No prediction is finite"):
        sound_rows({"mean": np.full(2, np.inf)})
