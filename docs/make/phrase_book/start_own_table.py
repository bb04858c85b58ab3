"""Numbers in the sentences of docs/start/own_table.md."""

from collections.abc import Iterator

import numpy as np
from kept import kept_rows
from phrases import Phrase, made


def phrases() -> Iterator[Phrase]:
    """List the phrases of the page."""
    shares = [
        100
        * np.mean([row["coverage"] for row in kept_rows("grouped_rows") if row["groups"] is each])
        for each in (True, False)
    ]
    yield made(
        "intervals of new groups hold {:.0f} % with the groups, and {:.0f} % without", *shares
    )
