"""Numbers in the sentences of docs/how_to/compare.md."""

from collections.abc import Iterator

from phrases import Phrase, given


def phrases() -> Iterator[Phrase]:
    """List the phrases of the page."""
    yield from given(
        "a good RMSE and 80 % coverage",
    )
