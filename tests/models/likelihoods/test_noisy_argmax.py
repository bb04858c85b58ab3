"""The noisy-argmax likelihood against closed forms and adaptive integration, far into the tails."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads
from scipy import stats
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.special import erfcx
from tools.exact import assert_mean

from credence.density.posterior import Posterior
from credence.errors import InputError
from credence.models import MLP, Gaussian, Likelihood
from credence.models.likelihoods.noisy_argmax import NoisyArgmax, mills_ratio
from credence.models.networks.wrappers import PerAction

pytestmark = pytest.mark.usefixtures("checked_keys")


def by_adaptive_integration(values: np.ndarray, label: int, noise_std: float) -> float:
    """log P(label) with the integrand scaled by its largest value."""
    values = np.asarray(values, float)
    gaps = (np.delete(values, label) - values[label]) / noise_std

    def log_integrand(t: float) -> float:
        return stats.norm.logpdf(t) + stats.norm.logcdf(t - gaps).sum()

    bounds = (-1.0, max(1.0, gaps.max()) + 1)
    peak = minimize_scalar(lambda t: -log_integrand(t), bounds=bounds, method="bounded").x
    top = log_integrand(peak)
    area, _ = quad(
        lambda t: np.exp(log_integrand(t) - top), peak - 10, peak + 10, points=[peak], epsrel=1e-8
    )
    return top + np.log(area)


def decisions(num_actions: int, spread: float, count: int = 6) -> tuple[np.ndarray, np.ndarray]:
    """Values, in units of the noise, and labels; the last choice is the worst action."""
    rng = np.random.default_rng(num_actions)
    values = spread * rng.normal(size=(count, num_actions))
    labels = rng.integers(0, num_actions, size=count)
    labels[-1] = values[-1].argmin()
    return values, labels


def log_prob(likelihood: NoisyArgmax, values: np.ndarray, labels: np.ndarray) -> np.ndarray:
    compiled = jax.jit(lambda v, y: likelihood.log_prob((), v, y))
    return np.asarray(compiled(jnp.asarray(values), jnp.asarray(labels, jnp.int32)))


@pytest.mark.usefixtures("float64")
def test_two_actions_have_a_closed_form() -> None:
    """Phi of the difference over s sqrt(2), up to 60 s on the wrong side."""
    noise_std = 0.3
    gap = noise_std * np.linspace(-60, 20, 161)
    values = np.column_stack([np.full_like(gap, 7.0), 7.0 + gap])
    expected = stats.norm.logcdf(gap / (noise_std * 2**0.5))
    actual = log_prob(NoisyArgmax(noise_std), values, np.ones(161, int))
    np.testing.assert_allclose(actual, expected, rtol=2e-6, atol=1e-7)
    with pytest.raises(AssertionError):  # noise on one of the two actions only
        np.testing.assert_allclose(actual, stats.norm.logcdf(gap / noise_std), rtol=2e-6, atol=1e-7)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize(("gap", "lost"), [(0, 0.0027), (4, 0.1512), (8, 2.8291)])
def test_an_integral_cut_at_three_noises_loses_rare_choices(gap: float, lost: float) -> None:
    """What (5.3), integrated from -3 to 3 noises around the chosen value, lacks in nats."""
    outputs, label = jnp.array([[0.0, gap]]), jnp.array([0])
    exact = float(NoisyArgmax(1.0).log_prob((), outputs, label)[0])
    density = lambda z: stats.norm.pdf(z) * stats.norm.cdf(z - gap)  # noqa: E731
    cut = np.log(quad(density, -3, 3, epsabs=0)[0])
    assert exact - cut == pytest.approx(lost, abs=1e-4)


@pytest.mark.rotates(3)
@pytest.mark.parametrize("spread", [0.0, 0.5, 2.0, 7.0])
@pytest.mark.parametrize("num_actions", [3, 8, 18])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_many_actions_match_adaptive_integration(
    num_actions: int, spread: float, dtype: type
) -> None:
    values, labels = decisions(num_actions, spread)
    expected = [by_adaptive_integration(v, y, 1.0) for v, y in zip(values, labels, strict=True)]
    with jax.enable_x64(dtype == np.float64):
        actual = log_prob(NoisyArgmax(0.1), (0.1 * values).astype(dtype), labels)
    assert actual.dtype == dtype
    tolerance = 1e-6 if dtype == np.float64 else 1e-5
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("num_actions", [2, 8, 18])
def test_one_action_twenty_noises_below_all_others(num_actions: int) -> None:
    """Nodes around the chosen value would miss all the mass; p underflows in float32."""
    values = np.full((1, num_actions), 20.0, np.float32)
    values[0, 0] = 0.0
    expected = by_adaptive_integration(values[0].astype(float), 0, 1.0)
    np.testing.assert_allclose(log_prob(NoisyArgmax(1.0), values, np.zeros(1)), expected, rtol=1e-5)


def test_absurd_gaps_stay_finite_with_their_gradients() -> None:
    """Numbers are float32; all pull equally on the mode between them.

    So log p -> -(gap^2 / 2) k / (k + 1) for k others at one gap.
    """
    likelihood, label = NoisyArgmax(1.0), jnp.zeros(1, jnp.int32)

    def one(gap: jax.Array, num_others: int) -> jax.Array:
        values = jnp.concatenate([jnp.zeros(1), jnp.full(num_others, gap)])[None]
        return likelihood.log_prob((), values, label)[0]

    for num_others in (1, 17):
        value, slope = jax.jit(jax.value_and_grad(one), static_argnums=1)(1e6, num_others)
        pull = num_others / (num_others + 1)
        np.testing.assert_allclose(value, -0.5e12 * pull, rtol=1e-5)
        np.testing.assert_allclose(slope, -1e6 * pull, rtol=1e-3)
        value, slope = jax.jit(jax.value_and_grad(one), static_argnums=1)(-1e6, num_others)
        np.testing.assert_allclose([value, slope], 0.0, atol=1e-6)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("num_actions", [2, 8])
@pytest.mark.parametrize("spread", [0.0, 1.0, 8.0])
def test_gradients_match_finite_differences(num_actions: int, spread: float) -> None:
    values, labels = decisions(num_actions, spread, count=4)
    likelihood = NoisyArgmax(0.7)
    total = jax.jit(lambda v: likelihood.log_prob((), v, jnp.asarray(labels, jnp.int32)).sum())
    check_grads(total, (jnp.asarray(0.7 * values),), order=1, rtol=1e-5, eps=1e-5)
    gradient = jax.jit(jax.grad(total))(jnp.asarray(0.7 * values))
    np.testing.assert_allclose(gradient.sum(axis=1), 0.0, atol=1e-4)  # only differences matter


@pytest.mark.usefixtures("float64")
def test_mills_ratio() -> None:
    z = np.concatenate([[-1e8, -1e4, -300, -10.001, -9.999], np.linspace(-30, 8, 77)])
    expected = (2 / np.pi) ** 0.5 / erfcx(-z / 2**0.5)
    ratio, excess = mills_ratio(jnp.asarray(z))
    np.testing.assert_allclose(ratio, expected, rtol=1e-12)
    digits = np.abs(z) < 1e4  # where the difference has some left
    np.testing.assert_allclose(excess[digits], (expected + z)[digits], rtol=1e-8)
    np.testing.assert_allclose(excess[:2], -1 / z[:2], rtol=1e-7)
    single, _ = mills_ratio(jnp.asarray(z, jnp.float32))
    np.testing.assert_allclose(single, expected, rtol=1e-5, atol=1e-12)


@pytest.mark.usefixtures("float64")
def test_probabilities_sum_to_one_and_agree_with_log_prob() -> None:
    likelihood = NoisyArgmax(0.4)
    values = jnp.asarray(decisions(8, 1.0, count=5)[0])
    probabilities = np.asarray(jax.jit(lambda v: likelihood.mean((), v))(values))
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-12)
    for label in range(8):
        expected = np.exp(log_prob(likelihood, np.asarray(values), np.full(5, label)))
        np.testing.assert_allclose(probabilities[:, label], expected, rtol=1e-5)
    shifted = jax.jit(lambda v: likelihood.mean((), v))(values + 3.0)
    np.testing.assert_allclose(shifted, probabilities, rtol=1e-9)
    flatter = jax.jit(lambda v: NoisyArgmax(4.0).mean((), v))(values)
    assert np.all(np.max(flatter, axis=1) < probabilities.max(axis=1))


def test_labels_are_drawn_with_their_probabilities() -> None:
    likelihood, values = NoisyArgmax(0.5), jnp.array([[0.0, 0.6, -0.3, 0.1], [0.4, 0.3, 0.2, 0.5]])
    keys = jax.random.split(jax.random.key(0), 20_000)
    labels = jax.jit(jax.vmap(lambda key: likelihood.sample(key, (), values)))(keys)
    assert labels.dtype == jnp.int32
    probabilities = np.asarray(likelihood.mean((), values))
    for label in range(4):
        assert_mean(labels == label, probabilities[:, label], resolution=0.005)
    with pytest.raises(AssertionError):  # noise 20 % too large
        assert_mean(labels == 1, np.asarray(NoisyArgmax(0.6).mean((), values))[:, 1], 0.005)


def test_it_is_a_likelihood_of_labels() -> None:
    likelihood = NoisyArgmax(0.5)
    assert isinstance(likelihood, Likelihood)
    assert likelihood.num_outputs(8) == 8
    assert likelihood.init(1) == ()
    np.testing.assert_array_equal(likelihood.checked_targets([0, 7]), [0, 7])
    single = likelihood.log_prob((), jnp.ones((2, 1)), jnp.zeros(2, jnp.int32))
    np.testing.assert_allclose(single, 0.0, atol=1e-6)  # there is nothing else to choose
    with pytest.raises(InputError, match="noise_std must be > 0, got 0"):
        NoisyArgmax(0.0)
    with pytest.raises(InputError, match="integer labels"):
        likelihood.checked_targets([0.5])


def test_posterior_of_a_value_function() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(6, 3, 4)), np.array([0, 1, 2, 2, 0, 1])
    network = PerAction(MLP(1, hidden=(5,)))
    posterior = Posterior(network, Gaussian(), NoisyArgmax(0.2), (x, y))
    position = posterior.init(jax.random.key(0), 1)[0]
    value, slope = jax.jit(jax.value_and_grad(posterior.log_density))(position, posterior.data)
    params = posterior.unravel(position)
    outputs = np.asarray(network.apply(params.network, posterior.data.x))
    likelihood = [by_adaptive_integration(v, a, 0.2) for v, a in zip(outputs, y, strict=True)]
    expected = sum(likelihood) + float(posterior.model.log_prior(params))
    np.testing.assert_allclose(value, expected, rtol=1e-5)
    assert np.all(np.isfinite(slope))
    with pytest.raises(InputError, match=r"need \(6, 4\)"):
        Posterior(network, Gaussian(), NoisyArgmax(0.2), (x, y + 1))
