"""The posterior against Bayesian linear regression in closed form; weights, minibatches, input."""

import inspect
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tools.exact import LinearRegression, assert_mean, linear_regression

from credence.density.data import Data, checked_data, minibatch
from credence.density.posterior import BayesianModel, Posterior
from credence.errors import InputError
from credence.models import (
    MLP,
    Bernoulli,
    Categorical,
    Gaussian,
    HierarchicalGamma,
    Likelihood,
    Normal,
    StudentT,
)
from credence.models.priors import Prior

pytestmark = pytest.mark.usefixtures("checked_keys")


def assert_normalised(posterior: Posterior, exact: LinearRegression) -> None:
    """log p(w, y) = log p(y) + log p(w | y) at any w, constants included (Besag, 1989)."""
    mean, covariance = exact.solve()
    log_density = jax.jit(posterior.log_density)
    for position in np.random.default_rng(1).multivariate_normal(mean, 4 * covariance, size=5):
        joint = log_density(jnp.asarray(position), posterior.data)
        assert abs(joint - exact.log_evidence() - exact.log_posterior(position)) < 1e-9


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("scaling", ["fan_in", "unit"])
def test_density_is_evidence_times_posterior(scaling: str) -> None:
    problem = linear_regression()
    exact = problem._replace(prior=Gaussian(scaling, weight_std=1.5, bias_std=0.8))
    assert_normalised(exact.posterior, exact)


@dataclass(frozen=True)
class NoBiasPrior(Gaussian):
    """Planted error: the density forgets the bias."""

    def log_density(self, network: Any, params: Any, hyper: Any) -> Any:
        bias = params[-1].bias
        forgotten = jax.scipy.stats.norm.logpdf(bias, scale=self.bias_std).sum()
        return super().log_density(network, params, hyper) - forgotten


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("error", ["no bias prior", "noise", "prior", "one row less"])
def test_planted_errors_are_caught(error: str) -> None:
    exact = linear_regression()
    x, y = exact.x, exact.y
    network, likelihood = MLP(1, hidden=()), Normal(exact.noise_std)
    wrong = {
        "no bias prior": (network, NoBiasPrior("fan_in", 1.5, 0.8), likelihood, (x, y)),
        "noise": (network, exact.prior, Normal(1.001 * exact.noise_std), (x, y)),
        "prior": (network, Gaussian("fan_in", 1.5, 0.801), likelihood, (x, y)),
        "one row less": (network, exact.prior, likelihood, (x[1:], y[1:])),
    }[error]
    with pytest.raises(AssertionError):
        assert_normalised(Posterior(*wrong), exact)


MODELS: dict[str, tuple[int, Prior, Likelihood]] = {
    "normal": (1, Gaussian(), Normal()),
    "student": (1, HierarchicalGamma(), StudentT()),
    "categorical": (3, Gaussian(), Categorical()),
}


def small_posterior(name: str, weight: Any = None, rows: Any = slice(None)) -> Posterior:
    """One hidden layer on seven rows."""
    rng = np.random.default_rng(0)
    num_outputs, prior, likelihood = MODELS[name]
    x = rng.normal(size=(7, 2))
    y = rng.integers(0, 3, size=7) if name == "categorical" else rng.normal(size=7)
    data = (x[rows], y[rows]) if weight is None else (x[rows], y[rows], weight)
    return Posterior(MLP(num_outputs, hidden=(3,)), prior, likelihood, data)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("name", MODELS)
def test_integer_weights_repeat_rows(name: str) -> None:
    weight = np.array([0, 1, 2, 3, 1, 0, 4])
    weighted = small_posterior(name, weight)
    repeated = small_posterior(name, rows=np.repeat(np.arange(7), weight))
    position = weighted.init(jax.random.key(0), 1)[0]
    log_density = jax.jit(weighted.log_density)
    expected = log_density(position, repeated.data)
    np.testing.assert_allclose(log_density(position, weighted.data), expected, rtol=1e-12)
    assert abs(log_density(position, small_posterior(name).data) - expected) > 1e-3


def batch_log_likelihood(posterior: Posterior, index: Any, is_real: Any = None) -> float:
    """Estimate of the full-data log likelihood from some rows."""
    real = np.ones(len(index)) if is_real is None else np.asarray(is_real)
    batch = minibatch(posterior.data, jnp.asarray(index), jnp.asarray(real))
    return float(log_likelihood(batch, posterior.model))


@partial(jax.jit, static_argnums=1)
def log_likelihood(data: Data, model: BayesianModel) -> jax.Array:
    """Log likelihood at some weights, the same for all data."""
    return model.log_likelihood(model.init(jax.random.key(0), data), data)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("name", ["normal", "categorical"])
@pytest.mark.parametrize("weight", [None, np.arange(7) / 3], ids=["equal", "weighted"])
def test_minibatches_are_unbiased(name: str, weight: Any) -> None:
    """Means are over all subsets of three rows, and of two with a row that fills the shape."""
    posterior = small_posterior(name, weight)
    full = float(log_likelihood(posterior.data, posterior.model))
    threes = [batch_log_likelihood(posterior, rows) for rows in combinations(range(7), 3)]
    assert np.mean(threes) == pytest.approx(full, rel=1e-12)
    twos = [
        batch_log_likelihood(posterior, (*rows, 0), (1.0, 1.0, 0.0))
        for rows in combinations(range(7), 2)
    ]
    assert np.mean(twos) == pytest.approx(full, rel=1e-12)
    not_marked = [batch_log_likelihood(posterior, (*rows, 0)) for rows in combinations(range(7), 2)]
    assert np.mean(not_marked) != pytest.approx(full, rel=1e-3)  # a filling row that counts


@pytest.mark.usefixtures("float64")
def test_an_epoch_adds_up() -> None:
    """Each batch estimates the whole: equal batches average to it, ragged ones by their size."""
    posterior = small_posterior("normal")
    full = float(log_likelihood(posterior.data, posterior.model))
    order = np.random.default_rng(2).permutation(7)
    singles = [batch_log_likelihood(posterior, order[i : i + 1]) for i in range(7)]
    assert np.mean(singles) == pytest.approx(full, rel=1e-12)
    ragged = [
        batch_log_likelihood(posterior, order[[0, 1, 2, 3]]),
        batch_log_likelihood(posterior, [*order[[4, 5, 6]], 0], [1.0, 1.0, 1.0, 0.0]),
    ]
    assert np.average(ragged, weights=[4, 3]) == pytest.approx(full, rel=1e-12)


@pytest.mark.usefixtures("float64")
def test_log_density_is_prior_times_likelihood() -> None:
    posterior = small_posterior("student")
    params = posterior.unravel(posterior.init(jax.random.key(0), 1)[0])
    model, data = posterior.model, posterior.data
    both = model.log_prior(params) + model.log_likelihood(params, data)
    np.testing.assert_allclose(model.log_density(params, data), both, rtol=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_ravel_and_unravel_are_inverse(name: str) -> None:
    posterior = small_posterior(name)
    positions = jax.random.normal(jax.random.key(0), (2, 4, posterior.num_weights))
    params = posterior.unravel(positions)
    assert {leaf.shape[:2] for leaf in jax.tree.leaves(params)} == {(2, 4)}
    one = jax.tree.map(lambda leaf: leaf[1, 3], params)
    np.testing.assert_array_equal(posterior.ravel(one), positions[1, 3])


def test_starting_points_differ_and_are_finite() -> None:
    posterior = small_posterior("student")
    starts = posterior.init(jax.random.key(0), 3)
    assert starts.shape == (3, posterior.num_weights)
    assert not np.any(starts[0, :6] == starts[1, :6])  # the first kernel
    value_and_grad = jax.jit(jax.value_and_grad(posterior.log_density))
    for start in starts:
        value, gradient = value_and_grad(start, posterior.data)
        assert np.isfinite(value)
        assert np.all(np.isfinite(gradient))


def test_equal_models_share_one_log_density() -> None:
    first, second = small_posterior("normal"), small_posterior("normal", rows=[0, 1])
    assert first.log_density is second.log_density
    assert first.log_density is not small_posterior("categorical").log_density


def test_prior_draws_explain_the_data_as_stated() -> None:
    """E y^2 = E f^2 + E noise^2 over the prior, for a linear network."""
    prior = Gaussian(weight_std=1.5, bias_std=0.8)
    posterior = Posterior(
        MLP(2, hidden=()), prior, Normal(scale_prior_std=0.6), (np.eye(3), np.ones((3, 2)))
    )
    model, x = posterior.model, jnp.array([[1.0, 2.0, -1.0]])

    def simulate(key: jax.Array) -> jax.Array:
        key_params, key_noise = jax.random.split(key)
        params = model.sample_prior(key_params, posterior.data)
        return model.simulate(key_noise, params, x)[0]

    targets = np.asarray(
        jax.jit(jax.vmap(simulate))(jax.random.split(jax.random.key(0), 5000)), float
    )
    expected = 1.5**2 * (1 + 4 + 1) / 3 + 0.8**2 + 0.6**2
    assert_mean(targets, 0.0, resolution=0.04)
    assert_mean(targets**2, expected, resolution=0.15)
    with pytest.raises(AssertionError):  # noise twice as large
        assert_mean(targets**2, expected + 3 * 0.6**2, resolution=0.15)


def test_integers_are_numbers_to_a_regression() -> None:
    x, y = np.eye(3), np.array([0, 5, 2])
    network, prior = MLP(1, hidden=()), Gaussian()
    whole = Posterior(network, prior, Normal(1.0), (x, y))
    real = Posterior(network, prior, Normal(1.0), (x, y.astype(float)))
    np.testing.assert_array_equal(whole.data.y, real.data.y)


def test_images_and_several_targets_fit() -> None:
    data = checked_data(np.zeros((2, 8, 8, 1)), np.zeros((2, 3)))
    assert data.x.shape == (2, 8, 8, 1)
    assert data.y.shape == (2, 3)
    posterior = Posterior(MLP(3), Gaussian(), Normal(), (np.eye(2), np.zeros((2, 3))))
    assert posterior.model.likelihood.init(3).shape == (3,)
    assert "2 points" in repr(posterior)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((np.ones(3), np.ones(3)), r"x must be \(point, feature\).*got shape \(3,\)"),
        ((np.ones((0, 2)), np.ones(0)), r"at least one row, got shape \(0, 2\)"),
        ((np.eye(2), np.ones(3)), "x has 2 rows but y has 3"),
        ((np.full((2, 2), np.inf), np.ones(2)), "x has NaN or infinite values"),
        ((np.eye(2), np.array([1.0, np.nan])), "y has NaN or infinite values"),
        ((1e300 * np.eye(2), np.ones(2)), "x has NaN or infinite values"),
        ((np.eye(2), np.ones(2), np.ones(3)), r"weight must be 2 numbers, got shape \(3,\)"),
        ((np.eye(2), np.ones(2), np.array([1.0, -2.0])), "weight must be >= 0, got -2"),
        ((np.eye(2), np.ones(2), np.array([1.0, np.nan])), "weight has NaN"),
        ((np.array([["a", "b"]]), np.ones(1)), "x must be numbers"),
    ],
)
def test_bad_data_are_refused(arguments: tuple[Any, ...], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        checked_data(*arguments)


@pytest.mark.parametrize(
    ("network", "likelihood", "y", "sentence"),
    [
        (MLP(2), Bernoulli(), [0, 1, 1], r"outputs have shape \(3, 2\), but .* need \(3, 1\)"),
        (MLP(2), Normal(), np.ones(3), r"outputs have shape \(3, 2\), but .* need \(3, 1\)"),
        (MLP(2), Categorical(), np.array([0, 1, 2]), r"need \(3, 3\)"),
        (MLP(1), Bernoulli(), np.array([0, 1, 2]), "labels from 0 to 1"),
        (MLP(2), Categorical(), np.array([0.0, 1.0, 1.0]), "integer labels"),
    ],
)
def test_models_that_do_not_fit_the_data_are_refused(
    network: MLP, likelihood: Likelihood, y: np.ndarray, sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        Posterior(network, Gaussian(), likelihood, (np.eye(3), y))


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ((MLP(1), "unit", Normal()), "The prior must be an object of credence.models.*got 'unit'"),
        ((MLP(1), Normal(), Gaussian()), r"The prior must be .* has log_density\(\)"),
        ((MLP(1), Gaussian, Normal()), "The prior must be an object"),
        ((Normal(), Gaussian(), Normal()), r"The network must be .* has apply\(\)"),
    ],
)
def test_what_is_no_part_of_a_model_is_refused(parts: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        unchecked_posterior(*parts)


def unchecked_posterior(*parts: Any) -> Posterior:
    """Annotations are not checked before, as for users."""
    made = object.__new__(Posterior)
    inspect.unwrap(Posterior.__init__)(made, *parts, (np.zeros((3, 1)), np.zeros(3)))
    return made


def test_more_outputs_than_seen_classes_are_fine() -> None:
    assert Posterior(MLP(4), Gaussian(), Categorical(), (np.eye(3), np.array([0, 1, 1]))).num_points


def test_model_is_hashable_and_compares_by_value() -> None:
    first = BayesianModel(MLP(1), Gaussian(), Normal())
    assert first == BayesianModel(MLP(1), Gaussian(), Normal())
    assert hash(first) == hash(BayesianModel(MLP(1), Gaussian(), Normal()))


def test_an_anchor_keeps_differences_accurate_on_many_points():
    """A sum over a million rows in float32 loses what a Metropolis test needs."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1_000_000, 2)).astype(np.float32)
    y = x[:, 0] + 3 * rng.normal(size=len(x)).astype(np.float32)
    posterior = Posterior(MLP(1, ()), Gaussian(), Normal(noise_std=3.0), (x, y))
    start = jnp.array([0.99, 0.01, 0.0])
    places = start + 1e-3 * jnp.array(rng.normal(size=(8, 3)), jnp.float32)
    log_density = jax.jit(posterior.log_density)

    def exact(position: np.ndarray) -> float:
        *weights, bias = np.asarray(position).astype(float)
        residual = y.astype(float) - x.astype(float) @ np.array(weights) - bias
        prior = 2 * np.dot(weights, weights) + bias**2
        return float(-0.5 * (np.sum(residual**2) / 9 + prior))

    def worst_error(data: Data) -> float:
        first = float(log_density(places[0], data))
        found = [float(log_density(place, data)) - first for place in places]
        truth = [exact(place) - exact(places[0]) for place in places]
        return float(np.max(np.abs(np.subtract(found, truth))))

    assert worst_error(posterior.anchored(start)) < 0.01
    assert worst_error(posterior.data) > 0.05, "the planted error: no anchor"
