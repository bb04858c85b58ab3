"""Reversible jumps between widths and depths: what all kinds of move share.

Green, "Reversible jump Markov chain Monte Carlo computation and Bayesian model determination"
(1995). A move knows how a neuron is born in the last slot and how the neuron there dies; here are
the choice between the two, the place of the neuron, and the test.

A jump from k to k' = k +- m neurons, one after the other, is accepted with probability min(1, R),

    R = r  p(k') q(k', k) / [p(k) q(k, k')],

with q the probability of the direction and r the move's own ratio: densities, proposals, Jacobian;
of m neurons the product of their ratios, for the way back passes the same networks.
At a birth the new neuron goes to a uniformly chosen slot, at a death a uniformly chosen neuron
goes: 1 / (k + 1) in both directions, which cancels.

Of d hidden layers a new one comes after a uniformly chosen one; of d + 1 a uniformly chosen one
goes, but never the first: 1 / d in both directions, which cancels too.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, PRNGKeyArray

from credence.density.data import Data
from credence.density.posterior import Params
from credence.kernels.base import either, metropolis
from credence.methods.transdimensional.active_neurons import Widths, count_layers, swapped
from credence.methods.transdimensional.target import Point, VariableWidth


class Proposal(NamedTuple):
    """The network that a jump would lead to, its log likelihood, and what it took to propose it."""

    params: Params
    log_likelihood: Float[Array, ""]
    log_ratio: Float[Array, ""]
    """log r, the log ratio without the prior of the widths and the choice of direction."""
    num_evaluations: Int[Array, ""]
    num_gradients: Int[Array, ""]


class Move(NamedTuple):
    """A pair of proposals, each the other's reverse, for one hidden layer."""

    birth: Callable[[PRNGKeyArray, Point, Data], Proposal]
    """Propose a neuron in the slot after the last active one."""
    death: Callable[[PRNGKeyArray, Point, Data], Proposal]
    """Propose to remove the last active neuron."""
    layer: int
    num_neurons: int = 1
    """Number of neurons that are born or die in a jump."""


class LayerMove(NamedTuple):
    """A pair of proposals, each the other's reverse, with the widths that they lead to."""

    birth: Callable[[PRNGKeyArray, Point, Int[Array, ""], Data], tuple[Proposal, Widths]]
    """Propose a hidden layer after the one of this index."""
    death: Callable[[PRNGKeyArray, Point, Int[Array, ""], Data], tuple[Proposal, Widths]]
    """Propose to remove the hidden layer after the one of this index."""


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
) -> tuple[Point, JumpInfo]:
    """One birth or death, of as many neurons as the move says.

    Args:
        target: joint law of widths and weights, left invariant.
        move: how neurons are born and die, and how many at once.
    A ratio that is not a number is refused: the point stays, is_finite is False.
    """
    key_direction, key_neurons, key_accept = jax.random.split(key, 3)
    width, layer = point.widths[move.layer], move.layer
    log_prior = target.log_width_probs(point.params.network, layer)
    size = move.num_neurons
    choice = directed(key_direction, width, log_prior, size=size)
    keys = jax.random.split(key_neurons, size)

    def exchanged(params: Params, slot: Int[Array, ""], last: Int[Array, ""]) -> Params:
        if target.is_ordered:
            return params
        read_by = target.readers(point.widths, layer)
        return params._replace(network=swapped(params.network, layer, slot, last, read_by))

    def birth(key: PRNGKeyArray, point: Point) -> Proposal:
        key_slot, key_move = jax.random.split(key)
        width = point.widths[layer]
        slot = jax.random.randint(key_slot, (), 0, width + 1)
        proposal = move.birth(key_move, point, data)
        return proposal._replace(params=exchanged(proposal.params, slot, width))

    def death(key: PRNGKeyArray, point: Point) -> Proposal:
        key_slot, key_move = jax.random.split(key)
        width = point.widths[layer]
        slot = jax.random.randint(key_slot, (), 0, width)
        turned = point._replace(params=exchanged(point.params, slot, width - 1))
        return move.death(key_move, turned, data)

    branches = [
        _nothing,
        lambda point: one_by_one(keys, point, birth, layer, 1),
        lambda point: one_by_one(keys, point, death, layer, -1),
    ]
    proposal = jax.lax.switch(choice.branch, branches, point)
    return tested(key_accept, point, proposal, point.widths.at[layer].set(choice.new_count), choice)


def one_by_one(
    keys: Key[Array, " neuron"],
    point: Point,
    propose: Callable[[PRNGKeyArray, Point], Proposal],
    layer: int,
    change: int,
) -> Proposal:
    """Births or deaths in a row as one proposal: ratios multiply, costs add."""

    def next_neuron(at: tuple[Point, Proposal], key: PRNGKeyArray) -> tuple[Any, None]:
        point, so_far = at
        found = propose(key, point)
        widths = point.widths.at[layer].add(change)
        together = found._replace(
            log_ratio=so_far.log_ratio + found.log_ratio,
            num_evaluations=so_far.num_evaluations + found.num_evaluations,
            num_gradients=so_far.num_gradients + found.num_gradients,
        )
        return (Point(found.params, widths, found.log_likelihood), together), None

    still = _nothing(point)
    still = still._replace(log_ratio=jnp.zeros_like(still.log_ratio))
    return jax.lax.scan(next_neuron, (point, still), keys)[0][1]


def layer_jump(
    key: PRNGKeyArray,
    point: Point,
    data: Data,
    *,
    target: VariableWidth,
    move: LayerMove,
) -> tuple[Point, JumpInfo]:
    """One birth or death of a hidden layer; arguments and refusals as of `jump`."""
    key_direction, key_place, key_move, key_accept = jax.random.split(key, 4)
    depth = count_layers(point.widths)
    log_prior = target.log_depth_probs(point.params.network)
    choice = directed(key_direction, depth, log_prior)
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
    key: PRNGKeyArray,
    count: Int[Array, ""],
    log_prior: Float[Array, " count"],
    *,
    size: int = 1,
) -> Choice:
    """A direction, by `size`, from `count` neurons or layers whose log prior is `log_prior`.

    Both are equally likely everywhere, so that q cancels, and a step out of the support is a step
    refused.
    """
    is_birth = jax.random.uniform(key) < 0.5
    new = jnp.clip(jnp.where(is_birth, count + size, count - size), 0, len(log_prior) - 1)
    return Choice(
        jnp.where(jnp.isfinite(log_prior[new]), jnp.where(is_birth, 1, 2), 0),
        new,
        log_prior[new] - log_prior[count],
    )


def tested(
    key: PRNGKeyArray, point: Point, proposal: Proposal, widths: Widths, choice: Choice
) -> tuple[Point, JumpInfo]:
    """The proposal with probability min(1, R), else the point."""
    log_ratio = proposal.log_ratio + choice.log_ratio
    is_in_range = choice.branch > 0
    is_finite = jnp.isfinite(log_ratio) | ~is_in_range
    acceptance_rate, is_accepted = metropolis(key, log_ratio, is_in_range & is_finite)
    new = Point(proposal.params, widths, proposal.log_likelihood)
    return either(is_accepted, new, point), JumpInfo(
        is_in_range,
        acceptance_rate,
        is_accepted,
        is_finite,
        proposal.num_evaluations,
        proposal.num_gradients,
    )


def counts(*, evaluations: int = 0, gradients: int = 0) -> tuple[Int[Array, ""], Int[Array, ""]]:
    """Likelihood values and gradients that a proposal took."""
    return jnp.asarray(evaluations, jnp.int32), jnp.asarray(gradients, jnp.int32)


def _nothing(point: Point) -> Proposal:
    """Out of the support."""
    refused = jnp.full_like(point.log_likelihood, -jnp.inf)
    return Proposal(point.params, point.log_likelihood, refused, *counts())
