"""Networks: pure functions of their parameters.

A network is any frozen, hashable object with

    init(key, x) -> params                       x: (point, feature ...); params: any pytree
    apply(params, x) -> (point, output)
    fan_in(params) -> pytree like params         inputs per neuron of each array; 0 marks a bias

`MLP` is ours; `credence.models.networks.adapters` wraps Flax and Equinox models in the same three
functions.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from credence.errors import InputError, did_you_mean
from credence.models.networks.dense import Layer, mlp, tanh

ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "tanh": tanh,
    "relu": jax.nn.relu,
    "silu": jax.nn.silu,
    "gelu": jax.nn.gelu,
    "elu": jax.nn.elu,
    "softplus": jax.nn.softplus,
    "sigmoid": jax.nn.sigmoid,
    "identity": lambda z: z,
}


@runtime_checkable
class Network(Protocol):
    """What every network offers; see the module's docstring."""

    def init(self, key: PRNGKeyArray, x: Float[Array, "point *feature"]) -> Any:
        """Parameters for inputs shaped as x, drawn at random."""
        ...

    def apply(self, params: Any, x: Float[Array, "point *feature"]) -> Float[Array, "point output"]:
        """The network's outputs, (point, output)."""
        ...

    def fan_in(self, params: Any) -> Any:
        """Number of inputs that each weight's neuron has, a pytree like params."""
        ...


@dataclass(frozen=True)
class FullyConnected(ABC):
    """What networks of fully connected layers share: affine, activation, ..., affine.

    Args:
        num_outputs: number of outputs per point.
        hidden: widths of the hidden layers; () is a linear model.
        activation: one of `ACTIVATIONS`.
    Raises:
        InputError: for a width below 1 or an unknown activation.
    """

    num_outputs: int
    hidden: tuple[int, ...] = (50,)
    activation: str = "tanh"

    def __post_init__(self) -> None:
        if any(width < 1 for width in (*self.hidden, self.num_outputs)):
            raise InputError(
                "Every layer needs at least one neuron, got "
                f"hidden={self.hidden}, num_outputs={self.num_outputs}: use widths >= 1."
            )
        if self.activation not in ACTIVATIONS:
            raise InputError(
                f"Unknown activation {self.activation!r}: choose one of {', '.join(ACTIVATIONS)}."
                + did_you_mean(self.activation, ACTIVATIONS)
            )

    def init(self, key: PRNGKeyArray, x: Float[Array, "point feature"]) -> tuple[Layer, ...]:
        """LeCun-normal kernels (variance 1/fan_in), zero biases."""
        widths = (x.shape[-1], *self.hidden, self.num_outputs)
        keys = jax.random.split(key, len(widths) - 1)
        return tuple(
            Layer(
                jax.random.normal(key, (fan_in, fan_out), x.dtype) / fan_in**0.5,
                jnp.zeros(fan_out, x.dtype),
            )
            for key, fan_in, fan_out in zip(keys, widths[:-1], widths[1:], strict=True)
        )

    @abstractmethod
    def apply(
        self, params: tuple[Layer, ...], x: Float[Array, "point feature"]
    ) -> Float[Array, "point output"]:
        """Outputs at the rows of x."""

    def fan_in(self, params: tuple[Layer, ...]) -> tuple[Layer, ...]:
        """Inputs per neuron of every kernel, 0 for biases."""
        return tuple(Layer(layer.kernel.shape[-2], 0) for layer in params)  # type: ignore[arg-type]


@dataclass(frozen=True)
class MLP(FullyConnected):
    """Fully connected network of any depth: affine, activation, ..., affine.

    Arguments as `FullyConnected`.
    """

    def apply(
        self, params: tuple[Layer, ...], x: Float[Array, "point feature"]
    ) -> Float[Array, "point output"]:
        """Outputs at the rows of x."""
        return mlp(params, x, ACTIVATIONS[self.activation])


def last_hidden(
    network: Network, params: tuple[Layer, ...], x: Float[Array, "point feature"]
) -> Float[Array, "point neuron"]:
    """Outputs of an MLP's last hidden layer at the rows of x; the inputs where there is none."""
    last = params[-1]
    num_neurons = last.kernel.shape[-2]
    reads = Layer(jnp.eye(num_neurons, dtype=last.kernel.dtype), jnp.zeros(num_neurons, x.dtype))
    return network.apply((*params[:-1], reads), x)
