"""Encodings make numbers of inputs: what is learnt, is learnt from the training rows."""

from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from credence.preprocessing import make_preprocessor

Features = Float[np.ndarray, "point *feature"]


def one_hot(train: Any, test: Any) -> tuple[Features, Features]:
    """The library's own preprocessing of a table or an array."""
    preprocessor = make_preprocessor(train)
    return preprocessor.transform(train), preprocessor.transform(test)


def ordinal(train: pd.DataFrame, test: pd.DataFrame) -> tuple[Features, Features]:
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


def as_they_are(train: np.ndarray, test: np.ndarray) -> tuple[Features, Features]:
    """Vectors whose scale means something."""
    return train.astype(float), test.astype(float)


def grey_levels(train: np.ndarray, test: np.ndarray) -> tuple[Features, Features]:
    """Pixels as a vector, centred, all divided by one standard deviation."""
    x_train, x_test = (x.reshape(len(x), -1).astype(float) for x in (train, test))
    centre, scale = x_train.mean(axis=0), x_train.std()
    return (x_train - centre) / scale, (x_test - centre) / scale


def channels(train: np.ndarray, test: np.ndarray) -> tuple[Features, Features]:
    """Images (point, row, column, channel), each channel centred and divided by its deviation."""
    x_train, x_test = (x.reshape(*x.shape[:3], -1).astype(np.float32) for x in (train, test))
    pixels = (0, 1, 2)  # so many that single precision would lose their sum
    centre = x_train.mean(axis=pixels, dtype=np.float64).astype(np.float32)
    scale = x_train.std(axis=pixels, dtype=np.float64).astype(np.float32)
    return (x_train - centre) / scale, (x_test - centre) / scale
