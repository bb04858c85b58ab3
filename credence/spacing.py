"""Chooses which of many rows or draws stand for all, where a few will do."""

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Int


def evenly_spaced(
    count: int, most: int, *, to_whole: Callable[[Any], Any] = np.round
) -> Int[np.ndarray, " kept"]:
    """Choose at most `most` of `count` positions, ascending, the first and the last among them.

    Args:
        most: one alone is the first.
        to_whole: makes a position of a place between two; it rounds, or takes the lower by
            `numpy.floor`.
    """
    return to_whole(np.linspace(0, count - 1, min(count, most))).astype(int)
