"""Minibatches: shuffled epochs in one fixed shape, inside a compiled program."""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, PRNGKeyArray

from credence.density.data import Data, minibatch

Index = Int[Array, ""] | int


def epochs(
    key: PRNGKeyArray, data: Data, batch_size: int | None, num_steps: int
) -> tuple[int, Callable[[Index], Callable[[Index], Data]]]:
    """Batches in an epoch, and shuffled(epoch)(batch) -> rows.

    The data are shuffled once per epoch and then sliced (a gather at every step is several times
    slower); the last slice of an epoch is filled up with rows of weight zero. Without a batch size,
    or one of all rows, every step has the data as they are. Rows on disk are read batch by batch.
    Of an epoch that has more batches than there are steps only so many are gathered; who goes on
    with another key begins a new epoch, and then some rows are seen more often than others.
    """
    num_points = data.x.shape[0]
    if batch_size is None or batch_size >= num_points:
        return num_steps, lambda epoch: lambda batch: data
    num_batches = -(-num_points // batch_size)
    row = jnp.arange(num_batches * batch_size)
    is_real = jnp.where(row < num_points, 1.0, 0.0).reshape(num_batches, batch_size)

    def shuffled(epoch: Index) -> Callable[[Index], Data]:
        order = permutation(jax.random.fold_in(key, epoch), num_points)
        index = jnp.take(order, row % num_points).reshape(num_batches, batch_size)[:num_steps]
        if not data.rows.in_memory:
            return lambda batch: minibatch(data, index[batch], is_real[batch])
        rows = jax.vmap(partial(minibatch, data))(index, is_real[:num_steps])
        return lambda batch: jax.tree.map(lambda leaf: leaf[batch], rows)

    return num_batches, shuffled


def permutation(key: PRNGKeyArray, size: int) -> Int[Array, " row"]:
    """A random order of 0 ... size - 1, as jax.random.permutation's.

    On a CPU sorting one array is many times faster than sorting pairs, so random bits and index
    share a number. Ties keep the order of the round before; as there, the rounds have together
    three times the bits that number the rows.
    """
    index_bits = max(1, (size - 1).bit_length())
    if index_bits > 24:
        return jax.random.permutation(key, size)
    index = jnp.arange(size, dtype=jnp.uint32)
    order = index
    for round_key in jax.random.split(key, -(-3 * index_bits // (32 - index_bits))):
        bits = jax.random.bits(round_key, (size,), jnp.uint32)
        shuffled = jnp.sort((bits << index_bits) | index)
        order = order[shuffled & jnp.uint32(2**index_bits - 1)]
    return order.astype(jnp.int32)
