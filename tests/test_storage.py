"""What is read is checked first: sizes, types, checksums; and one way to say what JSON cannot."""

import json
import math
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict

import numpy as np
import pytest

from credence.errors import StorageError
from credence.schema import build
from credence.storage import (
    atomic_path,
    file_sha256,
    jsonable,
    locked,
    read_arrays,
    read_json,
    remove,
    together,
    write_arrays,
    write_json,
    write_text,
)


def test_json_knows_no_nan_and_no_numpy() -> None:
    value = {"a": (np.float32(0.5), np.nan), "b": [np.int64(3), -math.inf, True, None, "x"]}
    assert jsonable(value) == {"a": [0.5, None], "b": [3, None, True, None, "x"]}
    assert jsonable(value, spell_infinite=True)["b"][1] == "-inf"
    assert jsonable(value, spell_infinite=True)["a"][1] is None
    assert type(jsonable(np.bool_(True))) is bool


def test_nothing_is_written_that_is_refused_when_read(tmp_path: Path) -> None:
    """Half a character, as Python has it of a file name in Latin-1, and too many levels."""
    with pytest.raises(StorageError, match=r"was not written.*not UTF-8, .*donn\\udce9es"):
        write_json(tmp_path / "a.json", {"table": ["donn\udce9es.csv"]})
    nested: Any = 1
    for _ in range(40):
        nested = [nested]
    with pytest.raises(StorageError, match=r"was not written.*nested deeper"):
        write_json(tmp_path / "a.json", {"nested": nested})
    assert not (tmp_path / "a.json").exists()


def test_files_that_belong_together_are_replaced_together_or_not_at_all(tmp_path: Path) -> None:
    first, second, gone = (tmp_path / name for name in ("first", "second", "gone"))
    for path in (first, second, gone):
        write_text(path, "old")

    def fail_at_the_end() -> None:
        with together():
            write_text(first, "new")
            with together():  # of a part, which ends without error
                write_text(second, "new")
                remove(gone)
            raise OSError("No space left on device")

    with pytest.raises(OSError, match="No space"):
        fail_at_the_end()
    assert [path.read_text() for path in (first, second, gone)] == ["old"] * 3
    assert len(list(tmp_path.iterdir())) == 3, "nothing is left behind"
    with together():
        write_text(first, "new")
        digest = file_sha256(first)
        assert first.read_text() == "old"
        remove(gone)
    assert (first.read_text(), second.read_text(), gone.exists()) == ("new", "old", False)
    assert file_sha256(first) == digest


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / "ensemble").mkdir()
    left = [tmp_path / ".a.json.123.part", tmp_path / "ensemble" / ".b.npz.123.part"]
    for path in (*left, tmp_path / "kept.part"):
        path.write_text("half")
    with locked(tmp_path):
        assert not any(path.exists() for path in left)
    assert (tmp_path / "kept.part").exists()


def test_two_writers_of_one_file_do_not_meet(tmp_path: Path) -> None:
    """Threads, or processes of two machines with the same number."""
    path = tmp_path / "a.txt"
    with atomic_path(path) as first, atomic_path(path) as second:
        assert first != second
        first.write_text("first")
        second.write_text("second")
    assert path.read_text() == "first"


class Inner(TypedDict):
    share: float | None
    widths: list[int]


@dataclass(frozen=True)
class Settings:
    hidden: tuple[int, ...]
    name: str = "x"


class Outer(TypedDict):
    settings: Settings
    inner: NotRequired[Inner]
    status: Literal["on", "off"]
    seconds: dict[str, float]


GOOD: dict[str, Any] = {
    "settings": {"hidden": [4, 4]},
    "inner": {"share": 1, "widths": [2]},
    "status": "on",
    "seconds": {"sample": 1.5},
    "unknown": 3,
}


def test_documents_become_what_is_annotated() -> None:
    found = build(Outer, GOOD)
    assert found["settings"] == Settings((4, 4))
    assert found["inner"] == {"share": 1.0, "widths": [2]}
    assert found["unknown"] == 3
    assert "inner" not in build(Outer, {k: v for k, v in GOOD.items() if k != "inner"})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"settings": None}, "settings must be Settings, got None"),
        ({"settings": {"hidden": [4, "4"]}}, r"settings.hidden\[1\] must be int, got '4'"),
        ({"settings": {"hidden": [True]}}, r"settings.hidden\[0\] must be int, got True"),
        ({"settings": {"hidden": [2**63]}}, r"settings.hidden\[0\] must be int"),
        ({"settings": {"hidden": [4], "depth": 3}}, "settings.depth is not known"),
        ({"settings": {}}, "settings.hidden is missing"),
        ({"inner": {"share": "1", "widths": []}}, "inner.share must be float"),
        ({"inner": {"share": None}}, "inner.widths is missing"),
        ({"status": "away"}, "status must be"),
        ({"status": []}, "status must be"),
        ({"seconds": {"sample": None}}, "seconds.sample must be float, got None"),
    ],
)
def test_other_types_are_refused_with_the_name_of_the_entry(
    change: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        build(Outer, GOOD | change)


def test_a_document_is_sealed(tmp_path: Path) -> None:
    path = tmp_path / "outer.json"
    write_json(path, GOOD)
    assert read_json(path, Outer)["settings"] == Settings((4, 4))
    written = json.loads(path.read_text())
    for changed in (
        written | {"status": "off"},
        {k: v for k, v in written.items() if k != "sha256"},
        written | {"format": 1, "status": "off"},
        {k: v for k, v in written.items() if k != "format"} | {"status": "off"},
    ):
        path.write_text(json.dumps(changed))
        with pytest.raises(StorageError, match=r"outer.json .*it has been changed"):
            read_json(path, Outer)
    path.write_text(json.dumps(GOOD))
    assert read_json(path, Outer)["status"] == "on", "format 1 had no checksums"


NO_DOCUMENTS: dict[str, bytes] = {
    "empty": b"",
    "a list": b"[]",
    "half": b"{",
    "no UTF-8": b"\xff\xfe",
    "deep": b'{"a": ' + b"[" * 10**5,
    "nested": json.dumps(GOOD | {"a": json.loads("[" * 99 + "]" * 99)}).encode(),
    "long number": json.dumps(GOOD)[:-1].encode() + b', "a": ' + b"1" * 5000 + b"}",
    "half a character": json.dumps(GOOD | {"a": "\ud800"}).encode(),
}


@pytest.mark.parametrize("content", NO_DOCUMENTS.values(), ids=NO_DOCUMENTS)
def test_what_is_no_document_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "outer.json"
    path.write_bytes(content)
    with pytest.raises(StorageError, match=r"outer.json cannot be read"):
        read_json(path, Outer)


def npy(shape: str, data: bytes, descr: str = "'<f8'") -> bytes:
    """An .npy file with any header."""
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}".encode()
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + data


HOSTILE: dict[str, Callable[[], bytes]] = {
    "sparse": lambda: npy("(10000000000,)", bytes(80)),
    "negative": lambda: npy("(-2, -5)", bytes(80)),
    "objects": lambda: npy("(10,)", bytes(80), "'|O'"),
    "huge items": lambda: npy("(1,)", bytes(80), "'|V2000000000'"),
    "deep header": lambda: npy("-" * 9000 + "1", bytes(80)),
    "nested header": lambda: npy("(" * 4000, bytes(80)),
    "not an array": lambda: b"print('hello')",
    "nothing": lambda: b"",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_arrays_are_refused_before_they_are_allocated(name: str, tmp_path: Path) -> None:
    path = tmp_path / "arrays.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.npy", HOSTILE[name]())
    with pytest.raises(StorageError, match=r"arrays.npz cannot be read"):
        read_arrays(path)


def test_a_packed_bomb_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "arrays.npz"
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("a.npy", "w", force_zip64=True) as file,
    ):
        file.write(npy(f"({2**26},)", b""))
        for _ in range(2**9):
            file.write(bytes(2**20))
    assert path.stat().st_size < 2**20
    with pytest.raises(StorageError, match="declared larger than the file"):
        read_arrays(path)


def test_packed_arrays_of_earlier_versions_are_read(tmp_path: Path) -> None:
    arrays = {"a": np.zeros((300, 300)), "b": np.arange(3)}
    np.savez_compressed(tmp_path / "packed.npz", **arrays)
    write_arrays(tmp_path / "plain.npz", arrays)
    for name in ("packed.npz", "plain.npz"):
        found = read_arrays(tmp_path / name)
        assert found.keys() == arrays.keys()
        np.testing.assert_array_equal(found["b"], arrays["b"])
        np.testing.assert_array_equal(found["a"], arrays["a"])


def test_a_killed_process_keeps_no_folder(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from credence.storage import locked\n"
        "with locked(Path(sys.argv[1])): print('mine', flush=True); time.sleep(600)"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "mine\n"
        with pytest.raises(StorageError, match="is in use"), locked(tmp_path):
            pass
        holder.kill()
        holder.wait()
    with locked(tmp_path):
        pass
