"""Scores of an ensemble against closed forms, in the target's own unit."""

import json

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm
from tools.exact import linear_regression

from credence.compare import scoring
from credence.compare.problem import Arrays
from credence.density.posterior import Posterior
from credence.ensembles.diagnostics.cost import Cost
from credence.ensembles.diagnostics.entropy import decompose_entropy
from credence.ensembles.ensemble import Ensemble
from credence.ensembles.provenance import Provenance
from credence.ensembles.scores import NLL_FLOOR
from credence.models import MLP, Bernoulli, Gaussian, Normal
from credence.preprocessing import TargetScaler

CHAINS, DRAWS = 4, 250


def ensemble(posterior: Posterior, positions: np.ndarray, is_chain: bool = True) -> Ensemble:
    return Ensemble(
        model=posterior.model,
        params=posterior.unravel(jnp.asarray(positions, jnp.float32)),
        cost=Cost(),
        provenance=Provenance("exact", {}, 0, ""),
        num_features=posterior.data.x.shape[1],
        num_targets=1,
        is_chain=is_chain,
    )


def test_regression_scores_in_units() -> None:
    """Mixture of exact posterior draws: RMSE, NLL and both coverages by hand."""
    problem = linear_regression(num_points=30)
    rng = np.random.default_rng(1)
    mean, covariance = problem.solve()
    positions = rng.multivariate_normal(mean, covariance, (CHAINS, DRAWS))
    x = rng.normal(size=(60, 3))
    locations = x @ positions.reshape(-1, 4)[:, :3].T + positions.reshape(-1, 4)[:, 3]
    z = locations[:, 0] + problem.noise_std * rng.normal(size=60)
    scaler = TargetScaler((100.0,), (20.0,))
    arrays = Arrays(problem.x, problem.y, x, z, scaler, ())
    numbers, rows = scoring.scores(ensemble(problem.posterior, positions), arrays)

    log_prob = logsumexp(norm.logpdf(z[:, None], locations, problem.noise_std), axis=1)
    nll = np.log(locations.shape[1]) - log_prob + np.log(20.0)
    error = 20.0 * (locations.mean(axis=1) - z)
    low, high = np.quantile(locations, (0.025, 0.975), axis=1)
    cdf = norm.cdf(z[:, None], locations, problem.noise_std).mean(axis=1)
    assert numbers["nll"] == pytest.approx(nll.mean(), rel=1e-4)
    assert numbers["mse"] == pytest.approx((error**2).mean(), rel=1e-4)
    assert numbers["rmse"] == pytest.approx(numbers["mse"] ** 0.5)
    assert numbers["coverage_95"] == pytest.approx(np.mean((cdf > 0.025) & (cdf < 0.975)))
    assert numbers["coverage_95_credible"] == pytest.approx(np.mean((low <= z) & (z <= high)))
    assert numbers["coverage_95_credible"] < 0.8 < numbers["coverage_95"]
    np.testing.assert_allclose(rows["nll"], nll, rtol=1e-3)
    np.testing.assert_allclose(rows["error"], error**2, rtol=1e-2, atol=1e-2)
    # Without the factor of the unit the NLL would be off by log 20.
    assert abs(numbers["nll"] - (nll.mean() - np.log(20.0))) > 2.9


def test_classification_scores() -> None:
    """A Bernoulli network without hidden layer: probabilities by hand."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(50, 2)), rng.integers(0, 2, 50).astype(np.int32)
    posterior = Posterior(MLP(1, ()), Gaussian(), Bernoulli(), (x, y))
    positions = rng.normal(size=(1, 6, 3))
    arrays = Arrays(x, y, x, y, None, ("no", "yes"))
    numbers, rows = scoring.scores(ensemble(posterior, positions, is_chain=False), arrays)
    logits = x @ positions[0, :, :2].T + positions[0, :, 2]
    p = (1 / (1 + np.exp(-logits))).mean(axis=1)
    truth = np.where(y == 1, p, 1 - p)
    assert numbers["accuracy"] == np.mean((p > 0.5) == y)
    assert numbers["nll"] == pytest.approx(-np.log(truth).mean(), rel=1e-4)
    floor = -np.log(np.maximum(truth, NLL_FLOOR)).mean()
    assert numbers["nll_floor"] == pytest.approx(floor, rel=1e-4)
    assert numbers["brier"] == pytest.approx(2 * np.mean((p - y) ** 2), rel=1e-4)
    assert rows["error"] == [float(wrong) for wrong in (p > 0.5) != y]
    # With two classes of mirrored probabilities all classes count every error twice, halved.
    assert numbers["ece_all_classes"] <= numbers["ece"] + 0.2


def test_rows_of_a_diverged_network_are_json() -> None:
    """Squares of what it predicts overflow single precision."""
    x = np.random.default_rng(0).normal(size=(20, 2))
    posterior = Posterior(MLP(1, ()), Gaussian(), Normal(), (x, x[:, :1]))
    positions = np.full((1, 1, posterior.num_weights), 1.0)
    positions[..., : x.shape[1] + 1] = 1e25
    arrays = Arrays(x, x[:, :1], x, x[:, 0], TargetScaler((0.0,), (1.0,)), ())
    numbers, rows = scoring.scores(ensemble(posterior, positions, is_chain=False), arrays)
    json.dumps([numbers, rows], allow_nan=False)
    assert rows["nll"] == [None] * 20
    assert min(rows["error"]) > 1e40


def test_doubt_about_strangers() -> None:
    """Entropies by the other module's formulas; strangers lie where members disagree."""
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(50, 2)), rng.integers(0, 2, 50).astype(np.int32)
    others = 5 * rng.normal(size=(30, 2))
    posterior = Posterior(MLP(1, ()), Gaussian(), Bernoulli(), (x, y))
    positions = rng.normal(size=(1, 6, 3))
    found = ensemble(posterior, positions, is_chain=False)
    arrays = Arrays(x, y, x, y, None, ("no", "yes"), (), others)
    numbers, _ = scoring.scores(found, arrays)

    def parts(inputs: np.ndarray):
        logits = inputs @ positions[0, :, :2].T + positions[0, :, 2]
        p = 1 / (1 + np.exp(-logits.T))
        return p.mean(axis=0), decompose_entropy(np.stack([1 - p, p], axis=-1))

    (p, known), (_, strange) = parts(x), parts(others)
    right = (p > 0.5) == y
    above = strange.total[:, None] > known.total
    assert numbers["epistemic_id"] == pytest.approx(known.epistemic.mean(), rel=1e-3)
    assert numbers["epistemic_correct"] == pytest.approx(known.epistemic[right].mean(), rel=1e-3)
    assert numbers["epistemic_wrong"] == pytest.approx(known.epistemic[~right].mean(), rel=1e-3)
    assert numbers["epistemic_others"] == pytest.approx(strange.epistemic.mean(), rel=1e-3)
    assert numbers["ood_auroc"] == pytest.approx(above.mean(), abs=0.01)
    assert "ess_share" not in numbers
    one = ensemble(posterior, positions[:, :1], is_chain=False)
    alone, _ = scoring.scores(one, arrays)
    assert (alone["epistemic_id"], alone["epistemic_others"]) == (0.0, 0.0)
    assert alone["ood_auroc_epistemic"] == 0.5


def test_ess_of_autoregressive_weights() -> None:
    """AR(1) with correlation 1/2 has N / 3 effective draws; N / ESS, once published, is caught."""
    rng = np.random.default_rng(2)
    rho, num_weights, num_draws = 0.5, 60, 1000
    draws = np.empty((CHAINS, num_draws, num_weights))
    draws[:, 0] = rng.normal(size=(CHAINS, num_weights))
    for t in range(1, num_draws):
        noise = rng.normal(size=(CHAINS, num_weights))
        draws[:, t] = rho * draws[:, t - 1] + (1 - rho**2) ** 0.5 * noise
    total = CHAINS * num_draws
    single = np.array([scoring.ess_summary(draws[:, :, i : i + 1])[0] for i in range(num_weights)])
    error = single.std(ddof=1) / num_weights**0.5
    assert abs(single.mean() - total / 3) / error < 4.5
    assert abs(np.mean(total / single) - total / 3) / error > 8  # the published definition
    low, median, high = scoring.ess_summary(draws)
    assert (low, median, high) == pytest.approx((single.min(), np.median(single), single.max()))
    ratios = scoring.draws_per_effective_draw(draws)
    assert ratios[0] < ratios[1] < ratios[2]
    alone = np.array([[scoring.ess_summary(draws[c : c + 1, :, i : i + 1])[0]
                       for i in range(num_weights)] for c in range(CHAINS)])  # fmt: skip
    error = (num_draws / alone).std(ddof=1) / alone.size**0.5
    assert abs((num_draws / alone).mean() - 3) < 4.5 * error
    assert ratios[1] == pytest.approx(np.median(num_draws / alone))


def test_a_walk_that_goes_nowhere_needs_nearly_all_its_draws_for_one() -> None:
    """The published numbers of 2000 draws, about (80, 900, 1540), are such walks'."""
    walk = np.cumsum(np.random.default_rng(5).normal(size=(1, 2000, 300)), axis=1)
    ratios = scoring.draws_per_effective_draw(walk)
    assert ratios[1] > 400
    assert ratios[2] > 1200


def test_a_chain_that_stands_still_is_told() -> None:
    """It has one effective draw, and does not vanish beside a chain that moves."""
    draws = np.random.default_rng(6).normal(size=(2, 400, 3))
    draws[1] = draws[1, :1]
    assert scoring.draws_per_effective_draw(draws)[2] == 400
    assert scoring.draws_per_effective_draw(draws[1:]) == [400, 400, 400]
    assert scoring.ess_summary(draws[1:]) == [1, 1, 1]
    draws[:, :, 2] = 0  # a weight that no network uses
    assert scoring.ess_summary(draws[:1])[0] > 100


def test_ess_of_what_cannot_be_judged() -> None:
    assert scoring.ess_summary(np.zeros((2, 3, 1))) is None
    assert scoring.ess_summary(np.full((2, 10, 1), np.nan)) is None


def test_many_weights_are_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring, "MAX_WEIGHTS", 3)
    problem = linear_regression()
    positions = np.random.default_rng(0).normal(size=(2, 20, 4))
    found = scoring.judge(ensemble(problem.posterior, positions), problem.x)
    assert (found["weights_judged"], found["num_weights"]) == (3, 4)
    assert found["convergence"]["num_chains"] == 2
    assert found["ess_function"][0] == pytest.approx(found["convergence"]["min_ess_function"])


def test_no_chain_is_not_judged() -> None:
    problem = linear_regression()
    found = scoring.judge(ensemble(problem.posterior, np.zeros((1, 2, 4)), False), problem.x)
    assert found["convergence"]["converged"] is None
    assert found["ess_function"] is None
