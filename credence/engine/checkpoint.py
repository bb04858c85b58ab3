"""What a run leaves as it goes: killed at any instant, its folder can be resumed.

Arrays go to .npz files (never pickled objects); a file appears whole or not at all.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from credence.errors import StorageError
from credence.schema import build
from credence.storage import read_arrays, reading, write_arrays, write_text


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
    with reading(path):
        stored = dict(json.loads(path.read_text(encoding="utf-8")))
    given = json.loads(text)
    for name in {**stored, **given}:
        if stored.get(name) != given.get(name):
            raise StorageError(
                f"{folder} holds another run: {name} was {stored.get(name)}, now it is "
                f"{given.get(name)}. Pass the same arguments to go on, or use another folder."
            )


def kept_decision(path: Path, kind: Any, decide: Callable[[], Any]) -> Any:
    """Read a decision from its file, or make and write it: a JSON value of a type.

    Raises:
        StorageError: where the file cannot be written or read.
    """
    if not path.exists():
        write_text(path, json.dumps(decide()))
    with reading(path):
        return build(kind, json.loads(path.read_text(encoding="utf-8")))


def save_tree(path: Path, tree: Any) -> None:
    """Write the leaves of a pytree; its structure is not stored."""
    leaves = [_to_numpy(leaf) for leaf in jax.tree.leaves(tree)]
    write_arrays(path, {f"leaf_{index:04d}": leaf for index, leaf in enumerate(leaves)})


def load_tree(path: Path, like: Any, *, free_axis: int | None = None) -> Any:
    """Read what `save_tree` wrote, in the structure and leaf types of `like`.

    Args:
        free_axis: of all leaves, along which they may be longer or shorter than those of `like`.
    Raises:
        StorageError: where the file cannot be read, or does not fit that structure.
    """
    templates, structure = jax.tree.flatten(like)
    arrays = read_arrays(path)
    leaves = [arrays[name] for name in sorted(arrays)]
    fits = len(leaves) == len(templates) and all(
        _but(free_axis, leaf.shape) == _but(free_axis, _shape(template))
        for leaf, template in zip(leaves, templates, strict=False)
    )
    if not fits:
        raise StorageError(
            f"{path} was written by other settings, or by another version of Credence: use another "
            "run folder."
        )
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
