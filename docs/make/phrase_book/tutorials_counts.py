"""Numbers in the sentences of docs/tutorials/counts.md."""

from collections.abc import Iterator

from phrases import Phrase, given


def phrases() -> Iterator[Phrase]:
    """List the phrases of the page, in its order."""
    yield from given(
        "how often do 90 % intervals hold",
        "cannot hold exactly 90 %",
    )
