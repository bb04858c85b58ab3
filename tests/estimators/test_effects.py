"""What a fit makes of its inputs, against functions that are known."""

import re
from copy import copy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from credence import BNNClassifier, BNNRegressor
from credence.ensembles.inputs import Effect, Importances, from_document, to_document
from credence.errors import IdentifierWarning, InputError
from credence.estimators.effects import ROWS_OF_EFFECT, effect, importances
from credence.methods import DeepEnsemble, Training
from credence.preprocessing import make_preprocessor

QUICK = DeepEnsemble(num_members=4, training=Training(max_epochs=300))


def table(num_rows: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "slope": rng.normal(size=num_rows),
            "kind": rng.choice(["low", "middle", "high"], num_rows, p=[0.5, 0.3, 0.2]),
            "nothing": rng.normal(size=num_rows),
        }
    )


def truth(X: pd.DataFrame) -> np.ndarray:
    return 2 * X["slope"].to_numpy() + X["kind"].map({"low": -1, "middle": 0, "high": 3}).to_numpy()


@pytest.fixture(scope="module")
def fitted() -> BNNRegressor:
    X = table(300)
    y = truth(X) + 0.5 * np.random.default_rng(1).normal(size=300)
    return BNNRegressor(method=QUICK, hidden=(20,), random_state=0).fit(X, y)


def test_shuffling_costs_what_it_costs_a_known_normal() -> None:
    """E log p falls by Var(f | others) / sigma^2: 4 / .25 nats for the slope, none for nothing."""
    X = table(4000)[["slope", "nothing"]]
    y = 2 * X["slope"] + 0.5 * np.random.default_rng(1).normal(size=4000)

    def log_prob(X: pd.DataFrame, y: np.ndarray) -> np.ndarray:
        return -0.5 * ((y - 2 * X["slope"].to_numpy()) / 0.5) ** 2

    found = importances(log_prob, ["slope", "nothing"], X, y, 0)
    assert abs(found.nats[0] - 16) < 4 * found.error[0]
    assert 0.1 < found.error[0] < 1
    assert found.nats[1] == found.error[1] == 0
    assert found.order == [0, 1]


def test_a_column_may_have_any_name() -> None:
    """`DataFrame.assign` takes none that is called self."""
    X = pd.DataFrame({"self": np.arange(20.0), "other": np.arange(20.0) ** 2})
    preprocessor = make_preprocessor(X)
    assert preprocessor.feature_names_in_ == ["self", "other"]
    found = importances(lambda X, y: -np.square(X["self"] - y), ["self", "other"], X, X["self"], 0)
    assert found.nats[0] > 0 == found.nats[1]
    slope = effect(lambda X: X["self"].to_numpy()[None, None], None, preprocessor, X, "self", 0)
    np.testing.assert_allclose(np.ravel(slope.mean), slope.values)


def test_importances_of_a_fit(fitted: BNNRegressor) -> None:
    X = table(200, seed=2)
    y = truth(X) + 0.5 * np.random.default_rng(3).normal(size=200)
    found = fitted.importances(X, y)
    assert found.names == ("slope", "kind", "nothing")
    assert found.nats[:2].min() > 1
    assert abs(found.nats[2]) < 0.3
    again = fitted.importances(X, y)
    np.testing.assert_array_equal(found.nats, again.nats)
    assert not np.array_equal(found.nats, fitted.importances(X, y, seed=1).nats)


def test_effect_of_a_number_is_its_slope(fitted: BNNRegressor) -> None:
    found = fitted.effect(table(200, seed=2), "slope")
    values = np.array(found.values)
    assert np.all(np.diff(values) > 0)
    slope = np.polyfit(values, found.mean[:, 0], 1)[0]
    assert abs(slope - 2) < 0.3
    assert np.all(found.lower <= found.mean)
    assert np.all(found.mean <= found.upper)


@pytest.mark.parametrize("weights", [[0.7, 0.1, 0.1, 0.1], [0.9, 0.3, 0.3, -0.5]])
def test_effect_is_that_of_the_mean_prediction(weights: list[float], fitted: BNNRegressor) -> None:
    """Whatever the weights of the networks are."""
    model = copy(fitted)
    shape = fitted.ensemble_.num_chains, fitted.ensemble_.num_draws
    model.ensemble_ = replace(fitted.ensemble_, weights=np.reshape(weights, shape))
    rows = table(ROWS_OF_EFFECT, seed=2)
    found = model.effect(rows, "slope")
    predicted = [model.predict(rows.assign(slope=value)).mean() for value in found.values]
    np.testing.assert_allclose(found.mean[:, 0], predicted, rtol=1e-4, atol=1e-5)
    assert np.all(found.lower <= found.upper)


def test_bands_of_an_effect_count_networks_by_weight() -> None:
    """Networks 0 x, 1 x, ..., 9 x: those of weight 0 or less are not in the band."""
    X = np.linspace(0, 1, 20)[:, None]
    weights = np.array([[0.5, 0.02, 0.02, 0.02, 0.02], [0.02, 0.5, 0.0, 0.0, -0.1]])

    def functions(X: np.ndarray) -> np.ndarray:
        return np.arange(10.0).reshape(2, 5, 1) * X[:, 0]

    found = effect(functions, weights, make_preprocessor(X), X, "x0", 0)
    values = np.array(found.values)
    mean = np.arange(10) @ weights.ravel()
    np.testing.assert_allclose(found.mean[:, 0], mean * values, atol=1e-12)
    np.testing.assert_allclose(found.lower[:, 0], 0 * values)
    np.testing.assert_allclose(found.upper[:, 0], 6 * values)


def test_effect_of_names(fitted: BNNRegressor) -> None:
    found = fitted.effect(table(200, seed=2), "kind")
    assert found.values == ("low", "middle", "high")
    assert np.allclose(np.diff(found.mean[:, 0]), [1, 3], atol=0.5)


def test_labels_and_arrays() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=300) > 0, "yes", "no")
    model = BNNClassifier(method=QUICK, hidden=(10,), random_state=0).fit(X[:200], y[:200])
    found = model.importances(X[200:], y[200:])
    assert found.names == ("x0", "x1")
    assert found.nats[0] > 0.5 > abs(found.nats[1])
    effect = model.effect(X[200:], "x0")
    assert effect.mean.shape == (15, 2)
    np.testing.assert_array_equal(model.effect(X[200:], 0).mean, effect.mean)
    assert np.allclose(effect.mean.sum(1), 1, atol=1e-5)
    assert effect.mean[-1, 1] - effect.mean[0, 1] > 0.8


def test_rows_may_come_as_for_predict(fitted: BNNRegressor) -> None:
    """An array without names, or a list, where the fit saw columns with names."""
    rows = np.random.default_rng(2).normal(size=(40, 2))
    model = BNNRegressor(method=QUICK, hidden=(4,), random_state=0)
    model.fit(pd.DataFrame(rows, columns=["a", "b"]), rows[:, 0])
    for given in (rows, rows.tolist()):
        with pytest.warns(UserWarning, match="valid feature names"):  # that of `predict`
            assert model.importances(given, rows[:, 0]).names == ("a", "b")
        with pytest.warns(UserWarning, match="valid feature names"):
            assert model.effect(given, "a").mean.shape == (15, 1)
    for given, targets in ((rows[:1], rows[:1, 0]), (rows, rows[:7, 0])):
        frame = pd.DataFrame(given, columns=["a", "b"])
        with pytest.raises(InputError, match="each with a target"):
            model.importances(frame, targets)


def test_a_column_that_names_the_rows_is_told_of() -> None:
    """The command line leaves it out; an estimator keeps the columns that it is given."""
    X = table(40).assign(house=[f"H{i}" for i in range(40)])
    model = BNNRegressor(method=QUICK, hidden=(4,), random_state=0)
    with pytest.warns(IdentifierWarning, match="'house': 40 of its 40 values differ"):
        model.fit(X, truth(X))


def test_bad_input(fitted: BNNRegressor) -> None:
    X = table(30)
    with pytest.raises(InputError, match=r"no column 'slop'.*slope"):
        fitted.effect(X, "slop")
    with pytest.raises(InputError, match="no column '7'"):
        fitted.effect(X, 7)
    with pytest.raises(InputError, match="no values"):
        fitted.effect(X.assign(slope=np.nan), "slope")
    with pytest.raises(InputError, match="1001 columns"):
        importances(lambda X, y: y, [f"x{i}" for i in range(1001)], np.zeros((5, 1001)), [0] * 5, 0)


def test_they_are_shown_as_tables() -> None:
    found = Importances(("age", "n"), np.array([-0.0312, 16.123]), np.array([0.01, 0.31]))
    assert repr(found).splitlines() == [
        "Nats by which a row is predicted worse without an input, and standard error:",
        "n       16.1  ± 0.31",
        "age  −0.0312  ± 0.01",
    ]
    many = Importances(tuple(f"x{i}" for i in range(30)), np.arange(30.0), np.ones(30))
    assert repr(many).splitlines()[1].startswith("x29")
    assert repr(many).splitlines()[-1] == "and 10 inputs that are needed less"
    mean = np.array([[152.0], [163.0]])
    assert repr(Effect("year", (1962.0, 1975.0), mean, mean - 1, mean + 1)).splitlines() == [
        "Prediction by one input: mean of the networks, and where nine of ten of them lie:",
        "year  mean  lower  upper",
        "1962   152    151    153",
        "1975   163    162    164",
    ]


def test_a_table_has_names_in_one_line_and_a_column_for_every_label() -> None:
    mean = np.array([[0.25, 0.75], [0.5, 0.5]])
    shown = repr(Effect("kind", ("a" * 60, "two\nlines"), mean, mean - 0.1, mean + 0.1))
    head, first, second = shown.splitlines()[1:]
    heads = [f"{what} {label}" for label in range(2) for what in ("mean", "lower", "upper")]
    assert re.split("  +", head) == ["kind", *heads]
    assert re.split("  +", first)[:2] == [f"{'a' * 39}…", "0.25"]
    assert second.startswith("two lines ")
    assert second.split()[2:] == ["0.5", "0.4", "0.6"] * 2


def test_documents(fitted: BNNRegressor) -> None:
    X = table(50)
    found, effects = fitted.importances(X, truth(X)), (fitted.effect(X, "kind"),)
    document = to_document(found, effects)
    again, (effect,) = from_document(document)
    np.testing.assert_array_equal(again.nats, found.nats)
    np.testing.assert_array_equal(effect.upper, effects[0].upper)
    assert effect.values == effects[0].values
    document["nats"].pop()
    with pytest.raises(ValueError, match="3 inputs have 2 importances"):
        from_document(document)
