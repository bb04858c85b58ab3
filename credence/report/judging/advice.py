"""What to do about the checks that a run did not pass, in a sentence for each kind of fault."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from credence.report.judging.levels import Check, Level, Subject

LONGER = (
    "Let it run longer (--max-seconds), or with more draws (--num-draws). If its chains or runs "
    "still disagree then, take --method auto, which does without their agreement."
)
UNCHECKED = "--method auto checks itself by rows that its networks had not seen."
MORE_ROWS = "Hold back more rows (--test-fraction 0.4), or collect some."
OF_INTERVALS = (
    "Find out whether the test rows differ from the training rows, in their date or their place, "
    "say. Leave --likelihood at auto, which tries several kinds of noise. Until intervals hold, "
    "use the conformal ones, where credence predict gives them."
)
OF_PROBABILITIES = (
    "Find out whether the test rows differ from the training rows, in their date or their place, "
    "say. Until the probabilities hold, use tempered ones: predict_proba(X, tempered=True) in "
    "Python."
)
BY_SUBJECT = {
    Subject.ROWS: "Look for extreme numbers in the rows whose prediction is not finite.",
    Subject.CLASSES: OF_PROBABILITIES,
    Subject.INTERVALS: OF_INTERVALS,
    Subject.QUARTERS: OF_INTERVALS,
    Subject.USEFULNESS: "Look for columns that say more of the target, or for a mistake in these.",
    Subject.SIMPLE_MODELS: "Use the simpler model, which does better, or collect more rows.",
}


def advice(checks: Sequence[Check]) -> tuple[str, ...]:
    """Sentences on what to do about these checks; none where all are passed.

    Whatever else was found may be due to chains that had not converged: then only they are told of.
    """
    if any(check[:2] == (Level.DO_NOT_TRUST, Subject.CONVERGENCE) for check in checks):
        return (LONGER,)
    return tuple(dict.fromkeys(_sentences(checks)))


def _sentences(checks: Sequence[Check]) -> Iterable[str]:
    is_numeric = any(check.subject == Subject.INTERVALS for check in checks)
    for check in checks:
        if check.level == Level.CANNOT_TELL:
            yield MORE_ROWS
        elif check.level == Level.TRUST:
            continue
        elif check.subject == Subject.CONVERGENCE:
            yield UNCHECKED
        elif check.subject == Subject.CALIBRATION:
            yield OF_INTERVALS if is_numeric else OF_PROBABILITIES
        else:
            yield BY_SUBJECT[check.subject]
