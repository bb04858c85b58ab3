"""Does an emulator of the likelihood tell the truth where its chain went?"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, NotRequired, TypedDict

import numpy as np
from jaxtyping import Float

from credence.ensembles.diagnostics.importance import (
    MIN_DRAWS,
    MOST_PARETO_K,
    hellinger,
    pareto_smoothed,
)
from credence.ensembles.ensemble import Ensemble
from credence.ensembles.findings import Finding
from credence.html.markup import Html
from credence.methods.surrogate.emulators.base import CUT_SHORT, centred
from credence.schema import build
from credence.storage import jsonable, require_array

Number = float | Literal["inf", "-inf", "nan"] | None
"""A number; where it is not finite, its name is written out."""


class Candidate(TypedDict):
    """An emulator that was tried."""

    name: str
    nats: Number
    promise: Number


class Document(TypedDict):
    """The entry of metrics.json on an emulator."""

    is_exact: bool
    error: Number
    correlation: Number
    hellinger: Number
    pareto_k: Number
    first_acceptance_rate: Number
    acceptance_rate: Number
    held_out_error: Number
    held_out_share: Number
    candidates: NotRequired[list[Candidate]]
    is_likelihood: NotRequired[bool]
    trained_epochs: NotRequired[int]


@dataclass(frozen=True)
class Emulation(Finding):
    """True and emulated log densities along the chains, and what they say of each other."""

    name: ClassVar[str] = "emulation"

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
    chosen: Mapping[str, Any] = field(default_factory=dict)
    """The emulator that was chosen and those that were tried, as JSON data."""

    def numbers(self) -> dict[str, Any]:
        """All but the densities, ready for JSON: an infinite tail index is "inf", as None says
        that none is known."""
        numbers = {name: getattr(self, name) for name in NUMBERS}
        return jsonable(numbers, spell_infinite=True) | dict(self.chosen)

    @classmethod
    def of(cls, ensemble: Ensemble) -> "Emulation | None":
        """Judge by the scalars of an ensemble: see `emulation`."""
        found = emulation(ensemble.scalars)
        return found and replace(found, chosen=ensemble.provenance.found).judged()

    @classmethod
    def read(
        cls, metrics: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
    ) -> "Emulation | None":
        """Undo `entries` and `arrays`; a run from before this version has left no arrays."""
        if cls.name not in metrics:
            return None
        numbers = build(Document, metrics[cls.name], cls.name)
        if TRUE not in arrays:
            return None
        for name in (TRUE, EMULATED):
            require_array(arrays, name, "fiu", 2)
        true, emulated = arrays[TRUE], arrays[EMULATED]
        if true.shape != emulated.shape:
            raise ValueError(f"{TRUE} {true.shape} differs from {emulated.shape} emulated")
        known = {name: _from_json(numbers[name]) for name in NUMBERS}
        chosen = {name: value for name, value in numbers.items() if name not in NUMBERS}
        return cls(true, emulated, **known, chosen=chosen).judged()

    def judged(self) -> "Emulation":
        """The same with a verdict: no number of draws makes those of a refuted emulator the
        posterior's, and one that has not learnt for as long as it was to is not what it is called.
        """
        if self.chosen.get("is_likelihood") or self.is_exact:
            return self
        is_refuted = self.pareto_k is not None and self.pareto_k > MOST_PARETO_K
        if not is_refuted and CUT_SHORT not in self.chosen:
            return self
        return replace(self, settled=False, reason=" ".join(self.sentences()))

    def entries(self) -> dict[str, Any]:
        """Return one entry, `emulation`."""
        return {self.name: self.numbers()}

    def arrays(self) -> dict[str, np.ndarray]:
        """Both log densities."""
        return {TRUE: self.true, EMULATED: self.emulated}

    def sentences(self) -> list[str]:
        """Whose the draws are."""
        from credence.methods.surrogate.section import read_emulation

        return [f"Emulator: {read_emulation(self.numbers())}"]

    def section(self, seconds: Mapping[str, float], *, is_converged: bool) -> Html:
        """True against emulated log density."""
        from credence.methods.surrogate.section import emulation_section

        return emulation_section(
            self.true, self.emulated, self.numbers(), seconds, is_converged=is_converged
        )

    def scores(self) -> dict[str, Any]:
        """Error along the chain (nats), tail index ("inf" where weights have no mean), and the
        share that the true likelihood accepted, where it decided."""
        numbers = self.numbers()
        names = {"error": "error", "pareto_k": "pareto_k", "acceptance_rate": "acceptance"}
        scores = {f"emulator_{ours}": numbers[name] for name, ours in names.items()}
        return scores | {"emulator_is_likelihood": bool(self.chosen.get("is_likelihood"))}


TRUE, EMULATED = "emulation_true", "emulation_emulated"
"""Names of the log densities in evaluation.npz."""
CHOSEN = ("candidates", "is_likelihood", CUT_SHORT)
NUMBERS = tuple(name for name in Document.__annotations__ if name not in CHOSEN)
"""Names of the numbers in metrics.json."""


def _from_json(value: Any) -> Any:
    """Undo the spelling of what is not finite."""
    return float(value) if isinstance(value, str) else value


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
        centred(np.asarray(scalars[name], float)[:, is_known])
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


def _mean(scalars: Mapping[str, np.ndarray], name: str) -> float | None:
    return float(np.mean(scalars[name])) if name in scalars else None
