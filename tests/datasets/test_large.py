"""Data sets written to disk in chunks: the recipes, the same bytes, and going on."""

import json

import numpy as np
import pytest

from credence.datasets.prepared import large
from credence.datasets.prepared.large import make_classification, make_regression, open_data
from credence.errors import InputError


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(large, "CHUNK_ROWS", 1000)


def test_regression_has_the_stated_coefficients_and_noise(tmp_path) -> None:
    data = make_regression(tmp_path, num_rows=4500, num_features=20, num_informative=5, noise_std=3)
    x, y = data.x[:], data.y
    assert (x.shape, x.dtype, y.dtype) == ((4500, 20), np.float32, np.float32)
    found, rest, *_ = np.linalg.lstsq(x, y, rcond=None)
    assert np.sum(abs(found) > 1) == 5
    assert found.max() < 100
    assert np.sqrt(rest[0] / (4500 - 20)) == pytest.approx(3, abs=4.5 * 3 / 9000**0.5)
    assert abs(x.mean()) < 4.5 / x.size**0.5
    assert abs(x.var() - 1) < 4.5 * (2 / x.size) ** 0.5


def test_classification_has_clusters_at_corners(tmp_path) -> None:
    """A cluster's mean is its corner where labels have no noise."""
    data = make_classification(
        tmp_path,
        num_rows=4000,
        num_features=8,
        num_informative=3,
        num_redundant=2,
        separation=5,
        clusters_per_class=1,
        flipped=0,
    )
    x, y = data.x[:], data.y
    assert set(np.unique(y)) == {0, 1}
    assert np.linalg.matrix_rank(x[:500].astype(float), tol=1e-2) == 6
    means = np.stack([x[y == label].mean(axis=0) for label in (0, 1)])
    corner = np.isclose(abs(means), 5, atol=0.2).all(axis=0)
    assert corner.sum() == 3


def test_flipped_labels_are_as_many_as_stated(tmp_path) -> None:
    settings = {"num_rows": 4000, "num_features": 5, "num_informative": 3, "seed": 1}
    clean = make_classification(tmp_path / "clean", flipped=0, **settings)
    noisy = make_classification(tmp_path / "noisy", flipped=0.4, **settings)
    np.testing.assert_array_equal(clean.x[:], noisy.x[:])
    assert abs(np.mean(clean.y != noisy.y) - 0.2) < 4.5 * (0.2 * 0.8 / 4000) ** 0.5


def test_the_same_seed_gives_the_same_bytes_and_another_other_ones(tmp_path) -> None:
    settings = {"num_rows": 2500, "num_features": 3, "num_informative": 2}
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        make_regression(tmp_path / name, seed=seed, **settings)
    content = {name: (tmp_path / name / "x.npy").read_bytes() for name in "abc"}
    assert content["a"] == content["b"] != content["c"]


def test_what_was_stopped_goes_on_to_the_same_bytes(tmp_path, monkeypatch) -> None:
    settings = {"num_rows": 3500, "num_features": 3, "num_informative": 2}
    whole = make_regression(tmp_path / "whole", **settings)
    written = []

    def stop(path, text):
        if len(written) == 3:  # none, one and two chunks
            raise KeyboardInterrupt
        written.append(path)
        path.write_text(text)

    with monkeypatch.context() as patch:
        patch.setattr(large, "write_text", stop)
        with pytest.raises(KeyboardInterrupt):
            make_regression(tmp_path / "part", **settings)
    with pytest.raises(InputError, match=r"not finished \(2 of 4 chunks\)"):
        open_data(tmp_path / "part")
    part = make_regression(tmp_path / "part", **settings)
    np.testing.assert_array_equal(part.x[:], whole.x[:])
    np.testing.assert_array_equal(part.y, whole.y)


def test_a_folder_with_other_data_is_refused(tmp_path) -> None:
    make_regression(tmp_path, num_rows=10, num_features=12)
    with pytest.raises(InputError, match="holds another data set"):
        make_regression(tmp_path, num_rows=11, num_features=12)
    assert json.loads((tmp_path / "made.json").read_text())["num_rows"] == 10


@pytest.mark.parametrize("name", ["x.npy", "y.npy"])
def test_a_file_of_the_user_is_not_written_over(tmp_path, name: str) -> None:
    np.save(tmp_path / name, np.arange(5.0))
    with pytest.raises(InputError, match="did not write"):
        make_regression(tmp_path, num_rows=10, num_features=12)
    np.testing.assert_array_equal(np.load(tmp_path / name), np.arange(5.0))


@pytest.mark.parametrize(
    ("make", "settings", "message"),
    [
        (make_regression, {"num_rows": 0}, "num_rows must be >= 1, got 0"),
        (
            make_regression,
            {"num_features": 5},
            "10 informative and redundant features do not fit 5",
        ),
        (make_regression, {"noise_std": float("nan")}, "noise_std must be >= 0"),
        (make_classification, {"num_informative": 1}, "4 clusters need as many corners"),
        (make_classification, {"flipped": 2}, "flipped must be between 0 and 1"),
    ],
)
def test_bad_sizes_are_refused_before_anything_is_written(
    tmp_path, make, settings, message
) -> None:
    with pytest.raises(InputError, match=message):
        make(tmp_path / "data", **settings)
    assert not (tmp_path / "data").exists()


def test_an_empty_folder_holds_nothing(tmp_path) -> None:
    with pytest.raises(InputError, match="holds no data set"):
        open_data(tmp_path)
