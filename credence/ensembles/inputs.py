"""What predictions make of their inputs: how much they need each, and what each does."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

import numpy as np
from jaxtyping import Float

from credence.errors import plural
from credence.html.wording import digits_to_tell, number

MOST_SHOWN = 20
"""Inputs that a table in a terminal has."""
MOST_LETTERS = 40
"""Letters of a name in such a table."""


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

    def __repr__(self) -> str:
        shown = [
            (_name(self.names[i]), number(self.nats[i]), f"± {number(self.error[i], 2)}")
            for i in self.order[:MOST_SHOWN]
        ]
        more = len(self.names) - len(shown)
        rest = [f"and {plural(more, 'input')} that are needed less"] if more > 0 else []
        head = "Nats by which a row is predicted worse without an input, and standard error:"
        return "\n".join([head, *_aligned(shown), *rest])


@dataclass(frozen=True)
class Effect:
    """How the prediction changes with one input, all others as they are in the rows.

    This is the partial dependence of Friedman, "Greedy function approximation: a gradient boosting
    machine" (2001), section 8.2, of every network of the posterior: a mean over rows, noise left
    out. Where inputs depend on each other, it includes rows that do not exist.

    Args:
        name: of the column.
        values: numbers in growing order, or names, the most common first.
        mean: over networks, each by its weight; for labels, of their probability.
        lower, upper: between which nine of ten networks lie, each by its weight. Networks with a
            negative weight count in the mean alone, so it may lie outside.
    """

    name: str
    values: tuple[float | str, ...]
    mean: Float[np.ndarray, "value output"]
    lower: Float[np.ndarray, "value output"]
    upper: Float[np.ndarray, "value output"]

    def __repr__(self) -> str:
        told = [_name(value) for value in self.values if isinstance(value, str)]
        values = told or _numbers(np.array(self.values, float))
        bands = np.stack([self.mean, self.lower, self.upper], axis=-1)  # (value, output, 3)
        outputs = bands.shape[1]
        columns = [values, *map(_numbers, bands.reshape(len(values), -1).T)]
        titles = ["" if outputs == 1 else f" {label}" for label in range(outputs)]
        heads = [f"{what}{title}" for title in titles for what in ("mean", "lower", "upper")]
        head = "Prediction by one input: mean of the networks, and where nine of ten of them lie:"
        rows = [(_name(self.name), *heads), *zip(*columns, strict=True)]
        return "\n".join([head, *_aligned(rows)])


def _numbers(values: Float[np.ndarray, " value"]) -> list[str]:
    """Write numbers with as many digits as tell them apart."""
    digits = digits_to_tell(float(np.ptp(values)), float(np.abs(values).max()))
    return [number(value, digits) for value in values.tolist()]


def _name(text: str) -> str:
    """A name in one line, not too long for a table."""
    line = " ".join(text.split())
    return line if len(line) <= MOST_LETTERS else f"{line[: MOST_LETTERS - 1]}…"


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines whose cells stand under one another: the first to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    cells = [[row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])] for row in rows]
    return ["  ".join(row) for row in cells]


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
