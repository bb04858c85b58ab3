"""Ensembles of format 1 still open, and a hostile one costs a minute and no more."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import h5py
import jax
import numpy as np
import pytest
from tools.earlier_format import as_format_1
from tools.ensembles import ENSEMBLES, X, make_ensemble

from credence import netcdf
from credence.ensembles.ensemble import Ensemble
from credence.errors import StorageError
from credence.storage import file_sha256


@pytest.mark.parametrize("name", ["regression", "weighted"])
def test_folders_of_format_1_open(name: str, tmp_path: Path) -> None:
    saved = make_ensemble(**ENSEMBLES[name])
    saved.scalars["is_divergent"] = np.array([[True, False, False]] * 2)  # type: ignore[index]
    saved.save(tmp_path)
    as_format_1(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ensemble.json", "ensemble.nc"]
    loaded = Ensemble.load(tmp_path)
    for ours, theirs in zip(*map(jax.tree.leaves, (saved.params, loaded.params)), strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(loaded.weights, saved.weights)
    assert loaded.scalars["is_divergent"].dtype == bool
    np.testing.assert_array_equal(loaded.predictive(X).mean(), saved.predictive(X).mean())
    loaded.save(tmp_path)
    np.testing.assert_array_equal(Ensemble.load(tmp_path).weights, saved.weights)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An ensemble in format 1."""
    folder = tmp_path_factory.mktemp("format1")
    make_ensemble().save(folder)
    as_format_1(folder)
    return folder


def sparse(file: h5py.File) -> None:
    file.create_dataset("network.2.kernel", shape=(2, 3, 10**9), dtype="f4")


def packed(file: h5py.File) -> None:
    file.create_dataset("network.2.kernel", data=np.zeros((2, 3, 9)), compression="gzip")


def elsewhere(file: h5py.File) -> None:
    outside = [(str(Path(sys.executable)), 0, h5py.h5f.UNLIMITED)]
    file.create_dataset("network.2.kernel", shape=(2, 3, 9), dtype="f8", external=outside)


def linked(file: h5py.File) -> None:
    file["network.2.kernel"] = h5py.ExternalLink("/etc/hostname", "/")


@pytest.mark.parametrize("spoil", [sparse, packed, elsewhere, linked])
def test_arrays_that_are_not_in_the_file_are_refused(
    spoil: Any, folder: Path, tmp_path: Path
) -> None:
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    with h5py.File(tmp_path / "ensemble.nc", "a") as file:
        spoil(file)
    document = json.loads((tmp_path / "ensemble.json").read_text())
    document["arrays_sha256"] = file_sha256(tmp_path / "ensemble.nc")
    (tmp_path / "ensemble.json").write_text(json.dumps(document))
    with pytest.raises(StorageError, match=r"ensemble.nc cannot be read"):
        Ensemble.load(tmp_path)


def test_reading_that_never_ends_is_ended(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(netcdf, "MOST_SECONDS", 0.01)
    with pytest.raises(StorageError, match=r"ensemble.nc .*takes more than 0.01 s"):
        Ensemble.load(folder)
