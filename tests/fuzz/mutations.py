"""Ways to spoil a file: (generator, content) -> content; None deletes it."""

import io
import json
import warnings
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np

Rng = np.random.Generator
Spoil = Callable[[Rng, bytes], bytes | None]

VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2, 3.5, 10**10, 2**63, -(10**30), 1e308, -1e-300),
    *(float("nan"), float("inf"), "", "x", "0", "nan", "external", "MLP", "x" * 10_000, "\ud800"),
    *([], {}, [1], [[]], [None], [10**10], {"a": 1}, {"type": "MLP"}, [0.5] * 1000, ["4", 4]),
)
CELLS = (
    *(
        "",
        " ",
        "nan",
        "inf",
        "-inf",
        "1e400",
        "1e15",
        "-",
        "0",
        "1",
        "-1",
        "0.1.2",
        "1,5",
        "é",
        '"',
    ),
    *("2020-01-01", "9" * 400, "Zug", "x" * 5000, "\x00", "\n", "None", "True", ";", "\t", "0x10"),
)
DEEP = 100_000


def pick(rng: Rng, options: Any) -> Any:
    """One of a sequence."""
    return options[int(rng.integers(len(options)))]


def spoil_bytes(rng: Rng, content: bytes) -> bytes | None:
    """Truncated, flipped, cut, grown, emptied or deleted."""
    at, length = int(rng.integers(len(content) + 1)), int(2 ** rng.uniform(0, 10))
    kind = int(rng.integers(8))
    if kind == 0:
        return content[:at]
    if kind in (1, 2):
        changed = bytearray(content)
        for place in rng.integers(len(content), size=1 if kind == 1 else 10) if content else ():
            changed[place] ^= 1 << int(rng.integers(8))
        return bytes(changed)
    if kind == 3:
        return content[:at] + content[at + length :]
    if kind == 4:
        return content[:at] + rng.bytes(length) + content[at:]
    if kind == 5:
        return content[:at] + bytes(length) + content[at + length :]
    if kind == 6:
        return content[:at] + content[max(0, at - length) :]
    return pick(rng, (b"", None, rng.bytes(length), content * 2))


def spoil_json(rng: Rng, content: bytes) -> bytes:
    """One entry deleted, renamed, repeated, or of another value or type; or nested too deep."""
    document = json.loads(content)
    parent, key = pick(rng, list(_places(document)))
    value, kind = parent[key], int(rng.integers(8))
    if kind == 0:
        del parent[key]
    elif kind in (1, 2):
        parent[key] = pick(rng, VALUES)
    elif kind == 3:
        parent[key] = _retyped(value)
    elif kind == 4:
        parent[key] = _moved(rng, value)
    elif kind == 5 and isinstance(parent, dict):
        parent[pick(rng, ("", "x", f"{key}s", "type", "name", "network"))] = parent.pop(key)
    elif kind == 6:
        other, place = pick(rng, list(_places(document)))
        parent[key] = json.loads(json.dumps(other[place]))
    else:
        parent[key] = "@deep@"
    deep = pick(rng, ("[" * DEEP, "[" * DEEP + "]" * DEEP, '{"a":' * 900 + "1" + "}" * 900))
    return json.dumps(document).replace('"@deep@"', deep).encode()


def _places(document: Any) -> Any:
    """Every (container, key) in a document."""
    items = document.items() if isinstance(document, dict) else enumerate(document)
    for key, value in items:
        yield document, key
        if isinstance(value, dict | list):
            yield from _places(value)


def _retyped(value: Any) -> Any:
    """The same as text, a list, a truth value or a real number."""
    if isinstance(value, dict):
        return list(value.items())
    if isinstance(value, list):
        return value[0] if value else {}
    if isinstance(value, str):
        return [value]
    return str(value) if not isinstance(value, int) else float(value)


def _moved(rng: Rng, value: Any) -> Any:
    """A number a little or much larger, a longer or shorter list, another word."""
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, int | float):
        return value * pick(rng, (-1, 2, 1.0001, 1000, 0)) + pick(rng, (0, 1))
    if isinstance(value, str):
        return value[:-1] if len(value) > 1 else value + "x"
    if isinstance(value, list):
        return value + value if rng.random() < 0.5 else value[:-1]
    return {**value, "surplus": 1}


def spoil_arrays(rng: Rng, content: bytes) -> bytes:
    """One array dropped, renamed, of other shape, type or values; or declared larger than it is."""
    with np.load(io.BytesIO(content)) as file:
        arrays = dict(file)
    name, kind = pick(rng, list(arrays)), int(rng.integers(9))
    array = arrays[name]
    if kind == 0:
        del arrays[name]
    elif kind == 1:
        arrays[pick(rng, ("weights", "stat.x", "network.9.kernel", "rhat", "x"))] = arrays.pop(name)
    elif kind == 2:
        arrays[name] = pick(rng, (array.T, array.ravel(), array[None], array[..., None], array[:0]))
    elif kind == 3:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            arrays[name] = array.astype(
                pick(rng, ("f8", "f2", "i4", "?", "U3", "c16", "S2", ">f4"))
            )
    elif kind == 4:
        arrays[name] = np.full_like(array, pick(rng, (0, 1, np.nan, np.inf, 1e30, -1)), float)
    elif kind == 5:
        axis = int(rng.integers(array.ndim)) if array.ndim else 0
        arrays[name] = np.concatenate([np.atleast_1d(array)] * 2, axis)
    elif kind == 6:
        arrays[name] = array + rng.normal(size=array.shape)
    if kind < 7:
        return _packed(arrays, pick(rng, (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)))
    return _packed(arrays, zipfile.ZIP_STORED, hostile=name, shape=pick(rng, SHAPES))


SHAPES = ((10**10,), (2, 20, 10**9), (10**30,), (-1, -8), (0, 10**30), (1,) * 100, (2**62, 4))


def _packed(
    arrays: dict[str, np.ndarray],
    compression: int,
    hostile: str | None = None,
    shape: tuple[int, ...] = (),
) -> bytes:
    """An .npz file, where one array may declare a shape that is not its own."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", compression) as archive:
        for name, array in arrays.items():
            one = io.BytesIO()
            if name == hostile:
                header = {"descr": "<f8", "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_2_0(one, header)
                one.write(array.tobytes())
            else:
                np.save(one, array)
            archive.writestr(f"{name}.npy", one.getvalue())
    return packed.getvalue()


def spoil_netcdf(rng: Rng, content: bytes) -> bytes:
    """One array replaced by one that is sparse, packed or of another type."""
    import h5py

    held = io.BytesIO(content)
    with h5py.File(held, "a") as file:
        name = pick(rng, [name for name in file if "." in name and file[name].ndim > 1])
        kind, shape = int(rng.integers(4)), file[name].shape
        del file[name]
        if kind == 0:
            file.create_dataset(name, shape=(*shape[:2], 10**9), dtype="f4")
        elif kind == 1:
            file.create_dataset(name, shape=(2, 20, 10**6), dtype="f4", chunks=(1, 1, 1000))
        elif kind == 2:
            file.create_dataset(name, data=np.zeros(shape), compression="gzip")
        else:
            file.create_dataset(name, data=np.zeros(shape, pick(rng, ("i8", "f8", "S4", "?"))))
    return held.getvalue()


def spoil_table(rng: Rng, content: bytes) -> bytes:
    """Cells, rows or columns of a CSV file replaced, repeated or left out."""
    rows = [line.split(",") for line in content.decode().splitlines()]
    for _ in range(int(2 ** rng.uniform(0, 5))):
        row, kind = int(rng.integers(len(rows))), int(rng.integers(10))
        column = int(rng.integers(len(rows[0])))
        if kind < 6:
            rows[row][column % len(rows[row])] = pick(rng, CELLS)
        elif kind == 6:
            for each in rows[1:]:
                each[column % len(each)] = pick(rng, CELLS)
        elif kind == 7 and len(rows) > 1:
            del rows[row]
        elif kind == 8:
            rows.insert(row, list(rows[row]))
        elif kind == 9:
            for each in rows:
                each.append(each[column % len(each)])
    end = pick(rng, ("\n", "\r\n", "\r"))
    return end.join(pick(rng, (",", ",", ",", ";")).join(row) for row in rows).encode()
