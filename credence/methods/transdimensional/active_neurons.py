"""Neurons of an MLP's hidden layers: which are active, and where their weights are.

Networks of several widths live in the arrays of the widest one. A network of widths (k_1, k_2, ...)
has its weights in the leading slots; a weight is active where both its ends are, and all others are
zero. Nothing leaves an inactive neuron, so the widest network computes the same function.

So do networks of several depths in those of the deepest: with d hidden layers k_1, ..., k_d > 0 and
all further widths are 0. The output layer then reads hidden layer d: see `VariableDepthMLP`.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from credence.models.networks.dense import Layer

Layers = tuple[Layer, ...]
Widths = Int[Array, " layer"]
"""Active neurons of every hidden layer; 0 for those that are absent, which come last."""
Readers = tuple[tuple[int, Bool[Array, ""] | bool], ...]
"""Layers that may read a hidden layer's neurons, and whether they do: at most two, and one does."""


def largest_widths(layers: Layers) -> tuple[int, ...]:
    """Neurons there is room for in every hidden layer."""
    return tuple(layer.bias.shape[-1] for layer in layers[:-1])


def count_layers(widths: Int[Array, "*batch layer"]) -> Int[Array, "*batch"]:
    """Hidden layers that there are."""
    return jnp.sum(widths > 0, axis=-1, dtype=jnp.int32)


def readers(widths: Widths, index: int, *, may_be_last: bool) -> Readers:
    """Who reads hidden layer `index`: the next one, or the output layer where that is absent.

    Args:
        may_be_last: whether layers may be absent at all; otherwise the next one does.
    """
    output = len(widths)
    if index + 1 == output or not may_be_last:
        return ((index + 1, True),)
    is_last = widths[index + 1] == 0
    return ((index + 1, ~is_last), (output, is_last))


def activity(layers: Layers, widths: Widths) -> Layers:
    """Whether each weight is active.

    Args:
        layers: give the shapes only.
        widths: active neurons of every hidden layer.
    """

    everything = jnp.iinfo(jnp.int32).max
    last_width = widths[jnp.maximum(count_layers(widths), 1) - 1] if len(widths) else everything

    def of_layer(index: int, layer: Layer) -> Layer:
        fan_in, fan_out = layer.kernel.shape[-2:]
        is_output = index == len(layers) - 1
        entering = everything if is_output else widths[index]
        leaving = everything if index == 0 else last_width if is_output else widths[index - 1]
        leaves, enters = jnp.arange(fan_in) < leaving, jnp.arange(fan_out) < entering
        return Layer(leaves[:, None] & enters, enters)

    return tuple(of_layer(index, layer) for index, layer in enumerate(layers))


def only_active(layers: Layers, widths: Widths) -> Layers:
    """The weights, zero where they are inactive."""
    return where(activity(layers, widths), layers, jax.tree.map(jnp.zeros_like, layers))


def where(mask: Layers, layers: Layers, others: Layers) -> Layers:
    """Weights of the first where the mask holds, of the second elsewhere."""
    return jax.tree.map(jnp.where, mask, layers, others)


def swapped(
    layers: Layers, index: int, first: Int[Array, ""], second: Int[Array, ""], read_by: Readers
) -> Layers:
    """Two neurons of hidden layer `index` in each other's places: the same function."""
    neuron = jnp.arange(layers[index].bias.shape[-1])
    order = neuron.at[first].set(second).at[second].set(first)
    changed, into = list(layers), layers[index]
    changed[index] = Layer(into.kernel[:, order], into.bias[order])
    for reader, reads in read_by:
        kernel = layers[reader].kernel
        kernel = kernel[jnp.where(reads, order, neuron)]
        changed[reader] = layers[reader]._replace(kernel=kernel)
    return tuple(changed)


def outgoing(
    layers: Layers, slot: Int[Array, ""], read_by: Readers
) -> Float[Array, " next"] | Bool[Array, " next"]:
    """Weights out of a neuron, to all layers that may read it; zero to those that do not."""
    rows = [
        jnp.where(reads, layers[reader].kernel[slot], jnp.zeros_like(layers[reader].kernel[slot]))
        for reader, reads in read_by
    ]
    return jnp.concatenate(rows)


def with_outgoing(
    layers: Layers, slot: Int[Array, ""], read_by: Readers, weights: Float[Array, " next"]
) -> Layers:
    """The weights, those out of a neuron replaced in the layer that reads it."""
    changed, start = list(layers), 0
    for reader, reads in read_by:
        kernel = layers[reader].kernel
        row = weights[start : start + kernel.shape[-1]]
        start += kernel.shape[-1]
        kernel = kernel.at[slot].set(jnp.where(reads, row, kernel[slot]))
        changed[reader] = layers[reader]._replace(kernel=kernel)
    return tuple(changed)


def count_active(layers: Layers) -> Int[Array, "*batch layer"]:
    """Widths of networks whose inactive weights are zero: neurons with a weight that is not, and 0
    for absent layers.

    Args:
        layers: arrays with any leading axes (batch).
    """
    return jnp.stack(
        [
            jnp.sum((layer.kernel != 0).any(axis=-2) | (layer.bias != 0), axis=-1)
            for layer in layers[:-1]
        ],
        axis=-1,
    )
