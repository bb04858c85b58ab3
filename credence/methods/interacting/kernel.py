"""Interacting particles: nonlinear MCMC with Boltzmann-Gibbs or accept-reject jumps.

A step is written for one particle, like every kernel, and mapped over all of them along named axes;
where particles meet, their states are gathered along these axes (`jax.lax.all_gather`). On one
device that is free; on several it is the only communication. The cost is O(N), O(N log N) with
stratified selection.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from credence.density.data import Data
from credence.density.posterior import LogDensity, Position
from credence.errors import InputError
from credence.kernels.base import Kernel, Scalar, Settings, either, first_work, step_work
from credence.kernels.resampling import effective_sample_size
from credence.methods.interacting.auxiliary import Auxiliary
from credence.methods.interacting.cloud_jumps import (
    Past,
    accept_reject,
    boltzmann_gibbs,
    check_jumps,
    check_past,
    everyone,
    level_in_cloud,
)


class InteractingState(NamedTuple):
    """A particle X of the target, its partner Y of the auxiliary density, and what Y has seen."""

    target: Any
    """State of the kernel K, which moves the particle X."""
    auxiliary: Any
    """State of the kernel Q, which moves the partner Y."""
    past: Past
    num_steps: Int[Array, ""]
    jump_acceptance_rate: Float[Array, ""]
    """Acceptance rate of the latest jump."""

    @property
    def position(self) -> Float[Array, "*chain weight"]:
        """Position of the particle X."""
        return self.target.position


class InteractingInfo(NamedTuple):
    """What a step did.

    Of synchronous jumps potentials and the jumps' acceptance are those of the latest.
    """

    acceptance_rate: Float[Array, ""]
    """Acceptance rate of K, jump or no jump."""
    auxiliary_acceptance_rate: Float[Array, ""]
    """Acceptance rate of Q."""
    jump_acceptance_rate: Float[Array, ""]
    """Acceptance rate of a jump, made or not; 1 for Boltzmann-Gibbs."""
    is_jump: Bool[Array, ""]
    """Whether X tried one."""
    is_accepted_jump: Bool[Array, ""]
    log_potential: Float[Array, ""]
    """log G at the partner, up to a constant, nats."""
    potential_ess: Float[Array, ""]
    """Effective number of the auxiliary states that Boltzmann-Gibbs chooses from, by potential."""
    is_finite: Bool[Array, ""]
    num_evaluations: Int[Array, ""]
    num_gradients: Int[Array, ""]


def interacting(
    log_density: LogDensity,
    *,
    auxiliary: Auxiliary,
    arrays: Any,
    kernel: Callable[..., Kernel],
    settings: Settings,
    auxiliary_kernel: Callable[..., Kernel] | None,
    auxiliary_settings: Settings,
    jump_probability: Scalar,
    jump: str = "bg",
    selection: str = "multinomial",
    composed: bool = False,
    num_past: int = 1,
    synchronous: bool = False,
    moves_last: bool = False,
    axes: tuple[str, ...] = (),
) -> Kernel:
    """Nonlinear MCMC: Vuckovic, "Nonlinear MCMC for Bayesian Machine Learning" (2022), eqs (1)-(6);
    first Andrieu, Jasra, Doucet & Del Moral, "On nonlinear Markov chain Monte Carlo" (2011).

        Y' ~ Q(Y, .)                                for all particles, on the auxiliary density eta;
        log G = log pi - log eta                    at the NEW Y' (unless moves_last);
        X' ~ K(X, .), or with probability eps a jump J(X, .):
            "bg"  X' = Y'^j,  j with probability G(Y'^j) / sum G;
            "ar"  X' = Y'^j,  j uniform, accepted with probability min(1, G(Y'^j) / G(X)).

    With pi K = pi and eta Q = eta, pi is invariant as N -> inf. "bg" has a bias of O(1/N) for any
    Q; "ar" has none where the Y are fresh, independent and not remembered (num_past = 1), otherwise
    O(1/N) from their memory, the larger the slower they move.
    G must be bounded: one particle has all the weight where eta has lighter tails than pi, and
    `potential_ess` shows it.

    Args:
        log_density: of pi, (position, data) -> nats, up to a constant.
        auxiliary, arrays: eta; see `credence.methods.interacting.auxiliary`.
        kernel, settings: K. What its State holds must follow from the position (MALA, HMC, pCN,
            ULA: no momentum, no running mean), because jumps overwrite it.
        auxiliary_kernel, auxiliary_settings: Q, any kernel; None draws afresh from eta.
        jump_probability: eps in (0, 1]; 1 only jumps.
        jump: "bg" or "ar".
        selection: of "bg": "multinomial", as analysed; "stratified" or "systematic", with strata
            dealt out to the particles at random, which keep each particle's law and lower the
            variance of the cloud.
        composed: True moves by K first and then jumps (the authors' code); False is eq. (1), either
            or. Both leave pi invariant.
        num_past: how many of each particle's latest Y are jumped to (Andrieu et al., 2011, take
            all).
        synchronous: True throws one coin per step for all particles, so that steps without a jump
            compute no potential. Each particle has the same law as with a coin of its own: given
            the partners it moves by the same mixture, and the coin depends on no state (partners
            that jump themselves, of a ladder, have another joint law). Particles then jump
            together, so that means over the cloud vary a little more. It needs num_past = 1:
            between jumps there is nothing to remember.
        moves_last: True weighs the Y as this step finds them, jumps to these, and moves them along.
            That is for steps whose data are a random minibatch: a Y that has moved on the rows that
            weigh it has fitted their noise, and its log G is too high; as it is found it does not
            depend on them, and neither does X. The law of the cloud is the same, a step later.
        axes: names of the mapped axes along which the particles lie, outermost first.
    Raises:
        InputError: for fewer than 2 particles, a probability outside (0, 1], an unknown name, or
            a past of synchronous jumps.
    A Y of non-finite potential is never jumped to, and is_finite is False.
    """
    _check(jump_probability, jump, selection, num_past, synchronous)
    if composed and moves_last:
        raise InputError("composed=True jumps from where a particle has moved: moves_last=False.")
    system = _system(
        log_density, auxiliary, arrays, kernel, settings, auxiliary_kernel, auxiliary_settings
    )

    def init(position: Position, data: Data) -> InteractingState:
        return system.start(position, data, num_past, is_weighed=synchronous)

    def step(
        key: PRNGKeyArray, state: InteractingState, data: Data
    ) -> tuple[InteractingState, InteractingInfo]:
        key_auxiliary, key_move, key_jump = jax.random.split(key, 3)
        uniform = jax.random.uniform(key_jump, (4,))
        partner, partner_info = system.auxiliary.step(key_auxiliary, state.auxiliary, data)
        moved, info = system.target.step(key_move, state.target, data)
        origin = moved if composed else state.target
        weighed = state.auxiliary if moves_last else partner

        def jumped() -> _Jumped:
            past = system.remembered(state, weighed.position, data)
            cloud = everyone(past, axes)
            if jump == "bg":
                there = boltzmann_gibbs(
                    level_in_cloud(uniform[1:3], selection, axes), cloud, origin
                )
            else:
                num_filled = jnp.minimum(state.num_steps + 1, num_past)
                log_potential = system.log_potential(origin, data)
                there = accept_reject(uniform[1:], cloud, origin, log_potential, num_filled)
            return _Jumped(past, _potential_ess(cloud.log_potential), *there)

        def waited() -> _Jumped:
            ess = _potential_ess(everyone(state.past.log_potential, axes))
            rate = state.jump_acceptance_rate
            return _Jumped(state.past, ess, origin, rate, jnp.zeros((), bool))

        if synchronous:  # the first particle's coin is not mapped, so that XLA can branch on it
            is_jump = is_weighed = everyone(uniform[0], axes)[0] < jump_probability
            jumps = jax.lax.cond(is_jump, jumped, waited)
        else:
            is_jump, is_weighed = uniform[0] < jump_probability, jnp.ones((), bool)
            jumps = jumped()
        target = either(is_jump, jumps.there, moved)

        ess = jumps.potential_ess
        newest = jumps.past.log_potential[state.num_steps % num_past]
        values, gradients = system.work(
            moved, info, partner_info, is_weighed, compares=jump == "ar"
        )
        return InteractingState(
            target, partner, jumps.past, state.num_steps + 1, jumps.acceptance_rate
        ), InteractingInfo(
            _rate(info),
            _hottest(partner_info, "auxiliary_acceptance_rate", _rate(partner_info)),
            jumps.acceptance_rate,
            is_jump,
            is_jump & jumps.is_accepted,
            _hottest(partner_info, "log_potential", newest),
            jnp.minimum(ess, _hottest(partner_info, "potential_ess", ess)),
            info.is_finite & partner_info.is_finite & (jnp.isfinite(newest) | ~is_weighed),
            values,
            gradients,
        )

    return Kernel(init, step)


class _Jumped(NamedTuple):
    """What a jump would lead to, made or not."""

    past: Past
    potential_ess: Float[Array, ""]
    there: Any
    """State of the kernel K at the place that the jump leads to."""
    acceptance_rate: Float[Array, ""]
    is_accepted: Bool[Array, ""]


class _Pair(NamedTuple):
    """K, Q and the potential."""

    log_density: LogDensity
    density: Auxiliary
    arrays: Any
    target: Kernel
    auxiliary: Kernel

    def start(
        self, position: Position, data: Data, num_past: int, *, is_weighed: bool
    ) -> InteractingState:
        """X and Y at one place, and a past that is empty, or that place's potential."""
        target = self.target.init(position, data)
        slots = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (num_past, *leaf.shape)), target)
        log_potential = self.log_potential(target, data) if is_weighed else -jnp.inf
        past = Past(slots, jnp.full(num_past, log_potential, position.dtype))
        auxiliary, zero = self.auxiliary.init(position, data), jnp.zeros((), jnp.int32)
        return InteractingState(target, auxiliary, past, zero, jnp.ones((), position.dtype))

    def remembered(self, state: InteractingState, partner: Position, data: Data) -> Past:
        """The past with the newest Y in place of the oldest."""
        new = self.target.init(partner, data)
        log_potential = self.log_potential(new, data)
        newest = Past(new, jnp.where(jnp.isfinite(log_potential), log_potential, -jnp.inf))
        slot = state.num_steps % state.past.log_potential.shape[0]
        return jax.tree.map(lambda ring, leaf: ring.at[slot].set(leaf), state.past, newest)

    def log_potential(self, state: Any, data: Data) -> Float[Array, ""]:
        """log G where a state of K is."""
        known = getattr(state, "log_density", None)
        log_target = self.log_density(state.position, data) if known is None else known
        return self.density.log_potential(log_target, state.position, data, self.arrays)

    def work(
        self,
        state: Any,
        info: Any,
        partner_info: Any,
        is_weighed: Bool[Array, ""],
        *,
        compares: bool,
    ) -> tuple[Int[Array, ""], Int[Array, ""]]:
        """Log densities of the data, without and with gradient: of K, of Q where eta needs the
        data, and of the potentials.

        A first state of K at Y costs what it holds; where that is no log density, the potential at
        Y, and for a jump that compares at X, costs one more.
        """
        moves = [info, partner_info] if self.density.uses_data else [info]
        values, gradients = (sum(counts) for counts in zip(*map(step_work, moves), strict=True))
        first = first_work(state)
        if any(first):
            values += is_weighed * first.values
            gradients += is_weighed * first.gradients
        else:
            values += is_weighed * (2 if compares else 1) * self.density.evaluations_per_potential
        return jnp.asarray(values, jnp.int32), jnp.asarray(gradients, jnp.int32)


def _system(
    log_density: LogDensity,
    auxiliary: Auxiliary,
    arrays: Any,
    kernel: Callable[..., Kernel],
    settings: Settings,
    auxiliary_kernel: Callable[..., Kernel] | None,
    auxiliary_settings: Settings,
) -> _Pair:
    """Kernels of both densities."""

    def log_auxiliary(position: Position, data: Data) -> Float[Array, ""]:
        return auxiliary.log_density(position, data, arrays)

    if auxiliary_kernel is None:
        mover = _afresh(auxiliary, arrays)
    else:
        mover = auxiliary_kernel(log_auxiliary, **auxiliary_settings)
    return _Pair(log_density, auxiliary, arrays, kernel(log_density, **settings), mover)


class _Place(NamedTuple):
    """A position alone."""

    position: Position


class _Drawn(NamedTuple):
    """A draw is always good."""

    is_finite: Bool[Array, ""]


def _afresh(auxiliary: Auxiliary, arrays: Any) -> Kernel:
    """Independent exact draws of the auxiliary density."""
    sample = auxiliary.sample
    if sample is None:
        raise InputError(
            "This auxiliary density cannot be drawn from afresh: give auxiliary_kernel one that "
            "moves on it, such as mala."
        )

    def step(key: PRNGKeyArray, state: _Place, data: Data) -> tuple[_Place, _Drawn]:
        return _Place(sample(key, arrays)), _Drawn(jnp.ones((), bool))

    return Kernel(lambda position, data: _Place(position), step)


def _potential_ess(log_potential: Float[Array, "particle slot"]) -> Float[Array, ""]:
    """Zero where none is finite."""
    return jnp.nan_to_num(effective_sample_size(log_potential.ravel()))


def _rate(info: Any) -> Float[Array, ""]:
    """Acceptance rate; 1 of a kernel that accepts all."""
    return jnp.asarray(getattr(info, "acceptance_rate", 1.0), float)


def _hottest(partner_info: Any, name: str, own: Float[Array, ""]) -> Float[Array, ""]:
    """What the partners say of theirs, where they have any: see `tempered_ladder`."""
    return getattr(partner_info, name, own)


def _check(
    jump_probability: Scalar, jump: str, selection: str, num_past: int, synchronous: bool
) -> None:
    check_jumps(jump, selection)
    check_past(num_past, synchronous)
    if not isinstance(jump_probability, Tracer) and not 0 < jump_probability <= 1:
        raise InputError(
            f"jump_probability must be between 0 and 1, got {jump_probability}; 0.1 is usual."
        )
