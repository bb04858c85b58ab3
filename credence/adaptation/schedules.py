"""Rows and learning rates of methods that optimise by minibatches."""

from typing import Any

import numpy as np

from credence.engine.phases import Adapter


def rows_per_step(batch_size: int | None, num_points: int) -> int:
    """The batch size asked for; None means all rows up to 1024, and 128 beyond."""
    return min(batch_size or (num_points if num_points <= 1024 else 128), num_points)


def cosine_decay(learning_rate: float, num_blocks: int, **settings: Any) -> Adapter:
    """Learning rate from its full value to almost zero along half a cosine; the rest is fixed.

    Loshchilov & Hutter, "SGDR: stochastic gradient descent with warm restarts" (2017), eq. (5),
    without restarts. The rate changes between blocks, so nothing is compiled again.

    Args:
        learning_rate: of the first block.
        num_blocks: of the phase.
        settings: further settings of the kernel.
    """

    def at(block: np.ndarray) -> dict[str, Any]:
        share = 0.5 * (1 + np.cos(np.pi * block / num_blocks))
        return {"learning_rate": np.float32(learning_rate * share), **settings}

    return Adapter(np.zeros(()), at, update=lambda block, _: np.asarray(block + 1.0))
