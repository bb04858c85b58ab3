"""The settings of a method by name: what there is, and values that people write as text."""

import dataclasses
import inspect
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, get_type_hints

from credence.errors import InputError, did_you_mean
from credence.methods.algorithm import INFINITE, Algorithm
from credence.schema import build


class Setting(NamedTuple):
    """One setting of a method; those of a nested part have a dot: `training.max_epochs`."""

    name: str
    default: Any
    kind: Any
    """The type that its value has."""
    meaning: str
    """Text of the docstring on the setting; empty where it says nothing."""


def settings_of(method: type[Algorithm]) -> tuple[Setting, ...]:
    """List the settings of a method, those of its parts included.

    Args:
        method: a class of `METHODS`.
    """
    return tuple(_settings(method, ""))


def usual_value(method: type[Algorithm], setting: Setting) -> Any:
    """The value where nobody sets one and the method is asked for by its name."""
    return method.given().get(setting.name, setting.default)


def default_text(method: type[Algorithm], setting: Setting) -> str:
    """The default for a listing: of the method by its name, and of its class where that differs."""
    usual = usual_value(method, setting)
    return str(usual) if usual == setting.default else f"{usual} (class: {setting.default})"


def _settings(owner: Any, prefix: str) -> Iterator[Setting]:
    """Settings of a class, or of a part with the values that it has by default."""
    kind = owner if isinstance(owner, type) else type(owner)
    meanings, hints = _meanings(kind), get_type_hints(kind)
    for field in dataclasses.fields(owner):
        if not field.init:
            continue
        default, name = _default(owner, field), prefix + field.name
        yield Setting(name, default, hints[field.name], meanings.get(field.name, ""))
        if dataclasses.is_dataclass(default):
            yield from _settings(default, f"{name}.")


def _default(owner: Any, field: "dataclasses.Field[Any]") -> Any:
    """The value where nobody sets one."""
    if not isinstance(owner, type):
        return getattr(owner, field.name)
    makes = field.default_factory
    return field.default if makes is dataclasses.MISSING else makes()


def _meanings(owner: type[Any]) -> dict[str, str]:
    """What the `Args` of a class and of its bases say, the class's own words first."""
    found: dict[str, str] = {}
    for each in reversed(owner.__mro__):
        text = inspect.cleandoc(each.__dict__.get("__doc__") or "")
        for part in re.findall(r"^Args[^\n]*:\n((?:[ \n][^\n]*\n?)*)", text, re.MULTILINE):
            entries = re.findall(r"^    (\w[\w, ]*): (.+(?:\n(?:     +.*)?$)*)", part, re.MULTILINE)
            for names, meaning in entries:
                sentence = " ".join(meaning.split())
                found |= dict.fromkeys((name.strip() for name in names.split(",")), sentence)
    return found


def with_settings(method: type[Algorithm], texts: Sequence[str], **usual: Any) -> Algorithm:
    """Build a method from settings written as text.

    Args:
        method: a class of `METHODS`.
        texts: NAME=VALUE each. A value is read as JSON (`0.5`, `true`, `null`, `[16, 16]`), else
            as a word; a list may be written with commas alone.
        usual: settings by keyword, which the texts override.
    Raises:
        InputError: for a name that the method does not have, or a value of another type.
    """
    known = {setting.name: setting for setting in settings_of(method)}
    told: dict[str, dict[str, Any]] = {"": dict(usual)}
    for text in texts:
        name, equals, written = text.partition("=")
        if not equals:
            raise InputError(f"--set takes NAME=VALUE, got '{text}': try --set {name}=VALUE.")
        if name not in known:
            raise InputError(
                f"The method '{method.name}' has no setting '{name}': "
                f"`credence methods {method.name}` lists them." + did_you_mean(name, known)
            )
        owner, _, inner = name.rpartition(".")
        told = {part: values for part, values in told.items() if not _is_in(part, name)}
        told.setdefault(owner, {})[inner] = _read(known[name], written)
    return method(**_whole(told, known))


def shared_out(
    methods: Mapping[str, type[Algorithm]], texts: Sequence[str]
) -> dict[str, list[str]]:
    """Share settings written as text among several methods.

    Args:
        methods: by name.
        texts: NAME=VALUE for all methods that have the setting, METHOD.NAME=VALUE for one.
    Returns:
        What `with_settings` takes for every method. A setting for one method alone comes last, so
        that it wins.
    Raises:
        InputError: for a setting that none of the methods has.
    """
    common: dict[str, list[str]] = {name: [] for name in methods}
    own: dict[str, list[str]] = {name: [] for name in methods}
    known = {name: [one.name for one in settings_of(method)] for name, method in methods.items()}
    for text in texts:
        setting = text.partition("=")[0]
        owner, dot, _ = setting.partition(".")
        if dot and owner in methods:
            own[owner].append(text.removeprefix(f"{owner}."))
            continue
        takers = [name for name in methods if setting in known[name]]
        if not takers:
            raise InputError(_why_not(setting, known))
        for name in takers:
            common[name].append(text)
    return {name: common[name] + own[name] for name in methods}


def _why_not(setting: str, known: Mapping[str, Sequence[str]]) -> str:
    """The sentence for a setting that none of the methods has."""
    names = {name for settings in known.values() for name in settings}
    names |= {f"{method}.{name}" for method, settings in known.items() for name in settings}
    return (
        f"None of the methods {', '.join(known)} has a setting '{setting}': `credence methods "
        "NAME` lists them, and METHOD.NAME=VALUE sets one of a single method."
    ) + did_you_mean(setting, sorted(names))


def _is_in(part: str, name: str) -> bool:
    """Whether a part is the one of that name, or within it."""
    return part == name or part.startswith(f"{name}.")


def _whole(told: dict[str, dict[str, Any]], known: dict[str, Setting]) -> dict[str, Any]:
    """The settings of the method itself, its parts changed by all that is told of them at once.

    Args:
        told: by the name of the part, "" for the method; what one setting of a part says may only
            make sense with another.
    """
    for part in sorted(known, key=lambda name: -name.count(".")):
        if part not in told:
            continue
        owner, _, inner = part.rpartition(".")
        of_owner = told.setdefault(owner, {})
        before = of_owner.get(inner, known[part].default)
        of_owner[inner] = dataclasses.replace(before, **told[part])
    return told[""]


def _read(setting: Setting, written: str) -> Any:
    """The value that a text stands for, as the type of its setting."""
    candidates: list[Any] = [written]
    if written:
        listed = [_json(word.strip()) for word in written.split(",") if word.strip()]
        rest = [listed, written] if "," in written else [written, listed]
        candidates = [_json(written), *rest]
    for candidate in candidates:
        try:
            return build(setting.kind, candidate, setting.name)
        except ValueError:
            continue
    raise InputError(
        f"--set {setting.name}={written}: it is {_kind_name(setting.kind)}, by default "
        f"{setting.default!r}."
    )


def _json(text: str) -> Any:
    """A JSON value, None and infinite numbers in Python's own words, or the text itself."""
    if text in INFINITE:
        return INFINITE[text]
    try:
        return json.loads("null" if text == "None" else text)
    except ValueError:
        return text


def _kind_name(kind: Any) -> str:
    """A type as people read it."""
    names = {int: "a whole number", float: "a number", bool: "true or false", str: "a word"}
    return names.get(kind, str(kind).replace("credence.", ""))
