"""Clouds of weighted particles, moved from one density to another by tempering.

What `smc` and `mlsmc` share. A phase of the driver mutates all particles of all runs at one
temperature per block; between blocks they are weighed for the next temperature and resampled.
Runs share temperatures and settings but no particles: their spread is the Monte Carlo error.
"""

import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from credence.density.data import Data
from credence.engine.blocks import Block, chain_devices, run_block, spread
from credence.engine.driver import Driver
from credence.engine.phases import Adapter, PhaseResult
from credence.engine.plan import Plan
from credence.errors import InputError, OutOfTime, plural
from credence.kernels.base import Recipe
from credence.methods.smc.bridge import Bridge, ParticleState, weighing
from credence.methods.smc.clouds import (
    MOST_TEMPERATURES,
    Cloud,
    Memory,
    ancestors,
    is_finished,
    resampled,
    weighed,
)
from credence.methods.smc.mutation import Mutation, StuckParticlesWarning, Tuning


class Moved(NamedTuple):
    """An equally weighted cloud at the end of a bridge."""

    cloud: Cloud
    tuning: Tuning
    acceptance_rate: Float[np.ndarray, "run particle"]
    family: Int[np.ndarray, "run particle"]
    """Number of each particle's ancestor at the start, as in `Memory.family`."""


class Look(NamedTuple):
    """What is known of particles between looks at how far they have moved (fixed shapes)."""

    tuning: Tuning
    cloud: Cloud
    """The last one alone: those of all looks might not fit in memory."""


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

    def start(
        self, key: PRNGKeyArray, cloud: Cloud, tuning: Tuning, *, at_once: bool = False
    ) -> Memory:
        """A cloud at temperature 0, weighed for the first step.

        Args:
            at_once: whether that step goes to the end of the bridge, whatever is left of the ESS.
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
        return self._weighed(blank, 0.0 if at_once else self.mutation.ess_target)

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
        self._warn(name, int(memory.num_stuck), int(memory.stage) - 1)
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
        shape, dtype = (self.num_runs, num_particles), memory.cloud.position.dtype
        position = np.zeros((*shape, memory.cloud.position.shape[-1]), dtype)
        adapter = Adapter(
            Look(memory.tuning.afresh(), Cloud(position, *np.zeros((2, *shape), dtype))),
            lambda look: self.mutation.settings(look.tuning, memory.temperature),
            lambda look, block: Look(
                self.mutation.after(look.tuning, block.info), self._cloud_of(block)
            ),
            lambda look: self.mutation.is_done(look.tuning),
        )
        plan = self._plan(bridge, name, adapter, keep_draws=False)
        phase = driver.phase(name, key, plan, states, data)
        tuning, cloud = phase.memory
        self._warn(name, int(self.mutation.is_stuck(tuning)), 1)
        rates = phase.info["acceptance_rate"][:, -self.chain_length :]
        families = self._families(memory, num_particles)
        return Moved(cloud, tuning, rates.reshape(self.num_runs, -1), np.asarray(families))

    def compile(self, bridge: Bridge, template: Tuning, num_particles: int, data: Data) -> None:
        """Compile the program that moves so many particles of every run along a bridge.

        Nothing is run, and what is there already is not compiled again.

        Args:
            template: of the tuning.
        """
        num_chains = self.num_runs * (num_particles // self.chain_length)
        zero = jnp.zeros((num_chains, len(template.std)), template.std.dtype)
        nothing = jnp.zeros(num_chains, zero.dtype)
        settings = self.mutation.settings(template, jnp.zeros((), zero.dtype))
        devices = chain_devices(num_chains)
        run_block.lower(
            jax.random.key(0),
            spread(ParticleState(zero, nothing, nothing, zero), devices),
            settings,
            data,
            recipe=self.mutation.recipe(bridge),
            num_draws=self.chain_length,
            thinning=1,
            batch_size=None,
            devices=devices,
            wanted=self.chain_length,
        ).compile()

    def resampled(self, memory: Memory, num_chains: int) -> ParticleState:
        """Particles of every run, equally weighted, likelihoods with them."""
        return resampled(memory, scheme=self.mutation.resampling, num=num_chains)

    def _weighed(self, memory: Memory, ess_target: float) -> Memory:
        """Weigh for the next temperature."""
        return weighed(memory, target=ess_target, steps_in_stds=self.mutation.steps_in_stds)

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
        cloud, before = self._cloud_of(block), memory.temperature
        family = self._families(memory, memory.weights.shape[1])
        memory = memory._replace(cloud=cloud, num_stuck=num_stuck, family=family)
        memory = self._weighed(memory, self.mutation.ess_target)
        stage, temperature = int(memory.stage), float(memory.temperature)
        if stage > MOST_TEMPERATURES or not temperature > before:
            why = (
                f"{stage} temperatures did not suffice"
                if temperature > before
                else f"no temperature above {temperature:.3g} leaves enough of them"
            )
            raise InputError(
                f"The particles cannot follow: {why}. Use more particles, a smaller ess_target, or "
                "a prior nearer to the data."
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

    def _cloud_of(self, block: Block) -> Cloud:
        """The particles after a block."""
        return jax.tree.map(lambda leaf: leaf[0], self._clouds(block.draws, block.info))

    def _clouds(self, draws: Any, info: Any) -> Cloud:
        """(run and chain, stage and draw, ...) as clouds (stage, run, particle, ...)."""

        def stages(values: Any) -> np.ndarray:
            rest = values.shape[2:]
            shape = self.num_runs, len(values) // self.num_runs, -1, self.chain_length, *rest
            split = np.moveaxis(np.asarray(values).reshape(shape), 2, 0)
            return split.reshape(len(split), self.num_runs, -1, *rest)

        return Cloud(stages(draws), stages(info["log_start"]), stages(info["log_end"]))
