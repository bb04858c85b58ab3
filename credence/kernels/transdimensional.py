"""A sweep over architectures: jumps between widths, then a step of the weights at fixed widths.

Each of the two leaves p(width, weights | data) invariant, hence so does one after the other: no
ratio of the whole is needed, and none is taken. (Berezowski, "Trans-dimensional inference over
Bayesian neural networks", algorithm 8, takes the ratio of the target at the two ends of
step - jump - step without the steps' densities, which is not invariant.)
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from credence.errors import InputError, did_you_mean
from credence.kernels.annealed_birth import annealed_birth
from credence.kernels.base import Kernel, check_step_size
from credence.kernels.birth_death import birth_death
from credence.kernels.collapsed_birth import collapsed_birth
from credence.kernels.informed_birth import informed_birth
from credence.kernels.jumps import JumpInfo, Move, jump
from credence.kernels.split_merge import split_merge
from credence.kernels.variable_width import Point, VariableWidth
from credence.models.units import Widths, count_active, only_active
from credence.posterior import Data, LogDensity, Position

MOVES = ("plain", "collapsed", "informed", "annealed", "split_merge")
"""Kinds of jump."""


class TransdimensionalState(NamedTuple):
    """Weights in the slots of the widest network, zero at inactive units."""

    position: Position
    widths: Widths


class TransdimensionalInfo(NamedTuple):
    """What a sweep did."""

    acceptance_rate: Float[Array, ""]
    """Of the step at fixed widths."""
    is_divergent: Bool[Array, ""]
    is_finite: Bool[Array, ""]
    jump_acceptance_rate: Float[Array, ""]
    """Mean over the jumps that stayed in the support; 0 where none did."""
    num_jumps: Int[Array, " kind"]
    """Those jumps, by kind: in the order of `moves`."""
    num_jumps_accepted: Int[Array, " kind"]
    num_evaluations: Int[Array, ""]
    num_gradients: Int[Array, ""]


def transdimensional(
    log_density: LogDensity,
    *,
    target: VariableWidth,
    within: Callable[..., Kernel],
    within_settings: tuple[tuple[str, Any], ...] = (),
    moves: tuple[str, ...] = ("informed",),
    num_jumps: int = 10,
    move_settings: tuple[tuple[str, Any], ...] = (),
    step_size: float | Float[Array, ""],
    inverse_mass: Float[Array, " weight"],
) -> Kernel:
    """Jumps between widths, then one step of all weights at the widths reached.

    Each jump is of a kind drawn from `moves`, in a layer drawn from the hidden ones. Before the
    step the inactive slots are drawn from their prior, after it they are zero again.

    Args:
        log_density: not used: the target knows the density at every width.
        target: joint law of widths and weights.
        within: builder of the kernel at fixed widths, with a position in its state.
        within_settings: of that kernel beside step_size and inverse_mass.
        moves: of `MOVES`.
        num_jumps: per step.
        move_settings: num_temperatures, num_integration_steps, split_std: see the moves.
        step_size, inverse_mass: of the step, and of annealed jumps.
    Raises:
        InputError: for an unknown move, none at all, or one that the likelihood does not allow.
    A jump or step that is not finite is refused: the chain stays, is_finite is False.
    """
    check_step_size(step_size)
    tuning = {"step_size": step_size, "inverse_mass": inverse_mass}
    built: dict[int, tuple[Move, ...]] = {}

    def moves_of(num_layers: int) -> tuple[Move, ...]:
        if num_layers not in built:
            built[num_layers] = tuple(
                build_move(name, target, layer, tuning=tuning, settings=dict(move_settings))
                for layer in range(num_layers)
                for name in moves
            )
        return built[num_layers]

    check_moves(moves)
    moves_of(1)  # may refuse the likelihood

    def init(position: Position, data: Data) -> TransdimensionalState:
        params = target.model.unravel(position, data)
        return TransdimensionalState(position, count_active(params.network).astype(jnp.int32))

    def step(
        key: PRNGKeyArray, state: TransdimensionalState, data: Data
    ) -> tuple[TransdimensionalState, TransdimensionalInfo]:
        key_jumps, key_refresh, key_within = jax.random.split(key, 3)
        params = target.model.unravel(state.position, data)
        point = Point(params, state.widths, target.log_likelihood(params, data))
        one_jump = partial(mixed_jump, data=data, target=target, moves=moves_of(len(state.widths)))
        point, (jumps, chosen) = jax.lax.scan(
            lambda point, key: one_jump(key, point), point, jax.random.split(key_jumps, num_jumps)
        )
        by_kind = partial(count_by_kind, chosen % len(moves), len(moves))

        def at_these_widths(position: Position, data: Data) -> Float[Array, ""]:
            return target.log_density(unravel(position), point.widths, data)

        full = target.refreshed(key_refresh, point.params, point.widths)
        start, unravel = ravel_pytree(full)
        metric = target.metric(inverse_mass, full, point.widths)
        kernel = within(
            at_these_widths, step_size=step_size, inverse_mass=metric, **dict(within_settings)
        )
        moved, info = kernel.step(key_within, kernel.init(start, data), data)
        params = unravel(moved.position)
        params = params._replace(network=only_active(params.network, point.widths))
        num_tried = jnp.sum(jumps.is_in_range, dtype=jnp.int32)
        return TransdimensionalState(ravel_pytree(params)[0], point.widths), TransdimensionalInfo(
            acceptance_rate=info.acceptance_rate,
            is_divergent=info.is_divergent,
            is_finite=info.is_finite & jnp.all(jumps.is_finite),
            jump_acceptance_rate=jnp.sum(jumps.acceptance_rate) / jnp.maximum(num_tried, 1),
            num_jumps=by_kind(jumps.is_in_range),
            num_jumps_accepted=by_kind(jumps.is_accepted),
            num_evaluations=jnp.sum(jumps.num_evaluations, dtype=jnp.int32) + 1,
            num_gradients=jnp.sum(jumps.num_gradients, dtype=jnp.int32) + info.num_gradients + 1,
        )

    return Kernel(init, step)


def mixed_jump(
    key: PRNGKeyArray, point: Point, *, data: Data, target: VariableWidth, moves: tuple[Move, ...]
) -> tuple[Point, tuple[JumpInfo, Int[Array, ""]]]:
    """A jump by one of the moves, all equally likely; and which one."""
    key_move, key_jump = jax.random.split(key)
    branches = [partial(jump, data=data, target=target, move=move) for move in moves]
    chosen = jax.random.randint(key_move, (), 0, len(moves))
    point, info = jax.lax.switch(chosen, branches, key_jump, point)
    return point, (info, chosen)


def count_by_kind(
    kind: Int[Array, " jump"], num_kinds: int, happened: Bool[Array, " jump"]
) -> Int[Array, " kind"]:
    """How often something happened, by the kind of the jump."""
    return jnp.zeros(num_kinds, jnp.int32).at[kind].add(happened.astype(jnp.int32))


def build_move(
    name: str,
    target: VariableWidth,
    layer: int,
    *,
    tuning: Mapping[str, Any],
    settings: Mapping[str, Any],
) -> Move:
    """A kind of jump by its name.

    Args:
        tuning: step_size and inverse_mass, of annealed jumps.
        settings: num_temperatures, num_integration_steps, split_std; each move takes its own.
    """
    if name == "annealed":
        bridge = {key: value for key, value in settings.items() if key != "split_std"}
        return annealed_birth(target, layer, **tuning, **bridge)
    if name == "split_merge":
        split = {key: value for key, value in settings.items() if key == "split_std"}
        return split_merge(target, layer, **split)
    plain = {"plain": birth_death, "collapsed": collapsed_birth, "informed": informed_birth}
    return plain[name](target, layer)


def check_moves(moves: tuple[str, ...]) -> None:
    """Refuse no moves, or one that there is not.

    Raises:
        InputError: naming it.
    """
    if not moves:
        raise InputError(f"There must be at least one kind of jump: moves of {', '.join(MOVES)}.")
    for name in moves:
        if name not in MOVES:
            raise InputError(
                f"Unknown kind of jump {name!r}: choose from {', '.join(MOVES)}."
                + did_you_mean(name, MOVES)
            )
