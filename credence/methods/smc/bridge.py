"""Particles between two targets: the mutation step of sequential Monte Carlo.

A `Bridge` is a path of densities; `mutation` moves a particle by any Markov kernel that leaves one
point of the path invariant. The particle carries its likelihoods, so that it can be weighted and
copied without evaluating anything again.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from credence.density.chunks import chunked
from credence.density.data import Data
from credence.density.posterior import LogDensity, Position
from credence.kernels.base import Kernel, Moves, Scalar, Settings, Work, first_work, repeated


class Tempered(NamedTuple):
    """Data, and where on the bridge: what a bridge's log density takes in place of data alone."""

    data: Data
    temperature: Scalar


@dataclass(frozen=True)
class Bridge:
    """The path prior(w) start(w)^(1 - t) end(w)^t from t = 0 to t = 1.

    Args:
        log_prior, log_start, log_end: (position, data) -> nats. Build a bridge once per model (a
            cached function), so that compiled programs are found again.
        num_weights: of the networks that one evaluation runs, for the count of work.
    """

    log_prior: LogDensity
    log_start: LogDensity
    log_end: LogDensity
    num_weights: int

    def __call__(self, position: Position, at: Tempered) -> Float[Array, ""]:
        """Log density on the path, in nats, fast for many particles."""
        return self._log_density(position, at)

    @cached_property
    def _log_density(self) -> Callable[[Position, Tempered], Float[Array, ""]]:
        def log_density(position: Position, at: Tempered) -> Float[Array, ""]:
            start, end = self.log_start(position, at.data), self.log_end(position, at.data)
            return self.log_prior(position, at.data) + between(start, end, at.temperature)

        return chunked(log_density)

    @cached_property
    def ends(self) -> tuple[LogDensity, LogDensity]:
        """log_start and log_end, fast for many particles."""
        return chunked(self.log_start), chunked(self.log_end)


class ParticleState(NamedTuple):
    """A particle and its log likelihoods at both ends of the bridge, whatever the temperature."""

    position: Position
    log_start: Float[Array, ""]
    log_end: Float[Array, ""]
    origin: Position
    """The position at which the particle came to the present temperature."""


class Terms(NamedTuple):
    """The terms of the log density on a bridge, at any temperature."""

    log_prior: Float[Array, ""]
    log_start: Float[Array, ""]
    log_end: Float[Array, ""]


class MutationInfo(NamedTuple):
    """What a mutation did."""

    acceptance_rate: Float[Array, ""]
    """Mean over its steps."""
    is_finite: Bool[Array, ""]
    distance: Float[Array, ""]
    """Squared distance from the origin, in squared units of the scale, averaged over the weights.
    """
    temperature: Float[Array, ""]
    log_start: Float[Array, ""]
    log_end: Float[Array, ""]
    num_evaluations: Int[Array, ""]
    num_gradients: Int[Array, ""]


def mutation(
    bridge: Bridge,
    *,
    build: Callable[..., Kernel],
    temperature: Scalar,
    num_steps: Int[Array, ""] | int,
    scale: Float[Array, " weight"],
    settings: Settings,
    carries_terms: bool = False,
) -> Kernel:
    """Steps of a kernel that leaves the bridge at one temperature invariant.

    Del Moral, Doucet & Jasra, "Sequential Monte Carlo samplers" (2006), section 3.3.2: with weights
    of the increments alone, the mutation only has to be invariant. All settings are arguments, so
    that no temperature needs a program of its own.

    Args:
        bridge: the path.
        build: of the kernel, whose State has `position` and `log_density`.
        temperature: t in [0, 1].
        num_steps: of the kernel; 0 only evaluates, or with carries_terms does nothing.
        scale: (weight,) standard deviations, the units of `distance`.
        settings: of the kernel.
        carries_terms: whether the kernel's State carries whatever terms its log density has, as
            that of `pcn`; the ends then need not be evaluated again after the last step.
    """
    log_start, log_end = bridge.ends

    def total(terms: Terms) -> Float[Array, ""]:
        return terms.log_prior + between(terms.log_start, terms.log_end, temperature)

    def terms(position: Position, data: Data) -> Terms:
        return Terms(
            bridge.log_prior(position, data), log_start(position, data), log_end(position, data)
        )

    def log_density(position: Position, data: Data) -> Float[Array, ""]:
        return bridge(position, Tempered(data, temperature))

    if carries_terms:
        kernel = build(terms, total=total, **settings)
    else:
        kernel = build(log_density, **settings)

    def init(position: Position, data: Data) -> ParticleState:
        start, end = log_start(position, data), log_end(position, data)
        return ParticleState(position, start, end, position)

    def step(
        key: PRNGKeyArray, state: ParticleState, data: Data
    ) -> tuple[ParticleState, MutationInfo]:
        known = Terms(bridge.log_prior(state.position, data), state.log_start, state.log_end)
        known = known if carries_terms else total(known)
        first = kernel.init(state.position, data)._replace(log_density=known)
        gradients = first_work(first).gradients  # the value is known
        none = Moves.none(state.log_end, Work(0, gradients))
        last, counts = repeated(kernel, key, first, data, num_steps, none)
        if carries_terms:
            _, *ends = last.log_density
            new = ParticleState(last.position, ends[0], ends[1], state.origin)
        else:
            new = init(last.position, data)._replace(origin=state.origin)
        moved = (new.position - new.origin) / scale
        return new, MutationInfo(
            counts.acceptance / jnp.maximum(num_steps, 1),
            counts.is_finite,
            jnp.mean(moved**2),
            jnp.asarray(temperature, moved.dtype),
            new.log_start,
            new.log_end,
            counts.evaluations + (not carries_terms),
            counts.gradients,
        )

    return Kernel(init, step)


class WeighingInfo(NamedTuple):
    """Log likelihoods at both ends of a bridge."""

    is_finite: Bool[Array, ""]
    log_start: Float[Array, ""]
    log_end: Float[Array, ""]
    num_evaluations: Int[Array, ""]


def weighing(bridge: Bridge) -> Kernel:
    """Evaluates both ends of a bridge; nothing moves."""
    log_start, log_end = bridge.ends

    def init(position: Position, data: Data) -> ParticleState:
        return ParticleState(position, log_start(position, data), log_end(position, data), position)

    def step(
        key: PRNGKeyArray, state: ParticleState, data: Data
    ) -> tuple[ParticleState, WeighingInfo]:
        new = init(state.position, data)
        is_finite = jnp.isfinite(new.log_start) & jnp.isfinite(new.log_end)
        once = jnp.ones((), jnp.int32)
        return new, WeighingInfo(is_finite, new.log_start, new.log_end, once)

    return Kernel(init, step)


def between(
    log_start: Float[Array, ""], log_end: Float[Array, ""], temperature: Scalar
) -> Float[Array, ""]:
    """(1 - t) log_start + t log_end; the end that does not count may be infinite."""
    start = jnp.where(temperature == 1, 0.0, (1 - temperature) * log_start)
    return start + jnp.where(temperature == 0, 0.0, temperature * log_end)
