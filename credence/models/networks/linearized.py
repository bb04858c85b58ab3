"""A network made linear in its weights around a point: what a Laplace approximation predicts with.

Immer, Korzepa & Bauer, "Improving predictions of Bayesian neural nets via local linearization"
(2021): a Gaussian found with a generalised Gauss-Newton curvature is the posterior of this model,
not of the network, whose own outputs are wild a standard deviation away.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from credence.models.networks.mlp import Network


class Expansion(NamedTuple):
    """Weights as a point of expansion and a step away from it."""

    mode: Any
    offset: Any


@dataclass(frozen=True)
class Linearized:
    """First-order Taylor expansion of a network in its weights.

        f(x; mode) + J(x; mode) offset

    A network for predictions: its parameters are `Expansion`s, and priors over the weights of
    `network` are none over them.

    Args:
        network: what is expanded.
    """

    network: Network

    def init(self, key: PRNGKeyArray, x: Float[Array, "point *feature"]) -> Expansion:
        """The network's own start, without an offset."""
        mode = self.network.init(key, x)
        return Expansion(mode, jax.tree.map(jnp.zeros_like, mode))

    def apply(
        self, params: Expansion, x: Float[Array, "point *feature"]
    ) -> Float[Array, "point output"]:
        """Outputs at the rows of x, at about the cost of two passes through the network."""
        mode, offset = params
        value, change = jax.jvp(lambda weights: self.network.apply(weights, x), (mode,), (offset,))
        return value + change

    def fan_in(self, params: Expansion) -> Expansion:
        """Inputs per neuron, as the network says it."""
        return Expansion(self.network.fan_in(params.mode), self.network.fan_in(params.offset))


def linearized(network: Network, mode: Any, weights: Any) -> tuple[Linearized, Expansion]:
    """Weights of a network as parameters of its expansion around a mode.

    Args:
        network: what is expanded.
        mode: one set of weights, NumPy arrays.
        weights: many sets, NumPy arrays with leading axes; the mode is repeated as a view.
    """
    modes = jax.tree.map(lambda m, w: np.broadcast_to(m, w.shape), mode, weights)
    return Linearized(network), Expansion(modes, jax.tree.map(np.subtract, weights, mode))
