"""Turn a table into the numbers a network sees, and standardised targets back into their units.

What was learnt from a table is plain values: it is saved as JSON, which holds no code, and gives
bit for bit the same numbers after loading.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Real, Shaped

from credence.datasets.columns import checked_column, is_numeric
from credence.datasets.encoding import (
    LARGEST,
    CategoricalColumn,
    Feature,
    NumericColumn,
    learn_names,
    learn_numbers,
)
from credence.datasets.names import with_text_names
from credence.datasets.scales import STEPS_PER_STD, scale_of_target
from credence.errors import InputError, did_you_mean, plural, quoted
from credence.schema import build

Table = pd.DataFrame | Shaped[np.ndarray, "row column"]
KINDS = {"numbers": NumericColumn, "names": CategoricalColumn}
MOST_TOLD = 5  # columns whose news get a sentence each
KIND_OF = {column_type: kind for kind, column_type in KINDS.items()}


@dataclass(frozen=True)
class TablePreprocessor:
    """What was learnt from the columns of a table; `transform` turns a table into numbers."""

    columns: tuple[NumericColumn | CategoricalColumn, ...]

    @property
    def feature_names_in_(self) -> list[str]:
        """The names of the columns in training, in their order."""
        return [column.name for column in self.columns]

    @property
    def number_columns(self) -> list[str]:
        """The columns of numbers."""
        return [column.name for column in self.columns if isinstance(column, NumericColumn)]

    @property
    def text_columns(self) -> list[str]:
        """The columns of names that were text in training: to be read from files as text."""
        return [
            column.name
            for column in self.columns
            if isinstance(column, CategoricalColumn) and column.is_text
        ]

    def get_feature_names_out(self) -> list[str]:
        """The names of the columns that `transform` returns."""
        empty = pd.DataFrame(columns=self.feature_names_in_, dtype=np.float64)
        return [name for name, _ in self._features(empty)]

    def transform(self, X: Table) -> Float[np.ndarray, "row feature"]:
        """The table as finite float64 numbers that float32 can hold.

        Columns may come in any order; further ones are ignored.

        Raises:
            InputError: for missing columns, infinities, and text where training had numbers.
        """
        frame = self.select(X)
        return np.column_stack([values for _, values in self._features(frame)])

    def check_columns(self, X: Table) -> list[str]:
        """Notes, in sentences, on what a table to predict for brings that training did not have:
        columns that are ignored, names never seen, values missing for the first time, numbers far
        outside. Of many such columns only the first few get a sentence each.

        Raises:
            InputError: for missing columns.
        """
        frame = as_frame(X)
        extra = [name for name in frame if name not in self.feature_names_in_]
        notes = [f"Ignored {plural(len(extra), 'column')}: {quoted(extra)}."] if extra else []
        selected = self.select(frame)
        news = [(each.name, each.news(selected[each.name])) for each in self.columns]
        news = [(name, note) for name, note in news if note]
        notes += [note for _, note in news[:MOST_TOLD]]
        if further := [name for name, _ in news[MOST_TOLD:]]:
            count = plural(len(further), "column")
            notes.append(f"There is more of this kind in {count}: {quoted(further)}.")
        return notes

    def is_outside(self, X: Table) -> Bool[np.ndarray, " row"]:
        """Find rows with a number far outside those of training, or with a name never seen.

        Far outside is more than a standard deviation beyond the smallest or the largest number.

        Raises:
            InputError: for missing columns.
        """
        frame = self.select(X)
        found = np.zeros(len(frame), bool)
        for column in self.columns:
            found |= column.is_outside(frame[column.name])
        return found

    def to_json(self) -> dict[str, Any]:
        """What was learnt, as a dictionary that `json.dump` can write."""
        columns = [{"kind": KIND_OF[type(column)]} | asdict(column) for column in self.columns]
        return {"columns": columns}

    @classmethod
    def from_json(cls, saved: dict[str, Any]) -> "TablePreprocessor":
        """The preprocessor that `to_json` described.

        Raises:
            InputError: if the dictionary is not one that `to_json` made.
        """
        try:
            return cls(tuple(_column_from_json(**entry) for entry in saved["columns"]))
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"The saved preprocessor is damaged or of another version ({error!r}): fit again."
            ) from error

    def select(self, X: Table) -> pd.DataFrame:
        """The columns of training, in their order.

        Raises:
            InputError: where some are missing.
        """
        frame = as_frame(X)
        missing = [name for name in self.feature_names_in_ if name not in frame]
        if missing:
            unused = set(frame.columns) - set(self.feature_names_in_)
            raise InputError(
                f"The table lacks {plural(len(missing), 'column')} that training had: "
                f"{quoted(missing)}.{did_you_mean(missing[0], unused)}"
            )
        return frame[self.feature_names_in_]

    def _features(self, frame: pd.DataFrame) -> Iterator[Feature]:
        for column in self.columns:
            yield from column.features(frame[column.name])


def make_preprocessor(
    X: Table, sample_weight: Float[np.ndarray, " row"] | None = None
) -> TablePreprocessor:
    """Learns how to turn a table of inputs, or an array of numbers, into numbers for a network.

    Missing values may occur everywhere. The columns of an array are called x0, x1, ...

    Args:
        sample_weight: > 0, how many observations each row stands for; None for one.
    Raises:
        InputError: for duplicate names, infinities, and columns that are empty, hold dates, or
            hold text among numbers.
    """
    frame = as_frame(X)
    columns = {name: checked_column(frame[name], notes=[]) for name in frame}
    frame = pd.DataFrame(columns, index=frame.index)
    empty = frame.columns[frame.isna().all()]
    if len(empty):
        raise InputError(
            f"No values in {plural(len(empty), 'column')}: {quoted(empty)}. Remove it."
        )
    numeric = [name for name in frame if is_numeric(frame[name])]
    numbers = {column.name: column for column in learn_numbers(frame[numeric], sample_weight)}
    return TablePreprocessor(tuple(numbers.get(name) or learn_names(frame[name]) for name in frame))


def as_frame(X: Table) -> pd.DataFrame:
    """A DataFrame whose column names are text; the columns of an array are x0, x1, ...

    Raises:
        InputError: for column names that `with_text_names` refuses.
    """
    if isinstance(X, np.ndarray):
        return pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])])
    return with_text_names(X)


def _column_from_json(kind: str, **values: Any) -> NumericColumn | CategoricalColumn:
    return build(KINDS[kind], values)


@dataclass(frozen=True)
class TargetScaler:
    """Standardises targets: z = (y - mean) / scale, with one mean and scale for each target.

    With one target, arrays may have any shape; with several, the last axis is the target.
    """

    mean: tuple[float, ...]
    scale: tuple[float, ...]

    @classmethod
    def fit(
        cls,
        y: Real[np.ndarray, "point *target"],
        sample_weight: Real[np.ndarray, " point"] | None = None,
    ) -> "TargetScaler":
        """Mean and standard deviation (divisor: the number of points) of each target.

        Raises:
            InputError: for a target that `scale_of_target` refuses.
        """
        targets = np.reshape(y, (len(y), -1)).T
        names = ["The target"]
        if len(targets) > 1:
            names = [f"Target {i} of {len(targets)}" for i in range(1, len(targets) + 1)]
        scales = [
            scale_of_target(name, target, sample_weight)
            for name, target in zip(names, targets, strict=True)
        ]
        means, stds = zip(*scales, strict=True)
        return cls(means, stds)

    @classmethod
    def unscaled(
        cls,
        y: Real[np.ndarray, "point *target"],
        sample_weight: Real[np.ndarray, " point"] | None = None,
    ) -> "TargetScaler":
        """A scaler that leaves targets as they are.

        Raises:
            InputError: for a target that `fit` refuses, or that single precision cannot carry.
        """
        fitted = cls.fit(y, sample_weight)
        for mean, std in zip(fitted.mean, fitted.scale, strict=True):
            size = abs(mean) + std
            steps = STEPS_PER_STD * float(np.finfo(np.float32).eps) * size
            if size > LARGEST or std < max(1 / LARGEST, steps):
                raise InputError(
                    f"Without standardising, the target would be modelled in single precision, "
                    f"which cannot carry values around {mean:g} with a standard deviation of "
                    f"{std:g}: leave standardize_target at True."
                )
        return cls((0.0,) * len(fitted.mean), (1.0,) * len(fitted.mean))

    def transform(self, y: Real[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """Targets in their own unit to standardised ones, in float64."""
        return (np.asarray(y, np.float64) - self._values(self.mean)) / self._values(self.scale)

    def inverse(self, z: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """Standardised targets (means, quantiles, draws) back to their own unit, in float64."""
        return self.inverse_scale(z) + self._values(self.mean)

    def inverse_scale(self, std: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """Standard deviations of standardised targets to the targets' own unit, in float64."""
        return np.asarray(std, np.float64) * self._values(self.scale)

    def to_json(self) -> dict[str, list[float]]:
        """Means and scales, as a dictionary that `json.dump` can write."""
        return {"mean": list(self.mean), "scale": list(self.scale)}

    @classmethod
    def from_json(cls, saved: Mapping[str, list[float]]) -> "TargetScaler":
        """The scaler that `to_json` described.

        Raises:
            ValueError: for what it cannot have made.
        """
        scaler = build(cls, saved, "target_scaler")
        if len(scaler.mean) != len(scaler.scale) or not (
            np.isfinite(scaler.mean + scaler.scale).all() and min(scaler.scale) > 0
        ):
            raise ValueError("target_scaler needs a finite mean and a scale > 0 of every target")
        return scaler

    def _values(self, values: tuple[float, ...]) -> float | Float[np.ndarray, " target"]:
        return np.array(values) if len(values) > 1 else float(*values)
