"""Likelihood and gradient of P networks on N points: share of the machine's matrix-product peak.

    python benchmarks/throughput.py

One process pinned to one core compares plain `vmap` with `credence.density.chunks` on
`credence.models.networks.dense`; a second one, pinned to two cores, shards the particles over two
host devices (there each call makes 200 gradient steps, about what a sampler's block does).
Operations are those of the matrix products alone: 2 N P (sum of kernel sizes) forward, and three
times that less the first layer's unused input gradient for both. Times are medians of interleaved
runs, compilation apart; the peak is the best float32 product of square matrices in the same
process.
Takes about two minutes on an idle machine; pinning needs Linux.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

SHAPES = (  # particles, points, widths from input to output
    (64, 200, (10, 8, 1)),
    (64, 442, (10, 8, 1)),
    (64, 455, (13, 50, 1)),
    (256, 455, (13, 50, 1)),
    (64, 1000, (10, 128, 1)),
    (64, 5000, (13, 50, 1)),
    (4, 442, (10, 50, 1)),
    (4, 455, (13, 50, 1)),
    (64, 455, (13, 50, 50, 1)),
)
COLUMNS = ("plain forward", "plain gradient", "forward", "gradient")


def flops(num_particles: int, num_points: int, widths: tuple[int, ...]) -> tuple[int, int]:
    """Operations of the matrix products: forward; value and gradient."""
    kernels = [fan_in * fan_out for fan_in, fan_out in pairwise(widths)]
    forward = 2 * num_particles * num_points * sum(kernels)
    return forward, 3 * forward - 2 * num_particles * num_points * kernels[0]


def median_seconds(calls: dict[str, Callable], rounds: int, at_least: float) -> dict[str, float]:
    """Median seconds of each call, the calls taking turns; each turn lasts `at_least` seconds."""
    import jax

    def seconds(call: Callable, repeats: int) -> float:
        start = time.perf_counter()
        for _ in range(repeats):
            jax.block_until_ready(call())
        return (time.perf_counter() - start) / repeats

    for call in calls.values():
        seconds(call, 1)  # compiles
    repeats = {name: 1 + int(at_least / seconds(call, 2)) for name, call in calls.items()}
    times = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            times[name].append(seconds(call, repeats[name]))
    return {name: float(np.median(values)) for name, values in times.items()}


def peak_flops() -> float:
    """Best rate over square matrix products."""
    import jax
    import jax.numpy as jnp

    product = jax.jit(jnp.matmul)

    def call(size: int) -> Callable:
        a = jnp.asarray(np.random.default_rng(0).standard_normal((size, size)), jnp.float32)
        return partial(product, a, a)

    sizes = (512, 768, 1024)
    times = median_seconds({str(size): call(size) for size in sizes}, rounds=9, at_least=0.05)
    return max(2 * size**3 / times[str(size)] for size in sizes)


def problem(num_particles: int, num_points: int, widths: tuple[int, ...]) -> tuple[Any, Any]:
    """Positions (particle, weight) and data (x, y, weight of each row)."""
    rng = np.random.default_rng(0)
    num_weights = sum((fan_in + 1) * fan_out for fan_in, fan_out in pairwise(widths))
    positions = 0.3 * rng.standard_normal((num_particles, num_weights))
    x = rng.standard_normal((num_points, widths[0]))
    y = rng.standard_normal((num_points, widths[-1]))
    data = (x, y, np.ones(num_points))
    return positions.astype(np.float32), tuple(array.astype(np.float32) for array in data)


def unravel(position: Any, widths: tuple[int, ...]) -> list[Any]:
    """Layers from one flat vector."""
    from credence.models.networks.dense import Layer

    layers, start = [], 0
    for fan_in, fan_out in pairwise(widths):
        end = start + fan_in * fan_out
        kernel = position[start:end].reshape(fan_in, fan_out)
        layers.append(Layer(kernel, position[end : end + fan_out]))
        start = end + fan_out
    return layers


def ours(widths: tuple[int, ...]) -> Callable:
    """Weighted sum of squared errors, as the library computes it."""
    import jax.numpy as jnp

    from credence.density.chunks import chunked
    from credence.models.networks.dense import mlp, tanh

    def squared_error(position: Any, data: Any) -> Any:
        x, y, weight = data
        return jnp.dot(weight, jnp.sum((mlp(unravel(position, widths), x, tanh) - y) ** 2, axis=1))

    return chunked(squared_error)


def plain(widths: tuple[int, ...]) -> Callable:
    """The same as one would first write it."""
    import jax.numpy as jnp

    def squared_error(position: Any, data: Any) -> Any:
        z, y, weight = data
        *hidden, last = unravel(position, widths)
        for layer in hidden:
            z = jnp.tanh(z @ layer.kernel + layer.bias)
        return jnp.sum(weight * jnp.sum((z @ last.kernel + last.bias - y) ** 2, axis=1))

    return squared_error


def one_device() -> list[dict[str, float]]:
    """Seconds of the four programs at every shape."""
    import jax

    results = []
    for shape in SHAPES:
        positions, data = jax.device_put(problem(*shape))
        functions = (plain(shape[-1]), ours(shape[-1]))
        programs = [
            partial(jax.jit(jax.vmap(program, (0, None))), positions, data)
            for function in functions
            for program in (function, jax.value_and_grad(function))
        ]
        calls: dict[str, Callable] = dict(zip(COLUMNS, programs, strict=True))
        results.append(median_seconds(calls, rounds=7, at_least=0.05))
    return results


def all_devices() -> list[float]:
    """Seconds of 200 gradient steps at every shape, particles sharded over all devices."""
    import jax
    from jax.sharding import NamedSharding, PartitionSpec

    mesh = jax.make_mesh((jax.device_count(),), ("particle",))
    by_particle, shared = PartitionSpec("particle"), PartitionSpec()

    def seconds(num_particles: int, num_points: int, widths: tuple[int, ...]) -> float:
        gradient = jax.vmap(jax.grad(ours(widths)), (0, None))

        def steps(positions: Any, data: Any) -> Any:
            return jax.lax.fori_loop(0, 200, lambda _, w: w - 1e-6 * gradient(w, data), positions)

        specs = {"in_specs": (by_particle, shared), "out_specs": by_particle}
        program = jax.jit(jax.shard_map(steps, mesh=mesh, **specs))
        positions, data = problem(num_particles, num_points, widths)
        positions = jax.device_put(positions, NamedSharding(mesh, by_particle))
        data = jax.device_put(data, NamedSharding(mesh, shared))
        call = partial(program, positions, data)
        return median_seconds({"steps": call}, rounds=7, at_least=0.05)["steps"]

    return [seconds(*shape) for shape in SHAPES]


def in_new_process(num_cores: int) -> dict[str, Any]:
    """This script's measurement with num_cores cores and as many JAX devices."""
    environment = {**os.environ, "JAX_NUM_CPU_DEVICES": str(num_cores), "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, __file__, "--cores", str(num_cores)]
    output = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE).stdout
    return json.loads(output)


def main() -> None:
    parser = argparse.ArgumentParser(description="Share of the matrix-product peak.")
    parser.add_argument("--cores", type=int, choices=(1, 2), help=argparse.SUPPRESS)
    num_cores = parser.parse_args().cores
    available = sorted(os.sched_getaffinity(0))
    if num_cores is None:
        print_table(in_new_process(1), in_new_process(2) if len(available) > 1 else None)
        return
    os.sched_setaffinity(0, available[-num_cores:])
    result: dict[str, Any] = {"steps": all_devices()}
    if num_cores == 1:
        result |= {"programs": one_device(), "peak": peak_flops()}
    print(json.dumps(result))


def print_table(single: dict[str, Any], double: dict[str, Any] | None) -> None:
    """Shares of the peak, and how much faster two devices are than one."""
    print(f"One-core matrix-product peak: {single['peak'] / 1e9:.0f} GFLOP/s. Shares of it:\n")
    print("| P, N, widths |", " | ".join(COLUMNS), "| two devices |")
    print("|---|" + "---|" * (len(COLUMNS) + 1))
    for i, (num_particles, num_points, widths) in enumerate(SHAPES):
        counts = 2 * flops(num_particles, num_points, widths)
        shares = [
            f"{count / single['programs'][i][column] / single['peak']:.0%}"
            for column, count in zip(COLUMNS, counts, strict=True)
        ]
        factor = f"x {single['steps'][i] / double['steps'][i]:.2f}" if double else "not measured"
        label = f"{num_particles}, {num_points}, {'-'.join(map(str, widths))}"
        print(f"| {label} |", " | ".join(shares), f"| {factor} |")


if __name__ == "__main__":
    main()
