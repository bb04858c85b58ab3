"""Numbers in the sentences of docs/tutorials/how_wide.md."""

from collections.abc import Iterator

from phrases import Phrase, given


def phrases() -> Iterator[Phrase]:
    """List the phrases of the page, in its order."""
    yield from given(
        "add noise with a standard deviation of 0.2",
        "is near 1.00 if they do; below 1.01 is asked of a result",
        "is a factor of 2.7",
        "is below the 1.01 of a final",
        "the noise has a standard deviation of 0.2",
        "near the 1.01 of a final result",
    )
