"""Collapsed birth and death: the output layer is integrated out, then drawn exactly."""

import math
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_solve, solve_triangular
from jaxtyping import Array, Float, Int, PRNGKeyArray

from credence.density.data import Data
from credence.density.posterior import Params
from credence.errors import InputError
from credence.methods.transdimensional.active_neurons import Widths, activity
from credence.methods.transdimensional.moves.base import Move, Proposal, counts
from credence.methods.transdimensional.target import Point, VariableWidth, total
from credence.models.likelihoods.numbers import Normal
from credence.models.networks.mlp import Layer, last_hidden


def collapsed_birth(target: VariableWidth, layer: int) -> Move:
    """A neuron with incoming weights from the prior; all output weights from their conditional law.

    Given the hidden layers W and the noise, a Gaussian likelihood leaves the output weights V
    Gaussian, and

        r = m(W') / m(W),    m(W) = integral of L(W, V) p(V) dV = N(y; 0, s^2 I + F F')

    with F the last hidden layer's outputs and a column of ones, times their prior standard
    deviations (target by target). V' given W' is drawn from its conditional law q. In exact numbers
    m(W) = L(W, V) p(V) / q(V | W) at any V, and this is what is computed: it needs no determinant
    of large matrices, and a q that single precision has rounded makes jumps rarer, never wrong.

    Args:
        target: joint law of widths and weights, with a `Normal` likelihood.
        layer: which hidden layer.
    Raises:
        InputError: for any other likelihood.
    """
    check_collapsible(target)

    def log_prior_of_hidden(params: Params, lower: Widths, upper: Widths) -> Float[Array, ""]:
        return total(target.log_prior_of_kept(params, lower, upper)[:-1])

    def birth(key: PRNGKeyArray, point: Point, data: Data) -> Proposal:
        key_neuron, key_outputs = jax.random.split(key)
        lower, upper = point.widths, point.widths.at[layer].add(1)
        params = target.with_neurons(key_neuron, point.params, lower, upper)
        proposal = collapsed(target, key_outputs, point, params, upper, data)
        kept = log_prior_of_hidden(point.params, lower, upper)
        return proposal._replace(log_ratio=proposal.log_ratio + kept)

    def death(key: PRNGKeyArray, point: Point, data: Data) -> Proposal:
        lower, upper = point.widths.at[layer].add(-1), point.widths
        params = target.without_neurons(point.params, lower)
        proposal = collapsed(target, key, point, params, lower, data)
        kept = log_prior_of_hidden(params, lower, upper)
        return proposal._replace(log_ratio=proposal.log_ratio - kept)

    return Move(birth, death, layer)


def check_collapsible(target: VariableWidth) -> None:
    """Refuse what leaves no Gaussian law of the output weights.

    Raises:
        InputError: with what to use instead.
    """
    likelihood = target.model.likelihood
    if not isinstance(likelihood, Normal):
        raise InputError(
            f"Collapsed moves integrate the output weights out, which needs Gaussian noise, got "
            f"{likelihood}: use likelihood 'normal', or moves=('informed',)."
        )


def collapsed(
    target: VariableWidth,
    key: PRNGKeyArray,
    point: Point,
    params: Params,
    widths: Widths,
    data: Data,
) -> Proposal:
    """Output weights for hidden layers, and the ratio of marginal likelihoods."""
    old = regression(target, point.params, point.widths, data)
    new = regression(target, params, widths, data)
    params = params._replace(network=(*params.network[:-1], new.sample(key)))
    params = target.without_neurons(params, widths)
    log_likelihood = target.log_likelihood(params, data)
    log_ratio = log_likelihood + new.log_prior_ratio(params.network[-1])
    log_ratio -= point.log_likelihood + old.log_prior_ratio(point.params.network[-1])
    return Proposal(params, log_likelihood, log_ratio, *collapsed_counts(params, data))


def collapsed_counts(params: Params, data: Data) -> tuple[Int[Array, ""], Int[Array, ""]]:
    """Likelihood values that a collapsed proposal is worth, by nominal FLOPs.

    Two networks up to their features, one likelihood, and two regressions of every target: their
    products of features (2 n k^2) and factors (k^3), k features with the constant, n rows. A value
    takes 2 n FLOPs per weight.
    """
    rows = data.x.shape[0]
    weights = sum(leaf.size for leaf in jax.tree.leaves(params.network))
    features, targets = params.network[-1].kernel.shape
    features += 1
    flops = 2 * targets * (2 * rows * features**2 + features**3)
    return counts(evaluations=3 + math.ceil(flops / (2 * rows * weights)))


SHIFT = 0.1
"""Roundings of all squares together that are added to each, so that factors of them exist."""


class Regression(NamedTuple):
    """Bayesian linear regression of every target on the last hidden layer's outputs.

    Weights are in units of their prior standard deviations, feature by feature; the bias is last.
    Those of absent neurons are 0.
    """

    mean: Float[Array, "target weight"]
    root: Float[Array, "target weight weight"]
    """Cholesky factor of the posterior precision."""
    stds: Float[Array, "target weight"]

    def log_prior_ratio(self, layer: Layer) -> Float[Array, ""]:
        """log p(V) - log q(V) of an output layer, in nats: prior and conditional law."""
        is_active = self.stds > 0
        weights = jnp.concatenate([layer.kernel, layer.bias[None]]).T
        weights = jnp.where(is_active, weights / jnp.where(is_active, self.stds, 1.0), 0.0)
        whitened = jnp.einsum("tij,ti->tj", self.root, weights - self.mean, precision="highest")
        log_roots = jnp.where(is_active, jnp.log(jnp.diagonal(self.root, axis1=1, axis2=2)), 0.0)
        return 0.5 * jnp.sum(whitened**2 - weights**2) - jnp.sum(log_roots)

    def sample(self, key: PRNGKeyArray) -> Layer:
        """A draw of the output layer."""
        noise = jax.random.normal(key, self.mean.shape, self.mean.dtype)
        turn = lambda root, z: solve_triangular(root, z, lower=True, trans=1)  # noqa: E731
        weights = self.stds * (self.mean + jax.vmap(turn)(self.root, noise))
        return Layer(weights[:, :-1].T, weights[:, -1])


def regression(target: VariableWidth, params: Params, widths: Widths, data: Data) -> Regression:
    """The linear regression of the data on the features of a network of these widths."""
    features, scale = _features(target, params, data)
    is_active = activity(params.network, widths)[-1]
    stds = target.stds(params, widths)[-1]
    kernel_stds = jnp.where(is_active.kernel, stds.kernel, 0.0)
    all_stds = jnp.concatenate([kernel_stds, stds.bias[None]]).T

    def of_target(y: Array, noise: Array, stds: Array) -> tuple[Array, Array]:
        root_weight = jnp.sqrt(data.weight) / noise
        design, wanted = features * stds * root_weight[:, None], root_weight * y
        exactly = partial(jnp.matmul, precision="highest")  # accelerators round by default
        one = jnp.eye(len(stds), dtype=stds.dtype)
        precision = one + exactly(design.T, design)
        rounding = SHIFT * jnp.finfo(stds.dtype).eps * jnp.trace(precision)
        root = jnp.linalg.cholesky(precision + rounding * one)
        mean = cho_solve((root, True), exactly(design.T, wanted))
        missed = exactly(design.T, wanted - exactly(design, mean)) - mean
        return mean + cho_solve((root, True), missed), root

    return Regression(*jax.vmap(of_target)(data.y.T, scale.T, all_stds), all_stds)


def _features(target: VariableWidth, params: Params, data: Data) -> tuple[Array, Array]:
    """The last hidden layer's outputs and a one (point, neuron + 1); the noise (point, target)."""
    hidden = last_hidden(target.model.network, params.network, data.x)
    features = jnp.concatenate([hidden, jnp.ones_like(hidden[:, :1])], axis=-1)
    zeros = jnp.zeros(data.y.shape, hidden.dtype)
    _, scale = target.model.likelihood.location_scale(params.likelihood, zeros)  # type: ignore[attr-defined]
    return features, scale
