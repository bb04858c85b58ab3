"""What the documents of a RUN folder hold, and what must fit together in them."""

from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict

import numpy as np

from credence.storage import read_arrays, read_json, reading

INTERVALS = ("lower_50", "upper_50", "lower_95", "upper_95")
REGRESSION = ("y", "mean", "std", *INTERVALS, "pit", "aleatoric_std", "epistemic_std")
ENTROPIES = ("entropy_total", "entropy_aleatoric", "entropy_epistemic")
CLASSIFICATION = ("y", "predicted", "probabilities", *ENTROPIES)
ARRAYS = {"regression": REGRESSION, "classification": CLASSIFICATION}
"""Arrays of evaluation.npz with an entry per test row, by task."""

SCORES = {
    "regression": ("rmse", "nll", "crps", "coverage_95"),
    "classification": ("accuracy", "nll", "ece", "brier", "auroc"),
}
"""Scores of metrics.json, by task."""

Number = float | Literal["inf", "-inf", "nan"] | None
"""A number of an emulator: where it is not finite, this is written out."""


class Count(TypedDict):
    """p(width), or p(depth)."""

    widths: list[int]
    probabilities: list[float]
    standard_errors: list[float | None]
    mode: int
    mean: float
    rhat: float | None
    ess: float | None


class Listed(TypedDict):
    """An architecture and its share."""

    widths: list[int]
    probability: float
    standard_error: float | None


class Jumps(TypedDict):
    """Jumps of one kind: those tried, those accepted, and their ratio."""

    tried: int
    accepted: int
    rate: float | None


class Architecture(TypedDict):
    """The posterior over architectures."""

    likeliest: list[Listed]
    width: Count
    layers: list[Count]
    depth: Count | None
    jumps: dict[str, Jumps]
    num_architectures: int
    num_states: int
    num_draws: int
    reason: str
    max_rhat: float | None
    min_ess: float | None


class Candidate(TypedDict):
    """An emulator that was tried."""

    name: str
    nats: Number
    promise: Number


class Emulation(TypedDict):
    """How good an emulator was."""

    is_exact: bool
    error: Number
    correlation: Number
    hellinger: Number
    pareto_k: Number
    first_acceptance_rate: Number
    acceptance_rate: Number
    held_out_error: Number
    held_out_share: Number
    candidates: NotRequired[list[Candidate]]


class Metrics(TypedDict):
    """What metrics.json holds, beside the scores of the task."""

    task: Literal["regression", "classification"]
    method: str
    method_reason: str
    n_train: int
    n_test: int
    rmse: NotRequired[float | None]
    crps: NotRequired[float | None]
    coverage_95: NotRequired[float | None]
    accuracy: NotRequired[float | None]
    ece: NotRequired[float | None]
    brier: NotRequired[float | None]
    auroc: NotRequired[float | None]
    nll: float | None
    converged: bool | None
    convergence_reason: str
    max_rhat_function: float | None
    min_ess_function: float | None
    num_draws: int
    stopped: Literal["finished", "time", "interrupt"]
    log_evidence: NotRequired[float | None]
    log_evidence_error: NotRequired[float | None]
    architecture: NotRequired[Architecture]
    emulation: NotRequired[Emulation]
    seconds: dict[str, float]
    likelihood_evaluations: int
    gradient_evaluations: int
    verdict: NotRequired[Literal["trust", "care", "do_not_trust"]]
    verdict_reasons: NotRequired[list[str]]


class Evaluation(TypedDict):
    """What evaluation.json holds: the held-out rows worth showing."""

    target: str
    notes: list[str]
    columns: list[str]
    least_sure: list[int]
    rows: list[list[str | bool | int | float | None]]
    row_names: list[str]
    trace_names: list[str]


def read_metrics(path: Path) -> Metrics:
    """Read metrics.json and check that its parts fit together.

    Raises:
        StorageError: where it is missing or damaged, or its parts do not fit together.
    """
    metrics = read_json(path, Metrics)
    with reading(path):
        if lacking := [name for name in SCORES[metrics["task"]] if name not in metrics]:
            raise ValueError(f"{lacking[0]} is missing")
        if ("log_evidence" in metrics) != ("log_evidence_error" in metrics):
            raise ValueError("log_evidence and its error come together")
        if "architecture" in metrics:
            _check_architecture(metrics["architecture"])
    return metrics


def _check_architecture(found: Architecture) -> None:
    """Refuse counts without probabilities, and no architecture at all."""
    if not found["likeliest"]:
        raise ValueError("architecture.likeliest is empty")
    for count in [found["width"], *found["layers"], *filter(None, [found["depth"]])]:
        columns = (count["widths"], count["probabilities"], count["standard_errors"])
        if len(set(map(len, columns))) > 1 or not any(p > 0 for p in count["probabilities"]):
            raise ValueError("architecture: every count needs its probability and error")


def read_evaluation_arrays(path: Path, metrics: Metrics) -> dict[str, np.ndarray]:
    """Read evaluation.npz: predictions of every held-out row, and what convergence rests on.

    Raises:
        StorageError: where it is missing or damaged, or does not fit metrics.json.
    """
    arrays = read_arrays(path)
    num_rows = metrics["n_test"]
    with reading(path):
        for name in ARRAYS[metrics["task"]]:
            is_index = name in ("y", "predicted") and metrics["task"] == "classification"
            _require(arrays, name, "iu" if is_index else "fiu", 2 if name == "probabilities" else 1)
            if len(arrays[name]) != num_rows:
                raise ValueError(f"{name} has {len(arrays[name])} rows, not {num_rows}")
        for name, dimension in OPTIONAL.items():
            if name in arrays:
                _require(arrays, name, "fiu", dimension)
        if metrics["task"] == "classification":
            num_labels = arrays["probabilities"].shape[1]
            for name in ("y", "predicted"):
                if not np.isin(arrays[name], np.arange(num_labels)).all():
                    raise ValueError(f"{name} holds labels beyond the {num_labels} there are")
    return arrays


OPTIONAL: dict[str, int] = {
    "rhat": 1,
    "ess_bulk": 1,
    "ess_tail": 1,
    "traces": 3,
    "emulation_true": 2,
    "emulation_emulated": 2,
}
"""Arrays that some runs have, and their number of axes."""


def _require(arrays: dict[str, Any], name: str, kinds: str, dimension: int) -> None:
    """Refuse an array that is missing, empty, of other numbers, or of another number of axes."""
    array = arrays[name] if name in arrays else np.empty(0, object)
    if array.dtype.kind not in kinds or array.ndim != dimension or not array.size:
        raise ValueError(f"{name} must be {dimension}-dimensional numbers")
