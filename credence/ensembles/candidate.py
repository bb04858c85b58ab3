"""Candidates for a stack: a chain or an ensemble, each with its scores."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Candidate:
    """A chain or an ensemble that might be in a stack, and its scores."""

    ensemble: int
    """The place of its ensemble among those that were given."""
    chain: int | None
    """The chain of that ensemble; None for all together."""
    log_score: float
    """Mean log probability of an unseen row, nats."""
    log_score_error: float
    """Standard error over rows."""
    share_unreliable: float | None
    """Share of the rows whose leave-one-out score is not to be trusted; None for held-out rows."""
    weight: float
    """Weight of the candidate in the stack."""
    name: str = ""
    """Words for people; empty where nobody gave any."""
