"""Images per second of a residual network's gradient, inside a loop, as samplers run it.

    python benchmarks/images.py [--depth 8] [--batch 32] [--particles 2] [--dtype bfloat16]

Printed for convolutions as XLA's own operation and as one matrix product: milliseconds per
gradient of all particles, images per second and particle, and TFLOP/s of the convolutions (a
gradient counts as three evaluations). The network takes the product.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np

STEPS = 3


def seconds_per_gradient(depth: int, batch: int, particles: int, dtype: str | None) -> float:
    """Seconds that a gradient of all particles takes in a compiled loop, compilation left out."""
    from credence import Posterior
    from credence.models import Categorical, Gaussian, ResNet

    rng = np.random.default_rng(0)
    data = (rng.normal(size=(batch, 32, 32, 3)), rng.integers(10, size=batch))
    network = ResNet.of_depth(depth, 10, dtype=dtype)
    posterior = Posterior(network, Gaussian(), Categorical(), data)
    gradient = jax.vmap(jax.grad(posterior.log_density), (0, None))

    @jax.jit
    def loop(positions: jax.Array, data: Any) -> jax.Array:
        ascend = lambda _, w: w + 1e-6 * gradient(w, data)  # noqa: E731
        return jax.lax.fori_loop(0, STEPS, ascend, positions)

    start = posterior.init(jax.random.key(0), particles)
    jax.block_until_ready(loop(start, posterior.data))
    begin = time.perf_counter()
    jax.block_until_ready(loop(start, posterior.data))
    return (time.perf_counter() - begin) / STEPS


def operations(depth: int) -> float:
    """Multiplications and additions of the convolutions for one image."""
    from credence.models import ResNet
    from credence.models.networks import residual

    counted = 0
    convolve = residual._convolve

    def counting(kernel: Any, z: Any, stride: int, *, dtype: Any) -> Any:
        nonlocal counted
        outputs = convolve(kernel, z, stride, dtype=dtype)
        counted += 2 * prod(outputs.shape[1:3]) * kernel.size
        return outputs

    network, image = ResNet.of_depth(depth, 10), jnp.zeros((1, 32, 32, 3))
    with mock.patch.object(residual, "_convolve", counting):
        jax.eval_shape(
            lambda key: network.apply(network.init(key, image), image), jax.random.key(0)
        )
    return counted


def by_xla(kernel: Any, z: Any, stride: int) -> Any:
    """XLA's convolution, where the network has a product."""
    numbers = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(
        z, kernel, (stride, stride), "SAME", dimension_numbers=numbers
    )


def main() -> None:
    """Print both ways."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--depth", type=int, default=8)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--particles", type=int, default=2)
    parser.add_argument("--dtype", help="of convolutions")
    options = parser.parse_args()
    import credence
    from credence.models.networks import residual

    credence.configure()
    measure: Callable[[], float] = partial(seconds_per_gradient, **vars(options))
    flops = 3 * operations(options.depth) * options.batch * options.particles
    ways = {"one matrix product": residual._as_product, "XLA's convolution": by_xla}
    print(f"{jax.devices()[0].device_kind}, {vars(options)}")
    for name, way in ways.items():
        with mock.patch.object(residual, "_as_product", way):
            seconds = measure()
        print(
            f"{name}: {1e3 * seconds:.0f} ms, {options.batch / seconds:.0f} images/s for each "
            f"particle, {flops / seconds / 1e12:.3f} TFLOP/s",
            flush=True,
        )


if __name__ == "__main__":
    main()
