"""An algorithm can be named as a method: settings as a frozen dataclass, and `run`.

An `Algorithm` has settings, and `run` gives something that predicts. Nearly all are a `Method` of
`credence.methods.base`, which samples or trains the posterior it is given.
"""

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from jaxtyping import PRNGKeyArray

from credence.density.posterior import Posterior
from credence.engine.progress import Progress
from credence.ensembles.findings import Finding
from credence.ensembles.predictor import Predictor
from credence.errors import InputError, UnreadSetting, check_numbers

INFINITE = {"inf": np.inf, "-inf": -np.inf}
"""Numbers that JSON does not know, as files spell them."""
USUAL_DRAWS = 1000
"""Draws per chain where nobody has said how many."""


@dataclass(frozen=True, kw_only=True)
class Algorithm(ABC):
    """Base of all that can be named as a method: a frozen dataclass of settings with `run`."""

    name: ClassVar[str]
    """The name by which method="..." chooses it."""
    summary: ClassVar[str]
    """One line for `credence methods`."""
    sources: ClassVar[tuple[str, ...]] = ()
    """The papers that a user should cite: authors, title, year."""
    is_chain: ClassVar[bool] = True
    """Whether draws form Markov chains that leave the posterior (nearly) invariant."""
    prior: ClassVar[str] = "fan_in"
    """The prior of the weights where the caller names none: one of `models.PRIORS`."""
    aliases: ClassVar[Mapping[str, str]] = {}
    """What other methods' names for a setting mean here, e.g. num_draws."""
    findings: ClassVar[tuple[type[Finding], ...]] = ()
    """Kinds of what it learns beside predictions: see `credence.ensembles.findings`."""

    def __post_init__(self) -> None:
        """Settings are numbers where they are declared so; subclasses check their ranges."""
        check_numbers(self)

    @abstractmethod
    def run(
        self,
        key: PRNGKeyArray | int,
        posterior: Posterior,
        *,
        folder: str | Path | None = None,
        progress: Progress | None = None,
        max_seconds: float | None = None,
    ) -> Predictor:
        """Learn from the posterior's data and return what predicts.

        Args:
            key: a key of `jax.random.key`, or an integer seed.
            posterior: what to sample.
            folder: where checkpoints go; a run in the same folder with the same arguments goes on
                where it stopped.
            progress: what shows progress (`credence.engine.progress.RichProgress()`); by default
                nothing does.
            max_seconds: wall-clock budget; what is drawn by then is returned.
        Raises:
            Interrupted: on Ctrl-C before there was a draw.
            StorageError: where a checkpoint cannot be written or read.
        """

    def for_named_model(self) -> "Algorithm":
        """Return what runs where the caller names the model: one that tries several keeps to it."""
        return self

    @classmethod
    def from_settings(cls, settings: dict[str, Any], *, is_saved: bool = False) -> "Algorithm":
        """The algorithm that `dataclasses.asdict` described.

        Args:
            is_saved: by an earlier version, it may be, which kept settings that nothing read; these
                are left out, and otherwise refused.
        """
        words = {key: each for key, each in settings.items() if isinstance(each, str)}
        spelled = {key: INFINITE[word] for key, word in words.items() if word in INFINITE}
        return from_fields(cls, settings | spelled, is_saved=is_saved)

    @classmethod
    def known(cls, **settings: Any) -> dict[str, Any]:
        """Those settings that this method has, under its own names, None left out."""
        names = {field.name for field in dataclasses.fields(cls)}
        named = {cls.aliases.get(name, name): value for name, value in settings.items()}
        return {name: value for name, value in named.items() if name in names and value is not None}

    @classmethod
    def given(cls, **settings: Any) -> dict[str, Any]:
        """Settings under this method's own names; 1000 draws where nobody has said how many.

        Raises:
            InputError: for a setting that this method does not have: none is dropped in silence.
        """
        found = {name: value for name, value in settings.items() if value is not None}
        known = cls.known(**found)
        missing = [name for name in found if cls.aliases.get(name, name) not in known]
        if missing:
            names = ", ".join(field.name for field in dataclasses.fields(cls))
            raise InputError(
                f"The method '{cls.name}' has no {missing[0]}: leave it out, or choose among its "
                f"settings: {names}."
            )
        return cls.known(num_draws=USUAL_DRAWS) | known


def from_fields(cls: type[Any], values: Mapping[str, Any], *, is_saved: bool = False) -> Any:
    """A dataclass from what `dataclasses.asdict` made of it; nested ones are those of defaults.

    Args:
        is_saved: see `Algorithm.from_settings`.
    """
    fields = {field.name: field for field in dataclasses.fields(cls)}
    given = {
        name: from_fields(type(fields[name].default), value, is_saved=is_saved)
        if isinstance(value, dict)
        else _with_tuples(value)
        for name, value in values.items()
    }
    return _of_those_read(cls, given) if is_saved else cls(**given)


def _of_those_read(cls: type[Any], given: dict[str, Any]) -> Any:
    """A dataclass of those settings that something reads."""
    try:
        return cls(**given)
    except UnreadSetting as refused:
        others = {name: value for name, value in given.items() if name != refused.name}
        return _of_those_read(cls, others)


def _with_tuples(value: Any) -> Any:
    """Tuples, where JSON made lists of them."""
    return tuple(map(_with_tuples, value)) if isinstance(value, list) else value
