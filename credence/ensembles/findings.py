"""Findings of a method beside its predictions: evidence of the data, size of the network, ...

A method declares its kinds of finding (`Method.findings`). Estimators, runs, reports, the command
line and comparisons show every finding and know none: each says here what is to be shown of it.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from credence.ensembles.diagnostics.convergence import Convergence, assess
from credence.ensembles.diagnostics.starts import with_starts
from credence.ensembles.predictor import Predictor
from credence.html.markup import Html


@dataclass(frozen=True, kw_only=True)
class Finding(ABC):
    """Base of all findings; a subclass is a frozen dataclass of what was learnt.

    A subclass has a name, finds itself in an ensemble (`of`), and writes itself into metrics.json
    and evaluation.npz (`entries`, `arrays`) so that it can read itself back (`read`). The rest is
    optional: what is not overridden is not shown.

    Args:
        settled: whether it can be relied on; a finding that is not settled makes `converged`
            False, and None leaves that as it is.
        reason: one sentence, for people, that says why.
        unseen_rows: rows that chains left out, by which the method judges what are no chains of one
            posterior; a finding that has any speaks in their place.
    """

    name: ClassVar[str]
    """Key of the finding: `findings(ensemble)[name]`."""

    settled: bool | None = None
    reason: str = ""
    unseen_rows: int = 0

    @classmethod
    @abstractmethod
    def of(cls, ensemble: Any) -> "Finding | None":
        """Find it in what a method returned; None where this run has none."""

    @classmethod
    @abstractmethod
    def read(cls, metrics: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> "Finding | None":
        """Read what `entries` and `arrays` wrote; None where this run has none.

        Raises:
            ValueError: where it is damaged; see `credence.schema.build` for the types.
        """

    @abstractmethod
    def entries(self) -> dict[str, Any]:
        """Return the entries of metrics.json, as JSON data, under names that are its own."""

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays of evaluation.npz, for the page."""
        return {}

    def rescaled(self, nats: float, observations: float) -> "Finding":
        """The same where the log density of all training targets is larger by so many nats.

        A posterior knows standardised targets; in their own units their density is another.

        Args:
            observations: how many the rows stand for: the sum of their weights.
        """
        return self

    def sentences(self) -> list[str]:
        """Say it on a terminal, in plain text."""
        return []

    def facts(self) -> list[tuple[str, str]]:
        """Rows, name and value, of the report's table on what was run."""
        return []

    def section(self, seconds: Mapping[str, float], *, is_converged: bool) -> Html | None:
        """Return the section of the report; None for no section.

        Args:
            seconds: of the run, by phase.
            is_converged: whether the page may be relied on; `parts.section` marks it otherwise.
        """
        return None

    def scores(self) -> dict[str, Any]:
        """Return the columns in a comparison of methods, as JSON data."""
        return {}


Findings = dict[str, Any]
"""Findings by their names; what else they know depends on their kind."""


def found_in(ensemble: Predictor, kinds: Iterable[type[Finding]]) -> Findings:
    """Find what there is of these kinds in an ensemble."""
    found = {kind.name: kind.of(ensemble) for kind in kinds}
    return {name: each for name, each in found.items() if each is not None}


def read_from(
    metrics: Mapping[str, Any],
    arrays: Mapping[str, np.ndarray],
    kinds: Iterable[type[Finding]],
) -> Findings:
    """Read what there is of these kinds in the documents of a run.

    Raises:
        ValueError: where one of them is damaged.
    """
    found = {kind.name: kind.read(metrics, arrays) for kind in kinds}
    return {name: each for name, each in found.items() if each is not None}


def judged(
    ensemble: Predictor,
    functions: Float[np.ndarray, "chain draw *shape"] | None,
    findings: Iterable[Finding],
) -> Convergence:
    """Judge all that is known of a run: its chains, further starts, and its findings.

    Args:
        functions: monitored predictions; None where there is no chain.
    """
    found = assess(functions, families=ensemble.families, most_ess=ensemble.weights_worth)
    found = with_starts(found, ensemble.provenance.found.get("starts"))
    return with_findings(found, findings)


def with_findings(judged: Convergence, findings: Iterable[Finding]) -> Convergence:
    """The verdict on chains, with that on findings: all of them must be settled."""
    findings = list(findings)
    for each in findings:
        if judged.converged is None and each.unseen_rows:
            judged = replace(judged, reason=each.reason, unseen_rows=each.unseen_rows)
    told = [(each.settled, each.reason) for each in findings if each.settled is not None]
    if not told or (judged.converged is None and all(is_good for is_good, _ in told)):
        return judged
    parts = [(judged.converged, judged.reason), *told]
    converged = all(is_good for is_good, _ in parts)
    reason = " ".join(text for is_good, text in parts if converged or not is_good)
    return replace(judged, converged=converged, reason=reason)
