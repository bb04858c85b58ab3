"""Held-out sets with one known fault each, for the verdict to find."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import stats
from tools.report_samples import classification_target, regression_target, reliability

from credence.report import ClassificationTarget, RegressionTarget

HOLDS_80 = float(stats.norm.ppf(0.9) / stats.norm.ppf(0.975))
"""Factor of the spread that turns 95 % intervals into such that hold 80 %."""


def bad_quarter(
    n: int, seed: int, by: str = "mean", place: int = 3, factor: float = HOLDS_80
) -> RegressionTarget:
    """Narrow the predictions of one quarter of the rows, by prediction or by spread."""
    target = regression_target(n, seed)
    factors = np.ones(n)
    factors[np.array_split(np.argsort(getattr(target, by)), 4)[place]] = factor
    sd = factors * target.std

    def quantile(q: float) -> np.ndarray:
        return target.mean + stats.norm.ppf(q) * sd

    return replace(
        target,
        std=sd,
        lower_50=quantile(0.25),
        upper_50=quantile(0.75),
        lower_95=quantile(0.025),
        upper_95=quantile(0.975),
        pit=stats.norm.cdf((target.y - target.mean) / sd),
    )


def wrong_class(n: int, seed: int, share: float = 0.35) -> ClassificationTarget:
    """Turn a share of the rows of the third class into the second, unknown to the model."""
    target = classification_target(n=n, seed=seed)
    is_turned = (target.y == 2) & (np.random.default_rng(seed + 1000).random(n) < share)
    return with_truth(target, np.where(is_turned, 1, target.y))


def credit(n_bad: int = 75, n_good: int = 175, num_missed: int = 58, stated: float = 0.7):
    """A model that calls most bad customers good, and says so in its probabilities or does not.

    Args:
        stated: probability of being good of those who are called good.
    """
    y = np.repeat([0, 1], [n_bad, n_good])
    num_false = 8
    said = np.ones(n_bad + n_good, int)
    said[: n_bad - num_missed] = 0
    said[n_bad : n_bad + num_false] = 0
    good = np.where(said == 1, stated, 0.32)
    p = np.stack([1 - good, good], axis=1)
    entropy = -np.sum(p * np.log(p), axis=1)
    return ClassificationTarget(
        name="risk",
        labels=("bad", "good"),
        y=y,
        predicted=said,
        probabilities=p,
        entropy_total=entropy,
        entropy_aleatoric=entropy,
        entropy_epistemic=0 * entropy,
        reliability=reliability(p.max(axis=1), said == y),
    )


def with_truth(target: ClassificationTarget, y: np.ndarray) -> ClassificationTarget:
    """The same predictions of other truths."""
    return replace(target, y=y, reliability=reliability(target.confidence, target.predicted == y))
