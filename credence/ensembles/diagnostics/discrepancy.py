"""Distance between two samples: the unbiased squared maximum mean discrepancy."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from credence.ensembles.diagnostics._checks import finite

# Squared distances of any shape -> kernel values. Kernels add: `lambda d2: k1(d2) + k2(d2)`.
Kernel = Callable[[Float[np.ndarray, "*shape"]], Float[np.ndarray, "*shape"]]

MAX_PAIRS = 2_000_000  # distances held at once: 16 MB


def gaussian_kernel(width: float) -> Kernel:
    """k(x, y) = exp(-|x - y|² / (2 width²)). It no longer sees points many widths apart."""
    _check_positive("width", width)
    return lambda squared_distance: np.exp(-squared_distance / (2 * width**2))


def inverse_multiquadric_kernel(scale: float = 1.0) -> Kernel:
    """k(x, y) = (1 + |x - y|² / scale²)^(-1/2). Its heavy tail sees far points too."""
    _check_positive("scale", scale)
    return lambda squared_distance: 1 / np.sqrt(1 + squared_distance / scale**2)


def mmd2(
    x: Float[np.ndarray, "m feature"], y: Float[np.ndarray, "n feature"], kernel: Kernel
) -> float:
    """Unbiased estimate of MMD² between the laws of x and y: Gretton et al. (2012), eq. (3).

        mean of k(x_i, x_j), i ≠ j  +  mean of k(y_i, y_j), i ≠ j  -  2 mean of k(x_i, y_j)

    Its mean is 0 for equal laws, so it may be negative. Unbiased only if the rows of each sample
    are independent: particles that share ancestors add a positive bias. Fix the kernel before
    looking at the samples. Memory is bounded; time is O((m + n)²).
    """
    x, y = finite("x", x), finite("y", y)
    if x.ndim != 2 or y.ndim != 2 or x.shape[1] != y.shape[1] or min(len(x), len(y)) < 2:
        raise ValueError(
            f"x and y must be tables with equal numbers of columns and at least 2 rows each; "
            f"got shapes {x.shape} and {y.shape}."
        )
    within = _mean_of_distinct_pairs(x, kernel) + _mean_of_distinct_pairs(y, kernel)
    return within - 2 * _sum_of_pairs(x, y, kernel) / (len(x) * len(y))


def _mean_of_distinct_pairs(x: Float[np.ndarray, "m feature"], kernel: Kernel) -> float:
    diagonal = len(x) * float(kernel(np.zeros(1))[0])
    return (_sum_of_pairs(x, x, kernel) - diagonal) / (len(x) * (len(x) - 1))


def _sum_of_pairs(
    x: Float[np.ndarray, "m feature"], y: Float[np.ndarray, "n feature"], kernel: Kernel
) -> float:
    from scipy.spatial.distance import cdist

    num_rows = max(1, MAX_PAIRS // len(y))
    blocks = (x[start : start + num_rows] for start in range(0, len(x), num_rows))
    return sum(float(kernel(cdist(block, y, "sqeuclidean")).sum()) for block in blocks)


def _check_positive(name: str, value: float) -> None:
    if not value > 0:
        raise ValueError(f"{name} must be > 0, got {value}; use the data's length scale.")
