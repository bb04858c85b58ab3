"""Jumps of interacting particles to a cloud of auxiliary states, and how the cloud is gathered."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int

from credence.errors import InputError, check_name, check_particles
from credence.kernels.base import either
from credence.kernels.resampling import at_levels

JUMPS = ("bg", "ar")
"""The kinds of jump: Boltzmann-Gibbs, accept-reject."""
SELECTIONS = ("multinomial", "stratified", "systematic")
"""How Boltzmann-Gibbs jumps choose."""


class Past(NamedTuple):
    """A particle's latest auxiliary states as the target sees them; leaves (slot, ...)."""

    state: Any
    """State of the target's kernel at that past point."""
    log_potential: Float[Array, " slot"]
    """log G, up to a constant, in nats; -inf in slots not yet filled."""


def boltzmann_gibbs(
    height: Float[Array, ""], cloud: Past, origin: Any
) -> tuple[Any, Float[Array, ""], Bool[Array, ""]]:
    """Eq. (5): the auxiliary state at a height in (0, 1) of the cumulated potentials.

    Args:
        cloud: of all particles, leaves (particle, slot, ...).
        origin: where X stays if no potential is finite.
    Returns where X is then, the acceptance rate, and whether it jumped.
    """
    log_potential = cloud.log_potential.ravel()
    most = jnp.max(log_potential)
    is_possible = jnp.isfinite(most)
    weights = jnp.exp(log_potential - jnp.where(is_possible, most, 0.0))
    jumped = _at(cloud.state, at_levels(weights, height))
    rate = is_possible.astype(log_potential.dtype)
    return either(is_possible, jumped, origin), rate, is_possible


def accept_reject(
    uniform: Float[Array, "3"],
    cloud: Past,
    origin: Any,
    log_potential: Float[Array, ""],
    num_filled: Int[Array, ""],
) -> tuple[Any, Float[Array, ""], Bool[Array, ""]]:
    """Eq. (6): a uniform auxiliary state, accepted with probability min(1, G(y) / G(x)).

    Args:
        uniform: three random numbers in [0, 1): which particle, which slot, whether.
        cloud: of all particles, leaves (particle, slot, ...).
        origin, log_potential: X, and log G there.
        num_filled: slots that hold a state.
    Returns where X is then, the acceptance rate, and whether it jumped.
    """
    num_particles, num_slots = cloud.log_potential.shape
    particle, slot = _one_of(num_particles, uniform[0]), _one_of(num_filled, uniform[1])
    index = particle * num_slots + slot
    log_ratio = cloud.log_potential.ravel()[index] - log_potential
    rate = jnp.where(jnp.isnan(log_ratio), 0.0, jnp.exp(jnp.minimum(log_ratio, 0.0)))
    is_accepted = uniform[2] < rate
    return either(is_accepted, _at(cloud.state, index), origin), rate, is_accepted


def everyone(tree: Any, axes: tuple[str, ...]) -> Any:
    """Leaves of all particles, (particle, ...); they travel in one row: devices meet once."""
    row, unravel = ravel_pytree(tree)
    for axis in reversed(axes):
        row = jax.lax.all_gather(row, axis)
    rows = row.reshape(-1, row.shape[-1])
    check_particles(len(rows))
    return jax.vmap(unravel)(rows)


def level_in_cloud(
    uniform: Float[Array, "2"], selection: str, axes: tuple[str, ...]
) -> Float[Array, ""]:
    """The height in [0, 1) at which a particle reads the cloud's cumulative weights.

    It is uniform for each particle; under "stratified" and "systematic" each has a stratum of its
    own.
    """
    within, lot = uniform
    if selection == "multinomial":
        return within
    ranks = jnp.argsort(jnp.argsort(everyone(lot, axes)))
    if selection == "systematic":
        within = everyone(within, axes)[0]
    return (ranks[jax.lax.axis_index(axes)] + within) / len(ranks)


def _one_of(num: Int[Array, ""] | int, uniform: Float[Array, ""]) -> Int[Array, ""]:
    """One of 0, ..., num - 1."""
    return jnp.minimum((uniform * num).astype(jnp.int32), num - 1)


def _at(cloud: Any, index: Int[Array, ""]) -> Any:
    """One state of a cloud with leaves (particle, slot, ...)."""
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:])[index], cloud)


def check_jumps(jump: str, selection: str) -> None:
    """Refuse an unknown kind of jump or selection, and a selection that has no effect."""
    check_name("jump", jump, JUMPS)
    check_name("selection", selection, SELECTIONS)
    if selection != SELECTIONS[0] and jump != "bg":
        raise InputError(
            f"selection='{selection}' is of jump='bg', Boltzmann-Gibbs, and nothing to '{jump}': "
            "leave it out."
        )


def check_past(num_past: int, synchronous: bool) -> None:
    """Refuse an empty past, and one of steps without potentials."""
    if num_past < 1:
        raise InputError(f"num_past must be at least 1, got {num_past}; 1 is the newest alone.")
    if synchronous and num_past > 1:
        raise InputError(
            f"num_past={num_past} remembers the potentials of the latest steps, and synchronous "
            "jumps compute none between jumps: use num_past=1, or synchronous=False."
        )
