"""Is every class found as often as the stated probabilities promise, or only the common ones?

Two counts a class. Of the rows *called* it, how many are? Of the rows *not* called it, how many are
it all the same (the missed ones)? The probabilities promise both, with a scatter that follows from
them exactly: the number of successes of independent trials. There are two ranges by chance a class,
so each is at alpha / (2 classes).

A gross fault is 20 points: of the rows called it, that many fewer are; of its own rows, that many
more are missed. It must be ruled out for every class that makes up a tenth of the rows; a rarer one
is blamed if chance does not explain what was found, but need not be proved sound.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import stats

from credence.html.markup import shorten
from credence.html.wording import count, number, percent
from credence.report.data import ClassificationTarget
from credence.report.judging.laws import count_interval, num_true
from credence.report.judging.levels import BETA, TOO_FEW, Check, Level, Subject, answer

HARMLESS, DISQUALIFYING, GROSS = 0.05, 0.15, 0.20
COMMON = 0.10
"""Share of the rows that makes a class common enough to be proved sound."""
FEWEST = 10
"""Rows of a class from which on it counts that most of them are missed."""


class Count(NamedTuple):
    """How many rows of a group are of a class, and what the probabilities promise."""

    n: int
    found: int
    promised: float
    lower: int
    upper: int

    @property
    def is_chance(self) -> bool:
        """Whether chance explains the difference."""
        return self.lower <= self.found <= self.upper


class ClassCount(NamedTuple):
    """One class: the rows called it, the rows called something else, and how many there are."""

    label: str
    n: int
    num_rows: int
    called: Count
    missed: Count
    rival: str
    """The label that its missed rows get most often; empty where none is missed."""

    @property
    def size(self) -> float:
        """Rows of the class, or as many as were promised where these are more."""
        return max(self.n, self.called.promised + self.missed.promised, 1.0)

    @property
    def is_common(self) -> bool:
        """Whether the class must be proved sound."""
        return self.size >= COMMON * self.num_rows

    @property
    def is_mostly_missed(self) -> bool:
        """Whether a row of the class is more often called something else."""
        return 2 * self.missed.found > self.n and (self.is_common or self.n >= FEWEST)


def count_classes(target: ClassificationTarget, alpha: float) -> tuple[ClassCount, ...]:
    """Count every class on the rows whose numbers are finite."""
    level = alpha / (2 * len(target.labels))
    return tuple(_count(target, i, level) for i in range(len(target.labels)))


def check_classes(found: Sequence[ClassCount], beta: float = BETA) -> Check:
    """The class that fares worst, with its counts."""
    if not found or not found[0].num_rows:
        return Check(Level.CANNOT_TELL, Subject.CLASSES, "No test rows to check them on.")
    looks = [look for each in found for look in (_called(each, beta), _missed(each, beta))]
    level, _, sentence = max(looks, key=lambda look: look[:2])
    if level == Level.TRUST:
        everyone = "Each is called, and missed, as often as the stated probabilities promise."
        return Check(level, Subject.CLASSES, f"{everyone} {sentence}")
    return Check(level, Subject.CLASSES, sentence)


Look = tuple[Level, float, str]
"""The answer, how bad it is among equals, and the sentence."""


def _count(target: ClassificationTarget, i: int, alpha: float) -> ClassCount:
    is_class, is_called = target.y == i, target.predicted == i
    p = target.probabilities[:, i]
    others = target.predicted[is_class & ~is_called]
    rival = target.labels[int(np.bincount(others).argmax())] if len(others) else ""
    groups = [
        Count(
            num_true(rows),
            num_true(rows & is_class),
            float(p[rows].sum()),
            *count_interval(p[rows], alpha),
        )
        for rows in (is_called, ~is_called)
    ]
    return ClassCount(target.labels[i], num_true(is_class), len(p), groups[0], groups[1], rival)


def _called(each: ClassCount, beta: float) -> Look:
    group = each.called
    if not group.n:
        return Level.TRUST, 0.0, ""
    off = (group.promised - group.found) / group.n
    rate = max(group.promised / group.n - GROSS, 0.0)
    gross = float(stats.binom.sf(group.found - 1, group.n, rate)) > beta
    level = _level(each, group, off, gross)
    sentence = (
        f"Of {count(group.n, 'row')} called “{_short(each.label)}”, {number(group.found)} are; "
        f"{_promise(group)}{_tail(level)}."
    )
    return level, abs(off), sentence


def _missed(each: ClassCount, beta: float) -> Look:
    group = each.missed
    off = (group.found - group.promised) / each.size
    rate = min((group.promised + GROSS * each.size) / max(group.n, 1), 1.0)
    gross = group.n > 0 and float(stats.binom.cdf(group.found, group.n, rate)) > beta
    level = _level(each, group, off, gross)
    rival = f"“{_short(each.rival)}” most often" if each.rival else "something else"
    sentence = (
        f"Of {count(each.n, 'row')} that are “{_short(each.label)}”, {number(group.found)} are "
        f"missed, called {rival}; {_promise(group)}{_tail(level)}."
    )
    if not each.is_mostly_missed:
        return level, abs(off), sentence
    share, recall = each.n / each.num_rows, 1 - group.found / each.n
    sentence += (
        f" It finds {percent(recall)} of a class that is {percent(share)} of the rows"
        f"{', fewer than drawing lots would' if recall < share else ''}: go by its probability, "
        "with a threshold of your own, not by the label."
    )
    return max(level, Level.CARE), abs(off) + 1, sentence


def _level(each: ClassCount, group: Count, off: float, could_be_gross: bool) -> Level:
    is_bad = off > DISQUALIFYING and (each.is_common or not group.is_chance)
    return answer(
        is_chance=group.is_chance,
        is_disqualifying=is_bad,
        could_be_gross=could_be_gross and each.is_common,
        is_harmless=abs(off) <= HARMLESS,
    )


def _promise(group: Count) -> str:
    chance = f"chance allows {number(group.lower)} to {number(group.upper)}"
    return f"the stated probabilities promise {number(round(group.promised))} ({chance})"


def _tail(level: Level) -> str:
    return f": {TOO_FEW}" if level == Level.CANNOT_TELL else ""


def _short(label: str) -> str:
    return shorten(label, 30)
