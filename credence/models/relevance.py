"""Automatic relevance determination: a prior under which most inputs may matter little."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.scipy.special import gammaln
from jaxtyping import Array, Float, PRNGKeyArray

from credence.errors import require_positive
from credence.models.networks.mlp import Network
from credence.models.priors import HierarchicalGamma, normal_log_density, require_layers


@dataclass(frozen=True)
class Relevance:
    """Gaussian weights with unknown precisions of every layer, and of every input.

    Neal, Bayesian Learning for Neural Networks (1996), Chapter 4, after MacKay: the weights of
    input i to the neurons of the first layer are

        w_ij ~ N(0, 1 / (precision * a_i * fan_in)),    a_i ~ Gamma(degrees / 2, degrees / 2),

    with the precision of that layer and fan_in as in `HierarchicalGamma`. Where a_i is large, input
    i hardly matters. The a_i are integrated out: all weights of one input together have a
    multivariate Student-t law. So they are no hyperparameters, and no chain has to move them.
    Where inputs are encoded, the first layer's inputs are the numbers of their codes.

    Args:
        degrees: of freedom of that law. With few, some inputs have weights many times as large as
            others.
        shape, rate: of the Gamma density of the precisions of the layers.
        scaling: "fan_in" or "unit", as in `Gaussian`.
    Raises:
        InputError: for an unknown scaling, and degrees, shape or rate that are not > 0; and, when
            it is used, for a network that is not made of dense layers.
    """

    degrees: float = 1.0
    shape: float = 2.0
    rate: float = 2.0
    scaling: str = "fan_in"

    def __post_init__(self) -> None:
        require_positive(degrees=self.degrees)
        _ = self.layers  # checks the others

    @property
    def layers(self) -> HierarchicalGamma:
        """The law of the layers' precisions."""
        return HierarchicalGamma(self.shape, self.rate, scaling=self.scaling)

    def init(self, network: Network, params: Any) -> Float[Array, " group"]:
        """Log precisions of the layers, at the mean of their prior."""
        require_layers(type(self).__name__, network, params, "HierarchicalGamma")
        return self.layers.init(network, params)

    def log_density(
        self, network: Network, params: Any, hyper: Float[Array, " group"]
    ) -> Float[Array, ""]:
        """log p(weights | precisions) + log p(log precisions), in nats."""
        first, *rest = params
        std, *stds_of_rest = self.layers.stds(network, params, hyper)
        rows = first.kernel / std.kernel
        return (
            self.layers.log_density_of_precisions(hyper)
            + normal_log_density((first.bias, rest), (std.bias, stds_of_rest))
            + jnp.sum(jax.vmap(self._log_density_of_row)(rows))
            - rows.size * jnp.log(std.kernel)
        )

    def sample(
        self, key: PRNGKeyArray, network: Network, params: Any
    ) -> tuple[Any, Float[Array, " group"]]:
        """Precisions first, then weights."""
        require_layers(type(self).__name__, network, params, "HierarchicalGamma")
        key_layers, key_inputs = jax.random.split(key)
        (first, *rest), hyper = self.layers.sample(key_layers, network, params)
        shape = (len(first.kernel), 1)
        log_relevance = jax.random.loggamma(key_inputs, self.degrees / 2, shape, first.kernel.dtype)
        scale = jnp.exp(-0.5 * (log_relevance - jnp.log(self.degrees / 2)))
        return (first._replace(kernel=scale * first.kernel), *rest), hyper

    def _log_density_of_row(self, row: Float[Array, " neuron"]) -> Float[Array, ""]:
        """Multivariate Student-t of scale 1, in nats."""
        degrees, size = self.degrees, len(row)
        both = (degrees + size) / 2
        normaliser = gammaln(both) - gammaln(degrees / 2) - size / 2 * jnp.log(degrees * jnp.pi)
        return normaliser - both * jnp.log1p(jnp.sum(row**2) / degrees)
