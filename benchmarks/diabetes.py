"""Function-space effective samples per second on diabetes: Credence beside NumPyro and BlackJAX.

    python benchmarks/diabetes.py                        all contenders, 1000 draws, both priors
    python benchmarks/diabetes.py --draws 10000 --priors fan_in --contenders auto,numpyro-parallel
    python benchmarks/diabetes.py --cold                 with an empty compilation cache
    python benchmarks/diabetes.py --out results/samplers and keep the rows, for the pages

442 x 10, standardised; 50 tanh neurons; biases N(0, 1); noise standard deviation HalfNormal(1),
learnt; 4 chains, ours on 2 CPU devices, those of others on a device each where that is faster.
Seconds count every phase from the data to the draws: tracing, compilation (or loading it from the
cache), training of start points, warm-up and sampling. Each run is a process of its own; without
--cold, an unmeasured run with the same shapes fills the cache first. ESS and R-hat are ArviZ's,
rank-normalised, of predictions at 50 training inputs. Offsets and ratios compare predictive means
and standard deviations with a long NUTS (--reference).
Pin the cores it may use: `taskset -c 1,2 python benchmarks/diabetes.py`.
"""

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from diabetes_samplers import NUM_CHAINS, OTHERS, SLOWER, blackjax, credence
from rows import KeepingParser, add_row, commit, short

from credence.environment import num_cores

NUM_REFERENCE_CHAINS = 8
CACHE = Path(tempfile.gettempdir()) / "credence-benchmark"


def measures(functions: np.ndarray, reference: np.ndarray | None) -> dict[str, float]:
    """ESS and R-hat, and distance to the reference, of predictions (chain, draw, point)."""
    import arviz

    points = [functions[:, :, i].astype(float) for i in range(functions.shape[2])]
    ess = [float(arviz.ess(point)) for point in points]
    found = {
        "min_ess": min(ess),
        "median_ess": float(np.median(ess)),
        "max_rhat": max(float(arviz.rhat(point)) for point in points),
    }
    if reference is not None:
        mean, std = reference.mean((0, 1)), reference.std((0, 1))
        found["worst_offset"] = float(np.max(np.abs(functions.mean((0, 1)) - mean) / std))
        found["mean_std_ratio"] = float(np.mean(functions.std((0, 1)) / std))
    return found


def work(contender: str, prior: str, num_draws: int, seed: int) -> None:
    """One run in this process; prints JSON."""
    import jax

    is_a_device_each = contender.endswith("-parallel")
    jax.config.update("jax_num_cpu_devices", NUM_CHAINS if is_a_device_each else 2)
    path = CACHE / f"reference-{prior}.npy"
    reference = np.load(path) if path.exists() else None
    sampler = {**OTHERS, **SLOWER}.get(contender, partial(credence, contender))
    functions, cost = sampler(prior, num_draws, seed)
    print(json.dumps({**cost, **measures(functions, reference)}))


def run(contender: str, prior: str, num_draws: int, seed: int, cache: str) -> dict[str, Any]:
    """One run in a process of its own."""
    environment = {
        **os.environ,
        "JAX_COMPILATION_CACHE_DIR": cache,
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    arguments = [contender, prior, str(num_draws), str(seed)]
    command = [sys.executable, __file__, "--work", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{contender} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def make_reference(prior: str) -> None:
    """A long NUTS (8 chains of 3000 draws), kept for later calls; takes minutes."""
    import jax

    jax.config.update("jax_num_cpu_devices", NUM_REFERENCE_CHAINS)
    functions, _ = blackjax(prior, 3000, 1, 1500, NUM_REFERENCE_CHAINS, is_parallel=True)
    CACHE.mkdir(parents=True, exist_ok=True)
    np.save(CACHE / f"reference-{prior}.npy", functions)
    print(f"reference {prior}: {measures(functions, None)}")


def compare(
    contenders: list[str],
    priors: list[str],
    num_draws: int,
    repeats: int,
    cold: bool,
    out: Path | None,
) -> None:
    """Run and print a row for each repeat, contenders taking turns.

    Args:
        out: folder whose rows.jsonl gets every measured run.
    """
    turns = itertools.product(priors, range(0 if cold else -1, repeats), contenders)
    for prior, repeat, name in turns:
        with tempfile.TemporaryDirectory() as empty:
            cache = empty if cold else str(CACHE / "compiled")
            result = run(name, prior, num_draws, repeat + 1, cache)
        if repeat < 0:
            continue
        what = {"contender": name, "prior": prior, "num_draws": num_draws}
        told = {"seed": repeat + 1, "is_cold": cold, "commit": commit()}
        row = {**what, **told, "num_cores": num_cores(), **result}
        print(json.dumps(short(row)), flush=True)
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
            add_row(out, row)


def main() -> None:
    parser = KeepingParser(description=__doc__.split("\n")[0])
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--priors", default="fan_in,unit")
    parser.add_argument(
        "--contenders",
        default=",".join(("auto", "nuts", *OTHERS)),
        help=f"methods of this library, and {', '.join((*OTHERS, *SLOWER))}",
    )
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--reference", action="store_true", help="make the long NUTS runs first")
    parser.add_argument("--out", type=Path, help="folder to keep the rows in")
    parser.add_argument("--work", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        contender, prior, num_draws, seed = options.work
        return work(contender, prior, int(num_draws), int(seed))
    priors = options.priors.split(",")
    for prior in priors if options.reference else []:
        make_reference(prior)
    contenders = options.contenders.split(",")
    return compare(contenders, priors, options.draws, options.repeats, options.cold, options.out)


if __name__ == "__main__":
    main()
