"""Clouds of particles, weighed for the next temperature of a bridge and resampled.

What is true of a cloud, however its particles move: the next temperature, its weights, the evidence
so far, and who descends from whom.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, Int

from credence.kernels.resampling import RESAMPLING, effective_share, temperature_step
from credence.methods.smc.bridge import ParticleState
from credence.methods.smc.mutation import Tuning

MOST_TEMPERATURES = 500
"""A path that needs more is refused: its ends are too far apart for these particles."""
UNFELT = 1e-16
"""A temperature at which nothing of the likelihood is felt: `temperature_step` ends so near to 0
where more particles are impossible than the target of the ESS allows."""
LEAST_VARIANCE = 1e-30
"""The least variance of a weight in a cloud: single precision holds it, its root and inverse."""


class Cloud(NamedTuple):
    """Particles of all runs, with their log likelihoods at both ends of a bridge."""

    position: Float[Any, "*stage run particle weight"]
    log_start: Float[Any, "*stage run particle"]
    log_end: Float[Any, "*stage run particle"]


class Memory(NamedTuple):
    """What is known between blocks (fixed shapes)."""

    key: Array
    """Data of the key for resampling."""
    stage: Array
    temperature: Array
    """What the weights lead to, where particles move in the next block; 1 is the end."""
    cloud: Cloud
    weights: Float[Array, "run particle"]
    log_evidence: Float[Array, " run"]
    """Log of the evidence at the temperature over that at the start, in nats."""
    temperatures: Float[Array, " temperature"]
    """Those visited, from 0, then ones."""
    num_stuck: Array
    """Temperatures at which the particles stopped before they had moved enough."""
    tuning: Tuning
    family: Int[Array, "run particle"]
    """The particle of the first cloud, an independent draw, from which each descends."""


def without_start(memory: Memory) -> Memory:
    """Take the start's log likelihood out of a memory at the end of a bridge, where it does not
    count.

    What is left are the same particles on a bridge to there from the prior.
    """
    zero = jnp.zeros_like(memory.cloud.log_start)
    return memory._replace(cloud=memory.cloud._replace(log_start=zero))


def log_ratios(cloud: Cloud) -> Float[Array, "run particle"]:
    """What particles are weighed by: log of end over start; impossible ones have -inf."""
    ratios = cloud.log_end - cloud.log_start
    return jnp.where(jnp.isnan(ratios), -jnp.inf, ratios)


def step_weights(cloud: Cloud, step: Float[Any, ""]) -> Float[Array, "run particle"]:
    """Weights that lead a cloud a step further along the bridge."""
    return jax.nn.softmax(step * log_ratios(cloud), axis=-1)


@partial(jax.jit, static_argnames="num_tries")
def share_at_end(cloud: Cloud, *, num_tries: int) -> Float[Array, ""]:
    """Effective share of the particles that weights to the end of the bridge leave.

    Args:
        num_tries: successive ones are tries of one particle, which is judged by their mean weight.
    """
    ratios = log_ratios(cloud)
    tries = ratios.reshape(len(ratios), -1, num_tries)
    return effective_share(logsumexp(tries, axis=-1))


def is_finished(memory: Memory) -> bool:
    """Whether the weights lead to the end of the bridge."""
    return bool(memory.temperature == 1)


@partial(jax.jit, static_argnames=("target", "steps_in_stds"))
def weighed(memory: Memory, *, target: float, steps_in_stds: bool = True) -> Memory:
    """Weights for the next temperature, which keeps the target ESS; evidence and moments follow.

    Args:
        target: effective sample size of the weights, over the number of particles.
        steps_in_stds: whether the cloud's standard deviations are the unit of the steps.
    """
    cloud, left = memory.cloud, 1 - memory.temperature
    ratios = log_ratios(cloud)
    step = temperature_step(ratios, left, target)
    weights = step_weights(cloud, step)
    stage = memory.stage + 1
    temperature = jnp.where(step >= left, 1.0, memory.temperature + step).astype(left.dtype)
    mean = jnp.mean(jnp.einsum("rp,rpw->rw", weights, cloud.position), axis=0)
    std = cloud_std(cloud.position, weights, mean, memory.tuning.std)
    num_particles = jnp.asarray(ratios.shape[1], left.dtype)
    increment = logsumexp(step * ratios, axis=1) - jnp.log(num_particles)
    log_change = log_step_change(memory, temperature, std, steps_in_stds=steps_in_stds)
    return memory._replace(
        stage=stage,
        temperature=temperature,
        weights=weights,
        log_evidence=memory.log_evidence + increment,
        temperatures=memory.temperatures.at[stage].set(temperature),
        tuning=memory.tuning.at_next(mean, std, log_change),
    )


def cloud_std(
    position: Float[Array, "run particle weight"],
    weights: Float[Array, "run particle"],
    mean: Float[Array, " weight"],
    before: Float[Array, " weight"],
) -> Float[Array, " weight"]:
    """Standard deviations of the weights in a cloud, of any order of magnitude.

    Args:
        mean: of the cloud.
        before: what a weight keeps that is the same in all particles, which tells no scale.
    """
    squares = jnp.einsum("rp,rpw->rw", weights, (position - mean) ** 2)
    variance = jnp.mean(squares, axis=0)
    is_spread = (variance > 0) & jnp.any(position != position[0, 0], axis=(0, 1))
    return jnp.where(is_spread, jnp.sqrt(jnp.maximum(variance, LEAST_VARIANCE)), before)


def log_step_change(
    memory: Memory,
    temperature: Float[Array, ""],
    std: Float[Array, " weight"],
    *,
    steps_in_stds: bool,
) -> Float[Array, ""]:
    """Foresee the change of the step size's logarithm from the memory's temperature to the next.

    Along stiff directions of the log density its width falls by the root of what its curvature
    gains. On the way from the prior that is the root of the ratio of the temperatures. Where the
    unit of the steps has fallen as much, it is done. At temperature 0 no step has been tried, and
    just above it, where most particles were impossible, steps were tried on the prior alone; and
    on a bridge from one likelihood to another nothing is foreseen, since all weights but the new
    ones have all of a likelihood at every temperature.

    Args:
        std: of the cloud at the next temperature.
        steps_in_stds: as of `weighed`.
    """
    before = memory.temperature
    from_prior = jnp.all(memory.cloud.log_start == 0)
    is_felt = before > UNFELT
    ratio = jnp.where(from_prior, temperature / jnp.where(is_felt, before, 1.0), 1.0)
    of_units = jnp.mean(jnp.log(memory.tuning.std) - jnp.log(std)) if steps_in_stds else 0.0
    change = jnp.minimum(of_units - 0.5 * jnp.log(ratio), 0.0)
    return jnp.where(is_felt, change, 0.0).astype(std.dtype)


@partial(jax.jit, static_argnames=("scheme", "num"))
def ancestors(memory: Memory, *, scheme: str, num: int) -> Int[Array, "run chosen"]:
    """num particles per run, chosen by weight: the same ones whenever it is asked for."""
    key = jax.random.fold_in(jax.random.wrap_key_data(memory.key), memory.stage)
    keys = jax.random.split(key, len(memory.weights))
    return jax.vmap(lambda key, weights: RESAMPLING[scheme](key, weights, num))(
        keys, memory.weights
    )


@partial(jax.jit, static_argnames=("scheme", "num"))
def resampled(memory: Memory, *, scheme: str, num: int) -> ParticleState:
    """The `ancestors`, likelihoods with them; leaves (run * num, ...)."""
    chosen = ancestors(memory, scheme=scheme, num=num)
    cloud = jax.vmap(lambda cloud, index: jax.tree.map(lambda leaf: leaf[index], cloud))(
        memory.cloud, chosen
    )
    position, log_start, log_end = (leaf.reshape(-1, *leaf.shape[2:]) for leaf in cloud)
    return ParticleState(position, log_start, log_end, position)
