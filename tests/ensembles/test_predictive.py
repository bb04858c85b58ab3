"""Mixtures of members' predictions against numpy and scipy by hand."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize, stats
from scipy.special import softmax
from tools.exact import assert_mean, linear_regression

from credence.ensembles.mixture import Mixture
from credence.ensembles.predictions import concatenate
from credence.ensembles.predictive import Predictive
from credence.errors import InputError
from credence.models import (
    MLP,
    Bernoulli,
    Categorical,
    HeteroscedasticNormal,
    Layer,
    Likelihood,
    Normal,
    StudentT,
)
from credence.models.likelihoods.base import NoParameters

pytestmark = pytest.mark.usefixtures("checked_keys", "float64")

LEVELS = (1e-6, 0.001, 0.025, 0.3, 0.5, 0.9, 0.975, 1 - 1e-6)
POSITIVE = np.array([0.1, 0.2, 0.3, 0.25, 0.15])
SIGNED = np.array([0.6, 0.7, -0.3, 0.2, -0.2])


def predictive(
    likelihood: Likelihood, outputs: Any, params: Any = (), weights: Any = None
) -> Predictive:
    outputs = jnp.asarray(outputs, float)
    weights = np.full(len(outputs), 1 / len(outputs)) if weights is None else weights
    return Predictive(likelihood, outputs, params, jnp.asarray(weights))


def rng_outputs(num_outputs: int = 2) -> np.ndarray:
    """Five members, three points."""
    return 2 * np.random.default_rng(0).normal(size=(5, 3, num_outputs))


def regressions(weights: np.ndarray) -> dict[str, tuple[Predictive, Any]]:
    """Predictives of two targets, with the members' distributions in scipy."""
    outputs, wide = rng_outputs(), rng_outputs(4)
    log_scale = np.random.default_rng(1).normal(size=(5, 2)) / 2
    each = np.exp(log_scale)[:, None, :]
    return {
        "fixed": (predictive(Normal(0.7), outputs, (), weights), stats.norm(outputs, 0.7)),
        "learnt": (
            predictive(Normal(), outputs, jnp.asarray(log_scale), weights),
            stats.norm(outputs, each),
        ),
        "heteroscedastic": (
            predictive(HeteroscedasticNormal(), wide, (), weights),
            stats.norm(wide[..., :2], np.exp(wide[..., 2:])),
        ),
        "t": (
            predictive(StudentT(4.0), outputs, jnp.asarray(log_scale), weights),
            stats.t(4.0, outputs, each),
        ),
    }


def mix(weights: np.ndarray, values: np.ndarray) -> np.ndarray:
    return np.tensordot(weights, values, axes=1)


@pytest.mark.parametrize("weights", [POSITIVE, SIGNED], ids=["positive", "signed"])
@pytest.mark.parametrize("name", ["fixed", "learnt", "heteroscedastic", "t"])
def test_regression_mixture(name: str, weights: np.ndarray) -> None:
    mixture, exact = regressions(weights)[name]
    y = np.random.default_rng(2).normal(size=(3, 2))
    means = exact.mean()
    centre = mix(weights, means)
    aleatoric = mix(weights, np.broadcast_to(exact.var(), means.shape))
    epistemic = np.maximum(mix(weights, (means - centre) ** 2), 0)
    np.testing.assert_allclose(mixture.mean(), centre, rtol=1e-10)
    np.testing.assert_allclose(mixture.aleatoric_variance(), aleatoric, rtol=1e-10)
    np.testing.assert_allclose(mixture.epistemic_variance(), epistemic, rtol=1e-10)
    total = np.maximum(aleatoric + epistemic, 0)
    np.testing.assert_allclose(np.asarray(mixture.std()) ** 2, total, rtol=1e-10)
    np.testing.assert_allclose(mixture.cdf(jnp.asarray(y)), mix(weights, exact.cdf(y)), rtol=1e-8)
    valid = np.maximum(weights, 0) / np.maximum(weights, 0).sum()
    expected = np.log(mix(valid, np.prod(exact.pdf(y), axis=-1)))
    np.testing.assert_allclose(mixture.log_prob(jnp.asarray(y)), expected, rtol=1e-8)


def test_variance_decomposition_is_the_law_of_total_variance() -> None:
    """Total variance of the mixture: E y^2 - (E y)^2, from the members' raw moments."""
    mixture, exact = regressions(POSITIVE)["learnt"]
    raw = mix(POSITIVE, exact.var() + exact.mean() ** 2) - mix(POSITIVE, exact.mean()) ** 2
    np.testing.assert_allclose(np.asarray(mixture.std()) ** 2, raw, rtol=1e-10)


@pytest.mark.parametrize("weights", [POSITIVE, SIGNED], ids=["positive", "signed"])
@pytest.mark.parametrize("name", ["fixed", "learnt", "heteroscedastic", "t"])
def test_quantiles_invert_the_distribution_function(name: str, weights: np.ndarray) -> None:
    mixture, _ = regressions(weights)[name]
    assert_inverse(mixture)


def assert_inverse(mixture: Predictive, levels: tuple[float, ...] = LEVELS) -> None:
    quantiles = mixture.quantiles(levels)
    assert quantiles.shape[0] == len(levels)
    for level, quantile in zip(levels, quantiles, strict=True):
        np.testing.assert_allclose(mixture.cdf(quantile), level, atol=1e-6)
        if level < 1e-5 or level > 1 - 1e-5:  # there, 1e-6 is no small error
            tail = min(level, 1 - level)
            reached = mixture.cdf(quantile)
            actual = reached if level < 0.5 else 1 - reached
            np.testing.assert_allclose(actual, tail, rtol=0.01)


@pytest.mark.parametrize("gap", [1.0, 30.0, 1000.0])
@pytest.mark.parametrize("share", [0.5, 0.1, 0.001])
@pytest.mark.parametrize("likelihood", [Normal(1.0), StudentT(3.0, 1.0)], ids=["normal", "t"])
def test_quantiles_of_two_far_modes(gap: float, share: float, likelihood: Likelihood) -> None:
    outputs = np.array([0.0, gap]).reshape(2, 1, 1)
    levels = (1e-6, 0.9 * share, 1.1 * share, 0.4, 0.6, 1 - 1e-6)
    assert_inverse(predictive(likelihood, outputs, (), [share, 1 - share]), levels)


def test_quantiles_of_members_of_very_different_scale() -> None:
    log_scale = jnp.log(jnp.array([[1e-3], [1.0], [100.0]]))
    assert_inverse(predictive(Normal(), [[[0.0]], [[0.5]], [[-2.0]]], log_scale))


@pytest.mark.parametrize("log_scale", [43.0, 45.0, 60.0, 87.0, 100.0])
def test_a_member_without_bounds_leaves_the_quantiles_of_the_others(log_scale: float) -> None:
    """The square of a scale of exp(45), and with it the spread, is infinite in single precision.

    Half of such a member is below, half above all others.
    """
    with jax.enable_x64(False):
        means = np.random.default_rng(0).normal(size=100)
        outputs = np.stack([means, np.full(100, -1.0)], axis=1)[:, None]
        outputs[0, 0, 1] = log_scale
        weights = jnp.full(100, 0.01, jnp.float32)
        mixture = Predictive(
            HeteroscedasticNormal(), jnp.asarray(outputs, jnp.float32), (), weights
        )
        halves = Mixture(
            tuple(
                replace(mixture, outputs=mixture.outputs[part], weights=jnp.full(50, 0.02))
                for part in (slice(50), slice(50, 100))
            ),
            np.array([0.5, 0.5]),
        )

        def excess(y: float, level: float) -> float:
            return (stats.norm.cdf((y - means[1:]) / np.exp(-1)).sum() + 0.5) / 100 - level

        levels = (0.025, 0.25, 0.5, 0.975)
        exact = [optimize.brentq(excess, -9.0, 9.0, args=(level,)) for level in levels]
        for each in (mixture, halves):
            np.testing.assert_allclose(np.ravel(each.quantiles(levels)), exact, atol=2e-5)
        assert np.isinf(mixture.std()).all() == (log_scale > 44)


def test_one_member_has_its_own_quantiles() -> None:
    one = predictive(StudentT(3.0, 2.0), [[[1.5]]])
    np.testing.assert_allclose(
        np.ravel(one.quantiles(LEVELS)), stats.t.ppf(LEVELS, 3.0, 1.5, 2.0), rtol=1e-4
    )


def test_quantiles_in_single_precision() -> None:
    with jax.enable_x64(False):
        outputs = jnp.asarray(np.random.default_rng(0).normal(size=(200, 4, 1)), jnp.float32)
        mixture = Predictive(Normal(0.3), outputs, (), jnp.full(200, 1 / 200, jnp.float32))
        for level in (0.025, 0.5, 0.975):
            reached = mixture.cdf(mixture.quantiles([level])[0])
            np.testing.assert_allclose(reached, level, atol=2e-6)


@pytest.mark.parametrize("level", [0.0, 1.0, -0.1, 1.5, 1e-9, float("nan")])
def test_impossible_levels_are_refused(level: float) -> None:
    with pytest.raises(InputError, match="Quantile levels must be in"):
        predictive(Normal(1.0), rng_outputs()).quantiles([0.5, level])


@pytest.mark.parametrize("weights", [POSITIVE, SIGNED], ids=["positive", "signed"])
def test_classification_mixture(weights: np.ndarray) -> None:
    outputs = rng_outputs(3)
    mixture = predictive(Categorical(2.0), outputs, (), weights)
    members = softmax(2 * outputs, axis=-1)
    mean = mix(weights, members)
    np.testing.assert_allclose(mixture.mean(), mean, rtol=1e-10)
    labels = np.array([0, 2, 1], np.int32)
    valid = np.maximum(weights, 0) / np.maximum(weights, 0).sum()
    expected = np.log(mix(valid, members)[np.arange(3), labels])
    np.testing.assert_allclose(mixture.log_prob(jnp.asarray(labels)), expected, rtol=1e-10)

    projected = np.maximum(mean, 0) / np.maximum(mean, 0).sum(axis=-1, keepdims=True)
    total = stats.entropy(projected, axis=-1)
    aleatoric = np.clip(mix(weights, stats.entropy(members, axis=-1)), 0, total)
    np.testing.assert_allclose(mixture.entropy_total(), total, rtol=1e-10)
    np.testing.assert_allclose(mixture.entropy_aleatoric(), aleatoric, rtol=1e-10)
    np.testing.assert_allclose(mixture.entropy_epistemic(), total - aleatoric, rtol=1e-9)


def test_entropies_of_signed_weights_stay_possible() -> None:
    """Two certain members and a doubtful one that counts -1: the plain sum would be -log 2."""
    members = np.array([[[20.0, -20.0]], [[20.0, -20.0]], [[0.0, 0.0]]])
    mixture = predictive(Categorical(), members, (), [1.0, 1.0, -1.0])
    np.testing.assert_allclose(mixture.mean(), [[1.5, -0.5]], atol=1e-6)
    for entropy in (mixture.entropy_total(), mixture.entropy_epistemic()):
        np.testing.assert_allclose(entropy, 0.0, atol=1e-12)
    doubtful = predictive(Categorical(), members, (), [0.5, -0.5, 1.0])
    np.testing.assert_allclose(doubtful.entropy_aleatoric(), np.log(2), rtol=1e-6)


def test_entropy_of_certainty_is_zero() -> None:
    certain = predictive(Bernoulli(), np.full((2, 1, 1), 1e4))
    np.testing.assert_allclose(certain.entropy_total(), 0.0)
    disagreeing = predictive(Bernoulli(), [[[1e4]], [[-1e4]]])
    np.testing.assert_allclose(disagreeing.entropy_epistemic(), np.log(2))
    np.testing.assert_allclose(disagreeing.entropy_aleatoric(), 0.0)


def normal_crps(z: np.ndarray) -> np.ndarray:
    """CRPS of a standard normal forecast (Gneiting & Raftery, 2007, eq. 21)."""
    return z * (2 * stats.norm.cdf(z) - 1) + 2 * stats.norm.pdf(z) - np.pi**-0.5


def test_crps_of_a_normal() -> None:
    y = np.array([[-1.0], [0.3], [2.5]])
    mixture = predictive(Normal(1.5), np.full((1, 3, 1), 0.5))
    score = jax.jit(lambda key: mixture.crps(jnp.asarray(y), key, num_samples=100))
    scores = jax.lax.map(score, jax.random.split(jax.random.key(0), 400))
    exact = 1.5 * normal_crps((y - 0.5) / 1.5)
    assert_mean(scores, exact, resolution=0.01)  # unbiased at any number of samples
    with pytest.raises(AssertionError):  # the biased second term, 1 / num_samples too small
        assert_mean(np.asarray(scores) + 1.5 * np.pi**-0.5 / 10, exact, resolution=0.01)


@pytest.mark.parametrize("weights", [POSITIVE, SIGNED], ids=["positive", "signed"])
def test_draws_follow_the_weights(weights: np.ndarray) -> None:
    """Negative weights count as zero."""
    mixture, exact = regressions(weights)["learnt"]
    draws = np.asarray(mixture.sample(jax.random.key(0), 4000))
    assert draws.shape == (4000, 3, 2)
    positive = np.maximum(weights, 0) / np.maximum(weights, 0).sum()
    assert_mean(draws, mix(positive, exact.mean()), resolution=0.06)
    with pytest.raises(AssertionError):
        assert_mean(draws, exact.mean().mean(axis=0), resolution=0.06)


def test_drawn_labels_have_the_predicted_probabilities() -> None:
    mixture = predictive(Categorical(), rng_outputs(3), (), POSITIVE)
    labels = np.asarray(mixture.sample(jax.random.key(0), 4000))
    one_hot = labels[..., None] == np.arange(3)
    assert_mean(one_hot, np.asarray(mixture.mean()), resolution=0.01)


def test_questions_of_the_other_kind_are_refused() -> None:
    labels, numbers = (
        predictive(Bernoulli(), rng_outputs(1)),
        predictive(Normal(1.0), rng_outputs()),
    )
    y = jnp.zeros((3, 2))
    for ask in (
        labels.std,
        lambda: labels.cdf(y),
        lambda: labels.quantiles([0.5]),
        lambda: labels.crps(y, jax.random.key(0)),
    ):
        with pytest.raises(InputError, match="predicts labels"):
            ask()
    for ask in (numbers.entropy_total, numbers.entropy_aleatoric, numbers.entropy_epistemic):
        with pytest.raises(InputError, match="predicts numbers"):
            ask()
    with pytest.raises(InputError, match="num_samples must be >= 2, got 1"):
        numbers.crps(y, jax.random.key(0), num_samples=1)
    assert numbers.is_regression
    assert not labels.is_regression


def test_batches_join_along_the_points() -> None:
    joined = concatenate([{"a": np.zeros((2, 3))}, {"a": np.ones((1, 3))}])
    assert joined["a"].shape == (3, 3)


@pytest.mark.parametrize("planted", [False, True])
def test_exact_posterior_draws_predict_as_the_closed_form(planted: bool) -> None:
    """Bayesian linear regression; planted error: noise standard deviation 5 % too large."""
    exact = linear_regression()
    new = np.random.default_rng(3).normal(size=(4, 3))
    mean, std = exact.predict(new)
    y = mean + 0.7 * std
    noise_std = exact.noise_std * (1.05 if planted else 1.0)
    network = MLP(1, hidden=())

    def estimates(seed: int) -> dict[str, np.ndarray]:
        draws = np.random.default_rng(seed).multivariate_normal(*exact.solve(), size=1000)
        layer = Layer(jnp.asarray(draws[:, :-1, None]), jnp.asarray(draws[:, -1:]))
        outputs = jax.vmap(network.apply, (0, None))((layer,), jnp.asarray(new))
        mixture = predictive(Normal(noise_std), outputs)
        return {
            "mean": np.asarray(mixture.mean())[:, 0],
            "variance": np.asarray(mixture.std())[:, 0] ** 2 * (1 + bessel(mixture)),
            "cdf": np.asarray(mixture.cdf(jnp.asarray(y[:, None])))[:, 0],
            "density": np.exp(mixture.log_prob(jnp.asarray(y[:, None]))),
        }

    def bessel(mixture: Predictive) -> np.ndarray:
        """The variance between 1000 members is biased by 1/1000 of itself."""
        between = np.asarray(mixture.epistemic_variance())[:, 0]
        return between / 999 / np.asarray(mixture.std())[:, 0] ** 2

    repeats = [estimates(seed) for seed in range(64)]
    truth = {
        "mean": mean,
        "variance": std**2,
        "cdf": np.full(4, stats.norm.cdf(0.7)),
        "density": stats.norm.pdf(y, mean, std),
    }
    wrong = ("variance", "cdf", "density") if planted else ()
    for name, value in truth.items():
        draws = np.array([repeat[name] for repeat in repeats])
        if name in wrong:
            with pytest.raises(AssertionError, match="standard errors off"):
                assert_mean(draws, value, resolution=0.01)
        else:
            assert_mean(draws, value, resolution=0.01)


def test_targets_may_be_a_plain_list_of_numbers() -> None:
    """One target: (point,) is (point, 1), and never another target for each point."""
    mixture = predictive(Normal(0.7), rng_outputs(1))
    y = jnp.asarray([0.1, -0.4, 2.0])
    np.testing.assert_array_equal(mixture.log_prob(y), mixture.log_prob(y[:, None]))
    np.testing.assert_array_equal(mixture.cdf(y), mixture.cdf(y[:, None]))
    scores = [mixture.crps(each, jax.random.key(0)) for each in (y, y[:, None])]
    np.testing.assert_array_equal(*scores)
    assert mixture.log_prob(y).shape == (3,)
    with pytest.raises(InputError, match=r"shape \(2,\), but the predictions are of 3 rows"):
        mixture.log_prob(y[:2])


@pytest.mark.parametrize(
    ("likelihood", "outputs", "largest"), [(Bernoulli(), 1, 1), (Categorical(), 3, 2)]
)
def test_labels_that_do_not_exist_are_refused(likelihood: Any, outputs: int, largest: int) -> None:
    mixture = predictive(likelihood, rng_outputs(outputs))
    assert np.isfinite(mixture.log_prob(jnp.asarray([0, 1, largest]))).all()
    for label in (-1, largest + 1):
        with pytest.raises(InputError, match=f"Labels are 0 to {largest} here, got .*{label}"):
            mixture.log_prob(jnp.asarray([0, 1, label]))


def test_variances_of_noise_that_signed_weights_make_negative_are_zero() -> None:
    outputs, log_scale = np.zeros((2, 3, 1)), jnp.asarray([[-3.0], [1.0]])
    mixture = predictive(Normal(), outputs, log_scale, np.array([1.3, -0.3]))
    assert np.all(np.asarray(mixture.aleatoric_variance()) == 0)
    assert np.all(np.asarray(mixture.std()) == 0)


def test_targets_of_a_likelihood_of_ones_own_may_be_a_single_column() -> None:
    """They would be taken for as many targets at every point."""

    class Exponential(NoParameters):
        def checked_targets(self, y: Any) -> np.ndarray:
            return np.asarray(y, float).reshape(len(y), -1)

        def num_outputs(self, num_targets: int) -> int:
            return num_targets

        def log_prob(self, params: Any, outputs: Any, y: Any) -> Any:
            return jnp.sum(outputs - y * jnp.exp(outputs), axis=-1)

        def mean(self, params: Any, outputs: Any) -> Any:
            return jnp.exp(-outputs)

        def sample(self, key: Any, params: Any, outputs: Any) -> Any:
            return jax.random.exponential(key, outputs.shape) * jnp.exp(-outputs)

    mixture, y = predictive(Exponential(), rng_outputs(1) / 4), jnp.array([0.5, 1.0, 2.0])
    np.testing.assert_array_equal(mixture.log_prob(y), mixture.log_prob(y[:, None]))
