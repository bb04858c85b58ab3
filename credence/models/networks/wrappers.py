"""Networks made of a network: on some of the inputs, or once for every action."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from jaxtyping import Array, Float, PRNGKeyArray

from credence.errors import InputError
from credence.models.networks.mlp import Network


@dataclass(frozen=True)
class OfInputs(ABC):
    """What networks of changed inputs share: f(x) = network(inputs(x)).

    Args:
        network: what is applied.
    """

    network: Network

    @abstractmethod
    def inputs(self, x: Float[Array, "point *feature"]) -> Float[Array, "row *changed"]:
        """What the network sees of x."""

    def init(self, key: PRNGKeyArray, x: Float[Array, "point *feature"]) -> Any:
        """The network's own start."""
        return self.network.init(key, self.inputs(x))

    def apply(self, params: Any, x: Float[Array, "point *feature"]) -> Float[Array, "row output"]:
        """Outputs at the rows of what the network sees."""
        return self.network.apply(params, self.inputs(x))

    def fan_in(self, params: Any) -> Any:
        """Inputs per neuron, as the network says it."""
        return self.network.fan_in(params)


@dataclass(frozen=True)
class LeadingInputs(OfInputs):
    """A network of the first inputs only: a coarse level where features come in order.

        f(x) = network(x[:num_inputs])

    Principal components, say: a network of 100 of them is the leading part of one of 400.

    Args:
        network: what is applied.
        num_inputs: how many inputs it sees.
    Raises:
        InputError: if num_inputs is below 1, or above the number of inputs there are.
    """

    num_inputs: int

    def __post_init__(self) -> None:
        if self.num_inputs < 1:
            raise InputError(f"num_inputs must be >= 1, got {self.num_inputs}.")

    def inputs(self, x: Float[Array, "point feature"]) -> Float[Array, "point leading"]:
        """The first columns of x."""
        if x.shape[-1] < self.num_inputs:
            raise InputError(
                f"The network needs the first {self.num_inputs} inputs, but there are "
                f"{x.shape[-1]}: pass more columns or a smaller num_inputs."
            )
        return x[:, : self.num_inputs]


@dataclass(frozen=True)
class PerAction(OfInputs):
    """One scalar function applied to every row of actions: x (point, action, feature).

        f(x)_a = network(x_a),    outputs (point, action)

    In inverse reinforcement learning x_a is the state that action a leads to, and the network is
    the value of a state. All rows go through it as one batch.

    Args:
        network: a network with one output.
    Raises:
        InputError: if the network has several outputs, or x is not (point, action, feature).
    """

    def inputs(self, x: Float[Array, "point *feature"]) -> Float[Array, "row feature"]:
        """All states, one after the other."""
        if x.ndim != 3:
            raise InputError(f"PerAction needs x (point, action, feature), got shape {x.shape}.")
        return x.reshape(-1, x.shape[-1])

    def apply(self, params: Any, x: Float[Array, "point *feature"]) -> Float[Array, "point output"]:
        """Values (point, action)."""
        outputs = super().apply(params, x)
        if outputs.shape[-1] != 1:
            raise InputError(
                f"PerAction needs a network with one output, got {outputs.shape[-1]}: the "
                "actions are rows of x, not outputs."
            )
        return outputs.reshape(x.shape[:2])
