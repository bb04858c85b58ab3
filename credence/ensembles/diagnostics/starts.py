"""Look for modes that no chain has visited: convergence of the chains cannot show them.

R-hat compares chains with one another. Where all of them found the same mode it is 1, however much
probability lies elsewhere. So samplers let further starts settle and compare them with the chains.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float

from credence.ensembles.diagnostics.convergence import Convergence
from credence.errors import plural

LIMIT = "A mode that neither chains nor starts have found would not show."
MOST_BELOW = 3.0
"""Standard deviations of the chains' log density by which that of another mode may be lower."""
MARGIN = 1.0
"""Standard deviations of a prediction beyond all draws of the chains that make it another."""


@dataclass(frozen=True)
class Starts:
    """Further starts that settled, and those among them that settled where no chain has been."""

    num_starts: int
    num_elsewhere: int
    log_density_gap: float | None
    """Mean log posterior density of the highest of them over that of the chains, in nats."""

    def to_dict(self) -> dict[str, Any]:
        """The same numbers as a dictionary for JSON."""
        return asdict(self)


def compare_starts(
    functions: Float[np.ndarray, "draw function"],
    log_density: Float[np.ndarray, " draw"],
    start_functions: Float[np.ndarray, "start start_draw function"],
    start_log_density: Float[np.ndarray, "start start_draw"],
) -> Starts:
    """Compare short chains from further starts, once settled, with draws of the chains.

    A start is elsewhere where some prediction lies, at all its draws and on one side, more than one
    standard deviation beyond every draw of the chains, and where its mean log density is at most
    three standard deviations below theirs: so much the log density of a single mode varies, and so
    much, roughly, a mode may gain by being wider. (The log of a mode's probability is its mean log
    density plus its entropy, of which nothing is known: a mode that is lower but much wider is
    passed over, one as high but much narrower counts.)

    A start in the mode of the chains is taken for another only where a prediction stays where none
    of the chains' draws has been: never so far where the chains have mixed.

    Args:
        functions, log_density: of draws of all chains; log densities in nats up to a constant.
        start_functions, start_log_density: the same of each further start.
    """
    lowest = functions.min(axis=0) - MARGIN * functions.std(axis=0)
    highest = functions.max(axis=0) + MARGIN * functions.std(axis=0)
    is_below = np.all(start_functions < lowest, axis=1)
    is_above = np.all(start_functions > highest, axis=1)
    gap = start_log_density.mean(axis=1) - log_density.mean()
    is_likely = gap >= -MOST_BELOW * log_density.std()
    is_elsewhere = np.logical_or(is_below, is_above).any(axis=1) & is_likely
    return Starts(
        num_starts=len(gap),
        num_elsewhere=int(is_elsewhere.sum()),
        log_density_gap=float(gap[is_elsewhere].max()) if is_elsewhere.any() else None,
    )


def with_starts(judged: Convergence, found: Mapping[str, Any] | None) -> Convergence:
    """Add to a verdict on chains that have converged what further starts found.

    Args:
        found: `Starts` as a dictionary; None where there were no further starts.
    """
    if not judged.converged:
        return judged
    if found is None:
        return replace(judged, reason=f"{judged.reason} A mode that was not found would not show.")
    starts = Starts(**found)
    tried = plural(starts.num_starts, "further start")
    if not starts.num_elsewhere:
        reason = f"{judged.reason} {tried} led to no other mode. {LIMIT}"
        return replace(judged, reason=reason)
    return replace(
        judged,
        converged=False,
        reason=(
            f"The chains agree (R-hat at most {judged.max_rhat_function:.3f}), but "
            f"{starts.num_elsewhere} of {tried} settled in a mode that no chain has visited, "
            f"{starts.log_density_gap:+.1f} nats from them in mean log density: run more chains."
        ),
    )
