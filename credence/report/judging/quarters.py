"""Do intervals hold in every part of the predictions, or only on average over all of them?

The held-out rows are looked at in quarters eight times: four by size of the prediction, four by its
spread. Each look counts the rows in their 95 % and in their 50 % interval, so chance has 16 times
the occasion to blame a sound model: every range by chance is at a sixteenth of alpha (Bonferroni).
A gross fault must be ruled out in each quarter; as all of them must pass, that needs no correction
(an intersection-union test).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from credence.html.wording import number, percent
from credence.report.data import RegressionTarget, is_inside
from credence.report.judging.laws import binomial_interval, could_hold_only, num_true, quarters
from credence.report.judging.levels import (
    ONE_LOOK,
    TOO_FEW,
    Check,
    ErrorRates,
    Level,
    Subject,
    answer,
)

NUM_LOOKS = 8
NAMES = {
    "prediction": (
        "with the lowest predictions",
        "with rather low predictions",
        "with rather high predictions",
        "with the highest predictions",
    ),
    "spread": (
        "it is surest of",
        "it is rather sure of",
        "it is rather unsure of",
        "it is least sure of",
    ),
}


class Claim(NamedTuple):
    """The share that an interval claims to hold, and how little is too little in a quarter."""

    share: float
    disqualifying: float  # an estimate below it
    gross: float  # a model that really holds this must be found out
    harmless: float  # differences up to it


CLAIMS = {95: Claim(0.95, 0.85, 0.80, 0.02), 50: Claim(0.50, 0.30, 0.20, 0.05)}
"""Claims by coverage: 95 % intervals that hold 85 % miss three times as often as they claim, those
that hold 80 % four times."""


class Quarter(NamedTuple):
    """Rows of one quarter, and how many of them lie in their 95 % and 50 % intervals."""

    by: str
    place: int
    n: int
    num_95: int
    num_50: int

    @property
    def name(self) -> str:
        """The quarter in words: `quarter of the rows with the highest predictions`."""
        return f"quarter of the rows {NAMES[self.by][self.place]}"


def count_quarters(target: RegressionTarget) -> tuple[Quarter, ...]:
    """Count what the intervals hold in each quarter; no look at spreads or predictions all alike.

    Args:
        target: its finite rows.
    """
    inside = {c: is_inside(target, c) for c in CLAIMS}
    found = []
    for by, values in (("prediction", target.mean), ("spread", target.std)):
        if len(values) < 4 or np.ptp(values) <= 1e-9 * np.abs(values).max():
            continue
        for place, rows in enumerate(quarters(values)):
            num_95, num_50 = (num_true(inside[c][rows]) for c in (95, 50))
            found.append(Quarter(by, place, len(rows), num_95, num_50))
    return tuple(found)


def check_quarters(found: Sequence[Quarter], n_test: int, rates: ErrorRates = ONE_LOOK) -> Check:
    """The worst of all looks, and which part of the predictions is at fault."""
    if not found and n_test >= 4:
        return Check(
            Level.TRUST, Subject.QUARTERS, "All predictions are alike: they have no parts."
        )
    if not found:
        return Check(Level.CANNOT_TELL, Subject.QUARTERS, f"There are {TOO_FEW}, part by part.")
    judged = [
        (_level(quarter, coverage, rates), _shortfall(quarter, coverage), quarter, coverage)
        for quarter in found
        for coverage in CLAIMS
    ]
    level, _, quarter, coverage = max(judged, key=lambda look: look[:2])
    n, inside = quarter.n, _inside(quarter, coverage)
    what = (
        f"In the {quarter.name}, {coverage}\u00a0% intervals hold {percent(inside / n, 1)} "
        f"({number(inside)} of {number(n)})"
    )
    lower, upper = _range(quarter, coverage, rates.alpha)
    chance = f"chance allows {percent(lower, 1)} to {percent(upper, 1)}"
    if level == Level.TRUST:
        return Check(
            level,
            Subject.QUARTERS,
            "They hold in every quarter of the rows, by prediction and by spread, as far as chance "
            f"lets one tell. {what}; in the worst of {len(judged)} looks at so few rows {chance}.",
        )
    if level == Level.CANNOT_TELL:
        gross = f"one quarter of the rows may hold no more than {percent(CLAIMS[coverage].gross)}"
        return Check(level, Subject.QUARTERS, f"{what} ({chance}): {TOO_FEW}, {gross}.")
    way = "wide" if inside > CLAIMS[coverage].share * n else "narrow"
    return Check(level, Subject.QUARTERS, f"{what}: they are too {way} there ({chance}).")


def _inside(quarter: Quarter, coverage: int) -> int:
    return quarter.num_95 if coverage == 95 else quarter.num_50


def _range(quarter: Quarter, coverage: int, alpha: float) -> tuple[float, float]:
    looks = NUM_LOOKS * len(CLAIMS)
    return binomial_interval(quarter.n, CLAIMS[coverage].share, alpha / looks)


def _level(quarter: Quarter, coverage: int, rates: ErrorRates) -> Level:
    claim, inside = CLAIMS[coverage], _inside(quarter, coverage)
    share = inside / quarter.n
    lower, upper = _range(quarter, coverage, rates.alpha)
    return answer(
        is_chance=lower <= share <= upper,
        is_disqualifying=share < claim.disqualifying,
        could_be_gross=could_hold_only(inside, quarter.n, claim.gross, rates.beta),
        is_harmless=abs(share - claim.share) <= claim.harmless or _is_only_wide(share, coverage),
    )


def _is_only_wide(share: float, coverage: int) -> bool:
    """Whether a quarter holds more than it claims, which a 95 % interval may: see `Intervals`."""
    return coverage == 95 and share > CLAIMS[95].share


def _shortfall(quarter: Quarter, coverage: int) -> float:
    """How far off a quarter is, in standard deviations of chance; short counts before wide."""
    share = CLAIMS[coverage].share
    off = (share - _inside(quarter, coverage) / quarter.n) * np.sqrt(
        quarter.n / (share * (1 - share))
    )
    return float(off if off >= 0 else -0.5 * off)
