"""Warm-up of a mixture of jumps: how often each kind is tried."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from credence.engine.blocks import Block
from credence.engine.phases import Adapter
from credence.kernels.base import Settings
from credence.methods.transdimensional.moves.by_name import base_and_size

SHARED = 0.2
"""Share of the probability that all kinds divide equally.

What is refused now may be accepted elsewhere.
"""
KEPT = 0.9
"""Share of what earlier rounds found that every round keeps."""

Groups = Sequence[Sequence[str]]
"""Kinds of jump between widths, and between depths."""


class MixtureMemory(NamedTuple):
    """What the warm-up remembers, of all kinds of jump."""

    others: Any
    """Memory of the adapter that tunes everything else."""
    gained: Float[np.ndarray, " kind"]
    """Squared changes of the width or depth by each kind, in all."""
    spent: Float[np.ndarray, " kind"]
    """Likelihood evaluations spent on each kind, in all."""


def with_mixture(adapter: Adapter, groups: Groups) -> Adapter:
    """Return the adapter with `kind_probs` learnt beside its own settings.

    A kind is tried in proportion to its squared changes of the number of neurons or layers per
    evaluation of the likelihood, the efficiency of Pasarica & Gelman, "Adaptively scaling the
    Metropolis algorithm using expected squared jumped distance" (2010); and never given up.
    """
    sizes = np.array([base_and_size(name)[1] for group in groups for name in group], float)
    zeros = np.zeros(len(sizes))

    def settings(memory: MixtureMemory) -> Settings:
        return {**adapter.settings(memory.others), "kind_probs": kind_probs(memory, groups)}

    def tuned(memory: MixtureMemory) -> Settings:
        return {**adapter.tuned(memory.others), "kind_probs": kind_probs(memory, groups)}

    def update(memory: MixtureMemory, block: Block) -> MixtureMemory:
        summed = lambda name: np.asarray(block.info[name], float).sum(axis=(0, 1))  # noqa: E731
        return MixtureMemory(
            adapter.update(memory.others, block),
            KEPT * memory.gained + summed("num_jumps_accepted") * sizes**2,
            KEPT * memory.spent + summed("jump_cost"),
        )

    return Adapter(MixtureMemory(adapter.memory, zeros, zeros), settings, update, tuned=tuned)


def kind_probs(memory: MixtureMemory, groups: Groups) -> Float[np.ndarray, " kind"]:
    """Probabilities of all kinds, of sum 1 in every group."""
    found, start = [], 0
    for group in groups:
        part = slice(start, start + len(group))
        start = part.stop
        efficiency = memory.gained[part] / np.maximum(memory.spent[part], 1.0)
        total = efficiency.sum()
        share = efficiency / total if total > 0 else np.full(len(group), 1 / max(len(group), 1))
        found.append(SHARED / max(len(group), 1) + (1 - SHARED) * share)
    return np.concatenate(found).astype(np.float32)
