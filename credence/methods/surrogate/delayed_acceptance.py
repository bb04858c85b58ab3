"""Delayed acceptance: a surrogate's chain proposes, the true density decides."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from credence.density.data import Data
from credence.density.posterior import LogDensity, Position
from credence.kernels.base import (
    Kernel,
    Moves,
    Settings,
    Work,
    either,
    first_work,
    metropolis,
    repeated,
)

Surrogate = Callable[[Position, Any], Float[Array, ""]]
"""(position, arrays) -> about the log density, in nats; sees no data but what the arrays hold."""


class DelayedState(NamedTuple):
    """A position, and the target's log density there (whatever the surrogate, which may change)."""

    position: Position
    log_density: Float[Array, ""]
    member: Int[Array, ""]
    """Number of the surrogate that the chain follows, for ever."""


class DelayedInfo(NamedTuple):
    """What a step did."""

    acceptance_rate: Float[Array, ""]
    """Acceptance rate of the true density, 1 where the surrogate's chain went nowhere."""
    first_acceptance_rate: Float[Array, ""]
    """Acceptance rate of the surrogate's chain, mean over its steps."""
    is_finite: Bool[Array, ""]
    log_density: Float[Array, ""]
    """Log density at the end of the step, in nats."""
    log_surrogate: Float[Array, ""]
    """The same by the surrogate."""
    num_evaluations: Int[Array, ""]
    """True log densities, without gradient."""
    num_surrogate_evaluations: Int[Array, ""]
    """Evaluations of the surrogate; a gradient counts three."""


def delayed_acceptance(
    log_density: LogDensity,
    *,
    surrogate: Surrogate,
    surrogates: Any,
    build: Callable[..., Kernel],
    settings: Settings,
    num_steps: Int[Array, ""] | int,
) -> Kernel:
    """Steps of a surrogate's chain u -> v, then one test by the target: exact for any surrogate.

        a = min(1, exp( [log pi(v) - log pi(u)] - [log s(v) - log s(u)] )).

    The surrogate's kernel is reversible for s, hence so are any number of its steps: their proposal
    density q obeys s(u) q(v | u) = s(v) q(u | v), and the Metropolis ratio for pi is the above.
    With one step: Christen & Fox, "Markov chain Monte Carlo using an approximation" (2005); with
    several, the surrogate transition of Liu, "Monte Carlo Strategies in Scientific Computing"
    (2001), section 9.4.3. A poor surrogate costs acceptance, not truth. A prior that both densities
    share cancels.

    Args:
        log_density: (position, data) -> log density of the target, in nats: one per step.
        surrogate, surrogates: its log density of (position, arrays), and the arrays of all
            surrogates, leaves (member, ...); each chain has one, its state's `member`.
        build: of the surrogate's kernel, reversible, its State with a `log_density`.
        settings: of that kernel.
        num_steps: of that kernel.
    A non-finite end is refused: the position stays, is_finite is False.
    """
    build(log_density, **settings)  # may refuse the settings
    chain = _Chain(surrogate, surrogates, build, settings, num_steps)

    def init(position: Position, data: Data) -> DelayedState:
        return DelayedState(position, log_density(position, data), jnp.zeros((), jnp.int32))

    def step(
        key: PRNGKeyArray, state: DelayedState, data: Data
    ) -> tuple[DelayedState, DelayedInfo]:
        key_move, key_accept = jax.random.split(key)
        moved = chain(key_move, state, data)
        position = moved.end.position
        new = DelayedState(position, log_density(position, data), state.member)
        before, after = moved.start.log_density, moved.end.log_density
        log_ratio = new.log_density - state.log_density - (after - before)
        is_finite = jnp.isfinite(log_ratio)
        acceptance_rate, is_accepted = metropolis(key_accept, log_ratio, is_finite)
        kept = either(is_accepted, new, state)
        return kept, DelayedInfo(
            acceptance_rate,
            moved.acceptance_rate,
            is_finite,
            kept.log_density,
            jnp.where(is_accepted, after, before),
            jnp.ones((), jnp.int32),
            moved.num_evaluations,
        )

    return Kernel(init, step)


class UncorrectedState(NamedTuple):
    """A position, and the number of the surrogate that the chain follows."""

    position: Position
    member: Int[Array, ""]


class UncorrectedInfo(NamedTuple):
    """What a step did; see `DelayedInfo`."""

    first_acceptance_rate: Float[Array, ""]
    is_finite: Bool[Array, ""]
    log_surrogate: Float[Array, ""]
    num_surrogate_evaluations: Int[Array, ""]


def uncorrected(
    log_density: LogDensity,
    *,
    surrogate: Surrogate,
    surrogates: Any,
    build: Callable[..., Kernel],
    settings: Settings,
    num_steps: Int[Array, ""] | int,
) -> Kernel:
    """The surrogate's chain alone: draws of the surrogate, whatever the target.

    Arguments as `delayed_acceptance`; log_density is not used. Its error is that of the surrogate:
    Moslemi, Meng, Lan & Shahbaba, "Scaling up Bayesian neural networks with neural networks"
    (2024), algorithm 3.
    """
    build(log_density, **settings)  # may refuse the settings
    chain = _Chain(surrogate, surrogates, build, settings, num_steps)

    def init(position: Position, data: Data) -> UncorrectedState:
        return UncorrectedState(position, jnp.zeros((), jnp.int32))

    def step(
        key: PRNGKeyArray, state: UncorrectedState, data: Data
    ) -> tuple[UncorrectedState, UncorrectedInfo]:
        moved = chain(key, state, data)
        log_surrogate = moved.log_density(moved.end.position, data)
        is_finite = jnp.isfinite(log_surrogate)
        position = jnp.where(is_finite, moved.end.position, state.position)
        return UncorrectedState(position, state.member), UncorrectedInfo(
            moved.acceptance_rate, is_finite, log_surrogate, moved.num_evaluations + 1
        )

    return Kernel(init, step)


def member_of(arrays: Any, member: Int[Array, ""]) -> Any:
    """The arrays of one member, from leaves (member, ...); of an only one without a copy for every
    chain."""
    return jax.tree.map(lambda leaf: leaf[0] if len(leaf) == 1 else leaf[member], arrays)


class _Moved(NamedTuple):
    """The start and the end of a surrogate's chain, and what it did on the way."""

    start: Any
    """State of its kernel."""
    end: Any
    log_density: LogDensity
    """The surrogate's log density."""
    acceptance_rate: Float[Array, ""]
    num_evaluations: Int[Array, ""]


class _Chain(NamedTuple):
    """Steps of a surrogate's kernel from a state, with the surrogate of its member."""

    surrogate: Surrogate
    surrogates: Any
    build: Callable[..., Kernel]
    settings: Settings
    num_steps: Int[Array, ""] | int

    def __call__(self, key: PRNGKeyArray, state: Any, data: Data) -> _Moved:
        arrays = member_of(self.surrogates, state.member)

        def log_density(position: Position, data: Data) -> Float[Array, ""]:
            return self.surrogate(position, arrays)

        kernel = self.build(log_density, **self.settings)

        start = kernel.init(state.position, data)
        # What the first state holds was evaluated there.
        none = Moves.none(jnp.zeros((), state.position.dtype), first_work(start))
        end, sums = repeated(kernel, key, start, data, self.num_steps, none)
        rate = sums.acceptance / jnp.maximum(self.num_steps, 1)
        work = Work(sums.evaluations, sums.gradients)
        return _Moved(start, end, log_density, rate, work.in_values())
