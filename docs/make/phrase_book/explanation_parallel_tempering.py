"""Numbers in the sentences of docs/explanation/parallel_tempering.md."""

from collections.abc import Iterator

import numpy as np
from kept import kept_rows
from phrases import Phrase, made


def phrases() -> Iterator[Phrase]:
    """The phrases of the page: what three samplers found of many modes."""
    rows = {row["method"]: row for row in kept_rows("many_modes")}
    tempered, mclmc, nuts = (rows[name] for name in ("parallel_tempering", "mclmc", "nuts"))
    others = (mclmc, nuts)
    yield made(
        "R-hat of its predictions is {:.3f}, where those of MCLMC and NUTS are {:.2f} and {:.2f}",
        tempered["rhat"],
        *(row["rhat"] for row in others),
    )
    yield made("{} draws of the prior came down", tempered["num_restarts"])
    yield made("has {:.0f} effective draws of {:,}", tempered["ess"], 4 * tempered["num_draws"])
    assert 14 < tempered["seconds"] / max(row["seconds"] for row in others) < 18, "a sixteenth"
    distances = [
        np.abs(np.subtract(row["mean"], tempered["mean"])) / tempered["std"] for row in others
    ]
    yield made("at most {:.1f} standard deviations", np.max(distances))
