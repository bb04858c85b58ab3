"""Peak memory of calibrate-emulate-sample where rows are many.

    python benchmarks/memory.py FOLDER --out FOLDER
    python benchmarks/memory.py FOLDER --out FOLDER --rows 5000000 --hidden 5 --steps 10 \\
        --kinds run --inputs disk
    python benchmarks/memory.py FOLDER --out FOLDER --table

Writes the regression of the FBNN paper's simulation to the first folder (or goes on, or opens what
is there). Then "passes" times the exact log density of all chains, and "run" some hundred steps of
CES: with the inputs in memory, and where they are, on disk. Each is a row of rows.jsonl in the
folder --out, made by a process of its own, and what is there already is not done again. A row has
seconds and the peak of resident memory (VmHWM, reset before) of each phase. Rows are read, not
mapped, so that the peak holds no pages of the file. All chains are on one device, and share a pass.
Seconds of the tables are without compilation.
"""

import contextlib
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from rows import commits, done, markdown, measure, parser_of, values

NUM_CHAINS, NUM_PASSES = 2, 3
FEW_ROWS = 2000
"""Rows that calibrate, and rows that the emulator takes as they are."""
PLACES = {"memory": "in memory", "disk": "on disk"}
Phases = dict[str, dict[str, float]]


@contextlib.contextmanager
def phase(phases: Phases, name: str) -> Iterator[None]:
    """Measure seconds and peak memory, which only grows where the system does not reset it."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    start = time.perf_counter()
    yield
    phases[name] = {"seconds": time.perf_counter() - start, "peak_mib": peak_mib()}


def peak_mib() -> float:
    """Highest resident memory of this process since it was reset, in MiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def measured(folder: str, case: dict[str, Any]) -> dict[str, Any]:
    """Seconds and peak memory of the phases, and what a run accepted."""
    warnings.simplefilter("ignore")
    phases: Phases = {}
    with phase(phases, "import"):
        import credence
        from credence import Posterior
        from credence.datasets.prepared.large import make_regression
        from credence.models import MLP, Gaussian, Normal

        credence.configure(num_cpu_devices=1)
    with phase(phases, "generate or open"):
        size = {"num_rows": case["num_rows"], "num_features": case["num_features"]}
        data = make_regression(folder, **size, noise_std=10.0)
    with phase(phases, "check"):
        y = (data.y - data.y.mean()) / data.y.std()
        x = data.x if case["inputs"] == "disk" else data.x[:]
        network, prior = MLP(1, tuple(case["hidden"])), Gaussian(scaling="fan_in")
        posterior = Posterior(network, prior, Normal(), (x, y))
        del x
    found = KINDS[case["kind"]](posterior, phases, case)
    return {"num_weights": posterior.num_weights, "phases": phases, **found}


def passes(posterior: Any, phases: Phases, case: dict[str, Any]) -> dict[str, Any]:
    """Seconds of some passes over all rows, by value and by gradient."""
    import jax

    positions = posterior.init(jax.random.key(0), case["num_chains"])
    for name, one in (
        ("value", posterior.log_density),
        ("value and gradient", jax.value_and_grad(posterior.log_density)),
    ):
        program = jax.jit(jax.vmap(one, (0, None)))
        jax.block_until_ready(program(positions, posterior.data))
        with phase(phases, name):
            for _ in range(NUM_PASSES):
                jax.block_until_ready(program(positions, posterior.data))
    return {"num_passes": NUM_PASSES}


def sample(posterior: Any, phases: Phases, case: dict[str, Any]) -> dict[str, Any]:
    """A run of CES, and the share of the steps that the likelihood accepted."""
    import numpy as np

    from credence import methods
    from credence.methods.surrogate.emulators import Taylor

    method = methods.CES(
        num_chains=case["num_chains"],
        num_draws=case["num_steps"],
        num_warmup=case["num_steps"],
        num_calibration=10,
        num_refinements=0,
        calibration="sghmc",
        calibration_rows=FEW_ROWS,
        emulator=Taylor(num_rows=FEW_ROWS, order=1),
        sampler="pcn",
        max_error=np.inf,
        training=methods.Training(max_epochs=20),
    )
    with phase(phases, "run"):
        ensemble = method.run(0, posterior)
    return {
        "acceptance_rate": float(np.mean(ensemble.scalars["acceptance_rate"])),
        "seconds_by_phase": dict(ensemble.cost.seconds),
    }


KINDS: dict[str, Callable[[Any, Phases, dict[str, Any]], dict[str, Any]]] = {
    "passes": passes,
    "run": sample,
}


def table_lines(rows: list[dict[str, Any]]) -> list[str]:
    """A table of the passes and one of the runs."""
    each = [row for row in rows if row["kind"] == "passes"]
    heads = ["inputs", "network", "pass, value", "value and gradient", "peak memory"]
    lines = markdown(heads, [[*about(row), *pass_cells(row), peak(row)] for row in each])
    if each := [row for row in rows if row["kind"] == "run"]:
        heads = ["inputs", "network", "draws", "seconds", "accepted", "peak memory"]
        lines += ["", *markdown(heads, [[*about(row), *run_cells(row), peak(row)] for row in each])]
    design = f"{NUM_CHAINS} chains, as many steps of warm-up as draws"
    made = f"{values(rows, 'num_cores')} cores, commit {commits(rows)}"
    return [*lines, "", f"{design}; {made}."]


def about(row: dict[str, Any]) -> list[str]:
    """The data and the network."""
    size = f"{row['num_rows']:,} x {row['num_features']} {PLACES[row['inputs']]}"
    widths = "-".join(map(str, [row["num_features"], *row["hidden"], 1]))
    return [size, f"{widths} ({row['num_weights']:,} weights)"]


def pass_cells(row: dict[str, Any]) -> list[str]:
    """Seconds of one pass."""
    phases, count = row["phases"], row["num_passes"]
    return [f"{phases[each]['seconds'] / count:.3g} s" for each in ("value", "value and gradient")]


def run_cells(row: dict[str, Any]) -> list[str]:
    """Draws of a chain, seconds without compilation, and the share that was accepted."""
    seconds = row["phases"]["run"]["seconds"] - row["seconds_by_phase"]["compile"]
    return [f"{row['num_steps']}", f"{seconds:.1f}", f"{row['acceptance_rate']:.2f}"]


def peak(row: dict[str, Any]) -> str:
    """The highest memory of all phases."""
    return f"{max(each['peak_mib'] for each in row['phases'].values()) / 1024:.1f} GiB"


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("folder", help="of the data")
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--features", type=int, default=1000)
    parser.add_argument("--hidden", type=int, nargs="+", default=[50, 48])
    parser.add_argument("--steps", type=int, default=100, help="of warm-up and of sampling, each")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--inputs", nargs="+", choices=PLACES, default=list(PLACES))
    options = parser.parse_args()
    from credence.environment import num_cores

    cases = [
        {
            "kind": kind,
            "inputs": inputs,
            "num_rows": options.rows,
            "num_features": options.features,
            "hidden": options.hidden,
            "num_chains": NUM_CHAINS,
            "num_steps": options.steps if kind == "run" else 0,
            "num_cores": num_cores(),
        }
        for kind, inputs in product(options.kinds, options.inputs)
    ]
    measure(options.out, () if options.table else cases, partial(measured, options.folder))
    print("\n".join(table_lines(done(options.out))))


if __name__ == "__main__":
    main()
