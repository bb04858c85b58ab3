"""Simulation-based calibration: if the truth comes from the prior, its rank among posterior draws
is uniform (Talts, Betancourt, Simpson, Vehtari & Gelman, 2018)."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chi2
from sklearn.exceptions import ConvergenceWarning

from credence import BNNRegressor
from credence.density.data import Data
from credence.density.posterior import BayesianModel
from credence.methods import HMC, Training
from credence.models import MLP, Gaussian, Normal

X = np.linspace(-1.5, 1.5, 16)[:, None]
X = (X - X.mean()) / X.std()  # standardising inputs then changes nothing
X_NEW = np.array([[-1.8], [0.3], [1.2]])
BINS = 10


def ranks(num_replicates: int, simulated: BayesianModel, method: HMC) -> np.ndarray:
    """Share of posterior draws below the truth (replicate, quantity): f at X_NEW, and log noise sd.

    Truth and data come from `simulated`; the estimator fits the default model.
    """
    data = Data(jnp.asarray(X, jnp.float32), jnp.zeros((len(X), 1)), jnp.ones(len(X)))
    found = []
    for replicate in range(num_replicates):
        key_params, key_data = jax.random.split(jax.random.key(replicate))
        truth = simulated.sample_prior(key_params, data)
        y = np.asarray(simulated.simulate(key_data, truth, data.x))[:, 0]
        model = BNNRegressor(
            hidden=(4,), method=method, standardize_target=False, random_state=replicate
        ).fit(X, y)
        functions = model.sample_functions(X_NEW).reshape(-1, len(X_NEW))
        true_functions = simulated.network.apply(truth.network, jnp.asarray(X_NEW, jnp.float32))
        noise = model.ensemble_.params.likelihood.reshape(-1, 1)
        draws = np.concatenate([functions, noise], axis=1)
        exact = np.append(np.asarray(true_functions)[:, 0], truth.likelihood)
        found.append((draws < exact).mean(axis=0))
    return np.array(found)


def uniformity(ranks: np.ndarray) -> np.ndarray:
    """p-value of the chi-squared test of every quantity."""
    counts = np.apply_along_axis(lambda r: np.histogram(r, BINS, (0, 1))[0], 0, ranks)
    expected = len(ranks) / BINS
    return chi2.sf(((counts - expected) ** 2 / expected).sum(axis=0), BINS - 1)


@pytest.mark.slow
@pytest.mark.filterwarnings(f"ignore::{ConvergenceWarning.__module__}.ConvergenceWarning")
def test_the_truth_has_a_uniform_rank() -> None:
    method = HMC(num_draws=250, num_warmup=250, thinning=2, training=Training(max_epochs=200))
    model = BayesianModel(MLP(1, (4,)), Gaussian(), Normal())
    assert uniformity(ranks(300, model, method)).min() > 1e-4
    planted = BayesianModel(MLP(1, (4,)), Gaussian(weight_std=2.0), Normal(scale_prior_std=2.0))
    assert uniformity(ranks(300, planted, method)).min() < 1e-8
