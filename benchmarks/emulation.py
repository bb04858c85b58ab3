"""Measure where emulation pays: seconds to 400 effective draws of predictions, by number of rows.

    python benchmarks/emulation.py --out FOLDER
    python benchmarks/emulation.py --out FOLDER --rows 200000 --methods ces pcn --seconds 800
    python benchmarks/emulation.py --out FOLDER --table

Regression with noise .3. "teacher": 10 inputs; the data come from a network of the shape that is
fitted, one hidden layer of 3 tanh neurons (38 parameters with the noise), so that many rows leave
one mode and its mirror images. "sine": sin x_1 + x_2 / 2 of 3 inputs, fitted by 3-5-5-1 (57
parameters); many rows leave curved valleys. Every method has 4 chains and so many seconds for all
that it does: training, calibration, emulator, warm-up, sampling; a short run before it compiles.

Effective draws are the smallest bulk ESS of the noise-free prediction at 20 new inputs; seconds "to
400" are all seconds before sampling, and those of sampling in proportion, compilation apart; where
R-hat is not below 1.05 all seconds that were spent, as a lower bound. "off" is the largest distance
between predictive means and those of NUTS, in its standard deviations.

mclmc: all rows, no emulator. ces: delayed acceptance with the coreset, along which NUTS moves;
ces_mclmc: MCLMC; uncorrected: the emulator's own draws. A cell is a row of FOLDER/rows.jsonl, made
by a process of its own; what is there already, with as many seconds, is not done again. The table
has the newest row of a cell. By default 25 cells have 4683 seconds together, the longest last.
"""

import contextlib
import warnings
from itertools import chain, product
from typing import Any

import numpy as np
from rows import commits, done, markdown, measure, parser_of, values

NUM_CHAINS, SEED, ENOUGH = 4, 0, 400
LARGEST_RHAT = 1.05
ROWS = (1000, 10_000, 100_000, 200_000, 1_000_000)
COLUMNS: dict[str, tuple[str, ...]] = {
    "nuts": ("NUTS",),
    "mclmc": ("MCLMC",),
    "ces": ("CES exact (NUTS along the emulator)", "accepted", "off"),
    "ces_mclmc": ("CES exact (MCLMC along the emulator)", "accepted", "off"),
    "uncorrected": ("CES uncorrected", "off", "k-hat"),
    "pcn": ("pCN",),
    "sghmc": ("SGHMC",),
}
"""Columns of a method: its seconds, under its full name, and what is shown beside them."""
USUAL = ("nuts", "mclmc", "ces", "ces_mclmc", "uncorrected")
EXACT = ("nuts", "mclmc", "ces", "ces_mclmc", "pcn")


def problem(kind: str, num_rows: int) -> tuple[Any, np.ndarray]:
    """Posterior, and new inputs."""
    from credence import Posterior
    from credence.models import MLP, Gaussian, Normal

    rng = np.random.default_rng(0)
    num_inputs, hidden = (10, (3,)) if kind == "teacher" else (3, (5, 5))
    x = rng.normal(size=(num_rows, num_inputs)).astype(np.float32)
    if kind == "teacher":
        signal = np.tanh(x @ (rng.normal(size=(10, 3)) / 3)) @ np.array([1.5, -1.0, 0.7])
    else:
        signal = np.sin(x[:, 0]) + 0.5 * x[:, 1]
    y = (signal + 0.3 * rng.normal(size=num_rows)).astype(np.float32)
    posterior = Posterior(MLP(1, hidden), Gaussian(scaling="fan_in"), Normal(), (x, y))
    return posterior, rng.normal(size=(20, num_inputs)).astype(np.float32)


def candidates() -> dict[str, Any]:
    """Methods by name; each draws until its seconds are over."""
    from credence import methods
    from credence.methods.surrogate.emulators import Coreset

    endless = {"num_chains": NUM_CHAINS, "num_draws": 200_000}
    ces = {**endless, "emulator": Coreset(), "max_error": np.inf}
    return {
        "nuts": methods.NUTS(**endless),
        "mclmc": methods.MCLMC(**endless),
        "ces": methods.CES(**ces),
        "ces_mclmc": methods.CES(sampler="mclmc", **ces),
        "uncorrected": methods.CES(correction="none", **ces),
        "pcn": methods.PCN(**endless),
        "sghmc": methods.SGHMC(**endless),
    }


def limit(num_rows: int, method: str) -> float:
    """Seconds that a cell has: on a million rows NUTS needs some 1000, the others half as many."""
    return 30 + num_rows / (1000 if method == "nuts" else 2000)


def measured(case: dict[str, Any]) -> dict[str, Any]:
    """Run a method for its seconds, and tell what it did or why it was refused."""
    import credence
    from credence.errors import CredenceError

    credence.configure()
    warnings.simplefilter("ignore")
    posterior, x_new = problem(case["problem"], case["num_rows"])
    method = candidates()[case["method"]]
    with contextlib.suppress(CredenceError):
        method.run(SEED + 1, posterior, max_seconds=1.0)  # a block of each phase: compiles
    try:
        ensemble = method.run(case["seed"], posterior, max_seconds=case["limit"])
    except CredenceError as error:
        return {"error": str(error)}
    return numbers(ensemble, np.asarray(ensemble.functions(x_new)[..., 0], float))


def numbers(ensemble: Any, functions: np.ndarray) -> dict[str, Any]:
    """Keep the numbers of a run; functions are its predictions, (chain, draw, point)."""
    from credence.ensembles.diagnostics import ess_bulk, rhat
    from credence.methods.surrogate.emulation import emulation

    worst, size = float(rhat(functions).max()), float(ess_bulk(functions).min())
    phases = {name: spent for name, spent in ensemble.cost.seconds.items() if name != "compile"}
    spent = sum(phases.values())
    found = emulation(ensemble.scalars)
    judged = {} if found is None else found.numbers()
    return {
        "num_draws": functions.shape[1],
        "rhat": worst,
        "is_converged": worst < LARGEST_RHAT,
        "ess": size,
        "phases": phases,
        "seconds_spent": spent,
        "seconds_to_400": spent + phases["sample"] * (ENOUGH / size - 1),
        "acceptance_rate": judged.get("acceptance_rate"),
        "emulator_error": judged.get("error"),
        "pareto_k": judged.get("pareto_k"),
        "mean": functions.mean(axis=(0, 1)).tolist(),
        "std": functions.std(axis=(0, 1)).tolist(),
    }


def table_lines(rows: list[dict[str, Any]]) -> list[str]:
    """A line for each number of rows, with columns for each method that was run."""
    lines: dict[tuple[int, str], dict[str, Any]] = {}
    for row in rows:
        lines.setdefault((row["num_rows"], row["problem"]), {})[row["method"]] = row
    names = [name for name in COLUMNS if any(row["method"] == name for row in rows)]
    heads = chain.from_iterable(COLUMNS[name] for name in names)
    cells = [
        [f"{num_rows:,}" + ("" if kind == "teacher" else f" ({kind})"), *line_cells(line, names)]
        for (num_rows, kind), line in sorted(lines.items())
    ]
    about = f"Seed: {SEED}; cores: {values(rows, 'num_cores')}; commit: {commits(rows)}."
    return [*markdown(["rows", *heads], cells), "", about]


def line_cells(line: dict[str, dict[str, Any]], names: list[str]) -> list[str]:
    """Cells of these methods, the fastest exact one in bold.

    Args:
        line: rows of all methods that were run on one table, by name.
    """
    converged = [name for name in EXACT if name in line and line[name].get("is_converged")]
    fastest = min(converged, key=lambda name: line[name]["seconds_to_400"], default=None)
    cells = []
    for name in names:
        shown = shown_of(line[name], line.get("nuts", {})) if name in line else {}
        text = shown.get("seconds", "-")
        cells.append(f"**{text}**" if name == fastest else text)
        cells += [shown.get(each, "-") for each in COLUMNS[name][1:]]
    return cells


def shown_of(row: dict[str, Any], nuts: dict[str, Any]) -> dict[str, str]:
    """Texts of a row by column, without those that it has no number for."""
    if "error" in row:
        return {"seconds": "refused"}
    found = {"accepted": row["acceptance_rate"], "k-hat": row["pareto_k"]}
    if "mean" in nuts:
        distances = np.abs(np.subtract(row["mean"], nuts["mean"])) / nuts["std"]
        found["off"] = distances.max()
    texts = {name: f"{float(each):.2f}" for name, each in found.items() if each is not None}
    seconds = row["seconds_to_400"] if row["is_converged"] else row["seconds_spent"]
    text = f"{seconds:,.{int(seconds < 10)}f}"
    return {**texts, "seconds": text if row["is_converged"] else f"> {text}"}


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS)
    parser.add_argument("--problem", choices=("teacher", "sine"), default="teacher")
    parser.add_argument("--methods", nargs="+", choices=COLUMNS, default=USUAL)
    parser.add_argument("--seconds", type=float, help="of a cell; by default more for more rows")
    options = parser.parse_args()
    from credence.environment import num_cores

    cases = [
        {
            "problem": options.problem,
            "num_rows": num_rows,
            "method": method,
            "seed": SEED,
            "limit": options.seconds or limit(num_rows, method),
            "num_cores": num_cores(),
        }
        for num_rows, method in product(options.rows, options.methods)
    ]
    cases.sort(key=lambda case: case["limit"])
    measure(options.out, () if options.table else cases, measured)
    print("\n".join(table_lines(done(options.out))))


if __name__ == "__main__":
    main()
