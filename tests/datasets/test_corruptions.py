"""Images made worse on purpose: by how much, and which way."""

import numpy as np
import pytest

from credence.datasets import corrupted
from credence.datasets.prepared.corruptions import SEVERITIES
from credence.errors import InputError

GREY = np.full((4, 40, 40, 3), 128, np.uint8)
PHOTOS = np.random.default_rng(0).integers(60, 200, size=(6, 16, 16, 3)).astype(np.uint8)


@pytest.mark.parametrize("severity", [1, 5])
def test_noise_has_the_deviation_of_its_severity(severity: int) -> None:
    noise = corrupted(GREY, "noise", severity) - 128
    std = 255 * SEVERITIES["noise"][severity - 1]
    error = std / np.sqrt(2 * noise.size)
    assert abs(noise.std() - std) < 4 * error
    assert abs(noise.mean()) < 4 * std / np.sqrt(noise.size)
    assert np.corrcoef(noise[..., 0].ravel(), noise[..., 1].ravel())[0, 1] < 0.06
    np.testing.assert_array_equal(noise, corrupted(GREY, "noise", severity) - 128)
    assert np.abs(noise - (corrupted(GREY, "noise", severity, seed=1) - 128)).max() > 1


def test_a_blur_spreads_a_point_over_its_neighbours_and_no_channel() -> None:
    point = np.zeros((1, 15, 15, 3), np.uint8)
    point[0, 7, 7, 1] = 200
    found = corrupted(point, "blur", 5)
    assert found.sum() == pytest.approx(200, rel=1e-4)
    assert found[..., [0, 2]].sum() == 0
    places = np.arange(15) - 7
    variance = (found[0, :, :, 1].sum(axis=1) * places**2).sum() / 200
    assert variance == pytest.approx(1.0, rel=0.02)


def test_contrast_keeps_the_mean_of_every_channel() -> None:
    found = corrupted(PHOTOS, "contrast", 5)
    np.testing.assert_allclose(found.mean(axis=(1, 2)), PHOTOS.mean(axis=(1, 2)), rtol=1e-5)
    np.testing.assert_allclose(found.std(axis=(1, 2)), 0.15 * PHOTOS.std(axis=(1, 2)), rtol=1e-4)


@pytest.mark.parametrize("kind", SEVERITIES)
def test_levels_stay_levels_and_images_are_not_changed_in_place(kind: str) -> None:
    images = np.random.default_rng(1).integers(0, 256, size=(3, 8, 8, 3)).astype(np.float32)
    before = images.copy()
    distances = [np.abs(corrupted(images, kind, s) - images).mean() for s in range(1, 6)]
    assert distances == sorted(distances)
    found = corrupted(images, kind, 5)
    assert 0 <= found.min() <= found.max() <= 255
    np.testing.assert_array_equal(images, before)


def test_nonsense_is_refused() -> None:
    with pytest.raises(InputError, match="corruption"):
        corrupted(GREY, "fog")
    with pytest.raises(InputError, match="severity must be"):
        corrupted(GREY, "blur", 6)
    with pytest.raises(InputError, match="Levels must be"):
        corrupted(GREY.astype(float) - 200, "blur")
    with pytest.raises(InputError, match="severity must be"):
        corrupted(GREY, "blur", 0)
    for images in (GREY[0], GREY[..., 0], GREY.transpose(0, 3, 1, 2)):
        with pytest.raises(InputError, match="one or three channels"):
            corrupted(images, "noise")
    with pytest.raises(InputError, match="multiply by 255"):
        corrupted(GREY / 255, "noise")
    with pytest.raises(InputError, match="Levels must be"):
        corrupted(np.where(GREY > 0, np.nan, 1.0), "noise")
