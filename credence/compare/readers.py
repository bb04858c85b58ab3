"""Readers read and split what a source of data holds; nothing is scaled yet.

Imports nothing that computes, so that bad input is refused at once.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from credence.compare.encodings import (
    Features,
    as_they_are,
    channels,
    grey_levels,
    one_hot,
    ordinal,
)
from credence.compare.sources import (
    DigitsSource,
    ImageSource,
    NaccSource,
    ReviewsSource,
    SimulatedSource,
    Source,
    TableSource,
    UCISource,
)
from credence.datasets.catalogue.registry import load as load_dataset
from credence.datasets.catalogue.sources import data_folder
from credence.datasets.prepared.digits import principal_digits
from credence.datasets.prepared.embeddings import imdb_embeddings
from credence.datasets.prepared.nacc import HIPPOCAMPUS, read_nacc
from credence.errors import InputError
from credence.runs import workflow
from credence.runs.finishing import Rows
from credence.runs.folder import FitSettings

Encoding = Callable[[Any, Any], tuple[Features, Features]]
"""(training, test) -> both as numbers; see `credence.compare.encodings`."""


@dataclass(frozen=True, eq=False)
class Raw:
    """Split data before scaling, and what scales the inputs; y as the source has it."""

    task: str
    x_train: Any
    y_train: np.ndarray
    x_test: Any
    y_test: np.ndarray
    encode: Encoding
    notes: tuple[str, ...] = ()
    x_others: np.ndarray | None = None
    groups: tuple[np.ndarray, np.ndarray] | None = None
    """Numbers of the groups of training and test rows, where rows are in groups."""


def read(source: Source) -> Raw:
    """Read and split what a source holds.

    Raises:
        InputError: for data that are not to be had or cannot be used.
    """
    return READERS[type(source)](source)


def fit_settings(source: TableSource, **more: Any) -> FitSettings:
    """What `credence fit` would be asked for the same table."""
    return FitSettings(
        table=source.table,
        target=source.target,
        task=source.task,
        categorical=source.categorical,
        drop=source.drop,
        group=source.group,
        test_fraction=source.test_fraction,
        seed=source.split_seed,
        **more,
    )


def _read_table(source: TableSource) -> Raw:
    settings = fit_settings(source)
    whole, table = workflow.read(settings)
    if source.resplit and source.group is None:
        rows = Rows(table, *workflow.random_split(settings, table))
    else:
        rows = workflow.split(settings, whole, table)
    table, train, test = rows.table, rows.train, rows.test
    of_train, of_test = rows.groups_of(train), rows.groups_of(test)
    return Raw(
        table.task,
        train.drop(columns=table.target),
        train[table.target].to_numpy(),
        test.drop(columns=table.target),
        test[table.target].to_numpy(),
        ordinal if source.encoding == "ordinal" else one_hot,
        tuple(table.notes),
        groups=None if of_train is None or of_test is None else (of_train, of_test),
    )


def _read_uci(source: UCISource) -> Raw:
    dataset = load_dataset(source.name, split=source.split_seed)
    frame, target = dataset.frame, dataset.target
    if frame is None or dataset.train is None or dataset.test is None:
        raise InputError(f"The data set '{source.name}' is no table with a split: name another.")
    train, test = (frame.iloc[rows] for rows in (dataset.train, dataset.test))
    y_train, y_test = (part[target].to_numpy() for part in (train, test))
    x_train, x_test = (part.drop(columns=target) for part in (train, test))
    return Raw(dataset.spec.task, x_train, y_train, x_test, y_test, one_hot)


def _read_images(source: ImageSource) -> Raw:
    dataset = load_dataset(source.name)
    if dataset.arrays is None:
        raise InputError(f"The data set '{source.name}' has no images: name another.")
    x, notes = _shrunk(dataset.arrays["x"], source)
    y, train, test = dataset.arrays["y"], dataset.train, dataset.test
    if source.resplit:
        train, test = _new_split(len(y), source.test_fraction, source.split_seed)
    if train is None or test is None:
        raise InputError(f"The data set '{source.name}' has no split of its own: set resplit=True.")
    encode = grey_levels if source.as_vectors else channels
    return Raw("classification", x[train], y[train], x[test], y[test], encode, notes)


def _shrunk(x: np.ndarray, source: ImageSource) -> tuple[np.ndarray, tuple[str, ...]]:
    """Images (point, row, column) or (point, row, column, channel) of fewer pixels, and a note.

    A pixel is the mean over a square, in float32; images come back as they are where shrink is 1.

    Raises:
        InputError: for a shrink below 1, or a side that it does not divide.
    """
    shrink = source.shrink
    if isinstance(shrink, bool) or not isinstance(shrink, int) or shrink < 1:
        raise InputError(
            f"shrink must be a whole number of at least 1, got {shrink!r}; 1 leaves images as they "
            "are."
        )
    if shrink == 1:
        return x, ()
    rows, columns = x.shape[1:3]
    if rows % shrink or columns % shrink:
        raise InputError(
            f"The images of '{source.name}' have {rows} x {columns} pixels, which shrink={shrink} "
            "does not divide: choose a divisor of both sides."
        )
    squares = x.reshape(-1, rows // shrink, shrink, columns // shrink, shrink, *x.shape[3:])
    note = f"Images of {rows} x {columns} pixels, shrunk to {rows // shrink} x {columns // shrink}."
    return squares.mean(axis=(2, 4), dtype=np.float32), (note,)


def _new_split(num_rows: int, test_fraction: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Positions of the training and of the test rows, at random."""
    from sklearn.model_selection import train_test_split

    return train_test_split(np.arange(num_rows), test_size=test_fraction, random_state=seed)


def _read_digits(source: DigitsSource) -> Raw:
    found = principal_digits(
        source.num_components, digits=source.digits, others=source.others, num_train=None
    )
    x_train, y_train, x_test, y_test, x_others = found
    strange = x_others if source.others else None
    return Raw("classification", x_train, y_train, x_test, y_test, as_they_are, (), strange)


def _read_reviews(source: ReviewsSource) -> Raw:
    x_train, y_train, x_test, y_test, about = imdb_embeddings(source.embedder, source.coarse)
    return Raw("classification", x_train, y_train, x_test, y_test, as_they_are, (about,))


def _read_nacc(source: NaccSource) -> Raw:
    folder = data_folder()
    path = (folder or Path()) / source.file
    if folder is None or not path.is_file():
        raise InputError(
            f"The Alzheimer data are given on request only: ask the National Alzheimer's "
            f"Coordinating Center for them, and put their file as {source.file} into the folder "
            "that CREDENCE_DATA names."
        )
    frame = read_nacc(path, target=source.target)
    is_diagnosis = source.target == "diagnosis"
    target = "impaired" if is_diagnosis else HIPPOCAMPUS
    train, test = _new_split(len(frame), source.test_fraction, source.split_seed)
    x, y = frame.drop(columns=target), frame[target].to_numpy()
    task = "classification" if is_diagnosis else "regression"
    return Raw(task, x.iloc[train], y[train], x.iloc[test], y[test], one_hot)


def _simulate(source: SimulatedSource) -> Raw:
    from sklearn import datasets

    make = getattr(datasets, f"make_{source.task}")
    x, y = make(**source.settings)
    train, test = _new_split(len(y), source.test_fraction, source.split_seed)
    return Raw(source.task, x[train], y[train], x[test], y[test], one_hot)


READERS: dict[type, Callable[[Any], Raw]] = {
    TableSource: _read_table,
    UCISource: _read_uci,
    ImageSource: _read_images,
    DigitsSource: _read_digits,
    ReviewsSource: _read_reviews,
    NaccSource: _read_nacc,
    SimulatedSource: _simulate,
}
