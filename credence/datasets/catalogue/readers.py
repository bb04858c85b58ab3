"""Files of known data sets to `Dataset`.

Nothing read here can run code: CSV, Parquet, and NumPy files without pickled objects.
"""

import io
from pathlib import Path

import numpy as np
import pandas as pd

from credence.datasets.catalogue.specs import Dataset, DatasetSpec
from credence.datasets.files import read_csv, read_parquet


def read_files(spec: DatasetSpec, paths: list[Path]) -> Dataset:
    """Reads the files of a data set in the way its layout asks for."""
    if spec.layout == "arrays":
        return Dataset(spec, "local", arrays=_read_npz(paths[0]))
    if paths[0].suffix == ".npz":
        return _train_and_test(spec, _read_npz(paths[0]))
    if spec.layout == "images":
        return _encoded_images(spec, paths)
    return _table(spec, paths[0])


def _read_npz(path: Path) -> dict[str, np.ndarray]:
    with np.load(path, allow_pickle=False) as arrays:
        return dict(arrays)


def _table(spec: DatasetSpec, path: Path) -> Dataset:
    """A CSV or Parquet file, where "?" is a missing value; the split becomes row numbers."""
    frame = read_csv(path) if path.suffix == ".csv" else read_parquet(path)
    frame = frame.replace("?", np.nan)
    train, test = None, None
    if spec.split_column and spec.split_values:
        part = frame.pop(spec.split_column).to_numpy()
        train, test = (np.flatnonzero(part == value) for value in spec.split_values)
    return Dataset(spec, "local", frame.drop(columns=list(spec.left_out)), None, train, test)


def _train_and_test(spec: DatasetSpec, arrays: dict[str, np.ndarray]) -> Dataset:
    """Arrays x_train, y_train, x_test, y_test put together, the training rows first."""
    x = np.concatenate([arrays["x_train"], arrays["x_test"]])
    y = np.concatenate([arrays["y_train"], arrays["y_test"]]).astype(np.int64)
    train, test = np.split(np.arange(len(x)), [len(arrays["x_train"])])
    if spec.layout == "images":
        return Dataset(spec, "local", None, {"x": x, "y": y}, train, test)
    names = [f"input{i}" for i in range(1, x.shape[1] + 1)]  # as OpenML names them
    frame = pd.DataFrame(x, columns=names).assign(**{str(spec.target): y})
    return Dataset(spec, "local", frame, None, train, test)


def _encoded_images(spec: DatasetSpec, paths: list[Path]) -> Dataset:
    """Two Parquet files, training and test, with columns `image` (an image file) and `label`."""
    parts = [read_parquet(path) for path in paths]
    x = np.stack([_decode(image) for part in parts for image in part["image"]])
    y = np.concatenate([part["label"].to_numpy(np.int64) for part in parts])
    train, test = np.split(np.arange(len(x)), [len(parts[0])])
    return Dataset(spec, "local", None, {"x": x, "y": y}, train, test)


def _decode(image: bytes) -> np.ndarray:
    """An image file in memory to grey levels [row, column, channel], 0..255."""
    from PIL import Image  # matplotlib brings Pillow along

    with Image.open(io.BytesIO(image), formats=("WEBP", "PNG")) as opened:
        return np.asarray(opened.convert("RGB"))
