"""Is the network better than what costs nothing: guessing, and a straight line?"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import stats

from credence.html.wording import number
from credence.report.judging.levels import ALPHA, TOO_FEW, Check, Level, Subject

HARMLESS = 0.01
"""Nats a row that matter little, be they chance or not."""


class LogScores(NamedTuple):
    """Log predictive density (or probability) of every held-out truth, by three models."""

    network: Float[np.ndarray, " point"]
    marginal: Float[np.ndarray, " point"]
    """Scores by the distribution of the target in the training rows, whatever the inputs."""
    linear: Float[np.ndarray, " point"]
    """Scores by a linear model with normal errors, or a logistic one, of the training rows."""


def check_simple_models(scores: LogScores, alpha: float = ALPHA) -> Check:
    """The mean difference, row by row, against its standard error.

    Worse than the marginal distribution is never trusted: by more than chance makes of equal models
    in all but alpha of cases, do not trust; by less, there are not enough rows to tell. Worse than
    linear by more than that: care. What is below `HARMLESS` counts as equal.
    """
    if not len(scores.network):
        return Check(Level.CANNOT_TELL, Subject.SIMPLE_MODELS, "No test rows to compare on.")
    found = (
        f"Its log loss is {_loss(scores.network)} nats a row; a linear model's is "
        f"{_loss(scores.linear)}, that of guessing from the training rows' distribution "
        f"{_loss(scores.marginal)}"
    )
    most = float(stats.norm.isf(alpha))
    gain, error = difference(scores.network, scores.marginal)
    if gain < -HARMLESS:
        if gain < -most * error:
            return Check(
                Level.DO_NOT_TRUST, Subject.SIMPLE_MODELS, f"{found}: worse than guessing."
            )
        return Check(
            Level.CANNOT_TELL,
            Subject.SIMPLE_MODELS,
            f"{found}: worse than guessing, but {TOO_FEW} for sure.",
        )
    gain, error = difference(scores.network, scores.linear)
    if gain < -max(most * error, HARMLESS):
        by = f"{number(-gain, 2)} ± {number(error, 2)}"
        return Check(
            Level.CARE, Subject.SIMPLE_MODELS, f"{found}: worse than the linear model by {by}."
        )
    if gain < max(most * error, HARMLESS):
        found += ": as far as these rows can tell, a straight line predicts as well"
    return Check(Level.TRUST, Subject.SIMPLE_MODELS, f"{found}.")


def difference(
    network: Float[np.ndarray, " point"], other: Float[np.ndarray, " point"]
) -> tuple[float, float]:
    """Mean of network less other, and its standard error; 0 where one row is infinitely worse."""
    if np.isneginf(network).any():
        return -np.inf, 0.0
    apart = np.nan_to_num(network, nan=-1e300) - other
    error = apart.std(ddof=1) / np.sqrt(len(apart)) if len(apart) > 1 else np.inf
    return float(apart.mean()), float(error)


def _loss(scores: Float[np.ndarray, " point"]) -> str:
    mean = float(scores.mean())
    return number(-mean) if np.isfinite(mean) else "infinite"
