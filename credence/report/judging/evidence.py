"""How far the predictions on the test rows are from calibrated, and how far chance alone goes.

Every band and limit in the report is what 99 % of perfectly calibrated models stay within at least,
so that one constant, `ALPHA`, says how often a sound model is blamed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Float, Int
from scipy import stats

from credence.report.data import (
    AnyTarget,
    ClassificationTarget,
    RegressionTarget,
    Reliability,
    finite_rows,
    independent,
    is_inside,
    pooled,
)
from credence.report.judging.classes import ClassCount, count_classes
from credence.report.judging.laws import binomial_interval, shifted, smallest_gross_gap
from credence.report.judging.levels import ALPHA, BETA, ONE_LOOK, ErrorRates
from credence.report.judging.quarters import Quarter, count_quarters
from credence.report.judging.simple_models import LogScores

GROSS_GAPS = (0.20, 0.15)  # of the PIT and the ECE: a model so far off must be found out
NUM_REPLICATES = 4000  # of a calibrated model: the 99.5 % quantile rests on 20 of them


@dataclass(frozen=True)
class Evidence:
    """What the verdict knows of one target.

    Args:
        name: of the target.
        num_rows: rows checked.
        num_left_out: how many of these are training rows, predicted by networks that were not
            trained on them.
        num_not_finite: test rows with a prediction that is NaN or infinite.
        skill: share of the squared error (regression) or of the wrong labels (classification) of
            the best constant prediction that the model removes; at most 1, at or below 0 it is
            of no use.
        gap: regression: Kolmogorov-Smirnov distance of the PIT; classification: ECE.
        gap_limit: what all but alpha of calibrated models stay below.
        num_covered: rows inside their 95 % interval (regression only).
        gross_limit: what all but beta of grossly faulty models stay above.
        quarters: what intervals hold in parts of the predictions (regression only).
        classes: how every class fares (classification only).
        conformal_share: share of the test rows in their conformal 95 % interval; None without.
        scores: log scores beside those of simple models; None in runs that did not keep them.
        rates: alpha and beta.
        is_of_groups: whether these rows are one of every group.
    """

    name: str
    num_rows: int
    num_not_finite: int
    skill: float
    gap: float
    gap_limit: float
    num_covered: int | None = None
    gross_limit: float = np.inf
    quarters: tuple[Quarter, ...] = ()
    classes: tuple[ClassCount, ...] = ()
    scores: LogScores | None = None
    num_left_out: int = 0
    conformal_share: float | None = None
    rates: ErrorRates = ONE_LOOK
    is_of_groups: bool = False


def collect_evidence(
    target: AnyTarget, left_out: AnyTarget | None = None, rates: ErrorRates = ONE_LOOK
) -> Evidence:
    """Evidence from the rows whose numbers are finite; the others are counted.

    Of rows in groups it takes one of every group, but for the skill, which no chance is set
    against: see `credence.report.data.independent`.

    Args:
        target: predictions of test rows.
        left_out: predictions of training rows by networks that were not trained on them, which
            count beside the test rows. They are no test rows: few of the networks predict
            them, and they chose the models' weights, the shape of their mixture and the end of the
            warm-up. So `verdict` asks them only where test rows are too few to tell.
        rates: how often a check of this evidence may err.
    """
    scores, is_of_groups = independent(target).scores, target.groups is not None
    whole = finite_rows(target)
    finite, num_not_finite, num_left_out = independent(whole), len(target.y) - len(whole.y), 0
    if left_out is not None:
        unseen = finite_rows(left_out)
        num_not_finite += len(left_out.y) - len(unseen.y)
        alone = independent(unseen)
        whole, finite, num_left_out = pooled(whole, unseen), pooled(finite, alone), len(alone.y)
    skill = _skill(whole)
    if isinstance(finite, RegressionTarget):
        gap, limit = pit_gap(finite.pit, rates.alpha)
        return Evidence(
            name=target.name,
            num_rows=len(finite.y),
            num_not_finite=num_not_finite,
            skill=skill,
            gap=gap,
            gap_limit=limit,
            num_covered=int(np.sum(is_inside(finite))),
            gross_limit=smallest_gross_gap(len(finite.y), GROSS_GAPS[0], rates.beta),
            quarters=count_quarters(finite),
            scores=scores,
            num_left_out=num_left_out,
            conformal_share=finite.conformal_share,
            rates=rates,
            is_of_groups=is_of_groups,
        )
    gap, limit = expected_calibration_error(finite.reliability, rates.alpha)
    return Evidence(
        name=target.name,
        num_rows=len(finite.y),
        num_not_finite=num_not_finite,
        skill=skill,
        gap=gap,
        gap_limit=limit,
        gross_limit=smallest_gross_ece(finite.reliability, GROSS_GAPS[1], rates.beta),
        classes=count_classes(finite, rates.alpha),
        scores=scores,
        num_left_out=num_left_out,
        rates=rates,
        is_of_groups=is_of_groups,
    )


def binomial_band(
    n: int, shares: Float[np.ndarray, " level"]
) -> tuple[Float[np.ndarray, " level"], Float[np.ndarray, " level"]]:
    """Bounds (lower, upper) of k/n for k ~ Binomial(n, share), beyond which at most `ALPHA` of all
    samples go at any of the shares (Bonferroni)."""
    looks = max(np.count_nonzero((shares > 0) & (shares < 1)), 1)
    intervals = np.array([binomial_interval(n, float(share), ALPHA / looks) for share in shares])
    return intervals[:, 0], intervals[:, 1]


def central_coverage(
    pit: Float[np.ndarray, " point"], levels: Float[np.ndarray, " level"]
) -> Float[np.ndarray, " level"]:
    """Share of rows inside their central interval at each level: |2 PIT - 1| <= level."""
    return (np.abs(2 * pit - 1)[:, None] <= levels).mean(axis=0)


def pit_gap(pit: Float[np.ndarray, " point"], alpha: float = ALPHA) -> tuple[float, float]:
    """Largest distance of the PIT, and of the central coverage, from uniform, and its limit.

    The first sees predictions that lean to one side, the second intervals that are too narrow or
    too wide at any level. The limit splits `alpha` between the two (Bonferroni).
    """
    n = len(pit)
    if n == 0:
        return 0.0, 1.0
    gap = max(stats.kstest(u, "uniform").statistic for u in (pit, np.abs(2 * pit - 1)))
    return float(gap), _distance_limit(n, alpha / 2)


@lru_cache(maxsize=256)
def _distance_limit(n: int, alpha: float) -> float:
    """Kolmogorov-Smirnov distance that 1 - alpha of uniform samples stay below."""
    return float(stats.kstwo.ppf(1 - alpha, n))


def pit_counts(pit: Float[np.ndarray, " point"]) -> Int[np.ndarray, " bin"]:
    """Histogram of the PIT, in 10 bins where they hold 10 rows each on average, in 5 below that."""
    counts, _ = np.histogram(pit, bins=10 if len(pit) >= 100 else 5, range=(0, 1))
    return counts


def expected_calibration_error(table: Reliability, alpha: float = ALPHA) -> tuple[float, float]:
    """ECE of a reliability table, and the limit that 1 - `alpha` of calibrated models stay below.

    The ECE of a calibrated model is not 0 on finite data. Its law follows from the table: the
    number of right labels in a bin is Binomial(count, confidence). Drawn with a fixed seed.
    """
    used = table.count > 0
    count, confidence = table.count[used], np.clip(table.confidence[used], 0, 1)
    n = count.sum()
    if n == 0:
        return 0.0, 1.0
    ece = np.sum(count * np.abs(table.accuracy[used] - confidence)) / n
    chance = _simulated_ece(count, confidence, confidence)
    return float(ece), float(np.quantile(chance, 1 - alpha))


def smallest_gross_ece(table: Reliability, gap: float, beta: float = BETA) -> float:
    """ECE that 1 - `beta` of models stay above whose every probability is `gap` too sure or modest.

    Of the two the one that is harder to find out counts. Drawn with a fixed seed.
    """
    used = table.count > 0
    count, confidence = table.count[used], np.clip(table.confidence[used], 0, 1)
    if not count.sum():
        return -1.0
    faulty = [np.clip(confidence - gap, 0, 1), shifted(confidence, count / count.sum(), gap)]
    found = [_simulated_ece(count, confidence, true) for true in faulty if true is not None]
    return min(float(np.quantile(each, beta)) for each in found)


def _simulated_ece(
    count: Int[np.ndarray, " bin"],
    stated: Float[np.ndarray, " bin"],
    true: Float[np.ndarray, " bin"],
) -> Float[np.ndarray, " replicate"]:
    """ECE of test sets like this one, if labels are right with the true probabilities."""
    right = np.random.default_rng(0).binomial(count, true, size=(NUM_REPLICATES, len(count)))
    return np.abs(right - count * stated).sum(axis=1) / count.sum()


def _skill(target: RegressionTarget | ClassificationTarget) -> float:
    if isinstance(target, RegressionTarget):
        return skill_regression(target)
    return skill_classification(target)


def skill_regression(target: RegressionTarget) -> float:
    """R^2 on the test rows: 1 - squared error / squared error of their mean."""
    total = np.sum((target.y - target.y.mean()) ** 2) if len(target.y) else 0.0
    return float(1 - np.sum((target.y - target.mean) ** 2) / total) if total > 0 else np.nan


def skill_classification(target: ClassificationTarget) -> float:
    """1 - wrong labels / wrong labels of always saying the most frequent one."""
    if not len(target.y):
        return np.nan
    wrong_constant = 1 - np.bincount(target.y, minlength=len(target.labels)).max() / len(target.y)
    wrong = 1 - target.is_correct.mean()
    return float(1 - wrong / wrong_constant) if wrong_constant > 0 else np.nan
