"""Beta-transformed mixtures: against scipy, against numerical integration, and against calibration
that is known."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats
from tools.exact import assert_mean

from credence.ensembles.beta_transformed import BetaTransformed
from credence.ensembles.diagnostics.recalibration import LEAST_LEVEL
from credence.ensembles.diagnostics.stacking import beta_shape
from credence.ensembles.mixture import Mixture
from credence.ensembles.predictive import Predictive
from credence.errors import InputError
from credence.models import Normal, StudentT

pytestmark = pytest.mark.usefixtures("checked_keys", "float64")

SHAPE = 2.5
LEVELS = (1e-6, 0.025, 0.3, 0.5, 0.9, 1 - 1e-6)
WEIGHTS = np.array([0.3, 0.7])


def two_laws(num_points: int = 3) -> tuple[Mixture, Any]:
    """One target at some points: a normal and a Student's t at each, and their mixture's
    distribution function and density in scipy."""
    means = np.linspace(-1, 2, num_points)[:, None]
    parts = (
        Predictive(Normal(), jnp.asarray(means)[None], jnp.log(jnp.full((1, 1), 0.5)), jnp.ones(1)),
        Predictive(StudentT(4.0, 0.8), jnp.asarray(means + 1)[None], (), jnp.ones(1)),
    )
    laws = stats.norm(means[:, 0], 0.5), stats.t(4.0, means[:, 0] + 1, 0.8)

    def mixed(what: str, y: Any) -> np.ndarray:
        found = [getattr(law, what)(y) for law in laws]
        return np.tensordot(WEIGHTS, np.stack(found), axes=1)

    return Mixture(parts, WEIGHTS), mixed


def test_distribution_function_density_and_quantiles_agree_with_scipy() -> None:
    mixture, mixed = two_laws()
    found = BetaTransformed(mixture, SHAPE)
    law = stats.beta(SHAPE, SHAPE)
    for y in np.random.default_rng(0).normal(0.5, 1.5, (10, 3)):
        below = mixed("cdf", y)
        density = law.pdf(below) * mixed("pdf", y)
        there = jnp.asarray(y)[:, None]
        np.testing.assert_allclose(found.cdf(there)[:, 0], law.cdf(below), rtol=1e-8)
        np.testing.assert_allclose(found.log_prob(there), np.log(density), rtol=1e-8)
    quantiles = np.asarray(found.quantiles(LEVELS))[..., 0]
    reached = np.stack([law.cdf(mixed("cdf", each)) for each in quantiles])
    np.testing.assert_allclose(reached, np.tile(LEVELS, (3, 1)).T, rtol=1e-6)


def test_far_out_a_density_stays_a_number() -> None:
    mixture, _ = two_laws()
    found = BetaTransformed(mixture, SHAPE)
    for far in (-1e9, 1e9):
        y = jnp.full((3, 1), far)
        change = found.log_prob(y) - mixture.log_prob(y)
        least = stats.beta(SHAPE, SHAPE).logpdf(LEAST_LEVEL)
        np.testing.assert_allclose(change, np.full(3, least), rtol=1e-5)


@pytest.mark.parametrize("shape", [1.05, SHAPE])
def test_the_standard_deviation_is_that_of_the_density(shape: float) -> None:
    mixture, mixed = two_laws(1)
    found = BetaTransformed(mixture, shape)
    law = stats.beta(shape, shape)

    def moment(power: int) -> float:
        density = lambda y: float(y**power * law.pdf(mixed("cdf", y)[0]) * mixed("pdf", y)[0])  # noqa: E731
        return sum(integrate.quad(density, *ends, limit=200)[0] for ends in ((-60, 0), (0, 60)))

    assert moment(0) == pytest.approx(1, abs=1e-4)
    std = (moment(2) - moment(1) ** 2) ** 0.5
    assert float(found.std()[0, 0]) == pytest.approx(std, rel=1e-2)
    total = found.aleatoric_variance() + found.epistemic_variance()
    np.testing.assert_allclose(total, found.std() ** 2, rtol=1e-10)


@pytest.mark.parametrize("share", [0.5, 0.84, 0.9])
def test_the_standard_deviation_of_two_modes(share: float) -> None:
    """A law without noise has two points, with the beta law's probabilities."""
    outputs = jnp.asarray([[[0.0]], [[1.0]]])
    weights = jnp.asarray([share, 1 - share])
    part = Predictive(Normal(), outputs, jnp.full((2, 1), np.log(0.01)), weights)
    found = BetaTransformed(Mixture((part,), np.ones(1)), SHAPE)
    below = stats.beta(SHAPE, SHAPE).cdf(share)
    assert float(found.std()[0, 0]) == pytest.approx((below * (1 - below)) ** 0.5, rel=0.08)


def test_single_precision_suffices() -> None:
    law, y = stats.beta(SHAPE, SHAPE), np.array([-0.8, 1.4, 2.2])
    with jax.enable_x64(False):
        mixture, mixed = two_laws()
        found = BetaTransformed(mixture, SHAPE)
        there = jnp.asarray(y)[:, None]
        assert found.cdf(there).dtype == jnp.float32
        cdf, log_prob = np.asarray(found.cdf(there))[:, 0], np.asarray(found.log_prob(there))
        quantile = np.asarray(found.quantiles([0.01]))[0, :, 0]
    below = mixed("cdf", y)
    np.testing.assert_allclose(cdf, law.cdf(below), rtol=1e-4)
    density = law.logpdf(below) + np.log(mixed("pdf", y))
    np.testing.assert_allclose(log_prob, density, atol=1e-4)
    np.testing.assert_allclose(law.cdf(mixed("cdf", quantile)), 0.01, rtol=1e-3)


def test_a_shape_below_one_is_refused() -> None:
    mixture, _ = two_laws()
    for shape in (0.5, np.nan, np.inf):
        with pytest.raises(InputError, match="shape must be"):
            BetaTransformed(mixture, shape)


def test_draws_follow_the_law_and_stay_together() -> None:
    """Two points with one network each way: draws at one tell those at the other, as they did."""
    outputs = jnp.asarray([[[-3.0], [-3.0]], [[3.0], [3.0]]])
    part = Predictive(Normal(), outputs, jnp.zeros((2, 1)), jnp.full(2, 0.5))
    found = BetaTransformed(Mixture((part,), np.ones(1)), SHAPE)
    draws = np.asarray(found.sample(jax.random.key(1), 20_000))[..., 0]
    for level in (0.025, 0.2, 0.5, 0.9):
        at = np.asarray(found.quantiles([level]))[0, :, 0]
        assert_mean((draws <= at).astype(float), np.full(2, level), resolution=0.02)
    same_side = np.mean((draws[:, 0] > 0) == (draws[:, 1] > 0))
    assert same_side > 0.99
    few = found.sample(jax.random.key(2), 3)
    assert few.shape == (3, 2, 1)


def test_a_pool_of_good_predictions_is_mended_and_its_shape_is_found() -> None:
    """Gneiting & Ranjan's setting: y = a + b + noise, each of two predictions knows one of a, b.

    Both hold by themselves; their mixture is too wide, and its beta transform is not.
    """
    rng = np.random.default_rng(3)
    known, count = rng.normal(size=(2, 20_000)), 20_000
    y = known.sum(axis=0) + rng.normal(size=count)
    pit = np.mean([stats.norm.cdf(y, each, 2**0.5) for each in known], axis=0)
    assert np.std(pit) < 0.27  # uniform: 0.289, standard error 0.001
    shape = beta_shape(pit[None], 1)
    mended = stats.beta.cdf(pit, shape, shape)
    inside = (mended > 0.025) & (mended < 0.975)
    assert_mean(inside.astype(float), 0.95, resolution=0.01)
    raw = (pit > 0.025) & (pit < 0.975)
    assert raw.mean() > 0.96  # what the transform mends


@pytest.mark.parametrize("shape", [1.3, 4.0])
def test_the_shape_of_a_known_law_is_found(shape: float) -> None:
    """The standard error is of Fisher's information of a row, 2 psi'(a) - 4 psi'(2a)."""
    from scipy.special import polygamma

    count = 40_000
    pit = stats.beta(shape, shape).rvs(count, random_state=np.random.default_rng(4))
    error = (count * (2 * polygamma(1, shape) - 4 * polygamma(1, 2 * shape))) ** -0.5
    assert abs(beta_shape(pit[None], 1, prior_rows=0) - shape) < 4 * error


def test_what_is_not_too_wide_is_left_alone() -> None:
    rng = np.random.default_rng(5)
    assert beta_shape(rng.beta(0.5, 0.5, (1, 500)), 1) == 1  # too narrow
    assert beta_shape(np.array([[0.0, 1.0]]), 1) == 1
    assert beta_shape(np.full((1, 1000), 0.5), 1) == 10
    few, many = np.full((1, 3), 0.5), np.full((1, 300), 0.5)
    assert beta_shape(few, 1) < 1.5 < beta_shape(many, 1)


@pytest.mark.parametrize("count", [2, 4])
def test_few_chains_say_how_wide_a_mixture_of_more_is(count: int) -> None:
    """Chains scatter four times as far as the truth does, so a mixture of 20 is too wide."""
    rng = np.random.default_rng(6)
    centre, y = rng.normal(0, 0.4, (20, 50_000)), rng.normal(0, (1 + 0.1**2) ** 0.5, 50_000)
    below = stats.norm.cdf(y - centre)
    of_all, few = beta_shape(below.mean(axis=0)[None], 20), below[:count]
    found, planted = beta_shape(few, 20), beta_shape(few.mean(axis=0)[None], 20)
    assert planted < 0.5 + 0.5 * of_all, "planted: the few as they are"
    assert 0.2 * planted + 0.8 * of_all < found < of_all + 0.005


def test_chains_far_apart_never_make_a_mixture_too_narrow() -> None:
    rng = np.random.default_rng(7)
    centre, y = rng.normal(size=(20, 20_000)), rng.normal(0, 0.3, 20_000)
    below = stats.norm.cdf((y - centre) / 0.3)
    assert 1 <= beta_shape(below[:2], 20) < beta_shape(below.mean(axis=0)[None], 20)


def test_a_shape_of_one_changes_nothing() -> None:
    mixture, _ = two_laws()
    plain = BetaTransformed(mixture, 1.0)
    y = jnp.asarray([[0.3], [-1.0], [2.0]])
    np.testing.assert_allclose(plain.log_prob(y), mixture.log_prob(y), rtol=1e-10)
    np.testing.assert_allclose(plain.quantiles(LEVELS), mixture.quantiles(LEVELS), rtol=1e-8)
