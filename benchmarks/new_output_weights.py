"""What `MLSMC(proposal="conditional")` changes between two widths, beside `proposal="prior"`.

    python benchmarks/new_output_weights.py --out FOLDER
    python benchmarks/new_output_weights.py --out FOLDER --steps 2/2/8/16 --num-runs 8

The problem is the regression of Chada, Jasra, Law & Singh, "Bayesian Deep Learning with Multilevel
Trace-class Neural Networks", section 5, with the prior (4.2), N = 100 and noise .1. A step is
alpha/layers/coarse/fine. Of every step and proposal FOLDER/rows.jsonl gets a row: temperatures
between the widths; V, the variance of one particle's share in the increment (squared units of the
target); C, FLOPs of a particle; V times C, to which the cost of a wanted variance is proportional;
seconds of the tempering between the widths; log evidence with the standard error over runs (nats).
What is in the file already is not run again.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from rows import KeepingParser, add_row, commit, done

from credence.methods.smc.multilevel.allocation import increments, nats_between
from credence.methods.smc.multilevel.method import MLSMC
from credence_papers.multilevel.error_cost.width_problems import WidthProblem, arrays

STEPS = (
    "3/2/8/128",
    "2/1/8/16",
    "2/1/8/64",
    "2/1/32/128",
    "2/2/8/16",
    "2/2/8/64",
    "2/2/16/64",
    "2/2/32/128",
    "1.7/2/16/64",
    "1.4/2/16/64",
)
PROPOSALS = ("prior", "conditional")


def main() -> None:
    parser = KeepingParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", nargs="*", default=STEPS, help="alpha/layers/coarse/fine")
    parser.add_argument("--num-particles", type=int, nargs=2, default=(400, 200))
    parser.add_argument("--num-runs", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    have = done(args.out)
    for step in args.steps:
        for proposal in PROPOSALS:
            about = {
                "step": step,
                "proposal": proposal,
                "num_particles": list(args.num_particles),
                "num_runs": args.num_runs,
                "seed": args.seed,
            }
            if not any(about.items() <= row.items() for row in have):
                row = {**about, **measured(**about), "commit": commit()}
                add_row(args.out, row)
                print(json.dumps(row), flush=True)


def measured(
    step: str, proposal: str, num_particles: list[int], num_runs: int, seed: int
) -> dict[str, Any]:
    """The numbers of a step with a proposal."""
    alpha, depth, *widths = step.split("/")
    problem = WidthProblem(
        name="regression",
        description="",
        source="regression",
        alpha=float(alpha),
        depth=int(depth),
        decay_inputs=True,
    )
    levels = [problem.posterior(int(width)) for width in widths]
    method = MLSMC(
        widths=tuple((int(width),) * int(depth) for width in widths),
        num_particles=tuple(num_particles),
        num_runs=num_runs,
        proposal=proposal,
    )
    ensemble = method.run(seed, levels[-1])
    level, increment = (ensemble.scalars[name][0] for name in ("level", "increment"))
    num_weighed = np.sum((level == 1) & (increment == 1))
    found = increments(ensemble, arrays(problem).interest)
    log_evidence = ensemble.scalars["log_evidence"][:, 0]
    return {
        "nats": float(nats_between(levels)[0]),
        "temperatures": int(num_weighed) // num_particles[1],
        "variance": float(found.variances[1]),
        "flops": float(found.costs[1]),
        "base_variance": float(found.variances[0]),
        "base_flops": float(found.costs[0]),
        "seconds_by_phase": {k: round(v, 2) for k, v in ensemble.cost.seconds.items()},
        "log_evidence": float(log_evidence.mean()),
        "log_evidence_error": float(log_evidence.std(ddof=1) / num_runs**0.5),
    }


if __name__ == "__main__":
    main()
