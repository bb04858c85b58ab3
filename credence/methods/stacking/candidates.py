"""What was tried by stacking: every model, its score on rows it had not seen, and its weight."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NotRequired, TypedDict

import numpy as np

from credence.ensembles.findings import Finding
from credence.ensembles.predictor import Predictor
from credence.ensembles.stack import Stack
from credence.ensembles.weighing import FEW_ROWS
from credence.html.markup import Html, element
from credence.html.parts import section, table
from credence.html.wording import count, number, percent
from credence.schema import build
from credence.storage import jsonable


class Tried(TypedDict):
    """A model that was tried."""

    model: str
    log_score: float | None
    """Mean log probability of a left-out row, nats; None where it is not finite."""
    log_score_error: float | None
    """Standard error over rows."""
    weight: float


class CandidateEntries(TypedDict):
    """The entries of metrics.json."""

    models: list[Tried]
    models_rows: int
    models_left_out: NotRequired[list[str]]


UNTRIED = "models_left_out"
STACKED = (
    "Several models are mixed, so the chains of one need not agree with those of another. They "
    "were weighed by rows that they had not seen."
)
ALONE = "One model was fitted. It was judged by rows that it had not seen, and not by its chains."


@dataclass(frozen=True)
class Candidates(Finding):
    """The models of a stack and how they were weighed."""

    name: ClassVar[str] = "models"

    tried: tuple[Tried, ...]
    num_rows: int
    """Rows on which the weights rest."""
    untried: tuple[str, ...] = ()
    """Models for which there was no time."""

    @classmethod
    def _judging(
        cls, tried: Iterable[Tried], num_rows: int, untried: Iterable[str] = ()
    ) -> "Candidates":
        """Candidates whose rows judge the stack, if they are enough."""
        unseen = num_rows if num_rows >= FEW_ROWS else 0
        all_tried = tuple(tried)
        reason = STACKED if len(all_tried) > 1 else ALONE
        return cls(all_tried, num_rows, tuple(untried), reason=reason, unseen_rows=unseen)

    @classmethod
    def of(cls, ensemble: Predictor) -> "Candidates | None":
        """Read them from a stack."""
        if not isinstance(ensemble, Stack):
            return None
        tried = [
            Tried(
                model=each.name,
                log_score=each.log_score,
                log_score_error=each.log_score_error,
                weight=each.weight,
            )
            for each in ensemble.candidates
        ]
        untried = ensemble.provenance.found.get(UNTRIED, ())
        return cls._judging(jsonable(tried), ensemble.num_rows, untried)

    @classmethod
    def read(
        cls, metrics: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
    ) -> "Candidates | None":
        """Read the entries, which come together."""
        if "models" not in metrics:
            return None
        entries = build(CandidateEntries, dict(metrics))
        untried = entries.get(UNTRIED, ())
        return cls._judging(entries["models"], entries["models_rows"], untried)

    def entries(self) -> dict[str, Any]:
        """The models, in the order in which they were tried."""
        untried = {UNTRIED: list(self.untried)} if self.untried else {}
        return {"models": list(self.tried), "models_rows": self.num_rows, **untried}

    def rescaled(self, nats: float, observations: float) -> "Candidates":
        """Log scores are densities of the targets, each of one observation."""
        shift = nats / observations
        return replace(self, tried=tuple(_shifted(one, shift) for one in self.tried))

    def by_weight(self) -> list[Tried]:
        """The models, the weightiest first."""
        return sorted(self.tried, key=lambda one: -one["weight"])

    def listed(self) -> str:
        """The models that count, with their weights."""
        kept = [one for one in self.by_weight() if one["weight"] > 0]
        return "; ".join(f"{percent(one['weight'])} {one['model']}" for one in kept)

    def sentences(self) -> list[str]:
        """Name the models that count, and on how many rows that rests."""
        rows = count(self.num_rows, "row")
        missing = f" There was no time for {'; '.join(self.untried)}." if self.untried else ""
        if len(self.tried) == 1:
            found = f"One model, judged on {rows} that its chains left out: {self.listed()}."
            return [found + missing]
        few = " So few rows say little of the weights." if self.num_rows < FEW_ROWS else ""
        return [
            f"Of {count(len(self.tried), 'model')}, weighed on {rows} that their chains left out: "
            f"{self.listed()}.{few}{missing}"
        ]

    def facts(self) -> list[tuple[str, str]]:
        """Show the models that count as one row."""
        return [("Models", self.listed())]

    def section(self, seconds: Mapping[str, float], *, is_converged: bool) -> Html:
        """Return the table of all models."""
        rows = [
            [one["model"], _score(one), percent(one["weight"]) if one["weight"] else "none"]
            for one in self.by_weight()
        ]
        told = (
            "Numbers like 32-32 are the neurons of the hidden layers. Every model was sampled by "
            "chains that each left out a part of the training rows. The log score is the mean log "
            "probability of a row by chains that had not seen it, in nats, with its standard error "
            "over rows: larger is better. The weights are those with which the models together "
            "predict such rows best, so one that scores well may still add nothing."
        )
        return section(
            "Models that were tried",
            element("p", self.sentences()[0]),
            table(["Model", "Log score", "Weight"], rows),
            element("p", told, class_="small"),
            is_converged=is_converged,
        )


def _shifted(one: Tried, nats: float) -> Tried:
    shifted = one.copy()
    if shifted["log_score"] is not None:
        shifted["log_score"] += nats
    return shifted


def _score(one: Tried) -> str:
    error = one["log_score_error"]
    return number(one["log_score"]) + ("" if error is None else f" ± {number(error, 2)}")
