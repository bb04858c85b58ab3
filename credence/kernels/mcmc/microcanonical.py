"""Microcanonical Langevin Monte Carlo, with and without a Metropolis test.

A particle moves at constant speed and only its direction u, |u| = 1, feels the gradient. In
coordinates z = position / sqrt(inverse_mass) of dimension d (Robnik, De Luca, Silverstein &
Seljak, "Microcanonical Hamiltonian Monte Carlo", 2023)

    dz/dt = sqrt(d) u,    du/dt = sqrt(d) / (d - 1) (I - u u^T) g,    g = grad_z log density,

which leaves density(z) x uniform(u) invariant. The speed sqrt(d) gives step sizes and lengths the
meaning they have in Hamiltonian Monte Carlo, in any dimension. Leapfrog steps split the flow; the
direction's part is solved exactly (Ver Steeg & Galstyan, "Hamiltonian dynamics with
non-Newtonian momentum for rapid sampling", 2021).
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, UInt32

from credence.density.data import Data
from credence.density.posterior import LogDensity, Position
from credence.errors import InputError, require_positive
from credence.kernels.base import Kernel, Scalar, check_step_size, either, metropolis

GOLDEN = 2654435769
"""2^32 over the golden ratio: its multiples modulo 2^32 fill every interval evenly."""


class MicrocanonicalState(NamedTuple):
    """The position of a chain and the direction in which it is heading."""

    position: Position
    direction: Position
    """Unit vector; zero before the first step, which then draws it uniformly."""
    log_density: Float[Array, ""]
    gradient: Position
    num_steps: UInt32[Array, ""]
    """Number of steps so far."""


class MicrocanonicalInfo(NamedTuple):
    """What a step did."""

    energy_change: Float[Array, ""]
    """Error of the integrator in nats: 0 for the exact flow."""
    acceptance_rate: Float[Array, ""]
    """min(1, exp(-energy_change)); without a test 1, and 0 where the step was not finite."""
    is_divergent: Bool[Array, ""]
    """The energy change is above 1000 nats or not finite."""
    is_finite: Bool[Array, ""]
    num_gradients: Int[Array, ""]


def adjusted_mclmc(
    log_density: LogDensity,
    *,
    step_size: Scalar,
    inverse_mass: Float[Array, " weight"],
    trajectory_length: Scalar = 1.0,
    decoherence_length: Scalar = 2.0,
    max_integration_steps: int | None = None,
    varies: bool = True,
) -> Kernel:
    """Microcanonical Langevin Monte Carlo with a Metropolis test: exact for any settings.

    A step turns the direction a little, u <- normalise(c u + sqrt((1 - c^2) / d) xi) with
    c = exp(-trajectory length / decoherence_length), follows the flow for a trajectory and accepts
    its end with probability min(1, exp(-energy change)); a refused chain stays and turns back.
    This is generalised Hybrid Monte Carlo (Horowitz, 1991) with the microcanonical flow (Robnik,
    Cohn-Gordon & Seljak, "Metropolis adjusted microcanonical Hamiltonian Monte Carlo", 2025).
    Keeping the direction makes short trajectories pay, and these decorrelate predictions long
    before a U-turn would.

    Args:
        log_density: (position, data) -> log density, summed over all data, in nats.
        step_size: of the leapfrog, > 0, in units of the weights over sqrt(inverse_mass).
        inverse_mass: diagonal, about the posterior variances (weight,), at least two weights.
        trajectory_length: mean integration time of a step, in the unit of step_size. The number of
            leapfrogs varies evenly between half and one and a half times the mean (at least 1), the
            same for all chains, so that no period of the target is hit.
        decoherence_length: integration time in which the direction is forgotten; 0 forgets it at
            every step.
        max_integration_steps: bound on the leapfrogs of one step; trajectories are shorter then.
        varies: False makes all trajectories as long as the mean. Then any number of steps from a
            fresh direction, which is forgotten at the end, is reversible in position. For let R
            turn the direction, M be the Metropolis step of the flow and a flip of direction, and F
            a flip alone; a step is F M R. All three are self-adjoint, F R = R F, and a uniform
            direction is the same after R and F, so that the adjoint of n steps seen from outside,
            M R F M R F ... M, is itself. Trajectories of different lengths, in reverse order, would
            be other steps.
    Raises:
        InputError: if step_size is not > 0 or there is only one weight.
    A non-finite trajectory is refused: the position stays, is_finite is False.
    """
    check_step_size(step_size)
    flow = _Flow(log_density, inverse_mass)
    mean_leapfrogs = trajectory_length / step_size
    if max_integration_steps is not None:
        mean_leapfrogs = jnp.minimum(mean_leapfrogs, max_integration_steps / 1.5)

    def step(
        key: PRNGKeyArray, state: MicrocanonicalState, data: Data
    ) -> tuple[MicrocanonicalState, MicrocanonicalInfo]:
        key_direction, key_accept = jax.random.split(key)
        varied = varied_leapfrogs(state.num_steps, mean_leapfrogs)
        num_leapfrogs = varied if varies else _whole(mean_leapfrogs)
        memory = jnp.exp(-num_leapfrogs * step_size / decoherence_length)
        start = state._replace(direction=_turn(key_direction, state.direction, memory))

        def leapfrog(_: Int[Array, ""], carry: _Carry) -> _Carry:
            return flow.leapfrog(*carry, step_size, data)

        zero = jnp.zeros_like(state.log_density)
        end, kinetic_change = jax.lax.fori_loop(0, num_leapfrogs, leapfrog, (start, zero))
        energy_change = kinetic_change - (end.log_density - start.log_density)
        is_finite = jnp.isfinite(energy_change) & jnp.all(jnp.isfinite(end.gradient))
        acceptance_rate, is_accepted = metropolis(key_accept, -energy_change, is_finite)
        turned_back = start._replace(direction=-start.direction)
        new = either(is_accepted, end, turned_back)
        info = MicrocanonicalInfo(
            energy_change,
            acceptance_rate,
            ~is_finite | (energy_change > 1000.0),
            is_finite,
            num_leapfrogs,
        )
        return new._replace(num_steps=state.num_steps + 1), info

    return Kernel(flow.init, step)


def check_lengths(trajectory_length: float, decoherence_length: float) -> None:
    """Refuse lengths of `adjusted_mclmc` that are out of range."""
    require_positive(trajectory_length=trajectory_length)
    if not 0 <= decoherence_length < math.inf:
        raise InputError(
            f"decoherence_length must be >= 0 and finite, got {decoherence_length}; 2 is usual."
        )


def mclmc(
    log_density: LogDensity,
    *,
    step_size: Scalar,
    inverse_mass: Float[Array, " weight"],
    decoherence_length: Scalar = 2.0,
) -> Kernel:
    """Microcanonical Langevin Monte Carlo without a test: one leapfrog, half a turn on each side.

    Robnik & Seljak, "Fluctuation without dissipation: microcanonical Langevin Monte Carlo" (2023).
    Exact only as step_size -> 0; the bias of second moments is of order step_size^2. Arguments,
    errors and non-finite steps as in `adjusted_mclmc`.
    """
    check_step_size(step_size)
    flow = _Flow(log_density, inverse_mass)

    def step(
        key: PRNGKeyArray, state: MicrocanonicalState, data: Data
    ) -> tuple[MicrocanonicalState, MicrocanonicalInfo]:
        key_before, key_after = jax.random.split(key)
        memory = jnp.exp(jnp.divide(-0.5 * step_size, decoherence_length))
        start = state._replace(direction=_turn(key_before, state.direction, memory))
        zero = jnp.zeros_like(state.log_density)
        end, kinetic_change = flow.leapfrog(start, zero, step_size, data)
        energy_change = kinetic_change - (end.log_density - start.log_density)
        is_finite = jnp.isfinite(energy_change) & jnp.all(jnp.isfinite(end.gradient))
        end = end._replace(direction=_turn(key_after, end.direction, memory))
        turned_back = start._replace(direction=-start.direction)
        new = either(is_finite, end, turned_back)
        info = MicrocanonicalInfo(
            energy_change,
            is_finite.astype(energy_change.dtype),
            ~is_finite | (energy_change > 1000.0),
            is_finite,
            jnp.asarray(1, jnp.int32),
        )
        return new._replace(num_steps=state.num_steps + 1), info

    return Kernel(flow.init, step)


_Carry = tuple[MicrocanonicalState, Float[Array, ""]]
"""State along a trajectory and the kinetic energy gained since its start."""


class _Flow(NamedTuple):
    """The microcanonical dynamics of a target."""

    log_density: LogDensity
    inverse_mass: Float[Array, " weight"]

    def init(self, position: Position, data: Data) -> MicrocanonicalState:
        """A chain at rest.

        Raises:
            InputError: if there is only one weight: it could only move back and forth.
        """
        if position.size < 2:
            raise InputError("Microcanonical samplers need at least 2 weights, got 1: use hmc.")
        log_density, gradient = jax.value_and_grad(self.log_density)(position, data)
        rest, first = jnp.zeros_like(position), jnp.zeros((), jnp.uint32)
        return MicrocanonicalState(position, rest, log_density, gradient, first)

    def leapfrog(
        self,
        state: MicrocanonicalState,
        kinetic_change: Float[Array, ""],
        step_size: Scalar,
        data: Data,
    ) -> _Carry:
        """Half a kick, a drift, half a kick."""
        scale = jnp.sqrt(self.inverse_mass)
        speed = scale.size**0.5
        direction, first_kick = _kick(state.direction, scale * state.gradient, 0.5 * step_size)
        position = state.position + step_size * speed * scale * direction
        log_density, gradient = jax.value_and_grad(self.log_density)(position, data)
        direction, second_kick = _kick(direction, scale * gradient, 0.5 * step_size)
        new = MicrocanonicalState(position, direction, log_density, gradient, state.num_steps)
        return new, kinetic_change + first_kick + second_kick


def _kick(
    direction: Position, gradient: Position, time: Scalar
) -> tuple[Position, Float[Array, ""]]:
    """The exact flow of the direction for a constant gradient g, and the energy gained.

    With e = g / |g|, delta = time sqrt(d) |g| / (d - 1) and zeta = exp(-delta), u turns towards e
    in their plane:  u' ~ (1 - zeta) (1 + zeta + (u.e) (1 - zeta)) e + 2 zeta u,  and the energy
    gained, (d - 1) times the integral of u.e over delta (minus the log volume change), is
    (d - 1) log(cosh(delta) + (u.e) sinh(delta)).
    """
    d = direction.size
    norm = jnp.linalg.norm(gradient)
    towards = gradient / jnp.maximum(norm, jnp.finfo(norm.dtype).tiny)
    delta = time * d**0.5 / (d - 1) * norm
    zeta = jnp.exp(-delta)
    cosine = jnp.clip(direction @ towards, -1.0, 1.0)
    turned = (1 - zeta) * (1 + zeta + cosine * (1 - zeta)) * towards + 2 * zeta * direction
    # log(cosh + cosine sinh), written so that nothing overflows or cancels
    log_growth = delta + jnp.log1p(0.5 * (1 - cosine) * jnp.expm1(-2 * delta))
    return turned / jnp.linalg.norm(turned), (d - 1) * log_growth


def _turn(key: PRNGKeyArray, direction: Position, memory: Float[Array, ""]) -> Position:
    """Partial refreshment, reversible with respect to the uniform law on the sphere.

    A chain at rest, whose direction is zero, gets a new one however much it remembers.
    """
    noise = jax.random.normal(key, direction.shape, direction.dtype) / direction.size**0.5
    turned = memory * direction + jnp.sqrt(1 - memory**2) * noise
    turned = jnp.where(jnp.any(direction), turned, noise)
    return turned / jnp.linalg.norm(turned)


def varied_leapfrogs(num_steps: UInt32[Array, ""], mean: Scalar) -> Int[Array, ""]:
    """Number of leapfrogs, at least 1: a golden-ratio sequence from half to 1.5 times the mean."""
    fraction = (num_steps * jnp.uint32(GOLDEN)).astype(float) / 2.0**32
    return _whole(mean * (0.5 + fraction))


def _whole(leapfrogs: Scalar) -> Int[Array, ""]:
    """The nearest whole number of leapfrogs, at least 1."""
    return jnp.maximum(jnp.round(leapfrogs), 1.0).astype(jnp.int32)
