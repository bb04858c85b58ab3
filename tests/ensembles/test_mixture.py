"""Mixtures of ensembles with different likelihoods, against scipy and against one ensemble."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from tools.exact import assert_mean

from credence.ensembles.beta_transformed import BetaTransformed
from credence.ensembles.mixture import Mixture
from credence.ensembles.predictive import Predictive
from credence.errors import InputError
from credence.models import Categorical, HeteroscedasticNormal, Normal, StudentT

pytestmark = pytest.mark.usefixtures("checked_keys", "float64")

LEVELS = (1e-6, 0.025, 0.3, 0.5, 0.9, 1 - 1e-6)
SHARES = np.array([0.5, 0.2, 0.3])


def outputs(seed: int, members: int, width: int = 2) -> np.ndarray:
    return 2 * np.random.default_rng(seed).normal(size=(members, 4, width))


def three_ensembles() -> tuple[Mixture, np.ndarray, list[Any]]:
    """Two targets at four points: the mixture, all members' weights, their laws in scipy."""
    normal, student, wide = outputs(0, 3), outputs(1, 2), outputs(2, 4, 4) / 3
    log_scale = jnp.asarray(np.random.default_rng(3).normal(size=(3, 2)) / 2)
    even = lambda count: jnp.full(count, 1 / count)  # noqa: E731
    parts = (
        Predictive(Normal(), jnp.asarray(normal), log_scale, even(3)),
        Predictive(StudentT(4.0, 0.5), jnp.asarray(student), (), even(2)),
        Predictive(HeteroscedasticNormal(), jnp.asarray(wide), (), even(4)),
    )
    laws = [stats.norm(one, np.exp(log)) for one, log in zip(normal, log_scale, strict=True)]
    laws += [stats.t(4.0, one, 0.5) for one in student]
    laws += [stats.norm(one[:, :2], np.exp(one[:, 2:])) for one in wide]
    weights = np.concatenate([np.full(n, w / n) for n, w in zip((3, 2, 4), SHARES, strict=True)])
    return Mixture(parts, SHARES), weights, laws


def mixed(weights: np.ndarray, values: list[np.ndarray]) -> np.ndarray:
    return np.tensordot(weights, np.stack([np.broadcast_to(v, (4, 2)) for v in values]), axes=1)


def test_moments_and_densities_are_those_of_all_members() -> None:
    mixture, weights, laws = three_ensembles()
    y = np.random.default_rng(4).normal(size=(4, 2))
    mean = mixed(weights, [law.mean() for law in laws])
    aleatoric = mixed(weights, [law.var() for law in laws])
    raw = mixed(weights, [law.var() + law.mean() ** 2 for law in laws])
    np.testing.assert_allclose(mixture.weights, weights)
    np.testing.assert_allclose(mixture.mean(), mean, rtol=1e-10)
    np.testing.assert_allclose(mixture.aleatoric_variance(), aleatoric, rtol=1e-10)
    np.testing.assert_allclose(mixture.std(), np.sqrt(raw - mean**2), rtol=1e-10)
    cdf = mixed(weights, [law.cdf(y) for law in laws])
    np.testing.assert_allclose(mixture.cdf(jnp.asarray(y)), cdf, rtol=1e-8)
    joint = sum(w * law.pdf(y).prod(axis=-1) for w, law in zip(weights, laws, strict=True))
    np.testing.assert_allclose(mixture.log_prob(jnp.asarray(y)), np.log(joint), rtol=1e-8)
    assert mixture.num_points == 4
    assert mixture.monitored().shape == (9, 4, 4)


def test_means_may_have_weights_of_their_own() -> None:
    """The mean alone: spread, quantiles and densities stay those of the mixture."""
    mixture, _, _ = three_ensembles()
    other = replace(mixture, mean_weights=np.array([0.0, 1.0, 0.0]))
    np.testing.assert_allclose(other.mean(), mixture.parts[1].mean(), rtol=1e-12)
    assert np.abs(np.asarray(other.mean() - mixture.mean())).max() > 0.1
    same = replace(mixture, mean_weights=SHARES)
    np.testing.assert_allclose(same.mean(), mixture.mean(), rtol=1e-10)
    np.testing.assert_array_equal(other.std(), mixture.std())
    np.testing.assert_array_equal(other.quantiles(LEVELS), mixture.quantiles(LEVELS))


def test_quantiles_invert_the_distribution_function() -> None:
    mixture, _, _ = three_ensembles()
    for level, quantile in zip(LEVELS, mixture.quantiles(LEVELS), strict=True):
        np.testing.assert_allclose(mixture.cdf(quantile), level, atol=1e-6)
    with pytest.raises(InputError, match="Quantile levels must be in"):
        mixture.quantiles([0.0])


def test_parts_of_one_ensemble_are_that_ensemble() -> None:
    """Split in two and mixed again, nothing changes."""
    members, weights = outputs(5, 5), np.array([0.1, 0.2, 0.3, 0.25, 0.15])
    whole = Predictive(Normal(0.7), jnp.asarray(members), (), jnp.asarray(weights))
    share = np.array([weights[:2].sum(), weights[2:].sum()])
    parts = (
        Predictive(Normal(0.7), whole.outputs[:2], (), whole.weights[:2] / share[0]),
        Predictive(Normal(0.7), whole.outputs[2:], (), whole.weights[2:] / share[1]),
    )
    mixture = Mixture(parts, share)
    for name in ("mean", "std", "aleatoric_variance", "epistemic_variance"):
        np.testing.assert_allclose(getattr(mixture, name)(), getattr(whole, name)(), rtol=1e-10)
    np.testing.assert_allclose(mixture.quantiles(LEVELS), whole.quantiles(LEVELS), atol=1e-5)


def test_draws_have_the_shares_of_the_parts() -> None:
    mixture, weights, laws = three_ensembles()
    draws = np.asarray(mixture.sample(jax.random.key(0), 8000))
    assert draws.shape == (8000, 4, 2)
    assert_mean(draws, mixed(weights, [law.mean() for law in laws]), resolution=0.06)
    with pytest.raises(AssertionError):  # every member as often as any other
        assert_mean(draws, mixed(np.full(9, 1 / 9), [law.mean() for law in laws]), resolution=0.06)
    ordered = np.abs(np.corrcoef(draws[:-1, 0, 0], draws[1:, 0, 0])[0, 1])
    assert ordered < 0.05  # shuffled: parts do not come one after the other
    assert mixture.member_samples(jax.random.key(1)).shape == (9, 4, 2)


def test_a_single_draw_comes_from_a_part_by_its_weight() -> None:
    places = (jnp.zeros((1, 1, 1)), jnp.full((1, 1, 1), 9.0))
    far = [Predictive(Normal(1e-6), place, (), jnp.ones(1)) for place in places]
    mixture = Mixture(tuple(far), np.array([0.75, 0.25]))
    draws = [float(mixture.sample(jax.random.key(seed), 1)[0, 0, 0]) > 4 for seed in range(400)]
    assert abs(np.mean(draws) - 0.25) < 4 * (0.25 * 0.75 / 400) ** 0.5


def test_classes() -> None:
    parts = tuple(
        Predictive(Categorical(), jnp.asarray(outputs(seed, 3, 3)), (), jnp.full(3, 1 / 3))
        for seed in (6, 7)
    )
    mixture = Mixture(parts, np.array([0.9, 0.1]))
    mean = 0.9 * np.asarray(parts[0].mean()) + 0.1 * np.asarray(parts[1].mean())
    np.testing.assert_allclose(mixture.mean(), mean, rtol=1e-10)
    np.testing.assert_allclose(mixture.entropy_total(), stats.entropy(mean, axis=-1), rtol=1e-10)
    aleatoric = 0.9 * parts[0].entropy_aleatoric() + 0.1 * parts[1].entropy_aleatoric()
    np.testing.assert_allclose(mixture.entropy_aleatoric(), aleatoric, rtol=1e-10)
    assert not mixture.is_regression
    for ask in (mixture.std, lambda: mixture.quantiles([0.5])):
        with pytest.raises(InputError, match="predicts labels"):
            ask()


def test_a_sample_is_one_member_at_all_rows_of_a_table() -> None:
    """Rows come in batches; members differ a lot and their noise is small, so that sums over rows
    of two batches have the spread of the members and not less."""

    def batch(value: float) -> Mixture:
        """Rows at which members predict nearly the same."""
        members = np.random.default_rng(0).normal(size=(50, 1, 1)) + np.full((1, 4, 1), value)
        part = Predictive(Normal(0.01), jnp.asarray(members), (), jnp.full(50, 0.02))
        return Mixture((part, part), np.array([0.4, 0.6]))

    def drawn(mixture: Any, **row: int) -> np.ndarray:
        return np.asarray(mixture.sample(jax.random.key(0), 4000, **row))

    whole = BetaTransformed(batch(0.0), 1.5), BetaTransformed(batch(7.0), 1.5)
    for first, second in ((batch(0.0), batch(7.0)), whole):
        here, there = drawn(first), drawn(second, first_row=4)
        assert np.corrcoef(here[:, 0, 0], there[:, 3, 0])[0, 1] > 0.95
        noise = np.corrcoef((here - there)[:, 0, 0], (here - there)[:, 1, 0])[0, 1]
        assert abs(noise) < 0.1 or first is whole[0], "of its own at every row"
        planted = np.asarray(second.sample(jax.random.key(4), 4000))
        assert abs(np.corrcoef(here[:, 0, 0], planted[:, 3, 0])[0, 1]) < 0.1


def test_batches_have_noise_of_their_own() -> None:
    part = Predictive(Normal(1.0), jnp.zeros((1, 4, 1)), (), jnp.ones(1))
    samples = [part.sample(jax.random.key(0), 4000, first_row) for first_row in (0, 4)]
    here, there = (np.asarray(each)[:, 0, 0] for each in samples)
    assert abs(np.corrcoef(here, there)[0, 1]) < 0.1
