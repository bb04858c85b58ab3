"""Likelihoods against scipy: densities with their constants, distribution functions, samples."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from tools.exact import assert_mean

from credence.errors import InputError
from credence.models import (
    Bernoulli,
    Categorical,
    HeteroscedasticNormal,
    HeteroscedasticStudentT,
    Likelihood,
    Normal,
    StudentT,
)
from credence.models.likelihoods.numbers import LocationScale

pytestmark = pytest.mark.usefixtures("checked_keys", "float64")

RNG = np.random.default_rng(0)
OUTPUTS = RNG.normal(size=(6, 2))
WIDE_OUTPUTS = np.column_stack([OUTPUTS, RNG.normal(size=(6, 2))])
Y = OUTPUTS + RNG.normal(size=(6, 2))
LOG_SCALE = np.array([-0.4, 0.3])

REGRESSION = {
    # likelihood, its parameters, outputs, the same distribution in scipy
    "fixed": (Normal(0.7), (), OUTPUTS, stats.norm(OUTPUTS, 0.7)),
    "learnt": (Normal(), LOG_SCALE, OUTPUTS, stats.norm(OUTPUTS, np.exp(LOG_SCALE))),
    "heteroscedastic": (
        HeteroscedasticNormal(),
        (),
        WIDE_OUTPUTS,
        stats.norm(OUTPUTS, np.exp(WIDE_OUTPUTS[:, 2:])),
    ),
    "heteroscedastic t": (
        HeteroscedasticStudentT(5.0),
        (),
        WIDE_OUTPUTS,
        stats.t(5.0, OUTPUTS, np.exp(WIDE_OUTPUTS[:, 2:])),
    ),
    "damped heteroscedastic": (
        HeteroscedasticNormal(0.3),
        (),
        WIDE_OUTPUTS,
        stats.norm(OUTPUTS, np.exp(0.3 * WIDE_OUTPUTS[:, 2:])),
    ),
    "damped heteroscedastic t": (
        HeteroscedasticStudentT(5.0, 0.3),
        (),
        WIDE_OUTPUTS,
        stats.t(5.0, OUTPUTS, np.exp(0.3 * WIDE_OUTPUTS[:, 2:])),
    ),
    "t": (StudentT(5.0, 0.7), (), OUTPUTS, stats.t(5.0, OUTPUTS, 0.7)),
    "t of 4": (StudentT(4.0, 0.7), (), OUTPUTS, stats.t(4.0, OUTPUTS, 0.7)),
    "learnt t": (StudentT(3.5), LOG_SCALE, OUTPUTS, stats.t(3.5, OUTPUTS, np.exp(LOG_SCALE))),
}


@pytest.mark.parametrize("case", REGRESSION.values(), ids=REGRESSION)
def test_regression_matches_scipy(case: tuple[LocationScale, Any, np.ndarray, Any]) -> None:
    likelihood, params, outputs, exact = case
    params, outputs = jnp.asarray(params) if len(params) else (), jnp.asarray(outputs)
    log_prob = likelihood.log_prob(params, outputs, jnp.asarray(Y))
    np.testing.assert_allclose(log_prob, exact.logpdf(Y).sum(axis=1), rtol=1e-10)
    np.testing.assert_allclose(likelihood.mean(params, outputs), exact.mean(), rtol=1e-12)
    np.testing.assert_allclose(likelihood.variance(params, outputs), exact.var(), rtol=1e-10)
    for y in (Y, Y - 3, Y + 3):
        np.testing.assert_allclose(
            likelihood.cdf(params, outputs, jnp.asarray(y)), exact.cdf(y), rtol=1e-8
        )
    assert likelihood.num_outputs(2) == outputs.shape[1]
    assert isinstance(likelihood, Likelihood)


@pytest.mark.parametrize("case", REGRESSION.values(), ids=REGRESSION)
def test_regression_samples(case: tuple[LocationScale, Any, np.ndarray, Any]) -> None:
    likelihood, params, outputs, exact = case
    params, outputs = jnp.asarray(params) if len(params) else (), jnp.asarray(outputs)
    keys = jax.random.split(jax.random.key(0), 4000)
    sample = jax.jit(jax.vmap(lambda key: likelihood.sample(key, params, outputs)))
    draws = np.asarray(sample(keys))
    uniform = exact.cdf(draws)
    assert_mean(uniform, 0.5, resolution=0.005)
    assert_mean((uniform - 0.5) ** 2, 1 / 12, resolution=0.002)
    spread = exact.cdf(1.1 * (draws - exact.mean()) + exact.mean())
    with pytest.raises(AssertionError):  # a scale 10 % too large
        assert_mean((spread - 0.5) ** 2, 1 / 12, resolution=0.002)


@pytest.mark.parametrize("family", [Normal, StudentT])
def test_learnt_scale_has_a_half_normal_prior(family: Any) -> None:
    """The prior of the log scale, with its Jacobian, integrates to one and matches scipy."""
    likelihood = family(scale_prior_std=1.7)
    density = jax.jit(lambda log_scale: jnp.exp(likelihood.log_prior(log_scale[None])))
    total, _ = quad(lambda log_scale: float(density(log_scale)), -30, 3)
    assert total == pytest.approx(1.0, abs=1e-7)
    expected = (stats.halfnorm.logpdf(np.exp(LOG_SCALE), scale=1.7) + LOG_SCALE).sum()
    np.testing.assert_allclose(likelihood.log_prior(jnp.asarray(LOG_SCALE)), expected, rtol=1e-12)

    draws = np.exp(likelihood.sample_prior(jax.random.key(0), 20_000))
    assert_mean(draws**2, 1.7**2, resolution=0.04)
    with pytest.raises(AssertionError):  # a prior 10 % too wide
        assert_mean((1.1 * draws) ** 2, 1.7**2, resolution=0.05)
    np.testing.assert_allclose(np.exp(likelihood.init(3)), np.full(3, 0.5 * 1.7))


@pytest.mark.parametrize(
    "likelihood",
    [Normal(0.3), StudentT(4.0, 0.3), HeteroscedasticNormal(), HeteroscedasticStudentT()],
)
def test_without_own_parameters(likelihood: Likelihood) -> None:
    assert likelihood.init(2) == ()
    assert likelihood.sample_prior(jax.random.key(0), 2) == ()
    assert float(likelihood.log_prior(())) == 0.0


def test_every_setting_changes_the_density() -> None:
    y, outputs, log_scale = jnp.asarray(Y), jnp.asarray(OUTPUTS), jnp.asarray(LOG_SCALE)
    fixed = [Normal(0.3), Normal(0.6), StudentT(4.0, 0.3), StudentT(5.0, 0.3), StudentT(4.0, 0.6)]
    densities = {float(part.log_prob((), outputs, y).sum()) for part in fixed}
    assert len(densities) == len(fixed)
    learnt = [Normal(), Normal(scale_prior_std=2.0), StudentT(scale_prior_std=3.0)]
    assert len({float(part.log_prior(log_scale)) for part in learnt}) == len(learnt)


def test_bernoulli_is_categorical_with_logits_zero_and_z() -> None:
    logits = jnp.asarray(RNG.normal(size=(50, 1)) * 5)
    labels = jnp.asarray(RNG.integers(0, 2, size=50), jnp.int32)
    two = jnp.concatenate([jnp.zeros_like(logits), logits], axis=1)
    bernoulli, categorical = Bernoulli(), Categorical()
    expected = categorical.log_prob((), two, labels)
    np.testing.assert_allclose(bernoulli.log_prob((), logits, labels), expected, rtol=1e-10)
    np.testing.assert_allclose(bernoulli.mean((), logits), categorical.mean((), two), rtol=1e-10)
    probability = stats.bernoulli.logpmf(labels, 1 / (1 + np.exp(-np.ravel(logits))))
    np.testing.assert_allclose(expected, probability, rtol=1e-8)
    assert bernoulli.num_outputs(7) == 1


@pytest.mark.parametrize("inverse_temperature", [1.0, 0.5, 3.0])
def test_categorical_matches_scipy(inverse_temperature: float) -> None:
    likelihood = Categorical(inverse_temperature)
    outputs = RNG.normal(size=(5, 3))
    weights = np.exp(inverse_temperature * outputs)
    probabilities = weights / weights.sum(axis=1, keepdims=True)
    labels = np.array([0, 1, 2, 1, 0], np.int32)
    log_prob = likelihood.log_prob((), jnp.asarray(outputs), jnp.asarray(labels))
    np.testing.assert_allclose(log_prob, np.log(probabilities[np.arange(5), labels]), rtol=1e-10)
    np.testing.assert_allclose(likelihood.mean((), jnp.asarray(outputs)), probabilities, rtol=1e-10)
    assert likelihood.num_outputs(3) == 3


@pytest.mark.parametrize(
    ("likelihood", "outputs"),
    [(Bernoulli(), np.array([[0.7], [-1.2]])), (Categorical(2.0), RNG.normal(size=(2, 3)))],
    ids=["bernoulli", "categorical"],
)
def test_labels_are_drawn_with_their_probabilities(
    likelihood: Bernoulli | Categorical, outputs: np.ndarray
) -> None:
    keys = jax.random.split(jax.random.key(0), 4000)
    labels = jax.vmap(lambda key: likelihood.sample(key, (), jnp.asarray(outputs)))(keys)
    assert labels.dtype == jnp.int32
    probabilities = np.asarray(likelihood.mean((), jnp.asarray(outputs)))
    for label in range(probabilities.shape[1]):
        assert_mean(labels == label, probabilities[:, label], resolution=0.01)
    with pytest.raises(AssertionError):  # labels turned round
        assert_mean(labels == 0, probabilities[:, -1], resolution=0.01)


def test_extreme_outputs_stay_finite() -> None:
    labels = jnp.array([0, 1], jnp.int32)
    huge = jnp.array([[1e4], [-1e4]])
    np.testing.assert_allclose(Bernoulli().log_prob((), huge, labels), [-1e4, -1e4])
    far = jnp.array([[1e4, 0.0], [1e4, 0.0]])
    np.testing.assert_allclose(Categorical().log_prob((), far, labels), [0.0, -1e4])


def test_targets_are_taken_as_the_likelihood_wants_them() -> None:
    column = Normal().checked_targets(np.array([1, 2, 3]))
    assert column.shape == (3, 1)
    assert column.dtype == float
    for likelihood in (Bernoulli(), Categorical()):
        labels = likelihood.checked_targets([True, False])
        np.testing.assert_array_equal(labels, [1, 0])
        assert labels.dtype == np.int32


@pytest.mark.parametrize("df", [2.5, 4.0, 10.0])
def test_the_distribution_function_is_exact_around_its_centre(df: float) -> None:
    """This is of single precision, where df / (df + z^2) rounds to 1."""
    z = np.concatenate([np.geomspace(1e-6, 30, 400), -np.geomspace(1e-6, 30, 400)])
    z = np.concatenate([z, [0.0, np.inf, -np.inf]])  # infinite where a scale has underflowed
    with jax.enable_x64(False):
        found = StudentT(df).noise_cdf(jnp.asarray(z, jnp.float32))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, stats.t(df).cdf(z), rtol=0, atol=3e-6)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Normal(0.1, scale_prior_std=2.0), "noise_std is given: leave it out"),
        (lambda: StudentT(scale=0.1, scale_prior_std=2.0), "scale is given: leave it out"),
        (lambda: Normal(0.0), "noise_std must be > 0, got 0.0"),
        (lambda: Normal(scale_prior_std=-1.0), "scale_prior_std must be > 0"),
        (lambda: StudentT(df=2.0), "df must be > 2 for a finite variance, got 2.0; 4 is usual"),
        (lambda: StudentT(scale=0.0), "scale must be > 0"),
        (lambda: HeteroscedasticNormal(0.0), "scale_gain must be > 0"),
        (lambda: HeteroscedasticStudentT(scale_gain=-1.0), "scale_gain must be > 0"),
        (lambda: Categorical(0.0), "inverse_temperature must be > 0"),
        (lambda: Normal().checked_targets(["a", "b"]), "Normal needs numbers y"),
        (lambda: StudentT().checked_targets(np.zeros((2, 1, 1))), r"got shape \(2, 1, 1\)"),
        (lambda: Bernoulli().checked_targets([0, 1, 2]), "labels from 0 to 1, got 0 to 2"),
        (lambda: Categorical().checked_targets([-1, 1]), "labels from 0, got -1 to 1"),
        (lambda: Categorical().checked_targets([0.0, 1.0]), "integer labels .* of float64"),
        (lambda: Categorical().checked_targets([[0], [1]]), r"got shape \(2, 1\)"),
    ],
)
def test_bad_settings_and_targets_are_refused(make: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        make()
