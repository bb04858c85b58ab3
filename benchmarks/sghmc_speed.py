"""Measure speed-ups over a stochastic gradient sampler that has converged, on the Adult data.

    CREDENCE_DATA=... python benchmarks/sghmc_speed.py FOLDER [--rows 2000 0] [--methods ...]

The problem is that of `credence experiment run fbnn --problems adult`: network 14-60-30-1, prior
N(0, 1), 4 chains; 0 rows are all. Every cell is a process's own and leaves FOLDER/ROWS-METHOD.json;
those that are there stay. What is compared are effective draws of the worst prediction (bulk ESS of
200 test rows) per second of the processor, of all phases: compilation, training, warm-up, sampling.
Seconds of the processor, because others may share the machine. A ratio is a speed-up only where
both chains have R-hat below 1.05 in function space.
"""

import argparse
import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

DRAWS = {
    "mclmc": {2000: 1000, 0: 500},
    "nuts": {2000: 300, 0: 200},
    "sghmc": {2000: 20_000, 0: 4000},
}
"""Draws of each of the four chains, by rows."""
SETTINGS: dict[tuple[str, int], dict[str, Any]] = {("sghmc", 0): {"thinning": 306}}
"""Settings of SGHMC on all rows: a pass over the data for a draw, in place of ten."""


def measured(name: str, rows: int, seed: int = 0) -> dict[str, Any]:
    """One method on so many rows."""
    from credence.compare import find, scoring
    from credence.compare.cell import build_posterior
    from credence.compare.problem import load_cell
    from credence.compare.specs import Experiment, RowLimits
    from credence.methods import METHODS

    experiment = find("fbnn")
    assert isinstance(experiment, Experiment)
    cell = experiment.only(("adult",)).cells("paper", seed)[0]
    limits = RowLimits(train=rows, test=2000) if rows else RowLimits()
    cell = replace(cell, rows=limits)
    arrays = load_cell(cell)
    settings = {"num_draws": DRAWS[name][rows], "num_chains": 4, **SETTINGS.get((name, rows), {})}
    start = time.process_time()
    ensemble = METHODS.find(name)(**settings).run(seed, build_posterior(cell, arrays))
    seconds = time.process_time() - start
    scores, _ = scoring.scores(ensemble, arrays)
    judged = scoring.judge(ensemble, arrays.x_test)
    return {
        "method": name,
        "rows": len(arrays.x_train),
        "num_weights": judged["num_weights"],
        "draws": settings["num_draws"],
        "seed": seed,
        "processor_seconds": seconds,
        "wall_seconds": ensemble.cost.total_seconds,
        "rhat": judged["convergence"]["max_rhat_function"],
        "ess": judged["ess_function"],
        "accuracy": scores["accuracy"],
        "nll": scores["nll"],
        "gradients": ensemble.cost.gradient_evaluations,
        "versions": ensemble.provenance.versions,
    }


def main() -> None:
    """Run what is not there yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, nargs="+", default=[2000, 0])
    parser.add_argument("--methods", nargs="+", default=list(DRAWS))
    parser.add_argument("--here", action="store_true", help="one cell, in this process")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for rows in options.rows:
        for name in options.methods:
            file = options.folder / f"{rows or 'all'}-{name}.json"
            if file.exists():
                continue
            if options.here:
                file.write_text(json.dumps(measured(name, rows), indent=1) + "\n")
                continue
            command = [sys.executable, __file__, str(options.folder), "--here"]
            subprocess.run([*command, "--rows", str(rows), "--methods", name], check=True)
            print(file.read_text(), flush=True)


if __name__ == "__main__":
    main()
