"""Principal components of outputs that are never in memory all at once."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

Chunk = Float[np.ndarray, "draw output"]
"""Some outputs of all draws."""
SMALLEST = 1e-7
"""Size of a component, relative to the largest, below which it is rounding."""


class Basis(NamedTuple):
    """outputs = mean + targets @ components, rows times outputs flattened."""

    mean: Float[np.ndarray, " output"]
    components: Float[np.ndarray, "target output"]


def principal_components(
    chunks: Callable[[], Iterable[Chunk]], num_components: int
) -> tuple[Float[np.ndarray, "draw target"], Basis, float]:
    """The largest principal components of a matrix Z (draw, output), of which some columns at a
    time are in memory.

    The first pass over the chunks adds up the small matrix Z Z' = U S^2 U' of the centred Z, whose
    eigenvectors are Z's left singular vectors; the second makes the components S^-1 U' Z, chunk by
    chunk. What the singular value decomposition of the whole Z would give, up to signs.

    Args:
        chunks: makes the pass anew whenever it is called, the same chunks in the same order.
        num_components: at most; there are no more than draws less one.
    Returns:
        The draws in terms of the components, the basis, and the share of the variance left out.
    """
    gram = np.asarray(sum(centred @ centred.T for _, centred in map(_centred, chunks())))
    squares, vectors = np.linalg.eigh(gram)
    kept = max(1, min(num_components, len(gram) - 1))
    sizes = np.sqrt(np.maximum(squares[::-1][:kept], 0.0))
    vectors = vectors[:, ::-1][:, :kept]
    inverse = np.where(sizes > SMALLEST * sizes[0], 1 / np.maximum(sizes, 1e-300), 0.0)
    means, parts = [], []
    for chunk in chunks():
        mean, centred = _centred(chunk)
        means.append(mean.astype(chunk.dtype))
        parts.append(((vectors * inverse).T @ centred).astype(chunk.dtype))
    missing = 1 - np.sum(sizes**2) / max(np.trace(gram), 1e-300)
    basis = Basis(np.concatenate(means), np.concatenate(parts, axis=1))
    return vectors * sizes, basis, max(float(missing), 0.0)


def _centred(chunk: Chunk) -> tuple[Float[np.ndarray, " output"], Chunk]:
    """The mean over the draws, and what is left."""
    values = np.asarray(chunk, float)
    mean = values.mean(axis=0)
    return mean, values - mean
