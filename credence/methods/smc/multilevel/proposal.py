"""The proposal q_l of multilevel SMC: the law from which a level's new weights are drawn.

Chada, Jasra, Law & Singh, "Bayesian Deep Learning with Multilevel Trace-class Neural Networks",
Algorithm 3.1. Whatever the law, particles are weighed by

    G = L_fine(w, new) prior(new | w) / (L_coarse(w) q(new | w)),

the ratio of the ends of a bridge that starts at prior(w) L_coarse(w) q(new | w).
"""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jax.scipy.linalg import cho_solve, solve_triangular
from jaxtyping import Array, Float, Key, PRNGKeyArray

from credence.density.data import PART_BYTES, Data
from credence.density.posterior import (
    BayesianModel,
    Params,
    Position,
    flat_log_likelihood,
    flat_log_prior,
)
from credence.errors import InputError
from credence.methods.smc.bridge import Bridge
from credence.methods.smc.method import prior_draws
from credence.methods.smc.multilevel.levels import coarse_log_likelihood, extended, to_level
from credence.models.likelihoods.numbers import Normal
from credence.models.networks.mlp import MLP, last_hidden
from credence.models.networks.wrappers import LeadingInputs
from credence.models.priors import GaussianPrior

PRIOR_SHARE = 0.1
"""Share of the draws that come from the prior where the Gaussian law is not exact. Without any, the
weights G of far draws have no bound, and their variance none, as that law has lighter tails."""
PARTICLES_AT_A_TIME = 256
"""Particles that draw their new weights at once, at most, each with a matrix per output and the
features of all rows."""

Cloud = Float[Any, "run particle old"]
FineCloud = Float[Any, "run particle new"]


class Proposal(NamedTuple):
    """How new weights are drawn, and the path that starts there."""

    draw: Callable[..., FineCloud]
    """Fine positions, from (key, coarse_positions, data, *, coarse, fine)."""
    bridge: Callable[[BayesianModel, BayesianModel, int], Bridge]
    """The path from what was drawn to the fine posterior, from (coarse, fine, num_weights)."""
    extra_weights: Callable[[BayesianModel, BayesianModel, Data], int]
    """Number of weights of a network whose evaluation costs as much as the law's density."""


def from_prior(
    key: PRNGKeyArray,
    positions: Cloud,
    data: Data,
    *,
    coarse: BayesianModel,
    fine: BayesianModel,
) -> FineCloud:
    """Coarse particles with all that is new drawn from the fine prior."""
    new = prior_draws(jax.random.split(key, positions.shape[:2]), data, model=fine)
    return extended(positions, new, data, coarse=coarse, fine=fine)


def from_conditional(
    key: PRNGKeyArray,
    positions: Cloud,
    data: Data,
    *,
    coarse: BayesianModel,
    fine: BayesianModel,
) -> FineCloud:
    """Coarse particles with new neurons from the prior, their output weights from `new_outputs`."""
    key_prior, key_outputs = jax.random.split(key)
    drawn = from_prior(key_prior, positions, data, coarse=coarse, fine=fine)
    if not num_new(coarse, fine, data):
        return drawn
    keys = jax.random.split(key_outputs, drawn.shape[:2])
    return _with_new_outputs(keys, drawn, data, coarse=coarse, fine=fine)


@lru_cache(maxsize=256)
def to_level_from_conditional(
    coarse: BayesianModel, fine: BayesianModel, num_weights: int
) -> Bridge:
    """The bridge to the fine posterior from what `from_conditional` draws.

    For normal noise G is the collapsed likelihood of the fine network, its new output weights
    integrated out, over the coarse one's likelihood:

        G = N(y - f; 0, s^2 I + H D H') / N(y - f_coarse; 0, s^2 I)

    with f the fine network without its new neurons' output weights, H those neurons' outputs, and
    D the prior variances of the weights. It does not depend on the weights that were drawn.
    """
    log_likelihood = coarse_log_likelihood(coarse, fine)

    def log_start(position: Position, data: Data) -> Float[Array, ""]:
        start, count = log_likelihood(position, data), num_new(coarse, fine, data)
        if not count:
            return start
        params = fine.unravel(position, data)
        law = new_outputs(params, data, coarse=coarse, fine=fine)
        return start + law.log_over_prior(params.network[-1].kernel[-count:])

    return Bridge(flat_log_prior(fine), log_start, flat_log_likelihood(fine), num_weights)


class NewOutputs(NamedTuple):
    """The law of the weights from new neurons to outputs.

    Independent Gaussian laws, output by output, of weights in units of their prior standard
    deviations; or a mixture of these and the prior (Hesterberg, "Weighted average importance
    sampling and defensive mixture distributions", 1995).
    """

    mean: Float[Array, "output new"]
    root: Float[Array, "output new new"]
    """Cholesky factor of the precision."""
    stds: Float[Array, "output new"]
    prior_share: float
    """Probability of a draw from the prior."""

    def sample(self, key: PRNGKeyArray) -> Float[Array, "new output"]:
        """A draw of the weights."""
        key_noise, key_prior = jax.random.split(key)
        noise = jax.random.normal(key_noise, self.mean.shape, self.mean.dtype)
        turn = lambda root, z: solve_triangular(root, z, lower=True, trans=1)  # noqa: E731
        whitened = self.mean + jax.vmap(turn)(self.root, noise)
        is_prior = jax.random.bernoulli(key_prior, self.prior_share)
        return (self.stds * jnp.where(is_prior, noise, whitened)).T

    def log_over_prior(self, kernel: Float[Array, "new output"]) -> Float[Array, ""]:
        """Log density of weights under this law less that under the prior, in nats."""
        whitened = kernel.T / self.stds
        turned = jnp.einsum("oij,oi->oj", self.root, whitened - self.mean, precision="highest")
        log_roots = jnp.log(jnp.diagonal(self.root, axis1=-2, axis2=-1))
        found = jnp.sum(log_roots) + 0.5 * (jnp.sum(whitened**2) - jnp.sum(turned**2))
        if not self.prior_share:
            return found
        return jnp.logaddexp(found + np.log1p(-self.prior_share), np.log(self.prior_share))


def new_outputs(
    params: Params, data: Data, *, coarse: BayesianModel, fine: BayesianModel
) -> NewOutputs:
    """The law of the new neurons' output weights given all other parameters and the data.

    One Newton step from zero in the log posterior of these weights, with the diagonal of the
    likelihood's curvature over the outputs (Gamerman, "Sampling from the posterior distribution in
    generalized linear mixed models", 1997). For normal noise it is their exact law; for other
    likelihoods some draws come from the prior.

    Args:
        params: of the fine model; the weights themselves are not read.
    """
    count = num_new(coarse, fine, data)
    last = params.network[-1]
    hidden = last_hidden(fine.network, params.network, data.x)
    old, new = hidden[:, :-count], hidden[:, -count:]
    slope, curvature = _derivatives(fine, params, old @ last.kernel[:-count] + last.bias, data)
    prior = fine.prior.stds(fine.network, params.network)[-1].kernel  # type: ignore[attr-defined]
    stds = jnp.broadcast_to(prior, last.kernel.shape)[-count:].T.astype(hidden.dtype)

    def of_output(stds: Array, slope: Array, curvature: Array) -> tuple[Array, Array]:
        design = new * stds
        exactly = partial(jnp.matmul, precision="highest")  # accelerators round by default
        weighed = design * curvature[:, None]
        precision = jnp.eye(count, dtype=stds.dtype) + exactly(design.T, weighed)
        root = jnp.linalg.cholesky(precision)
        return cho_solve((root, True), exactly(design.T, slope)), root

    prior_share = 0.0 if isinstance(fine.likelihood, Normal) else PRIOR_SHARE
    return NewOutputs(*jax.vmap(of_output)(stds, slope.T, curvature.T), stds, prior_share)


def _derivatives(
    model: BayesianModel, params: Params, outputs: Float[Array, "point output"], data: Data
) -> tuple[Float[Array, "point output"], Float[Array, "point output"]]:
    """Slope and curvature (>= 0) of the weighted log likelihood in every output of every point."""

    def total(outputs: Float[Array, "point output"]) -> Float[Array, ""]:
        log_probs = model.likelihood.log_prob(params.likelihood, outputs, data.y)
        return jnp.sum(data.weight * log_probs)

    slope_at = jax.grad(total)

    def curvature(output: Array) -> Float[Array, " point"]:
        along = jnp.zeros_like(outputs).at[:, output].set(1.0)
        return -jax.jvp(slope_at, (outputs,), (along,))[1][:, output]

    curvatures = jax.vmap(curvature, out_axes=1)(jnp.arange(outputs.shape[1]))
    return slope_at(outputs), jnp.maximum(curvatures, 0.0)


@partial(jax.jit, static_argnames=("coarse", "fine"))
def _with_new_outputs(
    keys: Key[Array, "run particle"],
    positions: FineCloud,
    data: Data,
    *,
    coarse: BayesianModel,
    fine: BayesianModel,
) -> FineCloud:
    """Particles whose new neurons' output weights are drawn again, from `new_outputs`."""
    count = num_new(coarse, fine, data)

    def one(particle: tuple[PRNGKeyArray, Position]) -> Position:
        key, position = particle
        params = fine.unravel(position, data)
        *hidden, last = params.network
        drawn = new_outputs(params, data, coarse=coarse, fine=fine).sample(key)
        last = last._replace(kernel=last.kernel.at[-count:].set(drawn))
        return ravel_pytree(params._replace(network=(*hidden, last)))[0]

    flat = keys.reshape(-1), positions.reshape(-1, positions.shape[-1])
    last_kernel = fine.template(data).network[-1].kernel
    bytes_of_features = len(data.y) * last_kernel.shape[-2] * last_kernel.dtype.itemsize
    at_once = int(np.clip(PART_BYTES // bytes_of_features, 1, PARTICLES_AT_A_TIME))
    return jax.lax.map(one, flat, batch_size=at_once).reshape(positions.shape)


def num_new(coarse: BayesianModel, fine: BayesianModel, data: Data) -> int:
    """Neurons of the last hidden layer (or inputs, where there is none) that are new."""
    widths = (model.template(data).network[-1].kernel.shape[-2] for model in (coarse, fine))
    return -int.__sub__(*widths)


def extra_weights(coarse: BayesianModel, fine: BayesianModel, data: Data) -> int:
    """Number of weights of a network whose evaluation costs as much as `new_outputs`.

    An evaluation takes 2 n per weight of n rows; the products of k new features take 2 n k^2 and
    the factor k^3, for every output.
    """
    count = num_new(coarse, fine, data)
    outputs = fine.template(data).network[-1].kernel.shape[-1]
    return outputs * (count**2 + count**3 // (2 * len(data.y)))


def check_conditional(model: BayesianModel, data: Data) -> None:
    """Refuse what `from_conditional` cannot serve.

    Raises:
        InputError: with what to use instead.
    """
    network = model.network
    inner = network.network if isinstance(network, LeadingInputs) else network
    if not isinstance(inner, MLP) or not isinstance(model.prior, GaussianPrior):
        raise InputError(
            'proposal="conditional" draws the output weights of an MLP under a Gaussian prior, got '
            f'{network} under {model.prior}: use proposal="prior".'
        )
    if not data.rows.in_memory:
        raise InputError(
            'proposal="conditional" needs the rows in memory, but they are in a file: use '
            'proposal="prior", or load them.'
        )


PROPOSALS = {
    "prior": Proposal(from_prior, to_level, lambda *_: 0),
    "conditional": Proposal(from_conditional, to_level_from_conditional, extra_weights),
}
