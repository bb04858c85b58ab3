"""What a report shows: plain arrays, text and numbers; nothing here knows of networks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Literal, TypeVar

import numpy as np
from jaxtyping import Bool, Float, Int

from credence.ensembles.diagnostics.calibration import reliability_diagram
from credence.ensembles.findings import Finding
from credence.ensembles.inputs import Effect, Importances
from credence.report.judging.simple_models import LogScores


@dataclass(frozen=True)
class RowTable:
    """A few test rows as the user wrote them.

    Args:
        index: position of each row among the test rows of the result it belongs to.
        columns: original column names, any text.
        values: one tuple per row, one entry per column; None and NaN read as "missing".
        names: what to call each row, for example "row 17"; its position counted from 1 if empty.
    """

    index: tuple[int, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[object, ...], ...]
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _require_same_length("RowTable", index=self.index, values=self.values)
        if self.names:
            _require_same_length("RowTable", index=self.index, names=self.names)
        for row in self.values:
            _require_same_length("RowTable", columns=self.columns, row=row)


@dataclass(frozen=True)
class RegressionTarget:
    """Predictions of one numeric target on the test rows, all in units of the target.

    `pit` is the predictive distribution function at the truth, in [0, 1]. `aleatoric_std` is the
    spread that stays when the network is known, `epistemic_std` the spread between networks:
    std^2 = aleatoric_std^2 + epistemic_std^2. `conformal_share` is the share of the rows in their
    conformal 95 % interval, where there is one.
    """

    name: str
    y: Float[np.ndarray, " point"]
    mean: Float[np.ndarray, " point"]
    std: Float[np.ndarray, " point"]
    lower_50: Float[np.ndarray, " point"]
    upper_50: Float[np.ndarray, " point"]
    lower_95: Float[np.ndarray, " point"]
    upper_95: Float[np.ndarray, " point"]
    pit: Float[np.ndarray, " point"]
    aleatoric_std: Float[np.ndarray, " point"]
    epistemic_std: Float[np.ndarray, " point"]
    unit: str = ""
    least_sure: RowTable | None = None
    scores: LogScores | None = None
    conformal_share: float | None = None
    groups: Int[np.ndarray, " point"] | None = None
    """Numbers of the groups whose rows hang together; None where every row stands alone."""

    def __post_init__(self) -> None:
        _require_same_length(f"target {self.name!r}", **_arrays(self))


@dataclass(frozen=True)
class Reliability:
    """Reliability table of the predicted label; `nan` in the bins that hold no row."""

    confidence: Float[np.ndarray, " bin"]  # mean probability of the predicted label
    accuracy: Float[np.ndarray, " bin"]  # share of rows whose predicted label is the truth
    count: Int[np.ndarray, " bin"]

    @classmethod
    def of(
        cls, probabilities: Float[np.ndarray, "point label"], y: Int[np.ndarray, " point"]
    ) -> Reliability:
        """Count the rows of every bin, from class probabilities and true labels."""
        found = reliability_diagram(probabilities, y)
        return cls(found.confidence, found.accuracy, found.count)

    def __post_init__(self) -> None:
        _require_same_length("Reliability", **_arrays(self))


@dataclass(frozen=True)
class ClassificationTarget:
    """Predictions of one label on the test rows; labels by position, entropies in nats."""

    name: str
    labels: tuple[str, ...]
    y: Int[np.ndarray, " point"]
    predicted: Int[np.ndarray, " point"]
    probabilities: Float[np.ndarray, "point label"]
    entropy_total: Float[np.ndarray, " point"]
    entropy_aleatoric: Float[np.ndarray, " point"]
    entropy_epistemic: Float[np.ndarray, " point"]
    reliability: Reliability
    least_sure: RowTable | None = None
    scores: LogScores | None = None
    groups: Int[np.ndarray, " point"] | None = None
    """Numbers of groups, as in `RegressionTarget`."""

    def __post_init__(self) -> None:
        _require_same_length(f"target {self.name!r}", **_arrays(self))
        if self.probabilities.ndim != 2 or self.probabilities.shape[1] != len(self.labels):
            raise ValueError(
                f"target {self.name!r}: probabilities have shape {self.probabilities.shape} for "
                f"{len(self.labels)} labels: pass one column per label, in the order of labels."
            )

    @property
    def confidence(self) -> Float[np.ndarray, " point"]:
        """Probability of the predicted label."""
        return self.probabilities[np.arange(len(self.predicted)), self.predicted]

    @property
    def is_correct(self) -> Bool[np.ndarray, " point"]:
        """Whether the predicted label is the truth."""
        return self.predicted == self.y


@dataclass(frozen=True)
class Convergence:
    """Did the sampler settle? Judged in function space, on predictions at held-out rows.

    Args:
        converged: None for a method that draws no chains, so that there is nothing to check.
        reason: one sentence, for people, that says why.
        unseen_rows: rows that chains left out, by which a method judged what are no chains of one
            posterior; 0 for others.
        max_rhat, min_ess: over the judged predictions; None where they do not exist.
        rhat, ess_bulk, ess_tail: one value per judged prediction.
        traces: predictions draw by draw, for a few rows; `trace_names` says which.
    """

    converged: bool | None
    reason: str
    max_rhat: float | None = None
    min_ess: float | None = None
    rhat: Float[np.ndarray, " point"] | None = None
    ess_bulk: Float[np.ndarray, " point"] | None = None
    ess_tail: Float[np.ndarray, " point"] | None = None
    traces: Float[np.ndarray, "chain draw traced"] | None = None
    trace_names: tuple[str, ...] = ()
    unseen_rows: int = 0

    def __post_init__(self) -> None:
        if self.traces is None:
            return
        if self.traces.ndim != 3 or self.traces.shape[2] != len(self.trace_names):
            raise ValueError(
                f"traces have shape {self.traces.shape} and there are {len(self.trace_names)} "
                "trace_names: pass (chain, draw, point) and one name per point."
            )


@dataclass(frozen=True)
class RunRecord:
    """What was run and how to repeat it."""

    command: str
    seed: int | None = None
    settings: Mapping[str, object] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    data_fingerprint: str = ""
    created: str = ""
    notes: tuple[str, ...] = ()


Target = RegressionTarget | ClassificationTarget


@dataclass(frozen=True)
class ReportData:
    """Everything on the page. `metrics` has the keys of metrics.json; `targets` is never empty."""

    title: str
    task: Literal["regression", "classification"]
    method: str
    method_reason: str
    n_train: int
    n_test: int
    metrics: Mapping[str, object]
    convergence: Convergence
    targets: tuple[RegressionTarget, ...] | tuple[ClassificationTarget, ...]
    run: RunRecord
    findings: tuple[Finding, ...] = ()
    """Findings of the method beside its predictions."""
    left_out: tuple[RegressionTarget, ...] | tuple[ClassificationTarget, ...] = ()
    """Training rows of every target as predicted by networks that had not seen them; they are
    judged beside the test rows, and not shown. None where no network left out any."""

    importances: Importances | None = None
    """How much the predictions need each input; None of runs that did not find out."""
    effects: tuple[Effect, ...] = ()
    """What some of these inputs do."""
    has_own_split: bool = False
    """Whether the data set says which rows are test rows."""

    def __post_init__(self) -> None:
        kind = {"regression": RegressionTarget, "classification": ClassificationTarget}
        if self.task not in kind:
            raise ValueError(f"task is {self.task!r}: pass 'regression' or 'classification'.")
        if not self.targets or not all(isinstance(t, kind[self.task]) for t in self.targets):
            raise ValueError(
                f"a {self.task} report needs one {kind[self.task].__name__} or more, "
                f"got {tuple(type(target).__name__ for target in self.targets)}."
            )
        if self.left_out and len(self.left_out) != len(self.targets):
            raise ValueError(
                f"left_out is of {len(self.left_out)} targets and there are {len(self.targets)}: "
                "pass one of each, or none."
            )
        for target in self.targets:
            if len(target.y) != self.n_test:
                raise ValueError(
                    f"target {target.name!r} has {len(target.y)} rows but n_test is "
                    f"{self.n_test}: pass the test rows, all of them."
                )


AnyTarget = TypeVar("AnyTarget", bound=Target)


def finite_rows(target: AnyTarget) -> AnyTarget:
    """The target without the rows on which any number is NaN or infinite."""
    arrays = _arrays(target)
    keep = np.ones(len(target.y), dtype=bool)
    for array in arrays.values():
        keep &= np.isfinite(array).all(axis=tuple(range(1, array.ndim)))
    return target if keep.all() else _some_rows(target, keep)


def independent(target: AnyTarget) -> AnyTarget:
    """One row of every group, drawn at random with a fixed seed; all rows where there are none.

    Rows of a group share what is not known of it. So many rows say less of new groups than as many
    that stand alone, and what chance makes of counts is known for rows that stand alone only.
    """
    if target.groups is None:
        return target
    shuffled = np.random.default_rng(0).permutation(len(target.groups))
    _, first = np.unique(target.groups[shuffled], return_index=True)
    return _some_rows(target, np.sort(shuffled[first]))


def pooled(target: AnyTarget, other: AnyTarget) -> AnyTarget:
    """The rows of two results together; all but the rows is of the first."""
    more = _arrays(other)
    rows = {name: np.concatenate([array, more[name]]) for name, array in _arrays(target).items()}
    return _with_rows(replace(target, scores=None), rows)


def _some_rows(target: AnyTarget, rows: np.ndarray) -> AnyTarget:
    """The rows at these places, or with these flags."""
    scores = target.scores and LogScores(*(each[rows] for each in target.scores))
    found = {name: array[rows] for name, array in _arrays(target).items()}
    return _with_rows(replace(target, scores=scores), found)


def _with_rows(target: AnyTarget, rows: dict[str, np.ndarray]) -> AnyTarget:
    """The target with other rows, and what is counted of them."""
    if isinstance(target, ClassificationTarget):
        table = Reliability.of(rows["probabilities"], rows["y"])
        return replace(target, reliability=table, **rows)
    return replace(target, **rows)


def is_inside(target: RegressionTarget, coverage: int = 95) -> Bool[np.ndarray, " point"]:
    """Whether the truth lies in its 50 % or 95 % interval, per row."""
    lower, upper = getattr(target, f"lower_{coverage}"), getattr(target, f"upper_{coverage}")
    return (target.y >= lower) & (target.y <= upper)


NUM_LEAST_SURE = 8
"""Rows that a table lists."""


def least_sure_index(spread: Float[np.ndarray, " point"]) -> list[int]:
    """Positions of the few rows with the widest predictive spread, widest first: those of
    which it is no number before all others."""
    order = np.argsort(-np.where(np.isnan(spread), np.inf, spread), kind="stable")
    return order[:NUM_LEAST_SURE].tolist()


def _arrays(record: object) -> dict[str, np.ndarray]:
    values = {f.name: getattr(record, f.name) for f in fields(record)}  # type: ignore[arg-type]
    return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}


def _require_same_length(what: str, **parts: object) -> None:
    lengths = {name: len(part) for name, part in parts.items()}  # type: ignore[arg-type]
    if len(set(lengths.values())) > 1:
        raise ValueError(f"{what}: lengths differ, {lengths}: pass one entry per row to each.")
