"""The entry of metrics.json on a posterior over architectures, and what must fit in it."""

from typing import Any, Literal, NotRequired, TypedDict

from credence.schema import build

Rhat = float | Literal["inf"] | None
"""Infinite where every chain stays at a size of its own; None where there is none."""


class Count(TypedDict):
    """p(width), or p(depth)."""

    widths: list[int]
    probabilities: list[float]
    standard_errors: list[float | None]
    mode: int
    mean: float
    rhat: Rhat
    ess: float | None


class Listed(TypedDict):
    """An architecture and its share."""

    widths: list[int]
    probability: float
    standard_error: float | None


class Joint(TypedDict):
    """A depth and a number of neurons, and their share."""

    depth: int
    neurons: int
    probability: float


class Jumps(TypedDict):
    """Jumps of one kind, tried and accepted."""

    tried: int
    accepted: int
    rate: float | None


class Document(TypedDict):
    """The posterior over architectures."""

    likeliest: list[Listed]
    width: Count
    layers: list[Count]
    depth: Count | None
    jumps: dict[str, Jumps]
    num_architectures: int
    num_states: int
    num_draws: int
    joint: NotRequired[list[Joint]]
    converged: bool
    reason: str
    max_rhat: Rhat
    min_ess: float | None


def checked(document: Any) -> Document:
    """Refuse counts without probabilities, and no architecture at all.

    Raises:
        ValueError: for these, and for entries of other types.
    """
    found: Document = build(Document, document, "architecture")
    if not found["likeliest"]:
        raise ValueError("architecture.likeliest is empty")
    for count in [found["width"], *found["layers"], *filter(None, [found["depth"]])]:
        columns = (count["widths"], count["probabilities"], count["standard_errors"])
        if len(set(map(len, columns))) > 1 or not any(p > 0 for p in count["probabilities"]):
            raise ValueError("architecture: every count needs its probability and error")
    return found
