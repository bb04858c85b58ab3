"""Simulated data sets larger than memory, written to disk in chunks.

The recipes are those of scikit-learn's `make_regression` and `make_classification` (Guyon, "Design
of experiments of the NIPS 2003 variable selection benchmark", 2003), whose own functions hold all
rows in memory. A folder has x.npy (point, feature) and y.npy in single precision or int32, and
made.json: the recipe and how many chunks are written. Each chunk has a random stream of its own, so
that a run that was stopped goes on, and the same seed gives the same bytes.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from credence.density.stored_rows import StoredRows, open_rows
from credence.errors import InputError, StorageError
from credence.storage import write_text

CHUNK_ROWS = 10_000
"""Rows of a random stream: another number would be another data set."""
FORMAT = 1


class OnDisk(NamedTuple):
    """A data set whose inputs stay on disk."""

    x: StoredRows
    """(point, feature), for `Posterior` as it is; x[:1000] reads rows."""
    y: Float[np.ndarray, " point"] | Int[np.ndarray, " point"]
    """The targets or labels, which are in memory."""
    about: dict[str, Any]
    """The recipe by which the data set was made."""


@dataclass(frozen=True, kw_only=True)
class Regression:
    """y = x . coefficients + noise, x ~ N(0, I); see `make_regression`."""

    num_rows: int
    num_features: int
    num_informative: int
    noise_std: float
    seed: int

    def parts(self) -> Callable[[np.random.Generator, int], tuple[np.ndarray, np.ndarray]]:
        """(random stream, rows) -> x, y of a chunk."""
        rng = np.random.default_rng([self.seed, 0])
        coefficients = np.zeros(self.num_features, np.float32)
        chosen = rng.permutation(self.num_features)[: self.num_informative]
        coefficients[chosen] = 100 * rng.uniform(size=self.num_informative)

        def chunk(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
            x = rng.standard_normal((count, self.num_features), np.float32)
            noise = rng.standard_normal(count, np.float32)
            return x, x @ coefficients + np.float32(self.noise_std) * noise

        return chunk


@dataclass(frozen=True, kw_only=True)
class Classification:
    """Clusters at corners of a hypercube, dealt to the classes; see `make_classification`."""

    num_rows: int
    num_features: int
    num_informative: int
    num_redundant: int
    num_classes: int
    clusters_per_class: int
    separation: float
    flipped: float
    seed: int

    def parts(self) -> Callable[[np.random.Generator, int], tuple[np.ndarray, np.ndarray]]:
        """(random stream, rows) -> x, y of a chunk."""
        rng = np.random.default_rng([self.seed, 0])
        num, num_clusters = self.num_informative, self.num_classes * self.clusters_per_class
        corners = rng.choice(2 ** min(num, 60), num_clusters, replace=False)
        signs = 2 * ((corners[:, None] >> np.arange(min(num, 60))) & 1) - 1
        centres = np.pad(signs, [(0, 0), (0, num - signs.shape[1])], constant_values=1)
        shapes = rng.uniform(-1, 1, (num_clusters, num, num)).astype(np.float32)
        mixing = rng.uniform(-1, 1, (num, self.num_redundant)).astype(np.float32)
        places = rng.permutation(self.num_features)
        centres = (self.separation * centres).astype(np.float32)

        def chunk(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
            x = rng.standard_normal((count, self.num_features), np.float32)
            cluster = rng.integers(num_clusters, size=count)
            for number in range(num_clusters):
                rows = np.flatnonzero(cluster == number)
                x[rows, :num] = x[rows, :num] @ shapes[number] + centres[number]
            x[:, num : num + self.num_redundant] = x[:, :num] @ mixing
            is_flipped = rng.uniform(size=count) < self.flipped
            labels = np.where(
                is_flipped, rng.integers(self.num_classes, size=count), cluster % self.num_classes
            )
            return x[:, places], labels.astype(np.int32)

        return chunk


def make_regression(
    folder: str | Path,
    *,
    num_rows: int = 200_000,
    num_features: int = 1000,
    num_informative: int = 10,
    noise_std: float = 1.0,
    seed: int = 0,
) -> OnDisk:
    """A linear regression on disk, as scikit-learn's `make_regression` but written in chunks.

        y = sum_j c_j x_j + noise_std e,    x_j, e ~ N(0, 1),    c_j ~ 100 U(0, 1)

    for num_informative features at random places, 0 for the others. Moslemi, Meng, Lan & Shahbaba,
    "Scaling up Bayesian neural networks with neural networks" (2024), section 4.1, has 5,000,000
    rows of 1000 features (20 GB).

    Args:
        folder: to write to; a run that was stopped goes on, a finished one is only opened.
        noise_std: in units of y.
    Raises:
        InputError: for sizes that do not fit each other, or a folder with other data.
        StorageError: where the disk is full.
    """
    _at_least(1, num_rows=num_rows, num_features=num_features)
    _at_least(0, num_informative=num_informative, noise_std=noise_std)
    _fits(num_informative, num_features)
    recipe = Regression(
        num_rows=num_rows,
        num_features=num_features,
        num_informative=num_informative,
        noise_std=noise_std,
        seed=seed,
    )
    return _written(Path(folder), "regression", recipe, np.float32)


def make_classification(
    folder: str | Path,
    *,
    num_rows: int = 200_000,
    num_features: int = 1000,
    num_informative: int = 10,
    num_redundant: int = 0,
    num_classes: int = 2,
    clusters_per_class: int = 2,
    separation: float = 1.0,
    flipped: float = 0.01,
    seed: int = 0,
) -> OnDisk:
    """A classification on disk, as scikit-learn's `make_classification` but written in chunks.

    Rows of a cluster are A z + separation s in the informative features, z ~ N(0, I), s a corner of
    the hypercube {-1, 1}^num_informative and A uniform on [-1, 1], both the cluster's own;
    redundant features are combinations of these, all others N(0, 1); features are shuffled. A share
    `flipped` of the labels is uniform instead.

    Args and raises as `make_regression`.
    """
    _at_least(1, num_rows=num_rows, num_features=num_features, num_informative=num_informative)
    _at_least(0, num_redundant=num_redundant, separation=separation)
    _at_least(1, num_classes=num_classes, clusters_per_class=clusters_per_class)
    _fits(num_informative + num_redundant, num_features)
    num_clusters = num_classes * clusters_per_class
    if num_clusters > 2 ** min(num_informative, 60):
        raise InputError(
            f"{num_clusters} clusters need as many corners, but {num_informative} informative "
            f"features have {2**num_informative}: use more of them."
        )
    if not 0 <= flipped <= 1:
        raise InputError(f"flipped must be between 0 and 1, got {flipped}.")
    recipe = Classification(
        num_rows=num_rows,
        num_features=num_features,
        num_informative=num_informative,
        num_redundant=num_redundant,
        num_classes=num_classes,
        clusters_per_class=clusters_per_class,
        separation=separation,
        flipped=flipped,
        seed=seed,
    )
    return _written(Path(folder), "classification", recipe, np.int32)


def open_data(folder: str | Path) -> OnDisk:
    """A data set that `make_regression` or `make_classification` has written.

    Raises:
        InputError: where the folder holds none, or one that is not finished.
    """
    folder = Path(folder)
    about = _about(folder)
    if about is None:
        raise InputError(f"{folder} holds no data set: make_regression(folder) writes one.")
    if about["chunks"] < _num_chunks(about["num_rows"]):
        raise InputError(
            f"The data set in {folder} is not finished ({about['chunks']} of "
            f"{_num_chunks(about['num_rows'])} chunks): call what began it once more."
        )
    y = np.load(folder / "y.npy", allow_pickle=False)
    return OnDisk(open_rows(folder / "x.npy"), y, about)


def _written(folder: Path, kind: str, recipe: Regression | Classification, y_type: Any) -> OnDisk:
    """Write the chunks that are missing."""
    wanted = {"format": FORMAT, "kind": kind, **asdict(recipe)}
    about = _about(folder)
    if about is not None and {name: about.get(name) for name in wanted} != wanted:
        raise InputError(
            f"{folder} holds another data set ({about}): use another folder, or delete this one."
        )
    if about is None and any((folder / name).exists() for name in ("x.npy", "y.npy")):
        raise InputError(
            f"{folder} holds an x.npy or y.npy that this function did not write: use another one."
        )
    done, total = 0 if about is None else about["chunks"], _num_chunks(recipe.num_rows)
    shape, chunk = (recipe.num_rows, recipe.num_features), recipe.parts()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if done == 0:
            write_text(folder / "made.json", json.dumps({**wanted, "chunks": 0}))
            _allocate(folder / "x.npy", np.float32, shape)
            _allocate(folder / "y.npy", y_type, shape[:1])
        for number in range(done, total):
            start = number * CHUNK_ROWS
            rng = np.random.default_rng([recipe.seed, 1, number])
            x, y = chunk(rng, min(CHUNK_ROWS, recipe.num_rows - start))
            _fill(folder / "x.npy", start, x)
            _fill(folder / "y.npy", start, y)
            write_text(folder / "made.json", json.dumps({**wanted, "chunks": number + 1}))
    except OSError as error:
        raise StorageError.while_writing(folder, error) from error
    return open_data(folder)


def _allocate(path: Path, dtype: Any, shape: tuple[int, ...]) -> None:
    """An .npy file of zeros, which take no room yet."""
    np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=shape)


def _fill(path: Path, start: int, rows: np.ndarray) -> None:
    """Rows from start on; written, not mapped, so that they do not stay in memory."""
    offset = np.load(path, mmap_mode="r").offset
    with path.open("rb+") as file:
        file.seek(offset + start * (rows.nbytes // len(rows)))
        file.write(np.ascontiguousarray(rows).data.cast("B"))


def _about(folder: Path) -> dict[str, Any] | None:
    """made.json, where there is one."""
    try:
        return json.loads((folder / "made.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise InputError(f"{folder / 'made.json'} cannot be read ({error}): delete it.") from error


def _num_chunks(num_rows: int) -> int:
    return -(-num_rows // CHUNK_ROWS)


def _at_least(least: int, **values: float) -> None:
    for name, value in values.items():
        if not value >= least:
            raise InputError(f"{name} must be >= {least}, got {value}.")


def _fits(used: int, num_features: int) -> None:
    if used > num_features:
        raise InputError(f"{used} informative and redundant features do not fit {num_features}.")
