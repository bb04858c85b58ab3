"""Say what to do about the checks that a run did not pass, a sentence for each kind of fault."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from credence.report.judging.levels import Check, Level, Subject

LONGER = (
    "Give it more draws, or particles (--num-draws), and more time (--max-seconds) if that ended "
    "it. Where chains or runs still disagree, --method auto does without their agreement. Then "
    "look at the other checks again."
)
UNCHECKED = "For a check use --method auto: it judges by rows that its networks had not seen."
BY_LEFT_OUT = "--method auto also judges by the training rows that its networks left out."
MORE_ROWS = f"Collect more rows, or hold back more of them (--test-fraction 0.4). {BY_LEFT_OUT}"
MORE_OF_OWN_SPLIT = f"The test rows are those of the data set's own split. {BY_LEFT_OUT}"
NETWORKS = (
    "Several kinds of network and of noise are tried where --method and --likelihood are auto: use "
    "that, if you did not, and give it time (--max-seconds)."
)
OF_INTERVALS = (
    f"{NETWORKS} Until intervals hold, use the conformal ones, where credence predict gives them."
)
OF_PROBABILITIES = (
    f"{NETWORKS} Until probabilities hold, use tempered ones, in Python: "
    'credence.load("RUN/ensemble").predict_proba(X, tempered=True).'
)
BY_SUBJECT = {
    Subject.ROWS: "Look for extreme numbers in the rows whose prediction is not finite.",
    Subject.CLASSES: "Collect more rows of the class named, or decide by its probability and by "
    "what a mistake costs you, rather than by the likeliest label.",
    Subject.INTERVALS: OF_INTERVALS,
    Subject.QUARTERS: OF_INTERVALS,
    Subject.USEFULNESS: "Look for columns that say more of the target, or for a mistake in these.",
    Subject.SIMPLE_MODELS: "Use the simpler model that it names, of scikit-learn, say, or collect "
    "more rows.",
}


def advice(checks: Sequence[Check], *, has_own_split: bool = False) -> tuple[str, ...]:
    """Sentences on what to do about these checks; none where all are passed.

    Whatever else was found may be due to chains that had not converged: then only they are told of.

    Args:
        has_own_split: the data set says which rows are test rows, so that no more can be held back.
    """
    if any(check[:2] == (Level.DO_NOT_TRUST, Subject.CONVERGENCE) for check in checks):
        return (LONGER,)
    return tuple(
        dict.fromkeys(_sentences(checks, MORE_OF_OWN_SPLIT if has_own_split else MORE_ROWS))
    )


def _sentences(checks: Sequence[Check], more_rows: str) -> Iterable[str]:
    is_numeric = any(check.subject == Subject.INTERVALS for check in checks)
    for check in checks:
        if check.level == Level.CANNOT_TELL:
            yield more_rows
        elif check.level == Level.TRUST:
            continue
        elif check.subject == Subject.CONVERGENCE:
            yield UNCHECKED
        elif check.subject == Subject.CALIBRATION:
            yield OF_INTERVALS if is_numeric else OF_PROBABILITIES
        else:
            yield BY_SUBJECT[check.subject]
