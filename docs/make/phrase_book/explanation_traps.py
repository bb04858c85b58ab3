"""Numbers in the sentences of docs/explanation/traps.md."""

from collections.abc import Iterator

from phrases import Phrase, given


def phrases() -> Iterator[Phrase]:
    """List the phrases of the page."""
    yield from given(
        "R-hat is 1.00, and all chains are wrong",
        "and 80 % of those that you care about",
    )
