"""Replica exchange: chains on a ladder of temperatures that exchange their states.

Rung i moves on prior(w) likelihood(w)^t_i, from the prior itself, t_0 = 0, up to the posterior,
t_n = 1. After every move neighbours exchange their states by Metropolis's rule, so that the law of
all rungs together, their product, stays invariant (Geyer, "Markov chain Monte Carlo maximum
likelihood", 1991). The prior is drawn from anew in every step: what comes down the ladder from
there to the posterior has forgotten every mode that it was in.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, UInt32

from credence.density.chunks import chunked
from credence.density.data import Data
from credence.density.posterior import (
    BayesianModel,
    LogDensity,
    Position,
    flat_log_likelihood,
    flat_log_prior,
    flat_prior_draw,
)
from credence.kernels.base import Kernel, Moves, Scalar, first_work, metropolis, repeated
from credence.kernels.mcmc.microcanonical import varied_leapfrogs


class Powered(NamedTuple):
    """Data, and the power of their likelihood."""

    data: Data
    power: Scalar


@dataclass(frozen=True)
class Ladder:
    """The densities prior(w) likelihood(w)^t of a model: what the rungs of a ladder move on."""

    model: BayesianModel

    def __call__(self, position: Position, at: Powered) -> Float[Array, ""]:
        """Log density of a rung, in nats, fast for many particles."""
        return self._log_density(position, at)

    @cached_property
    def _log_density(self) -> Callable[[Position, Any], Float[Array, ""]]:
        log_prior, log_likelihood = flat_log_prior(self.model), flat_log_likelihood(self.model)

        def log_density(position: Position, at: Powered) -> Float[Array, ""]:
            prior = log_prior(position, at.data)
            return prior + at.power * log_likelihood(position, at.data)

        return chunked(log_density)

    @cached_property
    def log_likelihood(self) -> LogDensity:
        """Log likelihood, in nats, fast for many particles."""
        return chunked(flat_log_likelihood(self.model))

    def from_prior(self, key: PRNGKeyArray, data: Data) -> Position:
        """A draw from the prior; data gives the shapes only."""
        return flat_prior_draw(self.model, key, data)


@lru_cache(maxsize=256)
def ladder_of(model: BayesianModel) -> Ladder:
    """The ladder of a model: the same one for the same model, so that programs are found again."""
    return Ladder(model)


class ReplicaState(NamedTuple):
    """The states of all rungs, from the prior to the posterior."""

    positions: Float[Array, "*chain rung weight"]
    is_new: Bool[Array, "*chain rung"]
    """Whether a state has come from the prior since it, or what it grew from, was coldest."""
    num_steps: UInt32[Array, "*chain"]

    @property
    def position(self) -> Float[Array, "*chain weight"]:
        """The weights of the coldest rung, which follow the posterior."""
        return self.positions[..., -1, :]


class ReplicaInfo(NamedTuple):
    """What a step did; what is told of rungs or pairs of neighbours has an axis for them."""

    acceptance_rate: Float[Array, " rung"]
    """Acceptance of the moves; 1 at the prior, which is drawn from."""
    exchange_rate: Float[Array, " pair"]
    """Acceptance of the exchanges; NaN for every other pair, which had no turn."""
    log_likelihood: Float[Array, " rung"]
    """Log likelihoods after the exchanges, in nats."""
    is_restart: Bool[Array, ""]
    """Whether the coldest rung got a state that has come all the way from the prior."""
    is_finite: Bool[Array, ""]
    """Whether all rungs met finite numbers only."""
    num_gradients: Int[Array, ""]
    num_evaluations: Int[Array, ""]


def replica_exchange(
    ladder: Ladder,
    *,
    powers: Float[Array, " rung"],
    step_size: Float[Array, " rung"],
    inverse_mass: Float[Array, "rung weight"],
    build: Callable[..., Kernel],
    num_moves: int = 1,
    num_leapfrogs: int | None = None,
) -> Kernel:
    """Moves on all rungs of a ladder, and exchanges of even and odd pairs by turns.

    Exchanges of all even pairs in one step and of all odd ones in the next drive states along the
    ladder instead of letting them diffuse (Syed, Bouchard-Cote, Deligiannidis & Doucet,
    "Non-reversible parallel tempering", 2022).

    Args:
        ladder: the densities.
        powers: of the likelihood, ascending from 0 to 1.
        step_size, inverse_mass: of the moves, for every rung; those of rung 0 are not used.
        build: build(log_density, *, step_size, inverse_mass[, trajectory_length]) of the kernel
            that moves a rung, and leaves its density invariant from any first state.
        num_moves: of every rung between exchanges.
        num_leapfrogs: mean number of leapfrogs of a trajectory, for a kernel that takes its length;
            it varies evenly between half and one and a half times that, for all rungs alike.
    """
    num_rungs = powers.shape[0]

    def moved(
        key: PRNGKeyArray,
        position: Position,
        power: Scalar,
        step_size: Scalar,
        inverse_mass: Position,
        leapfrogs: Int[Array, ""] | None,
        data: Data,
    ) -> tuple[Position, Moves]:
        """The place to which a rung's moves lead."""
        length = {} if leapfrogs is None else {"trajectory_length": leapfrogs * step_size}
        built = build(
            lambda position, data: ladder(position, Powered(data, power)),
            step_size=step_size,
            inverse_mass=inverse_mass,
            **length,
        )

        first = built.init(position, data)
        none = Moves.none(power, first_work(first))
        state, sums = repeated(built, key, first, data, num_moves, none)
        return state.position, sums

    def init(positions: Float[Array, "rung weight"], data: Data) -> ReplicaState:
        return first_state(positions)

    def step(
        key: PRNGKeyArray, state: ReplicaState, data: Data
    ) -> tuple[ReplicaState, ReplicaInfo]:
        key_prior, key_moves, key_exchange = jax.random.split(key, 3)
        leapfrogs = None
        if num_leapfrogs is not None:
            leapfrogs = varied_leapfrogs(state.num_steps, num_leapfrogs)
        warm, sums = jax.vmap(moved, in_axes=(0, 0, 0, 0, 0, None, None))(
            jax.random.split(key_moves, num_rungs - 1),
            state.positions[1:],
            powers[1:],
            step_size[1:],
            inverse_mass[1:],
            leapfrogs,
            data,
        )
        hot = ladder.from_prior(key_prior, data)
        positions = jnp.concatenate([hot[None], warm])
        log_likelihoods = jax.vmap(ladder.log_likelihood, (0, None))(positions, data)
        new, order, rates, is_restart = after_exchanges(
            key_exchange, state, positions, log_likelihoods, powers
        )
        one = jnp.ones((1,), sums.acceptance.dtype)
        info = ReplicaInfo(
            acceptance_rate=jnp.concatenate([one, sums.acceptance / num_moves]),
            exchange_rate=rates,
            log_likelihood=log_likelihoods[order],
            is_restart=is_restart,
            is_finite=jnp.all(sums.is_finite),
            num_gradients=jnp.sum(sums.gradients),
            num_evaluations=jnp.sum(sums.evaluations) + num_rungs,
        )
        return new, info

    return Kernel(init, step)


def first_state(positions: Float[Array, "rung weight"]) -> ReplicaState:
    """The state of a ladder that starts at these places."""
    is_new = jnp.zeros(len(positions), bool).at[0].set(True)
    return ReplicaState(positions, is_new, jnp.zeros((), jnp.uint32))


def after_exchanges(
    key: PRNGKeyArray,
    state: ReplicaState,
    positions: Float[Array, "rung weight"],
    log_likelihoods: Float[Array, " rung"],
    powers: Float[Array, " rung"],
) -> tuple[ReplicaState, Int[Array, " rung"], Float[Array, " pair"], Bool[Array, ""]]:
    """Exchange neighbours, even and odd pairs by turns.

    Args:
        state: before the rungs moved to these positions, the first one a new draw of the prior.
    Returns:
        The state after it, what `exchanged` returns, and whether the coldest rung got a state that
        has come all the way from the prior.
    """
    order, rates = exchanged(key, log_likelihoods, powers, state.num_steps % 2)
    is_new = state.is_new.at[0].set(True)[order]
    new = ReplicaState(positions[order], is_new.at[-1].set(False), state.num_steps + 1)
    return new, order, rates, is_new[-1]


def exchanged(
    key: PRNGKeyArray,
    log_likelihoods: Float[Array, " rung"],
    powers: Float[Array, " rung"],
    parity: UInt32[Array, ""],
) -> tuple[Int[Array, " rung"], Float[Array, " pair"]]:
    """Exchange the even or the odd pairs of neighbours.

    A pair's ratio is (L_hot / L_cold)^(t_cold - t_hot): the priors cancel.

    Returns:
        Which rung's state every rung has now, and the rates of acceptance, NaN for pairs without a
        turn. A likelihood that is not finite is never exchanged.
    """
    pairs = jnp.arange(len(powers) - 1)
    log_ratios = -jnp.diff(powers) * jnp.diff(log_likelihoods)
    has_turn = pairs % 2 == parity
    is_possible = has_turn & jnp.isfinite(log_ratios)
    keys = jax.random.split(key, len(pairs))
    rates, is_accepted = jax.vmap(metropolis)(keys, log_ratios, is_possible)
    order = jnp.arange(len(powers))
    order = order.at[:-1].add(is_accepted.astype(int)).at[1:].add(-is_accepted.astype(int))
    return order, jnp.where(has_turn, rates, jnp.nan)
