"""Jumps of many kinds, in all layers, one after the other; and what they did, in sums."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from credence.density.data import Data
from credence.kernels.base import Work
from credence.methods.transdimensional.active_neurons import count_layers
from credence.methods.transdimensional.moves.base import JumpInfo, LayerMove, Move, jump, layer_jump
from credence.methods.transdimensional.target import Point, VariableWidth

Branch = Callable[[PRNGKeyArray, Point], tuple[Point, JumpInfo]]
"""A jump of one kind, in one layer."""


class Jumps(NamedTuple):
    """Sums over jumps, by their kind."""

    acceptance: Float[Array, ""]
    """Sum of the acceptance rates."""
    is_finite: Bool[Array, ""]
    """Whether all of them met finite numbers only."""
    in_all: Int[Array, " kind"]
    """All of them; the other counts are of those that stayed in the support."""
    tried: Int[Array, " kind"]
    accepted: Int[Array, " kind"]
    work: Work
    """Evaluations that jumps of each kind took."""

    @classmethod
    def none(cls, num_kinds: int, like: Float[Array, ""]) -> "Jumps":
        """The sums of no jumps at all."""
        zeros = jnp.zeros(num_kinds, jnp.int32)
        work = Work(zeros, zeros)
        return cls(jnp.zeros_like(like), jnp.asarray(True), zeros, zeros, zeros, work)

    def plus(self, kind: Int[Array, ""], info: JumpInfo) -> "Jumps":
        """These jumps and one more, of a kind."""
        add = lambda counts, more: counts.at[kind].add(more.astype(jnp.int32))  # noqa: E731
        return Jumps(
            self.acceptance + info.acceptance_rate,
            self.is_finite & info.is_finite,
            add(self.in_all, jnp.ones_like(info.is_in_range)),
            add(self.tried, info.is_in_range),
            add(self.accepted, info.is_accepted),
            Work(
                add(self.work.values, info.num_evaluations),
                add(self.work.gradients, info.num_gradients),
            ),
        )

    def cost(self) -> Int[Array, " kind"]:
        """Evaluations that jumps of each kind take as long as; a gradient is three of them.

        The rest of a jump, copies of the weights, takes about as long as one.
        """
        return self.in_all + self.work.in_values()

    def acceptance_rate(self) -> Float[Array, ""]:
        """Their mean; 0 where no jump stayed in the support."""
        return self.acceptance / jnp.maximum(jnp.sum(self.tried, dtype=jnp.int32), 1)


def mixed_jumps(
    key: PRNGKeyArray, point: Point, data: Data, count: int | Int[Array, ""], **mixture: Any
) -> tuple[Point, Jumps]:
    """`count` times a `mixed_jump`, whose other arguments are `mixture`; a program for any count.

    Returns the point reached, and what all jumps did.
    """
    num_kinds = mixture["kind_probs"].size

    def next_jump(index: Int[Array, ""], so_far: tuple[Point, Jumps]) -> tuple[Point, Jumps]:
        point, jumps = so_far
        point, (info, kind) = mixed_jump(jax.random.fold_in(key, index), point, data, **mixture)
        return point, jumps.plus(kind, info)

    start = point, Jumps.none(num_kinds, point.log_likelihood)
    return jax.lax.fori_loop(0, count, next_jump, start)


def mixed_jump(
    key: PRNGKeyArray,
    point: Point,
    data: Data,
    *,
    target: VariableWidth,
    width_moves: tuple[Move, ...],
    depth_moves: tuple[LayerMove, ...],
    num_kinds: int,
    kind_probs: Float[Array, " kind"],
) -> tuple[Point, tuple[JumpInfo, Int[Array, ""]]]:
    """A jump between widths or depths, and its kind.

    Neither changes what the other is chosen by: no factor is due.

    Args:
        width_moves: those of the first hidden layer, then of the second, ...
        num_kinds: of jumps between widths, in every layer.
        kind_probs: of these kinds, then of those between depths.
    """
    key_direction, key_layer, key_kind, key_other, key_jump = jax.random.split(key, 5)
    branches: list[Branch] = [
        *(partial(jump, data=data, target=target, move=move) for move in width_moves),
        *(partial(layer_jump, data=data, target=target, move=move) for move in depth_moves),
    ]
    log_probs = jnp.log(kind_probs)
    layer = jax.random.randint(key_layer, (), 0, count_layers(point.widths))
    kind = jax.random.categorical(key_kind, log_probs[:num_kinds])
    chosen = layer * num_kinds + kind
    if depth_moves:
        is_depth = jax.random.bernoulli(key_direction) if width_moves else jnp.asarray(True)
        other = jax.random.categorical(key_other, log_probs[num_kinds:])
        chosen = jnp.where(is_depth, len(width_moves) + other, chosen)
        kind = jnp.where(is_depth, num_kinds + other, kind)
    point, info = jax.lax.switch(chosen, branches, key_jump, point)
    return point, (info, kind)


def equally_likely(groups: tuple[int, ...]) -> Float[Array, " kind"]:
    """The probabilities 1 / size of the kinds of every group."""
    return jnp.concatenate([jnp.full(size, 1.0 / max(size, 1)) for size in groups])
