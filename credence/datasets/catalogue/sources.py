"""Sources of data sets: the folder CREDENCE_DATA, scikit-learn's own data, and OpenML."""

import hashlib
import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from credence.datasets.catalogue.readers import read_files
from credence.datasets.catalogue.specs import DataFile, Dataset, DatasetSpec, OpenML
from credence.environment import cache_folder
from credence.errors import InputError


def data_folder() -> Path | None:
    """The folder that the environment variable CREDENCE_DATA names, or None if it is not set."""
    folder = os.environ.get("CREDENCE_DATA")
    return Path(folder).expanduser() if folder else None


def is_local(spec: DatasetSpec) -> bool:
    """Whether every file of the data set lies in CREDENCE_DATA (their hashes are not checked)."""
    folder = data_folder()
    return bool(
        folder and spec.files and all((folder / file.name).is_file() for file in spec.files)
    )


def read_local(spec: DatasetSpec) -> Dataset:
    """Reads the data set's files from CREDENCE_DATA.

    Raises:
        InputError: if a file is not the known one (its SHA-256 differs).
    """
    folder = data_folder() or Path()
    return read_files(spec, [_checked(folder / file.name, file) for file in spec.files])


def _checked(path: Path, file: DataFile) -> Path:
    with path.open("rb") as stream:
        found = hashlib.file_digest(stream, "sha256").hexdigest()
    if found != file.sha256:
        raise InputError(
            f"The file {path} is not the known '{file.name}': its SHA-256 is {found}, expected "
            f"{file.sha256}. Put the original file there, or move this one out of CREDENCE_DATA."
        )
    return path


def read_bundled(spec: DatasetSpec) -> Dataset:
    """Reads a data set that scikit-learn brings along; its target column is called `target`."""
    from sklearn import datasets

    return Dataset(spec, "bundled", getattr(datasets, str(spec.bundled))(as_frame=True).frame)


def read_openml(spec: DatasetSpec, openml: OpenML) -> Dataset:
    """Downloads a data set from OpenML, or reads the copy in the cache.

    scikit-learn checks the MD5 that OpenML states; the shape, and the mean of the training images
    where it is known, are checked here. Columns have OpenML's names, the target has ours.

    Raises:
        InputError: if OpenML cannot be reached, or gives something else than the known data.
    """
    bunch = _fetch(spec, openml)
    found = (len(bunch.data), bunch.data.shape[1] + (spec.layout == "table"))
    if found != (spec.rows, spec.columns) or bunch.target is None:
        raise _unexpected(openml, f"shape {found}", f"{(spec.rows, spec.columns)} with a target")
    if spec.layout == "images":
        return _openml_images(spec, openml, bunch)
    frame = bunch.data.assign(**{str(spec.target): bunch.target.to_numpy()})
    return Dataset(spec, "OpenML", frame.apply(_as_numbers_where_possible))


def _fetch(spec: DatasetSpec, openml: OpenML):
    """scikit-learn's Bunch of `data` and `target`: DataFrames for tables, arrays for images."""
    from sklearn.datasets import fetch_openml

    by_name = {"name": openml.name, "version": openml.version}
    which = {"data_id": openml.id} if openml.id else by_name
    as_frame = spec.layout == "table"
    # pandas 3.1 makes numbers of the categories 0, 1, ..., which scikit-learn takes for text; asked
    # for no types it makes numbers of the whole column, as we want them.
    plain = {"dtype": None}
    try:
        with warnings.catch_warnings():  # about retries; what is wrong is said below, once
            warnings.simplefilter("ignore")
            return fetch_openml(
                **which,
                as_frame=as_frame,
                data_home=str(cache_folder()),
                read_csv_kwargs=plain,
            )
    except (OSError, ValueError) as error:  # no network, or OpenML refuses (OpenMLError)
        raise nowhere(spec, error) from error


def _openml_images(spec: DatasetSpec, openml: OpenML, bunch) -> Dataset:
    """OpenML's rows of grey levels as images [point, row, column(, channel)]."""
    shape = spec.image_shape
    x = np.asarray(bunch.data)
    if openml.channels_first:
        x = np.moveaxis(x.reshape(-1, shape[-1], *shape[:-1]), 1, -1)
    x = x.reshape(-1, *shape).astype(np.uint8)
    y = np.asarray(bunch.target).astype(float).astype(np.int64)
    if openml.train_rows is None:
        return Dataset(spec, "OpenML", None, {"x": x, "y": y})
    train, test = np.split(np.arange(len(x)), [openml.train_rows])
    channels = len(openml.train_mean)
    mean = x[train].reshape(-1, channels).mean(axis=0)
    if not np.allclose(mean, openml.train_mean, atol=1e-3):
        raise _unexpected(openml, f"mean grey level {mean}", str(openml.train_mean))
    return Dataset(spec, "OpenML", None, {"x": x, "y": y}, train, test)


def _as_numbers_where_possible(column: pd.Series) -> pd.Series:
    """OpenML stores some whole numbers as categories: back to numbers."""
    if pd.api.types.is_numeric_dtype(column):
        return column
    try:
        return pd.to_numeric(column.astype(object))
    except (ValueError, TypeError):
        return column


def _unexpected(openml: OpenML, found: str, expected: str) -> InputError:
    return InputError(
        f"OpenML's '{openml.name}', version {openml.version}, is not the known data set: "
        f"{found}, expected {expected}. Put the known files into CREDENCE_DATA instead."
    )


def nowhere(spec: DatasetSpec, error: Exception | None = None) -> InputError:
    """The sentence for a data set that is neither on this machine nor to be had."""
    folder, tried, todo = data_folder(), [], []
    if spec.files:
        names = " and ".join(file.name for file in spec.files)
        where = f"the folder {folder} (CREDENCE_DATA)" if folder else "CREDENCE_DATA (not set)"
        tried.append(f"looked for {names} in {where}")
        todo.append(f"set CREDENCE_DATA to a folder with {names}")
    if spec.openml:
        tried.append(f"asked OpenML for '{spec.openml.name}', which gave no answer ({error})")
        todo.append("connect to the internet and try again")
    return InputError(
        f"The data set '{spec.name}' is not to be had: {'; '.join(tried)}. "
        f"To go on, {' or '.join(todo)}."
    )
