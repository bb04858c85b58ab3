"""Rows of inputs behind one protocol, wherever they lie: in memory, or on disk.

`Data.x` holds an array, or something with the methods of `Rows` in its place; `data.rows` has these
methods in both cases, so that no code asks which of the two it has. `StoredRows` are the rows of a
file (`credence.density.stored_rows`); a class of one's own that has the methods, and is a JAX
pytree, may stand there as well.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from credence.errors import InputError

Total = Callable[[Any, Any, Any, Array], Any]
"""(params, x, others, weight) of some rows -> a sum over them, each counted by its weight."""


@runtime_checkable
class Rows(Protocol):
    """Rows of inputs (point, *feature), that a log density is summed over."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array that the rows stand for."""
        ...

    @property
    def dtype(self) -> Any:
        """The type of their numbers, as a program sees them."""
        ...

    @property
    def in_memory(self) -> bool:
        """Whether every row costs as little to reach as any other number of the program.

        If not, a pass over all rows costs more than to wait for other chains, and what is looked at
        more than once is better taken into memory.
        """
        ...

    def sum_over(self, total: Total, params: Any, others: Any, weight: Any) -> Any:
        """Sum `total` over all rows, inside compiled programs; once differentiable in params.

        Args:
            total: (params, x, others, weight) of some rows -> a scalar.
            others: what else belongs to the rows, leaves (point, ...).
            weight: (point,), how often each row counts; `total` sees 0 for rows that only fill up
                the shape.
        """
        ...

    def map_over(self, function: Callable[[Any, Any], Array], others: Any) -> Array:
        """Join function(x, others) -> (row, ...) of all rows to (point, ...), inside programs."""
        ...

    def gather(self, index: Int[Array, " row"]) -> Float[Array, "row *feature"]:
        """Look up the rows at positions, inside compiled programs: a minibatch."""
        ...

    def take(self, index: Any) -> Float[Array, "row *feature"]:
        """Bring rows into memory, by a slice, a mask or positions; outside compiled programs."""
        ...

    def example(self) -> Any:
        """Give a network inputs from which it learns their shape and type."""
        ...

    def check_finite(self) -> None:
        """Look at every number.

        Raises:
            InputError: where a value is NaN or infinite.
        """
        ...

    def fingerprint(self) -> bytes:
        """Give bytes that other rows do not have."""
        ...


@dataclass(frozen=True)
class ArrayRows:
    """Rows of an array in memory."""

    x: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        return self.x.shape

    @property
    def dtype(self) -> Any:
        """The type of its numbers."""
        return self.x.dtype

    @property
    def in_memory(self) -> bool:
        """True: nothing has to be read."""
        return True

    def sum_over(self, total: Total, params: Any, others: Any, weight: Any) -> Any:
        """Sum `total` over all rows, seen at once; see `Rows.sum_over`."""
        return total(params, self.x, others, weight)

    def map_over(self, function: Callable[[Any, Any], Array], others: Any) -> Array:
        """Give function(x, others) of all rows; see `Rows.map_over`."""
        return function(self.x, others)

    def gather(self, index: Int[Array, " row"]) -> Float[Array, "row *feature"]:
        """Index the array; see `Rows.gather`."""
        return self.x[index]

    def take(self, index: Any) -> Float[Array, "row *feature"]:
        """Index the array, which may be one of NumPy; see `Rows.take`."""
        return jnp.asarray(self.x[index])

    def example(self) -> Any:
        """Give the rows themselves: a network may look at the numbers."""
        return self.x

    def check_finite(self) -> None:
        """Look at every number; see `Rows.check_finite`."""
        real_numbers("x", self.x)

    def fingerprint(self) -> bytes:
        """Give the bytes of all rows."""
        return np.ascontiguousarray(self.x).tobytes()


def rows_of(x: Any) -> Rows:
    """Give the rows that stand in `Data.x`, where there may be an array."""
    return x if isinstance(x, Rows) else ArrayRows(x)


def checked_rows(x: Any) -> Any:
    """Give what is to stand in `Data.x`, after a look at every number: the door for people's data.

    Raises:
        InputError: where a value is no number, NaN or infinite.
    """
    if not isinstance(x, Rows):
        return jnp.asarray(real_numbers("x", x))
    x.check_finite()
    return x


def real_numbers(name: str, values: Any) -> np.ndarray:
    """Convert values to finite numbers in the precision of the computation.

    Raises:
        InputError: where they are no numbers, NaN or infinite.
    """
    try:
        with np.errstate(over="ignore"):
            values = np.asarray(values).astype(jnp.result_type(float), copy=False)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{name} must be numbers ({error}): encode text and dates first."
        ) from error
    is_sum_finite = np.isfinite(np.sum(values))  # asked first: it needs no array of its own
    if not is_sum_finite and not np.all(np.isfinite(values)):
        raise InputError(f"{name} has NaN or infinite values: remove or impute them first.")
    return values
