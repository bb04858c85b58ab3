"""Numbers in the sentences of docs/explanation/reading.md."""

from collections.abc import Iterator

from kept import kept_rows
from phrases import Phrase, given, made


def phrases() -> Iterator[Phrase]:
    """List the phrases of the page, in its order."""
    yield from given(
        "2.2 points with 100 rows, 0.7 with 1000",
        "a probability of about 80 %",
        "Are 80 % of them right?",
        "At 1.00 they are indistinguishable",
        "if R-hat is below 1.05 and the ESS",
        "ask for less than 1.01",
        "Above 1.05 the chains have not",
        "about 0.8 for `nuts`, 0.9 for `mclmc`, 0.57 for `mala`",
        "below 0.7 the result is reliable",
    )
    verdicts = [row["verdict"] for row in kept_rows("assurance")]
    yield made(
        "Of {} simulated tables {} were given *trust*", len(verdicts), verdicts.count("trust")
    )
