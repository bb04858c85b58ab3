"""Features of small patches of images, learnt without labels: one layer, learnt by k-means.

Coates, Lee & Ng, "An analysis of single-layer networks in unsupervised feature learning" (2011):

1. Every patch of 6x6 pixels is centred and divided by its own contrast.
2. Patches are whitened: ZCA, whose covariance is the identity up to `whitening_floor`.
3. Centres are found by k-means among patches of the training images.
4. A patch is described by how much nearer than usual it is to each centre, the triangle activation
   max(0, mean_k |x - c_k| - |x - c_j|), and an image by the means over its four quadrants.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from credence.errors import require_positive

CONTRAST_FLOOR = 10.0
"""Added to the variance of a patch's grey levels, 0 .. 255, so that flat patches stay flat."""
IMAGES_AT_A_TIME = 50

Images = Float[np.ndarray, "image row column channel"]
Patches = Float[Array, "patch pixel"]


@dataclass(frozen=True, kw_only=True)
class PatchFeatures:
    """What features are made of.

    Args:
        size: of a patch, in pixels.
        num_centres: an image has four times as many features.
        num_patches: drawn at random from the training images, to whiten and to find centres by.
        num_rounds: of k-means.
        whitening_floor: added to the eigenvalues of the patches' covariance.
        seed: of the patches and of the first centres.
    """

    size: int = 6
    num_centres: int = 400
    num_patches: int = 100_000
    num_rounds: int = 20
    whitening_floor: float = 0.1
    seed: int = 0

    def __post_init__(self) -> None:
        require_positive(
            size=self.size,
            num_centres=self.num_centres,
            num_patches=self.num_patches,
            num_rounds=self.num_rounds,
        )


class Dictionary(NamedTuple):
    """What is learnt from training images."""

    mean: Float[Array, " pixel"]
    whitening: Float[Array, "pixel pixel"]
    centres: Float[Array, "centre pixel"]


def learn(settings: PatchFeatures, images: Images) -> Dictionary:
    """Whitening and centres, from patches of these images."""
    rng = np.random.default_rng(settings.seed)
    patches = normalised(random_patches(rng, images, settings.size, settings.num_patches))
    mean, whitening = zca(patches, settings.whitening_floor)
    white = (patches - mean) @ whitening
    first = white[rng.choice(len(white), settings.num_centres, replace=False)]
    return Dictionary(mean, whitening, k_means(white, first, settings.num_rounds))


def features(
    dictionary: Dictionary, images: Images, size: int
) -> Float[np.ndarray, "image feature"]:
    """Pooled activations: the four quadrants one after another, each with all centres."""
    found = []
    for start in range(0, len(images), IMAGES_AT_A_TIME):
        part = images[start : start + IMAGES_AT_A_TIME]
        filled = np.resize(part, (IMAGES_AT_A_TIME, *part.shape[1:]))  # one shape is compiled
        found.append(np.asarray(_pooled(dictionary, jnp.asarray(filled, float), size))[: len(part)])
    return np.concatenate(found)


def random_patches(rng: np.random.Generator, images: Images, size: int, num: int) -> Patches:
    """Patches at random places of random images, as vectors of grey levels."""
    _, height, width, channels = images.shape
    which = rng.integers(len(images), size=num)
    rows = rng.integers(height - size + 1, size=num)[:, None] + np.arange(size)
    columns = rng.integers(width - size + 1, size=num)[:, None] + np.arange(size)
    found = images[which[:, None, None], rows[:, :, None], columns[:, None, :]]
    return jnp.asarray(found.reshape(num, size * size * channels), float)


def normalised(patches: Float[Array, "*patch pixel"]) -> Float[Array, "*patch pixel"]:
    """Each patch without its brightness, divided by its contrast."""
    centred = patches - patches.mean(axis=-1, keepdims=True)
    return centred / jnp.sqrt(patches.var(axis=-1, keepdims=True) + CONTRAST_FLOOR)


def zca(
    patches: Patches, floor: float
) -> tuple[Float[Array, " pixel"], Float[Array, "pixel pixel"]]:
    """Mean of the patches, and the symmetric matrix that makes their covariance the identity.

    A patch has no brightness left, so that one direction has no variance; the floor keeps its noise
    small.
    """
    mean = patches.mean(axis=0)
    values, vectors = jnp.linalg.eigh(jnp.cov((patches - mean).T, bias=True))
    roots = 1 / jnp.sqrt(jnp.maximum(values, 0.0) + floor)
    return mean, (vectors * roots) @ vectors.T


def k_means(white: Patches, centres: Float[Array, "centre pixel"], num_rounds: int) -> Any:
    """Lloyd's algorithm; a centre that nobody is nearest to stays where it is."""
    for _ in range(num_rounds):
        centres = _moved(white, centres)
    return centres


@jax.jit
def _moved(white: Patches, centres: Float[Array, "centre pixel"]) -> Float[Array, "centre pixel"]:
    nearest = jnp.argmin(squared_distances(white, centres), axis=-1)
    num = jnp.zeros(len(centres)).at[nearest].add(1.0)
    total = jnp.zeros_like(centres).at[nearest].add(white)
    return jnp.where(num[:, None] > 0, total / jnp.maximum(num, 1.0)[:, None], centres)


def squared_distances(
    points: Float[Array, "*patch pixel"], centres: Float[Array, "centre pixel"]
) -> Float[Array, "*patch centre"]:
    """Squared distances of all points from all centres."""
    lengths = jnp.sum(points**2, axis=-1, keepdims=True) + jnp.sum(centres**2, axis=-1)
    return jnp.maximum(lengths - 2 * points @ centres.T, 0.0)


def triangle(
    points: Float[Array, "*patch pixel"], centres: Float[Array, "centre pixel"]
) -> Float[Array, "*patch centre"]:
    """How much nearer than usual each centre is: half of them, about, give 0."""
    distances = jnp.sqrt(squared_distances(points, centres))
    return jnp.maximum(distances.mean(axis=-1, keepdims=True) - distances, 0.0)


@partial(jax.jit, static_argnames="size")
def _pooled(
    dictionary: Dictionary, images: Float[Array, "image row column channel"], size: int
) -> Float[Array, "image feature"]:
    patches = normalised(_all_patches(images, size))
    white = (patches - dictionary.mean) @ dictionary.whitening
    return pooled(triangle(white, dictionary.centres))


def _all_patches(
    images: Float[Array, "image row column channel"], size: int
) -> Float[Array, "image row column pixel"]:
    """The patch at every place, laid out as `random_patches` does."""
    _, height, width, _ = images.shape
    rows, columns = height - size + 1, width - size + 1
    shifted = [images[:, i : i + rows, j : j + columns] for i in range(size) for j in range(size)]
    return jnp.concatenate(shifted, axis=-1)


def pooled(
    activations: Float[Array, "image row column centre"],
) -> Float[Array, "image feature"]:
    """Means over the four quadrants; of an odd number the upper or left one has a row more."""
    rows, columns = (-(-n // 2) for n in activations.shape[1:3])
    quadrants = [
        part.mean(axis=(1, 2))
        for half in (activations[:, :rows], activations[:, rows:])
        for part in (half[:, :, :columns], half[:, :, columns:])
    ]
    return jnp.concatenate(quadrants, axis=-1)
