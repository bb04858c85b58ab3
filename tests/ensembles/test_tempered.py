"""Tempered mixtures of labels, against numpy, scipy and a pool that is known to be too modest."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

from credence.density.posterior import Posterior
from credence.ensembles.diagnostics.recalibration import best_temperature, tempered
from credence.ensembles.mixture import Mixture
from credence.ensembles.predictive import Predictive
from credence.ensembles.tempered import Tempered
from credence.errors import InputError
from credence.methods.stacking.left_out import LeftOut, temperature_of_mixture
from credence.models import MLP, Categorical, Gaussian

pytestmark = pytest.mark.usefixtures("checked_keys", "float64")

WEIGHTS = np.array([0.3, 0.7])


def two_laws() -> tuple[Mixture, np.ndarray]:
    """Two networks and a third, mixed at four points, and the mixture's probabilities."""
    logits = np.random.default_rng(0).normal(0, 2, (3, 4, 3))
    parts = (
        Predictive(Categorical(), jnp.asarray(logits[:2]), (), jnp.array([0.4, 0.6])),
        Predictive(Categorical(), jnp.asarray(logits[2:]), (), jnp.ones(1)),
    )
    members = special.softmax(logits, axis=-1)
    mixed = np.tensordot(np.array([0.12, 0.18, 0.7]), members, axes=1)
    return Mixture(parts, WEIGHTS), mixed


def test_probabilities_scores_and_entropies_agree_with_numpy_and_scipy() -> None:
    mixture, mixed = two_laws()
    found = Tempered(mixture, 0.4)
    wanted = special.softmax(np.log(mixed) / 0.4, axis=1)
    np.testing.assert_allclose(found.mean(), wanted, rtol=1e-9)
    y = np.array([0, 2, 1, 1])
    np.testing.assert_allclose(
        found.log_prob(jnp.asarray(y)), np.log(wanted[np.arange(4), y]), rtol=1e-9
    )
    np.testing.assert_allclose(found.entropy_total(), stats.entropy(wanted, axis=1), rtol=1e-9)
    whole = found.entropy_aleatoric() + found.entropy_epistemic()
    np.testing.assert_allclose(whole, found.entropy_total(), rtol=1e-9)
    share = found.entropy_epistemic() / found.entropy_total()
    np.testing.assert_allclose(share, mixture.entropy_epistemic() / mixture.entropy_total())
    np.testing.assert_array_equal(found.member_means(), mixture.member_means())


def test_a_temperature_of_one_changes_nothing_and_others_are_refused() -> None:
    mixture, mixed = two_laws()
    np.testing.assert_allclose(Tempered(mixture, 1.0).mean(), mixed, rtol=1e-9)
    for temperature in (0.0, 1.1, np.nan):
        with pytest.raises(InputError, match=r"between 0\.05 and 1"):
            Tempered(mixture, temperature)


def test_draws_have_the_tempered_probabilities() -> None:
    mixture, mixed = two_laws()
    drawn = np.asarray(Tempered(mixture, 0.5).sample(jax.random.key(0), 20_000))
    shares = np.stack([(drawn == label).mean(0) for label in range(3)], axis=1)

    def worst(wanted: np.ndarray) -> float:
        return float(np.abs((shares - wanted) / np.sqrt(wanted * (1 - wanted) / 20_000)).max())

    assert worst(special.softmax(np.log(mixed) / 0.5, axis=1)) < 4
    assert worst(mixed) > 8, "planted: the mixture itself"


def calibrated_pair(num_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of two labels by two who are right, each by what the other does not know.

    P(y = 1) = Phi(u + v) with standard normal u and v; who knows u alone says Phi(u / sqrt 2).
    """
    u, v = np.random.default_rng(1).normal(size=(2, num_rows))
    y = (np.random.default_rng(2).uniform(size=num_rows) < stats.norm.cdf(u + v)).astype(int)
    said = stats.norm.cdf(np.stack([u, v]) / np.sqrt(2))
    return np.stack([1 - said, said], axis=-1), y


def test_a_pool_of_right_probabilities_is_too_modest_and_is_mended() -> None:
    """Each is calibrated, so that no temperature helps; their average is not."""
    said, y = calibrated_pair(20_000)
    rows = np.arange(len(y))
    for each in said:
        assert abs(best_temperature(each, y) - 1) < 0.05
    pool = said.mean(0)
    temperature = best_temperature(pool, y)
    assert temperature < 0.85
    gain = np.log(tempered(pool, temperature)[rows, y]) - np.log(pool[rows, y])
    assert gain.mean() > 4 * gain.std() / np.sqrt(len(y))


def test_the_temperature_is_found_where_rows_ask_for_it() -> None:
    said, y = calibrated_pair(2000)
    x = np.zeros((len(y), 1))

    def of(means: np.ndarray, kept: slice = slice(None)) -> float:
        found = [LeftOut(np.zeros(len(y[kept])), each[kept], 0.0, None) for each in means]
        data = (x[kept], y[kept])
        posterior = Posterior(MLP(2), Gaussian(), Categorical(), data)
        return temperature_of_mixture(found, np.full(len(means), 1 / len(means)), posterior)

    assert of(said) == best_temperature(said.mean(0), y) < 0.9
    assert of(said[:1]) == 1, "one who is right needs none"
    assert of(said, slice(20)) == 1, "too few rows"
    assert of(np.full_like(said, np.nan)) == 1
    sure = tempered(said[0], 0.3)[None]
    assert best_temperature(sure[0], y) > 1
    assert of(sure) == 1, "it never makes a mixture less sure"


def test_numbers_have_no_temperature() -> None:
    found = [LeftOut(np.zeros(90), np.zeros((90, 1)), 0.0, np.full((90, 1), 0.5))]
    posterior = Posterior(MLP(2), Gaussian(), Categorical(), (np.zeros((90, 1)), np.zeros(90, int)))
    assert temperature_of_mixture(found, np.ones(1), posterior) == 1
