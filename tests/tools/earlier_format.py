"""Folders as Credence wrote them in format 1: arrays of an ensemble in netCDF, no checksums."""

import json
from pathlib import Path

import numpy as np
import xarray

from credence.storage import file_sha256, read_arrays


def as_format_1(folder: Path) -> None:
    """Make the saved ensemble or estimator in a folder one of format 1."""
    arrays = read_arrays(folder / "ensemble.npz")
    dataset = xarray.Dataset(
        {
            name: (("chain", "draw", *(f"{name}.{i}" for i in range(array.ndim - 2))), array)
            for name, array in arrays.items()
        }
    )
    dataset.to_netcdf(folder / "ensemble.nc", engine="h5netcdf")
    (folder / "ensemble.npz").unlink()
    unseal(folder / "ensemble.json", format=1, arrays_sha256=file_sha256(folder / "ensemble.nc"))
    if (folder / "estimator.json").exists():
        unseal(folder / "estimator.json", ensemble_sha256=None)


def run_as_format_1(run: Path) -> None:
    """Make a finished RUN folder one of format 1."""
    as_format_1(run / "ensemble")
    unseal(run / "manifest.json", format=1, checksums=None)
    unseal(run / "metrics.json")
    unseal(run / "evaluation.json")
    np.savez_compressed(run / "evaluation.npz", **read_arrays(run / "evaluation.npz"))


def unseal(path: Path, **changes: object) -> None:
    """Take format and checksum off a document; entries become others, or none where None."""
    document = json.loads(path.read_text())
    document = {k: v for k, v in document.items() if k not in ("format", "sha256")} | changes
    content = {name: value for name, value in document.items() if name not in changes}
    content |= {name: value for name, value in changes.items() if value is not None}
    path.write_text(json.dumps(content, indent=2))
