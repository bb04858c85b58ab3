"""Say what each chart shows, in one sentence of plain words, computed from the data.

Every function is pure; the limits are those of `evidence`: what 99 % of calibrated models stay
within is called chance.
"""

from __future__ import annotations

import numpy as np
from scipy import stats

from credence.ensembles.diagnostics.convergence import ESS_LIMIT, RHAT_LIMIT
from credence.html.wording import count, number, percent, points, times, with_unit
from credence.report.charts.classification import selective_accuracy
from credence.report.charts.regression import LEVELS, epistemic_share, error_by_std
from credence.report.data import ClassificationTarget, Convergence, RegressionTarget, is_inside
from credence.report.judging.evidence import (
    ALPHA,
    GROSS_GAPS,
    binomial_band,
    central_coverage,
    expected_calibration_error,
    pit_counts,
    pit_gap,
    skill_classification,
    skill_regression,
)


def read_predictions(target: RegressionTarget) -> str:
    """Say how far off the predictions are, and how much of the variation they explain."""
    error = np.abs(target.y - target.mean)
    typical = with_unit(float(np.median(error)), target.unit)
    skill = skill_regression(target)
    explained = (
        f"together the predictions explain {percent(skill)} of the variation"
        if skill > 0
        else "together the predictions explain none of the variation"
    )
    return f"Half of the rows are predicted to within {typical}; {explained}."


def read_intervals(target: RegressionTarget) -> str:
    """Say how many rows fell inside the intervals, and how wide these are."""
    inside, n = int(is_inside(target).sum()), len(target.y)
    half = percent(float(is_inside(target, 50).mean()))
    width = with_unit(float(np.median(target.upper_95 - target.lower_95)), target.unit)
    return (
        f"The truth lies in the 95 % interval on {number(inside)} of {count(n, 'row')} "
        f"({percent(inside / n, 1)}) and in the 50 % interval on {half}; "
        f"a typical 95 % interval is {width} wide."
    )


def read_coverage(target: RegressionTarget) -> str:
    """Say whether intervals hold at every level; if not, where it is worst and in which way."""
    n, coverage = len(target.y), central_coverage(target.pit, LEVELS)
    lower, upper = binomial_band(n, LEVELS)
    below, above = int(np.sum(coverage < lower)), int(np.sum(coverage > upper))
    worst = int(np.argmax(np.abs(coverage - LEVELS)))
    example = (
        f"intervals that claim {percent(LEVELS[worst])} hold {percent(float(coverage[worst]))}"
    )
    gap, limit = pit_gap(target.pit)
    if not below and not above:
        return (
            f"No gap is larger than chance makes it in {count(len(target.y), 'test row')}; the "
            f"largest one: {example}."
        )
    if gap <= limit:
        return (
            f"In {count(len(target.y), 'test row')} the gaps are what chance makes, overall; at "
            f"worst, {example}."
        )
    verb = "too narrow" if below >= above else "too wide"
    return (
        f"Intervals are {verb} at {number(max(below, above))} of {len(LEVELS)} levels; "
        f"at worst, {example}."
    )


def read_pit(target: RegressionTarget) -> str:
    """Say whether the bars are flat; if not, which are too full, or to which side they lean."""
    counts, n = pit_counts(target.pit), len(target.y)
    expected = n / len(counts)
    p_value = stats.chisquare(counts).pvalue
    if p_value >= ALPHA:
        return "The bars are level within chance: the truth falls anywhere in the predicted range."
    ends = (counts[0] + counts[-1]) / (2 * expected)
    shift = float(np.mean(target.pit)) - 0.5
    if abs(shift) > 4 * np.sqrt(1 / 12 / n) and abs(shift) > 0.04:
        lean = "above" if shift > 0 else "below"
        return (
            f"The bars lean to one side: the truth is {lean} the middle of the prediction on "
            f"{percent(float(np.mean(target.pit > 0.5 if shift > 0 else target.pit < 0.5)))} "
            "of the rows."
        )
    if ends > 1:
        return (
            f"The outer bars hold {number(float(ends), 2)} times their share: "
            "the truth is often at the edge of what was thought possible, or beyond it."
        )
    return (
        f"The outer bars hold {number(float(ends), 2)} times their share: "
        "the truth is nearer to the prediction than was claimed, or its shape differs."
    )


ONE_NETWORK = (
    "How much the model has not yet learnt these predictions cannot tell: networks tell it by "
    "disagreeing, and here is one alone, or all are alike. Methods with several networks can"
)
"""Said where the predictions of all networks are the same."""


def read_split(target: RegressionTarget) -> str:
    """Say what more data could remove of the variance, and what it could not."""
    shares = epistemic_share(target)
    if not np.any(shares):
        return f"{ONE_NETWORK}."
    share = float(np.median(shares))
    if share >= 0.5:
        return (
            f"On a typical row {percent(share)} of the variance comes from what the model has not "
            "yet learnt: more rows would sharpen the predictions."
        )
    return (
        f"On a typical row {percent(1 - share)} of the variance is noise in the data that more "
        f"rows would not remove; {percent(share)} is what the model has not yet learnt."
    )


def read_errors(target: RegressionTarget) -> str:
    """Say whether the model knows on which rows it will be wrong."""
    spread = float(np.quantile(target.std, 0.9) / max(np.quantile(target.std, 0.1), 1e-300))
    if spread < 1.05:
        return "The model is about equally sure of every row, so its doubt can not rank them."
    observed, _ = error_by_std(target)
    rank = stats.spearmanr(target.std, np.abs(target.y - target.mean))
    ratio = times(float(observed[-1]), float(observed[0]))
    if rank.pvalue < ALPHA and rank.statistic > 0:  # type: ignore[attr-defined]
        return (
            f"It knows where it is weak: errors on the fifth of the rows it is least sure of are "
            f"{ratio} those on the fifth it is surest of."
        )
    return (
        "Row by row, its doubt does not reliably single out what it gets wrong; errors among the "
        f"least sure fifth are {ratio} those among the surest."
    )


def read_confusion(target: ClassificationTarget) -> str:
    """Say how many labels are right, and which mistake is the commonest."""
    right, n = int(target.is_correct.sum()), len(target.y)
    start = f"{number(right)} of {count(n, 'row')} ({percent(right / n, 1)}) are labelled right"
    if right == n:
        return f"{start}: there is no mistake to show."
    truth, said, times = commonest_mistakes(target)[0]
    return (
        f"{start}; the commonest mistake is to say “{target.labels[said]}” where the truth is "
        f"“{target.labels[truth]}” ({count(times, 'row')})."
    )


def read_confidence(target: ClassificationTarget) -> str:
    """Confidence of right and wrong rows."""
    right, wrong = target.confidence[target.is_correct], target.confidence[~target.is_correct]
    if not len(wrong) or not len(right):
        every = "right" if len(right) else "wrong"
        median = percent(float(np.median(target.confidence)))
        return f"Every row is {every}, with a typical probability of {median}."
    return (
        f"A typical right prediction was given {percent(float(np.median(right)))}, a typical "
        f"wrong one {percent(float(np.median(wrong)))}; {number(int(np.sum(wrong > 0.9)))} of "
        f"{number(len(wrong))} wrong ones were given more than 90 %."
    )


def read_reliability(target: ClassificationTarget) -> str:
    """Say whether a stated probability is a frequency."""
    ece, limit = expected_calibration_error(target.reliability)
    gap = f"stated and observed differ by {points(ece)} on average"
    if ece <= limit and limit > GROSS_GAPS[1]:
        return f"Too few rows to tell: {gap}, and chance makes up to {points(limit)}."
    if ece <= limit:
        return f"A stated probability means what it says: {gap}, within chance ({points(limit)})."
    stated = float(np.mean(target.confidence))
    right = float(np.mean(target.is_correct))
    which = "too sure of itself" if stated > right else "too modest"
    return (
        f"The model is {which}: it states {percent(stated)} on average and is right on "
        f"{percent(right)}; {gap}, more than chance allows ({points(limit)})."
    )


def read_entropies(target: ClassificationTarget) -> str:
    """Say what more data could remove of the doubt, and whether doubt marks the mistakes."""
    total = float(target.entropy_total.mean())
    share = float(target.entropy_epistemic.mean()) / total if total > 0 else 0.0
    start = (
        f"{percent(1 - share)} of the doubt is about labels that overlap in the data; "
        f"{percent(share)} is what the model has not yet learnt"
    )
    if not np.any(target.entropy_epistemic):
        start = ONE_NETWORK
    wrong = target.entropy_total[~target.is_correct]
    right = target.entropy_total[target.is_correct]
    if not len(wrong) or not len(right) or right.mean() <= 0:
        return f"{start}."
    ratio = times(float(wrong.mean()), float(right.mean()))
    return f"{start}. Doubt on wrong rows is {ratio} that on right ones."


def read_selective(target: ClassificationTarget) -> str:
    """Say what answering only the surest rows would gain."""
    kept, accuracy = selective_accuracy(target)
    half = float(accuracy[np.searchsorted(kept, 0.5)])
    overall = float(accuracy[-1])
    if half <= overall:
        return (
            f"Answering only the surer half would not help: {percent(half, 1)} right instead of "
            f"{percent(overall, 1)}."
        )
    return (
        f"Answering only the surer half of the rows raises the share of right labels from "
        f"{percent(overall, 1)} to {percent(half, 1)}."
    )


def read_traces(convergence: Convergence) -> str:
    """Say whether the chains tell the same story on the rows shown."""
    assert convergence.traces is not None
    chains = convergence.traces.shape[0]
    if chains == 1:
        return "A single chain: nothing to compare it with."
    means = convergence.traces.mean(axis=1)
    within = convergence.traces.std(axis=1).mean(axis=0)
    distance = np.ptp(means, axis=0)
    if np.any((within == 0) & (distance > 0)):
        return f"On the rows shown, the {chains} chains stand still, in different places."
    apart = float(np.max(distance / np.where(within > 0, within, np.inf)))
    found = f"their averages differ by {number(apart, 2)} standard deviations at most"
    if apart > 0.5:  # R-hat of about 1.02 to 1.05 for four chains that differ so
        return f"On the rows shown, the {chains} chains tell different stories: {found}."
    return f"On the rows shown, the {chains} chains tell the same story: {found}."


def read_rhat(convergence: Convergence) -> str:
    """Share of predictions above the limit."""
    assert convergence.rhat is not None
    rhat = convergence.rhat[~np.isnan(convergence.rhat)]
    over, n = int(np.sum(rhat > RHAT_LIMIT)), len(rhat)
    most = f"{rhat.max():.3f}" if np.isfinite(rhat.max()) else "infinite (chains stand still)"
    highest = f"the highest R-hat is {most}"
    if not over:
        return f"All {count(n, 'prediction')} settled: {highest}, at most {RHAT_LIMIT} is wanted."
    return (
        f"{number(over)} of {count(n, 'prediction')} did not settle: {highest}, "
        f"at most {RHAT_LIMIT} is wanted."
    )


def read_ess(convergence: Convergence) -> str:
    """The prediction that rests on the fewest independent draws."""
    assert convergence.ess_bulk is not None
    sizes = [s for s in (convergence.ess_bulk, convergence.ess_tail) if s is not None]
    lowest = float(np.nanmin([np.nanmin(s) for s in sizes]))
    worth = f"{number(lowest, 3)} independent ones; {ESS_LIMIT:g} are wanted"
    if lowest >= ESS_LIMIT:
        return f"Every prediction rests on enough draws: the weakest is worth {worth}."
    return f"Some predictions rest on too few draws: the weakest is worth {worth}."


def read_skill(target: ClassificationTarget) -> str:
    """Accuracy beside that of always saying the most frequent label."""
    most = np.bincount(target.y, minlength=len(target.labels)).max() / len(target.y)
    verb = "beats" if skill_classification(target) > 0 else "does not beat"
    return f"{verb} always saying the most frequent label, {percent(float(most), 1)}"


def commonest_mistakes(target: ClassificationTarget) -> list[tuple[int, int, int]]:
    """(truth, predicted, rows) of every mistake made, the commonest first."""
    pairs = np.stack([target.y, target.predicted], axis=1)[~target.is_correct]
    kinds, times = np.unique(pairs, axis=0, return_counts=True)
    order = np.argsort(-times, kind="stable")
    return [(int(kinds[i, 0]), int(kinds[i, 1]), int(times[i])) for i in order]
