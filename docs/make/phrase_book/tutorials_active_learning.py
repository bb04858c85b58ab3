"""Numbers in the sentences of docs/tutorials/active_learning.md."""

from collections.abc import Iterator

from phrases import Phrase, given


def phrases() -> Iterator[Phrase]:
    """List the phrases of the page."""
    yield from given(
        "a known error of 0.1",
    )
