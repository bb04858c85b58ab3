"""CIFAR-10 as features of patches: computed once, and kept in a file named by what made it.

The test images are there a second time, made worse: with noise, with a blur, with less contrast.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int

from credence.compare.runner import Watch
from credence.datasets import corrupted
from credence.datasets.catalogue.registry import find, list_datasets, load
from credence.errors import InputError
from credence.storage import file_sha256, read_arrays, write_arrays
from credence_papers.cache import digest
from credence_papers.nonlinear.patch_features import PatchFeatures, features, learn

DATA = "cifar10"
CORRUPTIONS: tuple[str, ...] = ("noise", "blur", "contrast")
SEVERITY = 5


@dataclass(frozen=True, eq=False)
class FeatureRows:
    """Standardised features in their principal axes, labels from 0, and the file they came from.

    What features are made of is learnt from training images of all classes, without their labels.

    Attributes:
        x_worse: of the test images made worse, by the kind of corruption.
        x_strangers: of test images of classes that no label stands for.
    """

    x_train: Float[np.ndarray, "train feature"]
    y_train: Int[np.ndarray, " train"]
    x_test: Float[np.ndarray, "test feature"]
    y_test: Int[np.ndarray, " test"]
    x_worse: Mapping[str, Float[np.ndarray, "test feature"]]
    x_strangers: Float[np.ndarray, "stranger feature"]
    sha256: str

    @property
    def x_others(self) -> Float[np.ndarray, "other feature"]:
        """All worse images, one kind after the other, then the strangers."""
        return np.concatenate([*self.x_worse.values(), self.x_strangers])

    def without(self, classes: tuple[int, ...]) -> "FeatureRows":
        """The same where no label stands for some classes, whose test images become strangers."""
        if not classes:
            return self
        assert not len(self.x_strangers), "strangers are there already"
        number = max(self.y_train.max(), self.y_test.max()) + 1
        labels = np.full(number, -1)
        kept = np.setdiff1d(np.arange(number), classes)
        labels[kept] = np.arange(len(kept))
        train, test = (labels[y] >= 0 for y in (self.y_train, self.y_test))
        return FeatureRows(
            self.x_train[train],
            labels[self.y_train[train]].astype(np.int32),
            self.x_test[test],
            labels[self.y_test[test]].astype(np.int32),
            {kind: x[test] for kind, x in self.x_worse.items()},
            self.x_test[~test],
            self.sha256,
        )


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
    watch: Watch,
) -> FeatureRows:
    """Features of the first images of each part; read where the folder has them.

    Kept are the pooled activations, in half precision; their centres, scales and axes are those of
    the training rows.

    Args:
        folder: the study's.
        watch: hears of the computation.
    """
    files = [file.sha256 for file in find(DATA).files]
    made_of = [settings, num_train, num_test, files, CORRUPTIONS, SEVERITY]
    path = folder / f"features-{digest(made_of)[:16]}.npz"
    if not path.exists():
        number = num_train + (1 + len(CORRUPTIONS)) * num_test
        watch.say(f"Features of {number:,} images: minutes, once.")
        write_arrays(path, _computed(settings, num_train, num_test))
    arrays = read_arrays(path)
    x_train, x_test, *x_worse = turned(
        *standardised(arrays["train"], arrays["test"], *(arrays[kind] for kind in CORRUPTIONS))
    )
    worse = dict(zip(CORRUPTIONS, x_worse, strict=True))
    labels = arrays["y_train"], arrays["y_test"]
    sha256 = file_sha256(path)
    return FeatureRows(x_train, labels[0], x_test, labels[1], worse, x_test[:0], sha256)


def standardised(
    train: Float[np.ndarray, "train feature"], *others: Float[np.ndarray, "_ feature"]
) -> list[Float[np.ndarray, "_ feature"]]:
    """Each feature centred and divided by its deviation among the training rows.

    A feature that is constant there becomes 0.
    """
    parts = [part.astype(np.float32) for part in (train, *others)]
    centre, scale = parts[0].mean(axis=0), parts[0].std(axis=0)
    scale[scale == 0] = np.inf
    return [(part - centre) / scale for part in parts]


def turned(
    train: Float[np.ndarray, "train feature"], *others: Float[np.ndarray, "_ feature"]
) -> list[Float[np.ndarray, "_ feature"]]:
    """The same rows in the principal axes of the training rows, the widest first.

    Independent normal weights of one scale have the same law in all axes, and so have the
    functions under the posterior. What changes is that features are no longer correlated, so that a
    sampler whose metric is a diagonal can step as far along each of them as it is wide: along the
    features as they are it diverges unless its step is hundreds of times smaller.
    """
    axes = np.linalg.eigh(train.T @ train)[1][:, ::-1]
    return [part @ axes for part in (train, *others)]


def _computed(settings: PatchFeatures, num_train: int, num_test: int) -> dict[str, np.ndarray]:
    """Arrays of the file."""
    images = load(DATA)
    if images.arrays is None or images.train is None or images.test is None:
        raise InputError(f"The data set '{DATA}' has no images with a split.")
    x, y = images.arrays["x"], images.arrays["y"]
    train, test = images.train[:num_train], images.test[:num_test]
    dictionary = learn(settings, x[train])
    parts = {"train": x[train], "test": x[test]}
    found = {
        name: features(dictionary, part, settings.size).astype(np.float16)
        for name, part in {**parts, **_made_worse(x[test])}.items()
    }
    return {**found, "y_train": y[train].astype(np.int32), "y_test": y[test].astype(np.int32)}


def _made_worse(images: np.ndarray) -> dict[str, np.ndarray]:
    """The images by the kind of corruption."""
    return {kind: corrupted(images, kind, SEVERITY) for kind in CORRUPTIONS}
