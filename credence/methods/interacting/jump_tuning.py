"""Warm-up of particles that jump: both linear kernels, and how often to jump."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from credence.adaptation.windows import Memory as Window
from credence.adaptation.windows import metric_ends
from credence.engine.blocks import Block
from credence.engine.phases import Adapter
from credence.kernels.base import Settings

PROBABILITIES = (0.01, 0.5)
"""Range of a jump probability that is tuned."""


class UntunedJumpsWarning(UserWarning):
    """The probability of a jump is as given, not as its target asks for."""


class Memory(NamedTuple):
    """What the warm-up remembers between rounds (numpy, fixed shapes)."""

    particles: Window
    """Step size and metric of K."""
    partners: Window | tuple[()]
    """What is remembered of Q; its metric is that of the particles. Fresh partners have none."""
    jump_acceptance: np.ndarray
    """Sum over the rounds with jumps."""
    rounds_with_jumps: np.ndarray


@dataclass(frozen=True)
class JumpTuning:
    """Tunes both kernels as `window_adaptation` does, without jumps until the metric is found: a
    jump to another mode says nothing about the width of one.

    Args:
        particles, partners: adapters of the kernels K and Q.
        settings: (of K, of Q, probability of a jump) -> settings of the whole kernel.
        num_rounds: blocks of the warm-up.
        jump_probability: where no rate is asked for.
        target_jump_rate: accepted jumps as a share of all steps.
        synchronous: whether particles jump in the same steps.
    """

    particles: Adapter
    partners: Adapter
    settings: Callable[[Settings, Settings, float], Settings]
    num_rounds: int
    jump_probability: float
    target_jump_rate: float | None
    synchronous: bool = False

    @property
    def adapter(self) -> Adapter:
        """The adapter that the driver is given."""
        zero = np.zeros(())
        first = Memory(self.particles.memory, self.partners.memory, zero, zero)
        return Adapter(first, self._settings, self._update, tuned=self._tuned)

    def _tuned(self, memory: Memory) -> Settings:
        """What the warm-up found; says so where it found no probability that was asked for."""
        if self.target_jump_rate is not None and memory.rounds_with_jumps == 0:
            warnings.warn(
                f"Time ended the warm-up before it had jumps: jump_probability stays "
                f"{self.jump_probability}, whatever target_jump_rate={self.target_jump_rate} asks "
                "for. Give more seconds, or fewer steps of warm-up.",
                UntunedJumpsWarning,
                stacklevel=3,
            )
        particles = self.particles.tuned(memory.particles)
        partners = self.partners.tuned(memory.partners)
        return self.settings(particles, partners, self._probability(memory))

    def _settings(self, memory: Memory) -> Settings:
        return self.settings(
            self.particles.settings(memory.particles),
            self.partners.settings(memory.partners),
            self._probability(memory) if self._has_jumps(memory) else 0.0,
        )

    def _update(self, memory: Memory, block: Block) -> Memory:
        counts = self._has_jumps(memory)
        info = {"acceptance_rate": block.info["auxiliary_acceptance_rate"]}
        tried, accepted = (
            np.mean(np.asarray(block.info[name], float)) for name in ("is_jump", "is_accepted_jump")
        )
        rate = np.mean(np.asarray(block.info["jump_acceptance_rate"], float))
        if self.synchronous:  # between jumps it is the latest one's
            counts = counts and tried > 0
            rate = accepted / max(tried, 1e-12)
        return Memory(
            self.particles.update(memory.particles, block),
            self.partners.update(memory.partners, block._replace(info=info)),
            memory.jump_acceptance + counts * rate,
            memory.rounds_with_jumps + int(counts),
        )

    def _has_jumps(self, memory: Memory) -> bool:
        return int(memory.particles.round) >= metric_ends(self.num_rounds)[-1]

    def _probability(self, memory: Memory) -> float:
        """The probability of a jump: as given, or so that the share of accepted jumps is its
        target."""
        target, count = self.target_jump_rate, float(memory.rounds_with_jumps)
        if target is None or count == 0:
            return self.jump_probability
        acceptance = float(memory.jump_acceptance) / count
        return float(np.clip(target / max(acceptance, 1e-6), *PROBABILITIES))
