"""Numbers in the sentences of docs/explanation/which_method.md."""

from collections.abc import Iterator

from phrases import Phrase, given


def phrases() -> Iterator[Phrase]:
    """List the phrases of the page."""
    yield from given(
        "in about 30 seconds",
    )
