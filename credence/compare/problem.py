"""The arrays of a problem: split, limited in rows, standardised, numbers only.

What is learnt from data (means, categories, scales) is learnt from the training rows. Imports
nothing that computes, so that bad input is refused at once.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from credence.compare.encodings import Features
from credence.compare.readers import Raw, read
from credence.compare.sources import Source
from credence.compare.specs import CellSpec, RowLimits
from credence.errors import InputError
from credence.preprocessing import TargetScaler

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
        groups: numbers of the groups of training and test rows; None where rows stand alone.
    """

    x_train: Features
    y_train: Targets
    x_test: Features
    y_test: Targets
    scaler: TargetScaler | None
    labels: tuple[str, ...]
    notes: tuple[str, ...] = ()
    x_others: Features | None = None
    groups: tuple[np.ndarray, np.ndarray] | None = None

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


def load(source: Source, rows: RowLimits) -> Arrays:
    """Load a problem's data.

    Raises:
        InputError: for data that are not to be had or cannot be used.
    """
    raw = _limited(read(source), rows, source.split_seed)
    x_train, x_test = raw.encode(raw.x_train, raw.x_test)
    return _with_targets(raw, x_train, x_test)


def load_cell(cell: CellSpec) -> Arrays:
    """The data of a cell."""
    return load(cell.source, cell.rows)


def _limited(raw: Raw, rows: RowLimits, seed: int) -> Raw:
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
    return replace(
        raw,
        x_train=take(raw.x_train, train),
        y_train=raw.y_train[train],
        x_test=take(raw.x_test, test),
        y_test=raw.y_test[test],
        notes=(*raw.notes, *notes),
        x_others=None if strange is None else strange[others],
        groups=raw.groups and (raw.groups[0][train], raw.groups[1][test]),
    )


def _some(rng: np.random.Generator, total: int, most: int | None) -> Int[np.ndarray, " row"]:
    return np.arange(total) if most is None else np.sort(rng.permutation(total)[:most])


def _with_targets(raw: Raw, x_train: Features, x_test: Features) -> Arrays:
    if raw.task == "regression":
        y_train, y_test = raw.y_train.astype(float), raw.y_test.astype(float)
        scaler = TargetScaler.fit(y_train)
        scaled = scaler.transform(y_train), scaler.transform(y_test)
        return Arrays(
            x_train, scaled[0], x_test, scaled[1], scaler, (), raw.notes, groups=raw.groups
        )
    labels = pd.Index(np.unique(raw.y_train))
    codes = labels.get_indexer(pd.Index(raw.y_test))
    if len(labels) < 2 or (codes < 0).any():
        missing = "there is one class only" if len(labels) < 2 else "a class is in the test only"
        raise InputError(f"Too few training rows: {missing}. Take more rows.")
    y_train = labels.get_indexer(pd.Index(raw.y_train)).astype(np.int32)
    return Arrays(x_train, y_train, x_test, codes.astype(np.int32), None,
                  tuple(map(str, labels)), raw.notes, raw.x_others, raw.groups)  # fmt: skip
