"""Numbers in the sentences of docs/start/five_minutes.md."""

from collections.abc import Iterator

from phrases import Phrase, given


def phrases() -> Iterator[Phrase]:
    """List the phrases of the page."""
    yield from given(
        "anything from 90 to 99 %",
    )
