"""The IMDb reviews as vectors whose columns come in order: the first half is a coarse level.

Two ways to the vectors, the first of which always works:

    tfidf    word frequencies (TF-IDF) and their 384 leading singular vectors, by scikit-learn
    other    the embeddings of a sentence model, by its name

A model's embeddings are read from the file CREDENCE_DATA/imdb_NAME.npz, if there is one. It holds
two arrays of numbers, `train` and `test`, of shape (25000, d), whose rows are the reviews in the
order of the data set `imdb`: by label, then by the number in the name of the file that the review
came in. Otherwise the optional package sentence-transformers computes them, where the model is on
this machine: nothing is fetched from a model hub. What is computed is kept in the cache folder.
"""

import hashlib
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from credence.datasets.catalogue.registry import load
from credence.datasets.catalogue.sources import data_folder
from credence.datasets.prepared.sentence_models import SIZES, encode
from credence.environment import cache_folder
from credence.errors import InputError, StorageError
from credence.storage import read_arrays, write_arrays

NUM_COMPONENTS = 384
"""Number of components kept of the word frequencies: as many as the small sentence model has."""

UNREADABLE = (StorageError, KeyError, ValueError)
"""What a file that holds no such arrays raises."""

Rows = Float[np.ndarray, "_review _component"]


class Embeddings(NamedTuple):
    """Training and test reviews as vectors, and labels: 0 negative, 1 positive."""

    x_train: Rows
    y_train: Int[np.ndarray, " train"]
    x_test: Rows
    y_test: Int[np.ndarray, " test"]
    about: str
    """What made them, in a sentence."""


def imdb_embeddings(embedder: str = "tfidf", coarse: str | None = None) -> Embeddings:
    """The 25,000 training and 25,000 test reviews as vectors of length one.

    They are turned so that columns come in order of falling mean square, for nested numbers of
    features: the first 192 of 384 are the best 192. What is learnt is learnt from the training
    reviews.

    Args:
        embedder: "tfidf", or the name of a sentence model such as "all-MiniLM-L6-v2"; a "/" in it
            is "--" in the name of its file.
        coarse: a second, smaller one. Its vectors then follow as further columns of the rows, and
            both are rotated (`rotated_together`).
    Raises:
        InputError: where the reviews, a file or a model are not to be had; see `load`.
    """
    data = load("imdb")
    assert data.frame is not None
    labels, parts = data.frame["label"].to_numpy(np.int64), texts_of(data)
    fine = _vectors(embedder, *parts)
    if coarse is None:
        x_train, x_test = ordered(*fine)
        about = _about(embedder, *fine)
    else:
        small = _vectors(coarse, *parts)
        x_train, x_test = rotated_together(fine, small)
        about = f"{_about(embedder, *fine)} {_about(coarse, *small)}"
    return Embeddings(x_train, labels[data.train], x_test, labels[data.test], about)


def texts_of(data: Any) -> tuple[list[str], list[str]]:
    """The texts of the training and of the test reviews, in the order of their vectors.

    Args:
        data: the data set `imdb`. Marks of new lines in its texts become blanks.
    """
    texts = data.frame["text"].str.replace("<br />", " ", regex=False).to_numpy()
    return list(texts[data.train]), list(texts[data.test])


def _vectors(embedder: str, train: list[str], test: list[str]) -> tuple[Rows, Rows]:
    """What that embedder makes of the training and the test reviews."""
    name, folder = f"imdb_{embedder.replace('/', '--')}.npz", data_folder()
    check = partial(_require_vectors, embedder, (len(train), len(test)))
    if folder is not None and (folder / name).is_file():
        found = _read_file(folder / name)
        check(found)
        return found
    make = _word_frequencies if embedder == "tfidf" else partial(_by_sentence_model, embedder, name)
    return _cached(name, lambda: make(train, test), check)


def ordered(train: Rows, test: Rows) -> tuple[Rows, Rows]:
    """Rows of length one, turned so that the columns' mean squares fall (training rows decide).

    A rotation without centring: products of rows, and so the law of a linear model under an
    isotropic prior, stay as they are.
    """
    train, test = _unit(train), _unit(test)
    _, vectors = np.linalg.eigh(train.T @ train)
    turn = vectors[:, ::-1]
    largest = np.abs(turn).argmax(axis=0)
    turn = turn * np.sign(turn[largest, np.arange(turn.shape[1])])
    return train @ turn, test @ turn


def rotated_together(fine: tuple[Rows, Rows], coarse: tuple[Rows, Rows]) -> tuple[Rows, Rows]:
    """Training and test rows of two embeddings side by side, each rotated by singular vectors.

        X_1' X_0 = U S V',    rows [X_1 U | X_0 V]

    for the training rows X_1 of the fine and X_0 of the coarse embedding, not centred: column j of
    the one then varies with column j of the other. Chada, Jasra, Law & Singh, "Bayesian Deep
    Learning with Multilevel Trace-class Neural Networks", section 5.6.1, call this a canonical
    correlation analysis and print the matrix as X_1 X_0', whose shape does not fit.

    Args:
        fine, coarse: training and test rows (review, component); the fine one has more columns.
    Raises:
        InputError: where the coarse embedding has as many columns as the fine one, or more.
    """
    (train, test), (coarse_train, coarse_test) = (
        tuple(map(_unit, each)) for each in (fine, coarse)
    )
    if coarse_train.shape[1] >= train.shape[1]:
        raise InputError(
            f"The coarse embedding has {coarse_train.shape[1]} columns and the fine one "
            f"{train.shape[1]}: the coarse one must have fewer."
        )
    left, _, right = np.linalg.svd(train.T @ coarse_train)
    sides = ((train, coarse_train), (test, coarse_test))
    turned = [np.hstack([large @ left, small @ right.T]) for large, small in sides]
    return turned[0], turned[1]


def _about(embedder: str, train: Rows, test: Rows) -> str:
    size = train.shape[1]
    if embedder == "tfidf":
        return (
            f"No sentence model: TF-IDF and its {size} leading singular vectors stand in for "
            "embeddings."
        )
    contents = hashlib.sha256()
    for rows in (train, test):
        contents.update(rows.astype("<f4").tobytes())
    start = contents.hexdigest()[:12]
    return f"{size} columns of the sentence model {embedder} (SHA-256 {start}...)."


def _unit(rows: Rows) -> Rows:
    """Rows divided by their length; a row of zeros stays one."""
    rows = np.asarray(rows, np.float64)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(length > 0, length, 1.0)


def _word_frequencies(train: list[str], test: list[str]) -> tuple[Rows, Rows]:
    """Latent semantic analysis."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    words = TfidfVectorizer(sublinear_tf=True, min_df=5, dtype=np.float32)
    frequencies = words.fit_transform(train)
    size = min(NUM_COMPONENTS, frequencies.shape[1])
    svd = TruncatedSVD(size, random_state=0)
    return svd.fit_transform(frequencies), svd.transform(words.transform(test))


def _require_vectors(embedder: str, rows: tuple[int, int], found: tuple[Rows, Rows]) -> None:
    """Refuse arrays that cannot be the vectors of the reviews.

    Raises:
        InputError: where there is not one row a review, or not the model's number of columns, or a
            number that is not finite.
    """
    train, test = found
    num_columns = SIZES.get(embedder) or train.shape[-1]
    wanted = [(number, num_columns) for number in rows]
    is_whole = [train.shape, test.shape] == wanted and num_columns >= 2
    if not is_whole or not (np.isfinite(train).all() and np.isfinite(test).all()):
        raise InputError(
            f"The vectors of '{embedder}' have shapes {train.shape} and {test.shape}, but finite "
            f"numbers of shapes {wanted[0]} and {wanted[1]} are needed: one row per review, with "
            "at least two columns."
        )


def _by_sentence_model(
    name: str, file: str, train: list[str], test: list[str]
) -> tuple[Rows, Rows]:
    """Embeddings by the model of that name.

    Raises:
        InputError: where the optional package is missing, or the model is not on this machine.
    """
    try:
        rows = encode(name, [*train, *test], _kept(file).with_suffix(""))
    except InputError as error:
        raise InputError(f"{error} Or put embeddings into CREDENCE_DATA/{file}.") from error
    return rows[: len(train)], rows[len(train) :]


def _kept(file: str) -> Path:
    """The file in which vectors are kept; a folder of the same name has pieces until then."""
    return cache_folder() / "embeddings" / file


def _cached(
    name: str,
    make: Callable[[], tuple[Rows, Rows]],
    check: Callable[[tuple[Rows, Rows]], None],
) -> tuple[Rows, Rows]:
    """What `make` gives, kept in single precision; a broken copy is made again."""
    path = _kept(name)
    try:
        found = _read_arrays(path)
        check(found)
    except UNREADABLE:
        train, test = make()
        check((train, test))
        write_arrays(path, {"train": np.asarray(train, "f4"), "test": np.asarray(test, "f4")})
        shutil.rmtree(path.with_suffix(""), ignore_errors=True)
        return _read_arrays(path)
    return found


def _read_arrays(path: Path) -> tuple[np.ndarray, np.ndarray]:
    arrays = read_arrays(path)
    train, test = arrays["train"], arrays["test"]
    if train.dtype.kind not in "fiu" or test.dtype.kind not in "fiu":
        raise ValueError(f"they are of types {train.dtype} and {test.dtype}")
    return train.astype(np.float64), test.astype(np.float64)


def _read_file(path: Path) -> tuple[Rows, Rows]:
    """The user's own embeddings.

    Raises:
        InputError: where the file is not of the documented form.
    """
    try:
        return _read_arrays(path)
    except UNREADABLE as error:
        raise InputError(
            f"{path} does not hold number arrays `train` and `test` ({error}): save them with "
            "numpy.savez."
        ) from error
