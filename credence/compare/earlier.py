"""Tells what a folder holds already, and whether a run may go on there.

A published experiment is known by its name: parts of it may be run one after the other, at other
sizes and with other seeds. A comparison has no name of its own: it is the one that it was as long
as its report would still show all that is finished, so that methods may be added.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from credence.compare.specs import CellSpec, Experiment, to_json
from credence.errors import InputError

ABOUT = "experiment.json"
COMPARISON = "compare"
"""The name that all comparisons have."""
OTHERWISE = "the seed, the time budget or the version of Credence was another"
"""What makes cells others and is in no description of a comparison."""


def require_same(folder: Path, experiment: Experiment, cells: Sequence[CellSpec]) -> None:
    """Refuse a folder whose report is of another experiment, before it would be replaced.

    Args:
        cells: all that the report would show.
    Raises:
        InputError: it says what is there, what differs, and what to do.
    """
    require_same_name(folder / ABOUT, experiment.name)
    lost = _finished(folder) - {cell.name for cell in cells}
    if experiment.name == COMPARISON and lost:
        told = _told(_read(folder / ABOUT), experiment)
        raise InputError(
            f"{folder} already holds another comparison, and its report would be replaced. {told} "
            "Choose another folder with --out, or delete it; to add methods, name those of before "
            "as well."
        )


def require_same_name(about: Path, name: str) -> None:
    """Refuse a folder that is of an experiment with another name.

    Args:
        about: the file that describes what is in the folder; there may be none.
    Raises:
        InputError: it says which, and what to do.
    """
    earlier = _read(about).get("name", name)
    if earlier != name:
        raise InputError(
            f"{about.parent} already holds the experiment '{earlier}', and its report would be "
            f"replaced by that of '{name}': choose another folder with --out, or delete it."
        )


def _read(about: Path) -> dict[str, Any]:
    """The description of what a folder holds; empty where there is none, or a broken one."""
    with suppress(OSError, ValueError):
        found = json.loads(about.read_text(encoding="utf-8"))
        return found if isinstance(found, dict) else {}
    return {}


def _finished(folder: Path) -> set[str]:
    """Names of the cells that have numbers."""
    return {path.stem for path in (folder / "cells").glob("*.json") if _is_done(path)}


def _is_done(path: Path) -> bool:
    return not path.name.endswith(".spec.json") and _read(path).get("status") == "done"


def _told(earlier: Mapping[str, Any], experiment: Experiment) -> str:
    """Sentences on what the folder holds, and in what it differs."""
    wanted = json.loads(json.dumps(to_json(experiment)))  # as a file gives it back
    try:
        labels = ", ".join(each["label"] for each in earlier["methods"])
        differing = "; ".join(_differences(earlier, wanted)) or OTHERWISE
        return f"It holds: {earlier['description'].rstrip('.')}; {labels}. There {differing}."
    except (KeyError, TypeError, ValueError):
        return f"What it was cannot be read from its {ABOUT}."


def _differences(earlier: Mapping[str, Any], wanted: Mapping[str, Any]) -> Iterator[str]:
    """Say what two comparisons differ in, as far as descriptions tell, part by part."""
    (before,), (now,) = earlier["problems"], wanted["problems"]
    for part in ("source", "model"):
        yield from _changed(before[part], now[part])
    methods = {each["label"]: each["settings"] for each in wanted["methods"]}
    for each in earlier["methods"]:
        if each["label"] in methods:
            yield from _changed(each["settings"], methods[each["label"]], f"{each['label']}.")
        else:
            yield f"{each['label']} was run, too"


def _changed(before: Mapping[str, Any], now: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Say which entries were others, of files only that they have changed."""
    for name in {**before, **now}:
        was, is_now = before.get(name, "the default"), now.get(name, "the default")
        if was != is_now and name == "sha256":
            yield "the file had other contents"
        elif was != is_now:
            yield f"{prefix}{name} was {_text(was)}, not {_text(is_now)}"


def _text(value: Any) -> str:
    """A setting as people write it."""
    return ",".join(map(str, value)) or "none" if isinstance(value, list) else str(value)
