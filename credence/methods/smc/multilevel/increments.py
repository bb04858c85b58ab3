"""How much a network still changes as it widens: second moments of f_fine - f_coarse.

Multilevel methods live off their decay with the level. The two networks share their weights: the
coarse one's are the leading block of the fine one's (`credence.methods.smc.multilevel.nested`).
Chada, Jasra, Law & Singh, "Bayesian Deep Learning with Multilevel Trace-class Neural Networks",
Proposition 4.1 and Figures 1-2: O(n^-(2 alpha - 1)) under a trace-class prior.
"""

from functools import partial
from math import ceil
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PRNGKeyArray

from credence.errors import InputError
from credence.methods.smc.multilevel.nested import increasing, leading
from credence.models.networks.mlp import ACTIVATIONS, MLP, Network
from credence.models.priors import GaussianPrior, TraceClass

_BATCH = 256
"""Draws at a time: with 10^5 weights in float32 one batch takes 100 MB."""


class SecondMoment(NamedTuple):
    """Monte Carlo estimate of a second moment, and its standard error (from the fourth)."""

    mean: Float[np.ndarray, "*shape"]
    standard_error: Float[np.ndarray, "*shape"]


def second_moment(increments: Float[Array, "draw *shape"]) -> SecondMoment:
    """Mean square over independent draws."""
    squares = np.asarray(increments, float) ** 2
    error = squares.std(axis=0, ddof=1) / len(squares) ** 0.5
    return SecondMoment(squares.mean(axis=0), error)


@partial(jax.jit, static_argnames=("prior", "networks", "num_draws"))
def prior_increments(
    key: PRNGKeyArray,
    prior: GaussianPrior,
    networks: tuple[Network, ...],
    x: Float[Array, "point *feature"],
    *,
    num_draws: int,
) -> Float[Array, "draw level point output"]:
    """Draws of f_l(x) - f_{l-1}(x) under the prior, for every network but the first.

    All networks have one set of standard normal variables, each scaled by its own prior standard
    deviations: for a nested prior the coarse weights are the leading block, and any other Gaussian
    prior can be compared with it. Draws are independent, levels of one draw are not.

    In float32 increments below about 1e-6 of the outputs drown in rounding.

    Args:
        networks: from coarse to fine, two or more.
    """
    templates = [jax.eval_shape(network.init, key, x) for network in networks]
    zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), templates[-1])
    flat, unravel = ravel_pytree(zeros)

    def one(normals: Float[Array, " weight"]) -> Float[Array, "level point output"]:
        outputs = []
        for network, template in zip(networks, templates, strict=True):
            block = leading(unravel(normals), template)
            params = jax.tree.map(jnp.multiply, block, prior.stds(network, template))
            outputs.append(network.apply(params, x))
        return jnp.diff(jnp.stack(outputs), axis=0)

    def batch(key: PRNGKeyArray) -> Float[Array, "draw level point output"]:
        return jax.vmap(one)(jax.random.normal(key, (size, flat.size), flat.dtype))

    size = min(_BATCH, num_draws)
    draws = jax.lax.map(batch, jax.random.split(key, ceil(num_draws / size)))
    return draws.reshape(-1, *draws.shape[2:])[:num_draws]


def exact_second_moment(
    prior: TraceClass, coarse: MLP, fine: MLP, x: Float[np.ndarray, "point feature"]
) -> Float[np.ndarray, "point output"]:
    """E (f_fine(x) - f_coarse(x))^2 under a trace-class prior.

    Hidden neuron k of the first layer is N(0, c k^-alpha S(x)), with c the prior's scale and

        S(x) = 1 + sum_j j^-alpha x_j^2   (without j^-alpha unless inputs decay).

    One hidden layer: sum over the new k of c k^-alpha E activation(sqrt(c k^-alpha S) Z)^2. Linear
    networks of any depth: neuron k of layer d has variance c k^-alpha M_d and differs between the
    networks by c k^-alpha D_d, where with A(a, b) = sum of k^-2alpha over a < k <= b

        M_1 = S,    M_{d+1} = 1 + c A(0, n_fine) M_d,
        D_1 = 0,    D_{d+1} = c A(0, n_coarse) D_d + c A(n_coarse, n_fine) M_d.

    Raises:
        InputError: for several hidden layers with another activation than "identity", or networks
            that differ in more than their widths.
    """
    increasing((coarse.hidden, fine.hidden))
    if (coarse.activation, coarse.num_outputs) != (fine.activation, fine.num_outputs):
        raise InputError(f"The networks must differ in width only, got {coarse} and {fine}.")
    features = np.arange(1.0, x.shape[1] + 1)
    decay = features**-prior.alpha if prior.decay_inputs else np.ones(x.shape[1])
    variance = 1 + np.asarray(x, float) ** 2 @ decay
    if fine.activation == "identity":
        moment = _linear(prior, coarse.hidden, fine.hidden, variance)
    elif len(fine.hidden) == 1:
        moment = _one_layer(prior, coarse.hidden[0], fine, variance)
    else:
        raise InputError(
            "The exact second moment is known for one hidden layer, or activation='identity', got "
            f"{fine}: use prior_increments."
        )
    outputs = np.arange(1.0, fine.num_outputs + 1)
    per_output = outputs**-prior.alpha if prior.decay_outputs else np.ones(fine.num_outputs)
    return moment[:, None] * per_output


def _linear(
    prior: TraceClass,
    coarse: tuple[int, ...],
    fine: tuple[int, ...],
    variance: Float[np.ndarray, " point"],
) -> Float[np.ndarray, " point"]:
    def power_sum(start: int, stop: int) -> float:
        return prior.scale * np.sum(np.arange(start + 1.0, stop + 1) ** (-2 * prior.alpha))

    difference = np.zeros_like(variance)
    for n_coarse, n_fine in zip(coarse, fine, strict=True):
        kept, new = power_sum(0, n_coarse), power_sum(n_coarse, n_fine)
        difference = kept * difference + new * variance
        variance = 1 + (kept + new) * variance
    return prior.scale * difference


def _one_layer(
    prior: TraceClass, n_coarse: int, fine: MLP, variance: Float[np.ndarray, " point"]
) -> Float[np.ndarray, " point"]:
    """The expectation by the trapezoidal rule, whose error for smooth activations is below 1e-9."""
    step = 0.01
    z = step * np.arange(-1200, 1201)
    density = step * np.exp(-0.5 * z**2) / (2 * np.pi) ** 0.5
    total = np.zeros_like(variance)
    for k in range(n_coarse + 1, fine.hidden[0] + 1):
        unit = prior.scale * k**-prior.alpha
        values = ACTIVATIONS[fine.activation](jnp.asarray(np.sqrt(unit * variance)[:, None] * z))
        total += unit * (np.asarray(values, float) ** 2 @ density)
    return total
