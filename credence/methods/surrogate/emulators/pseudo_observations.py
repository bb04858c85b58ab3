"""Inputs with several targets each, which stand for many rows, and their likelihood."""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from credence.density.data import Data
from credence.density.posterior import BayesianModel, Position
from credence.models.likelihoods.numbers import LocationScale


class PseudoObservations(NamedTuple):
    """Inputs, each with several targets."""

    x: Float[Array, "input *feature"]
    y: Array
    """(input, target, dimension), or labels (input, target)."""
    weight: Float[Array, "input target"]
    """How many rows each stands for."""
    anchor: Float[Array, "input target"]
    """Log likelihood at a typical parameter, subtracted."""


def themselves(data: Data) -> PseudoObservations:
    """All rows, each with its own target."""
    anchor = jnp.zeros_like(data.weight) if data.anchor is None else data.anchor
    return PseudoObservations(data.x, data.y[:, None], data.weight[:, None], anchor[:, None])


@dataclass(frozen=True)
class CoresetLikelihood:
    """Log likelihood of pseudo-observations."""

    model: BayesianModel

    def __call__(self, position: Position, rows: PseudoObservations) -> Float[Array, ""]:
        return jnp.vdot(rows.weight, terms(position, rows, self.model), precision="highest")


def terms(
    position: Position, rows: PseudoObservations, model: BayesianModel
) -> Float[Array, "input target"]:
    """Log likelihood of every pseudo-observation, from its anchor."""
    params = model.unravel(position, Data(rows.x, rows.y[:, 0], rows.weight[:, 0]))
    outputs = model.network.apply(params.network, rows.x)
    log_prob = lambda y: model.likelihood.log_prob(params.likelihood, outputs, y)  # noqa: E731
    return jax.vmap(log_prob, 1, 1)(rows.y) - rows.anchor


jitted_terms = jax.jit(terms, static_argnames="model")


def row_terms(
    position: Position, rows: PseudoObservations, *, model: BayesianModel
) -> tuple[Float[Array, " term"], Float[Array, "term weight"]]:
    """Log likelihood of every pseudo-observation from its anchor, and its gradient."""

    def one(position: Position, row: PseudoObservations) -> Float[Array, " target"]:
        return terms(position, jax.tree.map(lambda leaf: leaf[None], row), model)[0]

    gradients = jax.vmap(jax.jacrev(one), (None, 0))(position, rows)
    return terms(position, rows, model).ravel(), gradients.reshape(-1, len(position))


@partial(jax.jit, static_argnames="model")
def every_label(position: Position, x: Any, data: Data, *, model: BayesianModel) -> Any:
    """Labels (input, label), and their probabilities."""
    params = model.unravel(position, data)
    outputs = model.network.apply(params.network, x)
    num_labels = max(2, outputs.shape[-1])
    labels = jnp.broadcast_to(jnp.arange(num_labels, dtype=data.y.dtype), (len(x), num_labels))
    log_prob = lambda y: model.likelihood.log_prob(params.likelihood, outputs, y)  # noqa: E731
    return labels, jnp.exp(jax.vmap(log_prob, 1, 1)(labels))


@partial(jax.jit, static_argnames="model")
def to_both_sides(position: Position, x: Any, data: Data, *, model: BayesianModel) -> Any:
    """Targets (input, 1 + 2 d, d) at the prediction and at sqrt(3 d) scales to its sides, with
    shares that have the noise's variance: weights of Gauss-Hermite quadrature where d = 1."""
    params = model.unravel(position, data)
    outputs = model.network.apply(params.network, x)
    likelihood = cast(LocationScale, model.likelihood)
    location, scale = likelihood.location_scale(params.likelihood, outputs)
    num_dims = location.shape[1]
    unit = jnp.eye(num_dims, dtype=location.dtype)
    sides = (3 * num_dims) ** 0.5 * jnp.concatenate([0 * unit[:1], unit, -unit])
    share = jnp.full(1 + 2 * num_dims, 1 / (6 * num_dims), x.dtype).at[0].set(2 / 3)
    return location[:, None] + scale[:, None] * sides, jnp.broadcast_to(share, (len(x), len(sides)))
