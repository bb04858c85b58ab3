"""Clouds of weighted particles, moved from one density to another by tempering.

What `smc` and `mlsmc` share. A phase of the driver mutates all particles of all runs at one
temperature per block; between blocks they are weighed for the next temperature and resampled.
Runs share temperatures and settings but no particles: their spread is the Monte Carlo error.
"""

import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from credence.density.posterior import Data
from credence.engine.blocks import Block, chain_devices, run_block, spread
from credence.engine.driver import Driver
from credence.engine.phases import Adapter, PhaseResult
from credence.engine.plan import Plan
from credence.errors import InputError, OutOfTime, plural
from credence.kernels.base import Recipe
from credence.kernels.resampling import RESAMPLING, temperature_step
from credence.methods.smc.bridge import Bridge, ParticleState, weighing
from credence.methods.smc.mutation import Mutation, StuckParticlesWarning, Tuning

MOST_TEMPERATURES = 500
"""A path that needs more is refused: its ends are too far apart for these particles."""


class Cloud(NamedTuple):
    """Particles of all runs, with their log likelihoods at both ends of a bridge."""

    position: Float[Any, "*stage run particle weight"]
    log_start: Float[Any, "*stage run particle"]
    log_end: Float[Any, "*stage run particle"]


class Moved(NamedTuple):
    """An equally weighted cloud at the end of a bridge."""

    cloud: Cloud
    tuning: Tuning
    acceptance_rate: Float[np.ndarray, "run particle"]
    family: Int[np.ndarray, "run particle"]
    """Number of each particle's ancestor at the start, as in `Memory.family`."""


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


@dataclass(frozen=True)
class Tempering:
    """Moves clouds along bridges, each in a phase whose name is its cost class.

    Args:
        mutation: how particles move.
        num_runs: independent runs.
        chain_length: draws that each moving particle leaves at every temperature; all are the next
            cloud. 1 is standard SMC, more is waste-free SMC (Dau & Chopin, "Waste-free sequential
            Monte Carlo", 2022).
    """

    mutation: Mutation
    num_runs: int
    chain_length: int = 1

    def weigh(
        self,
        name: str,
        key: PRNGKeyArray,
        driver: Driver,
        bridge: Bridge,
        positions: Float[Array, "run particle weight"],
        data: Data,
    ) -> Cloud:
        """Particles with their likelihoods, in a phase of its own, so that the work is counted."""
        shape = positions.shape
        flat = positions.reshape(-1, shape[-1])
        zero = jnp.zeros(len(flat), flat.dtype)
        plan = Plan(
            Recipe(weighing, bridge),
            name,
            num_steps=1,
            keep_draws=False,
            num_weights=bridge.num_weights,
        )
        phase = driver.phase(name, key, plan, ParticleState(flat, zero, zero, flat), data)
        leaves = map(np.asarray, phase.states[:3])
        return Cloud(*(leaf.reshape(*shape[:2], *leaf.shape[1:]) for leaf in leaves))

    def start(self, key: PRNGKeyArray, cloud: Cloud, tuning: Tuning) -> Memory:
        """A cloud at temperature 0, weighed for the first step.

        Raises:
            InputError: where no particle of a run has a likelihood above zero.
        """
        runs, particles, _ = cloud.position.shape
        dtype = cloud.position.dtype
        if not np.all(np.any(np.isfinite(cloud.log_end), axis=1)):
            raise InputError(
                "The likelihood is zero or not a number at every particle of a run: use a wider "
                "prior, more particles, or a likelihood with heavier tails."
            )
        ones = jnp.ones(MOST_TEMPERATURES + 2, dtype)
        blank = Memory(
            jax.random.key_data(key),
            jnp.zeros((), jnp.int32),
            jnp.zeros((), dtype),
            cloud,
            jnp.full((runs, particles), 1 / particles, dtype),
            jnp.zeros(runs, dtype),
            ones.at[0].set(0.0),
            jnp.zeros((), jnp.int32),
            tuning,
            jnp.broadcast_to(jnp.arange(particles), (runs, particles)),
        )
        return self._weighed(blank)

    def temper(
        self,
        name: str,
        key: PRNGKeyArray,
        driver: Driver,
        bridge: Bridge,
        memory: Memory,
        data: Data,
        *,
        keep_clouds: bool = False,
    ) -> tuple[list[Cloud], Memory]:
        """Move a cloud until its weights lead to the end of the bridge.

        Returns:
            With keep_clouds, those that were weighed after the first; and the memory at the end.
        Raises:
            OutOfTime: where time ran out on the way.
        """
        if is_finished(memory):
            return [], memory
        states = self.resampled(memory, memory.weights.shape[1] // self.chain_length)
        adapter = Adapter(memory, self._settings, self._update, is_finished, self._rearrange)
        plan = self._plan(bridge, name, adapter, keep_draws=keep_clouds)
        phase = driver.phase(name, key, plan, states, data)
        memory = phase.memory
        if not is_finished(memory):
            raise OutOfTime(
                f"Time ran out in phase '{name}' at temperature {float(memory.temperature):.3g}, "
                "before the posterior was reached: resume with more seconds, or use fewer "
                "particles."
            )
        self._warn(name, int(memory.num_stuck), int(memory.stage))
        return self._weighed_clouds(phase) if keep_clouds else [], memory

    def move(
        self,
        name: str,
        key: PRNGKeyArray,
        driver: Driver,
        bridge: Bridge,
        memory: Memory,
        data: Data,
        num_particles: int,
    ) -> Moved:
        """Resample particles at the end of the bridge, and move them there."""
        states = self.resampled(memory, num_particles // self.chain_length)
        adapter = Adapter(
            memory.tuning.afresh(),
            lambda tuning: self.mutation.settings(tuning, memory.temperature),
            lambda tuning, block: self.mutation.after(tuning, block.info),
            self.mutation.is_done,
        )
        plan = self._plan(bridge, name, adapter, keep_draws=True)
        phase = driver.phase(name, key, plan, states, data)
        self._warn(name, int(self.mutation.is_stuck(phase.memory)), 1)
        cloud = jax.tree.map(lambda leaf: leaf[-1], self._clouds(phase.draws, phase.info))
        rates = phase.info["acceptance_rate"][:, -self.chain_length :]
        families = self._families(memory, num_particles)
        return Moved(cloud, phase.memory, rates.reshape(self.num_runs, -1), np.asarray(families))

    def compile(self, bridge: Bridge, template: Tuning, num_particles: int, data: Data) -> None:
        """Compile the program that moves so many particles of every run along a bridge.

        Args:
            template: of the tuning.
        """
        num_chains = self.num_runs * (num_particles // self.chain_length)
        zero = jnp.zeros((num_chains, len(template.std)), template.std.dtype)
        nothing = jnp.zeros(num_chains, zero.dtype)
        settings = self.mutation.settings(template, jnp.zeros((), zero.dtype))
        devices = chain_devices(num_chains)
        run_block(
            jax.random.key(0),
            spread(ParticleState(zero, nothing, nothing, zero), devices),
            {**settings, "num_steps": np.zeros((), np.int32)},
            data,
            recipe=self.mutation.recipe(bridge),
            num_draws=self.chain_length,
            thinning=1,
            batch_size=None,
            devices=devices,
            wanted=self.chain_length,
        )

    def _weighed(self, memory: Memory) -> Memory:
        mutation = self.mutation
        return weighed(memory, target=mutation.ess_target, steps_in_stds=mutation.steps_in_stds)

    def resampled(self, memory: Memory, num_chains: int) -> ParticleState:
        """Particles of every run, equally weighted, likelihoods with them."""
        return resampled(memory, scheme=self.mutation.resampling, num=num_chains)

    def _families(self, memory: Memory, num_particles: int) -> Int[Array, "run particle"]:
        """Families of `num_particles` particles, resampled from the memory and then moved."""
        num_chains = num_particles // self.chain_length
        chosen = ancestors(memory, scheme=self.mutation.resampling, num=num_chains)
        of_chains = jnp.take_along_axis(memory.family, chosen, axis=1)
        return jnp.repeat(of_chains, self.chain_length, axis=1)

    def _plan(self, bridge: Bridge, cost_class: str, adapter: Adapter, *, keep_draws: bool) -> Plan:
        """The plan of a phase that moves particles, which are no chains: R-hat says nothing."""
        return Plan(
            self.mutation.recipe(bridge),
            cost_class,
            adapter,
            num_steps=None,
            block_steps=self.chain_length,
            keep_draws=keep_draws,
            monitored=False,
            num_weights=bridge.num_weights,
        )

    def _warn(self, name: str, num_stuck: int, num_temperatures: int) -> None:
        if num_stuck:
            warnings.warn(
                f"In phase '{name}' the particles stopped before they had moved enough, at "
                f"{num_stuck} of {plural(num_temperatures, 'temperature')}: evidence and posterior "
                "may be off by more than the runs differ. Allow more steps, or use the kernel "
                "'hmc', or more particles.",
                StuckParticlesWarning,
                stacklevel=2,
            )

    def _settings(self, memory: Memory) -> Any:
        return self.mutation.settings(memory.tuning, memory.temperature)

    def _update(self, memory: Memory, block: Block) -> Memory:
        tuning = self.mutation.after(memory.tuning, block.info)
        memory = memory._replace(tuning=tuning)
        if not self.mutation.is_done(tuning):
            return memory
        num_stuck = memory.num_stuck + self.mutation.is_stuck(tuning)
        cloud = jax.tree.map(lambda leaf: leaf[0], self._clouds(block.draws, block.info))
        before = memory.temperature
        family = self._families(memory, memory.weights.shape[1])
        memory = memory._replace(cloud=cloud, num_stuck=num_stuck, family=family)
        memory = self._weighed(memory)
        if int(memory.stage) > MOST_TEMPERATURES or not memory.temperature > before:
            raise InputError(
                f"The particles cannot follow: {int(memory.stage)} temperatures did not suffice. "
                "Use more particles, a smaller ess_target, or a prior nearer to the data."
            )
        return memory

    def _rearrange(self, memory: Memory, block: Block) -> Any:
        is_new = int(memory.tuning.steps_taken) == 0
        if is_finished(memory) or not is_new:
            return block.states
        return self.resampled(memory, memory.weights.shape[1] // self.chain_length)

    def _weighed_clouds(self, phase: PhaseResult) -> list[Cloud]:
        """The last cloud at every temperature."""
        clouds = self._clouds(phase.draws, phase.info)
        temperature = phase.info["temperature"][0, :: self.chain_length]
        is_last = np.append(np.diff(temperature) != 0, True)
        return [
            jax.tree.map(lambda leaf: leaf[index], clouds)  # noqa: B023
            for index in np.flatnonzero(is_last)
        ]

    def _clouds(self, draws: Any, info: Any) -> Cloud:
        """(run and chain, stage and draw, ...) as clouds (stage, run, particle, ...)."""

        def stages(values: Any) -> np.ndarray:
            rest = values.shape[2:]
            shape = self.num_runs, len(values) // self.num_runs, -1, self.chain_length, *rest
            split = np.moveaxis(np.asarray(values).reshape(shape), 2, 0)
            return split.reshape(len(split), self.num_runs, -1, *rest)

        return Cloud(stages(draws), stages(info["log_start"]), stages(info["log_end"]))


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
    variance = jnp.einsum("rp,rpw->rw", weights, (cloud.position - mean) ** 2)
    std = jnp.sqrt(jnp.mean(variance, axis=0) + 1e-12)
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
    unit of the steps has fallen as much, it is done. At temperature 0 no step has been tried; and
    on a bridge from one likelihood to another nothing is foreseen, since all weights but the new
    ones have all of a likelihood at every temperature.

    Args:
        std: of the cloud at the next temperature.
        steps_in_stds: as of `weighed`.
    """
    before = memory.temperature
    from_prior = jnp.all(memory.cloud.log_start == 0)
    ratio = jnp.where(from_prior, temperature / jnp.where(before > 0, before, 1.0), 1.0)
    of_units = jnp.mean(jnp.log(memory.tuning.std) - jnp.log(std)) if steps_in_stds else 0.0
    change = jnp.minimum(of_units - 0.5 * jnp.log(ratio), 0.0)
    return jnp.where(before > 0, change, 0.0).astype(std.dtype)


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
