"""Particles are left on the way to a wider network, or are not: networks that are linear in their
weights tell the mean of the weights G."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tools.nested_features import NOISE_STD, X, Y, basis, exact, posterior, stds

from credence.engine.driver import Driver
from credence.methods import Mutation
from credence.methods.smc.multilevel import reach

NARROW, WIDE = 8, 32
NUM_PARTICLES = 4000


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
    with Driver() as driver:
        pair = reach.pair_of(driver, posterior(NARROW), posterior(WIDE), Mutation(), len(cloud))
        log_weights = reach.log_weights(jax.random.key(0), pair, jnp.asarray(cloud[None]), 8)
    means = np.exp(log_weights).mean(axis=1)
    error = means.std(ddof=1) / len(means) ** 0.5
    found = (means.mean() - np.exp(exact(WIDE)[1] - exact(NARROW)[1])) / error
    print(found)
    return float(found)


def test_particles_of_a_small_run_stay_many() -> None:
    """Steps refused leave likelihoods from where the cloud measures them: a particle with another
    zero point would win all the weight."""
    with Driver() as driver:
        mutation = Mutation(kernel="pcn", num_steps=2)
        pair = reach.pair_of(driver, posterior(NARROW), posterior(WIDE), mutation, 200)
        (cloud,), _ = reach.particles(jax.random.key(0), pair)
    assert len(np.unique(cloud, axis=0)) > 60
    mean = exact_particles(NARROW, NUM_PARTICLES).mean(axis=0)
    assert np.linalg.norm(cloud.mean(axis=0) - mean) < 0.5 * np.linalg.norm(mean)


def test_tries_of_a_particle_count_together() -> None:
    log_weights = np.log([[1.0, 3.0], [2.0, 2.0]])
    assert reach.share_of_tries(log_weights) == pytest.approx(1)
    assert reach.share_of_tries(log_weights.reshape(-1, 1)) == pytest.approx(64 / 18 / 4)
    lost = np.array([[0.0], [0.0], [-np.inf], [-np.inf]])
    assert reach.share_of_tries(lost) == pytest.approx(0.5)


def test_the_narrowest_level_is_the_first_with_particles_left() -> None:
    shares = [0.1, 0.3, 0.6, 0.9]
    assert reach.narrowest(5, shares.__getitem__, 0.5) == (2, shares[:3])
    assert reach.narrowest(5, shares.__getitem__, 0.1) == (0, shares[:1])
    assert reach.narrowest(5, shares.__getitem__, 1.0) == (3, shares), "the one before the finest"
    assert reach.narrowest(1, shares.__getitem__) == (0, []), "there is one level only"


def test_more_is_left_of_wider_levels() -> None:
    def share(width: int) -> float:
        coarse, fine = posterior(width), posterior(WIDE)
        with Driver() as driver:
            key, mutation = jax.random.key(0), Mutation()
            return reach.share_left(key, driver, coarse, fine, mutation, num_tries=16)

    found = [share(width) for width in (4, 8, 16)]
    print(found)
    assert 0 < found[0] < found[1] < found[2] < 1
