"""Stacks on disk: stack.json beside a folder for each part. Loading runs no code."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import numpy as np
from jaxtyping import Float

from credence.ensembles.candidate import Candidate
from credence.ensembles.diagnostics.cost import Cost
from credence.ensembles.diagnostics.recalibration import TEMPERATURES
from credence.ensembles.ensemble import Ensemble
from credence.ensembles.provenance import Provenance
from credence.ensembles.saved import NOTHING_GIVEN, Given, read_ensemble, remove_ensemble
from credence.ensembles.scores import check_rows
from credence.storage import (
    file_sha256,
    read_arrays,
    read_json,
    reading,
    require_array,
    require_sha256,
    together,
    write_arrays,
    write_json,
)

LEFT_OUT = "left_out.npz"


class StackParts(TypedDict):
    """The parts of a stack; see `Stack`."""

    parts: tuple[Ensemble, ...]
    part_weights: Float[np.ndarray, " part"]
    cost: Cost
    provenance: Provenance
    candidates: tuple[Candidate, ...]
    num_rows: int
    mean_weights: Float[np.ndarray, " part"] | None
    shape: float
    temperature: float
    left_out: Mapping[str, np.ndarray] | None
    left_out_shape: float


class StackDocument(TypedDict):
    """The entries of stack.json."""

    weights: list[float]
    mean_weights: NotRequired[list[float] | None]
    shape: NotRequired[float]
    left_out_shape: NotRequired[float]
    temperature: NotRequired[float]
    left_out_sha256: NotRequired[str | None]
    parts_sha256: list[str]
    cost: Cost
    provenance: Provenance
    candidates: list[Candidate]
    num_rows: int


def write_stack(folder: Path, stack: StackParts) -> None:
    """Write stack.json, and each part into a folder of its own beside it.

    An ensemble that was saved in the folder before is removed.

    Raises:
        StorageError: where the folder cannot be written or the disk is full.
    """
    with together():
        for index, part in enumerate(stack["parts"]):
            part.save(folder / f"part_{index}")
        if stack["left_out"] is not None:
            write_arrays(folder / LEFT_OUT, stack["left_out"])
        write_json(folder / "stack.json", _document(folder, stack))
        remove_ensemble(folder)


def _document(folder: Path, stack: StackParts) -> dict[str, Any]:
    """What stack.json says of a stack, whose parts and left-out rows are written."""
    of_means = stack["mean_weights"]
    return {
        "weights": np.asarray(stack["part_weights"], float).tolist(),
        "mean_weights": None if of_means is None else of_means.tolist(),
        "shape": stack["shape"],
        "left_out_shape": stack["left_out_shape"],
        "temperature": stack["temperature"],
        "left_out_sha256": None if stack["left_out"] is None else file_sha256(folder / LEFT_OUT),
        "parts_sha256": [
            file_sha256(folder / f"part_{index}" / "ensemble.json")
            for index in range(len(stack["parts"]))
        ],
        "cost": stack["cost"].to_dict(),
        "provenance": stack["provenance"].to_json(),
        "candidates": [asdict(candidate) for candidate in stack["candidates"]],
        "num_rows": stack["num_rows"],
    }


def read_stack(folder: Path, given: Given = NOTHING_GIVEN) -> StackParts:
    """Read what `write_stack` wrote; nothing in the files is executed.

    Args:
        given: what models of parts have that is not Credence's own.
    Raises:
        StorageError: where files are missing, broken or of another version.
        InputError: where some of it is needed but not given, or is another one.
    """
    path = folder / "stack.json"
    document = read_json(path, StackDocument)
    with reading(path):
        weights, mean_weights = _weights_of(document)
    for index, digest in enumerate(document["parts_sha256"]):
        require_sha256(folder / f"part_{index}" / "ensemble.json", digest)
    folders = [folder / f"part_{i}" for i in range(len(weights))]
    parts = tuple(Ensemble(**read_ensemble(each, given)) for each in folders)
    shape, temperature = document.get("shape", 1.0), document.get("temperature", 1.0)
    left_out_shape = document.get("left_out_shape", shape)
    with reading(path):
        _check_change((shape, left_out_shape), temperature, parts[0])
    left_out = None
    if digest := document.get("left_out_sha256"):
        left_out = _read_left_out(folder / LEFT_OUT, digest, parts[0])
    return StackParts(
        parts=parts,
        part_weights=weights,
        cost=document["cost"],
        provenance=document["provenance"],
        candidates=tuple(document["candidates"]),
        num_rows=document["num_rows"],
        mean_weights=mean_weights,
        shape=shape,
        temperature=temperature,
        left_out=left_out,
        left_out_shape=left_out_shape,
    )


def _weights_of(document: StackDocument) -> tuple[np.ndarray, np.ndarray | None]:
    """Weights of the parts, and those of their means.

    Raises:
        ValueError: for what are no weights, or not one a part.
    """
    num_parts = len(document["parts_sha256"])

    def checked(entry: list[float]) -> np.ndarray:
        found = np.asarray(entry, float)
        if not len(found) or not (found >= 0).all() or abs(found.sum() - 1) > 1e-6:
            raise ValueError(f"weights {found} are not >= 0 with sum one")
        if len(found) != num_parts:
            raise ValueError(f"{num_parts} checksums of {len(found)} parts")
        return found

    of_means = document.get("mean_weights")
    return checked(document["weights"]), None if of_means is None else checked(of_means)


def _check_change(shapes: tuple[float, ...], temperature: float, part: Ensemble) -> None:
    """Refuse shapes and a temperature that no stack of such parts has.

    Raises:
        ValueError: naming what is wrong.
    """
    for shape in shapes:
        if not shape >= 1 or (shape > 1 and part.num_predicted > 1):
            raise ValueError(f"shape {shape} is not 1, nor larger for one target")
    least = TEMPERATURES[0] if part.is_classifier else 1.0
    if not least <= temperature <= 1:
        raise ValueError(f"temperature {temperature} is not 1, nor smaller for labels")


def _read_left_out(path: Path, digest: str, part: Ensemble) -> dict[str, np.ndarray]:
    """Read what the parts predict of rows that they had not seen."""
    require_sha256(path, digest)
    left_out = read_arrays(path)
    with reading(path):
        check_rows(left_out, "classification" if part.is_classifier else "regression")
        require_array(left_out, "log_prob", "f", 1)
    return left_out
