"""Numbers in the sentences of docs/explanation/smc.md."""

from collections.abc import Iterator

from phrases import Phrase, given


def phrases() -> Iterator[Phrase]:
    """List the phrases of the page."""
    yield from given(
        "falls below about 0.4",
    )
