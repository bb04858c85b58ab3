"""Split and merge: one neuron becomes two that sum to about the same, and back."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.stats import norm
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from credence.density.data import Data
from credence.density.posterior import Params
from credence.errors import require_positive
from credence.methods.transdimensional.active_neurons import (
    Layers,
    Readers,
    Widths,
    activity,
    outgoing,
    with_outgoing,
)
from credence.methods.transdimensional.moves.base import Move, Proposal, counts
from credence.methods.transdimensional.target import Point, VariableWidth
from credence.models.networks.mlp import Layer


def split_merge(target: VariableWidth, layer: int, *, split_std: float = 0.5) -> Move:
    """A uniformly chosen neuron splits in two, or an ordered pair merges.

    After Richardson & Green, "On Bayesian analysis of mixtures with an unknown number of
    components" (1997). With incoming weights and bias w and outgoing weights v,

        (w, v), (d, e)  ->  (w + d, v / 2 + e), (w - d, v / 2 - e),

    d and e from N(0, (split_std * prior std)^2), and a Jacobian of 2 per incoming weight:

        r = L' p(weights' | k + 1) / (L p(weights | k))  2^(inputs + 1) / (N(d) N(e)).

    The neuron is one of k, its partner of a merge one of k: these cancel.

    Args:
        target: joint law of widths and weights.
        layer: which hidden layer.
        split_std: of the differences, in prior standard deviations: small ones leave the function
            as it is, but two neurons of the prior are rarely so alike.
    Raises:
        InputError: if split_std is not > 0.
    """
    require_positive(split_std=split_std)

    def differences_law(params: Params, slot: Int[Array, ""], widths: Widths) -> "Neuron":
        neuron = neuron_of(target.stds(params, widths), layer, slot, target.readers(widths, layer))
        return jax.tree.map(lambda std: split_std * std, neuron)

    def log_cost(
        params: Params, differences: "Neuron", slot: Int[Array, ""], widths: Widths
    ) -> Float[Array, ""]:
        """log of |J| / (N(d) N(e)), over the weights that are active."""
        read_by = target.readers(widths, layer)
        active = neuron_of(activity(params.network, widths), layer, slot, read_by)
        law = differences_law(params, slot, widths)
        log_normals = jax.tree.map(
            lambda is_active, d, std: jnp.sum(jnp.where(is_active, norm.logpdf(d, scale=std), 0.0)),
            active,
            differences,
            law,
        )
        num_incoming = jnp.sum(active.kernel) + 1
        return num_incoming * jnp.log(2.0) - sum(log_normals)

    def birth(key: PRNGKeyArray, point: Point, data: Data) -> Proposal:
        key_chosen, key_differences = jax.random.split(key)
        lower, new = point.widths, point.widths[layer]
        upper = lower.at[layer].add(1)
        chosen = jax.random.randint(key_chosen, (), 0, new)
        law = differences_law(point.params, new, upper)
        noise = _normals(key_differences, law)
        read_by = target.readers(upper, layer)
        active = neuron_of(activity(point.params.network, upper), layer, new, read_by)
        differences = jax.tree.map(lambda a, s, z: jnp.where(a, s * z, 0.0), active, law, noise)
        first, second = neuron_of(point.params.network, layer, chosen, read_by).split(differences)
        layers = with_neuron(point.params.network, layer, chosen, read_by, first)
        params = point.params._replace(network=with_neuron(layers, layer, new, read_by, second))
        log_likelihood = target.log_likelihood(params, data)
        log_ratio = log_likelihood - point.log_likelihood
        log_ratio += target.log_prior_change(point.params, lower, params, upper)
        log_ratio += log_cost(params, differences, new, upper)
        return Proposal(params, log_likelihood, log_ratio, *counts(evaluations=1))

    def death(key: PRNGKeyArray, point: Point, data: Data) -> Proposal:
        upper = point.widths
        lower, last = upper.at[layer].add(-1), upper[layer] - 1
        chosen = jax.random.randint(key, (), 0, last)
        read_by = target.readers(upper, layer)
        first = neuron_of(point.params.network, layer, chosen, read_by)
        merged, differences = first.merge(neuron_of(point.params.network, layer, last, read_by))
        layers = with_neuron(point.params.network, layer, chosen, read_by, merged)
        params = target.without_neurons(point.params._replace(network=layers), lower)
        log_likelihood = target.log_likelihood(params, data)
        log_ratio = log_likelihood - point.log_likelihood
        log_ratio -= target.log_prior_change(params, lower, point.params, upper)
        log_ratio -= log_cost(point.params, differences, last, upper)
        return Proposal(params, log_likelihood, log_ratio, *counts(evaluations=1))

    return Move(birth, death, layer)


class Neuron(NamedTuple):
    """Weights of one neuron, or anything in their shape."""

    kernel: Float[Array, " fan_in"] | Bool[Array, " fan_in"]
    bias: Float[Array, ""] | Bool[Array, ""]
    outgoing: Float[Array, " next"] | Bool[Array, " next"]

    def split(self, differences: "Neuron") -> tuple["Neuron", "Neuron"]:
        """Two neurons of about the same function together."""
        kernel, bias, half = self.kernel, self.bias, 0.5 * self.outgoing
        d, d_bias, e = differences
        first = Neuron(kernel + d, bias + d_bias, half + e)
        return first, Neuron(kernel - d, bias - d_bias, half - e)

    def merge(self, other: "Neuron") -> tuple["Neuron", "Neuron"]:
        """The neuron that splits into the two, and the differences."""
        differences = jax.tree.map(lambda a, b: 0.5 * (a - b), self, other)
        middle = jax.tree.map(lambda a, b: 0.5 * (a + b), self, other)
        return middle._replace(outgoing=2 * middle.outgoing), differences


def neuron_of(layers: Layers, layer: int, slot: Int[Array, ""], read_by: Readers) -> Neuron:
    """A neuron's weights."""
    into = layers[layer]
    return Neuron(into.kernel[:, slot], into.bias[slot], outgoing(layers, slot, read_by))


def with_neuron(
    layers: Layers, layer: int, slot: Int[Array, ""], read_by: Readers, neuron: Neuron
) -> Layers:
    """The weights, a neuron's replaced."""
    into = layers[layer]
    into = Layer(into.kernel.at[:, slot].set(neuron.kernel), into.bias.at[slot].set(neuron.bias))
    changed = (*layers[:layer], into, *layers[layer + 1 :])
    return with_outgoing(changed, slot, read_by, neuron.outgoing)


def _normals(key: PRNGKeyArray, like: Neuron) -> Neuron:
    """Independent standard normals in the shapes of a neuron's weights."""
    keys = jax.random.split(key, 3)
    return Neuron(
        *(jax.random.normal(k, leaf.shape, leaf.dtype) for k, leaf in zip(keys, like, strict=True))
    )
