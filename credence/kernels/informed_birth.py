"""Informed birth and death: the outgoing weights of a new unit know the data."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jax.scipy.stats import norm
from jaxtyping import Array, Float, Int, PRNGKeyArray

from credence.kernels.jumps import Move, Proposal, counts
from credence.kernels.variable_width import Point, VariableWidth, total
from credence.models.units import Widths
from credence.posterior import Data, Params

Outgoing = Float[Array, " next"]
"""A unit's outgoing weights."""


def informed_birth(target: VariableWidth, layer: int) -> Move:
    """Incoming weights from their prior; outgoing ones v from one Newton step at v = 0.

    There the unit does not count and the network is the smaller one, in both directions:

        Sigma^-1 = P + H,  mu = Sigma g,   v ~ N(mu, Sigma),
        r = L(w, u, v) / L(w)  p(w | k + 1) / p(w | k)  p(v) / N(v; mu, Sigma)

    with g and -H gradient and Hessian of log L by v (negative curvature cut off) and P the prior's
    precision. The Laplace proposal of a Gaussian likelihood is the exact conditional.

    Args:
        target: joint law of widths and weights.
        layer: which hidden layer; the last one has few outgoing weights, the others' Hessians
            cost as many products as the next layer has units.
    """

    def proposal_of(params: Params, slot: Int[Array, ""], widths: Widths, data: Data) -> "Normal":
        def log_likelihood(outgoing: Outgoing) -> Float[Array, ""]:
            return target.log_likelihood(_with_outgoing(params, layer, slot, outgoing), data)

        std = _outgoing_std(target, params, layer, slot, widths)
        zero = jnp.zeros_like(std)
        curvature, directions = jnp.linalg.eigh(-jax.hessian(log_likelihood)(zero))
        curvature = (directions * jnp.maximum(curvature, 0.0)) @ directions.T
        root = jnp.linalg.cholesky(curvature + jnp.diag(std**-2))
        half = solve_triangular(root, jax.grad(log_likelihood)(zero), lower=True)
        return Normal(solve_triangular(root, half, lower=True, trans=1), root, std)

    def cost(params: Params) -> tuple[Int[Array, ""], Int[Array, ""]]:
        return counts(evaluations=1, gradients=1 + params.network[layer + 1].kernel.shape[-1])

    def birth(key: PRNGKeyArray, point: Point, data: Data) -> Proposal:
        key_incoming, key_outgoing = jax.random.split(key)
        slot, lower = point.widths[layer], point.widths
        upper = lower.at[layer].add(1)
        born = target.with_units(key_incoming, point.params, lower, upper)
        silent = _with_outgoing(born, layer, slot, jnp.zeros(()))
        law = proposal_of(silent, slot, upper, data)
        outgoing = law.sample(key_outgoing)
        params = _with_outgoing(born, layer, slot, outgoing)
        params = target.without_units(params, upper)
        log_likelihood = target.log_likelihood(params, data)
        log_ratio = log_likelihood - point.log_likelihood + law.log_prior_ratio(outgoing)
        log_ratio += total(target.log_prior_of_kept(point.params, lower, upper))
        return Proposal(params, log_likelihood, log_ratio, *cost(params))

    def death(key: PRNGKeyArray, point: Point, data: Data) -> Proposal:
        upper = point.widths
        lower, slot = upper.at[layer].add(-1), upper[layer] - 1
        outgoing = point.params.network[layer + 1].kernel[slot]
        silent = _with_outgoing(point.params, layer, slot, jnp.zeros(()))
        law = proposal_of(silent, slot, upper, data)
        params = target.without_units(point.params, lower)
        log_likelihood = target.log_likelihood(params, data)
        log_ratio = log_likelihood - point.log_likelihood - law.log_prior_ratio(outgoing)
        log_ratio -= total(target.log_prior_of_kept(params, lower, upper))
        return Proposal(params, log_likelihood, log_ratio, *cost(params))

    return Move(birth, death, layer)


class Normal(NamedTuple):
    """N(mean, (root root')^-1), and the prior's standard deviations.

    Outgoing weights to inactive units of the next layer have no curvature: there it is the prior,
    at whose mean the inactive zeros count alike in both densities.
    """

    mean: Outgoing
    root: Float[Array, "next next"]
    prior_std: Outgoing

    def sample(self, key: PRNGKeyArray) -> Outgoing:
        """One draw."""
        noise = jax.random.normal(key, self.mean.shape, self.mean.dtype)
        return self.mean + solve_triangular(self.root, noise, lower=True, trans=1)

    def log_prior_ratio(self, outgoing: Outgoing) -> Float[Array, ""]:
        """log p(v) - log N(v; mu, Sigma), in nats."""
        whitened = self.root.T @ (outgoing - self.mean)
        log_normals = norm.logpdf(whitened) + jnp.log(jnp.diag(self.root))
        return jnp.sum(norm.logpdf(outgoing, scale=self.prior_std)) - jnp.sum(log_normals)


def _with_outgoing(
    params: Params, layer: int, slot: Int[Array, ""], outgoing: Float[Array, "*next"]
) -> Params:
    layers = list(params.network)
    after = layers[layer + 1]
    layers[layer + 1] = after._replace(kernel=after.kernel.at[slot].set(outgoing))
    return params._replace(network=tuple(layers))


def _outgoing_std(
    target: VariableWidth, params: Params, layer: int, slot: Int[Array, ""], widths: Widths
) -> Outgoing:
    """Of the prior."""
    after = params.network[layer + 1].kernel
    stds = target.stds(params, widths)[layer + 1].kernel
    return jnp.broadcast_to(jnp.asarray(stds, after.dtype), after.shape)[slot]
