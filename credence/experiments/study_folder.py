"""Folders and summaries of studies: claimed, results kept, begun alike."""

import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import credence
from credence.runs.folder import require_usable
from credence.storage import write_text


class Described(Protocol):
    """A study or an experiment, as far as a summary begins with it."""

    @property
    def name(self) -> str: ...

    @property
    def description(self) -> str: ...

    @property
    def source(self) -> str: ...


def claimed(
    out: str | Path, about: str, study: Described, *, size: str, seed: int, **more: Any
) -> Path:
    """The study's folder, new or that of an earlier run; its file `about` says what is run.

    Raises:
        InputError: where the folder is not usable.
    """
    folder = Path(out)
    require_usable(folder, about)
    said = {"name": study.name, "size": size, "seed": seed, **more}
    write_text(folder / about, json.dumps(said, indent=2 if more else None))
    return folder


def kept(
    folder: Path, key: str, compute: Callable[[], dict[str, Any]], prefix: str = ""
) -> dict[str, Any]:
    """A result: read if it is there, else computed and written.

    Args:
        key: all that the result depends on; its `digest` names the file.
        prefix: of the file's name.
    """
    path = folder / f"{prefix}{digest(key):08x}.json"
    if path.exists():
        return json.loads(path.read_text(encoding="utf-8"))
    found = compute()
    write_text(path, json.dumps(found, allow_nan=False))
    return found


def digest(key: str) -> int:
    """32 bits of a text and of Credence's version."""
    return zlib.crc32(f"{key} {credence.__version__}".encode())


def heading(study: Described, *, size: str, seed: int) -> dict[str, Any]:
    """How a summary begins."""
    return {
        "experiment": study.name,
        "description": study.description,
        "source": study.source,
        "size": size,
        "seed": seed,
    }
