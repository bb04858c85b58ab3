"""Training with dropout: a step of Adam on a log density, hidden neurons masked at random.

Srivastava, Hinton, Krizhevsky, Sutskever & Salakhutdinov, "Dropout: a simple way to prevent neural
networks from overfitting" (2014). After every hidden layer

    z' = z mask / (1 - rate),    mask ~ Bernoulli(1 - rate), its own for every point and neuron,

so that z' has the mean z. Only for networks of class `MLP`, whose hidden neurons we can reach.
"""

from functools import lru_cache
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from credence.density.data import Data
from credence.density.posterior import BayesianModel, Position
from credence.kernels.ascent.optimizer import ascend, clipped_adam
from credence.kernels.base import Kernel
from credence.models.networks.dense import Layer
from credence.models.networks.mlp import ACTIVATIONS

Rate = float | Float[Array, ""]
"""Probability that a hidden neuron is dropped."""


@runtime_checkable
class MaskedLogDensity(Protocol):
    """A log density in nats; given a key, hidden neurons are masked."""

    def __call__(
        self, position: Position, data: Data, key: PRNGKeyArray | None = None, rate: Rate = 0.0
    ) -> Float[Array, ""]: ...


def dropout(
    log_density: MaskedLogDensity, *, learning_rate: float | Float[Array, ""], rate: Rate
) -> Kernel:
    """One step of Adam with fresh masks: Srivastava et al., "Dropout" (2014).

    Args:
        log_density: (position, data, key, rate) -> log density with hidden neurons masked, in nats;
            see `masked_log_density`.
        learning_rate: step in units of the weights.
        rate: probability that a hidden neuron is dropped, in [0, 1).
    A non-finite update is refused: the weights stay, is_finite is False.
    """

    def objective(key: PRNGKeyArray, position: Position, data: Data) -> Float[Array, ""]:
        return log_density(position, data, key, rate)

    return ascend(objective, clipped_adam(learning_rate))


@lru_cache(maxsize=256)
def masked_log_density(
    model: BayesianModel, masked: tuple[int, ...] | None = None
) -> MaskedLogDensity:
    """The flat log density of a model with an MLP, masked for every point anew where it has a key.

    The prior is that of the weights without masks: it is the weight decay. The same model gives the
    same function, so programs compiled for it are found again.

    Args:
        masked: the layers whose values are masked, 0 the inputs; by default all hidden ones.
    """

    def log_density(
        position: Position, data: Data, key: PRNGKeyArray | None = None, rate: Rate = 0.0
    ) -> Float[Array, ""]:
        params = model.unravel(position, data)
        outputs = masked_outputs(model.network, params.network, data.x, key, rate, masked)
        pointwise = model.likelihood.log_prob(params.likelihood, outputs, data.y)
        return model.log_prior(params) + jnp.dot(data.weight, pointwise, precision="highest")

    return log_density


def masked_outputs(
    network: Any,
    layers: tuple[Layer, ...],
    x: Float[Array, "point feature"],
    key: PRNGKeyArray | None,
    rate: Rate,
    masked: tuple[int, ...] | None = None,
) -> Float[Array, "point output"]:
    """Outputs of an MLP whose hidden neurons are masked, for every point anew.

    Args:
        masked: as of `masked_log_density`.
    """
    if key is None:
        return network.apply(layers, x)
    *hidden, last = layers
    masked = tuple(range(1, len(layers))) if masked is None else masked
    activation = ACTIVATIONS[network.activation]
    keys = jax.random.split(key, len(hidden) + (0 in masked))
    z = x * scaled_mask(keys[-1], rate, x) if 0 in masked else x
    for number, (layer, key_mask) in enumerate(zip(hidden, keys, strict=False), start=1):
        z = activation(z @ layer.kernel + layer.bias)
        z = z * scaled_mask(key_mask, rate, z) if number in masked else z
    return z @ last.kernel + last.bias


def masked_layers(layers: tuple[Layer, ...], key: PRNGKeyArray, rate: Rate) -> tuple[Layer, ...]:
    """An MLP with masks that are the same at all points: a draw of the dropout ensemble.

    To mask a hidden neuron is to scale its row of the next layer's kernel, so the result is an
    ordinary network.
    """
    first, *others = layers
    keys = jax.random.split(key, len(others))
    masked = (
        Layer(layer.kernel * scaled_mask(key_mask, rate, layer.kernel[:, :1]), layer.bias)
        for key_mask, layer in zip(keys, others, strict=True)
    )
    return first, *masked


def scaled_mask(key: PRNGKeyArray, rate: Rate, like: Float[Array, "*shape"]) -> Array:
    """Zero with probability rate, else 1 / (1 - rate), in the shape and dtype of `like`."""
    is_kept = jax.random.bernoulli(key, 1 - rate, like.shape)
    return jnp.where(is_kept, 1 / (1 - rate), 0.0).astype(like.dtype)
