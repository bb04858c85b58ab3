"""Rows, targets, labels, weights and networks that do not fit together are refused in a sentence;
what comes back from disk fits as it did."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import credence
from credence import BNNClassifier, BNNRegressor
from credence.ensembles.stack import Stack
from credence.errors import InputError
from credence.methods import MAP, Training
from credence.models import MLP, Categorical, Gaussian, Normal

BRIEF = MAP(training=Training(max_epochs=5, validation_fraction=0.0))
RNG = np.random.default_rng(0)
X = RNG.normal(size=(20, 2))
Y = X[:, 0]
LABELS = np.where(Y > 0, "up", "down")


@pytest.fixture(scope="module")
def one() -> BNNRegressor:
    return BNNRegressor(method=BRIEF, hidden=(3,), random_state=0).fit(X, Y)


@pytest.fixture(scope="module")
def two() -> BNNRegressor:
    return BNNRegressor(method=BRIEF, hidden=(3,), random_state=0).fit(X, np.c_[Y, -Y])


@pytest.fixture(scope="module")
def labels() -> BNNClassifier:
    return BNNClassifier(method=BRIEF, hidden=(3,), random_state=0).fit(X, LABELS)


@pytest.mark.parametrize(
    "y", [Y[:10], [0.0], 0.0, np.r_[Y, Y]], ids=["few", "one", "scalar", "many"]
)
def test_every_row_has_one_truth(one: BNNRegressor, labels: BNNClassifier, y: Any) -> None:
    for ask in (one.evaluate, one.scores):
        with pytest.raises(InputError, match=r"20 rows but y has \d+: they must match"):
            ask(X, y)
    with pytest.raises(InputError, match="they must match"):
        labels.scores(X, np.full(np.shape(y), "up"))


def test_truths_are_as_many_as_the_targets_of_the_fit(one: BNNRegressor, two: BNNRegressor) -> None:
    for model, y, sentence in (
        (one, np.c_[Y, Y], "y has 2 targets, and the fit saw 1"),
        (two, Y, "y has 1 target, and the fit saw 2"),
        (two, Y[:, None], "y has 1 target, and the fit saw 2"),
    ):
        for ask in (model.evaluate, model.importances):
            with pytest.raises(InputError, match=sentence):
                ask(X, y)
    np.testing.assert_array_equal(
        one.evaluate(X, Y)["log_prob"], one.evaluate(X, Y[:, None])["log_prob"]
    )


def test_truths_are_numbers_and_labels_may_be_a_column(
    one: BNNRegressor, labels: BNNClassifier
) -> None:
    with pytest.raises(InputError, match="y holds text"):
        one.evaluate(X, ["a"] * 20)
    with pytest.raises(InputError, match="y holds text"):
        one.scores(X, ["a"] * 20)
    flat, column = labels.scores(X, LABELS), labels.scores(X, LABELS[:, None])
    assert flat.numbers == column.numbers


@pytest.mark.parametrize("levels", [0.5, [], ()])
def test_quantiles_have_levels(one: BNNRegressor, levels: Any) -> None:
    with pytest.raises(InputError, match="levels must be numbers such as"):
        one.predict_quantiles(X, levels)


@pytest.mark.parametrize("weight", [-1.0, np.nan, np.inf])
def test_weights_of_classes_are_at_least_zero(weight: float) -> None:
    model = BNNClassifier(method=BRIEF, class_weight={"up": 1.0, "down": weight})
    with pytest.raises(InputError, match="class_weight must have finite numbers of at least 0"):
        model.fit(X, LABELS)


def test_a_classifier_takes_no_model_of_other_targets() -> None:
    with pytest.raises(InputError, match="The network predicts 5 classes, and y has 2"):
        BNNClassifier(method=BRIEF, network=MLP(5, (3,))).fit(X, LABELS)
    with pytest.raises(InputError, match="needs a likelihood of labels, got Normal"):
        BNNClassifier(method=BRIEF, network=MLP(1, (3,)), likelihood=Normal()).fit(X, LABELS)
    BNNClassifier(method=BRIEF, network=MLP(2, (3,)), likelihood=Categorical()).fit(X, LABELS)


@pytest.mark.parametrize("layers", [{"hidden": (3,)}, {"activation": "relu"}])
def test_a_network_says_its_own_layers(layers: dict[str, Any]) -> None:
    for kind, y in ((BNNRegressor, Y), (BNNClassifier, LABELS)):
        with pytest.raises(InputError, match="leave hidden and activation out"):
            kind(method=BRIEF, network=MLP(2, (4,)), **layers).fit(X, y)


@pytest.mark.parametrize("kind", [BNNRegressor, BNNClassifier])
def test_a_fit_without_targets_is_refused(kind: type[BNNRegressor | BNNClassifier]) -> None:
    with pytest.raises(ValueError, match=f"This {kind.__name__} requires y to be passed"):
        kind().fit(X, None)


def test_labels_that_no_file_can_hold_are_refused_before_the_fit() -> None:
    y = np.where(Y > 0, np.uint64(5), np.uint64(2**63 + 1))
    with pytest.raises(InputError, match=r"whole numbers are below 2\^63"):
        BNNClassifier(method=BRIEF).fit(X, y)


def test_widths_are_whole_numbers() -> None:
    with pytest.raises(InputError, match="hidden must be whole numbers"):
        BNNRegressor(method=BRIEF, hidden=50.0).fit(X, Y)


def test_nested_values_are_named() -> None:
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(c=pd.Series([[1]] * 20))
    with pytest.raises(InputError, match="'c'"):
        BNNClassifier(method=BRIEF).fit(frame, LABELS)


def test_a_frame_after_an_array_is_taken_by_place(one: BNNRegressor) -> None:
    for names in (["a", "b"], ["x1", "x0"], [0, 1]):
        with pytest.warns(UserWarning, match="fitted without feature names"):
            found = one.predict(pd.DataFrame(X, columns=names))
        np.testing.assert_array_equal(found, one.predict(X))


def test_a_complex_column_is_refused_at_prediction_too() -> None:
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = BNNRegressor(method=BRIEF, hidden=(3,)).fit(frame, Y)
    with pytest.raises(InputError, match="'a'"):
        model.predict(frame.assign(a=2 + 5j))


def test_a_network_comes_back_from_disk(tmp_path: Path) -> None:
    network = MLP(1, (3,), "relu")
    BNNRegressor(method=BRIEF, network=network).fit(X, Y).save(tmp_path)
    again = credence.load(tmp_path)
    assert again.network == network
    assert again.fit(X, Y).ensemble_.model.network == network


def test_categories_that_do_not_occur_have_no_effect() -> None:
    named = pd.Categorical(["u", "v"] * 10, ["u", "v", "never"])
    frame = pd.DataFrame({"c": named, "d": RNG.normal(size=20)})
    model = BNNRegressor(method=BRIEF, hidden=(3,)).fit(frame, Y)
    assert model.effect(frame, "c").values == ("u", "v")


def test_the_prior_of_a_stack_comes_back_from_disk(tmp_path: Path) -> None:
    model = BNNRegressor(method=BRIEF, prior=Gaussian("unit"), likelihood=Normal(0.5)).fit(X, Y)
    parts, found = (model.ensemble_, model.ensemble_), model.ensemble_
    model.ensemble_ = Stack(parts, np.array([0.5, 0.5]), found.cost, found.provenance)
    model.save(tmp_path)
    again = credence.load(tmp_path)
    assert (again.prior, again.likelihood) == (model.prior, model.likelihood)


def test_columns_of_importances_and_effects_are_those_of_the_fit(one: BNNRegressor) -> None:
    with pytest.warns(UserWarning, match="fitted without feature names"):
        found = one.importances(pd.DataFrame(X, columns=["a", "b"]), Y)
    np.testing.assert_array_equal(found.nats, one.importances(X, Y).nats)
    frame = pd.DataFrame(X, columns=["a", "b"])
    named = BNNRegressor(method=BRIEF, hidden=(3,), random_state=0).fit(frame, Y)
    assert (
        named.effect(frame[["b", "a"]].assign(c=1), "a").values == named.effect(frame, "a").values
    )
    for ask in (
        lambda: named.effect(frame[["a"]], "a"),
        lambda: named.importances(frame[["a"]], Y),
    ):
        with pytest.raises(InputError, match="lacks 1 column that training had: 'b'"):
            ask()


def test_truths_that_are_not_finite_are_refused(one: BNNRegressor) -> None:
    unknown = np.where(np.arange(20) == 7, np.nan, Y)
    for ask in (one.evaluate, one.scores, one.importances, one.calibrate):
        with pytest.raises(InputError, match="first at place 7 of 20"):
            ask(X, unknown)


def test_weights_count_in_the_scales_of_the_inputs() -> None:
    """A row of weight three is as three rows, in scales and in what fills gaps."""
    weight = np.arange(20) % 4
    gaps = np.where(np.arange(40).reshape(20, 2) % 7 == 0, np.nan, X)
    repeated = np.repeat(np.arange(20), weight)
    weighed = BNNRegressor(method=BRIEF, hidden=(3,)).fit(gaps, Y, sample_weight=weight)
    many = BNNRegressor(method=BRIEF, hidden=(3,)).fit(gaps[repeated], Y[repeated])
    for one, other in zip(weighed.preprocessor_.columns, many.preprocessor_.columns, strict=True):
        for name in ("median", "mean", "scale", "low", "high"):
            assert getattr(one, name) == pytest.approx(getattr(other, name), rel=1e-12)
    plain = BNNRegressor(method=BRIEF, hidden=(3,)).fit(gaps, Y)
    assert plain.preprocessor_ != weighed.preprocessor_, "planted: weights that do not count"
