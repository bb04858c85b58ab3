"""The table of `benchmarks/new_output_weights.py`: two proposals of several levels, from rows.

Rows come from `python benchmarks/new_output_weights.py --out results/new_output_weights`.
"""

import json
from pathlib import Path
from typing import Any

ROWS = Path(__file__).parents[2] / "results" / "new_output_weights" / "rows.jsonl"
PROPOSALS = ("prior", "conditional")


def rows() -> list[dict[str, Any]]:
    """All runs that were kept."""
    return [json.loads(line) for line in ROWS.read_text(encoding="utf-8").splitlines()]


def line(prior: dict[str, Any], conditional: dict[str, Any]) -> str:
    """One step with both proposals."""
    both = prior, conditional
    alpha, depth, coarse, fine = prior["step"].split("/")
    products = [run["variance"] * run["flops"] for run in both]
    cells = [
        *(f"{run['temperatures']}" for run in both),
        *(f"{run['variance']:.1e}" for run in both),
        *(f"{run['flops'] / 1e6:.0f}" for run in both),
        f"{products[0] / products[1]:.1f}",
        *(f"{run['log_evidence']:.2f} ± {run['log_evidence_error']:.2f}" for run in both),
    ]
    return f"| {alpha} | {depth} | {coarse}-{fine} | {prior['nats']:.2g} | {' | '.join(cells)} |"


def table() -> str:
    """All steps of which both proposals ran, with what ran."""
    runs = rows()
    found = {(run["step"], run["proposal"]): run for run in runs}
    steps = dict.fromkeys(run["step"] for run in runs)
    pairs = [[found.get((step, proposal)) for proposal in PROPOSALS] for step in steps]
    twice = [f"{name}, {proposal}" for name in ("T", "V", "C") for proposal in PROPOSALS]
    heads = ["alpha", "layers", "widths", "nats", *twice, "V C, gain"]
    heads += [f"log evidence, {proposal}" for proposal in PROPOSALS]
    numbers = {
        name: ", ".join(sorted({str(run[name]) for run in runs}))
        for name in ("commit", "seed", "num_particles", "num_runs")
    }
    return "\n".join(
        [
            f"| {' | '.join(heads)} |",
            "|" + "---|" * len(heads),
            *(line(*pair) for pair in pairs if None not in pair),  # type: ignore[arg-type]
            "",
            f"Particles of the two widths: {numbers['num_particles']}; {numbers['num_runs']} runs, "
            f"seed {numbers['seed']}, commit {numbers['commit']}.",
        ]
    )
