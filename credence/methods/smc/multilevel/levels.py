"""Posteriors of nested networks, from coarse to fine, and the bridges between them."""

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Float

from credence.density.data import Data
from credence.density.posterior import (
    BayesianModel,
    LogDensity,
    Position,
    Posterior,
    flat_log_likelihood,
    flat_log_prior,
)
from credence.errors import InputError
from credence.methods.smc.bridge import Bridge
from credence.methods.smc.multilevel import nested
from credence.models.networks.mlp import Network
from credence.models.priors import GaussianPrior


def with_networks(posterior: Posterior, networks: Sequence[Network]) -> list[Posterior]:
    """The same data, prior and likelihood with other networks, from coarse to fine.

    Raises:
        InputError: where the networks are not nested, or the prior is not.
    """
    model, data = posterior.model, posterior.data
    levels = [
        Posterior(network, model.prior, model.likelihood, (data.x, data.y, data.weight))
        for network in networks
    ]
    for coarse, fine in pairwise(levels):
        _require_nested(coarse, fine)
    return levels


def _require_nested(coarse: Posterior, fine: Posterior) -> None:
    """Refuse levels of which one is not the leading block of the next, prior included."""
    prior = fine.model.prior
    if not isinstance(prior, GaussianPrior):
        raise InputError(f"Multilevel SMC needs a Gaussian prior, got {prior}: use TraceClass.")
    small, large = (level.model.template(level.data).network for level in (coarse, fine))
    if not nested.is_nested(prior, coarse.model.network, small, fine.model.network, large):
        raise InputError(
            f"{prior} is not nested: its law of a coarse network's weights changes with the width. "
            "Use the trace-class prior, models.TraceClass(alpha=2)."
        )


@lru_cache(maxsize=256)
def to_level(coarse: BayesianModel, fine: BayesianModel, num_weights: int) -> Bridge:
    """The bridge between the posteriors of two levels, both under the fine prior."""
    coarse_likelihood, fine_likelihood = (
        coarse_log_likelihood(coarse, fine),
        flat_log_likelihood(fine),
    )
    return Bridge(flat_log_prior(fine), coarse_likelihood, fine_likelihood, num_weights)


@lru_cache(maxsize=256)
def to_either(coarse: BayesianModel, fine: BayesianModel, num_weights: int) -> Bridge:
    """The bridge from the fine prior to prior(w) max(L_coarse(w), L_fine(w))."""
    coarse_likelihood, fine_likelihood = (
        coarse_log_likelihood(coarse, fine),
        flat_log_likelihood(fine),
    )

    def nothing(position: Position, data: Data) -> Float[Any, ""]:
        return jnp.zeros((), position.dtype)

    def larger(position: Position, data: Data) -> Float[Any, ""]:
        return jnp.maximum(coarse_likelihood(position, data), fine_likelihood(position, data))

    return Bridge(flat_log_prior(fine), nothing, larger, num_weights)


def coarse_log_likelihood(coarse: BayesianModel, fine: BayesianModel) -> LogDensity:
    """The coarse model's log likelihood of a fine position."""

    def log_density(position: Position, data: Data) -> Float[Any, ""]:
        params = fine.unravel(position, data)
        network = nested.leading(params.network, coarse.template(data).network)
        return coarse.log_likelihood(params._replace(network=network), data)

    return log_density


@partial(jax.jit, static_argnames=("coarse", "fine"))
def leading(
    positions: Float[Any, "run particle weight"],
    data: Data,
    *,
    coarse: BayesianModel,
    fine: BayesianModel,
) -> Float[Any, "run particle old"]:
    """The coarse networks inside fine ones."""
    template = coarse.template(data).network
    return _resized(lambda network: nested.leading(network, template), positions, data, fine)


@partial(jax.jit, static_argnames=("coarse", "fine"))
def extended(
    coarse_positions: Float[Any, "run particle weight"],
    fine_draws: Float[Any, "run particle new"],
    data: Data,
    *,
    coarse: BayesianModel,
    fine: BayesianModel,
) -> Float[Any, "run particle new"]:
    """Coarse particles with the entries that are new at the fine level, drawn from its prior."""

    def one(position: Position, draw: Float[Any, " new"]) -> Float[Any, " new"]:
        params, new = coarse.unravel(position, data), fine.unravel(draw, data)
        network = nested.extended(params.network, new.network)
        return ravel_pytree(params._replace(network=network))[0]

    return jax.vmap(jax.vmap(one))(coarse_positions, fine_draws)


@partial(jax.jit, static_argnames=("coarse", "fine"))
def embedded(
    positions: Float[Any, "run particle weight"],
    data: Data,
    *,
    coarse: BayesianModel,
    fine: BayesianModel,
) -> Float[Any, "run particle new"]:
    """Coarse networks as fine ones that are the same functions."""
    template = fine.template(data).network
    return _resized(lambda network: nested.embedded(network, template), positions, data, coarse)


def _resized(
    change: Callable[[Any], Any],
    positions: Float[Any, "run particle weight"],
    data: Data,
    model: BayesianModel,
) -> Float[Any, "run particle other"]:
    """Particles of a model with their networks changed; a likelihood's parameters stay."""

    def one(position: Position) -> Float[Any, " other"]:
        params = model.unravel(position, data)
        return ravel_pytree(params._replace(network=change(params.network)))[0]

    return jax.vmap(jax.vmap(one))(positions)
