"""A warm-up ends when what the chains predict has stopped getting better.

Chains of a network with wide priors take long to forget where they started, some tables far longer
than others, and predictions are what is wanted of them. So windows of rounds are compared by the
log probability that all chains together give to rows that they have not seen.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from credence.engine.blocks import Block
from credence.engine.phases import Adapter

WINDOW = 4
"""Rounds that are averaged: a single draw of every chain says little."""
PATIENCE = 2
"""Windows without a better one, after which the warm-up may end."""
Score = Callable[[Block], Float[np.ndarray, " row"]]
"""(a round) -> log probability of every row at the round's end, nats."""


class Settling(NamedTuple):
    """Holds what is remembered between rounds."""

    memory: Any
    """The memory of the adapter that tunes the kernel."""
    round: np.ndarray
    """Rounds of this window."""
    log_sum: Float[np.ndarray, " row"]
    """Logarithm of the sum of the rows' probabilities over the rounds of this window."""
    best: Float[np.ndarray, " row"]
    """The sum of the window that predicted best so far."""
    stale: np.ndarray
    """Windows since then."""


def until_settled(adapter: Adapter, score: Score, num_rows: int) -> Adapter:
    """Let a warm-up end when windows of rounds no longer predict better.

    A window is better where the mean over rows of the difference of log probabilities from the
    best one so far is above its standard error over rows.

    Args:
        adapter: tunes the kernel.
        score: of rows that the chains do not see.
        num_rows: how many rows it scores.
    """
    nothing = np.full(num_rows, -np.inf)
    start = Settling(adapter.memory, np.zeros(()), nothing, nothing, np.zeros(()))

    def update(memory: Settling, block: Block) -> Settling:
        memory = memory._replace(
            memory=adapter.update(memory.memory, block),
            round=memory.round + 1,
            log_sum=np.logaddexp(memory.log_sum, np.asarray(score(block), float)),
        )
        return _judged(memory) if int(memory.round) == WINDOW else memory

    def _judged(memory: Settling) -> Settling:
        better = is_better(memory.log_sum, memory.best)
        return memory._replace(
            round=np.zeros(()),
            log_sum=nothing,
            best=memory.log_sum if better else memory.best,
            stale=np.zeros(()) if better else memory.stale + 1,
        )

    return Adapter(
        start,
        settings=lambda memory: adapter.settings(memory.memory),
        update=update,
        finished=lambda memory: int(memory.stale) >= PATIENCE,
        rearrange=lambda memory, block: adapter.rearrange(memory.memory, block),
        tuned=lambda memory: adapter.tuned(memory.memory),
    )


def is_better(log_probs: Float[np.ndarray, " row"], best: Float[np.ndarray, " row"]) -> bool:
    """Tell whether rows are predicted better, by more than the standard error over rows."""
    with np.errstate(invalid="ignore"):  # both impossible: no difference
        gain = np.nan_to_num(log_probs - best, nan=0.0, posinf=1e3, neginf=-1e3)
    return bool(gain.mean() > gain.std() / len(gain) ** 0.5)
