"""Files of JSON and of arrays: written whole or not at all, and checked before they are believed.

Everything Credence stores goes through this module. A file is hostile until it is read: no pickle,
sizes are compared with the file's before anything is allocated, and whatever is wrong with it
becomes a `StorageError` that names it.
"""

import contextlib
import hashlib
import json
import math
import os
import secrets
import stat
import zipfile
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from credence.errors import StorageError
from credence.schema import build

FORMAT = 2
"""The format number of documents and folders. Those of format 1 have no checksums; they still open.
"""

MOST_UNPACKED = 2**28
"""Bytes that a compressed archive, of format 1, may unpack to where its own size is small."""

MOST_EXPANSION = 8
"""How many times its own size a large one may unpack to: real numbers hardly shrink."""

MOST_NESTED = 30
"""Levels of a document."""

TEMPORARY = ".{name}.{writer}.part"
"""A file that is being written, beside the one that it will replace."""

LOCK = ".lock"
"""File by which a process keeps a folder for itself; it stays."""

Document = TypeVar("Document")


def jsonable(value: Any, *, spell_infinite: bool = False) -> Any:
    """The value as JSON knows it: NumPy's numbers are Python's, tuples are lists, NaN is None.

    Args:
        spell_infinite: an infinity is "inf" or "-inf", where it says something that None does not;
            else it is None too.
    """
    if isinstance(value, Mapping):
        return {key: jsonable(each, spell_infinite=spell_infinite) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return [jsonable(each, spell_infinite=spell_infinite) for each in value]
    if isinstance(value, np.generic):
        value = value.item()
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return str(value) if spell_infinite and not math.isnan(value) else None


_PLANNED: ContextVar[dict[Path, Path | None] | None] = ContextVar("planned", default=None)
"""Files to be moved into place together, each with the one that holds its content, or None where
it is to be removed; None where files are moved one by one."""


@contextlib.contextmanager
def together() -> Iterator[None]:
    """Move all files that are written or removed in the block into place when it ends.

    Where it fails, on a full disk say, none is: what was there before stays as it was. Of blocks in
    one another the outermost counts.

    Raises:
        StorageError: where a file cannot be moved.
    """
    if _PLANNED.get() is not None:
        yield
        return
    planned: dict[Path, Path | None] = {}
    token = _PLANNED.set(planned)
    try:
        yield
        for target, content in planned.items():
            _put(target, content)
    finally:
        _PLANNED.reset(token)
        for content in planned.values():
            if content is not None:
                with contextlib.suppress(OSError):
                    content.unlink(missing_ok=True)


def _put(target: Path, content: Path | None) -> None:
    """Move a file into place, or remove what is there."""
    try:
        if content is None:
            target.unlink(missing_ok=True)
        else:
            content.replace(target)
    except OSError as error:
        raise StorageError.while_writing(target, error) from error


def remove(path: Path) -> None:
    """Remove a file, where it is there.

    Raises:
        StorageError: where it cannot be removed.
    """
    planned = _PLANNED.get()
    if planned is None:
        _put(path, None)
    else:
        planned[path.resolve()] = None


@contextlib.contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """A temporary path beside `path`, moved into place when the block ends without an error, or
    with others where they are written `together`.

    A link stays, and the file it leads to is replaced. A replaced file keeps its permissions.

    Raises:
        StorageError: where path is no file, its folder cannot be written or the disk is full; path
            is untouched.
    """
    target, planned = file_to_write(path), _PLANNED.get()
    temporary = _beside(target)
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
        if planned is None:
            temporary.replace(target)
        else:
            planned[target] = temporary
    except OSError as error:
        raise StorageError.while_writing(path, error) from error
    finally:
        if planned is None or target not in planned:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)


def _beside(target: Path) -> Path:
    """A file of this writer alone, which it will put in place of the target."""
    writer = f"{os.getpid()}-{secrets.token_hex(4)}"  # other machines may have the same number
    return target.with_name(TEMPORARY.format(name=target.name, writer=writer))


def require_writable(path: Path) -> None:
    """Refuse a file that cannot be written, before time is spent on what it is to hold.

    Raises:
        StorageError: as `atomic_path`.
    """
    target = file_to_write(path)
    temporary = _beside(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary.touch()
        temporary.unlink()
    except OSError as error:
        raise StorageError.while_writing(path, error) from error


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


@contextlib.contextmanager
def reading(path: Path, *, passes: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """Whatever goes wrong with what a file holds becomes a `StorageError` that names the file.

    Parsers of foreign bytes raise almost anything; too little memory is the only thing that is not
    the file's fault.

    Args:
        passes: errors that are not about the file.
    """
    try:
        yield
    except (StorageError, MemoryError, *passes):
        raise
    except Exception as error:
        missing = "there is no such file" if isinstance(error, FileNotFoundError) else None
        found = missing or " ".join(f"{error}".split()) or type(error).__name__
        raise StorageError(
            f"{path} cannot be read ({found:.200}): restore it, or fit again in a new folder."
        ) from error


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other processes from writing into a folder; the system frees it when a process dies.

    What such a process had begun to write there is removed.

    Raises:
        StorageError: where another process has it, or it cannot be written.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(folder / LOCK)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except Timeout as error:
        raise StorageError(
            f"{folder} is in use: another process is fitting there. Wait until it has ended, or "
            "choose another folder."
        ) from error
    except OSError as error:
        raise StorageError.while_writing(folder, error) from error
    try:
        for path in folder.rglob(TEMPORARY.format(name="*", writer="*")):
            with contextlib.suppress(OSError):
                path.unlink()
        yield
    finally:
        lock.release()


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically (UTF-8)."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a document atomically, with its format and the checksum of what it says.

    Raises:
        StorageError: where it cannot be written, or `read_json` would refuse it.
    """
    content = json.loads(json.dumps(content))
    try:
        _check_content(content)
    except ValueError as error:
        raise StorageError(f"{path} was not written, as it could not be read: {error}.") from error
    seal = {"format": FORMAT, "sha256": _content_sha256(content)}
    write_text(path, json.dumps({**seal, **content}, indent=2))


def read_json(path: Path, kind: type[Document]) -> Document:
    """Read a document that `write_json` wrote, in this format or the one before.

    Args:
        kind: a dataclass or a `TypedDict`, see `schema.build`.
    Raises:
        StorageError: where it is missing, damaged, changed, or of another version.
    """
    with reading(path):
        content = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(content, dict):
            raise ValueError("it does not hold a JSON object")
        _check_content(content)
        number, seal = content.pop("format", 1), content.pop("sha256", None)
        if number not in range(1, FORMAT + 1):
            raise StorageError(
                f"{path} has format {number!r:.60}, written by Credence "
                f"{content.get('credence', 'of another version')!s:.60}; this version reads 1 to "
                f"{FORMAT}: use the version that wrote it, or fit again."
            )
        if (seal is not None or number > 1) and seal != _content_sha256(content):
            raise ValueError("its checksum does not fit: it has been changed")
        return build(kind, content)


def _check_content(content: Mapping[str, Any]) -> None:
    """Refuse what no document of ours holds: too many levels, or halves of characters."""
    _check_nesting(content, MOST_NESTED)
    try:
        json.dumps(content, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        text = error.object[max(error.start - 20, 0) : error.end + 20]
        raise ValueError(f"it holds text that is not UTF-8, {text!a}") from error


def _check_nesting(value: Any, most: int) -> None:
    """Refuse what is nested deeper than any document of ours."""
    if isinstance(value, dict | list):
        if not most:
            raise ValueError(f"it is nested deeper than {MOST_NESTED} levels")
        for each in value.values() if isinstance(value, dict) else value:
            _check_nesting(each, most - 1)


def _content_sha256(content: Any) -> str:
    """SHA-256 of JSON data, however it is laid out."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's bytes, in hex digits; of those that are to be moved there."""
    planned = (_PLANNED.get() or {}).get(path.resolve())
    with (planned or path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def require_sha256(path: Path, digest: str) -> None:
    """Refuse a file with other bytes than those that were written.

    Raises:
        StorageError: where it has changed or is missing.
    """
    with reading(path):
        if file_sha256(path) != digest:
            raise ValueError("its checksum does not fit: it has been changed, or is of another fit")


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays by name into an .npz file, atomically and uncompressed."""
    with atomic_path(path) as temporary, temporary.open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Read an .npz file; what it declares is compared with its size before it is allocated.

    Raises:
        StorageError: where it is missing or damaged, declares more than it holds, or holds objects.
    """
    with reading(path):
        with zipfile.ZipFile(path) as archive:
            _check_sizes(archive, path.stat().st_size)
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}


def require_array(arrays: Mapping[str, np.ndarray], name: str, kinds: str, dimension: int) -> None:
    """Refuse an array that is missing, empty, of other numbers, or of another number of axes.

    Args:
        kinds: of NumPy's numbers, such as "fiu".
    Raises:
        ValueError: where it is one of these.
    """
    array = arrays[name] if name in arrays else np.empty(0, object)
    if array.dtype.kind not in kinds or array.ndim != dimension or not array.size:
        raise ValueError(f"{name} must be {dimension}-dimensional numbers")


def _check_sizes(archive: zipfile.ZipFile, size: int) -> None:
    """Refuse an archive whose arrays are larger than its file can hold."""
    members = archive.infolist()
    is_packed = any(member.compress_type != zipfile.ZIP_STORED for member in members)
    largest = max(MOST_UNPACKED, MOST_EXPANSION * size) if is_packed else size
    if sum(member.file_size for member in members) > largest:
        raise ValueError("its arrays are declared larger than the file")
    for member in members:
        with archive.open(member) as file:
            declared = _declared_bytes(file)
            if declared != member.file_size - file.tell():
                raise ValueError(f"{member.filename} is declared with another size than it has")


def _declared_bytes(file: Any) -> int:
    """Bytes of the array that the header of an .npy file declares; its data come next."""
    major, _ = np.lib.format.read_magic(file)
    read_header = {
        1: np.lib.format.read_array_header_1_0,
        2: np.lib.format.read_array_header_2_0,
    }[major]
    try:
        shape, _, dtype = read_header(file)
    except MemoryError as error:  # so Python's parser calls a header that is nested too deep
        raise ValueError("a header cannot be read") from error
    if dtype.hasobject or any(length < 0 for length in shape):
        raise ValueError(f"an array of {dtype} has shape {shape}")
    return math.prod(shape) * dtype.itemsize
