"""Simulated data sets with published recipes."""

import numpy as np
from jaxtyping import Float, Int

from credence.errors import InputError


def spiral(
    num_per_class: int = 500,
    *,
    seed: int = 0,
    noise_std: float = 0.1,
    radius: float = 16.0,
    power: float = 0.05,
) -> tuple[Float[np.ndarray, "point 2"], Int[np.ndarray, " point"]]:
    """Two arms of a spiral, each a class, the second turned by pi.

        x = radius v^power (cos, sin)(2 pi t^power [+ pi]) + noise,    v, t ~ U(0, 1)

    Chada, Jasra, Law & Singh, "Bayesian Deep Learning with Multilevel Trace-class Neural
    Networks", section 5.2.

    Returns:
        Points, the first class first, and their labels 0 and 1.
    Raises:
        InputError: for num_per_class < 1, a radius or power that is not > 0, or noise_std < 0.
    """
    if num_per_class < 1 or not (radius > 0 and power > 0 and noise_std >= 0):
        raise InputError(
            "spiral needs num_per_class >= 1, radius > 0, power > 0 and noise_std >= 0, got "
            f"{num_per_class}, {radius}, {power} and {noise_std}."
        )
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1], num_per_class)
    v, t = rng.uniform(size=(2, len(y)))
    angle = 2 * np.pi * t**power + np.pi * y
    arm = radius * v**power * np.stack([np.cos(angle), np.sin(angle)])
    return arm.T + noise_std * rng.normal(size=(len(y), 2)), y


def xor(
    num_per_cloud: int = 50, *, seed: int = 0, variance: float = 0.015
) -> tuple[Float[np.ndarray, "point 2"], Int[np.ndarray, " point"]]:
    """Four round Gaussian clouds at (+-1/2, +-1/2); opposite corners share a class.

    Berezowski, "Trans-dimensional inference over Bayesian neural networks", sections 5.5 and 5.6:
    variance .015, and .1 for the noisy clouds.

    Returns:
        Points, the first class first, and their labels 0 and 1.
    Raises:
        InputError: for num_per_cloud < 1 or a variance that is not > 0.
    """
    if num_per_cloud < 1 or not variance > 0:
        raise InputError(
            f"xor needs num_per_cloud >= 1 and variance > 0, got {num_per_cloud} and {variance}."
        )
    rng = np.random.default_rng(seed)
    corners = np.array([[1, 1], [-1, -1], [1, -1], [-1, 1]]) / 2
    centres = np.repeat(corners, num_per_cloud, axis=0)
    x = centres + variance**0.5 * rng.normal(size=centres.shape)
    return x, np.repeat([0, 1], 2 * num_per_cloud)
