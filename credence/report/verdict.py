"""The verdict: trust, use with care, or do not trust. One rule, a pure function.

The worst check decides. A difference counts only if chance does not explain it (the 99 % limits of
`evidence`) and if it is large enough to matter (the constants below).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from credence.html.wording import count, number, percent, points
from credence.report.evidence import ALPHA, Evidence, binomial_interval

MIN_TEST = 50  # with 50 rows, intervals that cover 80 % instead of 95 % are found out 4 times in 5
MIN_COVERAGE = 0.90  # below it, 95 % intervals miss more than twice as often as they claim
SMALL_COVERAGE_GAP = 0.01  # one row in a hundred: beyond chance in big tables, yet harmless
PIT_GAPS = (0.05, 0.15)  # shares of rows on the wrong side: worth a warning, disqualifying
ECE_GAPS = (0.02, 0.10)  # differences of probability: the same


class Level(IntEnum):
    """Ordered: a larger level is a worse one."""

    TRUST = 0
    CARE = 1
    DO_NOT_TRUST = 2


class Check(NamedTuple):
    """A judgement of one thing that may go wrong: its level, what it is of, and a sentence."""

    level: Level
    subject: str
    sentence: str


class Verdict(NamedTuple):
    """The verdict of a run: its level, a headline, and the checks behind it."""

    level: Level
    headline: str
    checks: tuple[Check, ...]


HEADLINES = {
    Level.TRUST: "The uncertainty that it states held up on rows it never saw.",
    Level.CARE: "Usable, with the reservations marked below.",
    Level.DO_NOT_TRUST: "It failed the checks marked below.",
}
UNSETTLED = "The run did not converge: run again, it may predict something else."


def verdict(converged: bool | None, reason: str, evidence: Sequence[Evidence]) -> Verdict:
    """The worst of all checks, convergence first.

    Args:
        converged: None for a method that draws no chains; such a run can reach CARE at best.
        reason: the sentence that says why it did or did not converge.
        evidence: one per target; each subject is reported for the target that fares worst.
    """
    alpha = ALPHA / max(len(evidence), 1)  # as many chances to be blamed unjustly as targets
    per_target = [_target_checks(item, alpha) for item in evidence]
    checks = (
        check_convergence(converged, reason),
        *(_worst(evidence, subject) for subject in zip(*per_target, strict=True)),
    )
    level = max(check.level for check in checks)
    headline = UNSETTLED if converged is False else HEADLINES[level]
    return Verdict(level, headline, checks)


def check_convergence(converged: bool | None, reason: str) -> Check:
    """A run that did not converge is never to be trusted."""
    if converged is None:
        return Check(Level.CARE, "Convergence", f"Not checked. {reason}")
    if converged:
        return Check(Level.TRUST, "Convergence", reason)
    return Check(Level.DO_NOT_TRUST, "Convergence", f"The run did not converge. {reason}")


def check_sample_size(item: Evidence) -> Check:
    """Too few test rows can not show that intervals hold."""
    subject = "Test rows"
    if item.num_not_finite:
        total = item.n_test + item.num_not_finite
        return Check(
            Level.DO_NOT_TRUST,
            subject,
            f"{count(item.num_not_finite, 'prediction')} of {number(total)} are not finite "
            "numbers. The sections below leave these rows out.",
        )
    rows = count(item.n_test, "row")
    if item.n_test < MIN_TEST:
        return Check(
            Level.CARE,
            subject,
            f"Only {rows} held back for testing. At least {MIN_TEST} are needed to see "
            "whether the uncertainty holds.",
        )
    return Check(Level.TRUST, subject, f"Checked on {rows} that the model never saw.")


def check_coverage(item: Evidence, alpha: float = ALPHA) -> Check:
    """95 % intervals against the binomial law of the number of rows that they cover."""
    subject = "95 % intervals"
    covered, n = item.num_covered, item.n_test
    if not n or covered is None:
        return Check(Level.CARE, subject, "No test rows to check them on.")
    share = covered / n
    lower, upper = binomial_interval(n, 0.95, alpha)
    found = f"They hold {percent(share, 1)} of the test rows"
    chance = f"chance allows {percent(lower, 1)} to {percent(upper, 1)}"
    if lower <= share <= upper or abs(share - 0.95) <= SMALL_COVERAGE_GAP:
        if n < MIN_TEST:
            return Check(Level.CARE, subject, f"{found}, which proves little ({chance}).")
        return Check(Level.TRUST, subject, f"{found}, as they should ({chance}).")
    if share > upper:
        return Check(Level.CARE, subject, f"{found}, wider than they need to be ({chance}).")
    level = Level.CARE if share >= MIN_COVERAGE else Level.DO_NOT_TRUST
    return Check(level, subject, f"{found}, too few: they are too narrow ({chance}).")


def check_calibration(item: Evidence) -> Check:
    """Distance from calibration against what chance makes of a calibrated model."""
    subject, chance = "Calibration", f"chance allows {points(item.gap_limit)}"
    if not item.n_test:
        return Check(Level.CARE, subject, "No test rows to check it on.")
    if item.num_covered is None:
        (care, fail), apart = ECE_GAPS, "Stated probabilities and observed frequencies are"
        found = f"{apart} {points(item.gap)} apart on average"
    else:
        (care, fail), apart = PIT_GAPS, "Stated and observed frequencies are"
        found = f"{apart} {points(item.gap)} apart at worst, over all levels"
    if item.gap <= max(item.gap_limit, care):
        if item.n_test < MIN_TEST:
            return Check(Level.CARE, subject, f"{found}, which proves little ({chance}).")
        return Check(Level.TRUST, subject, f"{found} ({chance}).")
    level = Level.CARE if item.gap <= fail else Level.DO_NOT_TRUST
    return Check(level, subject, f"{found}, more than chance explains ({chance}).")


def check_skill(item: Evidence) -> Check:
    """A calibrated model that knows nothing is honest but of no use."""
    subject = "Usefulness"
    if not item.n_test:
        return Check(Level.CARE, subject, "No test rows to check it on.")
    if np.isnan(item.skill):
        return Check(Level.CARE, subject, "All test rows have the same truth: nothing to explain.")
    is_label = item.num_covered is None
    guess = "always guessing the most frequent label" if is_label else "always guessing the mean"
    if item.skill <= 0:
        return Check(Level.CARE, subject, f"No better than {guess}.")
    what = "fewer wrong labels" if is_label else "less squared error"
    return Check(Level.TRUST, subject, f"{percent(item.skill)} {what} than {guess}.")


def _target_checks(item: Evidence, alpha: float) -> tuple[Check, ...]:
    coverage = () if item.num_covered is None else (check_coverage(item, alpha),)
    return (check_sample_size(item), *coverage, check_calibration(item), check_skill(item))


def _worst(evidence: Sequence[Evidence], checks: Sequence[Check]) -> Check:
    """The worst check of one subject over the targets, and whose it is."""
    i = max(range(len(checks)), key=lambda j: checks[j].level)
    worst = checks[i]
    if len(checks) == 1 or worst.subject == "Test rows":
        return worst
    if worst.level == Level.TRUST:
        return worst._replace(sentence=f"Sound for all {len(checks)} targets.")
    affected = sum(check.level > Level.TRUST for check in checks)
    others = f" {affected - 1} more of {len(checks)} targets too." if affected > 1 else ""
    return worst._replace(sentence=f"{evidence[i].name}: {worst.sentence}{others}")
