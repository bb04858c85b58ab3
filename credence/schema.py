"""Data from a JSON document as the types that annotations promise, or an error that says where not.

`build(FitSettings, content)` makes the dataclass; a `TypedDict` stays a dictionary. Nothing but
types is checked here: what values mean is for those who use them.
"""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from typing import (
    Any,
    Literal,
    NotRequired,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

LARGEST_COUNT = 2**63 - 1
"""A whole number beyond it is no count and no seed, and NumPy and JAX cannot hold it."""


def build(kind: Any, value: Any, name: str = "") -> Any:
    """A value of a JSON document as the type `kind`.

    Args:
        kind: a dataclass, a `TypedDict`, or an annotation made of them, plain types, `Literal`,
            unions, lists, tuples and mappings; what is written as a tuple is made one.
        name: of the value in its document, for messages.
    Raises:
        ValueError: where it is not of this type; the sentence names the entry.
    """
    origin, inner = get_origin(kind), get_args(kind)
    if kind is Any or kind is object:
        return value
    if origin is NotRequired:
        return build(inner[0], value, name)
    if origin in (Union, types.UnionType):
        return _one_of(inner, value, name)
    if origin is Literal:
        _require(value in inner and isinstance(value, str), kind, value, name)
        return value
    if is_dataclass(kind) or is_typeddict(kind):
        return _record(kind, value, name)
    if origin in (list, tuple, Sequence):
        _require(isinstance(value, list | tuple), kind, value, name)
        found = [build(inner[0], one, f"{name}[{i}]") for i, one in enumerate(value)]
        return found if origin is list else tuple(found)
    if origin in (dict, Mapping):
        _require(isinstance(value, dict), kind, value, name)
        return {key: build(inner[1], one, _path(name, key)) for key, one in value.items()}
    return _plain(kind, value, name)


def _plain(kind: Any, value: Any, name: str) -> Any:
    """A number, a text, a truth value or nothing; whole numbers are real ones, bools are none."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind is float:
        _require(is_number, kind, value, name)
        return float(value)
    if kind is int:
        _require(is_number and isinstance(value, int), kind, value, name)
        _require(abs(value) <= LARGEST_COUNT, kind, value, name)
        return value
    _require(isinstance(value, kind), kind, value, name)
    return value


def _one_of(kinds: tuple[Any, ...], value: Any, name: str) -> Any:
    """The value as the first of several types that it fits."""
    if value is None and types.NoneType in kinds:
        return None
    kinds = tuple(kind for kind in kinds if kind is not types.NoneType)
    for kind in kinds[:-1]:
        try:
            return build(kind, value, name)
        except ValueError:
            continue
    return build(kinds[-1], value, name)


def _record(kind: Any, value: Any, name: str) -> Any:
    """A dataclass, which knows all its entries, or a `TypedDict`, which may have others."""
    _require(isinstance(value, dict), kind, value, name)
    hints = get_type_hints(kind, include_extras=True)
    if is_dataclass(kind):
        optional = {
            field.name
            for field in fields(kind)
            if not (field.default is MISSING and field.default_factory is MISSING)
        }
        hints = {field.name: hints[field.name] for field in fields(kind) if field.init}
        if unknown := sorted(set(value) - set(hints)):
            raise ValueError(f"{_path(name, unknown[0])} is not known to this version")
    else:
        optional = {key for key, hint in hints.items() if get_origin(hint) is NotRequired}
    if missing := [key for key in hints if key not in value and key not in optional]:
        raise ValueError(f"{_path(name, missing[0])} is missing")
    found = {
        key: build(hints[key], one, _path(name, key)) for key, one in value.items() if key in hints
    }
    return kind(**found) if isinstance(kind, type) and is_dataclass(kind) else {**value, **found}


def _require(holds: bool, kind: Any, value: Any, name: str) -> None:
    if not holds:
        wanted = getattr(kind, "__name__", str(kind)) if not get_args(kind) else str(kind)
        raise ValueError(f"{name or 'the document'} must be {wanted}, got {value!r:.60}")


def _path(name: str, key: str) -> str:
    return f"{name}.{key}" if name else str(key)
