"""An MLP some of whose hidden layers may be absent: networks of several depths in one shape."""

from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from credence.errors import InputError
from credence.models.networks.dense import Layer, affine
from credence.models.networks.mlp import ACTIVATIONS, FullyConnected
from credence.models.networks.wrappers import LeadingInputs


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


def widened(network: Any, max_width: int | None, max_depth: int | None = None) -> Any:
    """The network with `max_width` neurons in every hidden layer, and `max_depth` of those, which
    may be absent; None leaves it as it is.

    Raises:
        InputError: for a network that has no neurons to add or take away.
    """
    if isinstance(network, LeadingInputs):
        return replace(network, network=widened(network.network, max_width, max_depth))
    if not isinstance(network, FullyConnected):
        raise InputError(
            f"The width of {network} cannot change: 'transdimensional' needs an MLP, "
            "models.MLP(num_outputs, hidden=(50,))."
        )
    if not network.hidden:
        raise InputError("A linear model has no hidden neurons to add: give hidden=(50,), say.")
    hidden = network.hidden if max_width is None else (max_width,) * len(network.hidden)
    if max_depth is None:
        return replace(network, hidden=hidden)
    return VariableDepthMLP(network.num_outputs, (max(hidden),) * max_depth, network.activation)
