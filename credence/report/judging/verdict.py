"""The verdict: trust, use with care, cannot tell, or do not trust. One rule, a pure function.

The worst check decides. A difference counts only if chance does not explain it (the 99 % limits of
`evidence`) and if it is large enough to matter (the constants below); and nothing is trusted unless
the rows rule out a gross fault. `levels` has the rule and the reason for its order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from credence.html.wording import count, number, percent, points
from credence.report.judging.advice import advice
from credence.report.judging.classes import check_classes
from credence.report.judging.evidence import Evidence
from credence.report.judging.laws import binomial_interval, could_hold_only
from credence.report.judging.levels import TOO_FEW, Check, Level, Subject, answer
from credence.report.judging.quarters import check_quarters
from credence.report.judging.simple_models import check_simple_models

MIN_TEST = 50  # with 50 rows, intervals that cover 80 % instead of 95 % are found out 4 times in 5
MIN_COVERAGE = 0.90  # below it, 95 % intervals miss more than twice as often as they claim
GROSS_COVERAGE = 0.85  # three times as often: intervals so bad must be found out
SMALL_COVERAGE_GAP = 0.01  # one row in a hundred: beyond chance in big tables, yet harmless
PIT_GAPS = (0.05, 0.15)  # shares of rows on the wrong side: worth a warning, disqualifying
ECE_GAPS = (0.02, 0.10)  # differences of probability: the same


class Verdict(NamedTuple):
    """The verdict of a run: its level, a headline, and the checks behind it."""

    level: Level
    headline: str
    checks: tuple[Check, ...]
    has_own_split: bool = False
    """Whether the data set says which rows are test rows."""

    @property
    def advice(self) -> tuple[str, ...]:
        """Sentences on what to do about the checks that were not passed."""
        return advice(self.checks, has_own_split=self.has_own_split)


HEADLINES = {
    Level.TRUST: "The uncertainty that it states held up on rows it never saw.",
    Level.CARE: "Usable, with the reservations marked below.",
    Level.CANNOT_TELL: "Not enough rows to tell: it may be sound, or too faulty to be used.",
    Level.DO_NOT_TRUST: "It failed the checks marked below.",
}
ONLY_IN_TEST = "Together with the training rows that networks left out there is no such fault."
ONLY_LEFT_OUT = "Together with the training rows that networks left out there is a fault."
UNSETTLED = "The run did not converge: run again, it may predict something else."


def verdict(
    converged: bool | None,
    reason: str,
    evidence: Sequence[Evidence],
    unseen_rows: int = 0,
    beside: Sequence[Evidence] = (),
) -> Verdict:
    """The worst of all checks, convergence first.

    Args:
        converged: None for a method that draws no chains of one posterior; such a run can reach
            CARE at best, unless it was judged by rows that it had not seen.
        reason: the sentence that says why it did or did not converge.
        evidence: one per target; each subject is reported for the target that fares worst.
        unseen_rows: rows by which the method itself judged what it has in place of such chains.
        beside: per target, evidence of the test rows together with those that networks left out;
            asked where the test rows alone are not enough to tell. Empty without such rows.
    """
    per_target = list(map(_target_checks, evidence))
    if beside:
        more = map(_target_checks, beside)
        per_target = [tuple(map(_settled, *pair)) for pair in zip(per_target, more, strict=True)]
    checks = (
        check_convergence(converged, reason, unseen_rows),
        *(_worst(evidence, subject) for subject in zip(*per_target, strict=True)),
    )
    level = max(check.level for check in checks)
    headline = UNSETTLED if converged is False else HEADLINES[level]
    return Verdict(level, headline, checks)


def check_convergence(converged: bool | None, reason: str, unseen_rows: int = 0) -> Check:
    """A run that did not converge is never to be trusted."""
    if converged is None and unseen_rows:
        sentence = f"Not checked, and not needed. {reason}"
        return Check(Level.TRUST, Subject.CONVERGENCE, sentence, is_made=False)
    if converged is None:
        return Check(Level.CARE, Subject.CONVERGENCE, f"Not checked. {reason}")
    if converged:
        return Check(Level.TRUST, Subject.CONVERGENCE, reason)
    return Check(Level.DO_NOT_TRUST, Subject.CONVERGENCE, f"The run did not converge. {reason}")


def check_sample_size(item: Evidence) -> Check:
    """Too few test rows can not show that intervals hold."""
    subject = Subject.ROWS
    if item.num_not_finite:
        total = f" of {number(item.num_rows + item.num_not_finite)}"
        return Check(
            Level.DO_NOT_TRUST,
            subject,
            f"{count(item.num_not_finite, 'prediction')}{'' if item.is_of_groups else total} are "
            "not finite numbers. The sections below leave these rows out.",
        )
    if item.num_rows >= MIN_TEST:
        return Check(Level.TRUST, subject, f"Checked on {_rows_checked(item)}.")
    return Check(
        Level.CANNOT_TELL,
        subject,
        f"Only {_rows_checked(item)}: {TOO_FEW} whether the uncertainty holds. At least {MIN_TEST} "
        "are needed.",
    )


def _rows_checked(item: Evidence) -> str:
    """Say how many rows there are, and of which kind."""
    rows = count(item.num_rows, "row") + (" (one of every group)" if item.is_of_groups else "")
    if not item.num_left_out:
        return f"{rows} that the model never saw"
    held = number(item.num_rows - item.num_left_out)
    return (
        f"{rows}: {held} held back for testing, and, where these are not enough to tell, "
        f"{number(item.num_left_out)} of the training rows, each predicted by networks that were "
        "not trained on it"
    )


def check_coverage(item: Evidence) -> Check:
    """95 % intervals against the binomial law of the number of rows that they cover."""
    subject = Subject.INTERVALS
    covered, n = item.num_covered, item.num_rows
    if not n or covered is None:
        return Check(Level.CANNOT_TELL, subject, "No test rows to check them on.")
    share = covered / n
    lower, upper = binomial_interval(n, 0.95, item.rates.alpha)
    rows = "the test rows and those left out" if item.num_left_out else "the test rows"
    rows = f"{rows}, one of every group" if item.is_of_groups else rows
    found = f"They hold {percent(share, 1)} of {rows}"
    chance = f"chance allows {percent(lower, 1)} to {percent(upper, 1)}"
    is_chance = lower <= share <= upper
    level = answer(
        is_chance=is_chance,
        is_disqualifying=share < MIN_COVERAGE,
        could_be_gross=could_hold_only(covered, n, GROSS_COVERAGE, item.rates.beta),
        is_harmless=abs(share - 0.95) <= SMALL_COVERAGE_GAP,
    )
    if level == Level.CANNOT_TELL:
        bad = f"intervals that hold {percent(GROSS_COVERAGE)} would often look so too"
        if share < MIN_COVERAGE:
            bad = f"below {percent(MIN_COVERAGE)} would be disqualifying"
        return Check(level, subject, f"{found} ({chance}; {bad}): {TOO_FEW}.")
    if level == Level.TRUST:
        well = "as they should" if is_chance else "so near to their claim that it matters little"
        return Check(level, subject, f"{found}, {well} ({chance}).")
    instead = ""
    if item.conformal_share is not None:
        instead = f" Conformal intervals hold {percent(item.conformal_share, 1)} of the test rows."
    if share > upper:
        return Check(level, subject, f"{found}, wider than they need to be ({chance}).{instead}")
    return Check(level, subject, f"{found}, too few: they are too narrow ({chance}).{instead}")


def check_calibration(item: Evidence) -> Check:
    """Distance from calibration against what chance makes of a sound model, and of a gross one."""
    subject, chance = Subject.CALIBRATION, f"chance allows {points(item.gap_limit)}"
    if not item.num_rows:
        return Check(Level.CANNOT_TELL, subject, "No test rows to check it on.")
    if item.num_covered is None:
        (care, fail), apart = ECE_GAPS, "Stated probabilities and observed frequencies are"
        found = f"{apart} {points(item.gap)} apart on average"
    else:
        (care, fail), apart = PIT_GAPS, "Stated and observed frequencies are"
        found = f"{apart} {points(item.gap)} apart at worst, over all levels"
    level = answer(
        is_chance=item.gap <= item.gap_limit,
        is_disqualifying=item.gap > fail,
        could_be_gross=item.gap >= item.gross_limit,
        is_harmless=item.gap <= care,
    )
    if level == Level.TRUST:
        return Check(level, subject, f"{found} ({chance}).")
    if level == Level.CANNOT_TELL:
        bad = f"above {points(fail)} would be disqualifying"
        if item.gap <= fail:
            bad = "a grossly faulty model would often look so too"
        return Check(level, subject, f"{found} ({chance}; {bad}): {TOO_FEW}.")
    return Check(level, subject, f"{found}, more than chance explains ({chance}).")


def check_skill(item: Evidence) -> Check:
    """A calibrated model that knows nothing is honest but of no use."""
    subject = Subject.USEFULNESS
    if not item.num_rows:
        return Check(Level.CANNOT_TELL, subject, "No test rows to check it on.")
    if np.isnan(item.skill):
        return Check(Level.CARE, subject, "All test rows have the same truth: nothing to explain.")
    is_label = item.num_covered is None
    guess = "always guessing the most frequent label" if is_label else "always guessing the mean"
    if item.skill <= 0:
        return Check(Level.CARE, subject, f"No better than {guess}.")
    what = "fewer wrong labels" if is_label else "less squared error"
    return Check(Level.TRUST, subject, f"{percent(item.skill)} {what} than {guess}.")


def _settled(of_test: Check, of_both: Check) -> Check:
    """Answer by the test rows; where they are not enough to tell, by both kinds of row.

    Where the test rows tell one thing and both together another, it says so.
    """
    is_open = of_test.level == Level.CANNOT_TELL or of_test.subject == Subject.ROWS
    if is_open and of_test.level < Level.DO_NOT_TRUST:
        return of_both
    if of_test.level > Level.TRUST and of_both.level == Level.TRUST:
        return of_test._replace(sentence=f"{of_test.sentence} {ONLY_IN_TEST}")
    if of_test.level == Level.TRUST and of_both.level in (Level.CARE, Level.DO_NOT_TRUST):
        return of_test._replace(sentence=f"{of_test.sentence} {ONLY_LEFT_OUT}")
    return of_test


def _target_checks(item: Evidence) -> tuple[Check, ...]:
    """All checks of one target; more of them for a run that kept what they need."""
    parts: list[Check] = []
    if item.num_covered is not None:
        quarters = check_quarters(item.quarters, item.num_rows, item.rates)
        parts = [check_coverage(item), quarters]
    elif item.classes:
        parts = [check_classes(item.classes, item.rates.beta)]
    scores = ()
    if item.scores is not None:
        scores = (check_simple_models(item.scores, item.rates.alpha),)
    return (check_sample_size(item), *parts, check_calibration(item), check_skill(item), *scores)


def _worst(evidence: Sequence[Evidence], checks: Sequence[Check]) -> Check:
    """The worst check of one subject over the targets, and whose it is."""
    i = max(range(len(checks)), key=lambda j: checks[j].level)
    worst = checks[i]
    if len(checks) == 1 or worst.subject == Subject.ROWS:
        return worst
    if worst.level == Level.TRUST:
        return worst._replace(sentence=f"Sound for all {len(checks)} targets.")
    affected = sum(check.level > Level.TRUST for check in checks)
    others = f" {affected - 1} more of {len(checks)} targets too." if affected > 1 else ""
    return worst._replace(sentence=f"{evidence[i].name}: {worst.sentence}{others}")
