"""Observations: inputs, targets and weights, row by row, and parts of them."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from credence.density.rows import Rows, checked_rows, real_numbers, rows_of
from credence.errors import InputError

Targets = Float[Array, "point target"] | Int[Array, " point"]

PART_BYTES = 256 * 2**20
"""Bytes of rows on disk that are read into memory where a part of them will do."""


class Data(NamedTuple):
    """Observations. Regression targets are (point, target); labels are integers (point,)."""

    x: Any
    """Array (point, *feature), or `Rows` in its place, such as those of a file."""
    y: Targets
    weight: Float[Array, " point"]
    """How many observations each row stands for."""
    anchor: Float[Array, " point"] | None = None
    """Log likelihood of each row at a typical parameter, subtracted row by row; see `anchored`."""
    fold: Int[Array, " point"] | None = None
    """The part of the rows that each belongs to, where chains leave parts out: see
    `credence.kernels.leaving_out`."""

    @property
    def rows(self) -> Rows:
        """The inputs with the methods of `Rows`, wherever they lie."""
        return rows_of(self.x)

    @property
    def log_anchor(self) -> float:
        """Nats that the log likelihood of these data lacks, as measured from the anchor."""
        if self.anchor is None:
            return 0.0
        return float(np.dot(np.asarray(self.weight, float), np.asarray(self.anchor, float)))


def checked_data(x: Any, y: Any, weight: Any = None) -> Data:
    """Arrays for a `Posterior`: x and weight floating, y as its likelihood wants it.

    Args:
        x: (point, feature, ...), any real numbers.
        y: (point, target) numbers or integer labels (point,).
        weight: (point,) numbers >= 0; ones by default.
    Raises:
        InputError: where shapes disagree or values are not finite.
    """
    x = checked_rows(x)
    y = np.asarray(y)
    if len(x.shape) < 2 or x.shape[0] == 0:
        raise InputError(f"x must be (point, feature) with at least one row, got shape {x.shape}.")
    num_points = x.shape[0]
    if num_points != len(y):
        raise InputError(f"x has {num_points} rows but y has {len(y)}: they must match row by row.")
    weight = np.ones(num_points) if weight is None else real_numbers("weight", weight)
    if weight.shape != (num_points,):
        raise InputError(f"weight must be {num_points} numbers, got shape {weight.shape}.")
    if weight.min() < 0:
        raise InputError(f"weight must be >= 0, got {weight.min()}.")
    is_label = np.issubdtype(y.dtype, np.integer) and y.ndim == 1
    y = (
        jnp.asarray(y, jnp.int32)
        if is_label
        else jnp.asarray(real_numbers("y", y).reshape(len(y), -1))
    )
    return Data(x, y, jnp.asarray(weight, x.dtype))


def feature_shape(data: Data) -> int | tuple[int, ...]:
    """Number of features, or the shape of an image."""
    shape = data.x.shape[1:]
    return shape[0] if len(shape) == 1 else shape


def num_targets(data: Data) -> int:
    """Number of regression targets; 1 for labels."""
    return data.y.shape[1] if data.y.ndim == 2 else 1


def like(data: Data) -> Data:
    """Shapes and dtypes of data."""
    shape = lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype)  # noqa: E731
    return jax.tree.map(shape, data._replace(x=None))._replace(x=shape(data.x))


def one_row(features: int | tuple[int, ...], targets: int) -> Data:
    """Describe one row of data by its shapes, which take no memory however large they are."""
    row = (features,) if isinstance(features, int) else features
    shape: Any = partial(jax.ShapeDtypeStruct, dtype=jnp.result_type(float))
    return Data(shape((1, *row)), shape((1, targets)), shape((1,)))


def rows_at(data: Data, index: Any) -> Data:
    """Bring rows into memory, by a slice or by positions on the host."""
    others = jax.tree.map(lambda leaf: jnp.asarray(leaf[index]), data._replace(x=None))
    return others._replace(x=data.rows.take(index))


def some_rows(key: PRNGKeyArray, data: Data, num_rows: int | None = None) -> Data:
    """Take `num_rows` rows at random into memory, with weights as if they were all.

    Rows without weight are never taken. Without a number it takes as many as fit `PART_BYTES`.
    """
    fitting = PART_BYTES // (data.x.dtype.itemsize * int(np.prod(data.x.shape[1:])))
    counting = np.flatnonzero(np.asarray(data.weight))
    count = int(np.clip(num_rows or fitting, 1, len(counting)))
    seed = np.asarray(jax.random.bits(key, (2,), jnp.uint32)).tolist()
    index = np.random.default_rng(seed).choice(len(counting), count, replace=False, shuffle=False)
    rows = rows_at(data, counting[np.sort(index)])
    return rows._replace(weight=rows.weight * (jnp.sum(data.weight) / jnp.sum(rows.weight)))


def in_memory(key: PRNGKeyArray, data: Data) -> Data:
    """These data; or, where their inputs do not lie in memory, `some_rows` of them."""
    return data if data.rows.in_memory else some_rows(key, data)


def minibatch(data: Data, index: Int[Array, " batch"], is_real: Float[Array, " batch"]) -> Data:
    """Rows `index` with weights scaled so that sums estimate, without bias, sums over all rows.

    The one place where minibatches are scaled. Rows with is_real = 0 only fill the shape.
    """
    scale = data.x.shape[0] / jnp.sum(is_real)
    others = jax.tree.map(lambda leaf: leaf[index], data._replace(x=None))
    rows = others._replace(x=data.rows.gather(index))
    return rows._replace(weight=rows.weight * is_real * scale)
