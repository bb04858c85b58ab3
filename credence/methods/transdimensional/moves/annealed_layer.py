"""Annealed birth and death of a hidden layer: a bridge of small changes to the other depth."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jax.scipy.stats import norm
from jaxtyping import Array, Float, Int, PRNGKeyArray

from credence.density.data import Data
from credence.density.posterior import Params, Position
from credence.methods.transdimensional.active_neurons import Layers, Widths, only_active, where
from credence.methods.transdimensional.moves.base import LayerMove, Proposal, counts
from credence.methods.transdimensional.moves.bridge import Bridge
from credence.methods.transdimensional.moves.layer_birth import (
    LayerLaw,
    Pair,
    closed,
    is_new_layer,
    places_without,
    shifted,
)
from credence.methods.transdimensional.target import Point, VariableWidth, total
from credence.models.priors import normal_sample


def annealed_layer(
    target: VariableWidth,
    law: LayerLaw,
    bridge: Bridge,
    inverse_mass: Float[Array, " weight"],
) -> LayerMove:
    """Annealed importance sampling between two depths, on the weights of both networks together.

    Karagiannis & Andrieu, "Annealed importance sampling reversible jump MCMC algorithms" (2013),
    with the proposals of `layer_birth`. Let z be the weights of both networks, those that stay once
    only, with the noise and the precisions, and

        log rho_g(z) = log rho_0(z) + g log r(z),

    rho_0 the smaller network's posterior times the law by which all else is proposed, and r the
    ratio of `layer_birth`, so that rho_1 is the larger network's. A birth leads from g = 0 to 1, a
    death back; see `Bridge`. T = 1 is `layer_birth`.

    Args:
        target: joint law of widths, depth and weights.
        law: by which a layer is proposed; not a collapsed one.
        bridge: T, and the Hamiltonian steps.
        inverse_mass: of these steps.
    """

    def crossed(
        key: PRNGKeyArray, pair: Pair, after: Int[Array, ""], data: Data, *, is_birth: bool
    ) -> Proposal:
        key_idle, key_bridge = jax.random.split(key)
        both = _Both(target, law, pair, after)
        start, unravel = ravel_pytree(both.joined(key_idle))

        def log_rho(position: Position, share: Float[Array, ""]) -> Float[Array, ""]:
            power = share if is_birth else 1 - share
            return both.log_rho(unravel(position), power.astype(position.dtype), data)

        metric = both.metric(inverse_mass)
        position, log_ratio = bridge.crossed(key_bridge, start, log_rho, metric, data)
        ended = both.apart(unravel(position))
        params = ended.above if is_birth else ended.below
        cost = counts(evaluations=5, gradients=2 * bridge.num_gradients)
        return Proposal(params, target.log_likelihood(params, data), log_ratio, *cost)

    def birth(
        key: PRNGKeyArray, point: Point, after: Int[Array, ""], data: Data
    ) -> tuple[Proposal, Widths]:
        key_pair, key_bridge = jax.random.split(key)
        pair = law.with_layer(key_pair, point, after)
        return crossed(key_bridge, pair, after, data, is_birth=True), pair.upper

    def death(
        key: PRNGKeyArray, point: Point, after: Int[Array, ""], data: Data
    ) -> tuple[Proposal, Widths]:
        key_pair, key_bridge = jax.random.split(key)
        pair = law.without_layer(key_pair, point, after)
        return crossed(key_bridge, pair, after, data, is_birth=False), pair.lower

    return LayerMove(birth, death)


class _Joined(NamedTuple):
    """The weights of two networks, those that stay once: z."""

    above: Params
    """The larger network in all slots, the noise, and the precisions."""
    left: Layers
    """What the smaller network alone has, in the slots of the larger one."""


class _Both(NamedTuple):
    """A pair of networks as one vector, and the densities between them.

    Slots that neither network uses are idle: N(0, 1), whatever g is.
    """

    target: VariableWidth
    law: LayerLaw
    pair: Pair
    """Gives the widths, and where the bridge begins."""
    after: Int[Array, ""]

    def masks(self) -> tuple[Layers, Layers]:
        """Slots that the larger network uses, and those that the smaller one alone does."""
        was, now = self.pair.masks(self.after)
        return now, jax.tree.map(lambda was, now: was & ~now, was, now)

    def joined(self, key: PRNGKeyArray) -> _Joined:
        """Both networks as one, idle slots drawn."""
        (now, alone), above = self.masks(), self.pair.above
        ones = jax.tree.map(jnp.ones_like, above.network)
        idle = [normal_sample(each, above.network, ones) for each in jax.random.split(key)]
        left = where(alone, shifted(self.pair.below.network, self.after), idle[1])
        return _Joined(above._replace(network=where(now, above.network, idle[0])), left)

    def apart(self, z: _Joined) -> Pair:
        """The two networks."""
        (_, alone), pair, layers = self.masks(), self.pair, z.above.network
        above = z.above._replace(network=only_active(layers, pair.upper))
        below = self.target.with_layers_at(z.above, places_without(layers, self.after))
        kept = where(alone, z.left, above.network)
        network = only_active(closed(kept, self.after), pair.lower)
        return pair._replace(below=below._replace(network=network), above=above)

    def log_rho(self, z: _Joined, power: Float[Array, ""], data: Data) -> Float[Array, ""]:
        """log rho_g at g = power, in nats."""
        pair, likelihood = self.apart(z), self.target.log_likelihood
        below = likelihood(pair.below, data)
        log_ratio = likelihood(pair.above, data) - below + self.law.log_ratio(pair, self.after)
        return below + self._log_proposal(z, pair) + power * log_ratio

    def _log_proposal(self, z: _Joined, pair: Pair) -> Float[Array, ""]:
        """Log prior of the smaller network, and log density of all that is proposed beside it."""
        target, (now, alone), (was, _) = self.target, self.masks(), pair.masks(self.after)
        smaller = only_active(target.log_normals(pair.below, pair.lower), pair.lower)
        own = is_new_layer(z.above.network, self.after)
        means, stds = self.law.of_weights(pair.above, pair.upper, self.after)

        def of_larger(
            w: Array, was: Array, now: Array, own: Array, mean: Array, std: Array
        ) -> Array:
            log_q = norm.logpdf(w, jnp.where(own, mean, 0.0), std)
            return jnp.where(now, jnp.where(was, 0.0, log_q), norm.logpdf(w))

        above = jax.tree.map(of_larger, z.above.network, was, now, own, means, stds)
        left = jax.tree.map(lambda w, on: jnp.where(on, 0.0, norm.logpdf(w)), z.left, alone)
        return sum(map(total, (smaller, above, left)), start=target.log_prior_of_others(z.above))

    def metric(self, inverse_mass: Float[Array, " weight"]) -> Float[Array, " both"]:
        """Inverse masses of the larger network, and prior variances of what the smaller one alone
        has."""
        pair, (_, alone) = self.pair, self.masks()
        variances = shifted(self.target.prior_variances(pair.below, pair.lower), self.after)
        ones = jax.tree.map(jnp.ones_like, variances)
        above = self.target.metric(inverse_mass, pair.above, pair.upper)
        return jnp.concatenate([above, ravel_pytree(where(alone, variances, ones))[0]])
