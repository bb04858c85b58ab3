"""The arrays of a problem: split, limited in rows, standardised, numbers only.

What is learnt from data (means, categories, scales) is learnt from the training rows. Imports
nothing that computes, so that bad input is refused at once.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

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
from credence.compare.specs import CellSpec, RowLimits
from credence.datasets.catalogue.registry import load as load_dataset
from credence.datasets.catalogue.sources import data_folder
from credence.datasets.prepared.digits import principal_digits
from credence.datasets.prepared.embeddings import imdb_embeddings
from credence.datasets.prepared.nacc import HIPPOCAMPUS, read_nacc
from credence.errors import InputError
from credence.preprocessing import TargetScaler, make_preprocessor
from credence.runs import workflow
from credence.runs.folder import FitSettings

Features = Float[np.ndarray, "point *feature"]
Targets = Float[np.ndarray, " point"] | Int[np.ndarray, " point"]


@dataclass(frozen=True, eq=False)
class Arrays:
    """What a network sees, and the way back.

    Attributes:
        x_train, x_test: standardised inputs (point, feature), images (point, row, column, channel).
        y_train, y_test: standardised targets, or labels from 0 (point,).
        scaler: back to the target's unit; None for labels.
        labels: names of the labels; () for numbers.
        x_others: strangers, inputs of classes that no label stands for; None where there are none.
        notes: what was done to the data, in sentences.
    """

    x_train: Features
    y_train: Targets
    x_test: Features
    y_test: Targets
    scaler: TargetScaler | None
    labels: tuple[str, ...]
    notes: tuple[str, ...] = ()
    x_others: Features | None = None

    @property
    def task(self) -> str:
        """Regression or classification."""
        return "classification" if self.scaler is None else "regression"

    @property
    def size(self) -> dict[str, Any]:
        """What a table says of the data."""
        return {
            "task": self.task,
            "n_train": len(self.x_train),
            "n_test": len(self.x_test),
            "n_features": math.prod(self.x_train.shape[1:]),
            "labels": list(self.labels),
            "notes": list(self.notes),
        }


@dataclass(frozen=True, eq=False)
class _Raw:
    """Split data before scaling; y as the source has it."""

    task: str
    x_train: Any
    y_train: np.ndarray
    x_test: Any
    y_test: np.ndarray
    notes: tuple[str, ...] = ()
    x_others: np.ndarray | None = None


def load(source: Source, rows: RowLimits) -> Arrays:
    """Load a problem's data.

    Raises:
        InputError: for data that are not to be had or cannot be used.
    """
    raw = _limited(_read(source), rows, source.split_seed)
    encode = {
        "uci": _one_hot,
        "images": _grey_levels if getattr(source, "as_vectors", True) else _channels,
        "simulated": _one_hot,
        "digits": _as_they_are,
        "reviews": _as_they_are,
        "nacc": _one_hot,
        "table": _ordinal if getattr(source, "encoding", "") == "ordinal" else _one_hot,
    }[source.kind]
    x_train, x_test = encode(raw.x_train, raw.x_test)
    return _with_targets(raw, x_train, x_test)


def load_cell(cell: CellSpec) -> Arrays:
    """The data of a cell."""
    return load(cell.source, cell.rows)


def _read(source: Source) -> _Raw:
    if isinstance(source, TableSource):
        return _read_table(source)
    if isinstance(source, ImageSource):
        return _read_images(source)
    if isinstance(source, DigitsSource):
        return _read_digits(source)
    if isinstance(source, ReviewsSource):
        return _read_reviews(source)
    if isinstance(source, NaccSource):
        return _read_nacc_file(source)
    return _read_uci(source) if isinstance(source, UCISource) else _simulate(source)


def fit_settings(source: TableSource, **more: Any) -> FitSettings:
    """What `credence fit` would be asked for the same table."""
    return FitSettings(
        table=source.table,
        target=source.target,
        task=source.task,
        categorical=source.categorical,
        drop=source.drop,
        test_fraction=source.test_fraction,
        seed=source.split_seed,
        **more,
    )


def _read_table(source: TableSource) -> _Raw:
    settings = fit_settings(source)
    _, table = workflow.read(settings)
    if source.resplit:
        train, test = workflow.random_split(settings, table)
    else:
        split = workflow.split(settings, table)
        train, test = split.train, split.test
    return _Raw(
        table.task,
        train.drop(columns=table.target),
        train[table.target].to_numpy(),
        test.drop(columns=table.target),
        test[table.target].to_numpy(),
        tuple(table.notes),
    )


def _read_uci(source: UCISource) -> _Raw:
    dataset = load_dataset(source.name, split=source.split_seed)
    frame, target = dataset.frame, dataset.target
    if frame is None or dataset.train is None or dataset.test is None:
        raise InputError(f"The data set '{source.name}' is no table with a split: name another.")
    train, test = (frame.iloc[rows] for rows in (dataset.train, dataset.test))
    y_train, y_test = (part[target].to_numpy() for part in (train, test))
    x_train, x_test = (part.drop(columns=target) for part in (train, test))
    return _Raw(dataset.spec.task, x_train, y_train, x_test, y_test)


def _read_images(source: ImageSource) -> _Raw:
    dataset = load_dataset(source.name)
    if dataset.arrays is None:
        raise InputError(f"The data set '{source.name}' has no images: name another.")
    x, notes = _shrunk(dataset.arrays["x"], source)
    y, train, test = dataset.arrays["y"], dataset.train, dataset.test
    if source.resplit:
        train, test = _new_split(len(y), source.test_fraction, source.split_seed)
    if train is None or test is None:
        raise InputError(f"The data set '{source.name}' has no split of its own: set resplit=True.")
    return _Raw("classification", x[train], y[train], x[test], y[test], notes)


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


def _read_digits(source: DigitsSource) -> _Raw:
    found = principal_digits(
        source.num_components, digits=source.digits, others=source.others, num_train=None
    )
    x_train, y_train, x_test, y_test, x_others = found
    strange = x_others if source.others else None
    return _Raw("classification", x_train, y_train, x_test, y_test, (), strange)


def _read_reviews(source: ReviewsSource) -> _Raw:
    x_train, y_train, x_test, y_test, about = imdb_embeddings(source.embedder, source.coarse)
    return _Raw("classification", x_train, y_train, x_test, y_test, (about,))


def _read_nacc_file(source: NaccSource) -> _Raw:
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
    return _Raw(task, x.iloc[train], y[train], x.iloc[test], y[test])


def _simulate(source: SimulatedSource) -> _Raw:
    from sklearn import datasets

    make = getattr(datasets, f"make_{source.task}")
    x, y = make(**source.settings)
    train, test = _new_split(len(y), source.test_fraction, source.split_seed)
    return _Raw(source.task, x[train], y[train], x[test], y[test])


def _limited(raw: _Raw, rows: RowLimits, seed: int) -> _Raw:
    """Keep at most as many rows as `rows` says, drawn at random, in their order."""
    rng = np.random.default_rng(seed)
    train = _some(rng, len(raw.y_train), rows.train)
    test = _some(rng, len(raw.y_test), rows.test)
    strange = raw.x_others
    others = _some(rng, 0 if strange is None else len(strange), rows.others)
    cut = [
        f"{len(kept):,} of {total:,} {name} rows, drawn at random"
        for name, kept, total in (
            ("training", train, len(raw.y_train)),
            ("test", test, len(raw.y_test)),
            ("strange", others, 0 if strange is None else len(strange)),
        )
        if len(kept) < total
    ]
    notes = (f"Only {' and '.join(cut)}.",) if cut else ()
    take = lambda x, index: x.iloc[index] if isinstance(x, pd.DataFrame) else x[index]  # noqa: E731
    return _Raw(
        raw.task,
        take(raw.x_train, train),
        raw.y_train[train],
        take(raw.x_test, test),
        raw.y_test[test],
        (*raw.notes, *notes),
        None if strange is None else strange[others],
    )


def _some(rng: np.random.Generator, total: int, most: int | None) -> Int[np.ndarray, " row"]:
    return np.arange(total) if most is None else np.sort(rng.permutation(total)[:most])


def _one_hot(train: Any, test: Any) -> tuple[Features, Features]:
    """The library's own preprocessing of a table or an array."""
    preprocessor = make_preprocessor(train)
    return preprocessor.transform(train), preprocessor.transform(test)


def _ordinal(train: pd.DataFrame, test: pd.DataFrame) -> tuple[Features, Features]:
    """One input per column: names numbered in their order, a new or missing one -1; standardised.

    A column that is constant in training becomes 0.
    """
    from sklearn.preprocessing import StandardScaler

    numbered = [
        np.column_stack([_numbered(train[name], part[name]) for name in train])
        for part in (train, test)
    ]
    scaler = StandardScaler().fit(numbered[0])
    return scaler.transform(numbered[0]), scaler.transform(numbered[1])


def _numbered(known: pd.Series, values: pd.Series) -> Float[np.ndarray, " row"]:
    if pd.api.types.is_numeric_dtype(known) and not pd.api.types.is_bool_dtype(known):
        return values.to_numpy(float, na_value=np.nan_to_num(known.median()))
    names = sorted(known.dropna().astype(str).unique())
    codes = {name: code for code, name in enumerate(names)}
    return values.astype(object).map(lambda value: codes.get(str(value), -1)).to_numpy(float)


def _as_they_are(train: np.ndarray, test: np.ndarray) -> tuple[Features, Features]:
    """Vectors whose scale means something."""
    return train.astype(float), test.astype(float)


def _grey_levels(train: np.ndarray, test: np.ndarray) -> tuple[Features, Features]:
    """Pixels as a vector, centred, all divided by one standard deviation."""
    x_train, x_test = (x.reshape(len(x), -1).astype(float) for x in (train, test))
    centre, scale = x_train.mean(axis=0), x_train.std()
    return (x_train - centre) / scale, (x_test - centre) / scale


def _channels(train: np.ndarray, test: np.ndarray) -> tuple[Features, Features]:
    """Images (point, row, column, channel), each channel centred and divided by its deviation."""
    x_train, x_test = (x.reshape(*x.shape[:3], -1).astype(np.float32) for x in (train, test))
    pixels = (0, 1, 2)  # so many that single precision would lose their sum
    centre = x_train.mean(axis=pixels, dtype=np.float64).astype(np.float32)
    scale = x_train.std(axis=pixels, dtype=np.float64).astype(np.float32)
    return (x_train - centre) / scale, (x_test - centre) / scale


def _with_targets(raw: _Raw, x_train: Features, x_test: Features) -> Arrays:
    if raw.task == "regression":
        y_train, y_test = raw.y_train.astype(float), raw.y_test.astype(float)
        scaler = TargetScaler.fit(y_train)
        scaled = scaler.transform(y_train), scaler.transform(y_test)
        return Arrays(x_train, scaled[0], x_test, scaled[1], scaler, (), raw.notes)
    labels = pd.Index(np.unique(raw.y_train))
    codes = labels.get_indexer(pd.Index(raw.y_test))
    if len(labels) < 2 or (codes < 0).any():
        missing = "there is one class only" if len(labels) < 2 else "a class is in the test only"
        raise InputError(f"Too few training rows: {missing}. Take more rows.")
    y_train = labels.get_indexer(pd.Index(raw.y_train)).astype(np.int32)
    return Arrays(x_train, y_train, x_test, codes.astype(np.int32), None,
                  tuple(map(str, labels)), raw.notes, raw.x_others)  # fmt: skip
