"""Rows that stay on disk, read a chunk at a time inside compiled programs.

Where inputs do not fit memory, `StoredRows` stands in their place in `Data`: it has their shape,
and its only leaf is the number of an open file, so that another file of the same shape needs no new
program. A sum over rows becomes a `lax.scan` over chunks, each brought in by `jax.pure_callback`;
value and gradient come from one pass, and chains abreast share it. While a chunk is worked on, a
thread reads the next. Rows are read, not mapped: mapped pages would count as memory of the process.
A loop of the driver's over chunks would be as fast, but outside the compiled blocks: every kernel,
checkpoint and tuner works on rows on disk as it is. `benchmarks/memory.py` measures it.
"""

import hashlib
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from credence.density.rows import Total
from credence.errors import InputError
from credence.spacing import evenly_spaced

CHUNK_BYTES = 32 * 2**20
"""Bytes of rows that are read at a time; two chunks are in memory."""
SAMPLED = 1024
"""Rows that a file is known by."""


@jax.tree_util.register_pytree_node_class
class StoredRows:
    """Rows (point, feature) of an .npy file, in place of an array of them: see `Rows`.

    Args:
        handle: number of the file in this process; see `open_rows`.
        shape, dtype: of the rows, as a program sees them.
        chunk_rows: rows read at a time.
    """

    def __init__(self, handle: Any, shape: tuple[int, ...], dtype: Any, chunk_rows: int) -> None:
        self.handle, self.shape, self.dtype = handle, shape, np.dtype(dtype)
        self.chunk_rows = chunk_rows

    def tree_flatten(self) -> tuple[tuple[Any], tuple[Any, ...]]:
        """The handle is data, all else is static."""
        return (self.handle,), (self.shape, self.dtype, self.chunk_rows)

    @classmethod
    def tree_unflatten(cls, static: tuple[Any, ...], leaves: tuple[Any]) -> "StoredRows":
        """Put the parts that `tree_flatten` gives together again."""
        return cls(leaves[0], *static)

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"StoredRows(shape={self.shape}, dtype={self.dtype}, chunk_rows={self.chunk_rows})"

    @property
    def ndim(self) -> int:
        """Number of axes of the array that these rows stand for."""
        return len(self.shape)

    @property
    def num_chunks(self) -> int:
        """Chunks of a pass; the last may repeat rows of its neighbour."""
        return -(-self.shape[0] // self.chunk_rows)

    def __getitem__(self, index: Any) -> Float[np.ndarray, "row *feature"]:
        """Rows on the host, by a slice, a mask or positions; outside compiled programs only."""
        positions = np.arange(len(self))[index]
        return _reader(self.handle).take(positions).astype(self.dtype)

    @property
    def in_memory(self) -> bool:
        """False: a pass reads the file."""
        return False

    def take(self, index: Any) -> Float[Array, "row *feature"]:
        """Read rows from the file; see `Rows.take`."""
        return jnp.asarray(self[index])

    def example(self) -> Float[Array, "row *feature"]:
        """Give a row of zeros."""
        return jnp.zeros((1, *self.shape[1:]), self.dtype)

    def sum_over(self, total: Total, params: Any, others: Any, weight: Any) -> Array:
        """Sum `total` over all rows chunk by chunk; see `Rows.sum_over`.

        Value and gradient take one pass together, so that nothing of a chunk is kept; reverse mode
        only.
        """
        return _sum_over_chunks(total, params, self, (others, weight))

    def map_over(self, function: Callable[[Any, Any], Array], others: Any) -> Array:
        """Give function(x, others) of all chunks, joined; see `Rows.map_over`."""
        return _map_over_chunks(function, self, others)

    def chunk(self, start: Int[Array, ""]) -> Float[Array, "row *feature"]:
        """chunk_rows rows from start on, inside compiled programs."""
        shape = (self.chunk_rows, *self.shape[1:])
        kind = jax.ShapeDtypeStruct(shape, np.float32)
        read = partial(_read, count=self.chunk_rows)
        found = jax.pure_callback(read, kind, self.handle, start, vmap_method="sequential")
        return found.astype(self.dtype)

    def gather(self, index: Int[Array, " row"]) -> Float[Array, "row *feature"]:
        """Rows at positions, inside compiled programs: a minibatch."""
        kind = jax.ShapeDtypeStruct((*index.shape, *self.shape[1:]), np.float32)
        found = jax.pure_callback(_take, kind, self.handle, index, vmap_method="sequential")
        return found.astype(self.dtype)

    def fingerprint(self) -> bytes:
        """Shape and some rows: a whole hash would read gigabytes before every run."""
        some = evenly_spaced(len(self), SAMPLED, to_whole=np.floor)
        digest = hashlib.sha256(repr((self.shape, "float32")).encode())
        digest.update(_reader(self.handle).take(some).tobytes())
        return digest.digest()

    def check_finite(self) -> None:
        """Look at every number, in one pass over the file; see `Rows.check_finite`."""
        reader = _reader(self.handle)
        for start in range(0, len(self), self.chunk_rows):
            rows = reader.read(start, min(self.chunk_rows, len(self) - start))
            if not np.isfinite(rows.sum(dtype=np.float64)):  # cannot overflow from single precision
                raise InputError(
                    f"The file {reader.path} has NaN or infinite values between rows {start} and "
                    f"{start + len(rows)}: remove or impute them first."
                )


def open_rows(path: str | Path, *, chunk_rows: int | None = None) -> StoredRows:
    """The rows of an .npy file of float32 (point, feature), which stay there.

    Args:
        chunk_rows: rows read at a time; None for about 32 MB.
    Raises:
        InputError: where the file is not such an array.
    """
    reader, handle = _opened(Path(path))
    row_bytes = 4 * int(np.prod(reader.shape[1:]))
    usual = max(1, CHUNK_BYTES // row_bytes)
    if chunk_rows is not None and chunk_rows < 1:
        raise InputError(f"chunk_rows must be >= 1, got {chunk_rows}; about {usual} are 32 MB.")
    chunk_rows = min(reader.shape[0], chunk_rows or usual)
    number = np.asarray(handle, np.int32)
    return StoredRows(number, reader.shape, jnp.result_type(float), chunk_rows)


class Reader:
    """An open .npy file, and the chunk that is likely to be wanted next."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.shape, self._offset = _header(path)
        self._file = path.open("rb")
        self._pool = ThreadPoolExecutor(1)
        self._lock, self._one_at_a_time = Lock(), Lock()
        self._ahead: tuple[tuple[int, int], Future[np.ndarray]] | None = None

    def read(self, start: int, count: int) -> Float[np.ndarray, "row *feature"]:
        """Rows start ... start + count - 1; meanwhile a thread reads as many after them."""
        with self._lock:
            wanted, ahead = (start, count), self._ahead
            following = min(start + count, self.shape[0] - count)
            if start == following:  # the end of a pass; the next one starts at the first row
                following = 0
            self._ahead = (following, count), self._pool.submit(self._rows, following, count)
        if ahead is not None and ahead[0] == wanted:
            return ahead[1].result()
        return self._rows(start, count)

    def take(self, index: Int[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """Rows at positions."""
        flat = np.asarray(index).ravel()
        rows = np.empty((len(flat), *self.shape[1:]), np.float32)
        for place, position in enumerate(flat):
            self._fill(rows[place : place + 1], int(position))
        return rows.reshape(*np.shape(index), *self.shape[1:])

    def _rows(self, start: int, count: int) -> Float[np.ndarray, "row *feature"]:
        rows = np.empty((count, *self.shape[1:]), np.float32)
        self._fill(rows, start)
        return rows

    def _fill(self, rows: np.ndarray, start: int) -> None:
        buffer = rows.data.cast("B")
        place = self._offset + start * (rows.nbytes // len(rows))
        while buffer:
            count = self._read(buffer, place)
            if count == 0:
                raise OSError(f"{self.path} ended early: it was cut since it was opened.")
            buffer, place = buffer[count:], place + count

    def _read(self, buffer: memoryview, place: int) -> int:
        """Read from a place of the file into a buffer; return the number of bytes."""
        if hasattr(os, "preadv"):
            return os.preadv(self._file.fileno(), [buffer], place)
        with self._one_at_a_time:  # Windows has no reading at a place
            self._file.seek(place)
            return self._file.readinto(buffer)


_READERS: list[Reader] = []
"""Open files by handle."""
_HANDLES: dict[tuple[Any, ...], int] = {}
"""Handles by path, size and time of the last change: a file is opened once."""


def _opened(path: Path) -> tuple[Reader, int]:
    """The reader of a file and its handle."""
    try:
        known = path.stat()
    except OSError as error:
        raise InputError(f"The file {path} cannot be read: {error.strerror}.") from error
    identity = (path.resolve(), known.st_ino, known.st_size, known.st_mtime_ns)
    if identity not in _HANDLES:
        _READERS.append(Reader(path))
        _HANDLES[identity] = len(_READERS) - 1
    return _READERS[_HANDLES[identity]], _HANDLES[identity]


def _header(path: Path) -> tuple[tuple[int, ...], int]:
    """Shape, and where the numbers begin."""
    try:
        mapped = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise InputError(f"The file {path} is not an .npy array ({error}).") from error
    if not isinstance(mapped, np.memmap) or mapped.dtype != np.float32 or mapped.ndim < 2:
        found = f"{getattr(mapped, 'dtype', 'several arrays')} of shape {np.shape(mapped)}"
        raise InputError(f"The file {path} must hold float32 (point, feature), but is {found}.")
    if not mapped.flags.c_contiguous or len(mapped) == 0:
        raise InputError(f"The file {path} must hold rows one after the other, at least one.")
    return mapped.shape, mapped.offset


def _reader(handle: Any) -> Reader:
    return _READERS[int(handle)]


def _read(handle: Any, start: Any, *, count: int) -> np.ndarray:
    return _reader(handle).read(int(start), count)


def _take(handle: Any, index: Any) -> np.ndarray:
    return _reader(handle).take(np.asarray(index))


Chunk = tuple[Any, Any]
"""Rows x of a chunk, and what else belongs to them, leaves (row, ...)."""


def chunks_of(rows: StoredRows, others: Any, start: Int[Array, ""]) -> tuple[Chunk, Array]:
    """The chunk from start on, and which of its rows no chunk before had."""
    first = jnp.minimum(start, len(rows) - rows.chunk_rows)
    part = lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, first, rows.chunk_rows)  # noqa: E731
    is_new = first + jnp.arange(rows.chunk_rows) >= start
    return (rows.chunk(first), jax.tree.map(part, others)), is_new


def _starts(rows: StoredRows) -> Int[Array, " chunk"]:
    return rows.chunk_rows * jnp.arange(rows.num_chunks, dtype=jnp.int32)


def _sum_over_chunks(total: Total, params: Any, rows: StoredRows, weighted: Any) -> Array:
    """`StoredRows.sum_over`, weighted what belongs to the rows and how often each counts."""

    def scanned(function: Total, params: Any, rows: StoredRows, weighted: Any) -> Any:
        def terms(params: Any, start: Any) -> Any:
            (x, (others, weight)), is_new = chunks_of(rows, weighted, start)
            return function(params, x, others, jnp.where(is_new, weight, 0.0))

        def add(sums: Any, start: Any) -> tuple[Any, None]:
            return jax.tree.map(jnp.add, sums, terms(params, start)), None

        starts = _starts(rows)
        shapes = jax.eval_shape(terms, params, starts[0])
        zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
        return jax.lax.scan(add, zeros, starts)[0]

    @jax.custom_vjp
    def summed(params: Any, rows: StoredRows, weighted: Any) -> Array:
        return scanned(total, params, rows, weighted)

    def forward(params: Any, rows: StoredRows, weighted: Any) -> tuple[Array, Any]:
        return scanned(jax.value_and_grad(total), params, rows, weighted)

    def backward(gradient: Any, cotangent: Array) -> tuple[Any, None, None]:
        return jax.tree.map(lambda leaf: cotangent * leaf, gradient), None, None

    summed.defvjp(forward, backward)
    return summed(params, rows, weighted)


def _map_over_chunks(function: Callable[[Any, Any], Array], rows: StoredRows, others: Any) -> Array:
    """`StoredRows.map_over`: the last chunk may repeat rows of its neighbour, which go."""

    def one(start: Int[Array, ""]) -> Array:
        (x, rest), _ = chunks_of(rows, others, start)
        return function(x, rest)

    found = jax.lax.map(one, _starts(rows))
    whole = (rows.num_chunks - 1) * rows.chunk_rows
    flat = found[:-1].reshape(whole, *found.shape[2:])
    return jnp.concatenate([flat, found[-1, rows.chunk_rows - (len(rows) - whole) :]])
