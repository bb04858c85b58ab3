"""Birth and death of a hidden layer: drawn from the prior, or near the identity."""

from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jax.scipy.stats import norm
from jaxtyping import Array, Float, Int, PRNGKeyArray
from scipy.optimize import minimize_scalar

from credence.density.data import Data
from credence.density.posterior import Params
from credence.errors import require_positive
from credence.methods.transdimensional.active_neurons import (
    Layers,
    Widths,
    activity,
    only_active,
    where,
)
from credence.methods.transdimensional.moves.base import LayerMove, Proposal, counts
from credence.methods.transdimensional.moves.collapsed_birth import check_collapsible, collapsed
from credence.methods.transdimensional.target import Point, VariableWidth
from credence.models.networks.mlp import ACTIVATIONS, FullyConnected, Layer
from credence.models.priors import normal_sample

REACH = 1.0
"""Neurons by which the width of a near-identity layer differs from that before it, on average."""


def layer_birth(
    target: VariableWidth,
    *,
    is_identity: bool = False,
    is_collapsed: bool = False,
    identity_std: float = 0.5,
) -> LayerMove:
    """A layer of k neurons comes after one of j; the layer that read those reads it instead.

    Its k is drawn from q(k | j), its weights and biases u from q(u). Rows min(j, k), ... of the
    kernel of the layer that reads it, v at the birth and v' at the death, are drawn from their
    prior; all other weights w stay, and learnt precisions go with their layers:

        r = L' / L  p(w | after) / p(w | before)  p(k) / q(k | j)  p(u) / q(u)

    "plain":    q(k | j) and q(u) are the prior.
    near the identity:  q(k | j) is proportional to p(k) exp(-|k - j|), and a weight of u is
                normal around g if it leads from a neuron to the one in its place, else around 0,
                with `identity_std` times its prior standard deviation. g is the gain that makes the
                activation most like the identity on its own outputs (1 for relu, where it is one).
    collapsed:  the output layer is integrated out of both networks and drawn from its exact
                conditional law, as in `collapsed_birth`: marginal likelihoods in place of L, and no
                output weight among w and v.

    (Near-identity layers after Wei et al., "Network Morphism" (2016), who only let networks grow.)

    Args:
        target: joint law of widths, depth and weights.
        is_identity, is_collapsed: which of the above.
        identity_std: in prior standard deviations.
    Raises:
        InputError: if identity_std is not > 0, or for a collapsed move without Gaussian noise.
    """
    require_positive(identity_std=identity_std)
    if is_collapsed:
        check_collapsible(target)
    law = near_identity(target, identity_std=identity_std) if is_identity else LayerLaw(target)
    law = law._replace(is_collapsed=is_collapsed)

    def birth(
        key: PRNGKeyArray, point: Point, after: Int[Array, ""], data: Data
    ) -> tuple[Proposal, Widths]:
        key_pair, key_outputs = jax.random.split(key)
        pair = law.with_layer(key_pair, point, after)
        return law.proposal(key_outputs, point, pair, after, data, 1), pair.upper

    def death(
        key: PRNGKeyArray, point: Point, after: Int[Array, ""], data: Data
    ) -> tuple[Proposal, Widths]:
        key_pair, key_outputs = jax.random.split(key)
        pair = law.without_layer(key_pair, point, after)
        return law.proposal(key_outputs, point, pair, after, data, -1), pair.lower

    return LayerMove(birth, death)


class LayerLaw(NamedTuple):
    """q, the law by which a new layer is proposed, and the ratio that corrects for it.

    Args:
        target, is_identity, is_collapsed: as of `layer_birth`.
        gain: g, around which weights from a neuron to the one in its place are drawn.
        share: standard deviation of a new weight, in prior standard deviations.
    """

    target: VariableWidth
    is_identity: bool = False
    is_collapsed: bool = False
    gain: float = 0.0
    share: float = 1.0

    def log_width_probs(self, layers: Layers, before: Int[Array, ""]) -> Float[Array, " width"]:
        """log q(k | j), k = 0, ..., one more than there is room for."""
        log_prior = self.target.log_width_probs(layers, len(layers) - 2)
        if not self.is_identity:
            return log_prior
        distance = jnp.abs(jnp.arange(len(log_prior)) - before)
        return jax.nn.log_softmax(log_prior - distance / REACH)

    def with_layer(self, key: PRNGKeyArray, point: Point, after: Int[Array, ""]) -> "Pair":
        """Draw a layer after that one."""
        key_width, key_weights = jax.random.split(key)
        below, lower = point.params, point.widths
        log_probs = self.log_width_probs(below.network, lower[after])
        width = jax.random.categorical(key_width, log_probs)
        upper = inserted(lower, after, width.astype(lower.dtype))
        above = self.target.with_layers_at(below, places_with(below.network, after))
        means, stds = self.of_weights(above, upper, after)
        drawn = jax.tree.map(jnp.add, means, normal_sample(key_weights, below.network, stds))
        was = shifted(activity(below.network, lower), after)
        stays = where(was, shifted(below.network, after), drawn)
        return Pair(below, above._replace(network=only_active(stays, upper)), lower, upper)

    def without_layer(self, key: PRNGKeyArray, point: Point, after: Int[Array, ""]) -> "Pair":
        """Take out the layer after that one; draw what the smaller network has more."""
        above, upper = point.params, point.widths
        lower = removed(upper, after)
        below = self.target.with_layers_at(above, places_without(above.network, after))
        drawn = normal_sample(key, above.network, self.target.stds(below, lower))
        is_there = closed(activity(above.network, upper), after)
        stays = where(is_there, closed(above.network, after), drawn)
        return Pair(below._replace(network=only_active(stays, lower)), above, lower, upper)

    def of_weights(
        self, params: Params, widths: Widths, after: Int[Array, ""]
    ) -> tuple[Layers, Layers]:
        """Mean and standard deviation of a new layer's weights; the prior's elsewhere."""
        own, stds = is_new_layer(params.network, after), self.target.stds(params, widths)
        stds = jax.tree.map(lambda std, o: jnp.where(o, self.share * std, std), stds, own)
        means = tuple(
            Layer(
                jnp.where(o.kernel, self.gain * _identity(layer.kernel), 0.0),
                jnp.zeros_like(layer.bias),
            )
            for layer, o in zip(params.network, own, strict=True)
        )
        return means, stds

    def log_ratio(self, pair: "Pair", after: Int[Array, ""]) -> Float[Array, ""]:
        """log r of the birth from the one to the other, without the likelihoods.

        Weight by weight, in the slots of the larger network.
        """
        target, above = self.target, pair.above.network
        was, is_active = (_flat(mask) for mask in pair.masks(after))
        own = _flat(is_new_layer(above, after))
        if self.is_collapsed:  # output weights do not count
            is_hidden = _flat(_all_but_output(above))
            was, is_active = was & is_hidden, is_active & is_hidden
        means, stds = self.of_weights(pair.above, pair.upper, after)
        w = _flat(above)
        then = norm.logpdf(w, scale=_flat(target.stds(pair.above, pair.upper)))
        u = norm.logpdf(w, _flat(means), _flat(stds))
        before = norm.logpdf(
            _flat(shifted(pair.below.network, after)),
            scale=jnp.where(was, _flat(shifted(target.stds(pair.below, pair.lower), after)), 1.0),
        )
        weights = jnp.where(was & is_active, then - before, 0.0)
        weights += jnp.where(own & is_active, then - u, 0.0)
        j, k = pair.upper[after], pair.upper[after + 1]
        log_prior = target.log_width_probs(above, len(above) - 2)
        return jnp.sum(weights) + log_prior[k] - self.log_width_probs(above, j)[k]

    def proposal(
        self,
        key: PRNGKeyArray,
        point: Point,
        pair: "Pair",
        after: Int[Array, ""],
        data: Data,
        sign: int,
    ) -> Proposal:
        """The proposal of the larger network (sign 1) or of the smaller one (-1)."""
        target = self.target
        params, widths = (pair.above, pair.upper) if sign > 0 else (pair.below, pair.lower)
        ratio = self.log_ratio(pair, after)
        if not self.is_collapsed:
            log_likelihood = target.log_likelihood(params, data)
            change = log_likelihood - point.log_likelihood
            return Proposal(params, log_likelihood, change + sign * ratio, *counts(evaluations=1))
        found = collapsed(target, key, point, params, widths, data)
        return found._replace(log_ratio=found.log_ratio + sign * ratio)


def near_identity(target: VariableWidth, *, identity_std: float = 0.5) -> LayerLaw:
    """The law of layers near the identity; see `layer_birth`."""
    gain = identity_gain(activation_of(target.model.network))
    return LayerLaw(target, is_identity=True, gain=gain, share=identity_std)


class Pair(NamedTuple):
    """A network, and the same with one layer more."""

    below: Params
    above: Params
    lower: Widths
    upper: Widths

    def masks(self, after: Int[Array, ""]) -> tuple[Layers, Layers]:
        """Active weights of both, in the slots of the larger one."""
        was = shifted(activity(self.below.network, self.lower), after)
        return was, activity(self.above.network, self.upper)


def inserted(widths: Widths, after: Int[Array, ""], width: Int[Array, ""]) -> Widths:
    """Widths with a layer after that one."""
    place = jnp.arange(len(widths))
    moved = widths[jnp.maximum(place - 1, 0)]
    return jnp.where(place <= after, widths, jnp.where(place == after + 1, width, moved))


def removed(widths: Widths, after: Int[Array, ""]) -> Widths:
    """Widths without the layer after that one."""
    place = jnp.arange(len(widths))
    moved = jnp.append(widths[1:], 0)
    return jnp.where(place <= after, widths, moved)


def places_with(layers: Layers, after: Int[Array, ""]) -> Int[Array, " layer"]:
    """Say whence each hidden layer but the first comes if one is inserted after that one.

    The last, which must be absent, comes from nowhere: it takes the new one's place.
    """
    place, last = jnp.arange(1, len(layers) - 1), len(layers) - 2
    return jnp.where(place <= after, place, jnp.where(place == after + 1, last, place - 1))


def places_without(layers: Layers, after: Int[Array, ""]) -> Int[Array, " layer"]:
    """The reverse of `places_with`: the layer after that one goes to the end."""
    place, last = jnp.arange(1, len(layers) - 1), len(layers) - 2
    return jnp.where(place <= after, place, jnp.where(place == last, after + 1, place + 1))


def shifted(layers: Layers, after: Int[Array, ""]) -> Layers:
    """Make room for a layer after that one: zeros there, those behind it one place further.

    The last of them has no place to go and must be absent.
    """
    place = jnp.arange(1, len(layers) - 1)
    return _rearranged(layers, places_with(layers, after), place == after + 1)


def closed(layers: Layers, after: Int[Array, ""]) -> Layers:
    """Take out the layer after that one: those behind it move up, and the last is absent."""
    place, last = jnp.arange(1, len(layers) - 1), len(layers) - 2
    return _rearranged(layers, places_without(layers, after), (place > after) & (place == last))


def activation_of(network: Any) -> str:
    """The name of the activation of an MLP, also where it sees the leading inputs only."""
    return (
        network.activation
        if isinstance(network, FullyConnected)
        else activation_of(network.network)
    )


@lru_cache
def identity_gain(activation: str) -> float:
    """g that brings f(g z) nearest to z, in the mean square over z = f(a), a from N(0, 1)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)

    def f(z: np.ndarray) -> np.ndarray:
        with jax.ensure_compile_time_eval():  # wherever a program is being traced
            return np.asarray(ACTIVATIONS[activation](jnp.asarray(z)), float)

    outputs = f(nodes)
    error = lambda g: float(weights @ (f(g * outputs) - outputs) ** 2)  # noqa: E731
    found = minimize_scalar(error, bounds=(0.1, 10.0), method="bounded")
    return round(float(found.x), 3)  # type: ignore[attr-defined]  # the same in any precision


def _flat(layers: Any) -> Array:
    """All weights, or what is said of them, as one vector."""
    return ravel_pytree(layers)[0]


def is_new_layer(layers: Layers, after: Int[Array, ""]) -> Layers:
    """Whether weights are of the layer after that one, which is not the output layer."""

    def of_layer(index: int, layer: Layer) -> Layer:
        is_new = (index == after + 1) & (index < len(layers) - 1)
        return jax.tree.map(lambda leaf: jnp.full(leaf.shape, is_new), layer)

    return tuple(of_layer(index, layer) for index, layer in enumerate(layers))


def _all_but_output(layers: Layers) -> Layers:
    """Whether weights lead to a hidden neuron."""
    return tuple(
        jax.tree.map(lambda leaf, i=i: jnp.full(leaf.shape, i < len(layers) - 1), layer)
        for i, layer in enumerate(layers)
    )


def _identity(kernel: Float[Array, "fan_in fan_out"]) -> Float[Array, "fan_in fan_out"]:
    """A kernel that is one from every neuron to the one in its place, and zero elsewhere."""
    return jnp.eye(*kernel.shape, dtype=kernel.dtype)


def _rearranged(layers: Layers, source: Int[Array, " layer"], is_empty: Any) -> Layers:
    """The hidden layers but the first, in another order, some empty."""
    first, *middle, last = layers
    if not middle:
        return layers
    stack = jax.tree.map(lambda *leaves: jnp.stack(leaves)[source - 1], *middle)
    stack = jax.tree.map(
        lambda leaf: jnp.where(
            is_empty.reshape(-1, *[1] * (leaf.ndim - 1)), jnp.zeros_like(leaf), leaf
        ),
        stack,
    )
    found = (jax.tree.map(lambda leaf, i=i: leaf[i], stack) for i in range(len(middle)))
    return (first, *found, last)
