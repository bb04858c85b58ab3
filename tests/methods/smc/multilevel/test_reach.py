"""How many particles are left on the way to a wider network: networks that are linear in their
weights tell the mean of the weights G."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tools.nested_features import NOISE_STD, Features, X, Y, basis, exact, posterior, stds

from credence.methods.smc.multilevel import reach
from credence.methods.smc.multilevel.method import MLSMC

NARROW, WIDE = 8, 32
NUM_PARTICLES, NUM_TRIES = 4000, 8


def exact_particles(num_features: int, count: int) -> np.ndarray:
    """Independent draws of the weights' posterior."""
    design = basis(num_features, X)
    precision = design.T @ design / NOISE_STD**2 + np.diag(stds(num_features) ** -2)
    mean = np.linalg.solve(precision, design.T @ Y / NOISE_STD**2)
    return np.random.default_rng(0).multivariate_normal(mean, np.linalg.inv(precision), count)


@pytest.mark.usefixtures("float64")
def test_the_mean_weight_is_the_ratio_of_the_evidences() -> None:
    right = exact_particles(NARROW, NUM_PARTICLES)
    assert abs(z_of_the_mean(right)) < 4
    assert abs(z_of_the_mean(1.2 * right)) > 6  # planted: not the narrow network's posterior


def z_of_the_mean(cloud: np.ndarray) -> float:
    """How far the mean of G is from the ratio of the evidences, in standard errors."""
    levels = posterior(NARROW), posterior(WIDE)
    key = jax.random.key(0)
    log_weights = reach.log_weights(key, jnp.asarray(cloud), *levels, num_tries=NUM_TRIES)
    means = np.exp(log_weights).mean(axis=1)
    error = means.std(ddof=1) / len(means) ** 0.5
    found = (means.mean() - np.exp(exact(WIDE)[1] - exact(NARROW)[1])) / error
    print(found)
    return float(found)


def test_tries_of_a_particle_count_together() -> None:
    log_weights = np.log([[1.0, 3.0], [2.0, 2.0]])
    assert reach.effective_share(log_weights) == pytest.approx(1)
    assert reach.effective_share(log_weights.reshape(-1, 1)) == pytest.approx(64 / 18 / 4)
    lost = np.array([[0.0], [0.0], [-np.inf], [-np.inf]])
    assert reach.effective_share(lost) == pytest.approx(0.5)


def test_the_narrowest_level_is_the_first_with_particles_left() -> None:
    levels = MLSMC(coarse=tuple(map(Features, (4, 8, 16)))).levels(posterior(WIDE))
    key = jax.random.key(0)
    last, shares = reach.narrowest(key, levels, share=1.1)
    assert last == 2, "the one before the finest, where none is good enough"
    print(shares)
    assert shares[0] < shares[1] < shares[2] < 1
    between = (shares[0] + shares[1]) / 2
    assert reach.narrowest(key, levels, share=between) == (1, shares[:2])
    assert reach.narrowest(key, levels, share=shares[0]) == (0, shares[:1])
