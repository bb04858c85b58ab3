"""Numbers in the sentences of docs/tutorials/house_prices.md."""

from collections.abc import Iterator

from phrases import Phrase, given


def phrases() -> Iterator[Phrase]:
    """List the phrases of the page, in its order."""
    yield from given(
        "with probability 90 %, says the model",
        "at 80 % and 90 % than they should",
        "ask for 95 % where you need 90 %",
    )
