"""The network that has room for every architecture the chains may visit."""

from dataclasses import replace
from typing import Any

from credence.errors import InputError
from credence.models.networks.mlp import FullyConnected
from credence.models.networks.variable_depth import VariableDepthMLP
from credence.models.networks.wrappers import LeadingInputs


def widened(network: Any, max_width: int | None, max_depth: int | None = None) -> Any:
    """The network with `max_width` neurons in every hidden layer; None leaves it as it is.

    With `max_depth` it has so many hidden layers, which may be absent.

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
