"""Is the verdict of a run without options to be believed? Verdicts beside the truth.

    python benchmarks/assurance.py --out FOLDER --num-fits 100
    python benchmarks/assurance.py --out FOLDER --table

Tables of a known law: 250 rows, 4 inputs, a function and a noise of several kinds by turns. Each is
fitted as `credence fit` does it, with 100 rows held back. The verdict rests on these, and where
they are too few to tell, on the other 150 as predicted by networks that were not trained on them.
The truth is of 5000 more rows of the same law. An assurance is false where the verdict is "trust",
and of these rows 95 % intervals hold less than 90 %, or stated and observed frequencies are more
than 15 points apart at some level: faults that disqualify a model by the verdict's own rule. The
verdict that test rows alone would have given is kept beside it. What is done already
is in FOLDER/rows.jsonl and is not done again.
"""

import shutil
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rows import add_row, commit, commits, done, parser_of

NUM_ROWS, NUM_HELD, NUM_FRESH, NUM_INPUTS = 250, 100, 5000, 4
Function = Callable[[np.ndarray], np.ndarray]

FUNCTIONS: dict[str, Function] = {
    "linear": lambda x: x[:, 0] - 0.5 * x[:, 1],
    "wave": lambda x: np.sin(3 * x[:, 0]) + 0.5 * x[:, 1] * x[:, 2],
    "steps": lambda x: np.sign(x[:, 0]) + np.where(x[:, 1] > 0.5, x[:, 2], 0.0),
    "product": lambda x: 2 * x[:, 0] * x[:, 1] + np.exp(0.5 * x[:, 2]),
}
NOISES: dict[str, Callable[[np.random.Generator, np.ndarray], np.ndarray]] = {
    "normal": lambda rng, x: 0.3 * rng.normal(size=len(x)),
    "little": lambda rng, x: 0.01 * rng.normal(size=len(x)),
    "depends on the inputs": lambda rng, x: 0.4 * np.exp(x[:, 3]) * rng.normal(size=len(x)),
    "heavy tails": lambda rng, x: 0.3 * rng.standard_t(2.5, size=len(x)),
    "skewed": lambda rng, x: 0.5 * rng.exponential(size=len(x)),
    "outliers": lambda rng, x: (
        np.where(rng.uniform(size=len(x)) < 0.05, 5.0, 0.2) * rng.normal(size=len(x))
    ),
}
MOST_MISSED, MOST_APART = 0.90, 0.15


def law_of(number: int) -> tuple[str, str]:
    """The function and the noise of a table: all pairs by turns."""
    functions, noises = list(FUNCTIONS), list(NOISES)
    return functions[number % 4], noises[(number // 4) % 6]


def table_of(number: int, num_rows: int, *, fresh: bool = False) -> pd.DataFrame:
    """Draw rows of a law."""
    rng = np.random.default_rng([number, int(fresh)])
    function, noise = law_of(number)
    x = rng.uniform(-1.5, 1.5, (num_rows, NUM_INPUTS))
    y = FUNCTIONS[function](x) + NOISES[noise](rng, x)
    return pd.DataFrame({**{f"x{i}": column for i, column in enumerate(x.T)}, "y": y})


def row_of(number: int) -> dict[str, Any]:
    """Fit a table, and compare the verdict with the truth."""
    import credence
    from credence.report import judge
    from credence.report.judging.evidence import pit_gap
    from credence.runs.folder import FitSettings
    from credence.runs.page import report_data
    from credence.runs.workflow import fit

    folder = Path(tempfile.mkdtemp())
    table_of(number, NUM_ROWS).to_csv(folder / "table.csv", index=False)
    settings = FitSettings(
        table=str(folder / "table.csv"), target="y", test_fraction=NUM_HELD / NUM_ROWS, seed=number
    )
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        metrics = fit(settings, folder / "run").metrics
    seconds = time.perf_counter() - start
    report = report_data(folder / "run")
    of_test = judge(replace(report, left_out=()))
    model: Any = credence.load(folder / "run" / "ensemble")
    fresh = table_of(number, NUM_FRESH, fresh=True)
    found = model.scores(fresh.drop(columns="y"), fresh["y"])
    shutil.rmtree(folder)
    return {
        "number": number,
        "function": law_of(number)[0],
        "noise": law_of(number)[1],
        "commit": commit(),
        "verdict": metrics["verdict"],
        "verdict_of_test_rows": of_test.level.name.lower(),
        "held_coverage_95": metrics["coverage_95"],
        "true_coverage_95": found.numbers["coverage_95"],
        "true_coverage_95_conformal": found.numbers["coverage_95_conformal"],
        "true_gap": pit_gap(found.rows["pit"])[0],
        "seconds": seconds,
    }


def is_faulty(row: dict[str, Any]) -> bool:
    """Tell whether the truth disqualifies the model."""
    return row["true_coverage_95"] < MOST_MISSED or row["true_gap"] > MOST_APART


def table_lines(rows: list[dict[str, Any]]) -> list[str]:
    """Verdicts beside the truth, as a Markdown table."""
    counts = Counter((row["verdict"], is_faulty(row)) for row in rows)
    alone = Counter((row["verdict_of_test_rows"], is_faulty(row)) for row in rows)
    heads = "| verdict | sound | faulty | sound, by test rows alone | faulty, by these |"
    lines = [heads, f"|{'---|' * 5}"]
    for verdict in ("trust", "care", "cannot_tell", "do_not_trust"):
        cells = [each[verdict, is_bad] for each in (counts, alone) for is_bad in (False, True)]
        lines.append(f"| {verdict.replace('_', ' ')} | {' | '.join(map(str, cells))} |")
    conformal = np.mean([row["true_coverage_95_conformal"] for row in rows])
    plain = np.mean([row["true_coverage_95"] for row in rows])
    told = f"hold {plain:.1%} of fresh rows on average, conformal ones {conformal:.1%}"
    return [*lines, "", f"{len(rows)} fits, commit {commits(rows)}. 95 % intervals {told}."]


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--num-fits", type=int, default=100)
    options = parser.parse_args()
    import credence

    credence.configure()
    options.out.mkdir(parents=True, exist_ok=True)
    known = {row["number"] for row in done(options.out)}
    for number in () if options.table else range(options.num_fits):
        if number not in known:
            row = row_of(number)
            add_row(options.out, row)
            true = f"coverage {row['true_coverage_95']:.3f}, gap {row['true_gap']:.3f}"
            print(f"{number} {row['verdict']}: {true}, {row['seconds']:.1f} s", flush=True)
    print("\n".join(table_lines(done(options.out))))


if __name__ == "__main__":
    main()
