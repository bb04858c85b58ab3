"""Ensembles as ArviZ has them."""

from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp
from tools.ensembles import X, make_ensemble
from tools.exact import linear_regression, weights, with_ones

from credence.ensembles.diagnostics.importance import pareto_smoothed
from credence.errors import InputError

pytestmark = pytest.mark.usefixtures("checked_keys")


@pytest.fixture
def arviz() -> Any:
    """ArviZ, imported late: of two processes that first import it on a day, at once, one fails."""
    import arviz

    return arviz


def test_arviz_sees_draws_and_statistics(arviz: Any) -> None:
    weights = np.array([[0.5, 0.5, 0.5], [0.5, -0.5, -0.5]])
    ensemble = make_ensemble(weights=weights)
    data = ensemble.to_arviz()
    kernel = data["posterior"]["network.0.kernel"]
    assert kernel.dims[:2] == ("chain", "draw")
    np.testing.assert_array_equal(kernel, ensemble.params.network[0].kernel)
    np.testing.assert_array_equal(data["posterior"]["likelihood"], ensemble.params.likelihood)
    np.testing.assert_array_equal(
        data["sample_stats"]["acceptance_rate"], ensemble.scalars["acceptance_rate"]
    )
    np.testing.assert_array_equal(data["sample_stats"]["weight"], weights)
    assert "network.0.kernel" in arviz.rhat(data)


@pytest.mark.filterwarnings("ignore:Estimated shape parameter")
def test_arviz_leaves_one_out_as_the_closed_form_does(float64: None, arviz: Any) -> None:
    problem = linear_regression(num_points=15)
    mean, covariance = problem.solve()
    draws = np.random.default_rng(2).multivariate_normal(mean, covariance, size=(4, 2500))
    posterior = problem.posterior
    ensemble = replace(
        make_ensemble(),
        model=posterior.model,
        params=posterior.unravel(jnp.asarray(draws)),
        scalars={},
    )
    np.testing.assert_allclose(weights(ensemble), draws)
    x, y = problem.x, problem.y
    data = ensemble.to_arviz(x, y)
    log_likelihood = np.asarray(data["log_likelihood"]["y"])
    exact = stats.norm.logpdf(y, draws @ with_ones(x).T, problem.noise_std)
    np.testing.assert_allclose(log_likelihood, exact, atol=1e-4)
    left_out = [
        problem._replace(x=np.delete(x, i, 0), y=np.delete(y, i)).predict(x[i : i + 1])
        for i in range(15)
    ]
    expected = [stats.norm.logpdf(y[i], *left_out[i])[0] for i in range(15)]
    found = arviz.loo(data, pointwise=True, reff=1.0)
    by_arviz = (found.elpd_i if hasattr(found, "elpd_i") else found.loo_i).to_numpy()  # 0.x
    flat = log_likelihood.reshape(-1, 15)
    ours = [logsumexp(row, b=pareto_smoothed(-row).weights) for row in flat.T]
    np.testing.assert_allclose(by_arviz, ours, atol=1e-3)
    np.testing.assert_allclose(by_arviz, expected, atol=0.1)
    np.testing.assert_array_equal(data["observed_data"]["y"], y)
    drawn = np.asarray(data["posterior_predictive"]["y"]).reshape(-1, 15)
    centre, std = problem.predict(x)
    assert np.all(np.abs(drawn.mean(axis=0) - centre) < 4.5 * std / len(drawn) ** 0.5)
    np.testing.assert_allclose(drawn.std(axis=0), std, rtol=4.5 / (2 * len(drawn)) ** 0.5)


def test_arviz_has_labels_and_several_targets() -> None:
    labels = make_ensemble(classes=3)
    data = labels.to_arviz(X, np.arange(7) % 3)
    assert data["posterior_predictive"]["y"].shape == (2, 3, 7)
    assert set(np.unique(data["posterior_predictive"]["y"])) <= {0, 1, 2}
    probabilities = np.asarray(labels.predictive(X).member_means()).reshape(2, 3, 7, 3)
    expected = np.log(probabilities[:, :, np.arange(7), np.arange(7) % 3])
    np.testing.assert_allclose(data["log_likelihood"]["y"], expected, rtol=1e-4)
    assert "log_likelihood" not in labels.to_arviz(X)


def test_arviz_refuses_targets_that_do_not_fit() -> None:
    with pytest.raises(InputError, match="y without x"):
        make_ensemble().to_arviz(y=np.zeros(7))
    with pytest.raises(InputError, match="y has 6 rows of 1 target, but x has 7 rows"):
        make_ensemble().to_arviz(X, np.zeros(6))
    with pytest.raises(InputError, match="7 rows of 2 targets"):
        make_ensemble().to_arviz(X, np.zeros((7, 2)))
