"""Residual convolutional networks for images, with normalisations that suit a posterior."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from credence.errors import InputError, check_name, check_numbers
from credence.models.networks.convolutions import as_product
from credence.models.networks.dense import Layer
from credence.models.networks.mlp import ACTIVATIONS

Images = Float[Array, "point row column channel"]
Convolved = Float[Array, "point new_row new_column new_channel"]
SMALLEST = 1e-6
"""Added to a mean square before it is divided by."""
GROUPS = 8
"""Number of groups of channels in group normalisation; 1 where the channels do not divide evenly.
"""
DTYPES = ("bfloat16", "float32")


class Convolution(NamedTuple):
    """A convolution and the scale and bias of the normalisation after it."""

    kernel: Float[Array, "height width fan_in fan_out"]
    scale: Float[Array, " fan_out"]
    bias: Float[Array, " fan_out"]


class Block(NamedTuple):
    """Two convolutions, around which the input is carried, by a 1 x 1 kernel if shapes change."""

    first: Convolution
    second: Convolution
    shortcut: Float[Array, "1 1 fan_in fan_out"] | None


class Weights(NamedTuple):
    """The weights of a `ResNet`."""

    stem: Convolution
    stages: tuple[tuple[Block, ...], ...]
    last: Layer


@dataclass(frozen=True)
class ResNet:
    """Residual network for small images: He, Zhang, Ren & Sun, "Deep residual learning for image
    recognition" (2016), section 4.2, with a first convolution of 3 x 3 and no pooling before the
    last layer but the mean over the image.

    Filter response normalisation (Singh & Krishnan, 2020) and Swish, as in Izmailov, Vikram,
    Hoffman & Wilson, "What are Bayesian neural network posteriors really like?" (2021), treat every
    image alone, so that the outputs are a function of weights and image and the posterior is well
    defined. Batch normalisation is not such: every output depends on the other images of its batch,
    in training and in prediction; it is here to compare with what was published.

    Args:
        num_outputs: number of outputs per image.
        width: channels of the first stage; each later stage has twice as many, on a quarter of the
            pixels.
        blocks: residual blocks per stage.
        norm: "frn", "group", "batch" or "none".
        activation: one of `networks.ACTIVATIONS`; "silu" is Swish.
        dtype: of convolutions: "bfloat16", or None for that of the weights; these, means and
            outputs keep theirs.
    Raises:
        InputError: for a number below 1 or an unknown name.
    Scales count as biases in a prior: N(0, bias_std^2), centred at 0 though they start at 1.
    Images are (point, row, column, channel), wide enough that the last stage has more than one
    pixel: the filter response of one pixel is its sign. `ResNet.of_depth(18, 10)` has 11.2 million
    weights, that of depth 20 a quarter of a million.
    """

    num_outputs: int
    width: int = 16
    blocks: tuple[int, ...] = (3, 3, 3)
    norm: str = "frn"
    activation: str = "silu"
    dtype: str | None = None

    def __post_init__(self) -> None:
        check_numbers(self)
        if not isinstance(self.blocks, tuple) or not all(isinstance(n, int) for n in self.blocks):
            raise InputError(f"blocks must be a tuple of whole numbers, got {self.blocks!r}.")
        if not self.blocks or min(*self.blocks, self.width, self.num_outputs) < 1:
            raise InputError(
                "A residual network needs at least one output, channel, stage and block per stage, "
                f"got num_outputs={self.num_outputs}, width={self.width}, blocks={self.blocks}."
            )
        check_name("normalisation", self.norm, NORMS)
        check_name("activation", self.activation, ACTIVATIONS)
        if self.dtype is not None:
            check_name("dtype", self.dtype, DTYPES)

    @classmethod
    def of_depth(cls, depth: int, num_outputs: int, **others: Any) -> "ResNet":
        """ResNet-18 (64 channels at first, 2 blocks per stage), or one of the small networks for
        CIFAR, ResNet-20 and ResNet-8 (16 channels, 3 blocks or one)."""
        if depth not in DEPTHS:
            raise InputError(f"Depth must be one of {', '.join(map(str, DEPTHS))}, got {depth}.")
        width, blocks = DEPTHS[depth]
        return cls(num_outputs, width, blocks, **others)

    def init(self, key: PRNGKeyArray, x: Images) -> Weights:
        """Kernels of variance 2 / fan_in (He et al., 2015), scales one, biases zero."""
        if x.ndim != 4:
            raise InputError(
                f"A residual network takes images (point, row, column, channel), got {x.shape}."
            )
        keys = iter(jax.random.split(key, 2 + 3 * sum(self.blocks)))
        channels = x.shape[-1]
        stem = _convolution(next(keys), 3, channels, self.width, x.dtype)
        stages, channels = [], self.width
        for stage, num_blocks in enumerate(self.blocks):
            width = self.width * 2**stage
            blocks = []
            for _ in range(num_blocks):
                blocks.append(_block(keys, channels, width, x.dtype))
                channels = width
            stages.append(tuple(blocks))
        kernel = _he(next(keys), (channels, self.num_outputs), x.dtype) / 2**0.5
        return Weights(stem, tuple(stages), Layer(kernel, jnp.zeros(self.num_outputs, x.dtype)))

    def apply(self, params: Weights, x: Images) -> Float[Array, "point output"]:
        """Outputs for the images of x."""
        activation, norm = ACTIVATIONS[self.activation], NORMS[self.norm]
        convolve = partial(_convolve, dtype=self.dtype)

        def normed(layer: Convolution, z: Images, stride: int = 1) -> Convolved:
            return norm(convolve(layer.kernel, z, stride)) * layer.scale + layer.bias

        z = activation(normed(params.stem, x))
        for stage, blocks in enumerate(params.stages):
            for index, block in enumerate(blocks):
                stride = 2 if stage > 0 and index == 0 else 1
                inner = normed(block.second, activation(normed(block.first, z, stride)))
                carried = z if block.shortcut is None else convolve(block.shortcut, z, stride)
                z = activation(carried + inner)
        return z.mean(axis=(1, 2)) @ params.last.kernel + params.last.bias

    def fan_in(self, params: Weights) -> Weights:
        """Inputs per neuron of every kernel, 0 for scales and biases."""

        def count(array: Array) -> int:
            return 0 if array.ndim == 1 else array.size // array.shape[-1]

        return jax.tree.map(count, params)

    def uses_per_weight(self, params: Weights, shape: tuple[int, ...]) -> float:
        """Multiplications for one image of that shape, per weight: a kernel is used at every pixel.

        Args:
            params: the weights, or their shapes.
        """
        rows, columns, _ = shape
        total = params.stem.kernel.size * rows * columns + params.last.kernel.size
        for stage, blocks in enumerate(params.stages):
            if stage > 0:
                rows, columns = -(-rows // 2), -(-columns // 2)
            kernels = [leaf for leaf in jax.tree.leaves(blocks) if leaf.ndim == 4]
            total += rows * columns * sum(kernel.size for kernel in kernels)
        return total / sum(leaf.size for leaf in jax.tree.leaves(params))


DEPTHS = {8: (16, (1, 1, 1)), 18: (64, (2, 2, 2, 2)), 20: (16, (3, 3, 3))}
"""Channels of the first stage and blocks per stage, by number of layers."""


def _filter_response(z: Images) -> Images:
    """Each channel of each image by its root mean square: Singh & Krishnan, "Filter response
    normalization layer" (2020), eq. (1)."""
    return z * jax.lax.rsqrt(jnp.mean(z**2, axis=(1, 2), keepdims=True) + SMALLEST)


def _group(z: Images) -> Images:
    """Groups of channels of each image to mean 0 and variance 1: Wu & He (2018)."""
    groups = GROUPS if z.shape[-1] % GROUPS == 0 else 1
    split = z.reshape(*z.shape[:-1], groups, -1)
    return _standardised(split, (1, 2, 4)).reshape(z.shape)


def _batch(z: Images) -> Images:
    """Each channel of a whole batch to mean 0 and variance 1: Ioffe & Szegedy (2015)."""
    return _standardised(z, (0, 1, 2))


def _standardised(z: Float[Array, "..."], axes: tuple[int, ...]) -> Float[Array, "..."]:
    centred = z - jnp.mean(z, axis=axes, keepdims=True)
    return centred * jax.lax.rsqrt(jnp.mean(centred**2, axis=axes, keepdims=True) + SMALLEST)


NORMS: dict[str, Callable[[Images], Images]] = {
    "frn": _filter_response,
    "group": _group,
    "batch": _batch,
    "none": lambda z: z,
}
"""Normalisations by name."""


def _convolve(
    kernel: Float[Array, "size size fan_in fan_out"],
    z: Float[Array, "point row column fan_in"],
    stride: int,
    *,
    dtype: Any,
) -> Convolved:
    """Cross-correlation, zeros around the image ("SAME").

    One matrix product: samplers move networks abreast, and XLA's own operation is then grouped by
    network, which took 14 ms where the product takes 6 on an H200 (`benchmarks/images.py`).
    """
    dtype = dtype or kernel.dtype
    outputs = _as_product(kernel.astype(dtype), z.astype(dtype), stride)
    return outputs.astype(kernel.dtype)


def _as_product(
    kernel: Float[Array, "size size fan_in fan_out"],
    z: Float[Array, "point row column fan_in"],
    stride: int,
) -> Convolved:
    """The same as one matrix product."""
    padding = [_around(length, kernel.shape[0], stride) for length in z.shape[1:3]]
    return as_product(kernel, z, (stride, stride), padding)


def _around(length: int, size: int, stride: int) -> tuple[int, int]:
    """Zeros before and after, so that every window has `size` pixels."""
    total = max((-(-length // stride) - 1) * stride + size - length, 0)
    return total // 2, total - total // 2


def _block(keys: Iterator[PRNGKeyArray], channels: int, width: int, dtype: Any) -> Block:
    first = _convolution(next(keys), 3, channels, width, dtype)
    second = _convolution(next(keys), 3, width, width, dtype)
    key = next(keys)
    shortcut = None if channels == width else _he(key, (1, 1, channels, width), dtype)
    return Block(first, second, shortcut)


def _convolution(
    key: PRNGKeyArray, size: int, fan_in: int, fan_out: int, dtype: Any
) -> Convolution:
    kernel = _he(key, (size, size, fan_in, fan_out), dtype)
    return Convolution(kernel, jnp.ones(fan_out, dtype), jnp.zeros(fan_out, dtype))


def _he(key: PRNGKeyArray, shape: tuple[int, ...], dtype: Any) -> Array:
    return jax.random.normal(key, shape, dtype) * (2 / prod(shape[:-1])) ** 0.5
