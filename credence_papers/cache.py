"""Results that are there already: one file each, named by a hash of all that it depends on."""

import contextlib
import hashlib
import json
import re
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any

import credence
from credence.compare.runner import Watch
from credence.environment import UNKNOWN_COMMIT, UNKNOWN_MACHINE, machine, source_commit
from credence.storage import write_text


def plain(settings: Any) -> Any:
    """Settings as values that JSON knows, equal for equal settings in every process.

    Of a dataclass: its name and the fields that its comparison looks at, so that a text that
    changes no result is declared with `field(compare=False)`.

    Raises:
        TypeError: for what has no such form, a function inside a function for one.
    """
    if settings is None or isinstance(settings, bool | int | float | str):
        return settings
    if isinstance(settings, Mapping):
        return {str(name): plain(value) for name, value in settings.items()}
    if isinstance(settings, tuple | list):
        return [plain(value) for value in settings]
    if is_dataclass(settings) and not isinstance(settings, type):
        values = {f.name: plain(getattr(settings, f.name)) for f in fields(settings) if f.compare}
        return {"is": type(settings).__name__, **values}
    name = getattr(settings, "__qualname__", "<none>")
    if "<" in name:
        raise TypeError(f"{settings!r} has no plain form: use a dataclass of plain values.")
    return f"{settings.__module__}.{name}"


def digest(settings: Any) -> str:
    """64 hexadecimal digits that stand for the settings: SHA-256."""
    return hashlib.sha256(json.dumps(plain(settings), sort_keys=True).encode()).hexdigest()


def number(settings: Any) -> int:
    """28 bits of the digest, for random keys: no two settings share random numbers."""
    return int(digest(settings)[:7], 16)


PIECES = "runs"
"""The folder of results below that of a study."""


class Cache:
    """The results of a folder.

    Args:
        folder: of the study; the files are below it, in runs/.
        watch: hears how long every new result took.
    """

    def __init__(self, folder: Path, watch: Watch) -> None:
        self.folder, self.watch = folder / PIECES, watch
        self.commits: set[str] = set()
        """Commits that made the results that were asked for."""
        self.machines: set[str] = set()
        """Kinds of machine that did."""

    def path(self, label: str, settings: Any) -> Path:
        """The file in which a result is kept."""
        slug = re.sub(r"[^a-z0-9]+", "-", label.lower()).strip("-")[:60]
        return self.folder / f"{slug}-{digest([settings, credence.__version__])[:16]}.json"

    def kept(
        self, label: str, settings: Any, compute: Callable[[], dict[str, Any]]
    ) -> dict[str, Any]:
        """The result: read if it is there, else computed and written.

        Args:
            label: for people; it also begins the name of the file.
            settings: all that the result depends on, beside Credence's version.
        """
        return self.told(label, settings, compute)[0]

    def told(
        self, label: str, settings: Any, compute: Callable[[], dict[str, Any]]
    ) -> tuple[dict[str, Any], str]:
        """The result, as of `kept`, and the kind of machine that made it."""
        path = self.path(label, settings)
        with contextlib.suppress(OSError, ValueError, KeyError):  # a broken file is run again
            content = json.loads(path.read_text(encoding="utf-8"))
            found = content["result"]
            return found, self._note(content)
        start = time.perf_counter()
        made_by = {"commit": source_commit(), "machine": machine()}
        result = compute()
        content = {"settings": plain(settings), **made_by, "result": result}
        write_text(path, json.dumps(content))
        self.watch.say(f"{label}: {time.perf_counter() - start:.0f} s")
        return json.loads(json.dumps(result)), self._note(made_by)

    def _note(self, content: Mapping[str, str]) -> str:
        """Remember by what a result was made, and say on which kind of machine."""
        self.commits.add(content.get("commit", UNKNOWN_COMMIT))
        made_on = content.get("machine", UNKNOWN_MACHINE)
        self.machines.add(made_on)
        return made_on

    def resumed(
        self, label: str, settings: list[Any], compute: Callable[[Path], dict[str, Any]]
    ) -> dict[str, Any]:
        """The result, as of `kept`, of a run that goes on where it was stopped.

        Args:
            label, settings: as of `kept`.
            compute: is given the folder of the run's checkpoints, which is removed at the end.
        """
        name = digest([*settings, credence.__version__])[:16]
        folder = self.folder.parent / "checkpoints" / name
        found = self.kept(label, settings, partial(compute, folder))
        shutil.rmtree(folder, ignore_errors=True)
        return found
