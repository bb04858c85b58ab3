"""The table of `benchmarks/new_output_weights.py`: two proposals of several levels, from rows.

Rows come from `python benchmarks/new_output_weights.py --out results/new_output_weights`.
"""

from typing import Any

from kept import kept_rows
from new_output_weights import PROPOSALS
from parts import markdown
from rows import commits


def step_rows(prior: dict[str, Any], conditional: dict[str, Any]) -> list[list[str]]:
    """One step with both proposals, a row each."""
    alpha, depth, *widths = prior["step"].split("/")
    products = [run["variance"] * run["flops"] for run in (prior, conditional)]
    counts = ", ".join(map(str, prior["num_particles"]))
    step = [alpha, depth, "-".join(widths), f"{prior['nats']:.2g}", counts]
    return [
        [
            *about,
            run["proposal"],
            f"{run['temperatures']}",
            f"{1e4 * run['variance']:.3g}",
            f"{run['flops'] / 1e6:.0f}",
            gain,
            f"{run['log_evidence']:.2f} ± {run['log_evidence_error']:.2f}",
        ]
        for run, about, gain in (
            (prior, step, ""),
            (conditional, [""] * len(step), f"{products[0] / products[1]:.1f}"),
        )
    ]


def table() -> str:
    """All steps of which both proposals ran, with what ran."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for run in kept_rows("new_output_weights"):
        found.setdefault(f"{run['step']} {run['num_particles']}", {})[run["proposal"]] = run
    pairs = [[each[name] for name in PROPOSALS] for each in found.values() if len(each) == 2]
    heads = ["alpha", "layers", "widths", "nats", "particles", "new weights from"]
    heads += ["T", "10⁴ V", "C", "gain", "log evidence"]
    kept = [run for pair in pairs for run in pair]
    return "\n".join(
        [
            markdown(heads, [row for pair in pairs for row in step_rows(*pair)]),
            "",
            "Particles are those of the narrow and of the wide network, per run; "
            f"{kept[0]['num_runs']} runs, seed {kept[0]['seed']}, commits {commits(kept)}.",
        ]
    )
