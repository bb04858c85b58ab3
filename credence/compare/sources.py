"""Sources of the data of a problem, as plain data: nothing here loads anything."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

Settings = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class TableSource:
    """A table file or a named data set that is a table.

    Args:
        encoding: "one_hot" is the library's own preprocessing; "ordinal" numbers the names of a
            column, so that the network has as many inputs as the table has columns.
        resplit: whether every seed draws a split of its own; False keeps that of the data set,
            where it has one.
        test_fraction, split_seed: of a random split.
        group: column that says which rows belong together, no input; whole groups are held back.
        sha256: of the file, so that a changed file is another problem; None for a data set.
    """

    kind: ClassVar[str] = "table"

    table: str
    target: str
    task: str = "auto"
    categorical: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    encoding: Literal["one_hot", "ordinal"] = "one_hot"
    resplit: bool = False
    test_fraction: float = 0.2
    split_seed: int = 0
    group: str | None = None
    sha256: str | None = None


@dataclass(frozen=True, kw_only=True)
class ImageSource:
    """A named data set of images.

    Args:
        as_vectors: of grey levels, for fully connected networks; else (row, column, channel).
        resplit: whether every seed draws a split of its own; False keeps that of the data set.
        test_fraction: of all images, where they are split anew.
        shrink: each side is divided by this: means over squares of pixels.
    """

    kind: ClassVar[str] = "images"

    name: str
    as_vectors: bool = True
    resplit: bool = False
    test_fraction: float = 0.2
    split_seed: int = 0
    shrink: int = 1


@dataclass(frozen=True, kw_only=True)
class SimulatedSource:
    """scikit-learn's `make_regression` or `make_classification`.

    Args:
        task: which of the two.
        settings: passed on to it.
    """

    kind: ClassVar[str] = "simulated"

    task: Literal["regression", "classification"]
    settings: Settings
    test_fraction: float = 0.2
    split_seed: int = 0


@dataclass(frozen=True, kw_only=True)
class DigitsSource:
    """MNIST digits as principal components; see `credence.datasets.principal_digits`.

    Args:
        digits: those to tell apart.
        others: those that no label stands for: strangers, to be met with doubt.
    """

    kind: ClassVar[str] = "digits"

    digits: tuple[int, ...]
    others: tuple[int, ...] = ()
    num_components: int = 100
    split_seed: int = 0


@dataclass(frozen=True, kw_only=True)
class ReviewsSource:
    """IMDb reviews as vectors; see `credence.datasets.imdb_embeddings`.

    Args:
        embedder: "tfidf" or the name of a sentence model.
        coarse: a second, smaller sentence model, whose vectors are further columns.
    """

    kind: ClassVar[str] = "reviews"

    embedder: str
    coarse: str | None = None
    split_seed: int = 0


@dataclass(frozen=True, kw_only=True)
class UCISource:
    """A named table with its published splits; see `credence.datasets.uci_splits`.

    Args:
        split_seed: the number of the split, from 0 to 19.
    """

    kind: ClassVar[str] = "uci"

    name: str
    split_seed: int = 0


@dataclass(frozen=True, kw_only=True)
class NaccSource:
    """The Alzheimer data from the user's own file in CREDENCE_DATA: `credence.datasets.read_nacc`.

    Args:
        target: what to predict.
        file: CSV or Parquet, as the centre sends it.
    """

    kind: ClassVar[str] = "nacc"

    target: Literal["diagnosis", "hippocampus"]
    file: str = "nacc.csv"
    test_fraction: float = 0.2
    split_seed: int = 0


Source = (
    TableSource
    | ImageSource
    | SimulatedSource
    | DigitsSource
    | ReviewsSource
    | UCISource
    | NaccSource
)
SOURCES: dict[str, type[Any]] = {
    cls.kind: cls
    for cls in (
        TableSource,
        ImageSource,
        SimulatedSource,
        DigitsSource,
        ReviewsSource,
        UCISource,
        NaccSource,
    )
}


def moved(source: Source, seed: int) -> Source:
    """The source as a repetition with that seed has it: another split, other simulated data."""
    if isinstance(source, SimulatedSource) and "random_state" in source.settings:
        state = source.settings["random_state"] + seed
        source = replace(source, settings={**source.settings, "random_state": state})
    return replace(source, split_seed=source.split_seed + seed)


def source_from_json(content: Mapping[str, Any]) -> Source:
    """Build the source that `specs.to_json` described."""
    fields = {name: tuple(v) if isinstance(v, list) else v for name, v in content.items()}
    return SOURCES[content["kind"]](**{k: v for k, v in fields.items() if k != "kind"})
