"""Evaluate many particles at once, in chunks that fit a CPU's cache.

`vmap` over P networks on N points makes arrays of P * N * width numbers. Once these leave the
cache a CPU runs several times slower, so `chunked` wraps a log density such that `vmap` of it,
and of its gradient, works through the particles a few at a time. Kernels stay written for one
particle. Accelerators take all particles at once. `benchmarks/throughput.py` measures it.
"""

from collections.abc import Callable
from functools import cache
from math import ceil
from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Float

Position = Float[Array, " weight"]
LogDensity = Callable[[Position, Any], Float[Array, ""]]

CHUNK_BYTES = 4 * 2**20
"""Bytes that one chunk may keep for its backward pass."""


def chunked(log_density: LogDensity) -> LogDensity:
    """Wrap a log density (position, data) -> scalar so that `vmap` and `jax.grad` of it are fast.

    Works inside jit, scan, shard_map and nested vmap, with data shared by the particles or mapped
    with them. Differentiable once, in reverse mode, with respect to position: for second
    derivatives or tangents (jvp) use `log_density` itself.

    Raises:
        NotImplementedError: when differentiated with respect to data.
    """
    size = _size(log_density)
    values = _over_particles(log_density, size)
    values_and_gradients = _over_particles(jax.value_and_grad(log_density), size)

    @jax.custom_vjp
    def one(position: Position, data: Any) -> Float[Array, ""]:
        return values(position[None], data)[0]

    def forward(position: Position, data: Any) -> tuple[Float[Array, ""], Position]:
        value, gradient = values_and_gradients(position[None], data)
        return value[0], gradient[0]

    def backward(gradient: Position, cotangent: Float[Array, ""]) -> tuple[Position, None]:
        return cotangent * gradient, None

    one.defvjp(forward, backward)
    return lambda position, data: one(position, _constant(data))


def chunk_size(log_density: LogDensity, position: Any, data: Any) -> int:
    """Number of particles that fit a chunk, from the bytes that one more keeps for its gradient.

    What particles share, data or parts of them, does not count. Position and data may be arrays or
    their `jax.ShapeDtypeStruct`s.
    """

    def num_bytes_kept(count: int) -> int:
        positions = jax.ShapeDtypeStruct((count, *position.shape), position.dtype)

        def backward(positions: Any, data: Any) -> Any:
            return jax.vjp(lambda p: jax.vmap(log_density, (0, None))(p, data), positions)[1]

        return _num_bytes(jax.eval_shape(backward, positions, data))

    bytes_per_particle = num_bytes_kept(2) - num_bytes_kept(1)
    return max(1, CHUNK_BYTES // max(1, bytes_per_particle))


def _size(log_density: LogDensity) -> Callable[[Any, Any, int], int]:
    """Return size(position, data, num_particles), which traces log_density once for each shape."""

    @cache
    def found(tree: Any, *leaves: jax.ShapeDtypeStruct) -> int:
        return chunk_size(log_density, *jax.tree.unflatten(tree, leaves))

    def size(position: Any, data: Any, num_particles: int) -> int:
        if jax.default_backend() != "cpu":
            return num_particles
        leaves, tree = jax.tree.flatten((position, data))
        return found(tree, *(jax.ShapeDtypeStruct(leaf.shape, leaf.dtype) for leaf in leaves))

    return size


def _over_particles(function: Callable, size: Callable[[Any, Any, int], int]) -> Callable:
    """Map function(position, data) over positions (particle, weight), in chunks."""

    def plain(positions: Float[Array, "particle weight"], data: Any) -> Any:
        shared = jax.tree.map(lambda _: False, data)
        num_particles = len(positions)
        limit = size(_row(positions), data, num_particles)
        return _map_chunks(function, (positions, data), (True, shared), num_particles, limit)

    over_particles = custom_vmap(plain)

    @over_particles.def_vmap
    def _(axis_size: int, is_mapped: Any, positions: Array, data: Any) -> Any:
        if any(jax.tree.leaves(is_mapped[1])):
            outputs = with_own_data(axis_size, tuple(is_mapped), (positions, data))
        else:  # one more axis of particles that share their data
            outputs = over_particles(positions.reshape(-1, positions.shape[-1]), data)
            outputs = jax.tree.map(lambda y: y.reshape(axis_size, -1, *y.shape[1:]), outputs)
        return outputs, jax.tree.map(lambda _: True, outputs)

    def with_own_data(axis_size: int, is_mapped: Any, args: Any) -> Any:
        positions, data = jax.tree.map(lambda y, m: _row(y) if m else y, args, is_mapped)
        limit = max(1, size(_row(positions), data, axis_size) // len(positions))
        return _map_chunks(plain, args, is_mapped, axis_size, limit)

    return over_particles


def _map_chunks(function: Callable, args: Any, is_mapped: Any, count: int, limit: int) -> Any:
    """Map a function over the first axis, of length count, of the args marked in is_mapped.

    Takes at most limit rows at a time, in equal chunks; the last may repeat rows of its
    neighbour, which are dropped.
    """
    mapped = jax.vmap(function, jax.tree.map(lambda m: 0 if m else None, is_mapped))
    num_chunks = ceil(count / limit)
    if num_chunks == 1:
        return mapped(*args)
    size = ceil(count / num_chunks)

    def chunk(start: Array) -> Any:
        def rows(y: Array, is_mapped: bool) -> Array:
            return jax.lax.dynamic_slice_in_dim(y, start, size) if is_mapped else y

        return mapped(*jax.tree.map(rows, args, is_mapped))

    def join(chunks: Array) -> Array:
        rows = chunks.reshape(-1, *chunks.shape[2:])
        num_repeated = len(rows) - count
        first = size * (num_chunks - 1)
        return jnp.concatenate([rows[:first], rows[first + num_repeated :]])

    starts = jnp.minimum(size * jnp.arange(num_chunks), count - size)
    return jax.tree.map(join, jax.lax.map(chunk, starts))


def _row(y: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(y.shape[1:], y.dtype)


def _num_bytes(tree: Any) -> int:
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))


@jax.custom_jvp
def _constant(data: Any) -> Any:
    return data


@_constant.defjvp
def _constant_jvp(primals: Any, tangents: Any) -> Any:
    raise NotImplementedError(
        "A chunked log density was differentiated with respect to its data, which it takes as "
        "constants: differentiate the plain log density instead."
    )
