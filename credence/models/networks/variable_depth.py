"""An MLP some of whose hidden layers may be absent: networks of several depths in one shape."""

from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from credence.errors import InputError
from credence.models.networks.dense import Layer, affine
from credence.models.networks.mlp import ACTIVATIONS, FullyConnected


@dataclass(frozen=True)
class VariableDepthMLP(FullyConnected):
    """An `MLP` that passes over every hidden layer, but the first, whose weights are all zero.

    A network of fewer layers lives in the arrays of the deepest one: with absent layers the output
    layer reads the last layer that there is.

    Args:
        num_outputs, hidden, activation: as of `MLP`; all hidden layers have room for equally many
            neurons.
    Raises:
        InputError: for hidden layers of different widths, or none.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(set(self.hidden)) != 1:
            raise InputError(
                "Layers that may be absent need room for as many neurons each, got "
                f"hidden={self.hidden}: give equal widths."
            )

    def apply(
        self, params: tuple[Layer, ...], x: Float[Array, "point feature"]
    ) -> Float[Array, "point output"]:
        """Outputs at the rows of x."""
        activation = ACTIVATIONS[self.activation]
        first, *middle, last = params
        z = activation(affine(first, x.T))
        for layer in middle:
            z = jnp.where(is_there(layer), activation(affine(layer, z)), z)
        return affine(last, z).T


def is_there(layer: Layer) -> Bool[Array, ""]:
    """Whether any weight is not zero."""
    return jnp.any(layer.kernel != 0) | jnp.any(layer.bias != 0)
