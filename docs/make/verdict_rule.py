"""The rule of the verdict as a table of docs/explanation/reading.md, from the constants it uses."""

from parts import markdown

from credence.report.judging import classes, evidence, simple_models, verdict
from credence.report.judging.quarters import CLAIMS


def table() -> str:
    """A row for each check: reservations, what disqualifies, and what must be ruled out."""
    heads = ("check", "use with care, if", "do not trust, if", "must be ruled out")
    pit_care, pit_fail = verdict.PIT_GAPS
    ece_care, ece_fail = verdict.ECE_GAPS
    pit_gross, ece_gross = evidence.GROSS_GAPS
    nats = f"{simple_models.HARMLESS:g} nats a row"
    rows = [
        (
            "95 % intervals, all rows",
            f"{_points(verdict.SMALL_COVERAGE_GAP)} off",
            f"they hold less than {_percent(verdict.MIN_COVERAGE)}",
            f"that they hold {_percent(verdict.GROSS_COVERAGE)} or less",
        ),
        *(
            (
                f"{each} % intervals, in each quarter of the rows",
                f"{_points(claim.harmless)} off",
                f"they hold less than {_percent(claim.disqualifying)}",
                f"that they hold {_percent(claim.gross)} or less",
            )
            for each, claim in CLAIMS.items()
        ),
        (
            "stated and observed frequencies (PIT), at worst",
            f"{_points(pit_care)} apart",
            f"{_points(pit_fail)} apart",
            f"{_points(pit_gross)} apart",
        ),
        (
            "probabilities of labels (ECE), on average",
            f"{_points(ece_care)} apart",
            f"{_points(ece_fail)} apart",
            f"{_points(ece_gross)} apart",
        ),
        (
            "each label: of the rows called it, how many are; of the others, how many are it",
            f"{_points(classes.HARMLESS)} off",
            f"{_points(classes.DISQUALIFYING)} off",
            f"{_points(classes.GROSS)} off, for labels with a share of {_percent(classes.COMMON)}",
        ),
        ("log loss beside guessing", "", f"{nats} worse", f"{nats} worse"),
        ("log loss beside a linear model", f"{nats} worse", "", ""),
        (
            "squared error beside the mean, or wrong labels beside the most frequent one",
            "no better",
            "",
            "",
        ),
        ("rows", "", "a prediction is not finite", f"fewer than {verdict.MIN_TEST} rows"),
        ("chains", "a method whose chains cannot be checked", "they did not converge", ""),
    ]
    return markdown(heads, rows)


def _points(gap: float) -> str:
    """A difference of shares, in points of per cent."""
    points = f"{100 * gap:g}"
    return f"{points} point{'' if points == '1' else 's'}"


def _percent(share: float) -> str:
    return f"{100 * share:g} %"
