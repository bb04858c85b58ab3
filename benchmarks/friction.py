"""Friction of SGHMC where every step sees all rows: how much of it is best?

    CREDENCE_DATA=... python benchmarks/friction.py --out FOLDER
    python benchmarks/friction.py --out FOLDER --table

2,000 rows of Adult and of CelebA with the networks and the prior of the experiment
`fbnn_converged`; four chains. Listed are gradients of one row, in thousands, for each effective
draw of the worst and of the median prediction at test rows, warm-up included and training not; and
R-hat of the predictions. Exact chains, with the settings that they have there, stand below. A cell
is a process of its own with one core; what has a row is not done again.
"""

import warnings
from dataclasses import replace
from typing import Any

from rows import how_run, markdown, run_cases

PROBLEMS = ("adult", "celeba")
FRICTIONS = (0.1, 0.03, 0.02, 0.01, 0.003)
SGHMC = "BNN-SGHMC (all rows a step)"
EXACT = ("MCLMC on all rows", "HMC on all rows")


def cases(seed: int) -> list[dict[str, Any]]:
    """Every friction and every exact chain on both problems."""
    contenders = [{"method": SGHMC, "friction": friction} for friction in FRICTIONS]
    contenders += [{"method": method, "friction": None} for method in EXACT]
    return [
        {"problem": problem, **contender, "seed": seed, "num_cores": 1}
        for problem in PROBLEMS
        for contender in contenders
    ]


def measured(case: dict[str, Any]) -> dict[str, Any]:
    """Run one chain and judge its predictions."""
    import credence
    from credence.compare import problem, scoring
    from credence.compare.cell import build_method, build_posterior
    from credence_papers.fbnn.tables import FBNN_CONVERGED

    credence.configure()
    warnings.simplefilter("ignore")
    (cell,) = (
        each
        for each in FBNN_CONVERGED.cells("laptop", case["seed"])
        if (each.problem, each.label) == (case["problem"], case["method"])
    )
    own = {} if case["friction"] is None else {"friction": case["friction"], "num_draws": 2000}
    cell = replace(cell, settings={**cell.settings, **own})
    arrays = problem.load_cell(cell)
    method = build_method(cell)
    ensemble = method.run(case["seed"], build_posterior(cell, arrays))
    found = scoring.judge(ensemble, arrays.x_test)
    worst, median = found["ess_function"][:2]
    gradients = ensemble.cost.gradient_evaluations / 1000
    return {
        "num_draws": ensemble.num_draws,
        "gradients": gradients,
        "per_worst": gradients / worst,
        "per_median": gradients / median,
        "rhat": found["convergence"]["max_rhat_function"],
    }


def table_lines(rows: list[dict[str, Any]]) -> list[str]:
    """A line for each chain."""
    heads = ("data", "chain", "friction", "10^3 gradients of a row per effective draw, worst",
             "median", "R-hat", "seconds")  # fmt: skip
    found = {(row["problem"], row["method"], row["friction"]): row for row in rows}
    wanted = [(case["problem"], case["method"], case["friction"]) for case in cases(0)]
    lines = [
        [
            row["problem"], row["method"], f"{row['friction'] or ''}",
            f"{row['per_worst']:,.0f}", f"{row['per_median']:,.0f}", f"{row['rhat']:.3f}",
            f"{row['seconds']:.0f}",
        ]
        for row in (found[one] for one in wanted if one in found)
    ]  # fmt: skip
    return [*markdown(heads, lines), "", how_run(rows)]


if __name__ == "__main__":
    run_cases(__doc__, cases, measured, table_lines)
