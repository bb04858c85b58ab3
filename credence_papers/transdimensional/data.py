"""The data of the trans-dimensional experiments, split so that no test row is seen in training."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from credence.compare import problem
from credence.compare.problem import Arrays
from credence.compare.sources import TableSource, UCISource
from credence.compare.specs import RowLimits
from credence.datasets import load as load_dataset
from credence.datasets import xor
from credence.datasets.prepared.digits import principal_components

NUM_COMPONENTS = 20
TRAIN_PER_CLASS, TEST_PER_CLASS = 50, 200


@dataclass(frozen=True)
class Clouds:
    """XOR: 200 points to learn from, and 200 others from the same four clouds."""

    variance: float

    def __call__(self, seed: int) -> Arrays:
        x_train, y_train = xor(seed=2 * seed, variance=self.variance)
        x_test, y_test = xor(seed=2 * seed + 1, variance=self.variance)
        return Arrays(x_train, y_train, x_test, y_test, None, ("0", "1"))


@dataclass(frozen=True)
class Digits:
    """OptDigits: 50 images per class of the training writers, at most 200 of the other writers.

    Every image is standardised by itself; components are those of the training images drawn.
    """

    num_classes: int

    def __call__(self, seed: int) -> Arrays:
        images, labels, train, test = self.drawn(seed)
        images = (images - images.mean(axis=1, keepdims=True)) / images.std(axis=1, keepdims=True)
        mean, directions = principal_components(images[train], NUM_COMPONENTS)
        x_train, x_test = ((images[rows] - mean) @ directions for rows in (train, test))
        names = tuple(map(str, range(self.num_classes)))
        return Arrays(x_train, labels[train], x_test, labels[test], None, names)

    def drawn(
        self, seed: int
    ) -> tuple[
        Float[np.ndarray, "image pixel"],
        Int[np.ndarray, " image"],
        Int[np.ndarray, " train"],
        Int[np.ndarray, " test"],
    ]:
        """All images as they are, their labels, and which are to learn from and to test on."""
        data = load_dataset("optdigits")
        assert data.frame is not None
        assert data.train is not None
        assert data.test is not None
        labels = data.frame["digit"].to_numpy().astype(int)
        images = data.frame.drop(columns="digit").to_numpy(float)
        rng = np.random.default_rng(seed)
        train = _balanced(rng, labels, data.train, self.num_classes, TRAIN_PER_CLASS)
        test = _balanced(rng, labels, data.test, self.num_classes, TEST_PER_CLASS)
        return images, labels, train, test


def boston(seed: int) -> Arrays:
    """Boston: one half of the rows to learn from, and their mean and scale for both halves."""
    source = TableSource(table="boston", target="MEDV", test_fraction=0.5, split_seed=seed)
    return problem.load(source, RowLimits())


@dataclass(frozen=True)
class PublishedSplits:
    """A table by its published UCI splits: the seed is the number of the split."""

    table: str

    def __call__(self, seed: int) -> Arrays:
        return problem.load(UCISource(name=self.table, split_seed=seed), RowLimits())


def _balanced(
    rng: np.random.Generator,
    labels: Int[np.ndarray, " point"],
    rows: Int[np.ndarray, " row"],
    num_classes: int,
    most: int,
) -> Int[np.ndarray, " chosen"]:
    """Choose at most `most` rows of every class, at random, and keep their order."""
    of = [rng.permutation(rows[labels[rows] == label])[:most] for label in range(num_classes)]
    return np.sort(np.concatenate(of))
