"""check_table: what it refuses, what it puts right and says, and how it infers the task."""

import datetime
from decimal import Decimal
from typing import Literal

import numpy as np
import pandas as pd
import pytest

from credence.datasets import check_table, infer_task, load
from credence.datasets.columns import is_numeric
from credence.errors import InputError

RNG = np.random.default_rng(0)


def beyond_floats():
    """Whole numbers of which one has no float."""
    return pd.Series([10**400, *range(39)], dtype=object)


def table(rows=40, **columns):
    """A table that is fine, with columns added or replaced."""
    return pd.DataFrame(
        {
            "age": np.arange(rows) * 1.5,
            "town": np.resize(["Ulm", "Bonn", "Kiel"], rows),
            "price": RNG.normal(size=rows),
        }
    ).assign(**columns)


def series(*values, rows=40):
    """The values, repeated up to the number of rows."""
    return pd.Series((list(values) * rows)[:rows])


def with_first(value, like):
    """A column like another with its third value replaced."""
    return pd.Series([*like[:2], value, *like[3:]])


NUMBERS = [str(i) for i in range(40)]


@pytest.mark.parametrize(
    ("frame", "target", "sentence"),
    [
        (table(), "Price", "no column 'Price'. Did you mean 'price'"),
        (table(), "weight", "Its columns are 'age', 'town', 'price'"),
        (table().rename(columns={"age": "town"}), "price", "more than one column named 'town'"),
        (table(rows=0), "price", "0 rows with a known target"),
        (table(rows=1), "price", "1 row with a known target"),
        (table(price=[1.0] + [np.nan] * 39), "price", "1 row with a known target"),
        (table(price=np.nan), "price", "target 'price' has no values"),
        (table(price=2.0), "price", "target 'price' is constant: all 40 rows hold '2.0'"),
        (table(price="yes"), "price", "target 'price' is constant"),
        (table(price=with_first(np.inf, np.arange(40.0))), "price", "infinite value.* row 3"),
        (table(age=with_first(-np.inf, np.arange(40.0))), "price", "'age' holds 1 infinite value"),
        (table(age=with_first("old", NUMBERS)), "price", r"'old' in row 3 \(line 4 of a file"),
        (table(price=with_first("-", NUMBERS)), "price", "'price' holds numbers, but '-' in row 3"),
        (table(price=with_first("rare", ["a", "b"] * 20)), "price", "one example only .'rare'"),
        (table(age=with_first("$5", NUMBERS)), "price", r"'\$5' in row 3 .*1 such value"),
        (table(age=[f"${n}.0" for n in range(40)]), "price", r"'age' holds numbers.*as '\$0.0'"),
        (table(age=[f"1,{n}0.5" for n in range(10, 50)]), "price", "separators.*--categorical 'a"),
        (table(price=[f"{n} %" for n in range(40)]), "price", "'price' holds numbers that cannot"),
        (table(age=pd.Timestamp("2020-01-01")), "price", "'age' holds dates such as '2020-01-01"),
        (table(age="2020-01-31"), "price", "'age' holds dates"),
        *(
            (table(age=date), "price", "'age' holds dates")
            for date in (
                *("2020/01/31", "2020-01-31 10:30", "31.1.2020", "1/31/2020", "31-12-2020"),
                *("2021-1-5", "2021.01.05", "05-Jan-2021", "5 January 2021", "Jan 5, 2021"),
                *("05Jan2021", "5-jan-21", "31-12-2020 9:05"),
            )
        ),
        (
            table(age=with_first("2020-01", ["2020-02-03", "2020-02-04"] * 20)),
            "price",
            "'age' holds dates such as '2020-02-0",
        ),
        (table(age=datetime.date(2020, 1, 31)), "price", "'age' holds dates"),
        (table(age=[[1, 2]] * 40), "price", "'age' holds values of type list"),
        (table(age=1j), "price", "'age' holds values of type complex"),
        (table()[["price"]], "price", "no usable column"),
        (table()[[]], "price", "The table has no columns"),
        (table().set_axis([None, "town", "price"], axis=1), "price", "1 column whose name is miss"),
        (table().set_axis([1, "1", "price"], axis=1), "price", "more than one column named '1'"),
        (pd.concat({"a": table()}, axis=1), "price", r"names of 2 levels, such as \('a', 'age'\)"),
        (
            table(age=beyond_floats()),
            "price",
            "'age' (holds 1 infinite value|should hold numbers)",
        ),
        (table(age=1e200 * np.arange(40.0)), "price", "'age' cannot be standardised"),
        (table(price=1e16 + np.arange(40.0)), "price", "'price' is nearly constant"),
        (table(price=1e-200 * np.arange(40.0)), "price", "'price' has too small values"),
        (table(age=np.nan, town=None), "price", "no usable column"),
    ],
)
def test_refused_in_a_sentence(frame, target, sentence):
    with pytest.raises(InputError, match=sentence):
        check_table(frame, target)


def test_task_must_be_known_and_fit_the_target():
    with pytest.raises(InputError, match=r"got 'regresion'\. Did you mean 'regression'"):
        check_table(table(), "price", "regresion")
    with pytest.raises(InputError, match="holds names such as 'Ulm', not numbers"):
        check_table(table(), "town", "regression")
    with pytest.raises(InputError, match="40 classes with one example only"):
        check_table(table(price=range(40)), "price", "classification")


@pytest.mark.parametrize(
    ("target", "task"),
    [
        (series("yes", "no"), "classification"),
        (series(True, False), "classification"),
        (series("a", "b").astype("category"), "classification"),
        (series(0, 1), "classification"),
        (series(0.0, 1.0), "classification"),
        (series(-1, 7), "classification"),
        (series(*range(8)), "classification"),
        (series(*range(9)), "regression"),  # fewer than 5 rows each
        (series(*range(10), rows=400), "classification"),
        (series(*range(11), rows=400), "regression"),
        (series(0.5, 1.5), "regression"),
        (series(*np.linspace(0, 1, 40)), "regression"),
    ],
)
def test_inferred_task(target, task):
    assert infer_task(target.rename("y"))[0] == task
    assert task in check_table(table(rows=len(target), price=target), "price").notes[0]


def test_rows_without_target_are_left_out_and_said():
    checked = check_table(table(price=with_first(np.nan, np.arange(40) / 7)), "price")
    assert len(checked.frame) == 39
    assert list(checked.frame.index[:3]) == [0, 1, 3]  # still the labels of the rows received
    assert "Left out 1 row whose target 'price' is missing." in checked.notes


@pytest.mark.parametrize(("labels", "found"), [((0, 1), [0, 1]), ((1e30, 0.0), [1e30, 0.0])])
def test_a_missing_label_leaves_the_others_as_they_are(labels: tuple, found: list) -> None:
    frame = table(price=with_first(None, list(labels) * 20).astype(float))
    checked = check_table(frame, "price", "classification")
    assert [str(each) for each in checked.frame["price"].unique()] == [str(each) for each in found]


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        ([0.5, 1.5] * 20, "neither text nor whole numbers, such as 0.5.*--categorical 'price'"),
        ([0.0, 1.0, 1.0, np.inf] * 10, "10 infinite values"),
        (pd.Categorical([0.5, 1.5] * 20), "neither text nor whole numbers"),
        (pd.cut([1.0, 2.0] * 20, 2), "neither text nor whole numbers"),
    ],
    ids=["decimals", "infinity", "categories", "intervals"],
)
def test_labels_are_text_or_whole_numbers(labels: object, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        check_table(table(price=labels), "price", "classification")


@pytest.mark.parametrize("labels", [[True, False], [1, 2], ["a", "b"]], ids=str)
def test_categories_may_be_text_whole_numbers_or_truth_values(labels: list) -> None:
    checked = check_table(table(price=pd.Categorical(labels * 20)), "price", "classification")
    assert checked.frame["price"].nunique() == 2


def test_useless_columns_are_left_out_and_said():
    frame = table(empty=np.nan, id=[f"#{i}" for i in range(40)])
    frame.insert(0, "Unnamed: 0", range(40))
    checked = check_table(frame, "price")
    assert list(checked.inputs.columns) == ["age", "town"]
    notes = " ".join(checked.notes)
    for part in ("'empty': all its values", "'id': 40 of its 40", "'Unnamed: 0': it has no name"):
        assert part in notes


def test_unsigned_numbers_that_fall_do_not_number_the_rows() -> None:
    falling = np.arange(80, 0, -2, dtype=np.uint8)
    checked = check_table(table().rename(columns={"age": "Unnamed: 0"}), "price")
    assert "Unnamed: 0" not in checked.inputs
    checked = check_table(table(**{"Unnamed: 0": falling}), "price")
    assert "Unnamed: 0" in checked.inputs


@pytest.mark.parametrize(
    ("first", "is_told"), [(1e9, True), (300.0, False), (np.nan, False)], ids=str
)
def test_a_number_far_from_all_others_is_told_of(first: float, is_told: bool) -> None:
    notes = check_table(table(size=with_first(first, np.arange(40.0))), "price").notes
    told = [note for note in notes if "holds 1e+09 in row 3 (line 4" in note]
    assert bool(told) == is_told
    assert not is_told or "nine in ten of its values lie between" in told[0]


def test_constant_columns_and_copies_of_rows_are_told_of() -> None:
    frame = pd.concat([table(year=2020), table(year=2020).head(3)])
    frame["price"] = np.arange(43) % 40 / 7
    notes = " ".join(check_table(frame.reset_index(drop=True), "price").notes)
    assert "The same value is in every row of 'year'" in notes
    assert "3 of the 43 rows are copies of others" in notes
    few = pd.DataFrame({"a": series(0, 1), "b": series(1, 2, 3), "price": series(1, 2, 4, 8)})
    assert "copies" not in " ".join(check_table(few, "price").notes), "equal by chance"


def test_numbers_written_as_text_become_numbers_unless_declared_categorical():
    frame = table(size=series("1", "2", "3"))
    checked = check_table(frame, "price")
    assert checked.frame["size"].tolist()[:3] == [1, 2, 3]
    assert any("'size' holds numbers written as text" in note for note in checked.notes)
    declared = check_table(frame, "price", categorical=["size"])
    assert isinstance(declared.frame["size"].dtype, pd.CategoricalDtype)
    mixed = table(size=series("1", "2", "3", "XL"))
    with pytest.raises(InputError, match=r"set --categorical 'size'"):
        check_table(mixed, "price")
    assert check_table(mixed, "price", categorical=["size"]).frame["size"].nunique() == 4


def test_whole_numbers_beyond_64_bits_are_numbers():
    ids = [2**70 + i % 20 * 2**60 for i in range(40)]
    checked = check_table(table(age=ids), "price")
    assert checked.frame["age"].tolist() == [float(each) for each in ids]
    assert any("'age' holds whole numbers beyond 2^63" in note for note in checked.notes)
    assert check_table(table(price=ids), "price").task == "regression"
    names = check_table(table(age=ids), "price", categorical=["age"]).frame["age"]
    assert names.tolist() == ids


@pytest.mark.parametrize("name", ["31-12-20", "1/2/21", "05.06.07"])
def test_what_may_be_a_date_is_told_of(name: str) -> None:
    checked = check_table(table(age=[name, "02-03-04"] * 20), "price")
    assert any(f"'age' holds names such as '{name}'. If these" in note for note in checked.notes)
    assert checked.inputs["age"].nunique() == 2


@pytest.mark.parametrize(
    "names",
    [
        *(("A12", "B7"), ("10-20", "20+"), ("3rd", "4th"), ("1.2.3", "x")),
        *(
            ("12-34-5678", "99-99-2020"),
            ("1234-56-78", "2345.67.89"),
            ("41.12.2020", "10/52/3021"),
            ("2020-45-5", "0-0-2020"),
            ("May 7", "Mar"),
            ("2021.1.2", "3 marks 20"),
        ),
    ],
)
def test_names_with_digits_in_them_stay_names(names: tuple[str, str]) -> None:
    checked = check_table(table(age=list(names) * 20), "price")
    assert checked.inputs["age"].tolist() == list(names) * 20
    assert "dates" not in " ".join(checked.notes)


def test_dates_that_are_names_have_a_way_out() -> None:
    frame = table(age=["2020-01-02", "2020-01-03"] * 20)
    with pytest.raises(InputError, match=r"holds dates.*If they are names, set --categorical"):
        check_table(frame, "price")
    assert check_table(frame, "price", categorical=["age"]).inputs["age"].nunique() == 2


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, pd.NA, 2, 3], "numbers of several kinds"),
        ([Decimal("1.5"), Decimal("2.5"), 3, 4], "numbers of several kinds"),
        (["1", 2.5, 3, 4], "numbers written as text"),
    ],
)
def test_what_is_said_of_numbers_in_a_column_of_objects(values: list, kind: str) -> None:
    checked = check_table(table(age=pd.Series(values * 10, dtype=object)), "price")
    told = [note for note in checked.notes if note.startswith("The column 'age'")]
    assert all(f"'age' holds {kind}" in note for note in told)
    assert is_numeric(checked.inputs["age"])


def test_columns_may_be_called_by_numbers() -> None:
    frame = table().rename(columns={"price": 2})
    assert check_table(frame, 2).target == "2"
    assert check_table(frame, "2", categorical=["age"]).target == "2"


def test_whole_floats_are_labels_also_where_they_are_declared_names() -> None:
    checked = check_table(table(price=[0.0, 1.0] * 20), "price", categorical=["price"])
    assert checked.task == "classification"
    assert checked.frame["price"].tolist() == [0, 1] * 20
    parts = pd.cut(pd.Series(range(40)), 2)
    with pytest.raises(InputError, match="write them as text"):
        check_table(table(price=parts), "price")


def test_a_column_that_is_mostly_text_is_categorical():
    checked = check_table(table(size=series("S", "M", "42")), "price")
    assert set(checked.frame["size"]) == {"S", "M", "42"}


def test_missing_inputs_are_counted():
    frame = table(age=with_first(np.nan, np.arange(40.0)), town=with_first(None, ["a", "b"] * 20))
    assert any("2 missing values in 'age', 'town'" in n for n in check_table(frame, "price").notes)


def test_the_table_received_is_not_changed():
    frame = table(size=series("1", "2"), empty=np.nan)
    before = frame.copy(deep=True)
    check_table(frame, "price", categorical=["town"])
    pd.testing.assert_frame_equal(frame, before)


def test_nullable_types():
    frame = table(
        age=pd.array(with_first(None, list(range(40))), dtype="Int64"),
        town=pd.array(["a", "b"] * 20, dtype="string"),
        on=pd.array([True, None] * 20, dtype="boolean"),
    )
    checked = check_table(frame, "price")
    assert list(checked.inputs.columns) == ["age", "town", "on"]


@pytest.mark.parametrize("name", ["diabetes", "breast_cancer", "digits", "iris", "wine"])
def test_real_tables_pass_with_the_right_task(name):
    dataset = load(name)
    checked = check_table(dataset.frame, dataset.target)
    assert checked.task == dataset.task
    assert checked.frame.shape == dataset.frame.shape


@pytest.mark.parametrize(
    ("name", "values", "is_told"),
    [
        ("customer_id", "distinct", True),
        ("customerID", "distinct", True),
        ("ID", "distinct", True),
        ("anything", "counted", True),
        ("customer_id", "repeated", False),
        ("customer_id", "fractions", False),
        ("paid", "distinct", False),
        ("income", "distinct", False),
    ],
)
@pytest.mark.parametrize("backend", ["numpy_nullable", "pyarrow", None])
def test_numbers_that_identify_rows_are_told_of(
    name: str, values: str, is_told: bool, backend: Literal["numpy_nullable", "pyarrow"] | None
) -> None:
    random = np.random.default_rng(0)
    distinct = random.permutation(10_000)[:40]
    numbers = {
        "distinct": distinct,
        "counted": np.arange(40) + 7,
        "repeated": distinct // 500,
        "fractions": distinct / 8,
    }[values]
    frame = pd.DataFrame({name: numbers, "size": random.normal(size=40)})
    frame["price"] = random.normal(size=40)
    frame = frame if backend is None else frame.convert_dtypes(dtype_backend=backend)
    notes = check_table(frame, "price").notes
    assert any(f"(--drop '{name}')" in note for note in notes) == is_told
    assert name in check_table(frame, "price").frame, "told of, and not left out"
