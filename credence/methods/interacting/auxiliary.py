"""Auxiliary densities of interacting particles: where their partners live.

An `Auxiliary` is the static half, functions only, so that compiled programs are found again; its
arrays (means, widths, a temperature) are arguments. A good one covers the target with heavier
tails, so that the potential G = target / auxiliary is bounded, and is easy to move on or to draw
from.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, PRNGKeyArray

from credence.density.data import Data
from credence.density.posterior import LogDensity, Position

LogValue = Float[Array, ""]


class Auxiliary(NamedTuple):
    """A density up to a constant, its potential, and a sampler where there is an exact one."""

    log_density: Callable[[Position, Data, Any], LogValue]
    """(position, data, arrays) -> nats."""
    log_potential: Callable[[LogValue, Position, Data, Any], LogValue]
    """(the target's log density there, position, data, arrays) -> log G up to a constant, nats."""
    sample: Callable[[PRNGKeyArray, Any], Position] | None = None
    uses_data: bool = False
    """Whether its log density costs a likelihood."""
    evaluations_per_potential: int = 1
    """Log densities of the data that a potential costs where none is known."""


class Mixture(NamedTuple):
    """Arrays of a mixture of Gaussians with diagonal covariances."""

    mean: Float[Array, "component weight"]
    std: Float[Array, "component weight"]
    log_weight: Float[Array, " component"]
    """Log weight of every component, up to a constant."""


def gaussian(mean: Float[Any, " weight"], std: Float[Any, " weight"]) -> Mixture:
    """A mixture of one: the prior, or any Gaussian."""
    mean, std = jnp.asarray(mean), jnp.asarray(std)
    return Mixture(mean[None], jnp.broadcast_to(std, mean.shape)[None], jnp.zeros(1, mean.dtype))


def _mixture_log_density(position: Position, data: Data, arrays: Mixture) -> LogValue:
    z = (position - arrays.mean) / arrays.std
    terms = -0.5 * z**2 - jnp.log(arrays.std)
    return logsumexp(arrays.log_weight + jnp.sum(terms, axis=-1))


def _mixture_sample(key: PRNGKeyArray, arrays: Mixture) -> Position:
    key_component, key_noise = jax.random.split(key)
    index = jax.random.categorical(key_component, arrays.log_weight)
    mean, std = arrays.mean[index], arrays.std[index]
    return mean + std * jax.random.normal(key_noise, mean.shape, mean.dtype)


class FullGaussian(NamedTuple):
    """Arrays of N(mean, root root'): a Laplace fit."""

    mean: Float[Array, " weight"]
    root: Float[Array, "weight weight"]
    """A root of the covariance: lower triangular."""


def _full_log_density(position: Position, data: Data, arrays: FullGaussian) -> LogValue:
    z = solve_triangular(arrays.root, position - arrays.mean, lower=True)
    return -0.5 * jnp.sum(z**2)


def _full_sample(key: PRNGKeyArray, arrays: FullGaussian) -> Position:
    noise = jax.random.normal(key, arrays.mean.shape, arrays.mean.dtype)
    return arrays.mean + arrays.root @ noise


def _ratio(log_density: Callable[[Position, Data, Any], LogValue]) -> Callable[..., LogValue]:
    """log G = log target - log auxiliary."""
    return lambda log_target, position, data, arrays: (
        log_target - log_density(position, data, arrays)
    )


MIXTURE = Auxiliary(_mixture_log_density, _ratio(_mixture_log_density), _mixture_sample)
"""The mixture of Gaussians as an auxiliary density; its arrays are a `Mixture`."""
FULL_GAUSSIAN = Auxiliary(_full_log_density, _ratio(_full_log_density), _full_sample)
"""The Gaussian with any covariance as an auxiliary density; its arrays are a `FullGaussian`."""


def power(log_density: LogDensity) -> Auxiliary:
    """The target to the power 1 / T; its array is T > 1, and log G = (1 - 1/T) log target.

    Bounded potentials, and no more likelihoods than the target's own: Vuckovic, "Nonlinear MCMC
    for Bayesian Machine Learning" (2022), section 4.2.
    """
    return Auxiliary(
        log_density=lambda position, data, temperature: log_density(position, data) / temperature,
        log_potential=lambda log_target, position, data, temperature: (
            (1 - 1 / temperature) * log_target
        ),
        uses_data=True,
    )


tempered = lru_cache(maxsize=256)(power)
"""`power`, the same object for the same density, so that compiled programs are found again."""


class Rows(NamedTuple):
    """Arrays of `tempered_on_rows`."""

    temperature: LogValue
    data: Data
    """The rows of the potentials, weighted so that they stand for all."""


@lru_cache(maxsize=256)
def tempered_on_rows(log_density: LogDensity, evaluations_per_potential: int) -> Auxiliary:
    """`tempered`, for kernels on minibatches: potentials come from rows that are always the same.

    Args:
        evaluations_per_potential: number of these rows, in minibatches.
    """
    return Auxiliary(
        log_density=lambda position, data, arrays: log_density(position, data) / arrays.temperature,
        log_potential=lambda log_target, position, data, arrays: (
            (1 - 1 / arrays.temperature) * log_density(position, arrays.data)
        ),
        uses_data=True,
        evaluations_per_potential=evaluations_per_potential,
    )
