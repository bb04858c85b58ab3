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

from credence.density.data import Data
from credence.density.posterior import LogDensity, Position
from credence.errors import InputError
from credence.kernels.base import Kernel, Work, check_step_size, either, first_work, step_work
from credence.methods.transdimensional.active_neurons import (
    Layers,
    Widths,
    count_active,
    only_active,
)
from credence.methods.transdimensional.mixed_jumps import Jumps, equally_likely, mixed_jumps
from credence.methods.transdimensional.moves.base import LayerMove, Move
from credence.methods.transdimensional.moves.by_name import (
    LAYER_MOVES,
    MOVES,
    build_layer_move,
    build_move,
    check_moves,
)
from credence.methods.transdimensional.target import Point, VariableWidth
from credence.models.priors import HierarchicalGamma

FIRST_JUMPS = 10
"""Jumps per step, as long as nobody knows better."""


class TransdimensionalState(NamedTuple):
    """Weights in the slots of the widest network, zero at inactive neurons."""

    position: Position
    widths: Widths


class TransdimensionalInfo(NamedTuple):
    """What a sweep did."""

    acceptance_rate: Float[Array, ""]
    """Acceptance rate of the step at fixed widths."""
    is_divergent: Bool[Array, ""]
    is_finite: Bool[Array, ""]
    jump_acceptance_rate: Float[Array, ""]
    """Mean over the jumps that stayed in the support; 0 where none did."""
    num_jumps: Int[Array, " kind"]
    """Those jumps, by kind: in the order of `moves`, then `layer_moves`."""
    num_jumps_accepted: Int[Array, " kind"]
    jump_cost: Int[Array, " kind"]
    """How many evaluations of the likelihood the jumps took as long as; a gradient counts as
    three."""
    step_cost: Int[Array, ""]
    """The same of the step."""
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
    num_jumps: int | Int[Array, ""] = FIRST_JUMPS,
    move_settings: tuple[tuple[str, Any], ...] = (),
    step_size: float | Float[Array, ""],
    inverse_mass: Float[Array, " weight"],
    kind_probs: Float[Array, " kind"] | None = None,
    sandwich: bool = False,
    gibbs: bool = False,
) -> Kernel:
    """Jumps between widths and depths, then one step of all weights at the architecture reached.

    Where both can change a jump is of either with probability one half. A jump between widths is of
    a kind drawn from `moves`, in a layer drawn from the hidden ones that there are; one between
    depths of a kind drawn from `layer_moves`. Before the step the inactive slots are drawn from
    their prior, after it they are zero again.

    A sandwich is a step, one jump, and another step, refused together: the published form. With K
    the step, reversible with respect to the target, its law of (x, y, y', x') there and back has

        p(y) K(y, x) q(y, y') K(y', x')   and   p(y') K(y', x') q(y', y) K(y, x),

    so that the ratio is that of the jump in the middle alone, at y and y'. It costs two steps a
    jump, and a jump refused loses them.

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
        kind_probs: of `moves`, then of `layer_moves`, either of sum 1; None makes all of them
            equally likely. They must not depend on where the chain is.
        sandwich: step, jump, step as one proposal, in place of `num_jumps` jumps and a step.
        gibbs: whether a step ends by a draw of a hierarchical prior's precisions given the weights.
    Raises:
        InputError: for an unknown move, none at all, or one that the likelihood does not allow;
            for a sandwich that ends by a draw of precisions: it is not reversible; for precisions
            that there are not.
    A jump or step that is not finite is refused: the chain stays, is_finite is False.
    """
    check_step_size(step_size)
    if gibbs and sandwich:
        raise InputError("gibbs and sandwich do not go together: the steps must be reversible.")
    if gibbs and not isinstance(target.model.prior, HierarchicalGamma):
        raise InputError(f"gibbs needs prior='hierarchical', got {target.model.prior}.")
    layer_moves = layer_moves if target.depth_prior is not None else ()
    groups = (len(moves), len(layer_moves))
    system = _Sweep(
        target=target,
        moves=moves,
        layer_moves=layer_moves,
        move_settings=dict(move_settings),
        tuning={"step_size": step_size, "inverse_mass": inverse_mass},
        kind_probs=equally_likely(groups) if kind_probs is None else kind_probs,
        within=partial(within, step_size=step_size, **dict(within_settings)),
        gibbs=gibbs,
    )
    system.check()

    def init(position: Position, data: Data) -> TransdimensionalState:
        params = target.model.unravel(position, data)
        return TransdimensionalState(position, count_active(params.network).astype(jnp.int32))

    def step(
        key: PRNGKeyArray, state: TransdimensionalState, data: Data
    ) -> tuple[TransdimensionalState, TransdimensionalInfo]:
        key_first, key_jumps, key_within = jax.random.split(key, 3)
        params = target.model.unravel(state.position, data)
        start = Point(params, state.widths, target.log_likelihood(params, data))
        if sandwich:
            point, first, first_taken = system.moved(key_first, start, data)
            likelihood = target.log_likelihood(point.params, data)
            point = point._replace(log_likelihood=likelihood)
            point, jumps = system.jumped(key_jumps, point, data, 1)
            point, info, taken = system.moved(key_within, point, data)
            point = either(jnp.any(jumps.accepted > 0), point, start)
            taken, is_finite = taken.plus(first_taken), first.is_finite & info.is_finite
        else:
            point, jumps = system.jumped(key_jumps, start, data, num_jumps)
            point, info, taken = system.moved(key_within, point, data)
            is_finite = info.is_finite
        values, gradients = (jnp.sum(each, dtype=jnp.int32) for each in jumps.work)
        position = ravel_pytree(point.params)[0]
        return TransdimensionalState(position, point.widths), TransdimensionalInfo(
            acceptance_rate=info.acceptance_rate,
            is_divergent=getattr(info, "is_divergent", jnp.zeros((), bool)),
            is_finite=is_finite & jumps.is_finite,
            jump_acceptance_rate=jumps.acceptance_rate(),
            num_jumps=jumps.tried,
            num_jumps_accepted=jumps.accepted,
            jump_cost=jumps.cost(),
            step_cost=jnp.asarray(taken.in_values(), jnp.int32),
            num_evaluations=values + taken.values + 1 + sandwich,
            num_gradients=gradients + taken.gradients,
        )

    return Kernel(init, step)


class _Sweep(NamedTuple):
    """Makes the two halves of a sweep: jumps of all kinds, and the step of all weights.

    Args:
        within: builds the kernel of the step, given a density and its metric.
    The others are as of `transdimensional`.
    """

    target: VariableWidth
    moves: tuple[str, ...]
    layer_moves: tuple[str, ...]
    move_settings: Mapping[str, Any]
    tuning: Mapping[str, Any]
    kind_probs: Float[Array, " kind"]
    within: Callable[..., Kernel]
    gibbs: bool

    def check(self) -> None:
        """Refuse moves that there are not, and those that the likelihood does not allow."""
        check_moves(self.moves, MOVES)
        self.between_widths(0)
        if self.layer_moves:
            check_moves(self.layer_moves, LAYER_MOVES)
            self.between_depths()

    def between_widths(self, layer: int) -> list[Move]:
        """The moves between widths of a layer, in the order of `moves`."""
        return [
            build_move(name, self.target, layer, tuning=self.tuning, settings=self.move_settings)
            for name in self.moves
        ]

    def between_depths(self) -> list[LayerMove]:
        """The moves between depths, in the order of `layer_moves`."""
        return [
            build_layer_move(name, self.target, tuning=self.tuning, settings=self.move_settings)
            for name in self.layer_moves
        ]

    def proposals(self, layers: Layers) -> tuple[tuple[Move, ...], tuple[LayerMove, ...]]:
        """All moves between widths, layer by layer, and all between depths."""
        hidden = range(len(layers) - 1)
        between_widths = tuple(move for layer in hidden for move in self.between_widths(layer))
        if not self.layer_moves or not self.target.can_change_depth(layers):
            return between_widths, ()
        can_change_width = self.target.can_change_width(layers)
        return between_widths if can_change_width else (), tuple(self.between_depths())

    def jumped(
        self, key: PRNGKeyArray, point: Point, data: Data, count: int | Int[Array, ""]
    ) -> tuple[Point, Jumps]:
        """Try `count` jumps; return the new point, and what they did."""
        width_moves, depth_moves = self.proposals(point.params.network)
        return mixed_jumps(
            key, point, data, count, target=self.target, width_moves=width_moves,
            depth_moves=depth_moves, num_kinds=len(self.moves), kind_probs=self.kind_probs,
        )  # fmt: skip

    def moved(self, key: PRNGKeyArray, point: Point, data: Data) -> tuple[Point, Any, Work]:
        """A step of all weights at a point's widths, what it did and what it took; the point's log
        likelihood is not computed again."""
        key_refresh, key_within, key_precisions = jax.random.split(key, 3)
        full = self.target.refreshed(key_refresh, point.params, point.widths)
        start, unravel = ravel_pytree(full)

        def at_these_widths(position: Position, data: Data) -> Float[Array, ""]:
            return self.target.log_density(unravel(position), point.widths, data)

        metric = self.target.metric(self.tuning["inverse_mass"], full, point.widths)
        kernel = self.within(at_these_widths, inverse_mass=metric)
        first = kernel.init(start, data)
        state, info = kernel.step(key_within, first, data)
        params = unravel(state.position)
        params = params._replace(network=only_active(params.network, point.widths))
        if self.gibbs:
            params = self.target.with_precisions(key_precisions, params, point.widths)
        return point._replace(params=params), info, first_work(first).plus(step_work(info))
