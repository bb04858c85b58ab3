"""The preprocessor: equal to scikit-learn's, the same bits after JSON, and what it refuses."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from credence.datasets import load
from credence.errors import InputError
from credence.preprocessing import TablePreprocessor, TargetScaler, make_preprocessor


def mixed(rows=300, seed=0):
    """Numbers with gaps, a constant, integers, names, many names, true/false."""
    rng = np.random.default_rng(seed)
    x = rng.normal(3, 2, rows)
    x[::7] = np.nan
    return pd.DataFrame(
        {
            "x": x,
            "name": rng.choice(["a", "b", "c"], rows),
            "one": 1.5,
            "count": rng.integers(0, 9, rows),
            "town": [f"t{i}" for i in rng.geometric(0.15, rows)],
            "on": rng.random(rows) < 0.3,
        }
    )


def saved_and_loaded(preprocessor):
    return TablePreprocessor.from_json(json.loads(json.dumps(preprocessor.to_json())))


def test_equal_to_scikit_learns_own_transformers():
    train, new = mixed(), mixed(seed=1)
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    names = OneHotEncoder(
        min_frequency=3,
        max_categories=100,
        handle_unknown="infrequent_if_exist",
        sparse_output=False,
    )
    reference = ColumnTransformer(
        [("numbers", numbers, ["x", "one", "count"]), ("names", names, ["name", "town"])]
    ).fit(train.astype({"name": object, "town": object}))
    ours = make_preprocessor(train[["x", "one", "count", "name", "town"]])
    for frame in (train, new):
        expected = reference.transform(frame.astype({"name": object, "town": object}))
        features = ours.transform(frame)
        flag = ours.get_feature_names_out().index("x_is_missing")
        assert (features[:, flag] == frame["x"].isna()).all()
        # Equal but for the order in which a mean of 300 numbers is summed up.
        np.testing.assert_allclose(np.delete(features, flag, axis=1), expected, atol=1e-13)


def test_the_same_bits_after_saving_and_loading():
    train = mixed()
    preprocessor = make_preprocessor(train)
    loaded = saved_and_loaded(preprocessor)
    assert loaded == preprocessor
    for frame in (train, mixed(seed=1)):
        assert loaded.transform(frame).tobytes() == preprocessor.transform(frame).tobytes()


def test_what_an_earlier_version_saved_is_read():
    column = {"kind": "names", "name": "x", "categories": ["a"], "has_missing": False}
    old = TablePreprocessor.from_json({"columns": [column | {"has_others": True}]})
    new = pd.DataFrame({"x": ["a", "perhaps rare"]})
    assert old.transform(new).tolist() == [[1, 0], [0, 1]]
    assert old.check_columns(new) == []  # it cannot know
    assert old.text_columns == []
    numbers = {"kind": "numbers", "name": "x", "median": 0, "mean": 0, "scale": 1}
    old = TablePreprocessor.from_json({"columns": [numbers | {"has_missing": True}]})
    assert old.check_columns(pd.DataFrame({"x": [1e3]})) == []


def test_numbers_far_outside_those_of_training_are_told():
    """More than a standard deviation: a number beyond the largest of few rows is no news."""
    ages = pd.DataFrame({"age": [20.0, 30.0, 40.0, None]})
    preprocessor = saved_and_loaded(make_preprocessor(ages))
    std = np.std([20, 30, 30, 40])
    inside = pd.DataFrame({"age": [20 - 0.99 * std, 30, None, 40 + 0.99 * std]})
    assert preprocessor.check_columns(inside) == []
    (note,) = preprocessor.check_columns(pd.DataFrame({"age": [30, 40 + 1.01 * std, 250, -5]}))
    assert note == (
        f"'age' was between 20 and 40 in training, and is far outside in 3 rows, first "
        f"{40 + 1.01 * std:g} in row 2 (line 3 of a file with a header line): what networks say "
        "there rests on no data."
    )
    assert preprocessor.is_outside(inside).tolist() == 4 * [False]
    far = pd.DataFrame({"age": [30, 40 + 1.01 * std, 250, -5, None]})
    assert preprocessor.is_outside(far).tolist() == [False, True, True, True, False]
    both = make_preprocessor(ages.dropna()).check_columns(pd.DataFrame({"age": [None, 999]}))
    assert len(both) == 1
    assert "Filled 1 missing value in 'age'" in both[0]
    assert "first 999 in row 2" in both[0]


@pytest.mark.parametrize(
    "saved",
    [
        {},
        {"columns": None},
        {"columns": [{"kind": "numbers", "name": "x"}]},
        {"columns": [{"kind": "code", "name": "x"}]},
        {"columns": [{"kind": "names", "name": "x", "run": "print(1)"}]},
    ],
)
def test_damaged_json_is_refused(saved):
    with pytest.raises(InputError, match="damaged or of another version"):
        TablePreprocessor.from_json(saved)


def test_output_is_standardised_named_and_safe_in_float32():
    train = mixed()
    preprocessor = make_preprocessor(train)
    features = preprocessor.transform(train)
    names = preprocessor.get_feature_names_out()
    assert names[:6] == ["x", "x_is_missing", "name_a", "name_b", "name_c", "one"]
    assert names[-2:] == ["on_False", "on_True"]
    assert features.shape == (300, len(names))
    assert np.isfinite(features.astype(np.float32)).all()
    count = features[:, names.index("count")]
    assert count.mean() == pytest.approx(0, abs=1e-12)
    assert count.std() == pytest.approx(1)
    assert (features[:, names.index("one")] == 0).all()  # a constant says nothing, and stays


def test_arrays():
    X = np.random.default_rng(0).normal(size=(50, 3))
    preprocessor = make_preprocessor(X)
    expected = StandardScaler().fit_transform(X)
    np.testing.assert_allclose(preprocessor.transform(X), expected, atol=1e-12)
    assert preprocessor.get_feature_names_out() == ["x0", "x1", "x2"]
    integers = make_preprocessor(np.arange(12, dtype=np.uint8).reshape(4, 3))
    assert integers.transform(np.zeros((2, 3))).shape == (2, 3)
    names = np.array([["a", 1.0], ["b", 2.0], ["a", None]], dtype=object)
    assert make_preprocessor(names).transform(names).shape == (3, 4)
    with pytest.raises(InputError, match="lacks 1 column that training had: 'x2'"):
        preprocessor.transform(X[:, :2])


@pytest.mark.parametrize("dtype", [object, "string", "category"])
def test_types_of_text(dtype):
    frame = pd.DataFrame({"name": pd.Series(["a", "b", None, "a"], dtype=dtype)})
    features = make_preprocessor(frame).transform(frame)
    assert features.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0]]


@pytest.mark.parametrize("dtype", ["Int64", "Float32", "int8", "float32", "uint64"])
def test_types_of_numbers(dtype):
    frame = pd.DataFrame({"x": pd.Series([1, 2, 3, 4], dtype=dtype)})
    expected = StandardScaler().fit_transform([[1.0], [2.0], [3.0], [4.0]])
    np.testing.assert_array_equal(make_preprocessor(frame).transform(frame), expected)


def test_categories_that_are_numbers_match_whatever_their_type():
    train = pd.DataFrame({"code": pd.Categorical([1, 2, 3] * 9)})
    preprocessor = make_preprocessor(train)
    for codes in ([3.0, np.nan, 1.0], ["3.0", None, "1.0"]):  # one missing value made them floats
        floats = pd.DataFrame({"code": codes})
        assert preprocessor.transform(floats).tolist() == [[0, 0, 1], [0, 0, 0], [1, 0, 0]]


def test_true_and_false_are_one_and_zero_in_other_files() -> None:
    frame = pd.DataFrame({"is_new": [True, False, True]})
    known = make_preprocessor(frame)
    for values in ([1, 0, 1], [1.0, 0.0, 1.0], ["True", "False", "True"], ["1", "0", "1"]):
        again = pd.DataFrame({"is_new": values})
        np.testing.assert_array_equal(known.transform(again), known.transform(frame))
        assert not known.is_outside(again).any()


def test_names_that_were_text_are_to_be_read_as_text():
    frame = pd.DataFrame(
        {
            "zip": ["01234", "K1A"] * 9,
            "declared": pd.Categorical(["1", "2"] * 9),
            "number": pd.Categorical([1, 2] * 9),
            "on": [True, False] * 9,
            "size": range(18),
        }
    )
    assert make_preprocessor(frame).text_columns == ["zip", "declared"]


def test_rare_and_many_categories_share_a_column():
    names = [f"n{i % 40}" for i in range(2000)] + ["rare", "rarer", None]
    preprocessor = make_preprocessor(pd.DataFrame({"name": names}))
    out = preprocessor.get_feature_names_out()
    assert len(out) == 42
    assert out[-2:] == ["name_is_missing", "name_is_other"]
    seen = preprocessor.transform(pd.DataFrame({"name": ["rare", "new", None, "n0"]}))
    assert seen[:, -1].tolist() == [1, 1, 0, 0]
    assert seen[:, -2].tolist() == [0, 0, 1, 0]
    assert (seen.sum(axis=1) == 1).all()
    assert preprocessor.check_columns(pd.DataFrame({"name": ["rare", "rarer", None]})) == []
    unseen = pd.DataFrame({"name": ["rare", "new", None, "new"]})
    assert preprocessor.is_outside(unseen).tolist() == [False, True, False, True]
    (note,) = preprocessor.check_columns(unseen)
    assert note == (
        "'name' holds names that training did not have, in 2 rows, first in row 2 (line 3 of a "
        "file with a header line): 'new'; they count as its rare names do."
    )
    (note,) = preprocessor.check_columns(pd.DataFrame({"name": ["N0", "Rare "]}))
    assert note.endswith("they count as its rare names do. Did you mean 'n0', 'rare'?")
    many = pd.DataFrame({"name": [f"n{i}" for i in range(500)] * 10})
    assert len(make_preprocessor(many).get_feature_names_out()) == 100


def test_columns_may_be_reordered_and_more():
    train = mixed()
    preprocessor = make_preprocessor(train)
    shuffled = train[train.columns[::-1]].assign(price=1, **{"day of week": "Monday"})
    np.testing.assert_array_equal(preprocessor.transform(shuffled), preprocessor.transform(train))
    assert preprocessor.check_columns(shuffled) == ["Ignored 2 columns: 'price', 'day of week'."]
    assert preprocessor.check_columns(train) == []


def test_of_many_columns_with_news_a_few_are_told():
    preprocessor = make_preprocessor(np.zeros((5, 20)))
    notes = preprocessor.check_columns(np.full((2, 20), 3.0))
    assert len(notes) == 6
    assert notes[4].startswith("'x4' was between 0 and 0")
    assert notes[5].startswith("There is more of this kind in 15 columns: 'x5', 'x6'")


def test_missing_columns_suggest_the_nearest():
    preprocessor = make_preprocessor(mixed())
    renamed = mixed().rename(columns={"count": "Counts"}).drop(columns="on")
    with pytest.raises(
        InputError, match=r"lacks 2 columns .* 'count', 'on'\. Did you mean 'Counts'"
    ):
        preprocessor.check_columns(renamed)


def test_news_at_prediction_is_accepted_and_said():
    preprocessor = make_preprocessor(mixed()[["name", "count"]])
    new = pd.DataFrame({"name": ["a", "z", None, "z"], "count": [1, np.nan, 2, 3]})
    notes = preprocessor.check_columns(new)
    assert notes[0].startswith(
        "'name' holds names that training did not have, in 3 rows, first in row 2 (line 3 of a "
        "file with a header line): 'z' and no value at all; they count"
    )
    assert notes[1].startswith("Filled 1 missing value in 'count' with the median")
    features = preprocessor.transform(new)
    assert features[1].tolist() == [0, 0, 0, preprocessor.transform(new)[1, 3]]
    assert np.isfinite(features).all()


@pytest.mark.parametrize(
    ("column", "sentence"),
    [
        ([1.0, np.inf, 2.0], "1 infinite value, the first in row 2"),
        ([1.0, "two", 3.0], "'two' in row 2"),
        ([np.nan, np.nan, np.nan], "No values in 1 column: 'x'"),
        (pd.to_datetime(["2020-01-01"] * 3), "holds dates"),
        ([1e300, -1e300, 0.0], "cannot be standardised"),
    ],
)
def test_refused_in_training(column, sentence):
    with pytest.raises(InputError, match=sentence):
        make_preprocessor(pd.DataFrame({"x": column}))


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("two", "should hold numbers, but holds 'two' in row 1"),
        (np.inf, "infin"),
        (1e30, "1e\\+30"),
    ],
)
def test_refused_at_prediction(value, sentence):
    preprocessor = make_preprocessor(pd.DataFrame({"x": [1.0, 2.0, 3.0]}))
    with pytest.raises(InputError, match=sentence):
        preprocessor.transform(pd.DataFrame({"x": [value]}))


@pytest.mark.parametrize("name", ["diabetes", "wine"])
def test_real_tables(name):
    X = load(name).frame.drop(columns="target")
    features = make_preprocessor(X).transform(X)
    np.testing.assert_allclose(features, StandardScaler().fit_transform(X), atol=1e-12)


@pytest.mark.parametrize("shape", [(50,), (50, 1), (50, 3)])
def test_target_scaler_there_and_back(shape):
    y = np.random.default_rng(0).normal(5, 3, shape)
    scaler = TargetScaler.fit(y)
    z = scaler.transform(y)
    np.testing.assert_allclose(z.mean(axis=0), 0, atol=1e-14)
    np.testing.assert_allclose(z.std(axis=0), 1)
    np.testing.assert_allclose(scaler.inverse(z), y)
    np.testing.assert_allclose(scaler.inverse_scale(z.std(axis=0, keepdims=True))[0], y.std(axis=0))
    draws = np.stack([z, z])  # a leading axis of draws
    np.testing.assert_allclose(scaler.inverse(draws)[1], y)
    assert TargetScaler.from_json(json.loads(json.dumps(scaler.to_json()))) == scaler


def test_target_scaler_weights_count_rows():
    y = np.array([1.0, 2.0, 5.0, 100.0])
    weighted = TargetScaler.fit(y, sample_weight=np.array([1.0, 2.0, 1.0, 0.0]))
    repeated = TargetScaler.fit(np.array([1.0, 2.0, 2.0, 5.0]))
    np.testing.assert_allclose(weighted.mean, repeated.mean)
    np.testing.assert_allclose(weighted.scale, repeated.scale)


@pytest.mark.parametrize(
    ("y", "sentence"),
    [
        ([2.0] * 5, "constant .all 5 values are 2."),
        ([0.1 + 0.2, 0.3, 0.3], "constant"),  # equal up to rounding
        ([[1.0, 7.0], [2.0, 7.0]], "values are 7"),
        ([1e200, -1e200], "too large"),
    ],
)
def test_target_scaler_refuses(y, sentence):
    with pytest.raises(InputError, match=sentence):
        TargetScaler.fit(np.array(y))
