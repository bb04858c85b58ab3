"""Numbers in the sentences of docs/results/fbnn_first_version.md."""

from collections.abc import Iterator

from phrases import Phrase, given


def phrases() -> Iterator[Phrase]:
    """The phrases of the page."""
    yield from given("on two cores, 60 seconds each")
