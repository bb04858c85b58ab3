"""Features of patches, against NumPy on small images made here."""

import numpy as np
import pytest

from credence.errors import InputError
from credence_papers.nonlinear.patch_features import (
    PatchFeatures,
    features,
    k_means,
    learn,
    normalised,
    pooled,
    random_patches,
    squared_distances,
    triangle,
    zca,
)

SMALL = PatchFeatures(size=3, num_centres=7, num_patches=400, num_rounds=5)


def images(num: int = 20, side: int = 8) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, size=(num, side, side, 3)).astype(np.uint8)


def by_hand(x: np.ndarray, settings: PatchFeatures) -> np.ndarray:
    """Features of one image, patch by patch."""
    dictionary = [np.asarray(part, float) for part in learn(settings, images())]
    mean, whitening, centres = dictionary
    size, places = settings.size, x.shape[0] - settings.size + 1
    found = np.zeros((places, places, len(centres)))
    for i in range(places):
        for j in range(places):
            patch = x[i : i + size, j : j + size].astype(float).ravel()
            patch = (patch - patch.mean()) / np.sqrt(patch.var() + 10)
            far = np.linalg.norm((patch - mean) @ whitening - centres, axis=1)
            found[i, j] = np.maximum(0, far.mean() - far)
    half = -(-places // 2)
    parts = [
        found[rows, columns].mean(axis=(0, 1))
        for rows in (slice(half), slice(half, None))
        for columns in (slice(half), slice(half, None))
    ]
    return np.concatenate(parts)


def test_features_of_an_image_are_those_by_hand() -> None:
    x = images()
    found = features(learn(SMALL, x), x[:3], SMALL.size)
    assert found.shape == (3, 4 * SMALL.num_centres)
    for image, row in zip(x, found, strict=False):
        np.testing.assert_allclose(row, by_hand(image, SMALL), atol=2e-4)
    assert np.abs(found[0] - by_hand(x[1], SMALL)).max() > 0.01  # another image's are not these


def test_whitened_patches_have_the_identity_as_covariance() -> None:
    """The covariance is 1 along every axis but that of the brightness, which patches lost."""
    rng = np.random.default_rng(1)
    patches = normalised(random_patches(rng, images(200), 3, 20_000))
    mean, whitening = zca(patches, 0.0 + 1e-6)
    white = np.asarray((patches - mean) @ whitening, float)
    values = np.linalg.eigvalsh(np.cov(white.T))
    assert values[0] < 0.05
    np.testing.assert_allclose(values[1:], 1, atol=2e-3)
    before = np.linalg.eigvalsh(np.cov(np.asarray(patches, float).T))
    assert before[-1] > 1.05  # patches as they are would be caught


def test_triangle_activation() -> None:
    rng = np.random.default_rng(2)
    points, centres = rng.normal(size=(5, 4)), rng.normal(size=(3, 4))
    far = np.linalg.norm(points[:, None] - centres, axis=-1)
    exact = np.maximum(0, far.mean(axis=1, keepdims=True) - far)
    np.testing.assert_allclose(triangle(points, centres), exact, atol=1e-5)
    np.testing.assert_allclose(squared_distances(points, centres), far**2, rtol=1e-4)


def test_pooling_takes_quadrants_of_an_odd_number_of_places() -> None:
    x = np.arange(2 * 5 * 5 * 3, dtype=float).reshape(2, 5, 5, 3)
    found = pooled(x)
    assert found.shape == (2, 12)
    np.testing.assert_allclose(found[:, :3], x[:, :3, :3].mean(axis=(1, 2)))
    np.testing.assert_allclose(found[:, 9:], x[:, 3:, 3:].mean(axis=(1, 2)))


def test_k_means_finds_three_heaps() -> None:
    rng = np.random.default_rng(3)
    heaps = np.array([[0.0, 0], [10, 0], [0, 10]])
    points = np.concatenate([heap + 0.1 * rng.normal(size=(50, 2)) for heap in heaps])
    found = np.asarray(k_means(points, points[[0, 60, 120]], 5))
    np.testing.assert_allclose(found, heaps, atol=0.1)
    lonely = np.array([[0.0, 0], [10, 0], [0, 10], [99, 99]])
    np.testing.assert_array_equal(np.asarray(k_means(points, lonely, 2))[3], [99, 99])


def test_same_seed_same_features() -> None:
    x = images()
    first, again, other = (
        features(learn(PatchFeatures(size=3, num_centres=7, num_patches=400, seed=s), x), x[:2], 3)
        for s in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, again)
    assert not np.allclose(first, other)


def test_nothing_to_cut() -> None:
    with pytest.raises(InputError, match="num_centres must be > 0"):
        PatchFeatures(num_centres=0)
