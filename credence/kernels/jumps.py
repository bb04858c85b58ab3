"""Reversible jumps between widths and depths: what all kinds of move share.

Green, "Reversible jump Markov chain Monte Carlo computation and Bayesian model determination"
(1995). A move knows how a unit is born in the last slot and how the unit there dies; here are the
choice between the two, the place of the unit, and the test.

A jump from k to k' = k +- 1 units is accepted with probability min(1, R),

    R = r  p(k') q(k', k) / [p(k) q(k, k')],

with q the probability of the direction and r the move's own ratio: densities, proposals, Jacobian.
At a birth the new unit goes to a uniformly chosen slot, at a death a uniformly chosen unit goes:
1 / (k + 1) in both directions, which cancels.

Of d hidden layers a new one comes after a uniformly chosen one; of d + 1 a uniformly chosen one
goes, but never the first: 1 / d in both directions, which cancels too.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from credence.kernels.base import either
from credence.kernels.variable_width import Point, VariableWidth
from credence.models.units import Widths, count_layers, swapped
from credence.posterior import Data, Params


class Proposal(NamedTuple):
    """Where a jump may lead."""

    params: Params
    log_likelihood: Float[Array, ""]
    log_ratio: Float[Array, ""]
    """log r, the log ratio without the prior of the widths and the choice of direction."""
    num_evaluations: Int[Array, ""]
    num_gradients: Int[Array, ""]


class Move(NamedTuple):
    """A pair of proposals, each the other's reverse, for one hidden layer."""

    birth: Callable[[PRNGKeyArray, Point, Data], Proposal]
    """Of a unit in the slot after the last active one."""
    death: Callable[[PRNGKeyArray, Point, Data], Proposal]
    """Of the last active unit."""
    layer: int


class LayerMove(NamedTuple):
    """A pair of proposals, each the other's reverse, with the widths that they lead to."""

    birth: Callable[[PRNGKeyArray, Point, Int[Array, ""], Data], tuple[Proposal, Widths]]
    """Of a hidden layer after the one of this index."""
    death: Callable[[PRNGKeyArray, Point, Int[Array, ""], Data], tuple[Proposal, Widths]]
    """Of the hidden layer after the one of this index."""


class JumpInfo(NamedTuple):
    """What a jump did."""

    is_in_range: Bool[Array, ""]
    """Whether it led to a width or depth that the prior allows; 0 evaluations otherwise."""
    acceptance_rate: Float[Array, ""]
    is_accepted: Bool[Array, ""]
    is_finite: Bool[Array, ""]
    num_evaluations: Int[Array, ""]
    num_gradients: Int[Array, ""]


def jump(
    key: PRNGKeyArray,
    point: Point,
    data: Data,
    *,
    target: VariableWidth,
    move: Move,
    forced_borders: bool = False,
) -> tuple[Point, JumpInfo]:
    """One birth or death.

    Args:
        target: joint law of widths and weights, left invariant.
        move: how units are born and die.
        forced_borders: whether the narrowest network always tries a birth and the widest a death;
            otherwise both directions are equally likely everywhere, and a step out of the support
            is a step refused.
    A ratio that is not a number is refused: the point stays, is_finite is False.
    """
    key_direction, key_slot, key_move, key_accept = jax.random.split(key, 4)
    width, layer = point.widths[move.layer], move.layer
    log_prior = target.log_width_probs(point.params.network, layer)
    choice = directed(key_direction, width, log_prior, forced=forced_borders)
    slot = jax.random.randint(key_slot, (), 0, jnp.maximum(width, choice.new_count))
    read_by = target.readers(point.widths, layer)

    def exchanged(params: Params, last: Int[Array, ""]) -> Params:
        if target.is_ordered:
            return params
        return params._replace(network=swapped(params.network, layer, slot, last, read_by))

    def birth(point: Point) -> Proposal:
        proposal = move.birth(key_move, point, data)
        return proposal._replace(params=exchanged(proposal.params, width))

    def death(point: Point) -> Proposal:
        turned = point._replace(params=exchanged(point.params, width - 1))
        return move.death(key_move, turned, data)

    proposal = jax.lax.switch(choice.branch, [_nothing, birth, death], point)
    return tested(key_accept, point, proposal, point.widths.at[layer].set(choice.new_count), choice)


def layer_jump(
    key: PRNGKeyArray,
    point: Point,
    data: Data,
    *,
    target: VariableWidth,
    move: LayerMove,
    forced_borders: bool = False,
) -> tuple[Point, JumpInfo]:
    """One birth or death of a hidden layer; arguments and refusals as of `jump`."""
    key_direction, key_place, key_move, key_accept = jax.random.split(key, 4)
    depth = count_layers(point.widths)
    log_prior = target.log_depth_probs(point.params.network)
    choice = directed(key_direction, depth, log_prior, forced=forced_borders)
    after = jax.random.randint(key_place, (), 0, jnp.minimum(depth, choice.new_count))
    branches = [
        lambda point: (_nothing(point), point.widths),
        lambda point: move.birth(key_move, point, after, data),
        lambda point: move.death(key_move, point, after, data),
    ]
    proposal, widths = jax.lax.switch(choice.branch, branches, point)
    return tested(key_accept, point, proposal, widths, choice)


class Choice(NamedTuple):
    """Birth or death."""

    branch: Int[Array, ""]
    """0 out of the support, 1 birth, 2 death."""
    new_count: Int[Array, ""]
    log_ratio: Float[Array, ""]
    """log of p(k') q(k', k) / [p(k) q(k, k')]."""


def directed(
    key: PRNGKeyArray, count: Int[Array, ""], log_prior: Float[Array, " count"], *, forced: bool
) -> Choice:
    """A direction from `count` units or layers whose log prior is `log_prior`."""
    log_birth, log_death = log_directions(log_prior, forced=forced)
    is_birth = jnp.log(jax.random.uniform(key)) < log_birth[count]
    new = jnp.where(is_birth, count + 1, count - 1)
    log_forward = jnp.where(is_birth, log_birth[count], log_death[count])
    log_reverse = jnp.where(is_birth, log_death[new], log_birth[new])
    return Choice(
        jnp.where(jnp.isfinite(log_prior[new]), jnp.where(is_birth, 1, 2), 0),
        new,
        log_prior[new] - log_prior[count] + log_reverse - log_forward,
    )


def tested(
    key: PRNGKeyArray, point: Point, proposal: Proposal, widths: Widths, choice: Choice
) -> tuple[Point, JumpInfo]:
    """The proposal with probability min(1, R), else the point."""
    log_ratio = proposal.log_ratio + choice.log_ratio
    is_in_range = choice.branch > 0
    is_finite = jnp.isfinite(log_ratio) | ~is_in_range
    acceptance_rate = jnp.where(is_in_range & is_finite, jnp.exp(jnp.minimum(log_ratio, 0.0)), 0.0)
    is_accepted = jax.random.uniform(key) < acceptance_rate
    new = Point(proposal.params, widths, proposal.log_likelihood)
    return either(is_accepted, new, point), JumpInfo(
        is_in_range,
        acceptance_rate,
        is_accepted,
        is_finite,
        proposal.num_evaluations,
        proposal.num_gradients,
    )


def log_directions(
    log_prior: Float[Array, " width"], *, forced: bool
) -> tuple[Float[Array, " width"], Float[Array, " width"]]:
    """Log probabilities to try a birth and a death, at every width."""
    half = jnp.full(log_prior.shape, jnp.log(0.5))
    if not forced:
        return half, half
    may_grow = jnp.isfinite(jnp.append(log_prior[1:], -jnp.inf))
    may_shrink = jnp.isfinite(jnp.append(-jnp.inf, log_prior[:-1]))
    only = lambda this, other: jnp.where(this, jnp.where(other, half, 0.0), -jnp.inf)  # noqa: E731
    return only(may_grow, may_shrink), only(may_shrink, may_grow)


def counts(*, evaluations: int = 0, gradients: int = 0) -> tuple[Int[Array, ""], Int[Array, ""]]:
    """Likelihood values and gradients that a proposal took."""
    return jnp.asarray(evaluations, jnp.int32), jnp.asarray(gradients, jnp.int32)


def _nothing(point: Point) -> Proposal:
    """Out of the support."""
    refused = jnp.full_like(point.log_likelihood, -jnp.inf)
    return Proposal(point.params, point.log_likelihood, refused, *counts())
