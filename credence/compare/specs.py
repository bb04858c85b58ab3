"""An experiment is plain data, which `to_json` writes; `cell_from_json` reads a cell back.

An `Experiment` is a list of problems times a list of methods; a `CellSpec` is one of each, at one
size and with one seed. Nothing here computes or imports anything heavy.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import credence
from credence.compare.sources import Settings, Source, moved, source_from_json
from credence.errors import InputError, did_you_mean

Size = Literal["smoke", "laptop", "paper"]
SIZES: tuple[Size, ...] = ("smoke", "laptop", "paper")
"""Seconds; minutes on a few cores; as published."""


@dataclass(frozen=True, kw_only=True)
class ModelSpec:
    """Network, prior and likelihood, by name; "auto" is Normal with learnt noise, or Categorical.

    Args:
        network: "mlp", or "resnet8", "resnet18", "resnet20": `credence.models.ResNet` of a depth.
        hidden, activation: of the MLP, see `credence.models.MLP`.
        prior: one of `credence.models.PRIORS`.
        prior_settings: what is different in it, e.g. {"alpha": 4.0}.
        likelihood: auto, normal, student_t, heteroscedastic, heteroscedastic_t, bernoulli or
            categorical.
        dtype: of the convolutions of a residual network: "bfloat16", or None for that of the
            weights.
    """

    network: str = "mlp"
    hidden: tuple[int, ...] = (50,)
    activation: str = "tanh"
    prior: str = "fan_in"
    likelihood: str = "auto"
    prior_settings: Settings = field(default_factory=dict)
    dtype: str | None = None


@dataclass(frozen=True, kw_only=True)
class RowLimits:
    """The most rows to take, drawn at random from the split; None takes all.

    Args:
        others: strangers, where the source has them.
    """

    train: int | None = None
    test: int | None = None
    others: int | None = None


@dataclass(frozen=True, kw_only=True)
class Published:
    """What a paper reports for one method: numbers under the names of our columns."""

    label: str
    values: Settings


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Data and model that all methods share.

    Args:
        model: at all sizes that `models` does not name.
        rows: limits by size; a size that is not named takes all rows.
        models: smaller models by size.
        published: the paper's numbers.
        reasons: why ours may differ from them, one sentence each.
        is_optional: left out, and said so, where the data are not to be had; others fail.
        sources: other data by size.
    """

    name: str
    description: str
    source: Source
    model: ModelSpec
    rows: Mapping[str, RowLimits] = field(default_factory=dict)
    published: tuple[Published, ...] = ()
    reasons: tuple[str, ...] = ()
    is_optional: bool = False
    models: Mapping[str, ModelSpec] = field(default_factory=dict)
    sources: Mapping[str, Source] = field(default_factory=dict)

    def model_at(self, size: str) -> ModelSpec:
        """The model at a size."""
        return self.models.get(size, self.model)

    def source_at(self, size: str) -> Source:
        """The data at a size."""
        return self.sources.get(size, self.source)


@dataclass(frozen=True, kw_only=True)
class MethodSpec:
    """A row of the table: a method of `credence.methods` and its settings.

    Args:
        label: what the table calls it.
        method: a name in `credence.methods.METHODS`, or an import path "package.module:Class".
        settings: at all sizes.
        by_size: what a size changes.
        averaged: average predictions at the test rows as draws come, and keep no network: for those
            that memory does not hold.
        by_problem: what a problem changes, by its name.
    """

    label: str
    method: str
    settings: Settings = field(default_factory=dict)
    by_size: Mapping[str, Settings] = field(default_factory=dict)
    averaged: bool = False
    by_problem: Mapping[str, Settings] = field(default_factory=dict)

    def at(self, size: str, problem: str = "") -> dict[str, Any]:
        """The settings at a size, and of a problem."""
        of_problem = self.by_problem.get(problem, {})
        return {**self.settings, **self.by_size.get(size, {}), **of_problem}


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """Methods on problems, on equal terms.

    Args:
        baseline: label of the method that speed-ups are relative to.
        source: the paper, if there is one.
        reasons: why our numbers may differ from published ones, on all problems.
        num_seeds: by size, how often every cell is repeated with another seed, which moves the
            data too; a size that is not named has one.
    Raises:
        InputError: for no problem or method, a label given twice or with a comma, or an unknown
            baseline.
    """

    name: str
    description: str
    problems: tuple[Problem, ...]
    methods: tuple[MethodSpec, ...]
    baseline: str
    source: str = ""
    reasons: tuple[str, ...] = ()
    num_seeds: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        labels = [method.label for method in self.methods]
        for what, names in (("problem", [p.name for p in self.problems]), ("method", labels)):
            if not names:
                raise InputError(f"The experiment '{self.name}' has no {what}: give at least one.")
            twice = {name for name in names if names.count(name) > 1}
            if twice:
                raise InputError(f"The {what} '{min(twice)}' is given twice: name it once.")
        with_comma = [label for label in labels if "," in label]
        if with_comma:
            raise InputError(
                f"The method '{with_comma[0]}' has a comma, and commas separate methods in a list: "
                "rename it."
            )
        if self.baseline not in labels:
            raise InputError(
                f"The baseline '{self.baseline}' is not among the methods {', '.join(labels)}."
                + did_you_mean(self.baseline, labels)
            )

    def only(self, problems: tuple[str, ...] = (), methods: tuple[str, ...] = ()) -> "Experiment":
        """The part with the named problems and methods (by label or method name); () takes all.

        The baseline stays, whether it is named or not: speed-ups need it.

        Raises:
            InputError: for a name that is not in the experiment.
        """
        kept_problems = chosen("problem", problems, {p.name: p.name for p in self.problems})
        names = {m.method: m.method for m in self.methods} | {
            m.label: m.label for m in self.methods
        }
        kept = chosen("method", methods, names)
        return replace(
            self,
            problems=tuple(p for p in self.problems if p.name in kept_problems),
            methods=tuple(
                m for m in self.methods if {m.label, m.method} & kept or m.label == self.baseline
            ),
        )

    def cells(
        self,
        size: str,
        seed: int = 0,
        max_seconds: float | None = None,
        num_seeds: int | None = None,
    ) -> list["CellSpec"]:
        """Every method on every problem, problem by problem.

        Args:
            seed: the first; repetitions have those that follow. It moves the data too.
            num_seeds: None takes the experiment's own number.
        Raises:
            InputError: for an unknown size.
        """
        check_size(size)
        return [
            CellSpec(
                problem=problem.name,
                source=moved(problem.source_at(size), each),
                model=problem.model_at(size),
                rows=problem.rows.get(size, RowLimits()),
                label=method.label,
                method=method.method,
                settings=method.at(size, problem.name),
                seed=each,
                max_seconds=max_seconds,
                averaged=method.averaged,
            )
            for problem in self.problems
            for method in self.methods
            for each in range(seed, seed + (num_seeds or self.num_seeds.get(size, 1)))
        ]


@dataclass(frozen=True, kw_only=True)
class CellSpec:
    """One method on one problem: all that its result depends on.

    Args:
        seed: of the method; the source has that of its split.
        max_seconds: time budget of the method; what it has drawn by then is judged.
        averaged: as of `MethodSpec`.
    """

    problem: str
    source: Source
    model: ModelSpec
    rows: RowLimits
    label: str
    method: str
    settings: Settings
    seed: int = 0
    max_seconds: float | None = None
    version: str = credence.__version__
    averaged: bool = False

    @property
    def name(self) -> str:
        """Name of its files: for people, with a hash of the whole specification."""
        about = to_json(self)
        if not self.averaged:  # so that finished cells of before are found
            del about["averaged"]
        for name, usual in (("shrink", 1), ("coarse", None), ("group", None)):  # as above
            if about["source"].get(name, "") == usual:
                del about["source"][name]
        if self.model.dtype is None:
            del about["model"]["dtype"]
        text = json.dumps(about, sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()[:10]
        return f"{_slug(self.problem)}--{_slug(self.label)}--{digest}"


@dataclass(frozen=True)
class Outcome:
    """What came of one cell: its result as in its file, done or failed."""

    cell: CellSpec
    result: dict[str, Any]

    @property
    def is_done(self) -> bool:
        """Whether there are numbers, rather than an error."""
        return self.result["status"] == "done"


def to_json(spec: Any) -> Any:
    """A specification as values that JSON knows."""
    if isinstance(spec, tuple):
        return [to_json(item) for item in spec]
    if not hasattr(spec, "__dataclass_fields__"):
        return dict(spec) if isinstance(spec, Mapping) else spec
    fields = {name: to_json(getattr(spec, name)) for name in spec.__dataclass_fields__}
    if isinstance(spec, Problem):
        fields["rows"] = {size: asdict(rows) for size, rows in spec.rows.items()}
        fields["models"] = {size: to_json(model) for size, model in spec.models.items()}
        fields["sources"] = {size: to_json(source) for size, source in spec.sources.items()}
    return {"kind": spec.kind, **fields} if isinstance(spec, Source) else fields


def cell_from_json(content: Mapping[str, Any]) -> CellSpec:
    """The cell that `to_json` described.

    Raises:
        InputError: where entries are missing or unknown.
    """
    try:
        return CellSpec(
            **{
                **content,
                "source": source_from_json(content["source"]),
                "model": _model_from_json(content["model"]),
                "rows": RowLimits(**content["rows"]),
            }
        )
    except (KeyError, TypeError) as error:
        raise InputError(f"This does not describe a cell ({error}).") from error


def _model_from_json(content: Mapping[str, Any]) -> ModelSpec:
    return ModelSpec(**{**content, "hidden": tuple(content["hidden"])})


def check_size(size: str) -> None:
    """Refuse a size that is not one of `SIZES`."""
    if size not in SIZES:
        raise InputError(
            f"Unknown size '{size}': choose one of {', '.join(SIZES)}." + did_you_mean(size, SIZES)
        )


def chosen(what: str, wanted: tuple[str, ...], known: Iterable[str]) -> set[str]:
    """The wanted names, or all; refused where one is unknown."""
    for name in wanted:
        if name not in known:
            raise InputError(
                f"The experiment has no {what} '{name}': choose from {', '.join(known)}."
                + did_you_mean(name, known)
            )
    return set(wanted or known)


def _slug(text: str) -> str:
    """Letters, digits and dashes, for file names."""
    return re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-").lower()[:40] or "x"
