"""How particles get from one level of nested networks to the next: the steps of multilevel SMC."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Float, PRNGKeyArray

from credence.density.data import Data
from credence.density.posterior import Posterior
from credence.engine.driver import Driver
from credence.methods.base import Drawn
from credence.methods.smc.bridge import Bridge
from credence.methods.smc.clouds import Cloud, Memory, share_at_end, step_weights, without_start
from credence.methods.smc.method import first_tuning, prior_draws, to_posterior
from credence.methods.smc.multilevel.levels import embedded, leading, to_either, to_level
from credence.methods.smc.multilevel.proposal import PROPOSALS
from credence.methods.smc.tempering import Tempering


class Members(NamedTuple):
    """Networks of one level, and how they count in the sum over levels."""

    position: Float[Any, "run particle weight"]
    weights: Float[Any, "run particle"]
    level: int


class AtLevel(NamedTuple):
    """What is known at a level."""

    memory: Memory
    """The weights lead to this level's posterior."""
    log_evidence: Float[Any, " run"]
    """Log evidence of this level's network, in nats, from the anchor of the data."""
    members: list[Members]
    """The level's term of the sum."""


@dataclass(frozen=True)
class CoupledLevels:
    """Levels, and what moves particles up them."""

    driver: Driver
    tempering: Tempering
    data: Data
    levels: Sequence[Posterior]
    counts: Sequence[int]
    proposal: str = "prior"
    """What new weights are drawn from, one of `PROPOSALS`."""
    num_tries: int = 1
    """Draws of the new weights for each particle."""
    direct_ess: float = 1.0
    """Effective share of the particles, by the mean weights of their tries, from which on no
    tempering leads to a level."""

    def first(self, key: PRNGKeyArray, memory: Memory) -> AtLevel:
        """Temper particles from the prior to the coarsest network's posterior, and move them there.

        They are moved once more because the coarsest level carries most of the sum's variance.
        """
        key_temper, key_move, key_resample = jax.random.split(key, 3)
        bridge, driver, data = self._posterior(0), self.driver, self.data
        _, memory = self.tempering.temper("temper", key_temper, driver, bridge, memory, data)
        moved = self.tempering.move(
            "sample", key_move, driver, bridge, memory, data, self.counts[0]
        )
        memory = memory._replace(
            key=jax.random.key_data(key_resample),
            cloud=jax.tree.map(jnp.asarray, moved.cloud),
            weights=jnp.full_like(memory.weights, 1 / self.counts[0]),
            tuning=moved.tuning,
            family=jnp.asarray(moved.family),
        )
        members = Members(moved.cloud.position, memory.weights, 0)
        return AtLevel(memory, memory.log_evidence, [members])

    def sequential(self, level: int, key: PRNGKeyArray, below: AtLevel) -> AtLevel:
        """Take particles from the level below to this one; they know the level below."""
        driver, data, tempering = self.driver, self.data, self.tempering
        key_move, key_new, key_weigh, key_resample, key_temper = jax.random.split(key, 5)
        (moved, *_), tuned, *_ = tempering.move(
            "mutate",
            key_move,
            driver,
            self._posterior(level - 1),
            without_start(below.memory),
            data,
            self.counts[level],
        )
        bridge = self._from_proposal(level)
        cloud = self.weighed(key_new, key_weigh, level, moved, self.num_tries)
        tuning = first_tuning(self.levels[level], tempering.mutation)
        tuning = tuning._replace(log_step_size=tuned.log_step_size)
        at_once = self.is_reached_at_once(cloud)
        if not at_once:  # particles are moved at the fine level, which is too dear for every try
            cloud = jax.tree.map(lambda leaf: leaf[:, :: self.num_tries], cloud)
        first = tempering.start(key_resample, cloud, tuning, at_once=at_once)
        later, memory = tempering.temper(
            "temper", key_temper, driver, bridge, first, data, keep_clouds=True
        )
        equal = np.full(moved.shape[:2], 1 / self.counts[level])
        fine_ones = Members(first.cloud.position, first.weights, level)
        members = [fine_ones, Members(moved, -equal, level - 1)]
        _, *steps = np.diff(memory.temperatures[: int(memory.stage) + 1])  # the first is `first`'s
        for step, cloud in zip(steps, later, strict=True):
            members.append(Members(cloud.position, step_weights(cloud, step) - equal, level))
        return AtLevel(memory, below.log_evidence + memory.log_evidence, members)

    def weighed(
        self,
        key_new: PRNGKeyArray,
        key_weigh: PRNGKeyArray,
        level: int,
        coarse_positions: Float[Any, "run particle old"],
        num_tries: int,
    ) -> Cloud:
        """Particles of the level below with new weights, that many draws each, and both
        likelihoods."""
        coarse, fine = self.levels[level - 1].model, self.levels[level].model
        every = jnp.repeat(coarse_positions, num_tries, axis=1)
        draw = PROPOSALS[self.proposal].draw
        positions = draw(key_new, every, self.data, coarse=coarse, fine=fine)
        bridge = self._from_proposal(level)
        return self.tempering.weigh("weigh", key_weigh, self.driver, bridge, positions, self.data)

    def is_reached_at_once(self, cloud: Cloud) -> bool:
        """Whether weights alone lead a cloud with all its tries to the end of its bridge."""
        least = min(self.direct_ess, self.tempering.mutation.ess_target)
        return bool(share_at_end(cloud, num_tries=self.num_tries) >= least)

    def compile_sequential(self, level: int) -> None:
        """Mutation below the level, and tempering to it."""
        self._compile(self._posterior(level - 1), level - 1, self.counts[level])
        self._compile(self._from_proposal(level), level, self.counts[level])

    def compile_independent(self, level: int) -> None:
        """Tempering from the prior."""
        self._compile(self._between(to_either, level), level, self.counts[level])

    def independent(self, level: int, key: PRNGKeyArray, below: AtLevel) -> AtLevel:
        """Temper from the prior to prior(w) max(L_coarse(w), L_fine(w)), and from there to both."""
        coarse, fine = self.levels[level - 1].model, self.levels[level].model
        driver, data, tempering = self.driver, self.data, self.tempering
        key_new, key_weigh, key_resample, key_temper, key_pair = jax.random.split(key, 5)
        keys = jax.random.split(key_new, (tempering.num_runs, self.counts[level]))
        positions = prior_draws(keys, data, model=fine)
        bridge = self._between(to_either, level)
        cloud = tempering.weigh("weigh", key_weigh, driver, bridge, positions, data)
        tuning = first_tuning(self.levels[level], tempering.mutation)
        memory = tempering.start(key_resample, cloud, tuning)
        _, memory = tempering.temper("temper", key_temper, driver, bridge, memory, data)
        pair = tempering.weigh(
            "reweigh",
            key_pair,
            driver,
            self._between(to_level, level),
            memory.cloud.position,
            data,
        )
        either = jnp.where(
            memory.weights > 0, jnp.log(memory.weights) - memory.cloud.log_end, -jnp.inf
        )
        to_coarse, to_fine = either + pair.log_start, either + pair.log_end
        small = leading(pair.position, data, coarse=coarse, fine=fine)
        members = [
            Members(pair.position, jax.nn.softmax(to_fine, axis=-1), level),
            Members(small, -jax.nn.softmax(to_coarse, axis=-1), level - 1),
        ]
        return AtLevel(memory, memory.log_evidence + logsumexp(to_fine, axis=-1), members)

    def telescoped(
        self, reached: Sequence[AtLevel], log_anchor: float, flops: Sequence[float]
    ) -> Drawn:
        """The sum over levels as one ensemble of embedded networks with signed weights.

        Args:
            flops: of the phases of every level.
        """
        finest = self.levels[-1].model
        parts = [(number, part) for number, each in enumerate(reached) for part in each.members]
        sizes = [part.weights.shape[1] for _, part in parts]
        num_runs = self.tempering.num_runs
        costs = [cost / (num_runs * n) for cost, n in zip(flops, self.counts, strict=True)]
        numbers = {
            "level": [part.level for _, part in parts],
            "increment": [number for number, _ in parts],
            "flops": [costs[number] for number, _ in parts],
            "num_temperatures": [int(reached[number].memory.stage) for number, _ in parts],
        }
        weights = np.concatenate([np.asarray(part.weights) for _, part in parts], axis=1)
        positions = [
            embedded(part.position, self.data, coarse=self.levels[part.level].model, fine=finest)
            for _, part in parts
        ]
        evidences = log_anchor + np.array([each.log_evidence for each in reached], float)
        of_levels = np.repeat(evidences[numbers["level"]], sizes, axis=0).T
        scalars = {"log_evidence": evidences[-1][:, None], "level_log_evidence": of_levels} | {
            name: np.repeat(np.asarray(values, float), sizes) for name, values in numbers.items()
        }
        return Drawn(
            np.concatenate(positions, axis=1),
            {name: np.broadcast_to(values, weights.shape) for name, values in scalars.items()},
            weights=weights / num_runs,
        )

    def _posterior(self, level: int) -> Bridge:
        posterior = self.levels[level]
        return to_posterior(posterior.model, posterior.num_weights)

    def _between(self, bridge: Callable[..., Bridge], level: int) -> Bridge:
        coarse, fine = self.levels[level - 1], self.levels[level]
        return bridge(coarse.model, fine.model, coarse.num_weights + fine.num_weights)

    def _from_proposal(self, level: int) -> Bridge:
        proposal = PROPOSALS[self.proposal]
        models = self.levels[level - 1].model, self.levels[level].model
        num_weights = sum(each.num_weights for each in self.levels[level - 1 : level + 1])
        extra = proposal.extra_weights(*models, self.data)
        return proposal.bridge(*models, num_weights + extra)

    def _compile(self, bridge: Bridge, level: int, num_particles: int) -> None:
        template = first_tuning(self.levels[level], self.tempering.mutation)
        self.tempering.compile(bridge, template, num_particles, self.data)


class Coupling(NamedTuple):
    """How a level's increment comes about."""

    climb: Callable[[CoupledLevels, int, PRNGKeyArray, AtLevel], AtLevel]
    compile: Callable[[CoupledLevels, int], None]
    """The programs that take long to compile, for a thread to do ahead of time."""


COUPLINGS = {
    "sequential": Coupling(CoupledLevels.sequential, CoupledLevels.compile_sequential),
    "independent": Coupling(CoupledLevels.independent, CoupledLevels.compile_independent),
}
