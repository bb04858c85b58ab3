"""Warm-up of Hamiltonian samplers: step size and diagonal metric, pooled over chains.

A warm-up is a sequence of rounds, each one compiled block of steps with fixed settings. After a
round, on the host, the step size moves towards the target acceptance rate (damped Newton), and
at the end of windows that double in length, as in Stan, the metric becomes the pooled variance
within chains. All chains share settings, so a round of C chains is worth C rounds of one; the
program of the warm-up is that of sampling.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray
from scipy.special import ndtri

from credence.density.compiling import jit_quickly
from credence.density.posterior import LogDensity
from credence.engine.blocks import Block
from credence.engine.phases import Adapter
from credence.kernels.base import Settings

SMALLEST_VARIANCE = 1e-30
"""The least variance of a weight in a metric; under trace-class priors 1e-18 is usual."""


class Memory(NamedTuple):
    """What the warm-up remembers between rounds (numpy, fixed shapes)."""

    round: np.ndarray
    """Number of rounds done."""
    rounds_since_metric: np.ndarray
    """Rounds since the metric last changed."""
    log_step_size: np.ndarray
    mean_log_step_size: np.ndarray
    """Average since the metric last changed, its first round left out."""
    inverse_mass: Float[np.ndarray, " weight"]
    sum_of_squares: Float[np.ndarray, " weight"]
    """Squared deviations from each chain's mean of each round of the window."""
    degrees_of_freedom: np.ndarray


AddDraws = Callable[[Memory, Float[np.ndarray, "chain draw weight"]], Memory]
"""(memory, a round's draws) -> memory that knows them."""


def window_adaptation(
    step_size: float,
    inverse_mass: Float[Array, " weight"],
    *,
    num_rounds: int,
    target_acceptance_rate: float = 0.8,
    add_draws: AddDraws | None = None,
    order: float = 2.0,
    largest: float = np.inf,
) -> Adapter:
    """Adapter of `step_size` and `inverse_mass`; tuned to the averaged step size and last metric.

    Args:
        step_size, inverse_mass: where to start.
        num_rounds: blocks in the warm-up phase.
        target_acceptance_rate: .8 as in Stan.
        add_draws: what a round's draws say of the metric; by default their variances.
        order: of `newton_step`.
        largest: step size.
    """
    ends = metric_ends(num_rounds)
    zero = np.zeros(())
    first_metric = np.asarray(inverse_mass)
    start = Memory(
        zero,
        zero,
        np.log(np.asarray(step_size, float)),
        zero,
        first_metric,
        np.zeros_like(first_metric),
        zero,
    )

    def update(memory: Memory, block: Block) -> Memory:
        acceptance = float(np.mean(np.asarray(block.info["acceptance_rate"])))
        memory = move_step_size(memory, acceptance, target_acceptance_rate, order=order)
        memory = (add_draws or add_variances)(memory, np.asarray(block.draws))
        memory = memory._replace(round=memory.round + 1)
        memory = renew_metric(memory) if int(memory.round) in ends else memory
        return memory._replace(log_step_size=np.minimum(memory.log_step_size, np.log(largest)))

    def tuned(memory: Memory) -> Settings:
        mean_log_step_size = np.minimum(memory.mean_log_step_size, np.log(largest))
        return averaged(memory._replace(mean_log_step_size=mean_log_step_size))

    return Adapter(start, latest, update, tuned=tuned)


def first_window_adaptation(
    key: PRNGKeyArray,
    positions: Float[Array, "chain weight"],
    data: Any,
    *,
    log_density: LogDensity,
    num_rounds: int,
    target_acceptance_rate: float = 0.8,
    add_draws: AddDraws | None = None,
    order: float = 2.0,
    largest: float = np.inf,
) -> Adapter:
    """`window_adaptation` from a metric of 0.1 and a step size that is reasonable there."""
    inverse_mass = jnp.full(positions.shape[1], 0.1, positions.dtype)
    step_size = reasonable_step_size(key, positions, inverse_mass, data, log_density=log_density)
    return window_adaptation(
        float(step_size),
        inverse_mass,
        num_rounds=num_rounds,
        target_acceptance_rate=target_acceptance_rate,
        add_draws=add_draws,
        order=order,
        largest=largest,
    )


def latest(memory: Any) -> Settings:
    """The step size and the metric of the next round, of a memory such as `Memory`."""
    return _settings(memory, memory.log_step_size)


def averaged(memory: Any) -> Settings:
    """The settings to sample with: the averaged step size and the last metric."""
    return _settings(memory, memory.mean_log_step_size)


def _settings(memory: Any, log_step_size: Any) -> Settings:
    dtype = memory.inverse_mass.dtype
    return {"step_size": np.exp(log_step_size).astype(dtype), "inverse_mass": memory.inverse_mass}


def metric_ends(num_rounds: int) -> list[int]:
    """Rounds after which the metric is renewed: 2, 6, 14, 30, ..., the last at about 3/4."""
    last = max(1, (3 * num_rounds) // 4)
    ends, length, end = [], 2, 2
    while end + 2 * length <= last:
        ends.append(end)
        length *= 2
        end += length
    return [*ends, last]


def move_step_size(
    memory: Any,
    acceptance: float | Float[np.ndarray, "*rate"],
    target: float,
    *,
    most: float = 4.0,
    order: float = 2.0,
) -> Any:
    """Damped Newton steps on the log step size, and the running mean of the values used.

    Of several acceptance rates each moves a step size of its own.

    `memory` has `rounds_since_metric`, `log_step_size` and `mean_log_step_size`, as `Memory`; the
    other arguments are those of `newton_step`.
    """
    count = memory.rounds_since_metric + 1
    newton = newton_step(acceptance, target, most=most, order=order)
    log_step = memory.log_step_size + newton / np.sqrt(count)
    mean = (
        log_step
        if count < 2
        else memory.mean_log_step_size + (log_step - memory.mean_log_step_size) / (count - 1)
    )
    return memory._replace(
        rounds_since_metric=count, log_step_size=log_step, mean_log_step_size=np.asarray(mean)
    )


def newton_step(
    acceptance: float | Float[np.ndarray, "*rate"],
    target: float,
    *,
    most: float = 4.0,
    order: float = 2.0,
) -> np.floating | Float[np.ndarray, "*rate"]:
    """The change of the log step size that should make the acceptance rate the target.

    The step size grows at most `most` times; the root of the energy error is proportional to its
    power `order`, 2 for long leapfrog trajectories.

    For small steps h the energy error is about N(-m, 2 m) with m proportional to h^4, and the
    acceptance rate is a = 2 Phi(-sqrt(m / 2)) (Beskos et al., "Optimal tuning of the hybrid Monte
    Carlo algorithm", 2013): z(a) = -Phi^-1(a / 2) is proportional to h^order.
    """
    wanted, found = (-ndtri(0.5 * np.clip(a, 1e-3, 1 - 1e-3)) for a in (target, acceptance))
    return np.clip(np.log(wanted / found) / order, -np.log(4), np.log(most))


def same_metric(memory: Memory, draws: Float[np.ndarray, "chain draw weight"]) -> Memory:
    """Learn nothing of the metric from the draws: only the step size is tuned."""
    return memory


def add_variances(memory: Memory, draws: Float[np.ndarray, "chain draw weight"]) -> Memory:
    """Squared deviations from each chain's own mean: modes may differ between chains."""
    centred = draws - draws.mean(axis=1, keepdims=True)
    chains, steps, _ = draws.shape
    return memory._replace(
        sum_of_squares=memory.sum_of_squares + np.sum(centred**2, axis=(0, 1)),
        degrees_of_freedom=memory.degrees_of_freedom + chains * (steps - 1),
    )


def renew_metric(memory: Memory) -> Memory:
    """Pooled variances, their logarithms shrunk a little to the mean one; then a new window."""
    count = memory.degrees_of_freedom
    if count == 0:  # one draw per round says nothing
        return memory
    log_variance = np.log(np.maximum(memory.sum_of_squares / count, SMALLEST_VARIANCE))
    log_metric = (count * log_variance + 5 * np.mean(log_variance)) / (count + 5)
    rescale = 0.5 * np.mean(np.log(memory.inverse_mass) - log_metric)
    return memory._replace(
        rounds_since_metric=np.zeros(()),
        log_step_size=memory.log_step_size + rescale,
        mean_log_step_size=memory.log_step_size + rescale,
        inverse_mass=np.exp(log_metric).astype(memory.inverse_mass.dtype),
        sum_of_squares=np.zeros_like(memory.sum_of_squares),
        degrees_of_freedom=np.zeros(()),
    )


@partial(jit_quickly, static_argnames=("log_density", "num_steps"))
def reasonable_step_size(
    key: PRNGKeyArray,
    positions: Float[Array, "chain weight"],
    inverse_mass: Float[Array, " weight"],
    data: Any,
    *,
    log_density: LogDensity,
    num_steps: int = 1,
) -> Float[Array, ""]:
    """Largest of 4, 2, 1, ... whose leapfrog steps accept on average above one half, or 2^-17.

    Hoffman & Gelman (2014), heuristic of section 3.2.1, with one momentum per chain; found by
    bisection, as if acceptance fell with the size.
    """

    def acceptance(step_size: Float[Array, ""]) -> Float[Array, ""]:
        return trial_acceptance(
            key,
            positions,
            step_size,
            inverse_mass,
            data,
            log_density=log_density,
            num_steps=num_steps,
        )

    def halved(_: Any, bounds: tuple[Array, Array]) -> tuple[Array, Array]:
        good, bad = bounds
        middle = (good + bad) // 2
        is_good = acceptance(2.0 ** middle.astype(positions.dtype)) > 0.5
        return jnp.where(is_good, middle, good), jnp.where(is_good, bad, middle)

    exponents = jnp.asarray(-17), jnp.asarray(3)
    good, _ = jax.lax.fori_loop(0, 5, halved, exponents)  # 20 sizes
    return 2.0 ** good.astype(positions.dtype)


@partial(jax.jit, static_argnames=("log_density", "num_steps"))
def trial_acceptance(
    key: PRNGKeyArray,
    positions: Float[Array, "chain weight"],
    step_size: Float[Array, ""],
    inverse_mass: Float[Array, " weight"],
    data: Any,
    *,
    log_density: LogDensity,
    num_steps: int,
) -> Float[Array, ""]:
    """Mean acceptance rate of leapfrog trajectories from each chain's position, one momentum each.

    An unstable step size shows after a few steps: its errors grow exponentially.
    """
    value_and_grad = jax.vmap(jax.value_and_grad(log_density), (0, None))
    noise = jax.random.normal(key, positions.shape, positions.dtype)
    momentum = noise / jnp.sqrt(inverse_mass)
    value, grad = value_and_grad(positions, data)

    def leapfrog(_: Any, state: Any) -> Any:
        position, momentum, _, grad = state
        half = momentum + 0.5 * step_size * grad
        position = position + step_size * inverse_mass * half
        value, grad = value_and_grad(position, data)
        return position, half + 0.5 * step_size * grad, value, grad

    start = (positions, momentum, value, grad)
    _, end, new_value, _ = jax.lax.fori_loop(0, num_steps, leapfrog, start)
    kinetic = 0.5 * jnp.sum(inverse_mass * (momentum**2 - end**2), axis=-1)
    log_ratio = jnp.nan_to_num(new_value - value + kinetic, nan=-jnp.inf)
    return jnp.mean(jnp.exp(jnp.minimum(log_ratio, 0.0)))
