"""The four answers of a check, and the one rule that turns figures into an answer.

A check asks two questions of the held-out rows. *Could a sound model look like this?* Its range by
chance at this number of rows says so. *Could a grossly faulty model look like this?* The range of a
model with a stated, gross fault says so. The answers, and why they are in this order:

    do not trust    chance does not explain what was found, and it is disqualifying in size
    cannot tell     either what was found is disqualifying in size but chance could explain it, or
                    it is so small a sample that a grossly faulty model would often look the same
    care            chance does not explain it, a gross fault is ruled out: a known, limited fault
    trust           chance explains it, and a gross fault is ruled out

What is larger is worse. A fault whose size is known is better than one that may be of any size, so
"cannot tell" is worse than "care"; it is better than a fault that has been proved. As the figure of
one check gets worse, its answer only ever goes up this list. The worst check decides the verdict: a
sound check cannot outvote a faulty one, and a model is trusted only if every gross fault that is
looked for has been ruled out. That test is at `BETA` for each fault. For coverage and for the
distance of the PIT from uniform it is exact: such a fault is trusted in at most 5 of 100 cases,
whatever the number of rows and of checks, and also where training rows that networks left out are a
second look. For class probabilities it assumes that the fault is spread evenly. The price is that
few rows lead to "cannot tell".
"""

from __future__ import annotations

from enum import IntEnum, StrEnum
from typing import NamedTuple

ALPHA = 0.01
"""How often a sound model may be blamed, by each check."""
BETA = 0.05
"""How often a model with a gross fault may pass for one without."""


class ErrorRates(NamedTuple):
    """How often one look at one target may err, so that all together err as often as is allowed."""

    alpha: float = ALPHA
    beta: float = BETA

    @classmethod
    def of(cls, num_targets: int, num_looks: int) -> "ErrorRates":
        """Divide `ALPHA` and `BETA` (Bonferroni).

        A sound model may be blamed for each target, and at each look. A fault is of one target, and
        has to be found at both looks.
        """
        return cls(ALPHA / (num_targets * num_looks), BETA / num_looks)


ONE_LOOK = ErrorRates()


class Level(IntEnum):
    """Ordered: a larger level is a worse one."""

    TRUST = 0
    CARE = 1
    CANNOT_TELL = 2
    DO_NOT_TRUST = 3


class Subject(StrEnum):
    """Name what a check is of, as people read it."""

    CONVERGENCE = "Convergence"
    ROWS = "Test rows"
    INTERVALS = "95 % intervals"
    QUARTERS = "Intervals, part by part"
    CLASSES = "Every class"
    CALIBRATION = "Calibration"
    USEFULNESS = "Usefulness"
    SIMPLE_MODELS = "Against simple models"


class Check(NamedTuple):
    """A judgement of one thing that may go wrong: its level, what it is of, and a sentence."""

    level: Level
    subject: Subject
    sentence: str
    is_made: bool = True
    """Whether anything was checked; where there was nothing to check, the level is TRUST, so that
    it does not count against the model, and the page shows no mark of approval."""


TOO_FEW = "not enough rows to tell"
"""The words that every check uses whose answer is that there is none."""


def answer(
    *, is_chance: bool, is_disqualifying: bool, could_be_gross: bool, is_harmless: bool = False
) -> Level:
    """The answer of a check to what was found.

    Args:
        is_chance: whether sound models would look so.
        is_disqualifying: whether the estimate is too bad to be used, if it is right.
        could_be_gross: whether more than `BETA` of grossly faulty models would look as good.
        is_harmless: whether it is too small to matter, be it chance or not.
    """
    if is_disqualifying and not is_chance:
        return Level.DO_NOT_TRUST
    if is_disqualifying or could_be_gross:
        return Level.CANNOT_TELL
    return Level.TRUST if is_chance or is_harmless else Level.CARE
