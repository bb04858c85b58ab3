"""YearPredictionMSD and SVHN through scikit-learn's OpenML loader, from small files like theirs."""

from dataclasses import replace

import numpy as np
import pytest
from tools.openml_files import put

from credence.datasets.catalogue import registry, sources
from credence.errors import InputError

RNG = np.random.default_rng(0)


@pytest.fixture
def cache(monkeypatch, tmp_path):
    """An empty data folder, a cache with what a test puts there, and no network."""

    def offline(request, *args, **kwargs):
        raise OSError(f"no network in tests, asked for {request.full_url}")

    monkeypatch.setenv("CREDENCE_DATA", str(tmp_path))
    monkeypatch.setenv("CREDENCE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("sklearn.datasets._openml.urlopen", offline)
    monkeypatch.setattr("sklearn.datasets._openml.time.sleep", lambda seconds: None)
    return tmp_path / "cache"


def test_year_prediction(cache) -> None:
    """90 features of timbre; the year is OpenML's target, and gets our column's name."""
    spec = replace(registry.find("year_prediction_msd"), rows=6)
    features = {f"V{i}": RNG.normal(size=6).round(5) for i in range(1, 91)}
    year = np.array([2001, 1922, 2011, 1998, 1969, 2004])
    put(cache, 44027, "YearPredictionMSD", "year", {"year": year, **features})
    dataset = sources.read_openml(spec, spec.openml)
    assert dataset.frame.shape == (6, 91)
    assert dataset.frame[spec.target].tolist() == year.tolist()
    np.testing.assert_allclose(dataset.frame["V90"], features["V90"])


def test_year_prediction_with_a_column_less_is_refused(cache) -> None:
    spec = replace(registry.find("year_prediction_msd"), rows=6)
    features = {f"V{i}": RNG.normal(size=6).round(5) for i in range(1, 90)}
    put(cache, 44027, "YearPredictionMSD", "year", {"year": np.arange(6), **features})
    with pytest.raises(InputError, match=r"shape \(6, 90\), expected \(6, 91\)"):
        sources.read_openml(spec, spec.openml)


def test_house_numbers(cache) -> None:
    """32 x 32 x 3 grey levels in a row, and nominal labels."""
    spec = replace(registry.find("svhn"), rows=4)
    pixels = RNG.integers(0, 256, (4, 3072))
    columns = {f"V{i + 1}": pixels[:, i] for i in range(3072)}
    put(cache, 41081, "SVHN", "class", {**columns, "class": np.array(["1", "10", "3", "1"])})
    dataset = sources.read_openml(spec, spec.openml)
    assert dataset.arrays["x"].shape == (4, 32, 32, 3)
    assert dataset.arrays["x"].dtype == np.uint8
    np.testing.assert_array_equal(dataset.arrays["x"].reshape(4, -1), pixels)
    assert dataset.arrays["y"].tolist() == [1, 10, 3, 1]


def test_a_damaged_file_is_refused(cache) -> None:
    spec = replace(registry.find("svhn"), rows=4)
    columns = {f"V{i + 1}": np.zeros(4, int) for i in range(3072)}
    put(cache, 41081, "SVHN", "class", {**columns, "class": np.array(["1", "2", "3", "1"])})
    for file in cache.rglob("download/**/*.gz"):
        file.write_bytes(file.read_bytes()[:-50])
    with pytest.raises(InputError, match="not to be had"):
        sources.read_openml(spec, spec.openml)
