"""Peak memory of calibrate-emulate-sample where rows are many.

    python benchmarks/memory.py FOLDER [--rows 200000] [--features 1000] [--on-disk] [--passes]

Writes the regression of the FBNN paper's simulation to FOLDER (or goes on, or opens what is there),
runs CES for some hundred steps and prints, phase by phase, seconds and the peak of resident memory
(VmHWM, reset before each). Rows are read, not mapped, so that the peak holds no pages of the file.
--on-disk leaves the inputs where they are; otherwise they are in memory. --passes times the exact
log density of all chains instead.
"""

import argparse
import contextlib
import time
import warnings
from pathlib import Path
from typing import Any


def peak_mib() -> float:
    """Highest resident memory of this process since `reset`, in MiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def reset() -> None:
    """Forget the peak; where the system does not let one, peaks only grow."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--features", type=int, default=1000)
    parser.add_argument("--hidden", type=int, nargs="+", default=[50, 48])
    parser.add_argument("--on-disk", action="store_true")
    parser.add_argument("--passes", action="store_true")
    parser.add_argument("--chains", type=int, default=2)
    parser.add_argument("--steps", type=int, default=100, help="of warm-up and of sampling, each")
    parser.add_argument("--emulator-rows", type=int, default=2000)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    from credence import Posterior
    from credence.datasets.prepared.large import make_regression
    from credence.models import MLP, Gaussian, Normal

    report("import", 0.0)
    start = time.perf_counter()
    data = make_regression(
        options.folder, num_rows=options.rows, num_features=options.features, noise_std=10.0
    )
    report("generate or open", time.perf_counter() - start)
    start = time.perf_counter()
    y = (data.y - data.y.mean()) / data.y.std()
    network, prior = MLP(1, tuple(options.hidden)), Gaussian(scaling="fan_in")
    x = data.x if options.on_disk else data.x[:]
    posterior = Posterior(network, prior, Normal(), (x, y))
    del x
    report("check", time.perf_counter() - start)
    print(posterior, flush=True)
    if options.passes:
        passes(posterior, options.chains)
    else:
        sample(posterior, options)


def passes(posterior: Any, num_chains: int) -> None:
    """Seconds of a pass over all rows, by value and by gradient."""
    import jax

    positions = posterior.init(jax.random.key(0), num_chains)
    for name, one in (
        ("value", posterior.log_density),
        ("value and gradient", jax.value_and_grad(posterior.log_density)),
    ):
        program = jax.jit(jax.vmap(one, (0, None)))
        jax.block_until_ready(program(positions, posterior.data))
        start = time.perf_counter()
        for _ in range(3):
            jax.block_until_ready(program(positions, posterior.data))
        report(f"pass: {name}", (time.perf_counter() - start) / 3)


def sample(posterior: Any, options: Any) -> None:
    """A run of CES, and the peak of each of its phases."""
    import numpy as np

    from credence import methods
    from credence.engine.progress import NoProgress
    from credence.methods.surrogate.emulators import Taylor

    class Said(NoProgress):
        def say(self, text: str) -> None:
            print(f"  {text}", flush=True)

    method = methods.CES(
        num_chains=options.chains,
        num_draws=options.steps,
        num_warmup=options.steps,
        num_calibration=10,
        num_refinements=0,
        calibration="sghmc",
        calibration_rows=2000,
        emulator=Taylor(num_rows=options.emulator_rows, order=1),
        sampler="pcn",
        max_error=np.inf,
        training=methods.Training(max_epochs=20),
    )
    start = time.perf_counter()
    ensemble = method.run(0, posterior, progress=Said())
    report("run", time.perf_counter() - start)
    print({name: round(seconds, 1) for name, seconds in ensemble.cost.seconds.items()})
    print({name: float(np.mean(value)) for name, value in ensemble.scalars.items()})


def report(name: str, seconds: float) -> None:
    """Print a row of the table: seconds and peak memory since the last row."""
    print(f"| {name} | {seconds:.1f} s | {peak_mib():.0f} MiB |", flush=True)
    reset()


if __name__ == "__main__":
    main()
