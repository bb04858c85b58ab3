"""Reviews as vectors: ordered columns, a cache, the user's file, an optional sentence model."""

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from tools.data_folder import needs_data

from credence.datasets.prepared import embeddings
from credence.datasets.prepared.embeddings import FILE, MINILM, imdb_embeddings, ordered
from credence.errors import InputError

NUM_TRAIN, NUM_TEST = 60, 40
GOOD, BAD = ("fine", "lovely", "great", "moving"), ("dull", "awful", "boring", "flat")


@pytest.fixture
def reviews(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A hundred made-up reviews, an empty cache, and a folder for the user's file."""
    rng = np.random.default_rng(0)
    labels = np.tile([0, 1], 50)
    shared = ("the", "film", "plot", "actor", "scene")
    texts = [
        "<br />".join([*rng.choice((BAD, GOOD)[label], 6), *rng.choice(shared, 12)])
        for label in labels
    ]
    data = SimpleNamespace(
        frame=pd.DataFrame({"text": texts, "label": labels}),
        train=np.arange(NUM_TRAIN),
        test=np.arange(NUM_TRAIN, NUM_TRAIN + NUM_TEST),
    )
    monkeypatch.setattr(embeddings, "load", lambda name: data)
    monkeypatch.setenv("CREDENCE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("CREDENCE_DATA", str(tmp_path))
    return tmp_path


def assert_ordered(train: np.ndarray, test: np.ndarray) -> None:
    for rows in (train, test):
        np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1.0, rtol=1e-6)
    second_moments = train.T @ train
    size = np.diag(second_moments)
    assert np.all(np.diff(size) <= 1e-9)
    np.testing.assert_allclose(second_moments, np.diag(size), atol=1e-8)


def test_ordering_is_a_rotation() -> None:
    rng = np.random.default_rng(1)
    raw = rng.normal(size=(30, 5)) @ rng.normal(size=(5, 5)), rng.normal(size=(7, 5))
    train, test = ordered(*raw)
    assert_ordered(train, test)
    for i, j in ((0, 0), (0, 3), (2, 6)):
        product = raw[0][i] @ raw[1][j] / np.linalg.norm(raw[0][i]) / np.linalg.norm(raw[1][j])
        assert train[i] @ test[j] == pytest.approx(product)
    zero, _ = ordered(np.vstack([np.zeros(5), raw[0]]), raw[1])
    assert not zero[0].any()


def test_word_frequencies_separate_the_words(reviews: Path) -> None:
    found = imdb_embeddings()
    assert len(found.x_train) == len(found.y_train) == NUM_TRAIN
    assert len(found.x_test) == len(found.y_test) == NUM_TEST
    assert_ordered(found.x_train, found.x_test)
    assert "TF-IDF" in found.about
    centres = [found.x_train[found.y_train == label].mean(axis=0) for label in (0, 1)]
    guesses = found.x_test @ (centres[1] - centres[0]) > 0
    assert np.mean(guesses == found.y_test) > 0.9


def test_what_is_computed_is_kept(reviews: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = imdb_embeddings()
    (path,) = (reviews / "cache" / "embeddings").iterdir()
    with monkeypatch.context() as no_work:
        no_work.setattr(embeddings, "_word_frequencies", None)
        np.testing.assert_array_equal(imdb_embeddings().x_train, first.x_train)
    path.write_bytes(b"PK broken")
    np.testing.assert_array_equal(imdb_embeddings().x_train, first.x_train)
    path.unlink()
    np.testing.assert_array_equal(imdb_embeddings().x_test, first.x_test)


def test_the_file_of_the_user(reviews: Path) -> None:
    rng = np.random.default_rng(2)
    train, test = rng.normal(size=(NUM_TRAIN, 6)), rng.normal(size=(NUM_TEST, 6))
    np.savez(reviews / FILE, train=train.astype("f4"), test=test.astype("f4"))
    found = imdb_embeddings("file")
    assert_ordered(found.x_train, found.x_test)
    products = train @ train.T / np.outer(*[np.linalg.norm(train, axis=1)] * 2)
    np.testing.assert_allclose(found.x_train @ found.x_train.T, products, atol=1e-5)
    assert FILE in found.about


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        (None, "There is no file"),
        ({"train": np.ones((NUM_TRAIN, 3))}, "does not hold number arrays"),
        ({"train": np.ones((9, 3)), "test": np.ones((NUM_TEST, 3))}, "one row per review"),
        ({"train": np.ones((NUM_TRAIN, 3)), "test": np.ones((NUM_TEST, 2))}, "d >= 2"),
        ({"train": np.ones((NUM_TRAIN, 2)), "test": np.full((NUM_TEST, 2), np.nan)}, "finite"),
        ({"train": np.array(["x"]), "test": np.array(["y"])}, "does not hold number arrays"),
    ],
)
def test_files_that_cannot_be_used(reviews: Path, arrays: dict | None, sentence: str) -> None:
    if arrays is not None:
        np.savez(reviews / FILE, **arrays)
    with pytest.raises(InputError, match=sentence):
        imdb_embeddings("file")


def test_without_the_optional_package(reviews: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(InputError, match=r"all-MiniLM-L6-v2.*credence\[text\]"):
        imdb_embeddings(MINILM)


def test_a_sentence_model(reviews: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for the package: word counts as embeddings; then a model that is not to be had."""

    class Counts:
        def __init__(self, name: str) -> None:
            if name != MINILM:
                raise OSError("no such model")

        def encode(self, texts: list[str]) -> np.ndarray:
            assert not any("<br" in text for text in texts)
            return np.array([[text.count(word) for word in GOOD + BAD] for text in texts], "f4")

    module = SimpleNamespace(SentenceTransformer=Counts)
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    found = imdb_embeddings(MINILM)
    assert_ordered(found.x_train, found.x_test)
    assert found.x_train.shape == (NUM_TRAIN, 8)
    assert MINILM in found.about
    with pytest.raises(InputError, match="'none' is not to be had"):
        imdb_embeddings("none")


@needs_data
@pytest.mark.slow
def test_the_real_reviews() -> None:
    found = imdb_embeddings()
    assert found.x_train.shape == found.x_test.shape == (25_000, 384)
    assert np.bincount(found.y_train).tolist() == np.bincount(found.y_test).tolist() == [12_500] * 2
    assert_ordered(found.x_train, found.x_test)
