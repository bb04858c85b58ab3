"""Numbers in the sentences of docs/tutorials/sentiment.md."""

from collections.abc import Iterator

from phrases import Phrase, given


def phrases() -> Iterator[Phrase]:
    """List the phrases of the page, in its order."""
    yield from given(
        "at 1.00 they cannot be told apart, and above 1.01",
        "positive with 80 %, about 80 % are",
        "at least 90 % for one of the labels",
        "a review at 50 % has 0.69",
        "1 is perfect, and 0.5 is a coin",
        "so that 5 % of them are above it",
        "above that limit: about 5 %",
    )
