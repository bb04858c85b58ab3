"""Numbers in the sentences of docs/tutorials/pretrained_flax.md."""

from collections.abc import Iterator

from phrases import Phrase, given


def phrases() -> Iterator[Phrase]:
    """List the phrases of the page, in its order."""
    yield from given(
        "We set aside the 12 % of patients",
        "at 1.00 they cannot be told apart",
        "We compare 90 % intervals",
        "it should be near 90 %",
    )
