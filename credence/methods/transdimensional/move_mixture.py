"""Warm-up of a mixture of jumps: how often each kind is tried, and how many go with a step."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from credence.engine.blocks import Block
from credence.engine.phases import Adapter
from credence.kernels.base import Settings
from credence.methods.transdimensional.kernel import FIRST_JUMPS
from credence.methods.transdimensional.moves.by_name import base_and_size

SHARED = 0.2
"""Share of the work that all kinds divide equally.

What is refused now may be accepted elsewhere.
"""
KEPT = 0.9
"""Share of what earlier rounds found that every round keeps."""
MOST_JUMPS = 100
"""Jumps per step that a warm-up may find right."""

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
    tried: Float[np.ndarray, " kind"]
    """Jumps of each kind, in all."""
    num_jumps: Float[np.ndarray, ""]
    """Jumps per step of the next round."""


def with_mixture(
    adapter: Adapter, groups: Groups, *, num_jumps: int | None, is_tuned: bool
) -> Adapter:
    """Return the adapter with `num_jumps` and `kind_probs` beside its own settings.

    A kind gets work in proportion to its squared changes of the number of neurons or layers per
    evaluation of the likelihood, the efficiency of Pasarica & Gelman, "Adaptively scaling the
    Metropolis algorithm using expected squared jumped distance" (2010); and is never given up.

    Args:
        groups: kinds of jump.
        num_jumps: per step; None learns it: so many that jumps take as much work as the step.
        is_tuned: whether it is learnt how often each kind is tried; otherwise all of a group are
            equally likely.
    """
    sizes = np.array([base_and_size(name)[1] for group in groups for name in group], float)
    zeros = np.zeros(len(sizes))

    def of_jumps(memory: MixtureMemory) -> Settings:
        found: Settings = {"num_jumps": np.asarray(round(float(memory.num_jumps)), np.int32)}
        return {**found, "kind_probs": kind_probs(memory, groups)} if is_tuned else found

    def settings(memory: MixtureMemory) -> Settings:
        return {**adapter.settings(memory.others), **of_jumps(memory)}

    def tuned(memory: MixtureMemory) -> Settings:
        return {**adapter.tuned(memory.others), **of_jumps(memory)}

    def update(memory: MixtureMemory, block: Block) -> MixtureMemory:
        summed = lambda name: np.asarray(block.info[name], float).sum(axis=(0, 1))  # noqa: E731
        spent = summed("jump_cost")
        number = memory.num_jumps
        if num_jumps is None and spent.sum() > 0:
            ratio = float(summed("step_cost") / spent.sum())
            number = np.asarray(balanced(float(number), ratio))
        return MixtureMemory(
            adapter.update(memory.others, block),
            KEPT * memory.gained + summed("num_jumps_accepted") * sizes**2,
            KEPT * memory.spent + spent,
            KEPT * memory.tried + summed("num_jumps"),
            number,
        )

    first = np.asarray(num_jumps or FIRST_JUMPS, float)
    memory = MixtureMemory(adapter.memory, zeros, zeros, zeros, first)
    return Adapter(memory, settings, update, tuned=tuned)


def balanced(number: float, ratio: float) -> float:
    """How many jumps take as much work as a step, which takes `ratio` times that of `number`."""
    return min(max(number * ratio, 1.0), MOST_JUMPS)


def kind_probs(memory: MixtureMemory, groups: Groups) -> Float[np.ndarray, " kind"]:
    """Probabilities of all kinds, of sum 1 in every group.

    A kind that was never tried is taken for cheap, so that it will be.
    """
    found, start = [], 0
    for group in filter(None, groups):
        part = slice(start, start + len(group))
        start = part.stop
        gained, spent, tried = memory.gained[part], memory.spent[part], memory.tried[part]
        cost = np.where(tried > 0, spent / np.maximum(tried, 1.0), 1.0)
        efficiency = gained / np.maximum(spent, 1.0)
        total = efficiency.sum()
        equal = np.full(len(group), 1 / len(group))
        work = SHARED * equal + (1 - SHARED) * (efficiency / total if total > 0 else equal)
        tries = work / np.maximum(cost, 1.0)
        found.append(tries / tries.sum())
    return np.concatenate(found).astype(np.float32)
