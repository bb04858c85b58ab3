"""What is known of a named data set, and what loading it gives.

`arrays`, `bundled` and `tables` list them; `registry.load` reads a `Dataset`. This file
imports nothing heavy.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

CC_BY = "CC BY 4.0"
RESEARCH = "no formal licence; free for research with citation"


@dataclass(frozen=True)
class DataFile:
    """A file in the folder CREDENCE_DATA, and the SHA-256 of its bytes."""

    name: str
    sha256: str


@dataclass(frozen=True)
class OpenML:
    """A data set on OpenML, by name and version.

    Attributes:
        id: OpenML's number for this name and version, used where it is known.
        train_rows: how many of its first rows are the original training set, where that is known.
        channels_first: images are stored plane by plane (channel, row, column).
        train_mean: known mean of each channel of the training images, in grey levels.
    """

    name: str
    version: int
    id: int | None = None
    train_rows: int | None = None
    channels_first: bool = False
    train_mean: tuple[float, ...] = ()


@dataclass(frozen=True)
class DatasetSpec:
    """One named data set.

    Attributes:
        target: column to predict; None for "images" (their target is y) and "arrays".
        rows, columns: shape of the table with its target; for "images" their number and the
            values in each; for "arrays" the number of states and of inputs.
        split: the published division into training and test rows, in words.
        layout: "table" (a DataFrame), "images" (arrays x, y) or "arrays" (as named in the file).
        files: in CREDENCE_DATA; two files are the training and the test part.
        bundled: name of scikit-learn's loader, for data that scikit-learn brings along.
        split_column, split_values: a column of the file that holds the part of each row, which
            is not part of the table, and its values in (training, test) rows.
        left_out: columns of the file that are not part of the table.
        image_shape: (row, column) or (row, column, channel) of one image.
        has_uci_splits: the 20 published random 90/10 splits are defined (`uci_splits`).
        target_sha256: of the target's values as little-endian float64, in the original order.
    """

    name: str
    task: Literal["regression", "classification"]
    target: str | None
    rows: int
    columns: int
    description: str
    source: str
    licence: str
    split: str = "none"
    layout: Literal["table", "images", "arrays"] = "table"
    files: tuple[DataFile, ...] = ()
    bundled: str | None = None
    openml: OpenML | None = None
    split_column: str | None = None
    split_values: tuple[str | int, str | int] | None = None
    left_out: tuple[str, ...] = ()
    image_shape: tuple[int, ...] = ()
    has_uci_splits: bool = False
    target_sha256: str | None = None


@dataclass(frozen=True, eq=False)
class Dataset:
    """A data set in memory.

    Attributes:
        spec: what it is; `name`, `task` and `target` are read from it.
        found: where it came from: "local", "bundled" or "OpenML".
        frame: the table with its target column, for data sets of layout "table".
        arrays: for images `x` [point, row, column(, channel)] uint8 and `y` [point] int64, for
            layout "arrays" what the file holds, under its own names.
        train, test: positions of the rows [point] of the split, or None if there is none.
    """

    spec: DatasetSpec
    found: str
    frame: "pd.DataFrame | None" = None
    arrays: "dict[str, np.ndarray] | None" = None
    train: "np.ndarray | None" = None
    test: "np.ndarray | None" = None

    @property
    def name(self) -> str:
        """The data set's name, as `datasets.load` takes it."""
        return self.spec.name

    @property
    def task(self) -> str:
        """ "regression" or "classification"."""
        return self.spec.task

    @property
    def target(self) -> str | None:
        """The name of the target's column."""
        return self.spec.target
