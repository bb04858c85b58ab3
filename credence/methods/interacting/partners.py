"""Whether the partners of interacting particles have met, and what they were worth."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypedDict

import numpy as np

from credence.ensembles.ensemble import Ensemble
from credence.ensembles.findings import Finding
from credence.html.wording import number
from credence.methods.interacting.partner_warnings import LARGEST_RHAT
from credence.schema import build
from credence.storage import jsonable


class Document(TypedDict):
    """The entry of metrics.json and of the ensemble's provenance."""

    auxiliary: str
    num_particles: int
    potential_ess: float | None
    rhat: float | Literal["inf"] | None


@dataclass(frozen=True)
class Partners(Finding):
    """Partners on an auxiliary density: where they have not met, no particle can be relied on.

    Each part of the posterior then counts as often as partners happened to start there, whatever
    R-hat the particles have, which jump to all partners alike.
    """

    name: ClassVar[str] = "partners"

    auxiliary: str
    """Name of the density."""
    num_particles: int
    potential_ess: float
    """Auxiliary particles that the potentials are worth, on average."""
    rhat: float | None
    """R-hat of the potentials between partners; None where they are drawn afresh, or seldom."""

    @classmethod
    def of(cls, ensemble: Ensemble) -> "Partners | None":
        """Read what the run has noted; ensembles from before this version have none."""
        return cls.read(ensemble.provenance.found, {})

    @classmethod
    def read(
        cls, metrics: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
    ) -> "Partners | None":
        """Read back what `entries` wrote."""
        if cls.name not in metrics:
            return None
        found = build(Document, metrics[cls.name], cls.name)
        ess = found["potential_ess"]
        rhat = None if found["rhat"] is None else float(found["rhat"])
        return cls(
            found["auxiliary"],
            found["num_particles"],
            float("nan") if ess is None else ess,
            rhat,
            settled=None if rhat is None else rhat < LARGEST_RHAT,
            reason=_reason(found["auxiliary"], rhat),
        )

    def entries(self) -> dict[str, Any]:
        """Return one entry, `partners`."""
        names = Document.__annotations__
        found = {name: getattr(self, name) for name in names}
        return {self.name: jsonable(found, spell_infinite=True)}

    def sentences(self) -> list[str]:
        """Say how many particles the potentials were worth."""
        return [
            f"The potentials of the auxiliary density '{self.auxiliary}' were worth "
            f"{self.potential_ess:.1f} of {self.num_particles:,} particles."
        ]

    def facts(self) -> list[tuple[str, str]]:
        """Show the R-hat as one row."""
        between = "" if self.rhat is None else f"; R-hat of the potentials {number(self.rhat)}"
        worth = f"worth {number(self.potential_ess)} of {number(self.num_particles)} particles"
        return [("Partners", f"{worth}{between}")]


def _reason(auxiliary: str, rhat: float | None) -> str:
    """Why particles can be relied on, as far as partners are concerned, or not."""
    if rhat is None:
        return ""
    partners = f"The partners on the auxiliary density '{auxiliary}'"
    if rhat < LARGEST_RHAT:
        return f"{partners} have met: R-hat of their potentials is {rhat:.2f}."
    return (
        f"{partners} have not met: R-hat of their potentials is {rhat:.2f}, not below "
        f"{LARGEST_RHAT:g}; draw more, or use an auxiliary density that is drawn from afresh."
    )
