"""Annealed birth and death: a bridge of small changes from one width to the other."""

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PRNGKeyArray

from credence.density.data import Data
from credence.density.posterior import Params, Position
from credence.methods.transdimensional.active_neurons import (
    Widths,
    only_active,
    outgoing,
    with_outgoing,
)
from credence.methods.transdimensional.moves.base import Move, Proposal, counts
from credence.methods.transdimensional.moves.bridge import Bridge
from credence.methods.transdimensional.target import Point, VariableWidth


def annealed_birth(
    target: VariableWidth,
    layer: int,
    bridge: Bridge,
    inverse_mass: Float[Array, " weight"],
) -> Move:
    """Annealed importance sampling between two widths, on the larger space.

    With z all slots of the widest network, and the new neuron's outgoing weights scaled by g,

        log rho_g(z) = (1 - g) log p(z | k) + g log p(z | k + 1) + log L(z, unit scaled by g)

    leads from the smaller network (g = 0) to the larger (g = 1), or back at a death, in T equal
    changes of g. Between them Hamiltonian steps leave rho_g invariant, and

        log r = sum over t of log rho_{g_t+1}(z_t) - log rho_{g_t}(z_t);     see `Bridge`.

    T = 1 is plain birth and death; as T grows the rate tends to the highest there can be. The
    steps' settings are the same in both directions, as they must be.

    Args:
        target: joint law of widths and weights.
        layer: which hidden layer.
        bridge: T, and the Hamiltonian steps.
        inverse_mass: of these steps.
    """

    def along(
        key: PRNGKeyArray, point: Point, lower: Widths, upper: Widths, data: Data
    ) -> tuple[Params, Float[Array, ""]]:
        """All slots at the end of the bridge, and log r."""
        key_refresh, key_bridge = jax.random.split(key)
        start, unravel = ravel_pytree(target.refreshed(key_refresh, point.params, point.widths))
        metric = target.metric(inverse_mass, point.params, upper)
        is_birth = point.widths[layer] == lower[layer]
        read_by = target.readers(upper, layer)

        def log_rho(position: Position, share: Float[Array, ""]) -> Float[Array, ""]:
            scale = jnp.where(is_birth, share, 1 - share)
            params = unravel(position)
            network = only_active(params.network, upper)
            weights = scale.astype(position.dtype) * outgoing(network, lower[layer], read_by)
            network = with_outgoing(network, lower[layer], read_by, weights)
            log_prior = (1 - scale) * target.log_prior(params, lower)
            log_prior += scale * target.log_prior(params, upper)
            return log_prior + target.log_likelihood(params._replace(network=network), data)

        position, log_ratio = bridge.crossed(key_bridge, start, log_rho, metric, data)
        return unravel(position), log_ratio

    def propose(key: PRNGKeyArray, point: Point, data: Data, step: int) -> Proposal:
        widths = point.widths.at[layer].add(step)
        lower, upper = (point.widths, widths) if step > 0 else (widths, point.widths)
        ended, log_ratio = along(key, point, lower, upper, data)
        params = target.without_neurons(ended, widths)
        return Proposal(
            params,
            target.log_likelihood(params, data),
            log_ratio,
            *counts(evaluations=3, gradients=bridge.num_gradients),
        )

    def birth(key: PRNGKeyArray, point: Point, data: Data) -> Proposal:
        return propose(key, point, data, 1)

    def death(key: PRNGKeyArray, point: Point, data: Data) -> Proposal:
        return propose(key, point, data, -1)

    return Move(birth, death, layer)
