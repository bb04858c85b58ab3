"""Arrays of ensembles in format 1, which lie in a netCDF file: read by a process of its own.

What such a file declares can only be learnt from libhdf5, which a damaged or hostile one can keep
busy or crash. So a process that runs this module with FILE and ARRAYS copies the arrays into an
.npz file, and may take only so long and so much memory. It takes arrays that lie in the file as
they are: nothing compressed, in chunks, or in other files.
"""

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from credence.processes import module_command
from credence.storage import read_arrays, reading, write_arrays

MOST_SECONDS = 60
"""The longest that reading may take, in seconds; an ensemble of a few GB takes some."""

MOST_MEMORY = 2**29
"""Bytes that reading may take beside twice the file."""


def read_netcdf(path: Path) -> dict[str, np.ndarray]:
    """Read the arrays of a netCDF file that Credence wrote.

    Raises:
        StorageError: where it is missing, damaged, or not as Credence writes them.
    """
    with TemporaryDirectory() as folder, reading(path):
        arrays = Path(folder) / "arrays.npz"
        command = module_command(__name__, str(path), str(arrays))
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=MOST_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise ValueError(f"reading it takes more than {MOST_SECONDS} s") from error
        except subprocess.CalledProcessError as error:
            last = error.stderr.decode(errors="replace").strip().rpartition("\n")[2]
            raise ValueError(last or f"reading it ends with status {error.returncode}") from error
        return read_arrays(arrays)


def copy_arrays(path: Path, arrays: Path) -> None:
    """Copy the arrays of a netCDF file into an .npz file."""
    import h5py

    size = path.stat().st_size
    _limit_memory(MOST_MEMORY + 2 * size)
    with h5py.File(path) as file:
        if not all(isinstance(file.get(name, getlink=True), h5py.HardLink) for name in file):
            raise ValueError("it leads to other files")
        found = {name: part for name, part in file.items() if not _is_dimension(part)}
        for name, part in found.items():
            _require_plain(name, part)
        if sum(part.nbytes for part in found.values()) > size:
            raise ValueError("its arrays are declared larger than the file")
        write_arrays(arrays, {name: _values(part) for name, part in found.items()})


def _is_dimension(part: Any) -> bool:
    """Whether this only names a dimension, as netCDF does."""
    return part.attrs.get("CLASS") == b"DIMENSION_SCALE"


def _require_plain(name: str, part: Any) -> None:
    """Refuse an array that is not in the file number by number."""
    import h5py

    layout = part.id.get_create_plist()
    is_plain = (
        part.dtype.kind in "biuf"
        and layout.get_layout() == h5py.h5d.CONTIGUOUS
        and not layout.get_nfilters()
        and not layout.get_external_count()
        and part.id.get_storage_size() == part.nbytes
    )
    if not is_plain:
        raise ValueError(f"the array {name} is not stored as Credence stores it")


def _values(part: Any) -> np.ndarray:
    """The numbers; netCDF has no truth values, and marks them."""
    return part[()].astype(bool) if part.attrs.get("dtype") == "bool" else part[()]


def _limit_memory(most: int) -> None:
    """Refuse this process more memory, where the system can."""
    try:
        import resource
    except ImportError:  # Windows
        return
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


if __name__ == "__main__":
    copy_arrays(Path(sys.argv[1]), Path(sys.argv[2]))
