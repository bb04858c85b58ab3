"""What Credence raises when it must refuse: a sentence that says what was wrong, what was received
and what to do. And what it warns of."""

import dataclasses
import math
import sys
from collections.abc import Collection, Iterable
from difflib import get_close_matches
from numbers import Integral, Real
from types import FrameType, NoneType, UnionType
from typing import Any, get_args


class CredenceError(Exception):
    """Base of every error that Credence raises on purpose."""


class InputError(CredenceError, ValueError):
    """The input cannot be used as it is; the command line ends with status 2."""


class UnreadSetting(InputError):
    """A setting is given that nothing reads, with the others as they are."""

    def __init__(self, sentence: str, name: str = "") -> None:
        super().__init__(sentence)
        self.name = name


class StorageError(CredenceError):
    """A file or folder cannot be written or read; nothing already saved is lost."""

    @classmethod
    def while_writing(cls, path: object, error: OSError) -> "StorageError":
        """The sentence for an operating system's error."""
        return cls(
            f"Could not write {path}: {error.strerror or error}. Choose a folder that you may "
            "write to, or free space. What was saved before is safe."
        )


class Interrupted(CredenceError):
    """The user stopped the run before there was anything to return."""


class OutOfTime(Interrupted):
    """The time budget was spent before there was anything to return."""


class ExtrapolationWarning(UserWarning):
    """Rows to predict for have what no row of training had: predictions there rest on no data."""


class IdentifierWarning(UserWarning):
    """A column of names tells the training rows apart: it says nothing of new rows."""


def level_of_caller() -> int:
    """The `stacklevel` of a warning that points at the first line outside of Credence."""
    frame: FrameType | None = sys._getframe(1)
    level = 1
    while frame is not None and str(frame.f_globals.get("__name__")).startswith("credence."):
        frame, level = frame.f_back, level + 1
    return level


def check_numbers(settings: Any) -> None:
    """Refuse fields of a dataclass that are declared as numbers, or true or false, and are none.

    NumPy's numbers become Python's, which can be written as JSON.
    """
    for field in dataclasses.fields(settings):
        kinds = set(get_args(field.type)) if isinstance(field.type, UnionType) else {field.type}
        value = getattr(settings, field.name)
        if value is None and NoneType in kinds:
            continue
        if kinds <= {bool, NoneType} and type(value).__name__ not in ("bool", "bool_"):
            raise InputError(f"{field.name} must be True or False, got {value!r}.")
        if not kinds <= {int, float, NoneType}:
            continue
        wanted, words = (Real, "a number") if float in kinds else (Integral, "a whole number")
        if isinstance(value, bool) or not isinstance(value, wanted):
            raise InputError(f"{field.name} must be {words}, got {value!r}.")
        if not isinstance(value, int | float):
            plain: Any = value
            plain = float(plain) if float in kinds else int(plain)
            object.__setattr__(settings, field.name, plain)


def refuse_unread(settings: object, reader: str, *names: str) -> None:
    """Refuse settings that are given, and that nothing would read.

    Args:
        settings: a dataclass that has them; one that is its default was left out.
        reader: what reads them, and why that is not there: "of kernel='hmc' and nothing to 'pcn'".
        names: of the settings.
    Raises:
        UnreadSetting: for the first that is given.
    """
    for name in names:
        value = getattr(settings, name)
        if value != getattr(type(settings), name):
            raise UnreadSetting(f"{name}={value} is {reader}: leave it out.", name)


def check_name(what: str, name: str, known: Collection[str]) -> None:
    """Refuse a name that is not among those known.

    Raises:
        InputError: with the names there are.
    """
    if not isinstance(name, str) or name not in known:
        raise InputError(f"Unknown {what} {name!r}: choose one of {', '.join(known)}.")


def check_share(advice: str = "", **shares: float | None) -> None:
    """Refuse shares that are not strictly between 0 and 1 (NaN included), naming the first.

    Args:
        advice: how the sentence ends, with what is usual.
        shares: by name; None is a setting that was left out.
    """
    for name, share in shares.items():
        if share is not None and not 0 < share < 1:
            end = f"; {advice}." if advice else "."
            raise InputError(f"{name} must be strictly between 0 and 1, got {share}{end}")


def require_positive(**values: float | None) -> None:
    """Refuse values that are not > 0 or not finite, naming the first; None was left out."""
    for name, value in values.items():
        if value is not None and not value > 0:
            raise InputError(f"{name} must be > 0, got {value}.")
        if value is not None and not value < math.inf:
            raise InputError(f"{name} must be finite, got {value}.")


def require_counts(**values: Any) -> None:
    """Refuse what is no whole number of at least 1, naming the first."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
            raise InputError(f"{name} must be a whole number of at least 1, got {value!r}.")


def time_limit(max_seconds: float | None) -> float | None:
    """The time budget; None, which is no limit, for an infinite one.

    Raises:
        InputError: unless it is > 0.
    """
    if max_seconds is not None and not max_seconds > 0:
        raise InputError(f"max_seconds must be > 0, got {max_seconds}.")
    return None if max_seconds == math.inf else max_seconds


def check_particles(num_particles: Any) -> None:
    """Refuse a particle alone, or part of one."""
    if not isinstance(num_particles, Integral) or num_particles < 2:
        raise InputError(
            f"Give a whole number of at least 2 particles, got {num_particles!r}: one alone has no "
            "spread, and nobody to interact with."
        )


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """`" Did you mean 'nearest'?"` (with its leading space), or nothing if no candidate is near.

    Upper and lower case count as equal, so `medv` finds `MEDV`.
    """
    by_lower = {candidate.lower(): candidate for candidate in candidates}
    near = get_close_matches(name.lower(), by_lower, n=1, cutoff=0.6)
    return f" Did you mean '{by_lower[near[0]]}'?" if near else ""


def quoted(names: Iterable[object], *, most: int = 8) -> str:
    """`'a', 'b', 'c'`, and after `most` of them `and 12 more`."""
    names = list(names)
    shown = ", ".join(f"'{name}'" for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def plural(number: int, noun: str) -> str:
    """`1 row`, `2 rows`, `1,000 rows`."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
