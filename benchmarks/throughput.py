"""Likelihood and gradient of P networks on N points: share of the machine's matrix-product peak.

    python benchmarks/throughput.py --out FOLDER
    python benchmarks/throughput.py --out FOLDER --table

Each shape has a process pinned to one core, which compares plain `vmap` with
`credence.density.chunks` on `credence.models.networks.dense`, and where there are two cores a
second process pinned to both, which shards the particles over two devices (in both, 200 gradient
steps are a call, about what a sampler's block does). Operations are those of the matrix products
alone: 2 N P (sum of kernel sizes) forward, and three times that less the first layer's unused input
gradient for both. Times are medians of interleaved runs, compilation apart; the peak is the best
float32 product of square matrices in the same process. What is done already is in
FOLDER/rows.jsonl and is not done again. Takes about eight minutes on two idle cores; needs Linux.
"""

import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from rows import commits, done, markdown, measure, parser_of

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
COLUMNS = ("plain forward", "plain gradient", "Credence forward", "Credence gradient")


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


def program_seconds(num_particles: int, num_points: int, widths: tuple[int, ...]) -> dict[str, Any]:
    """Seconds of the four programs on one device."""
    import jax

    positions, data = jax.device_put(problem(num_particles, num_points, widths))
    programs = [
        partial(jax.jit(jax.vmap(program, (0, None))), positions, data)
        for function in (plain(widths), ours(widths))
        for program in (function, jax.value_and_grad(function))
    ]
    calls: dict[str, Callable] = dict(zip(COLUMNS, programs, strict=True))
    return median_seconds(calls, rounds=7, at_least=0.05)


def steps_seconds(num_particles: int, num_points: int, widths: tuple[int, ...]) -> float:
    """Seconds of 200 gradient steps, particles sharded over all devices."""
    import jax
    from jax.sharding import NamedSharding, PartitionSpec

    mesh = jax.make_mesh((jax.device_count(),), ("particle",))
    by_particle, shared = PartitionSpec("particle"), PartitionSpec()
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


def shape_of(row: dict[str, Any]) -> tuple[int, int, tuple[int, ...]]:
    """Particles, points and widths."""
    return row["num_particles"], row["num_points"], tuple(row["widths"])


def measured(case: dict[str, Any]) -> dict[str, Any]:
    """Measure a shape in this process: with one device the programs and the peak, too."""
    shape = shape_of(case)
    found: dict[str, Any] = {"steps_seconds": steps_seconds(*shape)}
    if case["num_cores"] == 1:
        found |= {"program_seconds": program_seconds(*shape), "peak_flops": peak_flops()}
    return found


def table_lines(rows: list[dict[str, Any]]) -> list[str]:
    """Shares of the peak, and how much faster two cores are than one."""
    heads = ("P, N, widths", *COLUMNS, "two cores")
    lines = []
    single = {shape_of(row): row for row in rows if row["num_cores"] == 1}
    double = {shape_of(row): row for row in rows if row["num_cores"] == 2}
    for shape, row in single.items():
        shares = [
            f"{count / row['program_seconds'][column] / row['peak_flops']:.0%}"
            for column, count in zip(COLUMNS, 2 * flops(*shape), strict=True)
        ]
        factor = "not measured"
        if shape in double:
            factor = f"x {row['steps_seconds'] / double[shape]['steps_seconds']:.2f}"
        label = f"{shape[0]}, {shape[1]}, {'-'.join(map(str, shape[2]))}"
        lines.append([label, *shares, factor])
    peak = np.median([row["peak_flops"] for row in single.values()]) / 1e9
    about = f"Peak of one core: {peak:.0f} GFLOP/s (median). Commit {commits(rows)}."
    return [*markdown(heads, lines), "", about]


def main() -> None:
    options = parser_of(__doc__).parse_args()
    from credence.environment import num_cores

    cases = [
        {"num_particles": p, "num_points": n, "widths": list(widths), "num_cores": count}
        for p, n, widths in SHAPES
        for count in (1, 2)[: num_cores()]
    ]
    measure(options.out, () if options.table else cases, measured)
    print("\n".join(table_lines(done(options.out))))


if __name__ == "__main__":
    main()
