"""Posterior over architectures: what chains that change their width say of it."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from credence.diagnostics._checks import finite
from credence.diagnostics.convergence import ess_bulk, mcse_mean, rhat


@dataclass(frozen=True)
class WidthPosterior:
    """p(width | data) with its Monte Carlo error.

    `rhat` and `ess` are of the width itself; NaN where no chain ever changes it, or for one chain.
    """

    widths: tuple[int, ...]
    probabilities: tuple[float, ...]
    standard_errors: tuple[float, ...]
    """Monte Carlo, from the autocorrelation of "the width is k"; NaN where that never changes."""
    mode: int
    mean: float
    rhat: float
    ess: float

    def __str__(self) -> str:
        rows = (
            f"{k:5d}  {p:.3f} +- {e:.3f}"
            for k, p, e in zip(self.widths, self.probabilities, self.standard_errors, strict=True)
        )
        about = f"mode {self.mode}, mean {self.mean:.1f}, R-hat {self.rhat:.3f}, ESS {self.ess:.0f}"
        return "\n".join(["width  probability", *rows, about])


def width_posterior(
    widths: Float[np.ndarray, "chain draw"], max_width: int | None = None
) -> WidthPosterior:
    """Shares of the draws at each width.

    Args:
        widths: an ensemble's scalar "width", units of all hidden layers together.
        max_width: the largest to list; by default the largest seen.
    Raises:
        ValueError: for fewer than 4 draws per chain, values that are not finite, or widths above
            max_width.
    """
    widths = finite("widths", widths)
    if max_width is not None and widths.max() > max_width:
        raise ValueError(
            f"max_width={max_width} leaves out widths up to {int(widths.max())}: with several "
            "hidden layers a width counts the units of all of them."
        )
    listed = np.arange(1, int(max_width or widths.max()) + 1)
    is_there = (widths[..., None] == listed).astype(float)
    probabilities = is_there.mean(axis=(0, 1))
    return WidthPosterior(
        tuple(listed.tolist()),
        tuple(probabilities.tolist()),
        tuple(mcse_mean(is_there).tolist()),
        int(listed[np.argmax(probabilities)]),
        float(widths.mean()),
        float(rhat(widths)) if len(widths) > 1 else float("nan"),
        float(ess_bulk(widths)),
    )
