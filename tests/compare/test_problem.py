"""The data of a problem: read, split, limited in rows, and made into numbers."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tools.data_folder import needs_data

from credence.compare import readers
from credence.compare.cell import build_posterior
from credence.compare.problem import load
from credence.compare.readers import Raw, read
from credence.compare.sources import (
    ImageSource,
    NaccSource,
    SimulatedSource,
    TableSource,
    UCISource,
    moved,
)
from credence.compare.specs import CellSpec, ModelSpec, RowLimits
from credence.datasets import CheckedTable, uci_splits
from credence.datasets import load as load_dataset
from credence.errors import InputError
from credence.runs import workflow

LINE = SimulatedSource(
    task="classification",
    settings={
        "n_samples": 60, "n_features": 3, "n_informative": 3, "n_redundant": 0, "random_state": 0
    },
)  # fmt: skip


def test_ordinal_encoding_has_an_input_per_column(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "city": ["Bern", "Zug", None, "Basel"] * 20,
            "area": [1.0, 2.0, np.nan, 4.0] * 20,
            "y": [0.0, 1.0, 0.5, 2.0] * 20,
        }
    )
    frame.to_csv(tmp_path / "t.csv", index=False)
    source = TableSource(table=str(tmp_path / "t.csv"), target="y", encoding="ordinal")
    arrays = load(source, RowLimits())
    assert arrays.x_train.shape[1] == 2
    raw = {2.0: 0, 0.0: 1, 1.0: 2, 0.5: -1}  # by target: Basel, Bern, Zug, missing
    y = arrays.scaler.inverse(arrays.y_train)
    codes = np.array([raw[round(value, 6)] for value in y])
    expected = (codes - codes.mean()) / codes.std()
    np.testing.assert_allclose(arrays.x_train[:, 0], expected, atol=1e-12)
    assert np.isfinite(arrays.x_test).all()


def test_whole_groups_are_held_back(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": np.arange(60.0), "y": np.arange(60) % 7.0})
    frame.assign(patient=[f"p{row // 3}" for row in range(60)]).to_csv(
        tmp_path / "t.csv", index=False
    )
    source = TableSource(table=str(tmp_path / "t.csv"), target="y", group="patient", resplit=True)
    arrays = load(source, RowLimits(test=10))
    assert arrays.x_train.shape[1] == 1
    assert arrays.groups is not None
    of_train, of_test = arrays.groups
    assert (len(set(of_train)), len(of_train), len(of_test)) == (16, 48, 10)
    assert not set(of_train) & set(of_test)
    assert any("Whole groups of 'patient'" in note for note in arrays.notes)
    cell = CellSpec(
        problem="t", source=source, model=ModelSpec(), rows=RowLimits(), label="n",
        method="nuts", settings={},
    )  # fmt: skip
    posterior = build_posterior(cell, arrays)
    assert list(posterior.groups) == list(of_train)
    before = replace(cell, source=replace(source, group=None)).name
    assert before != cell.name


def test_rows_are_limited_and_said() -> None:
    arrays = load(LINE, RowLimits(train=30, test=5))
    assert (len(arrays.x_train), len(arrays.x_test)) == (30, 5)
    assert "30 of 48 training rows" in arrays.notes[0]
    again = load(LINE, RowLimits(train=30, test=5))
    np.testing.assert_array_equal(arrays.x_train, again.x_train)


def test_another_seed_has_other_test_rows_and_other_data() -> None:
    source = LINE
    first, again, other = (load(moved(source, seed), RowLimits()) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.x_test, again.x_test)
    assert not np.isin(first.x_test, other.x_test).any()


@pytest.mark.parametrize("as_images", [True, False])
def test_another_seed_splits_anew_what_has_a_split_of_its_own(
    as_images: bool, tmp_path: Path, monkeypatch
) -> None:
    """Images and a table; without `resplit` all seeds have the data's own test rows."""
    number = np.arange(40)
    own = {"train": number[:30], "test": number[30:]}
    if as_images:
        source = ImageSource(name="digits")
        arrays = {"x": np.tile(number[:, None, None], (1, 2, 2)), "y": number % 2}
        dataset = replace(load_dataset("diabetes"), arrays=arrays, **own)
        monkeypatch.setattr(readers, "load_dataset", lambda name: dataset)
    else:
        source = TableSource(table="adult", target="income")
        frame = pd.DataFrame({"age": number, "income": number % 2})
        table = CheckedTable(frame, "income", "classification", [])
        monkeypatch.setattr(workflow, "read", lambda settings: (frame, table))
        dataset = replace(load_dataset("diabetes"), frame=frame, **own)
        monkeypatch.setattr(workflow, "load_dataset", lambda name: dataset)

    def rows(seed: int, resplit: bool) -> set[float]:
        asked = replace(source, resplit=True, test_fraction=0.25) if resplit else source
        raw = read(moved(asked, seed))
        return set(np.asarray(raw.x_test, float)[:, 0].ravel())

    assert rows(0, False) == rows(1, False) == set(range(30, 40))
    assert rows(0, True) != rows(1, True) != set(range(30, 40))
    assert len(rows(1, True)) == 10


def shrunk(monkeypatch, x: np.ndarray, shrink: int) -> Raw:
    """What is read where a data set has the images x; the first is for training."""
    rows = {"train": np.arange(1), "test": np.arange(1, len(x))}
    dataset = replace(load_dataset("diabetes"), arrays={"x": x, "y": np.arange(len(x))}, **rows)
    monkeypatch.setattr(readers, "load_dataset", lambda name: dataset)
    return read(ImageSource(name="digits", shrink=shrink))


def test_shrunk_images_are_means_over_squares(monkeypatch) -> None:
    grey = np.array([[0, 1, 250, 255], [2, 4, 255, 255], [9, 9, 0, 0], [9, 9, 0, 1]], np.uint8)
    expected = np.array([[1.75, 253.75], [9, 0.25]])
    raw = shrunk(monkeypatch, np.stack([grey, grey.T]), 2)
    assert raw.x_train.dtype == np.float32
    np.testing.assert_array_equal(raw.x_train, [expected])
    np.testing.assert_array_equal(raw.x_test, [expected.T])
    assert raw.notes == ("Images of 4 x 4 pixels, shrunk to 2 x 2.",)
    colours = np.stack([grey, 2 * (grey // 2), grey.T], axis=-1)[:2]  # 2 rows, 4 columns
    raw = shrunk(monkeypatch, np.stack([colours, colours]), 2)
    means = [[1.75, 1.5, 1.75], [253.75, 253, 9]]
    np.testing.assert_array_equal(raw.x_test, [[means]])
    whole = shrunk(monkeypatch, np.stack([grey, grey]), 1)
    assert (whole.x_train.dtype, whole.notes) == (np.uint8, ())


@pytest.mark.parametrize(
    ("shrink", "sentence"),
    [
        (0, "whole number of at least 1, got 0"),
        (2.0, "got 2.0"),
        (True, "got True"),
        (3, "4 x 6 pixels, which shrink=3 does not divide"),
    ],
)
def test_bad_shrinks(monkeypatch, shrink: int, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        shrunk(monkeypatch, np.zeros((2, 4, 6)), shrink)


def test_every_seed_of_the_fbnn_tables_has_other_test_rows() -> None:
    from credence.compare import find

    for name in ("fbnn", "fbnn_first_version"):
        for each in find(name).problems:
            has_own = each.name in ("adult", "mnist", "celeba")
            assert moved(each.source, 1) != each.source
            assert not has_own or each.source.resplit


@pytest.mark.parametrize("target", ["diagnosis", "hippocampus"])
def test_alzheimer_rows_come_from_the_users_own_file(
    target: str, tmp_path: Path, monkeypatch
) -> None:
    source = NaccSource(target=target, test_fraction=0.25)
    monkeypatch.setenv("CREDENCE_DATA", str(tmp_path))
    with pytest.raises(InputError, match=r"on request only.*nacc.csv"):
        load(source, RowLimits())
    rng, names = np.random.default_rng(0), ("NACCAGE", "EDUC", "SEX", "LHIPPO", "RHIPPO", "BILLS")
    frame = pd.DataFrame({name: rng.integers(1, 4, 40) for name in names})
    frame["NACCUDSD"], frame["NACCALZD"] = np.tile([1, 4], 20), 1
    frame.to_csv(tmp_path / "nacc.csv", index=False)
    arrays = load(source, RowLimits(train=20, test=5))
    assert (len(arrays.x_train), len(arrays.x_test)) == (20, 5)
    assert arrays.task == ("classification" if target == "diagnosis" else "regression")
    assert arrays.x_train.shape[1] == len(names) - (target == "hippocampus")


@needs_data
def test_published_splits_go_by_number() -> None:
    """Split 3 has the test rows that its file has."""
    splits = uci_splits("boston")
    y = load_dataset("boston").frame["MEDV"].to_numpy(float)
    for number in (0, 3):
        arrays = load(moved(UCISource(name="boston"), number), RowLimits())
        np.testing.assert_allclose(arrays.scaler.inverse(arrays.y_test), y[splits[number].test])
    with pytest.raises(InputError, match=r"split must be 0\.\.19"):
        load(moved(UCISource(name="boston"), 20), RowLimits())
