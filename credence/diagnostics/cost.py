"""What a result cost, and speed that counts all of it."""

import math
import operator
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from credence.diagnostics.convergence import Convergence

PHASES = (
    "compile",
    "train",
    "noise",
    "refine",
    "polish",
    "calibrate",
    "emulate",
    "warmup",
    "weigh",
    "temper",
    "mutate",
    "reweigh",
    "sample",
    "scout",
    "predict",
    "other",
)


@dataclass(frozen=True)
class Cost:
    """Work done and time spent; costs add up with `+`.

    Attributes:
        likelihood_evaluations: forward passes, counted in single data points.
        gradient_evaluations: forward and backward passes, counted in single data points.
        flops: nominal floating-point operations.
        seconds: wall-clock seconds by phase; the keys are among `PHASES`.
    Raises:
        ValueError: for a phase that is not one of `PHASES`, or a number that is negative or NaN.
    """

    likelihood_evaluations: int = 0
    gradient_evaluations: int = 0
    flops: float = 0.0
    seconds: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        unknown = sorted(set(self.seconds) - set(PHASES))
        if unknown:
            raise ValueError(f"unknown phases {unknown}: use {', '.join(PHASES)}.")
        plain = {
            "likelihood_evaluations": operator.index(self.likelihood_evaluations),
            "gradient_evaluations": operator.index(self.gradient_evaluations),
            "flops": float(self.flops),
            "seconds": {phase: float(seconds) for phase, seconds in self.seconds.items()},
        }
        for name, value in plain.items():  # numpy's numbers become Python's, which JSON knows
            object.__setattr__(self, name, value)
        counts = (self.likelihood_evaluations, self.gradient_evaluations, self.flops)
        for number in (*counts, *self.seconds.values()):
            if not (number >= 0 and math.isfinite(number)):
                raise ValueError(f"a cost must be a finite number >= 0, got {number}.")

    @property
    def total_seconds(self) -> float:
        """Seconds of all phases together, compilation and training included."""
        return math.fsum(self.seconds.values())

    def __add__(self, other: "Cost") -> "Cost":
        phases = [phase for phase in PHASES if phase in self.seconds or phase in other.seconds]
        return Cost(
            self.likelihood_evaluations + other.likelihood_evaluations,
            self.gradient_evaluations + other.gradient_evaluations,
            self.flops + other.flops,
            {p: self.seconds.get(p, 0.0) + other.seconds.get(p, 0.0) for p in phases},
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, ready for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Cost":
        """The inverse of `to_dict`; ValueError for a key that is not a field."""
        unknown = sorted(set(values) - set(cls.__dataclass_fields__))
        if unknown:
            raise ValueError(
                f"unknown entries {unknown} in a cost: it was written by another version; "
                f"the entries are {', '.join(cls.__dataclass_fields__)}."
            )
        return cls(**values)


def ess_per_second(min_ess: float, cost: Cost) -> float:
    """Effective draws per second of ALL phases; ValueError if no time was recorded."""
    if not cost.total_seconds > 0:
        raise ValueError("the cost has no seconds: record the time of every phase first.")
    return min_ess / cost.total_seconds


def speed_up(
    convergence: Convergence, cost: Cost, baseline: Convergence, baseline_cost: Cost
) -> float | None:
    """How many times the baseline's smallest function-space ESS per second; all phases count.

    None unless both have converged: the ESS of chains that disagree means nothing.
    """
    ess, baseline_ess = convergence.min_ess_function, baseline.min_ess_function
    if not (convergence.converged and baseline.converged) or ess is None or baseline_ess is None:
        return None
    return ess_per_second(ess, cost) / ess_per_second(baseline_ess, baseline_cost)


def format_speed_up(value: float | None) -> str:
    """A speed-up for a table: '3.2x', or 'n/a: not converged'."""
    return "n/a: not converged" if value is None else f"{value:.3g}x"
