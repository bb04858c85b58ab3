"""Labels with given probabilities."""

import numpy as np


def draw_labels(rng: np.random.Generator, probabilities: np.ndarray) -> np.ndarray:
    """A label of each row (row, class): those that `rng.choice` draws row by row."""
    cdf = probabilities.cumsum(axis=1)
    return np.sum(rng.random((len(cdf), 1)) >= cdf / cdf[:, -1:], axis=1)
