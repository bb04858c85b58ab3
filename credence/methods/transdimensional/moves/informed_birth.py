"""Informed birth and death: the outgoing weights of a new neuron know the data."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jax.scipy.stats import norm
from jaxtyping import Array, Float, Int, PRNGKeyArray

from credence.density.data import Data
from credence.density.posterior import Params
from credence.methods.transdimensional.active_neurons import (
    Readers,
    Widths,
    outgoing,
    with_outgoing,
)
from credence.methods.transdimensional.moves.base import Move, Proposal, counts
from credence.methods.transdimensional.target import Point, VariableWidth, total

Outgoing = Float[Array, " next"]
"""A neuron's outgoing weights."""


def informed_birth(target: VariableWidth, layer: int) -> Move:
    """Incoming weights from their prior; outgoing ones v from one Newton step at v = 0.

    There the neuron does not count and the network is the smaller one, in both directions:

        Sigma^-1 = P + H,  mu = Sigma g,   v ~ N(mu, Sigma),
        r = L(w, u, v) / L(w)  p(w | k + 1) / p(w | k)  p(v) / N(v; mu, Sigma)

    with g and -H gradient and Hessian of log L by v (negative curvature cut off) and P the prior's
    precision. The Laplace proposal of a Gaussian likelihood is the exact conditional.

    Args:
        target: joint law of widths and weights.
        layer: which hidden layer; the last one has few outgoing weights, the others' Hessians
            cost as many products as the next layer has neurons.
    """

    def proposal_of(params: Params, slot: Int[Array, ""], widths: Widths, data: Data) -> "Normal":
        def log_likelihood(weights: Outgoing) -> Float[Array, ""]:
            return target.log_likelihood(_replaced(params, slot, read_by, weights), data)

        read_by = target.readers(widths, layer)
        std = _outgoing_std(target, params, slot, widths, read_by)
        zero = jnp.zeros_like(std)
        curvature, directions = jnp.linalg.eigh(-jax.hessian(log_likelihood)(zero))
        curvature = (directions * jnp.maximum(curvature, 0.0)) @ directions.T
        root = jnp.linalg.cholesky(curvature + jnp.diag(std**-2))
        half = solve_triangular(root, jax.grad(log_likelihood)(zero), lower=True)
        return Normal(solve_triangular(root, half, lower=True, trans=1), root, std)

    def cost(law: "Normal") -> tuple[Int[Array, ""], Int[Array, ""]]:
        return counts(evaluations=1, gradients=1 + law.mean.size)

    def birth(key: PRNGKeyArray, point: Point, data: Data) -> Proposal:
        key_incoming, key_outgoing = jax.random.split(key)
        slot, lower = point.widths[layer], point.widths
        upper = lower.at[layer].add(1)
        born = target.with_neurons(key_incoming, point.params, lower, upper)
        read_by = target.readers(upper, layer)
        silent = _silenced(born, slot, read_by)
        law = proposal_of(silent, slot, upper, data)
        weights = law.sample(key_outgoing)
        params = target.without_neurons(_replaced(born, slot, read_by, weights), upper)
        log_likelihood = target.log_likelihood(params, data)
        log_ratio = log_likelihood - point.log_likelihood + law.log_prior_ratio(weights)
        log_ratio += total(target.log_prior_of_kept(point.params, lower, upper))
        return Proposal(params, log_likelihood, log_ratio, *cost(law))

    def death(key: PRNGKeyArray, point: Point, data: Data) -> Proposal:
        upper = point.widths
        lower, slot = upper.at[layer].add(-1), upper[layer] - 1
        read_by = target.readers(upper, layer)
        weights = outgoing(point.params.network, slot, read_by)
        law = proposal_of(_silenced(point.params, slot, read_by), slot, upper, data)
        params = target.without_neurons(point.params, lower)
        log_likelihood = target.log_likelihood(params, data)
        log_ratio = log_likelihood - point.log_likelihood - law.log_prior_ratio(weights)
        log_ratio -= total(target.log_prior_of_kept(params, lower, upper))
        return Proposal(params, log_likelihood, log_ratio, *cost(law))

    return Move(birth, death, layer)


class Normal(NamedTuple):
    """N(mean, (root root')^-1), and the prior's standard deviations.

    Outgoing weights to inactive neurons of the next layer have no curvature: there it is the prior,
    at whose mean the inactive zeros count alike in both densities.
    """

    mean: Outgoing
    root: Float[Array, "next next"]
    prior_std: Outgoing

    def sample(self, key: PRNGKeyArray) -> Outgoing:
        """Draw outgoing weights once."""
        noise = jax.random.normal(key, self.mean.shape, self.mean.dtype)
        return self.mean + solve_triangular(self.root, noise, lower=True, trans=1)

    def log_prior_ratio(self, outgoing: Outgoing) -> Float[Array, ""]:
        """log p(v) - log N(v; mu, Sigma), in nats."""
        whitened = self.root.T @ (outgoing - self.mean)
        log_normals = norm.logpdf(whitened) + jnp.log(jnp.diag(self.root))
        return jnp.sum(norm.logpdf(outgoing, scale=self.prior_std)) - jnp.sum(log_normals)


def _replaced(params: Params, slot: Int[Array, ""], read_by: Readers, weights: Outgoing) -> Params:
    return params._replace(network=with_outgoing(params.network, slot, read_by, weights))


def _silenced(params: Params, slot: Int[Array, ""], read_by: Readers) -> Params:
    """Parameters in which nothing hears the neuron: its outgoing weights are zero."""
    zeros = jnp.zeros_like(outgoing(params.network, slot, read_by))
    return _replaced(params, slot, read_by, zeros)


def _outgoing_std(
    target: VariableWidth,
    params: Params,
    slot: Int[Array, ""],
    widths: Widths,
    read_by: Readers,
) -> Outgoing:
    """The prior standard deviations of outgoing weights.

    They are one for weights to a layer that does not read the neuron, where any number will do.
    """
    found = outgoing(target.stds(params, widths), slot, read_by)
    return jnp.where(found > 0, found, 1.0)
