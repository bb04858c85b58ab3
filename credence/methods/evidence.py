"""The evidence of the data, which several methods estimate on their way."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar, TypedDict

import numpy as np
from jaxtyping import Float
from scipy.optimize import brentq
from scipy.special import expit

from credence.ensembles.ensemble import Ensemble
from credence.ensembles.findings import Finding
from credence.schema import build
from credence.storage import jsonable


class EvidenceEntries(TypedDict):
    """The entries of metrics.json on the evidence; None is NaN."""

    log_evidence: float | None
    log_evidence_error: float | None


@dataclass(frozen=True)
class LogEvidence(Finding):
    """Log of the marginal likelihood, in nats, from methods with the scalar "log_evidence"."""

    name: ClassVar[str] = "log_evidence"

    nats: float
    standard_error: float
    """Standard error, from the spread of the runs; NaN for a single one."""

    @classmethod
    def of(cls, ensemble: Ensemble) -> "LogEvidence | None":
        """Average the evidences of the runs, of the data as the posterior has them."""
        if "log_evidence" not in ensemble.scalars:
            return None
        runs = np.asarray(ensemble.scalars["log_evidence"], float)[:, 0]
        if np.isnan(runs).any() or not np.isfinite(runs).any():
            return None
        return cls.of_runs(runs)

    @classmethod
    def of_runs(cls, runs: Float[np.ndarray, " run"]) -> "LogEvidence":
        """Average evidences, given their logarithms in nats.

        The mean is over the runs' evidences, not over their logarithms: those of particles are
        unbiased (up to the adaptation of their temperatures), and those of a ladder too large by
        half the variance of their logarithms, which is within the error. The standard error is that
        of this mean or of the mean logarithm, whichever is larger: where one run dominates, the
        first says nothing.
        """
        ratios = np.exp(runs - runs.max())
        mean, count = ratios.mean(), len(runs)
        if count == 1:
            return cls(float(runs[0]), float("nan"))
        error = max(ratios.std(ddof=1) / mean, runs.std(ddof=1)) / count**0.5
        return cls(float(runs.max() + np.log(mean)), float(error))

    @classmethod
    def read(
        cls, metrics: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
    ) -> "LogEvidence | None":
        """Read nats and error, which come together."""
        if not EvidenceEntries.__annotations__.keys() & metrics.keys():
            return None
        entries = build(EvidenceEntries, dict(metrics))
        values = (entries[name] for name in EvidenceEntries.__annotations__)
        return cls(*(float("nan") if value is None else value for value in values))

    def entries(self) -> dict[str, Any]:
        """Two numbers, of the training targets in their own units."""
        return jsonable({"log_evidence": self.nats, "log_evidence_error": self.standard_error})

    def rescaled(self, nats: float, observations: float) -> "LogEvidence":
        """The evidence is a density of the targets."""
        return replace(self, nats=self.nats + nats)

    def sentences(self) -> list[str]:
        """Say the log evidence in a sentence."""
        spread = "" if np.isnan(self.standard_error) else f" ± {self.standard_error:.2g}"
        return [f"Log evidence {self.nats:.2f}{spread} nats."]

    def facts(self) -> list[tuple[str, str]]:
        """Show the log evidence as one row."""
        error = self.standard_error
        spread = "" if np.isnan(error) else f", standard error {error:.2g}"
        return [("Log evidence", f"{self.nats:.2f} nats{spread}")]


def ladder_evidence(
    log_likelihoods: Float[np.ndarray, "draw rung"], powers: Float[np.ndarray, " rung"]
) -> float:
    """Log evidence, in nats, by bridge sampling between neighbours on a ladder of temperatures.

    Args:
        log_likelihoods: of draws from prior(w) likelihood(w)^t, for each t.
        powers: ascending from 0, the prior, to 1.
    """
    return sum(
        bennett((high - low) * log_likelihoods[:, i], (high - low) * log_likelihoods[:, i + 1])
        for i, (low, high) in enumerate(pairwise(powers))
    )


def bennett(at_low: Float[np.ndarray, " draw"], at_high: Float[np.ndarray, " draw"]) -> float:
    """log Z' / Z from log p' / p, unnormalised, at as many draws of either.

    It is the c at which the sum of 1 / (1 + exp(c - f)) over draws of p equals that of
    1 / (1 + exp(f - c)) over draws of p' (Bennett, "Efficient estimation of free energy differences
    from Monte Carlo data", 1976): bridge sampling at its best, without an error of discretisation.
    Where f is not finite, p' has no density.
    """
    at_low = np.where(np.isnan(at_low), -np.inf, at_low)
    at_high = np.where(np.isnan(at_high), -np.inf, at_high)

    def excess(c: float) -> float:
        return float(np.sum(expit(at_low - c)) - np.sum(expit(c - at_high)))

    if not (np.isfinite(at_low).any() and np.isfinite(at_high).any()):
        return -np.inf
    both = np.concatenate([at_low, at_high])
    known = both[np.isfinite(both)]
    ends = known.min() - 50, known.max() + 50
    return float(brentq(excess, *ends, xtol=1e-10, maxiter=1000))  # type: ignore[arg-type]
