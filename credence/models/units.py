"""Units of an MLP's hidden layers: which are active, and where their weights are.

Networks of several widths live in the arrays of the widest one. A network of widths (k_1, k_2, ...)
has its weights in the leading slots; a weight is active where both its ends are, and all others are
zero. Nothing leaves an inactive unit, so the widest network computes the same function.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

from credence.models.dense import Layer

Layers = tuple[Layer, ...]
Widths = Int[Array, " layer"]
"""Active units of every hidden layer."""


def largest_widths(layers: Layers) -> tuple[int, ...]:
    """Units there is room for in every hidden layer."""
    return tuple(layer.bias.shape[-1] for layer in layers[:-1])


def activity(layers: Layers, widths: Widths) -> Layers:
    """Whether each weight is active.

    Args:
        layers: give the shapes only.
        widths: active units of every hidden layer.
    """

    def is_active(size: int, index: int) -> Bool[Array, " unit"]:
        is_hidden = 0 <= index < len(layers) - 1
        return jnp.arange(size) < widths[index] if is_hidden else jnp.ones(size, bool)

    def of_layer(index: int, layer: Layer) -> Layer:
        fan_in, fan_out = layer.kernel.shape[-2:]
        leaves, enters = is_active(fan_in, index - 1), is_active(fan_out, index)
        return Layer(leaves[:, None] & enters, enters)

    return tuple(of_layer(index, layer) for index, layer in enumerate(layers))


def only_active(layers: Layers, widths: Widths) -> Layers:
    """The weights, zero where they are inactive."""
    return where(activity(layers, widths), layers, jax.tree.map(jnp.zeros_like, layers))


def where(mask: Layers, layers: Layers, others: Layers) -> Layers:
    """Weights of the first where the mask holds, of the second elsewhere."""
    return jax.tree.map(jnp.where, mask, layers, others)


def swapped(layers: Layers, index: int, first: Int[Array, ""], second: Int[Array, ""]) -> Layers:
    """Two units of hidden layer `index` in each other's places: the same function."""
    unit = jnp.arange(layers[index].bias.shape[-1])
    order = unit.at[first].set(second).at[second].set(first)
    into, out = layers[index], layers[index + 1]
    changed = list(layers)
    changed[index] = Layer(into.kernel[:, order], into.bias[order])
    changed[index + 1] = out._replace(kernel=out.kernel[order])
    return tuple(changed)


def count_active(layers: Layers) -> Int[Array, "*batch layer"]:
    """Widths of networks whose inactive weights are zero: units with a weight that is not.

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
