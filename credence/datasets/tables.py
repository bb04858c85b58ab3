"""A table by the name of a file, or by the name of a known data set."""

from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from credence.datasets.catalogue.registry import DATASETS, load
from credence.datasets.files import read_table_file
from credence.errors import InputError, did_you_mean


def read_table(
    path_or_name: str | Path, text_columns: Iterable[str] = (), *, missing: bool = True
) -> pd.DataFrame:
    """Reads a CSV or Parquet file, or a known data set that is a table.

    A file of that name is taken before a data set, and a data set before a folder.

    Args:
        path_or_name: a file, or a name that `list_datasets` knows.
        text_columns: columns of a CSV file that hold names even if these look like numbers: zip
            codes keep their leading zeros.
        missing: whether cells of a CSV file such as "NA" are missing values, or text.
    Raises:
        InputError: if there is neither; the sentence suggests the nearest name. Also for all that
            `read_table_file` and `load` refuse.
    """
    path, name = Path(path_or_name).expanduser(), str(path_or_name)
    if name in DATASETS and not path.is_file():
        return _known_table(name)
    if path.exists():
        return read_table_file(path, text_columns, missing=missing)
    raise InputError(_no_such_table(path, name))


def _known_table(name: str) -> pd.DataFrame:
    if DATASETS[name].layout != "table":
        raise InputError(
            f"The data set '{name}' holds {DATASETS[name].layout}, not a table: in Python, "
            f"credence.datasets.load('{name}').arrays gives them."
        )
    frame = load(name).frame
    assert frame is not None
    return frame


def _no_such_table(path: Path, name: str) -> str:
    """What the caller may have meant: a file beside it, or a data set."""
    if path.suffix or path.name != name:
        beside = [file.name for file in path.parent.iterdir()] if path.parent.is_dir() else []
        missing = f"There is no file '{name}'.{did_you_mean(path.name, beside)}"
    else:
        missing = f"There is neither a file nor a data set '{name}'.{did_you_mean(name, DATASETS)}"
    return (
        f"{missing} Give the path of a CSV or Parquet file, or one of the names that "
        "`credence datasets` lists."
    )
