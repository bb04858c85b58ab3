"""Starts of chains: sizes spread over the support of a prior, and likely draws there."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int, Key, PRNGKeyArray

from credence.density.chunks import chunked
from credence.density.data import Data
from credence.density.posterior import flat_log_likelihood
from credence.errors import InputError
from credence.methods.transdimensional.size_priors import DepthPrior, WidthPrior
from credence.methods.transdimensional.target import VariableWidth

GOLDEN = (5**0.5 - 1) / 2
"""Multiples of it, less their whole parts, are spread evenly however many there are."""


class Sizes(NamedTuple):
    """Widths or depths at which chains are to start."""

    noun: str
    """Says which, for messages: "width" or "depth"."""
    prior: WidthPrior | DepthPrior
    given: Sequence[int] | None
    """One per chain; None spreads them over the support of the prior."""

    def of_chains(
        self, largest: int, num_chains: int, *, is_shuffled: bool = False
    ) -> Int[np.ndarray, " chain"]:
        """Sizes of the chains, where there is room for the largest; see `spread_sizes`."""
        if self.given is not None:
            return checked_sizes(self.given, self.prior, largest, num_chains, self.noun)
        return spread_sizes(self.prior, largest, num_chains, is_shuffled=is_shuffled)


def initial_widths(
    room: Sequence[int], num_chains: int, widths: Sizes, depths: Sizes | None
) -> Int[Array, "chain layer"]:
    """One per chain, the same in all hidden layers that there are; 0 in the others.

    Args:
        room: largest widths of the hidden layers.
        depths: numbers of hidden layers; None where all are there.
    Raises:
        InputError: for widths or depths outside the support, or not one per chain.
    """
    is_shuffled = depths is not None  # unlike the depths
    found = np.stack(
        [widths.of_chains(limit, num_chains, is_shuffled=is_shuffled) for limit in room], axis=-1
    )
    if depths is not None:
        layers = depths.of_chains(len(room), num_chains)
        found = np.where(np.arange(len(room)) < layers[:, None], found, 0)
    return jnp.asarray(found, jnp.int32)


def spread_sizes(
    prior: WidthPrior | DepthPrior, largest: int, num_chains: int, *, is_shuffled: bool
) -> Int[np.ndarray, " chain"]:
    """Sizes spread evenly over the support of a prior, in the order of the chains.

    Args:
        largest: size that there is room for.
        is_shuffled: in another order, unlike that of a second size of the same chains.
    """
    support = _support(prior, largest)
    order = np.arange(num_chains)
    if is_shuffled:
        order = np.argsort(np.argsort(order * GOLDEN % 1))
    places = order / (num_chains - 1) if num_chains > 1 else np.array([0.5])
    return support[np.round(places * (len(support) - 1)).astype(int)]


def checked_sizes(
    given: Sequence[int], prior: WidthPrior | DepthPrior, largest: int, num_chains: int, noun: str
) -> Int[np.ndarray, " chain"]:
    """The sizes that were asked for.

    Args:
        noun: "width" or "depth", for messages.

    Raises:
        InputError: where they are not one per chain, or outside the support.
    """
    if len(given) != num_chains:
        raise InputError(
            f"There are {num_chains} chains but {len(given)} initial {noun}s: give one per chain."
        )
    support = _support(prior, largest)
    for each in given:
        if each not in support:
            raise InputError(
                f"The initial {noun} {each} is outside the support of the prior, {support[0]} "
                f"to {support[-1]}: start inside, or raise max_{noun}."
            )
    return np.asarray(given)


def _support(prior: WidthPrior | DepthPrior, largest: int) -> Int[np.ndarray, " size"]:
    return np.flatnonzero(np.isfinite(prior.log_probs(largest)))


@partial(jax.jit, static_argnames="target")
def likeliest_draws(
    keys: Key[Array, "chain start"],
    widths: Int[Array, "chain layer"],
    data: Data,
    *,
    target: VariableWidth,
) -> Float[Array, "chain weight"]:
    """The likeliest of some draws from the prior at every chain's widths, as flat positions."""

    log_likelihood = chunked(flat_log_likelihood(target.model))

    def draw(key: PRNGKeyArray, widths: Int[Array, " layer"]) -> Float[Array, " weight"]:
        key_model, key_weights = jax.random.split(key)
        params = target.model.sample_prior(key_model, data)
        return ravel_pytree(target.with_weights(key_weights, params, widths))[0]

    def best(keys: Key[Array, " start"], widths: Int[Array, " layer"]) -> Array:
        positions = jax.vmap(draw, (0, None))(keys, widths)
        values = jax.vmap(log_likelihood, (0, None))(positions, data)
        return positions[jnp.argmax(jnp.nan_to_num(values, nan=-jnp.inf))]

    return jax.lax.map(lambda chain: best(*chain), (keys, widths))
