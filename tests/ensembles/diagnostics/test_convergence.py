"""R-hat, ESS and MCSE against exact laws of AR(1) chains, and the verdict."""

import arviz_stats
import numpy as np
import pytest
from scipy.stats import norm, rankdata
from tools.diagnostics_samples import REFUSED, z_score

from credence.ensembles.diagnostics import assess, ess_bulk, ess_tail, mcse_mean, rhat
from credence.ensembles.diagnostics.convergence import family_ess


def ar1_chains(seed, correlation, num_chains=4, num_draws=1000, shape=(100,)):
    """Stationary Gaussian chains with autocorrelation correlation^lag and variance 1."""
    rng = np.random.default_rng(seed)
    draws = rng.normal(size=(num_chains, num_draws, *shape))
    for t in range(1, num_draws):
        noise = np.sqrt(1 - correlation**2) * draws[:, t]
        draws[:, t] = correlation * draws[:, t - 1] + noise
    return draws


def ar1_ess(correlation, num_draws=4000):
    return num_draws * (1 - correlation) / (1 + correlation)


def test_bulk_ess_of_an_autoregression():
    draws = ar1_chains(0, 0.5)
    assert z_score(ess_bulk(draws), ar1_ess(0.5)) < 4.5
    assert z_score(ess_bulk(ar1_chains(0, 0.6)), ar1_ess(0.5)) > 8  # planted: mixes more slowly


def test_only_ranks_count_for_bulk_ess():
    draws = ar1_chains(14, 0.5, num_draws=100, shape=(5,))
    np.testing.assert_allclose(ess_bulk(np.exp(3 * draws)), ess_bulk(draws))


def test_mcse_is_the_standard_deviation_of_the_mean():
    draws = ar1_chains(1, 0.7, shape=(300,))
    means = draws.mean(axis=(0, 1))  # exact mean 0
    assert z_score((means / mcse_mean(draws)) ** 2, 1) < 4.5
    naive = draws.std(axis=(0, 1)) / np.sqrt(4000)  # planted: draws taken as independent
    assert z_score((means / naive) ** 2, 1) > 8


def test_tail_ess_is_that_of_the_worse_extreme_quantile():
    draws = ar1_chains(2, 0.8, num_draws=200, shape=(5,)) ** 2  # skewed: the two tails differ
    ess = arviz_stats.ess
    tails = [
        [float(ess(draws[:, :, i], method="quantile", prob=prob)) for i in range(5)]
        for prob in (0.05, 0.95)
    ]
    np.testing.assert_allclose(ess_tail(draws), np.min(tails, axis=0))


def test_draws_are_worth_no_more_than_their_weights():
    draws = np.random.default_rng(3).normal(size=(4, 1000, 5))
    assert assess(draws).converged
    found = assess(draws, most_ess=3.0)
    assert (found.min_ess_function, found.median_ess_function) == (3.0, 3.0)
    assert found.min_ess_tail_function == 3.0
    assert found.converged is False


def families_of_particles(seed, within_std, num_families=100, size=10, shape=(50,)):
    """Runs of particles: of each family a common part of variance 1 and a part of its own."""
    rng = np.random.default_rng(seed)
    common = np.repeat(rng.normal(size=(4, num_families, *shape)), size, axis=1)
    draws = common + within_std * rng.normal(size=common.shape)
    families = np.repeat(np.arange(num_families), size)
    order = rng.permutation(len(families))  # which of its siblings stand beside it says nothing
    return draws[:, order], np.broadcast_to(families[order], (4, len(order))).astype(float)


@pytest.mark.parametrize("within_std", [0.1, 1.0, 3.0])
def test_ess_of_particles_counts_families(within_std):
    draws, families = families_of_particles(15, within_std)
    exact = 400 * (1 + within_std**2) / (1 + within_std**2 / 10)
    found = family_ess(draws, families)
    bias = 3 / 400  # of a ratio of variances from 400 families
    assert abs(found.mean() / exact - 1) < bias + 4.5 * (2 / 400 / 50) ** 0.5
    scores = ess_bulk(draws, families)  # all but linear in draws that are Gaussian
    np.testing.assert_allclose(scores, found, rtol=0.05)
    assert np.median(ess_bulk(draws)) > 1.3 * exact  # planted: a shuffled cloud, as ArviZ sees it


def test_ess_of_particles_that_share_one_ancestor_is_the_spread_of_the_runs():
    draws = np.random.default_rng(16).normal(size=(40, 25, 3))
    means = draws.mean(axis=1)
    found = family_ess(draws, np.zeros((40, 25)))
    expected = draws.var(axis=(0, 1)) * 40 / means.var(axis=0, ddof=1)
    np.testing.assert_allclose(found, np.minimum(expected, 1000))
    assert family_ess(draws[:1], np.zeros((1, 25))).tolist() == [1, 1, 1]


def test_ess_of_particles_is_at_most_their_number_and_none_for_a_constant():
    rng = np.random.default_rng(17)
    pairs = rng.normal(size=(2, 50))
    opposite = np.concatenate([pairs, -pairs], axis=1)  # antithetic: worth more than independent
    families = np.broadcast_to(np.tile(np.arange(50.0), 2), (2, 100))
    assert family_ess(opposite, families) == 200
    assert np.isnan(family_ess(np.ones((2, 100)), families))
    judged = assess(opposite[..., None], families=families)
    assert judged.min_ess_function == 200
    assert judged.min_ess_tail_function is not None


def rhat_by_hand(draws):
    """Vehtari et al. (2021), eqs (1)-(4) and section 4.1, for one quantity[chain, draw]."""

    def plain(x):
        within = x.var(axis=1, ddof=1).mean()
        between = x.mean(axis=1).var(ddof=1)
        num_draws = x.shape[1]
        return np.sqrt(((num_draws - 1) / num_draws * within + between) / within)

    def normalised(x):
        return norm.ppf((rankdata(x).reshape(x.shape) - 3 / 8) / (x.size + 1 / 4))

    halves = np.concatenate(np.split(draws, 2, axis=1))
    folded = abs(halves - np.median(halves))
    return max(plain(normalised(halves)), plain(normalised(folded)))


def test_rhat_is_rank_normalised_split_and_folded():
    draws = np.exp(ar1_chains(3, 0.9, num_draws=100, shape=(4, 2)))
    by_hand = [rhat_by_hand(draws[:, :, i, j]) for i in range(4) for j in range(2)]
    np.testing.assert_allclose(rhat(draws).ravel(), by_hand)


@pytest.mark.parametrize("fault", ["shifted", "wider", "stuck", "drifting"])
def test_rhat_sees_a_faulty_chain(fault):
    draws = ar1_chains(4, 0.3, shape=(20,))
    assert rhat(draws).max() < 1.01
    draws[0] = {
        "shifted": draws[0] + 1,
        "wider": draws[0] * 2,
        "stuck": np.median(draws, axis=(0, 1)),
        "drifting": draws[0] + np.linspace(-2, 2, 1000)[:, None],
    }[fault]
    assert rhat(draws).min() > 1.05


def test_shapes_and_dtypes():
    draws = ar1_chains(5, 0.3, num_draws=50, shape=(3, 2))
    for statistic in (rhat, ess_bulk, ess_tail, mcse_mean):
        assert statistic(draws).shape == (3, 2)
        assert statistic(draws[:, :, 0, 0]).shape == ()
        np.testing.assert_allclose(statistic(draws)[1, 1], statistic(draws[:, :, 1, 1]))
        # Rounding to float32 may move an estimate through one tied rank, no further.
        np.testing.assert_allclose(statistic(draws.astype("f4")), statistic(draws), rtol=0.05)


def test_a_constant_has_no_rhat_and_no_ess():
    draws = ar1_chains(6, 0.3, num_draws=50, shape=(2,))
    draws[:, :, 0] = 3.0
    for statistic in (rhat, ess_bulk, ess_tail, mcse_mean):
        assert np.isnan(statistic(draws)).tolist() == [True, False]


@pytest.mark.parametrize("places", [(0.0, 1.0, 2.0, 3.0), (1.0, 1.0, 2.0, 2.0)])
def test_chains_stuck_in_different_places_have_infinite_rhat(places):
    for num_draws in (50, 1000):
        draws = np.broadcast_to(np.array(places)[:, None], (4, num_draws))
        assert rhat(draws) == np.inf


@pytest.mark.parametrize("statistic", [rhat, ess_bulk, ess_tail, mcse_mean])
def test_refuses_what_cannot_be_judged(statistic):
    draws = ar1_chains(7, 0.3, num_draws=50, shape=(2,))
    with pytest.raises(ValueError, match="at least 4 draws"):
        statistic(draws[:, :3])
    with pytest.raises(REFUSED):
        statistic(draws[0, :, 0])
    draws[1, 2, 0] = np.nan
    with pytest.raises(ValueError, match=r"not finite, the first at index \(1, 2, 0\)"):
        statistic(draws)


def test_rhat_refuses_one_chain():
    with pytest.raises(ValueError, match="run at least 2"):
        rhat(ar1_chains(8, 0.3, num_chains=1, num_draws=50))


def test_verdict_on_good_chains():
    functions = ar1_chains(9, 0.5, shape=(20, 2))
    verdict = assess(functions)
    assert verdict.converged is True
    assert verdict.max_rhat_function == rhat(functions).max()
    assert verdict.min_ess_function == ess_bulk(functions).min()
    assert verdict.median_ess_function == np.median(ess_bulk(functions))
    assert verdict.min_ess_tail_function == ess_tail(functions).min()
    assert (verdict.num_chains, verdict.num_draws) == (4, 1000)
    assert "R-hat is at most 1.0" in verdict.reason


def test_thresholds_decide():
    functions = ar1_chains(10, 0.7, num_draws=500, shape=(10,))
    verdict = assess(functions)
    assert verdict.converged
    strict = assess(functions, rhat_threshold=1.0, min_ess=1e4)
    assert strict.converged is False
    assert "chains disagree" in strict.reason
    assert "below 10000" in strict.reason


def test_one_bad_output_of_a_subset_of_points_is_seen():
    functions = ar1_chains(11, 0.3, num_draws=100, shape=(60, 10))
    functions[0, :, :, 7] += 5
    assert "R-hat" in assess(functions, max_functions=30).reason
    functions[:, :, :, 7] = functions[:, :, :, 6]
    assert assess(functions, max_functions=30).converged


@pytest.mark.parametrize(
    ("functions", "converged", "reason"),
    [
        (None, None, "not draws of a chain"),
        (np.ones((4, 100, 3, 1)), False, "did not move"),
        (np.random.default_rng(0).normal(size=(4, 1, 3, 1)), False, "1 draws per chain"),
        (np.full((4, 100, 3, 1), np.nan), False, "not finite"),
    ],
)
def test_verdict_where_nothing_can_be_computed(functions, converged, reason):
    verdict = assess(functions)
    assert verdict.converged is converged
    assert reason in verdict.reason
    assert verdict.max_rhat_function is None
    assert verdict.min_ess_function is None


def test_one_chain_is_never_called_converged():
    verdict = assess(ar1_chains(12, 0.3, num_chains=1, shape=(5, 1)))
    assert verdict.converged is False
    assert "One chain cannot be compared with another: at least 2" in verdict.reason
    assert verdict.max_rhat_function is None
    assert verdict.min_ess_function > 100


def test_particles_are_not_called_chains():
    """Two runs that disagree, of fifty families each; chains are told to draw, these to grow."""
    functions = np.random.default_rng(3).normal(size=(2, 200, 4, 1))
    functions[1] += 3
    families = np.tile(np.arange(200) // 4, (2, 1)).astype(float)
    told = assess(functions, families=families).reason
    assert "The runs disagree" in told
    assert "take more particles" in told
    assert "chain" not in told
    assert "The chains disagree" in assess(functions).reason


def test_constant_functions_do_not_hide_the_others():
    functions = ar1_chains(13, 0.3, num_draws=200, shape=(4, 1))
    functions[:, :, 0] = 1.0
    assert assess(functions).converged
    functions[0, :, 1] += 3
    assert assess(functions).converged is False
