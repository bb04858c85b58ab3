"""SWAG against closed forms: moments of its draws, and the law of SGD on a quadratic.

On a linear model every SGD step is an affine map of (weights, velocity) that its rows choose, so
an epoch is an affine map chosen by the order of the rows. For few rows all orders can be listed,
and mean and covariance of the stationary law solve linear equations, without any approximation.
"""

from itertools import permutations
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import brentq
from tools.exact import LinearRegression, linear_regression, member_weights, with_ones, z_scores

from credence.density.posterior import Posterior
from credence.engine.clock import CompileClock
from credence.engine.driver import Driver
from credence.engine.phases import fixed
from credence.engine.plan import Plan
from credence.errors import InputError
from credence.kernels.ascent.optimizer import sgd
from credence.kernels.base import Recipe
from credence.methods.approximate.swag import (
    SWAG,
    draw,
    matched_learning_rate,
    spaced_rows,
    summarise,
)
from credence.methods.training import Training
from credence.models import MLP, Gaussian, Normal

LEARNING_RATE, MOMENTUM, BATCH = 0.1, 0.5, 2
PROBLEM = linear_regression(num_points=6, num_features=1)
SHORT = Training(max_epochs=200)


def stationary_law(
    problem: LinearRegression, momentum: float, *, shuffled: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of the weights after an epoch of SGD.

    shuffled=False draws every minibatch independently of the others.
    """
    design = with_ones(problem.x)
    num_points, size = design.shape

    def step_map(rows: tuple[int, ...]) -> np.ndarray:
        """(w, v, 1) -> (w', v', 1) for the rows of a minibatch."""
        scale = 1 / (len(rows) * problem.noise_std**2)
        part = design[list(rows)]
        curvature = scale * part.T @ part + np.diag(problem.prior_std**-2) / num_points
        pull = scale * part.T @ problem.y[list(rows)]
        velocity = np.hstack([-curvature, momentum * np.eye(size), pull[:, None]])
        stay = np.hstack([np.eye(size), np.zeros((size, size + 1))])
        last = np.eye(2 * size + 1)[-1:]
        return np.vstack([stay + LEARNING_RATE * velocity, velocity, last])

    maps = []
    for order in permutations(range(num_points)):
        steps = [step_map(order[i : i + BATCH]) for i in range(0, num_points, BATCH)]
        maps.append(np.linalg.multi_dot(steps[::-1]) if shuffled else steps[0])
    step, offset = np.array(maps)[:, :-1, :-1], np.array(maps)[:, :-1, -1]
    eye = np.eye(2 * size)
    mean = np.linalg.solve(eye - step.mean(axis=0), offset.mean(axis=0))
    kick = offset + (step - eye) @ mean  # around the mean: z' = step z + kick
    products = np.einsum("nij,nkl->ikjl", step, step).reshape((4 * size**2,) * 2) / len(step)
    noise = np.einsum("ni,nk->ik", kick, kick).ravel() / len(step)
    covariance = np.linalg.solve(np.eye(4 * size**2) - products, noise).reshape((2 * size,) * 2)
    return mean[:size], covariance[:size, :size]


def test_snapshots_of_sgd_have_the_exact_stationary_law(float64):
    """Snapshots ten epochs apart: the slowest direction keeps 1e-4 of a deviation."""
    num_draws, steps_per_epoch = 10_000, 3
    mean, _ = stationary_law(PROBLEM, MOMENTUM)
    with Driver() as driver:
        plan = Plan(
            Recipe(sgd, PROBLEM.posterior.log_density),
            "sample",
            fixed(learning_rate=LEARNING_RATE, momentum=MOMENTUM),
            num_steps=num_draws * 10 * steps_per_epoch,
            thinning=10 * steps_per_epoch,
            block_steps=num_draws * steps_per_epoch,
            batch_size=BATCH,
        )
        start = jnp.asarray(mean)[None]
        data = PROBLEM.posterior.data
        result = driver.phase("sample", jax.random.key(0), plan, start, data)
    draws = result.draws[0, 10:]
    lagged = np.corrcoef(np.hstack([draws[1:], draws[:-1]]).T)[:2, 2:]
    assert np.abs(lagged).max() < 0.05, "draws depend on each other"

    def worst(momentum: float, **planted: bool) -> float:
        mean, covariance = stationary_law(PROBLEM, momentum, **planted)
        centred = draws - mean
        products = centred[:, :, None] * centred[:, None, :]
        return max(z_scores(draws, mean).max(), z_scores(products, covariance).max())

    assert worst(MOMENTUM) < 4.5
    assert worst(1.2 * MOMENTUM) > 8  # planted: another momentum
    assert worst(MOMENTUM, shuffled=False) > 8  # planted: minibatches drawn with replacement


@pytest.mark.parametrize("rank", [0, 2, 5])
def test_draws_have_the_moments_of_the_snapshots(rank, float64):
    """Algorithm 1 of Maddox et al. (2019), written out for each snapshot in turn."""
    rng = np.random.default_rng(0)
    snapshots = rng.normal(size=(12, 3)) @ rng.normal(size=(3, 3)) + [3.0, 0.0, -1.0]
    mean, square, columns = np.zeros(3), np.zeros(3), []
    for n, snapshot in enumerate(snapshots):
        mean = (n * mean + snapshot) / (n + 1)
        square = (n * square + snapshot**2) / (n + 1)
        columns = [*columns, snapshot - mean][max(0, len(columns) + 1 - rank) :]
    variance = np.diag(square - mean**2)
    deviations = np.array(columns)
    exact = variance / 2 + deviations.T @ deviations / (2 * (rank - 1)) if rank else variance
    draws = draw(jax.random.key(0), summarise(snapshots, rank), num_draws=20_000)

    def worst(covariance: np.ndarray) -> float:
        centred = np.asarray(draws) - mean
        products = centred[:, :, None] * centred[:, None, :]
        return max(z_scores(centred, 0.0).max(), z_scores(products, covariance).max())

    assert worst(exact) < 4.5
    assert worst(exact + variance / 2 if rank else variance / 2) > 8  # planted: a half too much


def test_matched_learning_rate(float64):
    """Linear regression: the Fisher information is the curvature X'X / (points noise_std^2)."""
    problem = linear_regression(num_points=2000, noise_std=0.2)
    posterior, share = problem.posterior, 32 / 2000
    position = jnp.asarray(problem.solve()[0])

    def rate(data: Any = posterior.data, share: float = share, momentum: float = 0.9) -> float:
        key, model = jax.random.key(0), posterior.model
        return float(matched_learning_rate(key, position, data, share, momentum, model=model))

    design = with_ones(problem.x)
    fisher = design.T @ design / (len(design) * problem.noise_std**2)
    curvature = np.trace(fisher @ fisher) / np.trace(fisher)
    b = brentq(lambda b: b - np.tanh(b) - 1, 1, 3)
    np.testing.assert_allclose(rate(), 2 * b * 0.1 * share / curvature, rtol=0.05)
    np.testing.assert_allclose(rate(share=2 * share), 2 * rate(), rtol=1e-10)
    np.testing.assert_allclose(rate(momentum=0.0), 10 * rate(), rtol=1e-10)
    residuals = posterior.data._replace(y=posterior.data.y + 100.0)
    np.testing.assert_allclose(rate(residuals), rate(), rtol=1e-10)  # residuals play no part


slow = pytest.mark.slow


@pytest.mark.parametrize(
    ("num_points", "noise_std"),
    [(40, 0.01), pytest.param(40, 1.0, marks=slow), pytest.param(2000, 0.1, marks=slow)],
)
def test_default_learning_rate_spreads_about_as_widely_as_the_posterior(num_points, noise_std):
    """Whatever the size of the log posterior: within a factor of 4 in standard deviation."""
    problem = linear_regression(num_points=num_points, noise_std=noise_std)
    ensemble = SWAG(num_snapshots=200, training=Training(max_epochs=500)).run(0, problem.posterior)
    mean, covariance = problem.solve()
    root = np.linalg.inv(np.linalg.cholesky(covariance))
    whitened = (member_weights(ensemble) - mean) @ root.T
    spread = whitened.std()
    assert 0.25 < spread < 4
    assert np.abs(whitened.mean(axis=0)).max() < 2


def small(**settings: Any) -> SWAG:
    defaults: dict[str, Any] = {
        "num_draws": 20,
        "num_snapshots": 20,
        "rank": 5,
        "num_warmup": 5,
        "training": SHORT,
    }
    return SWAG(**(defaults | settings))


@pytest.mark.rotates(3)
def test_settings_change_the_result():
    posterior = linear_regression().posterior
    base = member_weights(small().run(0, posterior))
    assert base.shape == (20, 4)
    for changed in (
        {"rank": 0},
        {"num_snapshots": 30},
        {"num_warmup": 10},
        {"learning_rate": 1e-3},
        {"momentum": 0.5},
        {"batch_size": 3},
        {"training": Training(max_epochs=100)},
    ):
        assert not np.array_equal(member_weights(small(**changed).run(0, posterior)), base), changed
    assert member_weights(small(num_draws=30).run(0, posterior)).shape == (30, 4)


def test_second_data_set_of_the_same_shape_compiles_nothing():
    small().run(0, linear_regression().posterior)
    other = linear_regression(seed=1).posterior
    with CompileClock() as clock:
        small(momentum=0.8).run(1, other)
    assert clock.num_traces == 0


def test_divergence_is_refused():
    """The default rate times a million."""
    with pytest.raises(InputError, match=r"SGD diverged with learning_rate=1e.03 per data point"):
        small(learning_rate=1e3).run(0, linear_regression().posterior)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rank": 1}, "rank must be 0 .* or at least 2, got 1"),
        ({"rank": -1}, "rank must be 0 .* or at least 2, got -1"),
        ({"rank": 20, "num_snapshots": 10}, "num_snapshots must be at least 2 and at least rank"),
        ({"momentum": 1.0}, r"momentum must be in \[0, 1\), got 1.0"),
        ({"learning_rate": 0.0}, "learning_rate must be > 0, got 0.0"),
        ({"batch_size": -1}, "batch_size must be > 0, got -1"),
        ({"num_draws": 0}, "num_draws must be > 0, got 0"),
        ({"num_warmup": 0}, "num_warmup must be > 0, got 0"),
    ],
)
def test_impossible_settings_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        SWAG(**settings)


def test_batches_of_all_rows_are_refused():
    with pytest.raises(InputError, match=r"batch_size=12 takes all 12 rows.*use fewer"):
        small(batch_size=12).run(0, linear_regression().posterior)


def test_rows_for_the_learning_rate_are_spread_out():
    data = Posterior(MLP(1), Gaussian(), Normal(), (np.arange(10.0)[:, None], np.ones(10))).data
    np.testing.assert_array_equal(spaced_rows(data, 4).x[:, 0], [0, 3, 6, 9])
    np.testing.assert_array_equal(spaced_rows(data, 99).x, data.x)
