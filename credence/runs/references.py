"""Simple models of the same training rows, for the network's scores to stand beside.

Two of them: the *marginal* distribution of the target in the training rows, which knows no inputs,
and a *linear* model: ridge regression with normal errors, or a logistic one. Both see the inputs as
the network does (standardised, one-hot, gaps filled). Log scores are nats per row, CRPS is in the
target's unit.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
import pandas as pd
from jaxtyping import Float, Int
from scipy import stats

from credence.datasets.names import with_text_names
from credence.ensembles.diagnostics.crps import crps_normal
from credence.estimators import BNNClassifier, BNNRegressor
from credence.spacing import evenly_spaced

PENALTIES = tuple(np.logspace(-3, 4, 15).tolist())
"""Ridge penalties tried, by leave-one-out on the training rows."""
MAX_CENTRES = 1000
"""Centres of the marginal density: quantiles of the training targets, where these are more."""
SMALLEST = 1e-12
"""Probability below which a reference does not go: its certainties are rounding."""
CHUNK = 10_000
MOST_WORK = 1e10
"""Inputs times classes times steps of a logistic regression: some ten seconds."""
MOST_NUMBERS = 20_000_000
"""Rows times inputs of a ridge regression, which holds three copies of them; some ten seconds."""
FEWEST_ROWS = 1000
"""Rows of a ridge regression of very many inputs."""


class References(NamedTuple):
    """Scores of simple models on the held-out rows."""

    numbers: dict[str, float]
    """Entries of metrics.json: `nll_marginal`, `nll_linear`, and of a regression their CRPS."""
    rows: dict[str, np.ndarray]
    """Entries of evaluation.npz: log scores row by row."""


class Tables(NamedTuple):
    """Inputs as a network sees them, of the training and the held-out rows."""

    train: Float[np.ndarray, "row feature"]
    test: Float[np.ndarray, "point feature"]


def references_of(
    model: BNNRegressor | BNNClassifier, train: pd.DataFrame, test: pd.DataFrame, target: str
) -> References:
    """Fit both models to the rows that `model` learnt from, and score them on the others."""
    frames = (with_text_names(rows.drop(columns=target)) for rows in (train, test))
    x = Tables(*(model.preprocessor_.transform(frame) for frame in frames))
    if isinstance(model, BNNRegressor):
        y_train, y = (rows[target].to_numpy(float) for rows in (train, test))
        return regression_references(x, y_train, y)
    y_train, y = (np.searchsorted(model.classes_, rows[target]) for rows in (train, test))
    return classification_references(x, y_train, y, len(model.classes_))


def regression_references(
    x: Tables, y_train: Float[np.ndarray, " row"], y: Float[np.ndarray, " point"]
) -> References:
    """Score the marginal density of the training target, and ridge regression."""
    mean, std = linear_prediction(x, y_train)
    marginal, linear = marginal_log_density(y_train, y), stats.norm.logpdf(y, mean, std)
    crps = {
        "crps_marginal": float(empirical_crps(y_train, y).mean()),
        "crps_linear": float(crps_normal(mean, np.full_like(mean, std), y).mean()),
    }
    return _collected(marginal, linear, crps)


def classification_references(
    x: Tables, y_train: Int[np.ndarray, " row"], y: Int[np.ndarray, " point"], num_classes: int
) -> References:
    """Score the shares of the classes in the training rows, and logistic regression."""
    shares = np.bincount(y_train, minlength=num_classes) / len(y_train)
    linear = logistic_probabilities(x, y_train, num_classes)[np.arange(len(y)), y]
    marginal, linear = (np.log(np.maximum(each, SMALLEST)) for each in (shares[y], linear))
    return _collected(marginal, linear, {})


def linear_prediction(
    x: Tables, y_train: Float[np.ndarray, " row"]
) -> tuple[Float[np.ndarray, " point"], float]:
    """Ridge regression at the held-out rows, and the spread of its leave-one-out residuals.

    Of a very large table it learns from evenly spaced rows.
    """
    from sklearn.linear_model import RidgeCV

    scale = float(y_train.std())
    if not scale > 0:
        return np.full(len(x.test), y_train.mean()), _smallest_spread(y_train)
    model = RidgeCV(alphas=PENALTIES, store_cv_results=True)
    kept = evenly_spaced(len(y_train), max(MOST_NUMBERS // x.train.shape[1], FEWEST_ROWS))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # columns that repeat one another do no harm
        model.fit(x.train[kept], (y_train[kept] - y_train.mean()) / scale)
    squared = model.cv_results_[:, PENALTIES.index(float(model.alpha_))]
    std = max(float(np.sqrt(squared.mean())) * scale, _smallest_spread(y_train))
    return y_train.mean() + scale * model.predict(x.test), std


def logistic_probabilities(
    x: Tables, y_train: Int[np.ndarray, " row"], num_classes: int
) -> Float[np.ndarray, "point class"]:
    """Logistic regression at the held-out rows; a class without a training row has none."""
    from sklearn.linear_model import LogisticRegression

    probabilities = np.zeros((len(x.test), num_classes))
    seen = np.unique(y_train)
    if len(seen) == 1:
        probabilities[:, seen] = 1.0
        return probabilities
    steps = int(np.clip(MOST_WORK / (x.train.size * len(seen)), 20, 500))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # separable classes need no last digit
        model = LogisticRegression(max_iter=steps).fit(x.train, y_train)
    probabilities[:, seen] = model.predict_proba(x.test)
    return probabilities


def marginal_log_density(
    y_train: Float[np.ndarray, " row"], y: Float[np.ndarray, " point"]
) -> Float[np.ndarray, " point"]:
    """Log of a kernel density of the training targets, normal kernels of Scott's width.

    One part in n + 1 is a normal law of three times their spread, so that no truth is impossible.
    """
    n, spread = len(y_train), max(float(y_train.std()), _smallest_spread(y_train))
    centres = y_train
    if n > MAX_CENTRES:
        centres = np.quantile(y_train, (np.arange(MAX_CENTRES) + 0.5) / MAX_CENTRES)
    width = spread * n**-0.2
    parts = np.array_split(y, max(1, -(-len(y) // CHUNK)))
    kernels = [stats.norm.pdf(part[:, None], centres, width).mean(axis=1) for part in parts]
    wide = stats.norm.logpdf(y, y_train.mean(), 3 * spread) - np.log(n + 1)
    with np.errstate(divide="ignore"):
        near = np.log(np.concatenate(kernels)) + np.log(n / (n + 1))
    return np.logaddexp(near, wide)


def empirical_crps(
    y_train: Float[np.ndarray, " row"], y: Float[np.ndarray, " point"]
) -> Float[np.ndarray, " point"]:
    """CRPS of the training targets as they are: E|Y - y| - E|Y - Y'| / 2, exactly, by sorting."""
    centre = y_train.mean()
    values, y, n = np.sort(y_train - centre), y - centre, len(y_train)
    below = np.searchsorted(values, y)
    sums = np.concatenate([[0.0], np.cumsum(values)])
    to_truth = (y * (2 * below - n) + sums[-1] - 2 * sums[below]) / n
    apart = 2 * np.sum(values * (2 * np.arange(1, n + 1) - n - 1)) / n**2
    return to_truth - apart / 2


def _smallest_spread(y: Float[np.ndarray, " row"]) -> float:
    """A spread above rounding, for targets that are all alike."""
    return 1e-6 * max(1.0, float(np.abs(y).max()))


def _collected(
    marginal: Float[np.ndarray, " point"],
    linear: Float[np.ndarray, " point"],
    crps: dict[str, float],
) -> References:
    """Both models' log scores, row by row and on average, and what else there is."""
    numbers = {"nll_marginal": -float(marginal.mean()), "nll_linear": -float(linear.mean())}
    rows = {"log_prob_marginal": marginal, "log_prob_linear": linear}
    return References(numbers | crps, rows)
