"""The warm-up on Gaussians: acceptance reaches its target, the metric finds the variances."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tools.targets import GaussianTarget, gaussian_log_density, standard

from credence.adaptation.windows import (
    Memory,
    metric_ends,
    reasonable_step_size,
    window_adaptation,
)
from credence.engine.blocks import Block
from credence.engine.driver import Driver
from credence.engine.phases import PhaseResult
from credence.engine.plan import Plan
from credence.kernels.base import Recipe
from credence.kernels.mcmc.hmc import hmc

NUM_CHAINS, NUM_ROUNDS, ROUND = 8, 20, 25
STDS = np.geomspace(0.05, 20.0, 6)
TARGET = GaussianTarget("scales", np.zeros(6), np.diag(STDS))
RECIPE = Recipe(hmc, gaussian_log_density, (("max_integration_steps", 256),))


def warm_up(target_acceptance_rate: float = 0.8) -> tuple[Memory, PhaseResult]:
    """The memory after a warm-up from exact draws, and 500 draws with what it found."""
    starts = jnp.asarray(TARGET.sample(seed=0, num_draws=NUM_CHAINS), jnp.float32)
    adapter = window_adaptation(
        0.01,
        jnp.ones(6),
        num_rounds=NUM_ROUNDS,
        target_acceptance_rate=target_acceptance_rate,
    )
    keys = jax.random.split(jax.random.key(1))
    num_draws = NUM_ROUNDS * ROUND
    plan = Plan(RECIPE, "warmup", adapter, block_steps=ROUND, num_steps=num_draws)
    with Driver() as driver:
        warmup = driver.phase("warmup", keys[0], plan, starts, TARGET.data)
        plan = plan.sampling(warmup.memory, num_draws=num_draws)
        sample = driver.phase("sample", keys[1], plan, warmup.positions, TARGET.data)
    return warmup.memory, sample


@pytest.fixture(scope="module")
def tuned_run() -> tuple[Memory, PhaseResult]:
    return warm_up()


def test_acceptance_reaches_its_target(tuned_run):
    assert abs(np.mean(tuned_run[1].info["acceptance_rate"]) - 0.8) < 0.05
    _, bold = warm_up(target_acceptance_rate=0.6)  # another target, another step size
    assert np.mean(bold.info["acceptance_rate"]) < 0.7


def test_metric_is_about_the_variances(tuned_run):
    """The last window has 9 rounds of 8 chains; its variances have 8 * 24 * 9 degrees of freedom
    less what autocorrelation takes, so a relative standard error of about 4 %."""
    metric = tuned_run[0].inverse_mass
    assert np.abs(metric / STDS**2 - 1).max() < 0.25
    assert np.abs(metric / STDS - 1).max() > 0.25, "planted: standard deviations would not pass"


def test_draws_with_the_tuned_settings_have_the_right_variances(tuned_run):
    means = (tuned_run[1].draws.astype(float) ** 2 / STDS**2).mean(axis=1)
    error = means.std(axis=0, ddof=1) / NUM_CHAINS**0.5
    assert np.all(np.abs(means.mean(axis=0) - 1) < 6.5 * error + 0.01)


def test_windows_double_and_end_at_three_quarters():
    assert metric_ends(20) == [2, 6, 15]
    assert metric_ends(160) == [2, 6, 14, 30, 120]
    assert metric_ends(1) == [1]
    for num_rounds in range(1, 60):
        ends = metric_ends(num_rounds)
        assert ends == sorted(set(ends))
        assert 1 <= ends[-1] <= num_rounds


def feed(adapter, rounds: int, acceptance_rate: float, num_draws: int = ROUND) -> Memory:
    """Rounds of independent exact draws with a given acceptance rate."""
    memory = adapter.memory
    for index in range(rounds):
        draws = TARGET.sample(seed=index, num_draws=NUM_CHAINS * num_draws)
        draws = jnp.asarray(draws.reshape(NUM_CHAINS, num_draws, 6), jnp.float32)
        info = {"acceptance_rate": jnp.full((NUM_CHAINS, num_draws), acceptance_rate)}
        memory = adapter.update(memory, Block(None, draws, info))
    return memory


def test_step_size_moves_against_the_excess():
    def step_size(acceptance_rate: float) -> float:
        adapter = window_adaptation(0.1, jnp.ones(6), num_rounds=100)
        return float(adapter.settings(feed(adapter, 1, acceptance_rate))["step_size"])

    assert step_size(0.5) < 0.1 < step_size(0.95)
    np.testing.assert_allclose(step_size(0.8), 0.1, rtol=1e-6)


def test_metric_of_independent_draws():
    """No autocorrelation: variances of one window within 5 standard errors, shrinkage apart."""
    adapter = window_adaptation(0.1, jnp.ones(6), num_rounds=20)
    metric = feed(adapter, 15, 0.8).inverse_mass
    degrees = NUM_CHAINS * (ROUND - 1) * 9
    typical = np.mean(np.log(STDS**2))
    expected = (degrees * np.log(STDS**2) + 5 * typical) / (degrees + 5)
    assert np.all(np.abs(np.log(metric) - expected) < 5 * (2 / degrees) ** 0.5)


def test_weights_that_hardly_move_have_a_metric_of_their_own():
    """Weights of trace-class priors: a metric too wide for them would shorten the steps of all."""
    adapter = window_adaptation(0.1, jnp.ones(6), num_rounds=1)
    draws = TARGET.sample(seed=0, num_draws=NUM_CHAINS * ROUND).reshape(NUM_CHAINS, ROUND, 6)
    info = {"acceptance_rate": np.full((NUM_CHAINS, ROUND), 0.8)}
    metrics = [
        adapter.update(adapter.memory, Block(None, jnp.asarray(d, jnp.float32), info)).inverse_mass
        for d in (draws, 1e-9 * draws)
    ]
    np.testing.assert_allclose(metrics[1], 1e-18 * metrics[0], rtol=1e-3)


def test_chains_in_different_modes_do_not_widen_the_metric():
    adapter = window_adaptation(0.1, jnp.ones(6), num_rounds=1)
    draws = TARGET.sample(seed=0, num_draws=NUM_CHAINS * ROUND).reshape(NUM_CHAINS, ROUND, 6)
    shifted = draws + 1000 * np.arange(NUM_CHAINS)[:, None, None]
    info = {"acceptance_rate": np.full((NUM_CHAINS, ROUND), 0.8)}
    metrics = [
        adapter.update(adapter.memory, Block(None, jnp.asarray(d, jnp.float32), info)).inverse_mass
        for d in (draws, shifted)
    ]
    np.testing.assert_allclose(metrics[1], metrics[0], rtol=0.05)


def test_one_draw_per_round_leaves_the_metric_alone():
    adapter = window_adaptation(0.1, jnp.ones(6), num_rounds=1)
    memory = feed(adapter, 1, 0.8, num_draws=1)
    np.testing.assert_array_equal(memory.inverse_mass, np.ones(6))
    assert np.isfinite(adapter.tuned(memory)["step_size"])


def test_memory_keeps_its_shapes():
    adapter = window_adaptation(0.1, jnp.ones(6), num_rounds=20)
    shapes = [jax.tree.map(np.shape, memory) for memory in (adapter.memory, feed(adapter, 3, 0.8))]
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize("scale", [0.01, 1.0, 10.0])
def test_first_step_size_follows_the_scale_of_the_target(scale):
    """One leapfrog step of the scale's size in 20 dimensions accepts more often than not."""
    target = standard(20)._replace(cholesky=scale * np.eye(20))
    step_size = first_step_size(target)
    assert 0.25 * scale <= step_size <= min(2.0 * scale, 4.0)


def test_first_step_size_where_no_step_is_accepted_is_the_smallest():
    nowhere = standard(20)._replace(bound=-np.inf)
    assert first_step_size(nowhere) == 2.0**-17


def first_step_size(target: GaussianTarget) -> float:
    starts = jnp.asarray(target.sample(seed=0, num_draws=32), jnp.float32)
    return float(
        reasonable_step_size(
            jax.random.key(0),
            starts,
            jnp.ones(20),
            target.data,
            log_density=gaussian_log_density,
        )
    )
