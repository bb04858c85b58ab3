"""Numbers in the sentences of docs/tutorials/own_kernel_in_smc.md."""

from collections.abc import Iterator

from phrases import Phrase, given


def phrases() -> Iterator[Phrase]:
    """List the phrases of the page."""
    yield from given(
        "an acceptance rate of 0.57",
    )
