"""The IMDb reviews as vectors whose columns come in order: the first half is a coarse level.

Three ways to the vectors, the first of which always works:

    tfidf    word frequencies (TF-IDF) and their 384 leading singular vectors, by scikit-learn
    file     embeddings of any model from CREDENCE_DATA/imdb_embeddings.npz
    other    a model of the optional package sentence-transformers, by its name there

The file holds two arrays of numbers, `train` and `test`, of shape (25000, d), whose rows are the
reviews in the order of the data set `imdb`: by label, then by the number in the name of the file
that the review came in. What is computed is kept in the cache folder.
"""

import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from credence.datasets.catalogue.registry import load
from credence.datasets.catalogue.sources import data_folder
from credence.environment import cache_folder
from credence.errors import InputError
from credence.storage import atomic_path

MINILM = "all-MiniLM-L6-v2"
"""A small sentence model: 384 dimensions."""

NUM_COMPONENTS = 384
"""Number of components kept of the word frequencies: as many as the small sentence model has."""

FILE = "imdb_embeddings.npz"

Rows = Float[np.ndarray, "_ component"]


class Embeddings(NamedTuple):
    """Training and test reviews as vectors of length one, and labels: 0 negative, 1 positive."""

    x_train: Rows
    y_train: Int[np.ndarray, " train"]
    x_test: Rows
    y_test: Int[np.ndarray, " test"]
    about: str
    """What made them, in a sentence."""


def imdb_embeddings(embedder: str = "tfidf") -> Embeddings:
    """The 25,000 training and 25,000 test reviews as vectors.

    They are turned so that columns come in order of falling mean square, for nested numbers of
    features: the first 192 of 384 are the best 192. What is learnt is learnt from the training
    reviews.

    Args:
        embedder: "tfidf", "file", or the name of a sentence model such as "all-MiniLM-L6-v2".
    Raises:
        InputError: where the reviews, the file or the model are not to be had; see `load`.
    """
    data = load("imdb")
    assert data.frame is not None
    assert data.train is not None
    assert data.test is not None
    texts, labels = data.frame["text"].to_numpy(), data.frame["label"].to_numpy(np.int64)
    if embedder == "file":
        vectors = _read_file(len(data.train), len(data.test))
    else:
        make = _word_frequencies if embedder == "tfidf" else _sentence_model(embedder)
        parts = texts[data.train], texts[data.test]
        vectors = _cached(f"imdb_{embedder}.npz", lambda: make(*map(_plain, parts)))
    x_train, x_test = ordered(*vectors)
    return Embeddings(
        x_train, labels[data.train], x_test, labels[data.test], _about(embedder, x_train.shape[1])
    )


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


def _about(embedder: str, size: int) -> str:
    if embedder == "tfidf":
        return (
            f"No sentence model: TF-IDF and its {size} leading singular vectors stand in for "
            "embeddings."
        )
    made = f"from {FILE}" if embedder == "file" else f"of the sentence model {embedder}"
    return f"{size} principal directions of embeddings {made}."


def _plain(texts: np.ndarray) -> list[str]:
    return [text.replace("<br />", " ") for text in texts]


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


def _sentence_model(name: str) -> Callable[[list[str], list[str]], tuple[Rows, Rows]]:
    """The embedder of that name.

    Raises:
        InputError: where the optional package is missing, or the model is not to be had.
    """
    try:
        from sentence_transformers import SentenceTransformer  # pyright: ignore
    except ImportError as error:
        raise InputError(
            f"The sentence model '{name}' needs a package that is missing: "
            f"pip install 'credence[text]'. Or put embeddings into CREDENCE_DATA/{FILE}."
        ) from error

    def embed(train: list[str], test: list[str]) -> tuple[Rows, Rows]:
        try:
            model = SentenceTransformer(name)
        except (OSError, ValueError) as error:
            raise InputError(
                f"The sentence model '{name}' is not to be had ({error}): connect to the "
                f"internet once, or put embeddings into CREDENCE_DATA/{FILE}."
            ) from error
        return np.asarray(model.encode(train)), np.asarray(model.encode(test))

    return embed


def _cached(name: str, make: Callable[[], tuple[Rows, Rows]]) -> tuple[Rows, Rows]:
    """What `make` gives, kept in single precision; a broken copy is made again."""
    path = cache_folder() / "embeddings" / name.replace("/", "--")
    try:
        return _read_arrays(path)
    except (OSError, ValueError, KeyError, zipfile.BadZipFile):
        train, test = make()
        with atomic_path(path) as temporary, temporary.open("wb") as file:
            np.savez(file, train=np.asarray(train, "f4"), test=np.asarray(test, "f4"))
        return _read_arrays(path)


def _read_arrays(path: Path) -> tuple[np.ndarray, np.ndarray]:
    with np.load(path, allow_pickle=False) as arrays:
        return arrays["train"].astype(np.float64), arrays["test"].astype(np.float64)


def _read_file(num_train: int, num_test: int) -> tuple[Rows, Rows]:
    """The user's own embeddings.

    Raises:
        InputError: where there is no such file, or it is not of the documented form.
    """
    folder = data_folder()
    if folder is None or not (folder / FILE).is_file():
        raise InputError(
            f"There is no file {FILE} in the folder CREDENCE_DATA: save arrays `train` "
            f"({num_train}, d) and `test` ({num_test}, d) there with numpy.savez."
        )
    try:
        train, test = _read_arrays(folder / FILE)
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise InputError(
            f"{folder / FILE} does not hold number arrays `train` and `test` ({error}): save them "
            "with numpy.savez."
        ) from error
    fits = (
        train.ndim == test.ndim == 2
        and (len(train), len(test)) == (num_train, num_test)
        and train.shape[1] == test.shape[1] >= 2
    )
    if not fits or not (np.isfinite(train).all() and np.isfinite(test).all()):
        raise InputError(
            f"{folder / FILE} has arrays of shapes {train.shape} and {test.shape}, but finite "
            f"numbers ({num_train}, d) and ({num_test}, d), d >= 2, are needed: one row per review."
        )
    return train, test
