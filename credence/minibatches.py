"""Minibatches: shuffled epochs in one fixed shape, inside a compiled program."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

from credence.posterior import Data, minibatch


def loader(
    key: PRNGKeyArray, data: Data, batch_size: int | None
) -> tuple[Callable[[Array, Any], tuple[Any, Data]], Any]:
    """load(step, epoch) -> (epoch, batch): all data, or slices of shuffled epochs.

    The data are shuffled once per epoch and then sliced (a gather at every step is several times
    slower); the last slice of an epoch is filled up with rows of weight zero.
    """
    num_points = data.x.shape[0]
    if batch_size is None or batch_size >= num_points:
        return lambda step, epoch: (epoch, data), ()
    num_batches = -(-num_points // batch_size)
    row = jnp.arange(num_batches * batch_size)
    is_real = jnp.where(row < num_points, 1.0, 0.0).reshape(num_batches, batch_size)

    def shuffle(epoch_index: Array) -> Data:
        order = jax.random.permutation(jax.random.fold_in(key, epoch_index), num_points)
        index = jnp.take(order, row % num_points).reshape(num_batches, batch_size)
        return jax.vmap(partial(minibatch, data))(index, is_real)

    def load(step: Array, epoch: Data) -> tuple[Data, Data]:
        index = step % num_batches
        epoch = jax.lax.cond(index == 0, lambda: shuffle(step // num_batches), lambda: epoch)
        return epoch, jax.tree.map(lambda leaf: leaf[index], epoch)

    shapes = jax.eval_shape(shuffle, jnp.zeros((), jnp.int32))
    return load, jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
