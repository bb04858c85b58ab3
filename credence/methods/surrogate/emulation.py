"""Does an emulator of the likelihood tell the truth where its chain went?"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from credence.ensembles.diagnostics.importance import hellinger, pareto_smoothed
from credence.storage import jsonable

MIN_DRAWS = 25
"""Draws of a chain, with the true log density, from which a tail index is computed."""


class Emulation(NamedTuple):
    """True and emulated log densities along the chains, and what they say of each other."""

    true: Float[np.ndarray, "chain checked"]
    """Log posterior density in nats, each chain's mean taken off."""
    emulated: Float[np.ndarray, "chain checked"]
    """The same by the emulator."""
    is_exact: bool
    """Whether the true density decided: then the draws are the posterior's, else the emulator's."""
    error: float
    """Root mean square of their difference along the chains, in nats."""
    correlation: float | None
    """Correlation of true and emulated densities; None where either is constant."""
    hellinger: float
    """Distance between posterior and emulator's law, 0 to 1, of the worst chain; see there."""
    pareto_k: float | None
    """Tail index of the importance weights, of the worst chain; None for draws of the posterior."""
    first_acceptance_rate: float
    """Acceptance rate of the emulator's chain."""
    acceptance_rate: float | None
    """Acceptance rate of the true density; None where it had no say."""
    held_out_error: float | None
    """Error of the emulator at draws of the calibration that it had not seen, in nats."""
    held_out_share: float | None
    """The held-out error's square over the variance there."""

    def numbers(self) -> dict[str, Any]:
        """All but the densities, ready for JSON: an infinite tail index is "inf", as None says
        that none is known."""
        numbers = {k: v for k, v in self._asdict().items() if k not in ("true", "emulated")}
        return jsonable(numbers, spell_infinite=True)


def emulation(scalars: Mapping[str, np.ndarray]) -> Emulation | None:
    """What the scalars of a CES run say of its emulator; None for those of other methods.

    The distance estimates that of theorem 3.2 in Moslemi, Meng, Lan & Shahbaba, "Scaling up
    Bayesian neural networks with neural networks" (2024), from the draws: without correction they
    are the emulator's, and places that it never visits count nothing.

    Args:
        scalars: of the ensemble, each (chain, draw); `log_density` may be NaN where it was not
            evaluated, but is known at the same draws of all chains.
    """
    if "log_surrogate" not in scalars or "log_density" not in scalars:
        return None
    is_known = np.all(np.isfinite(scalars["log_density"]), axis=0)
    if not is_known.any():
        return None
    true, emulated = (
        _centred(np.asarray(scalars[name], float)[:, is_known])
        for name in ("log_density", "log_surrogate")
    )
    is_exact = "acceptance_rate" in scalars
    log_ratios = (emulated - true) if is_exact else (true - emulated)
    pareto_k = None
    if not is_exact and log_ratios.shape[1] >= MIN_DRAWS:
        pareto_k = max(pareto_smoothed(chain).pareto_k for chain in log_ratios)
    varies = min(true.std(), emulated.std()) > 1e-9
    return Emulation(
        true=true,
        emulated=emulated,
        is_exact=is_exact,
        error=float(np.sqrt(np.mean(log_ratios**2))),
        correlation=float(np.corrcoef(true.ravel(), emulated.ravel())[0, 1]) if varies else None,
        hellinger=max(map(hellinger, log_ratios)),
        pareto_k=pareto_k,
        first_acceptance_rate=float(np.mean(scalars["first_acceptance_rate"])),
        acceptance_rate=float(np.mean(scalars["acceptance_rate"])) if is_exact else None,
        held_out_error=_mean(scalars, "emulator_error"),
        held_out_share=_mean(scalars, "emulator_error_share"),
    )


def _centred(values: Float[np.ndarray, "chain draw"]) -> Float[np.ndarray, "chain draw"]:
    """Each chain's mean taken off: an emulator knows its log density up to a constant."""
    return values - values.mean(axis=1, keepdims=True)


def _mean(scalars: Mapping[str, np.ndarray], name: str) -> float | None:
    return float(np.mean(scalars[name])) if name in scalars else None
