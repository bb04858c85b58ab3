"""Handwritten digits by their principal components, for nested numbers of features."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from credence.datasets.catalogue.registry import load
from credence.errors import InputError


class Digits(NamedTuple):
    """Training and test images as principal components, and labels from 0."""

    x_train: Float[np.ndarray, "train component"]
    y_train: Int[np.ndarray, " train"]
    x_test: Float[np.ndarray, "test component"]
    y_test: Int[np.ndarray, " test"]
    x_others: Float[np.ndarray, "other component"]
    """Test images of digits that no label stands for."""


def principal_digits(
    num_components: int = 100,
    *,
    digits: tuple[int, ...] = (0, 1),
    others: tuple[int, ...] = (),
    num_train: int | None = 400,
    seed: int = 0,
) -> Digits:
    """MNIST images of some digits by their first principal components.

    Components are those of all training images of these digits (grey levels 0..1), in order of
    falling variance: 100 of them are the first 100 of 400.

    Args:
        num_components: at most 784.
        digits: which; the label is the place in this tuple.
        others: digits that are no label, for tests of what a network says of strange images.
        num_train: training images drawn at random, without replacement; None keeps all.
        seed: of that draw.
    Raises:
        InputError: for other numbers, or where MNIST is not to be had; see `load`.
    """
    both = (*digits, *others)
    if not (digits and set(both) <= set(range(10)) and len(set(both)) == len(both)):
        raise InputError(
            f"digits and others must be different numbers from 0 to 9, got {digits} and {others}."
        )
    if not 1 <= num_components <= 784:
        raise InputError(f"num_components must be from 1 to 784, got {num_components}.")
    data = load("mnist")
    assert data.arrays is not None
    assert data.train is not None
    assert data.test is not None
    images, labels = data.arrays["x"], data.arrays["y"]
    train, test = (rows[np.isin(labels[rows], digits)] for rows in (data.train, data.test))
    strange = data.test[np.isin(labels[data.test], others)]
    mean, directions = principal_components(_flat(images[train]), num_components)
    if num_train is not None:
        if not 1 <= num_train <= len(train):
            raise InputError(f"num_train must be from 1 to {len(train)}, got {num_train}.")
        train = np.random.default_rng(seed).permutation(train)[:num_train]
    place = np.zeros(10, np.int64)
    place[list(digits)] = np.arange(len(digits))
    x_train, x_test, x_others = (
        (_flat(images[rows]) - mean) @ directions for rows in (train, test, strange)
    )
    return Digits(x_train, place[labels[train]], x_test, place[labels[test]], x_others)


def principal_components(
    x: Float[np.ndarray, "point feature"], num_components: int
) -> tuple[Float[np.ndarray, " feature"], Float[np.ndarray, "feature component"]]:
    """Mean, and unit directions of largest variance, each with its largest entry positive."""
    mean = x.mean(axis=0)
    _, vectors = np.linalg.eigh((x - mean).T @ (x - mean))
    directions = vectors[:, ::-1][:, :num_components]
    largest = np.abs(directions).argmax(axis=0)
    return mean, directions * np.sign(directions[largest, np.arange(num_components)])


def _flat(images: np.ndarray) -> Float[np.ndarray, "point pixel"]:
    return images.reshape(len(images), int(np.prod(images.shape[1:]))) / 255.0
