"""Images made worse on purpose, to see whether a network grows less sure of what it sees less well.

The kinds and their severities are three of those of Hendrycks & Dietterich, "Benchmarking neural
network robustness to common corruptions and perturbations" (2019), with the numbers of their
CIFAR-10-C.
"""

import numpy as np
from jaxtyping import Float, Num

from credence.errors import InputError, check_name

Images = Num[np.ndarray, "*image_row_column_channel"]
Corrupted = Float[np.ndarray, "*image_row_column_channel"]
WHITE = 255.0

SEVERITIES = {
    "noise": (0.04, 0.06, 0.08, 0.09, 0.10),
    "blur": (0.4, 0.6, 0.7, 0.8, 1.0),
    "contrast": (0.75, 0.5, 0.4, 0.3, 0.15),
}
"""Amounts of severity 1 to 5: the noise's standard deviation, in parts of white; the standard
deviation of the normal blur, in pixels; the share of the contrast that is left."""


def corrupted(images: Images, kind: str, severity: int = 3, seed: int = 0) -> Corrupted:
    """Images with noise, with a blur, or with less contrast.

    Args:
        images: levels from 0 to 255.
        kind: "noise", normal and independent for every pixel and channel; "blur", by a normal
            kernel, images reflected at their edges; "contrast", nearer to the mean of the image's
            channel.
        severity: from 1 to 5, the worst.
        seed: of the noise.
    Returns:
        Levels from 0 to 255, not rounded.
    Raises:
        InputError: for an unknown kind or severity, other arrays than images, or levels that do not
            go from 0 to 255.
    """
    check_name("corruption", kind, SEVERITIES)
    if not isinstance(severity, int) or severity not in range(1, 6):
        raise InputError(f"severity must be a whole number from 1 to 5, got {severity!r}.")
    _check_levels(images)
    amount = SEVERITIES[kind][severity - 1]
    levels = images.astype(np.float32)
    if kind == "noise":
        rng = np.random.default_rng(seed)
        levels += WHITE * amount * rng.standard_normal(levels.shape, np.float32)
    elif kind == "blur":
        from scipy.ndimage import gaussian_filter

        levels = gaussian_filter(levels, (0, amount, amount, 0))
    else:
        mean = levels.mean(axis=(1, 2), keepdims=True)
        levels = mean + amount * (levels - mean)
    return np.clip(levels, 0, WHITE)


def _check_levels(images: np.ndarray) -> None:
    """Refuse what is no stack of images with levels from 0 to 255."""
    if images.ndim != 4 or images.shape[-1] not in (1, 3):
        raise InputError(
            "Images must be (image, row, column, channel) with one or three channels, got "
            f"{images.shape}: images[..., None] adds a channel."
        )
    lowest, highest = images.min(initial=0), images.max(initial=0)
    if not 0 <= lowest <= highest <= WHITE:
        raise InputError(f"Levels must be from 0 to 255, got {lowest:g} to {highest:g}.")
    if images.dtype.kind == "f" and 0 < highest <= 1:
        raise InputError(f"Levels must be from 0 to 255, got at most {highest:g}: multiply by 255.")
