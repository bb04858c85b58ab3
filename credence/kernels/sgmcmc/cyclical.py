"""Cyclical step sizes: a stochastic gradient sampler explores, then samples, again and again."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, PRNGKeyArray

from credence.density.data import Data
from credence.density.posterior import LogDensity, Position
from credence.kernels.base import Kernel, Scalar, check_step_size


class CyclicalState(NamedTuple):
    """The inner kernel's state and the steps so far."""

    inner: Any
    num_steps: Int[Array, ""]

    @property
    def position(self) -> Any:
        """The inner kernel's position, leaves (weight,) or with chains in front."""
        return self.inner.position


class CyclicalInfo(NamedTuple):
    """What a step did."""

    is_finite: Bool[Array, ""]
    is_exploring: Bool[Array, ""]
    """Whether the step went without noise, towards another mode: it is then not a draw."""
    num_gradients: Int[Array, ""]


def cyclical(
    log_density: LogDensity,
    *,
    kernel: Callable[..., Kernel],
    steps_per_cycle: Int[Array, ""] | int,
    exploration_share: Scalar,
    step_size: Scalar,
    **settings: Any,
) -> Kernel:
    """A kernel whose step size falls along a cosine in every cycle.

    Zhang, Li, Zhang, Chen & Wilson, "Cyclical stochastic gradient MCMC for Bayesian deep learning"
    (2020), eq. (1) and algorithm 1: a share r of a cycle done, the step size is
    (step_size / 2) (cos(pi r) + 1); while r < exploration_share the temperature is 0.

    The law of the draws is that of the inner kernel, biased by its step sizes. A step that is not
    finite is refused by it, and is_finite is False.

    Args:
        log_density: (position, data) -> log density, summed over all data, in nats.
        kernel: builder with settings `step_size` and `temperature`: `ula`, `sghmc`, ...
        steps_per_cycle: length of a cycle.
        exploration_share: share of each cycle spent exploring, in [0, 1).
        step_size: the largest, at the start of a cycle, > 0, in the kernel's unit.
        settings: the others of the kernel.
    Raises:
        InputError: if step_size is not > 0.
    """
    check_step_size(step_size)

    def at(num_steps: Int[Array, ""]) -> tuple[Kernel, Bool[Array, ""]]:
        """The inner kernel at a step, and whether it explores."""
        done = (num_steps % steps_per_cycle) / steps_per_cycle
        is_exploring = done < exploration_share
        size = 0.5 * step_size * (jnp.cos(jnp.pi * done) + 1)
        return kernel(
            log_density,
            step_size=size,
            temperature=jnp.where(is_exploring, 0.0, 1.0),
            **settings,
        ), is_exploring

    def init(position: Position, data: Data) -> CyclicalState:
        first = jnp.zeros((), jnp.int32)
        return CyclicalState(at(first)[0].init(position, data), first)

    def step(
        key: PRNGKeyArray, state: CyclicalState, data: Data
    ) -> tuple[CyclicalState, CyclicalInfo]:
        inner, is_exploring = at(state.num_steps)
        new, info = inner.step(key, state.inner, data)
        return CyclicalState(new, state.num_steps + 1), CyclicalInfo(
            info.is_finite, is_exploring, info.num_gradients
        )

    return Kernel(init, step)
