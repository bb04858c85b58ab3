"""Numbers in the sentences of docs/tutorials/digits_and_strangers.md."""

from collections.abc import Iterator

from phrases import Phrase, given


def phrases() -> Iterator[Phrase]:
    """List the phrases of the page, in its order."""
    yield from given(
        "at 1.00 they cannot be told apart",
        "the 1.01 that we would ask",
        "with 80 %, about 80 % have this label",
        "between 0.7 and 0.9, nearly all have this label",
        "how undecided they are: 0 nats",
        "about 2.1 nats",
        "1 is perfect, 0.5 is a coin",
        "below 0.5 the stranger looks",
    )
