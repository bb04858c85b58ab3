"""Atomic files for arrays: a run killed at any instant leaves a folder that can be resumed.

Arrays go to .npz files (never pickled objects); a file appears whole or not at all.
"""

import contextlib
import hashlib
import json
import os
import stat
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from credence.errors import StorageError


@contextlib.contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """A temporary path beside `path`, moved into place when the block ends without an error.

    A link stays, and the file it leads to is replaced. A replaced file keeps its permissions.

    Raises:
        StorageError: where path is no file, its folder cannot be written or the disk is full; path
            is untouched.
    """
    target = file_to_write(path)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
        if mode is not None:
            temporary.touch(mode=0o600)  # at no moment may others read what they could not before
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        if mode is not None:
            temporary.chmod(mode)
        temporary.replace(target)
    except OSError as error:
        raise StorageError.while_writing(path, error) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def file_to_write(path: Path) -> Path:
    """The file that a path leads to, through links, be it there or not yet.

    Raises:
        StorageError: where a folder, a device, a pipe or a socket is there, or nothing can be.
    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        mode = stat.S_IFREG
    except OSError as error:
        raise StorageError.while_writing(path, error) from error
    if not stat.S_ISREG(mode):
        kinds = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
        kind = kinds.get(stat.S_IFMT(mode), "a device")
        raise StorageError(f"{path} is {kind}, not a file: give the name of a file to write.")
    return path.resolve()


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically (UTF-8)."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's bytes, in hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def claim_folder(folder: Path, identity: Mapping[str, Any]) -> None:
    """Write what the run in a folder is, or refuse where the folder holds a run that differs.

    Args:
        folder: of the run; made if there is none.
        identity: method, settings, key, data, ..., as values that JSON knows.
    Raises:
        StorageError: where a value differs from the folder's, or the folder cannot be used.
    """
    path = folder / "identity.json"
    text = json.dumps(dict(identity), indent=2)
    if not path.exists():
        write_text(path, text)
        return
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise StorageError(f"{path} cannot be read ({error}): delete the run folder.") from error
    given = json.loads(text)
    for name in {**stored, **given}:
        if stored.get(name) != given.get(name):
            raise StorageError(
                f"{folder} holds another run: {name} was {stored.get(name)}, now it is "
                f"{given.get(name)}. Pass the same arguments to go on, or use another folder."
            )


def save_tree(path: Path, tree: Any) -> None:
    """Write the leaves of a pytree; its structure is not stored."""
    leaves = [_to_numpy(leaf) for leaf in jax.tree.leaves(tree)]
    arrays = {f"leaf_{index:04d}": leaf for index, leaf in enumerate(leaves)}
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]


def load_tree(path: Path, like: Any, *, free_axis: int | None = None) -> Any:
    """Read what `save_tree` wrote, in the structure and leaf types of `like`.

    Args:
        free_axis: of all leaves, along which they may be longer or shorter than those of `like`.
    Raises:
        StorageError: where the file does not fit that structure.
    """
    templates, structure = jax.tree.flatten(like)
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            leaves = [arrays[name] for name in sorted(arrays.files)]
    except (OSError, EOFError, ValueError, zipfile.BadZipFile) as error:
        raise StorageError(f"{path} cannot be read ({error}): delete the run folder.") from error
    fits = len(leaves) == len(templates) and all(
        _but(free_axis, leaf.shape) == _but(free_axis, _shape(template))
        for leaf, template in zip(leaves, templates, strict=False)
    )
    if not fits:
        raise StorageError(f"{path} was written by other settings: use another run folder.")
    return structure.unflatten(
        _from_numpy(leaf, template) for leaf, template in zip(leaves, templates, strict=True)
    )


def _to_numpy(leaf: Any) -> np.ndarray:
    return np.asarray(jax.random.key_data(leaf) if _is_key(leaf) else leaf)


def _from_numpy(leaf: np.ndarray, template: Any) -> Any:
    if _is_key(template):
        return jax.random.wrap_key_data(jax.numpy.asarray(leaf))
    return jax.numpy.asarray(leaf) if isinstance(template, jax.Array) else leaf


def _shape(leaf: Any) -> tuple[int, ...]:
    return leaf.shape if isinstance(leaf, jax.ShapeDtypeStruct) else _to_numpy(leaf).shape


def _but(axis: int | None, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape with -1 for one axis."""
    return tuple(-1 if index == axis else size for index, size in enumerate(shape))


def _is_key(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array) and jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key)
