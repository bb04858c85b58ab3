"""Numbers in the sentences of docs/tutorials/inverse_reinforcement.md."""

from collections.abc import Iterator

from phrases import Phrase, given


def phrases() -> Iterator[Phrase]:
    """List the phrases of the page."""
    yield from given(
        "(2018), example 10.1",
    )
