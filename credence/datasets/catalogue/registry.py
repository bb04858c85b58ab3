"""The named data sets: find one, load it, list them all."""

import hashlib
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from credence.datasets.catalogue import sources
from credence.datasets.catalogue.arrays import ARRAYS, IMAGES
from credence.datasets.catalogue.bundled import BUNDLED
from credence.datasets.catalogue.specs import Dataset, DatasetSpec
from credence.datasets.catalogue.tables import TABLES
from credence.errors import InputError, did_you_mean, quoted

DATASETS: dict[str, DatasetSpec] = {
    spec.name: spec for spec in (*BUNDLED, *TABLES, *IMAGES, *ARRAYS)
}


class Listed(NamedTuple):
    """A data set and where `load` would find it now: "local", "bundled", "OpenML" or "nowhere"."""

    spec: DatasetSpec
    found: str


class Split(NamedTuple):
    """Positions of the training and of the test rows."""

    train: Int[np.ndarray, " train"]
    test: Int[np.ndarray, " test"]


def list_datasets() -> list[Listed]:
    """Every known data set, and where it can be found now. Nothing is read or downloaded."""
    return [Listed(spec, _where(spec)) for spec in DATASETS.values()]


def find(name: str) -> DatasetSpec:
    """The data set of that name.

    Raises:
        InputError: if there is none; the sentence suggests the nearest name.
    """
    if name not in DATASETS:
        raise InputError(
            f"There is no data set '{name}'.{did_you_mean(name, DATASETS)} "
            f"Known are {quoted(DATASETS, most=len(DATASETS))}."
        )
    return DATASETS[name]


def load(name: str, *, split: int | None = None) -> Dataset:
    """Loads a named data set.

    It is looked for in the folder that the environment variable CREDENCE_DATA names (hashes are
    checked), then in scikit-learn, then on OpenML (kept in the folder CREDENCE_CACHE, by default
    the operating system's place for caches).

    Args:
        name: a name that `list_datasets` knows.
        split: which of the 20 published splits, 0..19, for data sets that have them. Otherwise
            `train` and `test` are the original split, or None where there is none.
    Raises:
        InputError: unknown name or split, a file that is not the known one, or a data set that is
            neither on this machine nor to be had.
    """
    spec = find(name)
    if split is None:
        return _read(spec)
    train, test = _uci_split(spec, split)
    return replace(_in_known_order(_read(spec)), train=train, test=test)


def uci_splits(name: str) -> list[Split]:
    """The 20 random 90/10 splits of Hernández-Lobato & Adams (2015), "Probabilistic
    Backpropagation", in their original order.

    They are defined by their recipe, which is repeated here: permutations drawn one after the
    other by NumPy's legacy generator with seed 1. NumPy has frozen that generator's stream.

    Raises:
        InputError: if the data set has no such splits.
    """
    spec = find(name)
    if not spec.has_uci_splits:
        having = quoted(spec.name for spec in DATASETS.values() if spec.has_uci_splits)
        raise InputError(f"'{name}' has no published UCI splits; only {having} have them.")
    generator = np.random.RandomState(1)
    permutations = (generator.permutation(spec.rows) for _ in range(20))
    return [Split(*np.split(rows, [round(0.9 * spec.rows)])) for rows in permutations]


def _uci_split(spec: DatasetSpec, split: int) -> Split:
    splits = uci_splits(spec.name)
    if split not in range(len(splits)):
        raise InputError(f"split must be 0..{len(splits) - 1} for '{spec.name}', got {split}.")
    return splits[split]


def _in_known_order(dataset: Dataset) -> Dataset:
    """Refuses a copy with other rows, or another order of rows, than the splits were made for."""
    assert dataset.frame is not None
    target = dataset.frame[dataset.target].to_numpy("<f8")
    if hashlib.sha256(target.tobytes()).hexdigest() != dataset.spec.target_sha256:
        raise InputError(
            f"The rows of '{dataset.name}' from {dataset.found} are not in the order that the "
            "published splits were made for. Put the known file into CREDENCE_DATA."
        )
    return dataset


def _where(spec: DatasetSpec) -> str:
    if sources.is_local(spec):
        return "local"
    if spec.bundled:
        return "bundled"
    return "OpenML" if spec.openml else "nowhere"


def _read(spec: DatasetSpec) -> Dataset:
    if sources.is_local(spec):
        return sources.read_local(spec)
    if spec.bundled:
        return sources.read_bundled(spec)
    if spec.openml:
        return sources.read_openml(spec, spec.openml)
    raise sources.nowhere(spec)
