"""CIFAR-10 as features of patches: computed once, and kept in a file named by what made it."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int

from credence.compare.runner import NoWatch
from credence.datasets.catalogue.registry import find, list_datasets, load
from credence.errors import InputError
from credence.storage import file_sha256, read_arrays, write_arrays
from credence_papers.cache import digest
from credence_papers.nonlinear.patch_features import PatchFeatures, features, learn

DATA = "cifar10"


@dataclass(frozen=True, eq=False)
class FeatureRows:
    """Standardised features in their principal axes, labels from 0, and the file they came from."""

    x_train: Float[np.ndarray, "train feature"]
    y_train: Int[np.ndarray, " train"]
    x_test: Float[np.ndarray, "test feature"]
    y_test: Int[np.ndarray, " test"]
    sha256: str


def check_images() -> None:
    """Refuse to start where the images are not to be had.

    Raises:
        InputError: with what to do.
    """
    if any(each.spec.name == DATA and each.found == "nowhere" for each in list_datasets()):
        load(DATA)  # says why not


def feature_rows(
    settings: PatchFeatures,
    num_train: int,
    num_test: int,
    folder: Path,
    watch: NoWatch,
) -> FeatureRows:
    """Features of the first images of each part; read where the folder has them.

    Kept are the pooled activations, in half precision; their centres, scales and axes are those of
    the training rows.

    Args:
        folder: the study's.
        watch: hears of the computation.
    """
    files = [file.sha256 for file in find(DATA).files]
    path = folder / f"features-{digest([settings, num_train, num_test, files])[:16]}.npz"
    if not path.exists():
        watch.say(f"Features of {num_train + num_test:,} images: minutes, once.")
        write_arrays(path, _computed(settings, num_train, num_test))
    arrays = read_arrays(path)
    x_train, x_test = turned(*standardised(arrays["train"], arrays["test"]))
    return FeatureRows(x_train, arrays["y_train"], x_test, arrays["y_test"], file_sha256(path))


def standardised(
    train: Float[np.ndarray, "train feature"], test: Float[np.ndarray, "test feature"]
) -> tuple[Float[np.ndarray, "train feature"], Float[np.ndarray, "test feature"]]:
    """Each feature centred and divided by its deviation among the training rows.

    A feature that is constant there becomes 0.
    """
    train, test = train.astype(np.float32), test.astype(np.float32)
    centre, scale = train.mean(axis=0), train.std(axis=0)
    scale[scale == 0] = np.inf
    return (train - centre) / scale, (test - centre) / scale


def turned(
    train: Float[np.ndarray, "train feature"], test: Float[np.ndarray, "test feature"]
) -> tuple[Float[np.ndarray, "train feature"], Float[np.ndarray, "test feature"]]:
    """The same rows in the principal axes of the training rows, the widest first.

    Independent normal weights of one scale have the same law in all axes, and so have the
    functions under the posterior. What changes is that features are no longer correlated, so that a
    sampler whose metric is a diagonal can step as far along each of them as it is wide: along the
    features as they are it diverges unless its step is hundreds of times smaller.
    """
    axes = np.linalg.eigh(train.T @ train)[1][:, ::-1]
    return train @ axes, test @ axes


def _computed(settings: PatchFeatures, num_train: int, num_test: int) -> dict[str, np.ndarray]:
    """Arrays of the file."""
    images = load(DATA)
    if images.arrays is None or images.train is None or images.test is None:
        raise InputError(f"The data set '{DATA}' has no images with a split.")
    x, y = images.arrays["x"], images.arrays["y"]
    train, test = images.train[:num_train], images.test[:num_test]
    dictionary = learn(settings, x[train])
    found = {
        name: features(dictionary, x[rows], settings.size).astype(np.float16)
        for name, rows in (("train", train), ("test", test))
    }
    return {**found, "y_train": y[train].astype(np.int32), "y_test": y[test].astype(np.int32)}
