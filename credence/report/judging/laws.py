"""Laws of what is counted on held-out rows: what chance makes of a sound or of a faulty model."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import stats

from credence.report.judging.levels import ALPHA, BETA

SHARES = np.linspace(0.01, 0.99, 99)


def binomial_interval(n: int, share: float, alpha: float = ALPHA) -> tuple[float, float]:
    """Central interval of k/n for k ~ Binomial(n, share), at most alpha/2 beyond each end."""
    if n == 0:
        return 0.0, 1.0
    lower, upper = stats.binom.ppf([alpha / 2, 1 - alpha / 2], n, share) / n
    return float(lower), float(upper)


def could_hold_only(num_covered: int, n: int, share: float, beta: float = BETA) -> bool:
    """Whether intervals that really hold `share` would often hold as many rows as were found."""
    return bool(stats.binom.sf(num_covered - 1, n, share) > beta)


def smallest_gross_gap(n: int, gap: float, beta: float = BETA) -> float:
    """Largest distance from uniform that rules out a distribution that is really `gap` away.

    Where the distance is `gap`, the share of rows below is binomial. Of all shares the one with the
    most scatter counts, so that at most `beta` of such models are nearer to uniform than this.
    """
    if n == 0:
        return -1.0
    true = SHARES[gap < SHARES]
    return float(np.min(stats.binom.ppf(beta, n, true) / n - (true - gap))) - 1e-12


def count_law(p: Float[np.ndarray, " row"]) -> Float[np.ndarray, " count"]:
    """Probability of every number of successes of independent trials, by halving (Fourier)."""
    size = 1 << max(len(p) - 1, 0).bit_length()
    padded = np.pad(np.clip(p, 0.0, 1.0), (0, size - len(p)))
    law = np.stack([1 - padded, padded], axis=1)
    while len(law) > 1:
        length = 2 * law.shape[1] - 1
        waves = np.fft.rfft(law, length, axis=1)
        law = np.fft.irfft(waves[0::2] * waves[1::2], length, axis=1)
    return np.clip(law[0, : len(p) + 1], 0.0, 1.0)


def count_interval(p: Float[np.ndarray, " row"], alpha: float) -> tuple[int, int]:
    """Central interval of the number of successes, at most alpha/2 beyond each end."""
    total = np.cumsum(count_law(p))
    lower = int(np.searchsorted(total, alpha / 2))
    return lower, min(int(np.searchsorted(total, 1 - alpha / 2)), len(p))


def shifted(
    confidence: Float[np.ndarray, " bin"], weight: Float[np.ndarray, " bin"], gap: float
) -> Float[np.ndarray, " bin"] | None:
    """Frequencies that lie `gap` above the stated ones on average, none beyond 1; None if none can.

    Args:
        weight: share of the rows in each bin.
    """
    room = 1 - confidence
    if weight @ room <= gap:
        return None
    low, high = gap, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        is_short = weight @ np.minimum(room, middle) < gap
        low, high = (middle, high) if is_short else (low, middle)
    return confidence + np.minimum(room, high)


def quarters(values: Float[np.ndarray, " point"]) -> list[Int[np.ndarray, " row"]]:
    """Rows in four groups of one size, from the smallest value to the largest; equals by place."""
    return np.array_split(np.argsort(values, kind="stable"), 4)


def num_true(flags: Bool[np.ndarray, " row"]) -> int:
    """How many flags are set."""
    return int(np.count_nonzero(flags))
