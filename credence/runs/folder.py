"""The RUN folder: manifest.json says what is run on what; it is written first.

manifest.json     settings, versions, seed, data fingerprint, status, checksums of all files
metrics.json      scores on the held-out rows
ensemble/         the fitted estimator
evaluation.npz    predictions for the held-out rows (evaluation.json: those worth showing)
report.html       one self-contained page
checkpoint/       only while it runs
.lock             kept by the process that writes here
"""

import dataclasses
import hashlib
import shutil
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, TypedDict

import pandas as pd

import credence
from credence.errors import InputError, StorageError
from credence.schema import build
from credence.storage import LOCK, file_sha256, read_json, reading, require_sha256, write_json

FILES = ("metrics.json", "evaluation.json", "evaluation.npz", "ensemble/estimator.json")
"""Names of files of a folder with a result, beside those of the ensemble; report.html is written
from them."""


def ensemble_files(folder: Path, *endings: str) -> tuple[str, ...]:
    """Names of the files of a run's networks; a stack has a folder for every part.

    Args:
        endings: of the names; both ".json" and ".npz" by default.
    """
    kinds = endings or (".json", ".npz")
    found = sorted(path for path in (folder / "ensemble").rglob("*") if path.suffix in kinds)
    names = (path.relative_to(folder).as_posix() for path in found)
    return tuple(name for name in names if name not in FILES)


OPTIONS = {"method_settings": "set"}
"""Options of `credence fit` that are not called as their setting."""


@dataclass(frozen=True, kw_only=True)
class FitSettings:
    """What `credence fit` was asked to do."""

    table: str
    target: str
    task: str = "auto"
    categorical: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    method: str = "auto"
    method_settings: tuple[str, ...] = ()
    """NAME=VALUE each, for the method that is named."""
    hidden: tuple[int, ...] | None = None
    """Widths of the hidden layers; None leaves them to the method."""
    activation: str = "tanh"
    prior: str = "auto"
    likelihood: str = "auto"
    num_draws: int | None = None
    num_chains: int | None = None
    group: str | None = None
    """Column that says which rows belong together; the networks do not see it."""
    test_fraction: float = 0.2
    max_seconds: float | None = None
    seed: int = 0

    @property
    def command(self) -> str:
        """The command line that repeats the run."""
        words = ["credence", "fit", _quote(self.table), "--target", _quote(self.target)]
        for field in fields(self)[2:]:
            value = getattr(self, field.name)
            if value == field.default:
                continue
            option = f"--{OPTIONS.get(field.name, field.name).replace('_', '-')}"
            if field.name == "hidden":
                value = ",".join(map(str, value)) or "0"
            for one in value if isinstance(value, tuple) else (value,):
                words += [option, _quote(str(one))]
        return " ".join(words)


@dataclass(frozen=True)
class Manifest:
    """What manifest.json holds."""

    settings: FitSettings
    fingerprint: str
    """SHA-256 of the table's values."""
    versions: dict[str, str]
    status: Literal["running", "interrupted", "done"] = "running"
    checksums: dict[str, str] = dataclasses.field(default_factory=dict)
    """SHA-256 of all files, once there is a result; folders of format 1 have none."""
    credence: str = credence.__version__
    table_path: str = ""
    """The table's file from the root on; empty for a data set, and in older folders."""

    @property
    def located(self) -> FitSettings:
        """The settings with the table's file where it was, if it is there still."""
        is_there = self.table_path and Path(self.table_path).is_file()
        return replace(self.settings, table=self.table_path) if is_there else self.settings

    def write(self, folder: Path) -> None:
        """Write manifest.json atomically."""
        write_json(folder / "manifest.json", asdict(self))

    def started(self) -> "Manifest":
        """The manifest while files are written."""
        return replace(self, status="running", checksums={})

    def ended(self, folder: Path, status: Literal["interrupted", "done"]) -> "Manifest":
        """The manifest of the files that the folder now holds."""
        names = (*FILES, *ensemble_files(folder))
        checksums = {name: file_sha256(folder / name) for name in names}
        return replace(self, status=status, checksums=checksums)

    def require_files(self, folder: Path, *names: str) -> None:
        """Refuse files with other bytes than those that were written with this manifest.

        Raises:
            StorageError: where one has changed, or is missing.
        """
        if not self.checksums and self.status == "done":
            self._require_format_1(folder)
        for name in names if self.checksums else ():
            require_sha256(folder / name, self.checksums.get(name, "none"))

    def _require_format_1(self, folder: Path) -> None:
        """Refuse a manifest without checksums beside files that came when there were checksums."""
        with reading(folder / "manifest.json"):
            if ensemble_files(folder, ".npz"):
                raise ValueError("it has no checksums, and is of another folder than its ensemble")


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a RUN folder.

    Raises:
        InputError: where the folder is not a RUN.
        StorageError: where the manifest is damaged, or of another version.
    """
    path = folder / "manifest.json"
    require_file(path)
    content = read_json(path, _Document)
    with reading(path):
        return build(Manifest, _as_today(content))


class _Document(TypedDict):
    """The manifest of any version."""

    settings: dict[str, Any]


def _as_today(content: _Document) -> _Document:
    """A manifest with what version 0.1.0 knew of one method among that method's settings."""
    settings = dict(content["settings"])
    if (depth := settings.pop("max_depth", None)) is not None:
        settings["method_settings"] = [*settings.get("method_settings", ()), f"max_depth={depth}"]
    return {**content, "settings": settings}


def require_file(path: Path) -> None:
    """Refuse a folder that lacks a file.

    Raises:
        InputError: it is not a finished RUN.
    """
    if not path.parent.exists():
        raise InputError(f"There is no folder {path.parent}: give one that `credence fit` wrote.")
    if not path.exists():
        raise InputError(
            f"{path.parent} is not a finished RUN folder: it has no {path.name}. "
            "Give the folder that `credence fit --out` wrote; `credence resume` finishes one."
        )


def claim(folder: Path, manifest: Manifest) -> None:
    """Make a folder the RUN of a manifest.

    Raises:
        InputError: where it holds something else already.
        StorageError: where it cannot be written.
    """
    require_free(folder)
    manifest.write(folder)


def require_free(folder: Path) -> None:
    """Refuse a folder that holds a run, or anything else.

    Raises:
        InputError: with what to do about it.
    """
    require_usable(folder, "manifest.json")
    if (folder / "manifest.json").exists():
        earlier = read_manifest(folder)
        hint = (
            "choose another folder with --out, or delete it"
            if earlier.status == "done"
            else f"`credence resume {folder}` finishes it, or choose another folder with --out"
        )
        raise InputError(f"{folder} already holds a run ({earlier.status}): {hint}.")


def release(folder: Path) -> None:
    """Undo `claim`, where a method refuses what it was given: the next try finds a free folder."""
    (folder / "manifest.json").unlink(missing_ok=True)
    shutil.rmtree(folder / "checkpoint", ignore_errors=True)


def require_usable(folder: Path, ours: str, kept: str = "") -> None:
    """Refuse a folder to write that is a file, or holds files but not the one named `ours`.

    Args:
        kept: the name of what may lie there alone: finished pieces to go on with.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file: give another folder with --out.")
    others = folder.exists() and any(path.name not in (LOCK, kept) for path in folder.iterdir())
    if others and not (folder / ours).exists():
        raise InputError(f"{folder} holds other files: give a new folder with --out.")


def table_fingerprint(frame: pd.DataFrame) -> str:
    """SHA-256 of a table's column names and values, first 16 hex digits."""
    digest = hashlib.sha256("\x1f".join(map(str, frame.columns)).encode())
    digest.update(pd.util.hash_pandas_object(frame, index=False).to_numpy().tobytes())
    return digest.hexdigest()[:16]


def require_same_table(manifest: Manifest, fingerprint: str) -> None:
    """Refuse to resume on another table.

    Raises:
        StorageError: where the fingerprints differ.
    """
    if fingerprint != manifest.fingerprint:
        raise StorageError(
            f"{manifest.settings.table} has changed since the run began: restore it, or fit anew "
            "into another folder."
        )


def _quote(word: str) -> str:
    import shlex

    return shlex.quote(word)
