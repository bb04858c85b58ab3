"""Numbers in the sentences of docs/results/papers.md; its tables link to where numbers stand."""

from collections.abc import Iterator

from faults import size, without_fault
from phrases import Phrase, made


def phrases() -> Iterator[Phrase]:
    """The sizes of the faults that were planted."""
    prior = "prior alone"
    yield made(
        "results of a linear regression are {:.0f} standard errors off",
        size("not resampled", "linear regression", "results"),
    )
    yield made(
        "constant weights are {:.0f} standard errors off",
        size("potential uniform", "tempered cloud", "mean"),
    )
    yield made("exact jumps of neurons have {:.0f} to {:.0f}", *without_fault())
    yield made(
        "Weights are then {:.0f} standard errors off under the prior and {:.0f} with 20 data "
        "points; with layers {:.0f}",
        *(size("two ends", on, "weights") for on in (prior, "20 rows", "prior alone, layers")),
    )
    yield made(
        "Chi-squared is {:.0f} (15 degrees of freedom), for layers {:.0f} (2)",
        *(size("place", prior, of) for of in ("widths", "depth")),
    )
    yield made(
        "is missing: chi-squared {:.0f}, for layers {:.0f}",
        *(size("borders", prior, of) for of in ("widths", "depth")),
    )
