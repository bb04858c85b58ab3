"""Resampling keeps expectations; temperature steps keep the effective sample size they promise."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from credence.kernels.resampling import RESAMPLING, effective_sample_size, temperature_step

pytestmark = pytest.mark.usefixtures("checked_keys", "float64")

WEIGHTS = np.array([0.0, 0.31, 0.02, 0.0, 0.125, 0.25, 0.005, 0.29, 0.0])
NUM_REPEATS = 8000

schemes = pytest.mark.parametrize("scheme", RESAMPLING)


@partial(jax.jit, static_argnames=("scheme", "num"))
def copies(keys: Any, weights: Any, scheme: str, num: int) -> Any:
    """How often each particle is chosen (key, particle)."""

    def one(key: Any) -> Any:
        return jnp.bincount(RESAMPLING[scheme](key, weights, num), length=len(weights))

    return jax.lax.map(one, keys, batch_size=100)


def repeated(scheme: str, weights: Any = WEIGHTS, num: int = 10, seed: int = 0) -> np.ndarray:
    """Copies of every particle, resampled many times over."""
    keys = jax.random.split(jax.random.key(seed), NUM_REPEATS)
    return np.asarray(copies(keys, jnp.asarray(weights), scheme, num))


def copies_z(found: np.ndarray, expected: np.ndarray) -> float:
    """Worst deviation of mean copies, in standard errors; whole numbers may come out exactly."""
    error = found.std(axis=0, ddof=1) / len(found) ** 0.5
    return float(np.max(np.abs(found.mean(axis=0) - expected) / (error + 1e-9)))


@schemes
@pytest.mark.parametrize(("num", "total"), [(9, 1.0), (10, 7.0), (40, 1.0)])
def test_copies_are_proportional_to_the_weights(scheme: str, num: int, total: float) -> None:
    """Weights need not sum to one, nor num be the number of particles."""
    found = repeated(scheme, total * WEIGHTS, num)
    assert np.all(found.sum(axis=1) == num)
    assert copies_z(found, num * WEIGHTS) < 4.5


@schemes
def test_planted_wrong_weights_are_caught(scheme: str) -> None:
    flatter = WEIGHTS**0.9 / np.sum(WEIGHTS**0.9)
    assert copies_z(repeated(scheme, flatter), 10 * WEIGHTS) > 8


@schemes
def test_no_particle_of_weight_zero_is_chosen(scheme: str) -> None:
    assert np.all(repeated(scheme, seed=1)[:, WEIGHTS == 0] == 0)


@schemes
@pytest.mark.parametrize("index", [0, 4, 8])
def test_a_particle_with_all_the_weight_gets_all_copies(scheme: str, index: int) -> None:
    weights = np.zeros(9)
    weights[index] = 0.3
    assert np.all(repeated(scheme, weights)[:, index] == 10)


def test_copies_vary_as_little_as_each_scheme_promises() -> None:
    expected = 10 * WEIGHTS
    low, high = np.floor(expected), np.ceil(expected)
    found = {scheme: repeated(scheme) for scheme in RESAMPLING}
    assert np.all((found["systematic"] >= low) & (found["systematic"] <= high))
    assert np.all((found["stratified"] >= low - 1) & (found["stratified"] <= high + 1))
    assert np.all(found["residual"] >= low)
    spread = {scheme: counts.var(axis=0).sum() for scheme, counts in found.items()}
    assert spread["systematic"] < spread["stratified"] < spread["multinomial"]
    assert spread["residual"] < spread["multinomial"]
    binomial = np.sum(expected * (1 - WEIGHTS))
    np.testing.assert_allclose(spread["multinomial"], binomial, rtol=0.05)


@pytest.mark.parametrize("scheme", ["systematic", "stratified", "residual"])
@pytest.mark.parametrize("num_particles", [7, 100, 3000])
def test_equal_weights_choose_every_particle_once(scheme: str, num_particles: int) -> None:
    """This holds in single precision too, though the sum is then not quite one."""
    weights = jnp.full(num_particles, 1 / num_particles, jnp.float32)
    ancestors = RESAMPLING[scheme](jax.random.key(3), weights, num_particles)
    np.testing.assert_array_equal(ancestors, np.arange(num_particles))


@schemes
def test_many_particles_in_single_precision(scheme: str) -> None:
    """Copies of every thousandth of the particles, none of weight zero, and none out of range."""
    num_particles, num_groups = 100_000, 1000
    rng = np.random.default_rng(5)
    weights = rng.gamma(0.3, size=num_particles) * (rng.uniform(size=num_particles) < 0.7)
    weights[-50:] = 0.0
    weights = (weights / weights.sum()).astype(np.float32)
    ancestors = np.asarray(
        RESAMPLING[scheme](jax.random.key(4), jnp.asarray(weights), num_particles)
    )
    assert np.all(weights[ancestors] > 0)
    counts = np.bincount(ancestors, minlength=num_particles)
    found = counts.reshape(num_groups, -1).sum(axis=1)
    share = weights.astype(float).reshape(num_groups, -1).sum(axis=1)
    expected = num_particles * share / share.sum()
    z = np.abs(found - expected) / np.sqrt(expected)  # of multinomial copies, the most spread
    assert z.max() < 4.5, z.max()


def test_effective_sample_size() -> None:
    weights = np.random.default_rng(0).gamma(0.5, size=50)
    expected = weights.sum() ** 2 / np.sum(weights**2)
    for shift in (0.0, 1e4, -1e4):
        found = effective_sample_size(jnp.asarray(np.log(weights) + shift))
        np.testing.assert_allclose(found, expected, rtol=1e-10)
    one = jnp.full(50, -jnp.inf).at[3].set(-7.0)
    np.testing.assert_allclose(effective_sample_size(one), 1.0)
    np.testing.assert_allclose(effective_sample_size(one.at[8].set(-7.0)), 2.0)
    np.testing.assert_allclose(effective_sample_size(jnp.zeros(50)), 50.0)


@partial(jax.jit, static_argnames="target")
def step_and_share(log_ratios: Any, most: Any, target: float) -> Any:
    """The step, and what ESS over the number of particles it leaves on average over the runs."""
    step = temperature_step(log_ratios, most, target)
    share = jnp.mean(jax.vmap(effective_sample_size)(step * log_ratios)) / log_ratios.shape[1]
    return step, share


def ratios(scale: float, runs: int = 3, particles: int = 400) -> Any:
    return jnp.asarray(scale * np.random.default_rng(1).normal(size=(runs, particles)))


@pytest.mark.parametrize("scale", [5.0, 1e3, 1e9])
@pytest.mark.parametrize("target", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("most", [1.0, 0.7])
def test_the_step_reaches_its_target(scale: float, target: float, most: float) -> None:
    step, share = step_and_share(ratios(scale), most, target)
    assert 0 < step < most
    np.testing.assert_allclose(share, target, rtol=1e-6)


def test_the_step_in_single_precision() -> None:
    step, share = step_and_share(ratios(1e5).astype(jnp.float32), jnp.float32(0.7), 0.5)
    assert 0 < step < 0.7
    np.testing.assert_allclose(share, 0.5, rtol=1e-4)


@pytest.mark.parametrize("most", [1.0, 0.7, 1e-9])
def test_the_step_takes_the_whole_way_where_it_may(most: float) -> None:
    for log_ratios in (ratios(0.3), jnp.zeros((2, 10)), jnp.full((2, 10), -123.4)):
        step, share = step_and_share(log_ratios, most, 0.5)
        assert step == most
        assert share >= 0.5


def test_impossible_particles_count_as_lost() -> None:
    """A tenth of them: the rest must keep the target alone."""
    impossible = ratios(20.0).at[:, ::10].set(-jnp.inf)
    step, share = step_and_share(impossible, 1.0, 0.5)
    assert 0 < step < 1
    np.testing.assert_allclose(share, 0.5, rtol=1e-6)
    everywhere_else_equal = jnp.zeros((2, 100)).at[:, :40].set(-jnp.inf)
    np.testing.assert_allclose(step_and_share(everywhere_else_equal, 1.0, 0.5), (1.0, 0.6))


def test_more_impossible_particles_than_the_target_allows_end_in_a_tiny_step() -> None:
    """The tiny step weighs the possible ones equally: resampling mends the cloud."""
    log_ratios = ratios(20.0).at[:, :300].set(-jnp.inf)
    step, share = step_and_share(log_ratios, 1.0, 0.5)
    assert 0 < step < 1e-15
    np.testing.assert_allclose(share, 0.25, rtol=1e-6)


def test_runs_share_the_step_and_the_target_holds_for_their_mean() -> None:
    log_ratios = jnp.concatenate([ratios(1.0, runs=1), ratios(30.0, runs=1)])
    step, share = step_and_share(log_ratios, 1.0, 0.5)
    np.testing.assert_allclose(share, 0.5, rtol=1e-6)
    alone = [step_and_share(log_ratios[run : run + 1], 1.0, 0.5)[0] for run in (0, 1)]
    assert alone[1] < step < alone[0]
