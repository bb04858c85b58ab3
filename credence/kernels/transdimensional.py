"""A sweep over architectures: jumps between widths and depths, then a step of the weights.

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
from credence.kernels.jumps import JumpInfo, LayerMove, Move, jump, layer_jump
from credence.kernels.layer_birth import layer_birth
from credence.kernels.split_merge import split_merge
from credence.kernels.variable_width import Point, VariableWidth
from credence.models.units import Layers, Widths, count_active, count_layers, only_active
from credence.posterior import Data, LogDensity, Position

MOVES = ("plain", "collapsed", "informed", "annealed", "split_merge")
"""Kinds of jump between widths."""
LAYER_MOVES = ("layer", "identity_layer", "collapsed_layer", "collapsed_identity_layer")
"""Kinds of jump between depths."""

Branch = Callable[[PRNGKeyArray, Point], tuple[Point, JumpInfo]]
"""A jump of one kind, in one layer."""


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
    """Those jumps, by kind: in the order of `moves`, then `layer_moves`."""
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
    layer_moves: tuple[str, ...] = ("layer", "identity_layer"),
    num_jumps: int = 10,
    move_settings: tuple[tuple[str, Any], ...] = (),
    step_size: float | Float[Array, ""],
    inverse_mass: Float[Array, " weight"],
) -> Kernel:
    """Jumps between widths and depths, then one step of all weights at the architecture reached.

    Where both can change a jump is of either with probability one half. A jump between widths is of
    a kind drawn from `moves`, in a layer drawn from the hidden ones that there are; one between
    depths of a kind drawn from `layer_moves`. Before the step the inactive slots are drawn from
    their prior, after it they are zero again.

    Args:
        log_density: not used: the target knows the density at every architecture.
        target: joint law of widths, depth and weights.
        within: builder of the kernel at a fixed architecture, with a position in its state.
        within_settings: of that kernel beside step_size and inverse_mass.
        moves: of `MOVES`.
        layer_moves: of `LAYER_MOVES`, for a target with a prior over the depth.
        num_jumps: per step.
        move_settings: num_temperatures, num_integration_steps, split_std, identity_std: see the
            moves.
        step_size, inverse_mass: of the step, and of annealed jumps.
    Raises:
        InputError: for an unknown move, none at all, or one that the likelihood does not allow.
    A jump or step that is not finite is refused: the chain stays, is_finite is False.
    """
    check_step_size(step_size)
    check_moves(moves, MOVES)
    settings = dict(move_settings)
    tuning = {"step_size": step_size, "inverse_mass": inverse_mass}
    build_move(moves[0], target, 0, tuning=tuning, settings=settings)  # may refuse the likelihood
    has_depth = target.depth_prior is not None
    if has_depth:
        check_moves(layer_moves, LAYER_MOVES)
    num_kinds = len(moves) + (len(layer_moves) if has_depth else 0)

    def proposals(layers: Layers) -> tuple[tuple[Move, ...], tuple[LayerMove, ...]]:
        """All moves between widths, layer by layer, and all between depths."""
        between_widths = tuple(
            build_move(name, target, layer, tuning=tuning, settings=settings)
            for layer in range(len(layers) - 1)
            for name in moves
        )
        if not target.can_change_depth(layers):
            return between_widths, ()
        between_depths = tuple(build_layer_move(name, target, settings) for name in layer_moves)
        return between_widths if target.can_change_width(layers) else (), between_depths

    def init(position: Position, data: Data) -> TransdimensionalState:
        params = target.model.unravel(position, data)
        return TransdimensionalState(position, count_active(params.network).astype(jnp.int32))

    def step(
        key: PRNGKeyArray, state: TransdimensionalState, data: Data
    ) -> tuple[TransdimensionalState, TransdimensionalInfo]:
        key_jumps, key_refresh, key_within = jax.random.split(key, 3)
        params = target.model.unravel(state.position, data)
        point = Point(params, state.widths, target.log_likelihood(params, data))
        width_moves, depth_moves = proposals(params.network)

        def one_jump(point: Point, key: PRNGKeyArray) -> tuple[Point, tuple[JumpInfo, Array]]:
            return mixed_jump(
                key, point, data, target=target, width_moves=width_moves, depth_moves=depth_moves,
                num_kinds=len(moves),
            )  # fmt: skip

        keys = jax.random.split(key_jumps, num_jumps)
        point, (jumps, kind) = jax.lax.scan(one_jump, point, keys)
        by_kind = partial(count_by_kind, kind, num_kinds)

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
    key: PRNGKeyArray,
    point: Point,
    data: Data,
    *,
    target: VariableWidth,
    width_moves: tuple[Move, ...],
    depth_moves: tuple[LayerMove, ...],
    num_kinds: int,
) -> tuple[Point, tuple[JumpInfo, Int[Array, ""]]]:
    """A jump between widths or depths, and its kind.

    Neither changes what the other is chosen by: no factor is due.

    Args:
        width_moves: those of the first hidden layer, then of the second, ...
        num_kinds: of jumps between widths, in every layer.
    """
    key_direction, key_layer, key_kind, key_other, key_jump = jax.random.split(key, 5)
    branches: list[Branch] = [
        *(partial(jump, data=data, target=target, move=move) for move in width_moves),
        *(partial(layer_jump, data=data, target=target, move=move) for move in depth_moves),
    ]
    layer = jax.random.randint(key_layer, (), 0, count_layers(point.widths))
    kind = jax.random.randint(key_kind, (), 0, num_kinds)
    chosen = layer * num_kinds + kind
    if depth_moves:
        is_depth = jax.random.bernoulli(key_direction) if width_moves else jnp.asarray(True)
        other = jax.random.randint(key_other, (), 0, len(depth_moves))
        chosen = jnp.where(is_depth, len(width_moves) + other, chosen)
        kind = jnp.where(is_depth, num_kinds + other, kind)
    point, info = jax.lax.switch(chosen, branches, key_jump, point)
    return point, (info, kind)


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
    chosen = lambda *names: {key: settings[key] for key in names if key in settings}  # noqa: E731
    if name == "annealed":
        bridge = chosen("num_temperatures", "num_integration_steps")
        return annealed_birth(target, layer, **tuning, **bridge)
    if name == "split_merge":
        return split_merge(target, layer, **chosen("split_std"))
    plain = {"plain": birth_death, "collapsed": collapsed_birth, "informed": informed_birth}
    return plain[name](target, layer)


def build_layer_move(name: str, target: VariableWidth, settings: Mapping[str, Any]) -> LayerMove:
    """A kind of jump between depths by its name.

    Args:
        settings: identity_std, of those near the identity; others are left alone.
    """
    return layer_birth(
        target,
        is_identity="identity" in name,
        is_collapsed="collapsed" in name,
        **{key: settings[key] for key in ("identity_std",) if key in settings},
    )


def check_moves(moves: tuple[str, ...], known: tuple[str, ...]) -> None:
    """Refuse no moves, or one that there is not.

    Raises:
        InputError: naming it.
    """
    if not moves:
        raise InputError(f"There must be at least one kind of jump: moves of {', '.join(known)}.")
    for name in moves:
        if name not in known:
            raise InputError(
                f"Unknown kind of jump {name!r}: choose from {', '.join(known)}."
                + did_you_mean(name, known)
            )
