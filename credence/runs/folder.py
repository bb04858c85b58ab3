"""The RUN folder: manifest.json says what is run on what; it is written first.

manifest.json     settings, versions, seed, data fingerprint, status
metrics.json      scores on the held-out rows
ensemble/         the fitted estimator
evaluation.npz    predictions for the held-out rows (evaluation.json: those worth showing)
report.html       one self-contained page
checkpoint/       only while it runs
"""

import hashlib
import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal

import pandas as pd

import credence
from credence.errors import InputError, StorageError
from credence.storage import write_text

FORMAT = 1
"""Version of the folder's layout."""


@dataclass(frozen=True, kw_only=True)
class FitSettings:
    """What `credence fit` was asked to do."""

    table: str
    target: str
    task: str = "auto"
    categorical: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    method: str = "auto"
    hidden: tuple[int, ...] = (50,)
    max_depth: int | None = None
    activation: str = "tanh"
    prior: str = "auto"
    likelihood: str = "auto"
    num_draws: int = 1000
    num_chains: int | None = None
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
            option = f"--{field.name.replace('_', '-')}"
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

    def write(self, folder: Path) -> None:
        """Write manifest.json atomically."""
        content = {"format": FORMAT, "credence": credence.__version__, **asdict(self)}
        write_text(folder / "manifest.json", json.dumps(content, indent=2))


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a RUN folder.

    Raises:
        InputError: where the folder is not a RUN, or one of another version.
    """
    content = read_json(folder / "manifest.json")
    if content.get("format") != FORMAT:
        raise InputError(
            f"{folder} was written by Credence {content.get('credence', '?')} in format "
            f"{content.get('format')}; this is {credence.__version__} with format {FORMAT}: "
            "use that version, or fit again."
        )
    try:
        settings = dict(content["settings"])
        for name in ("hidden", "categorical", "drop"):
            settings[name] = tuple(settings[name])
        return Manifest(
            FitSettings(**settings),
            content["fingerprint"],
            content["versions"],
            content["status"],
        )
    except (KeyError, TypeError) as error:
        raise InputError(f"{folder}/manifest.json is damaged ({error}): fit again.") from error


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a RUN folder.

    Raises:
        InputError: where the file is missing or not JSON.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise InputError(
            f"{path.parent} is not a finished RUN folder: it has no {path.name}. "
            "Give the folder that `credence fit --out` wrote; `credence resume` finishes one."
        ) from error
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read ({error}): fit again.") from error
    if not isinstance(content, dict):
        raise InputError(f"{path} does not hold what Credence writes: fit again.")
    return content


def claim(folder: Path, manifest: Manifest) -> None:
    """Make a folder the RUN of a manifest.

    Raises:
        InputError: where it holds something else already.
        StorageError: where it cannot be written.
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
    manifest.write(folder)


def require_usable(folder: Path, ours: str) -> None:
    """Refuse a folder to write that is a file, or holds files but not the one named `ours`."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file: give another folder with --out.")
    if folder.exists() and any(folder.iterdir()) and not (folder / ours).exists():
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
