"""Numbers in the sentences of docs/tutorials/credit_decision.md."""

from collections.abc import Iterator

from phrases import Phrase, given


def phrases() -> Iterator[Phrase]:
    """List the phrases of the page, in its order."""
    yield from given(
        "a probability near 70 %",
        "Of these about 70 % should",
    )
