"""How far the moments of draws are from exact ones, in standard errors over independent chains."""

import numpy as np
from scipy import stats
from tools.exact import LinearRegression


def chain_z(draws: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """How far means of draws (chain, draw, ...) are from exact ones, as |z| of a normal."""
    means = np.asarray(draws, float).mean(axis=1)
    error = means.std(axis=0, ddof=1) / len(means) ** 0.5
    t = np.abs(means.mean(axis=0) - exact) / error
    return -stats.norm.ppf(stats.t.sf(t, df=len(means) - 1))


def moment_z(draws: np.ndarray, problem: LinearRegression) -> float:
    """Worst |z| of all means and covariances against a problem's exact posterior."""
    mean, covariance = problem.solve()
    centred = draws - mean
    products = centred[..., :, None] * centred[..., None, :]
    return max(chain_z(draws, mean).max(), chain_z(products, covariance).max())
