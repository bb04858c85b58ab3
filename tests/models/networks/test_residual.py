"""Residual networks: their arithmetic written again, and what a posterior needs of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from credence.density.posterior import Posterior
from credence.errors import InputError
from credence.models import Categorical, Gaussian, ResNet
from credence.models.networks.residual import NORMS, Convolution, Weights, _as_product
from credence.models.saved import from_spec, to_spec

IMAGES = np.random.default_rng(0).normal(size=(6, 8, 8, 3))


def weights_of(network: ResNet) -> Weights:
    """Random ones, scales and biases too."""
    params = network.init(jax.random.key(0), jnp.asarray(IMAGES))
    leaves, tree = jax.tree.flatten(params)
    keys = jax.random.split(jax.random.key(1), len(leaves))
    noise = [0.1 * jax.random.normal(k, leaf.shape) for k, leaf in zip(keys, leaves, strict=True)]
    return jax.tree.unflatten(tree, [a + b for a, b in zip(leaves, noise, strict=True)])


def convolved(z: np.ndarray, kernel: np.ndarray, stride: int) -> np.ndarray:
    """Pixel by pixel, images padded with zeros as "SAME" does."""
    size, rows = kernel.shape[0], z.shape[1]
    out = -(-rows // stride)
    total = max((out - 1) * stride + size - rows, 0)
    padded = np.pad(z, ((0, 0), *[(total // 2, total - total // 2)] * 2, (0, 0)))
    result = np.zeros((len(z), out, out, kernel.shape[-1]))
    for i in range(out):
        for j in range(out):
            patch = padded[:, i * stride : i * stride + size, j * stride : j * stride + size]
            result[:, i, j] = np.einsum("nabc,abcd->nd", patch, kernel)
    return result


def by_hand(params: Weights, x: np.ndarray) -> np.ndarray:
    """The network with filter response normalisation and Swish, in NumPy."""
    swish = lambda z: z / (1 + np.exp(-z))  # noqa: E731

    def normed(layer: Convolution, z: np.ndarray, stride: int = 1) -> np.ndarray:
        z = convolved(z, np.asarray(layer.kernel), stride)
        z = z / np.sqrt((z**2).mean(axis=(1, 2), keepdims=True) + 1e-6)
        return z * np.asarray(layer.scale) + np.asarray(layer.bias)

    z = swish(normed(params.stem, x))
    for stage, blocks in enumerate(params.stages):
        for index, block in enumerate(blocks):
            stride = 2 if stage and not index else 1
            inner = normed(block.second, swish(normed(block.first, z, stride)))
            if block.shortcut is not None:
                z = convolved(z, np.asarray(block.shortcut), stride)
            z = swish(z + inner)
    return z.mean(axis=(1, 2)) @ np.asarray(params.last.kernel) + np.asarray(params.last.bias)


def test_outputs_are_those_written_by_hand() -> None:
    network = ResNet(3, 4, (1, 2))
    params = weights_of(network)
    ours = jax.jit(network.apply)(params, jnp.asarray(IMAGES))
    np.testing.assert_allclose(ours, by_hand(params, IMAGES), rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize(("rows", "size", "stride"), [(8, 3, 1), (8, 3, 2), (7, 3, 2), (8, 1, 2)])
def test_the_product_on_cpus_is_the_convolution_elsewhere(
    rows: int, size: int, stride: int
) -> None:
    z = jax.random.normal(jax.random.key(0), (2, rows, 6, 3))
    kernel = jax.random.normal(jax.random.key(1), (size, size, 3, 4))
    convolution = jax.lax.conv_general_dilated(
        z, kernel, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    np.testing.assert_allclose(_as_product(kernel, z, stride), convolution, atol=1e-5)


@pytest.mark.parametrize("norm", list(NORMS))
def test_an_output_depends_on_its_image_alone_but_with_batch_norm(norm: str) -> None:
    network = ResNet(3, 4, (1, 1), norm=norm)
    params = weights_of(network)
    all_of_them = jax.jit(network.apply)(params, jnp.asarray(IMAGES))[:2]
    two = jax.jit(network.apply)(params, jnp.asarray(IMAGES[:2]))
    assert np.allclose(all_of_them, two, atol=1e-5) == (norm != "batch")


def test_groups_have_mean_zero_and_variance_one() -> None:
    z = NORMS["group"](jnp.asarray(3 + 2 * np.random.default_rng(1).normal(size=(2, 5, 5, 16))))
    groups = np.asarray(z).reshape(2, 25, 8, 2).transpose(0, 2, 1, 3).reshape(16, 50)
    np.testing.assert_allclose(groups.mean(axis=1), 0, atol=1e-5)
    np.testing.assert_allclose(groups.var(axis=1), 1, atol=1e-4)


def test_published_sizes() -> None:
    """He et al. (2016): .27 million weights with 20 layers; ResNet-18 for 10 classes 11.17, and
    .555 billion multiplications for a photograph of 32 x 32 pixels (.041 with 20 layers)."""
    images = jax.ShapeDtypeStruct((1, 32, 32, 3), np.float32)
    for depth, millions, billions in ((20, 0.27, 0.041), (18, 11.17, 0.5554)):
        network = ResNet.of_depth(depth, 10)
        shapes = jax.eval_shape(network.init, jax.random.key(0), images)
        count = sum(leaf.size for leaf in jax.tree.leaves(shapes))
        assert round(count / 1e6, 2) == millions
        used = count * network.uses_per_weight(shapes, images.shape[1:])
        assert abs(used / 1e9 - billions) < 5e-4


def test_units_keep_their_size_at_the_start() -> None:
    network = ResNet.of_depth(8, 10)
    params = jax.jit(network.init)(jax.random.key(0), jnp.asarray(IMAGES))
    outputs = np.asarray(jax.jit(network.apply)(params, jnp.asarray(IMAGES)))
    assert 0.05 < outputs.std() < 20


def test_half_precision_is_near_the_whole_one() -> None:
    whole, half = ResNet(3, 4, (1,)), ResNet(3, 4, (1,), dtype="bfloat16")
    params = weights_of(whole)
    one, other = (jax.jit(each.apply)(params, jnp.asarray(IMAGES)) for each in (whole, half))
    assert other.dtype == one.dtype
    assert 0 < np.abs(one - other).max() < 0.05 * np.abs(one).max()


@pytest.mark.rotates(3)
def test_many_images_are_taken_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same log density and gradient, where the last chunk overlaps and where it does not."""
    labels = np.arange(6) % 3
    for size in (4, 3):
        whole = Posterior(ResNet(3, 2, (1,)), Gaussian(), Categorical(), (IMAGES, labels))
        position = whole.init(jax.random.key(0), 1)[0]

        def found(
            posterior: Posterior = whole, position: jax.Array = position
        ) -> tuple[jax.Array, jax.Array]:
            density = lambda w, data: posterior.model.log_density(  # noqa: E731
                posterior.model.unravel(w, data), data
            )
            return jax.jit(jax.value_and_grad(density))(position, posterior.data)

        value, gradient = found()
        monkeypatch.setattr("credence.density.posterior.MOST_IMAGES", size)
        in_chunks, gradient_in_chunks = found()
        np.testing.assert_allclose(in_chunks, value, rtol=1e-5)
        np.testing.assert_allclose(gradient_in_chunks, gradient, rtol=1e-3, atol=1e-4)
        monkeypatch.undo()


def test_fan_in_counts_the_inputs_of_a_unit() -> None:
    network = ResNet(3, 4, (1, 1))
    fan_in = network.fan_in(weights_of(network))
    assert fan_in.stem == Convolution(27, 0, 0)
    assert fan_in.stages[1][0].shortcut == 4
    assert fan_in.last.kernel == 8


def test_it_is_saved_as_data() -> None:
    network = ResNet(3, 4, (1, 1), norm="group")
    assert from_spec(to_spec(network)) == network


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"width": 0}, "needs at least one output"),
        ({"blocks": ()}, "needs at least one output"),
        ({"norm": "layer"}, "Unknown normalisation 'layer'"),
        ({"dtype": "int8"}, "Unknown dtype 'int8'"),
    ],
)
def test_refusals_are_sentences(settings: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ResNet(3, **settings)
    with pytest.raises(InputError, match="Depth must be one of 8, 18, 20, got 50"):
        ResNet.of_depth(50, 3)
