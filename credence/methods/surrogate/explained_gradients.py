"""How much of the posterior's gradients a surrogate explains, at draws that it has not seen."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypedDict

import numpy as np

from credence.ensembles.ensemble import Ensemble
from credence.ensembles.findings import Finding
from credence.html.wording import percent
from credence.schema import build
from credence.storage import jsonable


class Document(TypedDict):
    """The entry of metrics.json."""

    explained_gradients: float | None


@dataclass(frozen=True)
class ExplainedGradients(Finding):
    """The share of held-out gradients that the surrogate of `rns_hmc` explains.

    The true density decides, so that the draws are the posterior's whatever the share: a poor
    surrogate is slow.
    """

    name: ClassVar[str] = "surrogate"

    share: float
    """R^2: 1 is perfect, and below 0 it is worse than no gradient at all."""

    @classmethod
    def of(cls, ensemble: Ensemble) -> "ExplainedGradients | None":
        """Read the scalar "surrogate_r2"."""
        found = ensemble.scalars.get("surrogate_r2")
        return None if found is None else cls(float(np.mean(found)))

    @classmethod
    def read(
        cls, metrics: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
    ) -> "ExplainedGradients | None":
        """Undo `entries`; runs of version 0.1.0 have none."""
        if cls.name not in metrics:
            return None
        share = build(Document, metrics[cls.name], cls.name)["explained_gradients"]
        return cls(float("nan") if share is None else share)

    def entries(self) -> dict[str, Any]:
        """Return the one entry of the finding."""
        return {self.name: jsonable({"explained_gradients": self.share})}

    def sentences(self) -> list[str]:
        """How good it was."""
        return [f"The surrogate explains {percent(self.share)} of the gradients it has not seen."]

    def facts(self) -> list[tuple[str, str]]:
        """Show the share as one row."""
        return [("Gradients explained by the surrogate", percent(self.share))]
