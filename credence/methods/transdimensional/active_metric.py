"""The metric of networks whose neurons come and go: from the weights of the active ones."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from credence.adaptation.windows import Memory
from credence.density.posterior import Posterior
from credence.methods.transdimensional.active_neurons import activity, count_active
from credence.models import TraceClass


def add_active_draws(
    posterior: Posterior, memory: Memory, draws: Float[np.ndarray, "chain draw weight"]
) -> Memory:
    """Squared deviations of a round's active weights, shared by all neurons of a layer.

    Neurons change their places, and a slot that is seldom active says little: weights of one kind
    (of one input, to one output) have one variance, in units of their prior's where that orders the
    neurons. Deviations are from a chain's mean of the round. Weights of absent layers keep the
    metric they have: no draw is no draw of variance 0.
    """
    unit = _units(posterior)
    params = posterior.unravel(jnp.asarray(draws) / unit)
    metric = posterior.unravel(jnp.asarray(memory.inverse_mass) / unit**2)
    widths = count_active(params.network)
    mask = jax.vmap(jax.vmap(activity))(params.network, widths)
    last = len(params.network) - 1

    def of_layer(index: int, layer: Any, active: Any, now: Any) -> Any:
        into, out = index > 0, index < last
        shared = ((-2,) if into else ()) + ((-1,) if out else ())
        return type(layer)(
            pooled(layer.kernel, active.kernel, now.kernel, shared),
            pooled(layer.bias, active.bias, now.bias, (-1,) if out else ()),
        )

    network = tuple(
        of_layer(index, *parts)
        for index, parts in enumerate(zip(params.network, mask, metric.network, strict=True))
    )
    always = lambda leaf, now: pooled(leaf, jnp.ones(leaf.shape, bool), now, ())  # noqa: E731
    others = jax.tree.map(always, params._replace(network=()), metric._replace(network=()))
    variance = np.asarray(ravel_pytree(others._replace(network=network))[0] * unit**2)
    chains, steps, _ = draws.shape
    count = chains * (steps - 1)
    return memory._replace(
        sum_of_squares=memory.sum_of_squares + count * variance,
        degrees_of_freedom=memory.degrees_of_freedom + count,
    )


def _units(posterior: Posterior) -> Float[Array, " weight"]:
    """Standard deviations by the prior of weights of ordered neurons; 1 for all others."""
    prior, ones = posterior.model.prior, posterior.unravel(jnp.ones(posterior.num_weights))
    if isinstance(prior, TraceClass):
        ones = ones._replace(network=prior.stds(posterior.model.network, ones.network))
    return ravel_pytree(ones)[0]


def pooled(values: Any, is_active: Any, otherwise: Any, shared: tuple[int, ...]) -> Any:
    """Variance within chains of (chain, draw, ...) where active, over chains and shared axes; the
    other values where that is never."""
    count = jnp.sum(is_active, axis=1)
    mean = jnp.sum(values, axis=1) / jnp.maximum(count, 1)
    squares = jnp.sum(jnp.where(is_active, (values - mean[:, None]) ** 2, 0.0), axis=1)
    axes = (0, *shared)
    total = jnp.sum(squares, axis=axes, keepdims=True)
    degrees = jnp.sum(jnp.maximum(count - 1, 0), axis=axes, keepdims=True)
    found = jnp.broadcast_to(total / jnp.maximum(degrees, 1), squares.shape)[0]
    return jnp.where(jnp.broadcast_to(degrees > 0, squares.shape)[0], found, otherwise)
