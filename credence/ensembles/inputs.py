"""What predictions make of their inputs: how much they need each, and what each does."""

from dataclasses import dataclass
from typing import TypedDict

import numpy as np
from jaxtyping import Float


@dataclass(frozen=True)
class Importances:
    """How much worse rows are predicted when an input tells nothing.

    The values of one column are shuffled among the rows (Breiman, "Random forests" (2001), section
    10); the loss is minus the log predictive density, or probability, of the truth. Inputs that say
    the same stand in for each other, so that each of them may seem to be needed little.

    Args:
        names: of the columns.
        nats: mean loss by which shuffling makes a row worse; near 0 or below it, the column is
            not needed.
        error: standard errors of these, over rows.
    """

    names: tuple[str, ...]
    nats: Float[np.ndarray, " input"]
    error: Float[np.ndarray, " input"]

    @property
    def order(self) -> list[int]:
        """Positions of the inputs, the most important first."""
        return np.argsort(-self.nats, kind="stable").tolist()


@dataclass(frozen=True)
class Effect:
    """How the prediction changes with one input, all others as they are in the rows.

    This is the partial dependence of Friedman, "Greedy function approximation: a gradient boosting
    machine" (2001), section 8.2, of every network of the posterior: a mean over rows, noise left
    out. Where inputs depend on each other, it includes rows that do not exist.

    Args:
        name: of the column.
        values: numbers in growing order, or names, the most common first.
        mean: over networks; for labels, of their probability.
        lower, upper: between which nine of ten networks lie.
    """

    name: str
    values: tuple[float | str, ...]
    mean: Float[np.ndarray, "value output"]
    lower: Float[np.ndarray, "value output"]
    upper: Float[np.ndarray, "value output"]


class EffectDocument(TypedDict):
    """An `Effect` as JSON data."""

    name: str
    values: list[float | str]
    mean: list[list[float]]
    lower: list[list[float]]
    upper: list[list[float]]


class InputsDocument(TypedDict):
    """Importances of all inputs and effects of some, as JSON data."""

    names: list[str]
    nats: list[float]
    error: list[float]
    effects: list[EffectDocument]


def to_document(found: Importances, effects: tuple[Effect, ...]) -> InputsDocument:
    """Write them as JSON data."""
    return {
        "names": list(found.names),
        "nats": found.nats.tolist(),
        "error": found.error.tolist(),
        "effects": [
            {
                "name": each.name,
                "values": list(each.values),
                "mean": each.mean.tolist(),
                "lower": each.lower.tolist(),
                "upper": each.upper.tolist(),
            }
            for each in effects
        ],
    }


def from_document(document: InputsDocument) -> tuple[Importances, tuple[Effect, ...]]:
    """Read what `to_document` wrote.

    Raises:
        ValueError: where parts of it do not fit together.
    """
    names = tuple(document["names"])
    nats, error = (np.array(document[name], float) for name in ("nats", "error"))
    if not nats.shape == error.shape == (len(names),):
        raise ValueError(f"{len(names)} inputs have {len(nats)} importances")
    return Importances(names, nats, error), tuple(map(_effect, document["effects"]))


def _effect(document: EffectDocument) -> Effect:
    bands = [np.array(document[name], float) for name in ("mean", "lower", "upper")]
    if any(band.ndim != 2 or band.shape != bands[0].shape for band in bands):
        raise ValueError(f"the effect of {document['name']!r} has bands of different shapes")
    if len(bands[0]) != len(document["values"]):
        raise ValueError(f"the effect of {document['name']!r} has too few values")
    return Effect(document["name"], tuple(document["values"]), *bands)
