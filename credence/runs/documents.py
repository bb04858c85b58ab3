"""What the documents of a RUN folder hold, and what must fit together in them."""

from pathlib import Path
from typing import Literal, NotRequired, TypedDict

import numpy as np

from credence.ensembles.findings import Finding
from credence.ensembles.inputs import InputsDocument
from credence.ensembles.scores import check_rows
from credence.storage import read_arrays, read_json, reading, require_array

SCORES = {
    "regression": ("rmse", "nll", "crps", "coverage_95"),
    "classification": ("accuracy", "nll", "ece", "brier", "auroc"),
}
"""Scores of metrics.json, by task."""
RECALIBRATED = {
    "regression": ("coverage_95_conformal",),
    "classification": ("nll_tempered", "ece_tempered"),
}
"""Scores beside them, of predictions that were made to hold on other unseen rows; by task."""


class Metrics(TypedDict):
    """The entries of metrics.json but for those of findings, which check themselves."""

    task: Literal["regression", "classification"]
    method: str
    method_reason: str
    n_train: int
    n_test: int
    rmse: NotRequired[float | None]
    crps: NotRequired[float | None]
    coverage_95: NotRequired[float | None]
    coverage_95_conformal: NotRequired[float | None]
    nll_tempered: NotRequired[float | None]
    ece_tempered: NotRequired[float | None]
    accuracy: NotRequired[float | None]
    ece: NotRequired[float | None]
    brier: NotRequired[float | None]
    auroc: NotRequired[float | None]
    nll: float | None
    nll_marginal: NotRequired[float | None]
    nll_linear: NotRequired[float | None]
    crps_marginal: NotRequired[float | None]
    crps_linear: NotRequired[float | None]
    converged: bool | None
    unseen_rows: NotRequired[int]
    convergence_reason: str
    max_rhat_function: float | None
    min_ess_function: float | None
    num_draws: int
    num_chains: NotRequired[int]
    divergences: NotRequired[int | None]
    stopped: Literal["finished", "time", "interrupt"]
    seconds: dict[str, float]
    likelihood_evaluations: int
    gradient_evaluations: int
    verdict: NotRequired[Literal["trust", "care", "cannot_tell", "do_not_trust"]]
    verdict_reasons: NotRequired[list[str]]
    verdict_advice: NotRequired[list[str]]


class Evaluation(TypedDict):
    """What evaluation.json holds: the held-out rows worth showing, and what the inputs do."""

    target: str
    notes: list[str]
    columns: list[str]
    least_sure: list[int]
    rows: list[list[str | bool | int | float | None]]
    row_names: list[str]
    trace_names: list[str]
    inputs: NotRequired[InputsDocument]
    has_own_split: NotRequired[bool]
    """Whether the data set says which rows are test rows."""


def read_metrics(path: Path) -> Metrics:
    """Read metrics.json and check that its parts fit together.

    Raises:
        StorageError: where it is missing or damaged, or its parts do not fit together.
    """
    metrics = read_json(path, Metrics)
    with reading(path):
        if lacking := [name for name in SCORES[metrics["task"]] if name not in metrics]:
            raise ValueError(f"{lacking[0]} is missing")
    return metrics


def read_evaluation_arrays(path: Path, metrics: Metrics) -> dict[str, np.ndarray]:
    """Read evaluation.npz: predictions of every held-out row, and what convergence rests on.

    Raises:
        StorageError: where it is missing or damaged, or does not fit metrics.json.
    """
    arrays = read_arrays(path)
    num_rows = metrics["n_test"]
    with reading(path):
        found = check_rows(arrays, metrics["task"])
        if found != num_rows:
            raise ValueError(f"y has {found} rows, not {num_rows}")
        lengths: dict[str, int] = dict.fromkeys((*REFERENCES, GROUPS), num_rows)
        if f"{LEFT_OUT}y" in arrays:
            lengths[LEFT_OUT + GROUPS] = check_rows(arrays, metrics["task"], LEFT_OUT)
        for name, dimension in OPTIONAL.items():
            if name in arrays:
                require_array(arrays, name, "fiu", dimension)
        for name, length in lengths.items():
            if name in arrays:
                require_array(arrays, name, "f" if name in REFERENCES else "iu", 1)
                if len(arrays[name]) != length:
                    raise ValueError(f"{name} has {len(arrays[name])} rows, not {length}")
    return arrays


LEFT_OUT = "left_out_"
"""How the names begin of what was predicted of training rows by networks that had not seen them."""

REFERENCES = ("log_prob", "log_prob_marginal", "log_prob_linear")
"""Log scores with an entry per test row, which runs of earlier versions do not have."""

GROUPS = "groups"
"""Name of the numbers of groups, row by row, of tables whose rows are in groups."""

OPTIONAL: dict[str, int] = {
    "rhat": 1,
    "ess_bulk": 1,
    "ess_tail": 1,
    "traces": 3,
}
"""Arrays that some runs have, and their number of axes."""


def read_findings(
    folder: Path, metrics: Metrics, arrays: dict[str, np.ndarray]
) -> tuple[Finding, ...]:
    """Read what the method learnt beside predictions.

    Raises:
        StorageError: where one of them is damaged, or its parts do not fit together.
    """
    from credence import methods

    with reading(folder):
        return tuple(methods.saved_findings(metrics["method"], metrics, arrays).values())
