"""Predictors at new inputs: one ensemble, or several stacked."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Array, Float

from credence.density.posterior import MOST_IMAGES
from credence.ensembles.predictive import Predictions, concatenate
from credence.errors import InputError

Inputs = Float[Array | np.ndarray, "point *feature"]


class Predictor(ABC):
    """Base of what predicts; a subclass says how many members it has and what they predict."""

    @property
    @abstractmethod
    def num_members(self) -> int:
        """Networks in all."""

    @property
    @abstractmethod
    def is_equally_weighted(self) -> bool:
        """Whether all members count the same."""

    @abstractmethod
    def predictive(self, x: Inputs) -> Predictions:
        """Predictions at the rows of x, all members in memory: see `over_batches` for many rows."""

    def over_batches(
        self,
        x: Inputs,
        summarise: Callable[[Predictions, slice], dict[str, Any]],
        batch_size: int | None = None,
    ) -> dict[str, np.ndarray]:
        """Summaries of the predictive at every row, in bounded memory at any number of rows.

        Args:
            x: inputs, any number of rows.
            summarise: (predictive of a batch, its rows) -> arrays (point, ...), by name.
            batch_size: rows at a time; see `batch_rows` for the default. The last batch is filled
                up with copies, so one shape is compiled.
        Raises:
            InputError: for no rows at all, or a batch_size below 1.
        """
        x = np.asarray(x)
        if len(x) == 0 or (batch_size is not None and batch_size < 1):
            raise InputError(
                f"Needs at least one row at a time, got {len(x)} rows and batch_size={batch_size}."
            )
        size = batch_size or batch_rows(len(x), self.num_members)
        if batch_size is None and x.ndim > 2:
            size = min(size, MOST_IMAGES)
        parts = []
        for start in range(0, len(x), size):
            rows = slice(start, min(start + size, len(x)))
            missing = size - (rows.stop - rows.start)
            batch = np.pad(x[rows], [(0, missing)] + [(0, 0)] * (x.ndim - 1), mode="edge")
            summary = summarise(self.predictive(batch), rows)
            parts.append(
                {name: np.asarray(value)[: size - missing] for name, value in summary.items()}
            )
        return concatenate(parts)


def batch_rows(num_points: int, num_members: int) -> int:
    """Rows at a time so that members x rows stays near 2^20, in powers of two from 64 on.

    Few shapes, so that tables of similar length share compiled programs; and whole vectors, so that
    a row's prediction does not depend on where in the batch it stands.
    """
    most = max(64, 2 ** int(np.log2(2**20 / num_members)))
    return min(most, max(64, 2 ** int(np.ceil(np.log2(num_points)))))
