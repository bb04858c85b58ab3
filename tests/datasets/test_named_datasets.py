"""The registry of named data sets: bundled, from CREDENCE_DATA, from (a stand-in for) OpenML."""

import hashlib
from pathlib import Path
from urllib.error import URLError

import numpy as np
import pandas as pd
import pytest
from sklearn.utils import Bunch
from tools.data_folder import DATA, needs_data

from credence import datasets
from credence.datasets.catalogue import sources
from credence.datasets.catalogue.bundled import BUNDLED
from credence.datasets.catalogue.registry import DATASETS
from credence.datasets.catalogue.tables import TABLES
from credence.errors import InputError

# Facts about the files that their makers published.
TRAIN_COUNTS = {"adult": (32561, 16281), "optdigits": (3823, 1797), "imdb": (25000, 25000)}


@pytest.fixture
def nothing_local(monkeypatch, tmp_path):
    """An empty data folder and an empty cache."""
    monkeypatch.setenv("CREDENCE_DATA", str(tmp_path))
    monkeypatch.setenv("CREDENCE_CACHE", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def openml(monkeypatch):
    """Sets what OpenML gives; returns the arguments it was asked with."""
    asked = {}

    def answer(bunch):
        def fetch(**arguments):
            asked.update(arguments)
            if isinstance(bunch, Exception):
                raise bunch
            return bunch

        monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
        return asked

    return answer


def boston_bunch(rows=506):
    numbers = np.random.default_rng(0).normal(size=(rows, 12))
    frame = pd.DataFrame(numbers, columns=[f"input{i}" for i in range(12)])
    river = pd.Categorical(["0", "1"] * (rows // 2))  # OpenML's CHAS is a category
    return Bunch(data=frame.assign(CHAS=river), target=pd.Series(np.arange(rows) + 0.5))


@pytest.mark.parametrize("spec", BUNDLED, ids=lambda spec: spec.name)
def test_bundled_data_need_no_file_and_no_network(spec, nothing_local, openml):
    openml(AssertionError("must not be asked"))
    dataset = datasets.load(spec.name)
    assert dataset.found == "bundled"
    assert dataset.frame.shape == (spec.rows, spec.columns)
    assert spec.target in dataset.frame


def test_list_says_where_each_can_be_found(nothing_local):
    found = {spec.name: where for spec, where in datasets.list_datasets()}
    assert found["iris"] == "bundled"
    assert found["boston"] == "OpenML"
    assert found["celeba_attributes"] == "nowhere"
    (nothing_local / "boston_housing.csv").touch()
    assert dict((s.name, w) for s, w in datasets.list_datasets())["boston"] == "local"


def test_every_spec_is_consistent():
    for name, spec in DATASETS.items():
        assert name == spec.name
        assert spec.files or spec.bundled or spec.openml
        assert (spec.target is not None) == (spec.layout == "table")
        assert spec.has_uci_splits == (spec.target_sha256 is not None)
        assert (spec.split_column is None) == (spec.split_values is None)
        if spec.layout == "images":
            assert np.prod(spec.image_shape) == spec.columns


def test_unknown_name_suggests_the_nearest():
    with pytest.raises(InputError, match=r"no data set 'bosten'\. Did you mean 'boston'"):
        datasets.load("bosten")


def test_a_changed_file_is_refused(nothing_local):
    (nothing_local / "boston_housing.csv").write_text("CRIM,MEDV\n1,2\n")
    with pytest.raises(InputError, match=r"SHA-256 is .* expected 59f7ce87"):
        datasets.load("boston")


def test_offline_says_what_was_tried_and_what_to_do(nothing_local, openml):
    openml(URLError("no network"))
    with pytest.raises(InputError, match="not to be had") as error:
        datasets.load("boston")
    sentence = str(error.value)
    for part in ("boston_housing.csv", str(nothing_local), "OpenML", "no network", "connect"):
        assert part in sentence


def test_offline_without_data_folder(monkeypatch, tmp_path):
    monkeypatch.delenv("CREDENCE_DATA", raising=False)
    with pytest.raises(InputError, match=r"CREDENCE_DATA \(not set\)"):
        datasets.load("celeba_attributes")


def test_openml_is_asked_by_id_or_by_name_and_version(nothing_local, openml):
    asked = openml(boston_bunch())
    dataset = datasets.load("boston")
    assert (asked["data_id"], asked["data_home"]) == (531, str(nothing_local / "cache"))
    assert dataset.found == "OpenML"
    assert list(dataset.frame.columns)[-1] == "MEDV"
    assert pd.api.types.is_integer_dtype(dataset.frame["CHAS"])
    asked = openml(URLError("no network"))
    with pytest.raises(InputError):
        datasets.load("year_prediction_msd")
    assert (asked["name"], asked["version"]) == ("YearPredictionMSD", 1)


def test_openml_with_other_rows_is_refused(nothing_local, openml):
    openml(boston_bunch(rows=500))
    with pytest.raises(InputError, match=r"shape \(500, 14\), expected \(506, 14\)"):
        datasets.load("boston")


def test_published_splits_are_refused_for_rows_in_another_order(nothing_local, openml):
    openml(boston_bunch())
    with pytest.raises(InputError, match="not in the order"):
        datasets.load("boston", split=0)


def test_openml_images_must_have_the_known_mean(nothing_local, openml, monkeypatch):
    spec = DATASETS["cifar10"]
    plane_means = np.array([10, 20, 30])
    rows = np.repeat(plane_means, 1024)[None].repeat(4, axis=0)
    small = sources.OpenML("tiny", 1, train_rows=3, channels_first=True, train_mean=(10, 20, 30))
    tiny = type(spec)(**(vars(spec) | {"rows": 4, "openml": small}))
    openml(Bunch(data=rows, target=np.array(["3", "1", "0", "2"], object)))
    dataset = sources.read_openml(tiny, small)
    assert dataset.arrays["x"].shape == (4, 32, 32, 3)
    assert (dataset.arrays["x"][0, 5, 7] == plane_means).all()
    assert dataset.arrays["y"].tolist() == [3, 1, 0, 2]
    assert (dataset.train.tolist(), dataset.test.tolist()) == ([0, 1, 2], [3])
    openml(Bunch(data=rows[:, ::-1], target=np.zeros(4)))  # planes in the wrong order
    with pytest.raises(InputError, match="mean grey level"):
        sources.read_openml(tiny, small)


def test_uci_splits_are_partitions():
    splits = datasets.uci_splits("boston")
    assert len(splits) == 20
    for train, test in splits:
        assert (len(train), len(test)) == (455, 51)
        assert sorted([*train, *test]) == list(range(506))
    assert splits[0].test.tolist() != splits[1].test.tolist()


def test_uci_splits_only_where_published():
    with pytest.raises(InputError, match="'iris' has no published UCI splits"):
        datasets.uci_splits("iris")
    with pytest.raises(InputError, match=r"split must be 0\.\.19 for 'boston', got 20"):
        datasets.load("boston", split=20)


@needs_data
@pytest.mark.parametrize(
    ("name", "file"), [("boston", "boston_housing"), ("wine_quality_red", "wine_quality_red")]
)
def test_uci_splits_equal_the_published_files(name, file):
    with np.load(Path(DATA) / f"{file}_uci_splits.npz", allow_pickle=False) as published:
        for i, (train, test) in enumerate(datasets.uci_splits(name)):
            assert (train == published["index_train"][i]).all()
            assert (test == published["index_test"][i]).all()
        dataset = datasets.load(name, split=7)
        assert (dataset.frame.to_numpy() == published["data"]).all()
        assert (dataset.test == published["index_test"][7]).all()


@needs_data
@pytest.mark.parametrize("name", [s.name for s in TABLES if s.files])
def test_local_tables_have_the_known_shape_and_split(name):
    spec = DATASETS[name]
    if not sources.is_local(spec):
        pytest.skip("not in CREDENCE_DATA")
    dataset = datasets.load(name)
    assert dataset.frame.shape == (spec.rows, spec.columns)
    if name in TRAIN_COUNTS:
        assert (len(dataset.train), len(dataset.test)) == TRAIN_COUNTS[name]
        assert sorted([*dataset.train, *dataset.test]) == list(range(spec.rows))


@needs_data
def test_adult_facts():
    dataset = datasets.load("adult")
    rich = dataset.frame["income"] == ">50K"
    assert (rich.iloc[dataset.train].sum(), rich.iloc[dataset.test].sum()) == (7841, 3846)
    complete = dataset.frame.notna().all(axis=1)  # published: 30162 and 15060 without "?"
    assert complete.iloc[dataset.train].sum() == 30162
    assert complete.iloc[dataset.test].sum() == 15060


@needs_data
def test_mnist_facts():
    dataset = datasets.load("mnist")
    images = dataset.arrays["x"].reshape(70000, -1)[dataset.train]
    assert images.mean() / 255 == pytest.approx(0.1307, abs=5e-5)
    labels = dataset.arrays["y"].astype(np.uint8)[dataset.test]
    header = bytes.fromhex("00000801") + len(labels).to_bytes(4, "big")
    md5 = hashlib.md5(header + labels.tobytes(), usedforsecurity=False).hexdigest()
    assert md5 == "27ae3e4e09519cfbb04c329615203637"  # of t10k-labels-idx1-ubyte


@needs_data
def test_cheetah_arrays_keep_the_names_of_the_file():
    arrays = datasets.load("halfcheetah_discrete_actions").arrays
    counts = np.bincount(arrays["action_index"])
    assert counts.tolist() == [43, 45, 72, 78, 74, 85, 47, 56]


@needs_data
@pytest.mark.slow
def test_cifar10_facts():
    dataset = datasets.load("cifar10")
    train = dataset.arrays["x"][dataset.train]
    known = [125.306918, 122.950394, 113.865383]
    assert train.reshape(-1, 3).mean(axis=0) == pytest.approx(known, abs=1e-5)
    assert train[0, 0, :3].tolist() == [[59, 62, 63], [43, 46, 45], [50, 48, 43]]
