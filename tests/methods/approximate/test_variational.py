"""Variational inference against closed forms: the best Gaussian for a Gaussian posterior.

Bayesian linear regression with known noise has posterior N(m, P^-1). The best mean field is
N(m, 1 / diag(P)) (Bishop, "Pattern recognition and machine learning", 2006, section 10.1.2); with
rank = weight, the best Gaussian is the posterior itself and the bound is the log evidence.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal
from tools.exact import LinearRegression, linear_regression, member_weights, z_scores

from credence.adaptation.schedules import cosine_decay
from credence.engine.clock import CompileClock
from credence.engine.driver import Driver
from credence.engine.plan import Plan
from credence.errors import InputError
from credence.kernels.ascent.variational import LowRankNormal, elbo, variational
from credence.kernels.base import Recipe
from credence.methods.approximate.variational import Variational
from credence.methods.training import Training

pytestmark = pytest.mark.rotates(3)

PROBLEM = linear_regression()
SHORT = Training(max_epochs=100)


def some_q(rank: int) -> LowRankNormal:
    """A Gaussian that is not the posterior, in the dtype of the test."""
    rng = np.random.default_rng(1)
    return LowRankNormal(
        jnp.asarray(rng.normal(size=4)),
        jnp.asarray(0.3 * rng.normal(size=4) - 2),
        jnp.asarray(rng.normal(size=(4, rank))),
    )


def covariance(q: LowRankNormal) -> np.ndarray:
    """S (I + L L') S."""
    std, factor = np.exp(np.asarray(q.log_std)), np.asarray(q.factor)
    return std[:, None] * (np.eye(len(std)) + factor @ factor.T) * std


def exact_elbo(problem: LinearRegression, flat: Any, rank: int, *, entropy_share: float = 1.0):
    """Evidence minus KL between two Gaussians, in closed form and differentiable."""
    q = LowRankNormal.unravel(flat, rank)
    mean, posterior_covariance = problem.solve()
    precision = jnp.asarray(np.linalg.inv(posterior_covariance))
    std = jnp.exp(q.log_std)
    cov = std[:, None] * (jnp.eye(4) + q.factor @ q.factor.T) * std
    error = q.mean - mean
    expected = (
        problem.log_evidence()
        + problem.log_posterior(mean)
        - 0.5 * (jnp.trace(precision @ cov) + error @ precision @ error)
    )
    log_det = jnp.linalg.slogdet(2 * jnp.pi * jnp.e * cov)[1]
    return expected + entropy_share * 0.5 * log_det


@pytest.mark.parametrize("rank", [0, 2, 4])
def test_family_has_its_moments_and_entropy(rank, float64):
    q = some_q(rank)
    noise = jax.random.normal(jax.random.key(0), (20_000, 4 + rank))
    centred = np.asarray(q.draws(noise)) - np.asarray(q.mean)
    products = centred[:, :, None] * centred[:, None, :]
    assert z_scores(centred, 0).max() < 4.5
    assert z_scores(products, covariance(q)).max() < 4.5
    assert z_scores(products, 1.1 * covariance(q)).max() > 8  # planted
    exact = multivariate_normal(cov=covariance(q)).entropy()
    np.testing.assert_allclose(q.entropy(), exact, rtol=1e-10)
    again = LowRankNormal.unravel(q.ravel(), rank)
    jax.tree.map(np.testing.assert_array_equal, again, q)


@pytest.mark.parametrize("rank", [0, 2])
def test_bound_and_its_gradient_are_unbiased(rank, float64):
    posterior, flat = PROBLEM.posterior, some_q(rank).ravel()
    estimate = elbo(posterior.log_density, num_samples=4, rank=rank)
    keys = jax.random.split(jax.random.key(0), 20_000)
    both = jax.vmap(jax.value_and_grad(estimate, argnums=1), (0, None, None))
    values, gradients = jax.jit(both)(keys, flat, posterior.data)

    def worst(**planted: float) -> float:
        exact = jax.value_and_grad(exact_elbo, argnums=1)
        value, gradient = exact(PROBLEM, flat, rank, **planted)
        # The gradient for the mean has no noise: compare it as it is.
        np.testing.assert_allclose(gradients[:, :4] - gradient[:4], 0, atol=1e-8)
        return max(z_scores(values, value), z_scores(gradients[:, 4:], gradient[4:]).max())

    assert worst() < 4.5
    assert worst(entropy_share=0.95) > 8  # planted
    assert worst(entropy_share=0.0) > 8  # planted: likelihood and prior without the entropy


def fitted(log_density: Any, rank: int, *, num_replicates: int = 32, num_steps: int = 3000) -> Any:
    """Parameters of q of independent fits, (replicate, parameter)."""
    posterior = PROBLEM.posterior
    start = LowRankNormal.near(jax.random.key(0), jnp.zeros(4), 0.1, rank).ravel()
    plan = Plan(
        Recipe(variational, log_density, (("num_samples", 16), ("rank", rank))),
        "refine",
        cosine_decay(0.02, num_steps // 50),
        num_steps=num_steps,
        thinning=50,
        block_steps=50,
        keep_draws=False,
    )
    starts = jnp.tile(start, (num_replicates, 1))
    with Driver() as driver:
        return driver.phase("refine", jax.random.key(1), plan, starts, posterior.data).positions


def wrong_by_5_percent(position: Any, data: Any) -> Any:
    return 1.05 * PROBLEM.posterior.log_density(position, data)


def test_mean_field_settles_at_the_closed_form():
    """Log variances of independent fits scatter around -log diag(precision)."""
    mean, cov = PROBLEM.solve()
    exact = -0.5 * np.log(np.diag(np.linalg.inv(cov)))
    found = np.asarray(fitted(PROBLEM.posterior.log_density, 0))
    np.testing.assert_allclose(found[:, :4], np.tile(mean, (len(found), 1)), atol=2e-3)
    assert z_scores(found[:, 4:], exact).max() < 4.5
    assert found[:, 4:].std(axis=0).max() < 0.02
    planted = np.asarray(fitted(wrong_by_5_percent, 0))
    assert z_scores(planted[:, 4:], exact).max() > 8


def test_full_rank_settles_at_the_posterior():
    """The covariance alone is unique: many std and factor make the same."""
    _, cov = PROBLEM.solve()
    root = np.linalg.inv(np.linalg.cholesky(cov))

    def whitened(log_density: Any) -> np.ndarray:
        qs = [LowRankNormal.unravel(flat, 4) for flat in fitted(log_density, 4)]
        return np.array([root @ covariance(q) @ root.T for q in qs])

    found = whitened(PROBLEM.posterior.log_density)
    assert z_scores(found, np.eye(4)).max() < 4.5
    assert found.std(axis=0).max() < 0.05
    assert z_scores(whitened(wrong_by_5_percent), np.eye(4)).max() > 8


@pytest.mark.parametrize("rank", [0, 4])
def test_draws_of_the_method(rank):
    """Mean field has the variances 1 / diag(precision), full rank the covariance of all."""
    ensemble = Variational(rank=rank, num_draws=5000, training=SHORT).run(0, PROBLEM.posterior)
    draws = member_weights(ensemble)

    def worst(problem: LinearRegression) -> float:
        mean, cov = problem.solve()
        exact = cov if rank else np.diag(1 / np.diag(np.linalg.inv(cov)))
        products = (draws - mean)[:, :, None] * (draws - mean)[:, None, :]
        return max(z_scores(draws, mean).max(), z_scores(products, exact).max())

    assert ensemble.num_draws == 5000
    assert worst(PROBLEM) < 4.5
    assert worst(PROBLEM._replace(noise_std=1.2 * PROBLEM.noise_std)) > 8  # planted
    if rank:
        evidence = PROBLEM.log_evidence()
        np.testing.assert_allclose(ensemble.scalars["elbo"][0, 0], evidence, atol=0.1)


@pytest.mark.slow
def test_minibatches_settle_there_too():
    problem = linear_regression(num_points=200)
    ensemble = Variational(rank=4, num_draws=5000, batch_size=50, training=SHORT).run(
        0, problem.posterior
    )
    mean, cov = problem.solve()
    root = np.linalg.inv(np.linalg.cholesky(cov))
    draws = (member_weights(ensemble) - mean) @ root.T
    assert np.abs(draws.mean(axis=0)).max() < 0.2
    assert np.abs(np.cov(draws.T) - np.eye(4)).max() < 0.15


def small(**settings: Any) -> Variational:
    return Variational(**({"num_draws": 20, "num_steps": 100, "training": SHORT} | settings))


def test_settings_change_the_result():
    posterior = PROBLEM.posterior
    base = member_weights(small().run(0, posterior))
    assert base.shape == (20, 4)
    for changed in (
        {"rank": 2},
        {"num_steps": 200},
        {"num_samples": 4},
        {"learning_rate": 0.02},
        {"initial_std": 0.1},
        {"batch_size": 5},
        {"training": Training(max_epochs=50)},
    ):
        assert not np.array_equal(member_weights(small(**changed).run(0, posterior)), base), changed


def test_second_data_set_of_the_same_shape_compiles_nothing():
    small().run(0, PROBLEM.posterior)
    other = linear_regression(seed=1).posterior
    with CompileClock() as clock:
        small(learning_rate=0.02, initial_std=0.1).run(1, other)
    assert clock.num_traces == 0


def test_the_trace_of_the_bound_ends_at_its_closed_form():
    """The log evidence minus KL(mean field || posterior); it cost num_samples gradients a step."""
    with Driver() as driver:
        Variational(training=SHORT, num_samples=16).draw(
            jax.random.key(0), PROBLEM.posterior, driver
        )
    info = driver.results["refine"].info
    bound = -len(PROBLEM.x) * info["loss"][0]
    precision = np.linalg.inv(PROBLEM.solve()[1])
    lost = 0.5 * (np.sum(np.log(np.diag(precision))) - np.linalg.slogdet(precision)[1])
    last = bound[-20:]  # means of 50 steps each
    error = last.std(ddof=1) / len(last) ** 0.5
    assert error < 0.05
    assert abs(last.mean() - (PROBLEM.log_evidence() - lost)) < 4.5 * error
    assert abs(last.mean() - PROBLEM.log_evidence()) > 8 * error  # planted: no loss at all
    assert bound[0] < last.mean() - 1
    assert bound.shape == (100,)
    assert info["num_gradients"].sum() == 16 * 5000


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rank": -1}, "rank must be >= 0, got -1; 0 is mean field"),
        ({"num_samples": 3}, "num_samples must be even.* got 3: use 4"),
        ({"num_samples": 0}, "num_samples must be > 0, got 0"),
        ({"learning_rate": 0.0}, "learning_rate must be > 0, got 0.0"),
        ({"initial_std": -1.0}, "initial_std must be > 0, got -1.0"),
        ({"batch_size": 0}, "batch_size must be > 0, got 0"),
    ],
)
def test_impossible_settings_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        Variational(**settings)


def test_a_rank_above_the_number_of_weights_is_refused():
    with pytest.raises(InputError, match="rank=5 exceeds the 4 weights: use at most 4"):
        small(rank=5).run(0, PROBLEM.posterior)
