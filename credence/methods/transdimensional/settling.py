"""A warm-up in which chains settle at the sizes where they start, before they jump.

The noise that a chain has learnt is large at first. A few neurons are then enough, and the others
die before they could learn anything; where the noise is small in the end, births of single neurons
bring them back slowly or not at all. So the warm-up begins without jumps.
"""

from typing import Any, NamedTuple

import numpy as np

from credence.engine.blocks import Block
from credence.engine.phases import Adapter
from credence.kernels.base import Settings

SETTLING = 0.5
"""Share of the warm-up without jumps."""


class SettlingMemory(NamedTuple):
    """What the warm-up remembers."""

    others: Any
    """Memory of the adapter that tunes the kernel."""
    round: np.ndarray
    """Number of rounds done."""


def settling_first(adapter: Adapter, num_rounds: int) -> Adapter:
    """Return an adapter of the same settings, but without jumps for so many rounds."""

    def settings(memory: SettlingMemory) -> Settings:
        found = adapter.settings(memory.others)
        if memory.round >= num_rounds:
            return found
        return {**found, "num_jumps": np.zeros_like(found["num_jumps"])}

    def tuned(memory: SettlingMemory) -> Settings:
        return adapter.tuned(memory.others)

    def update(memory: SettlingMemory, block: Block) -> SettlingMemory:
        return SettlingMemory(adapter.update(memory.others, block), memory.round + 1)

    return Adapter(SettlingMemory(adapter.memory, np.zeros(())), settings, update, tuned=tuned)
