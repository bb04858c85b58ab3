"""Leave-one-out against its closed form, and stacking against problems with known answers."""

import numpy as np
import pytest
from scipy import optimize, stats
from scipy.special import logsumexp
from tools.exact import assert_mean

from credence.ensembles.diagnostics.stacking import (
    as_of_more,
    beta_shape,
    excess_of_few,
    leave_one_out,
    mean_stacking_weights,
    mean_with_error,
    stacking_weights,
)

NUM_DRAWS = 20_000


def gaussian_mean(num_points: int = 30, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """log p(y_i | mu) at draws of mu given y, y ~ N(mu, 1), mu ~ N(0, 1); and the exact answer."""
    rng = np.random.default_rng(seed)
    y = rng.normal(0.5, 1.0, num_points)
    precision = 1 + num_points
    mu = rng.normal(y.sum() / precision, precision**-0.5, NUM_DRAWS)
    others = y.sum() - y
    exact = stats.norm(others / num_points, (1 + 1 / num_points) ** 0.5).logpdf(y)
    return stats.norm(mu[:, None], 1.0).logpdf(y), exact, y


def test_leave_one_out_is_the_density_given_the_other_rows():
    log_likelihood, exact, _ = gaussian_mean()
    found = leave_one_out(log_likelihood)
    ratios = np.exp(-log_likelihood)
    error = ratios.std(axis=0) / ratios.mean(axis=0) / NUM_DRAWS**0.5
    z = (found.log_probs - exact) / error
    assert np.abs(z).max() < 4.5
    plain = np.log(np.exp(log_likelihood).mean(axis=0))  # given all rows: too good
    assert np.abs((plain - exact) / error).max() > 10
    assert found.share_unreliable == 0


def test_rows_that_one_draw_decides_are_called_unreliable():
    rng = np.random.default_rng(0)
    log_likelihood = rng.normal(size=(1000, 3))
    log_likelihood[:, 1] *= 20
    found = leave_one_out(log_likelihood)
    assert found.pareto_k[1] > 0.7
    assert found.share_unreliable == pytest.approx(1 / 3)


def test_a_row_that_all_draws_see_alike_has_their_probability():
    """Such weights have no tail; where few draws have any weight, no law of a tail fits them."""
    log_likelihood = np.random.default_rng(0).normal(size=(1000, 3))
    log_likelihood[:, 1] = -0.5
    log_likelihood[:, 2] = np.where(np.arange(1000) < 5, -1e6, 0.0)
    found = leave_one_out(log_likelihood)
    np.testing.assert_allclose(found.log_probs[1:], [-0.5, -1e6])
    assert found.pareto_k[1:].tolist() == [-np.inf, np.inf]
    assert found.share_unreliable == pytest.approx(1 / 3)


def test_a_chain_that_stood_still_is_no_reason_to_mistrust():
    """Equal draws break the fit of a tail; the weights stay, and are told from those of few."""
    rng = np.random.default_rng(0)
    moves = np.maximum.accumulate(np.where(rng.random(200) < 0.1, np.arange(200), 0))
    log_likelihood = np.stack(
        [
            np.r_[np.linspace(-0.5, -0.41, 160), np.full(40, -0.6)],
            0.3 * rng.normal(size=200)[moves],
            -0.1 + np.float32(1e-6) * rng.integers(0, 3, 200),
            np.where(np.arange(200) < 5, -30.0, -0.5),
        ],
        axis=1,
    )
    found = leave_one_out(log_likelihood)
    assert (found.pareto_k[:3] < 0.7).all()
    assert found.pareto_k[3] == np.inf
    exact = -np.log(np.mean(np.exp(-log_likelihood), axis=0))
    np.testing.assert_allclose(found.log_probs[[0, 2, 3]], exact[[0, 2, 3]], atol=1e-6)


def test_draws_count_by_their_weight():
    """A draw that counts twice does what two such draws do; one that counts nothing, nothing."""
    log_likelihood = 0.5 * np.random.default_rng(1).normal(size=(400, 3))
    weight = np.where(log_likelihood[:, 0] > 0, 3, 1) * (np.arange(400) % 10 > 0)
    found = leave_one_out(log_likelihood, draw_weight=weight / weight.sum())
    again = leave_one_out(np.repeat(log_likelihood, weight, axis=0))
    np.testing.assert_allclose(found.log_probs, again.log_probs, atol=0.02)
    plain = leave_one_out(log_likelihood)
    assert np.abs(plain.log_probs - again.log_probs).max() > 0.1
    same = leave_one_out(log_likelihood, draw_weight=np.full(400, 1 / 400))
    np.testing.assert_allclose(same.log_probs, plain.log_probs, atol=1e-12)
    with pytest.raises(ValueError, match="at least 25 draws"):
        leave_one_out(log_likelihood, draw_weight=(np.arange(400) < 20).astype(float))


def test_mean_and_error():
    mean, error = mean_with_error(np.array([1.0, 2.0, 3.0, 4.0]))
    assert mean == 2.5
    assert error == pytest.approx(np.sqrt(5 / 3) / 2)
    assert np.isnan(mean_with_error(np.array([1.0]))[1])


def test_a_row_that_stands_for_several_counts_as_often():
    """Weights of rows do what rows do that are there several times."""
    rng = np.random.default_rng(3)
    weight = np.array([1.0, 3.0, 0.0, 2.0, 5.0, 1.0] * 10)
    log_probs, errors = rng.normal(size=(60, 3)), rng.normal(size=(60, 3)) * [1.0, 1.2, 2.0]
    below, excess = rng.beta(3, 3, size=(4, 60)), np.array([0.1, 0.0, 0.2])
    many = np.repeat(np.arange(60), weight.astype(int))
    for found, again, plain in (
        (
            stacking_weights(log_probs, weight=weight, prior_rows=2),
            stacking_weights(log_probs[many], prior_rows=2),
            stacking_weights(log_probs, prior_rows=2),
        ),
        (
            mean_stacking_weights(errors, excess, weight),
            mean_stacking_weights(errors[many], excess),
            mean_stacking_weights(errors, excess),
        ),
        (
            beta_shape(below, 8, weight=weight),
            beta_shape(below[:, many], 8),
            beta_shape(below, 8),
        ),
        (
            mean_with_error(errors[:, 0] + weight, weight)[0],
            mean_with_error((errors[:, 0] + weight)[many])[0],
            mean_with_error(errors[:, 0] + weight)[0],
        ),
    ):
        np.testing.assert_allclose(found, again, atol=1e-4)
        assert not np.allclose(found, plain, atol=1e-3), "rows that all count once"


def test_the_error_of_a_weighted_mean_is_its_spread():
    """Squares of the error are right on average over 4000 samples; equal weights are far off."""
    rng = np.random.default_rng(4)
    weight = np.array([10.0] + [1.0] * 29)
    found = [mean_with_error(rng.normal(size=30), weight) for _ in range(4000)]
    means, errors = np.transpose(found)
    squares = np.array([means.var(), np.mean(errors**2)])
    noise = np.sqrt(np.mean((means**2 - squares[0]) ** 2) + np.var(errors**2)) / 4000**0.5
    assert abs(squares[0] - squares[1]) < 4.5 * noise
    assert abs(squares[0] - 1 / 30) > 4.5 * noise
    assert mean_with_error(np.array([1.0, 7.0]), np.array([1.0, 0.0]))[0] == 1.0


def test_stacking_meets_another_optimiser():
    log_probs = np.random.default_rng(1).normal(-1, 1.5, (60, 4))

    def loss(free: np.ndarray) -> float:
        weights = np.exp(free - np.logaddexp.reduce(free))
        return -np.logaddexp.reduce(log_probs + np.log(weights + 1e-300), axis=1).mean()

    best = min(
        (
            optimize.minimize(loss, start, method="Nelder-Mead", options={"maxiter": 20_000})
            for start in np.eye(4)
        ),
        key=lambda found: found.fun,
    )
    weights = stacking_weights(log_probs)
    assert weights.sum() == pytest.approx(1)
    assert (weights >= 0).all()
    assert -np.log(np.exp(log_probs) @ weights).mean() <= best.fun + 2e-6


def test_the_mixture_that_made_the_rows_is_found():
    """70 % of the rows come from one model, 30 % from another, none from the third."""
    rng = np.random.default_rng(2)
    laws = [stats.norm(0, 1), stats.norm(4, 1), stats.norm(-9, 1)]
    is_first = rng.random(20_000) < 0.7
    y = np.where(is_first, laws[0].rvs(20_000, rng), laws[1].rvs(20_000, rng))
    weights = stacking_weights(np.stack([law.logpdf(y) for law in laws], axis=1))
    assert abs(weights[0] - is_first.mean()) < 0.005
    assert weights[2] < 1e-4


def test_equal_models_share_and_the_better_of_two_takes_all():
    same = np.random.default_rng(3).normal(size=(50, 1))
    np.testing.assert_allclose(stacking_weights(np.tile(same, 3)), 1 / 3)
    better = np.hstack([same, same - 0.5])
    assert stacking_weights(better)[0] > 0.99999


def test_rows_of_the_prior_keep_few_rows_from_deciding():
    few = np.array([[0.0, -3.0]] * 5)
    assert stacking_weights(few)[0] > 0.999
    assert stacking_weights(few, prior_rows=5.0)[1] > 0.2


def test_nothing_to_stack_is_refused():
    for log_probs in (np.zeros((0, 2)), np.zeros((3, 0))):
        with pytest.raises(ValueError, match="log_probs is empty"):
            stacking_weights(log_probs)
    with pytest.raises(ValueError, match="prior_rows must be"):
        stacking_weights(np.zeros((3, 2)), prior_rows=-1.0)


def test_what_is_not_finite_is_refused():
    with pytest.raises(ValueError, match="log_probs"):
        stacking_weights(np.array([[0.0, np.nan]]))
    with pytest.raises(ValueError, match="at least 25"):
        leave_one_out(np.zeros((24, 2)))


def chains(spread: float, num_points: int) -> tuple[np.ndarray, np.ndarray]:
    """Log probabilities that scatter from chain to chain, and those of all 40 together."""
    log_probs = spread * np.random.default_rng(0).normal(size=(40, num_points))
    return log_probs, logsumexp(log_probs, axis=0) - np.log(40)


def test_few_chains_say_what_more_would() -> None:
    log_probs, all_of_them = chains(0.2, 100_000)
    for count in (4, 8):
        few = logsumexp(log_probs[:count], axis=0) - np.log(count)
        assert_mean(as_of_more(log_probs[:count], 40) - all_of_them, 0.0, resolution=0.001)
        with pytest.raises(AssertionError):  # planted: the few as they are
            assert_mean(few - all_of_them, 0.0, resolution=0.001)


@pytest.mark.parametrize("count", [2, 4, 8])
def test_chains_that_scatter_widely_gain_rather_too_little(count: int) -> None:
    log_probs, all_of_them = chains(2.0, 20_000)
    few = logsumexp(log_probs[:count], axis=0) - np.log(count)
    found = as_of_more(log_probs[:count], 40)
    assert few.mean() < found.mean() < all_of_them.mean()
    assert np.all(found <= few + np.log(40 / count) + 1e-9)


def test_alike_chains_and_single_ones_gain_nothing() -> None:
    alike = np.tile(np.array([-1.0, 2.0, -1e4]), (4, 1))
    np.testing.assert_allclose(as_of_more(alike, 20), alike[0])
    np.testing.assert_allclose(as_of_more(alike[:1], 20), alike[0])
    few = np.random.default_rng(0).normal(size=(4, 50))
    np.testing.assert_allclose(as_of_more(few, 4), logsumexp(few, axis=0) - np.log(4))


def test_means_are_weighed_by_their_squared_error() -> None:
    """The best weight of the first of two models is (c22 - c12) / (c11 + c22 - 2 c12)."""
    rng = np.random.default_rng(0)
    white = np.linalg.qr(rng.normal(size=(60, 3)))[0] * 60**0.5
    errors = white @ np.linalg.cholesky([[2.0, 0.3, 0], [0.3, 1.0, 0], [0, 0, 50.0]]).T
    first = (1.0 - 0.3) / (2.0 + 1.0 - 2 * 0.3)
    weights = mean_stacking_weights(errors[:, :2], np.zeros(2))
    np.testing.assert_allclose(weights, [first, 1 - first], atol=1e-9)
    corrected = mean_stacking_weights(errors[:, :2], np.array([1.2, 0.0]))
    np.testing.assert_allclose(corrected, [0.7 / (0.8 + 1.0 - 0.6), 0.5 / 1.2], atol=1e-9)
    of_three = mean_stacking_weights(errors, np.zeros(3))
    inverse = np.linalg.inv(errors.T @ errors / 60).sum(axis=1)
    np.testing.assert_allclose(of_three, inverse / inverse.sum(), atol=1e-9)
    alike = mean_stacking_weights(errors[:, [0, 0]] * [1, 3], np.zeros(2))
    np.testing.assert_allclose(alike, [1, 0], atol=1e-9), "not -1/2 of the second"
    np.testing.assert_allclose(mean_stacking_weights(1e-20 * errors, np.zeros(3)), of_three)
    assert mean_stacking_weights(np.zeros((5, 1)), np.zeros(1)) == [1.0]


def test_the_mean_of_few_chains_errs_more() -> None:
    """The mean of 4 chains N(0, 1) has variance 1 / 4, that of 20 has 1 / 20."""
    by_chain = np.random.default_rng(0).normal(size=(4, 20_000))
    found = excess_of_few(by_chain, 20)
    error = 0.2 * (2 / 3 / 20_000) ** 0.5
    assert abs(found - 0.2) < 4.5 * error
    assert abs(np.var(by_chain, axis=0).mean() * 0.2 - 0.2) > 30 * error, "planted: 1 / n"
    assert excess_of_few(by_chain[:1], 20) == 0
