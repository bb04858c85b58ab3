"""A table of 100,000 rows: a named network without further options, beside what is trained.

    python benchmarks/large_table.py --out FOLDER
    python benchmarks/large_table.py --out FOLDER --table

100,000 rows of 20 inputs follow a known law: a smooth function of twelve inputs that acts by their
products too, with normal noise of .3, so that the best possible RMSE is .3 and the best NLL .215.
10,000 more rows are predicted. The network has two hidden layers of 90 (10,261 weights). What is
done already is in FOLDER/rows.jsonl and is not done again; run it with nothing else beside.

Models: `auto` with this network; `deep_ensemble` of as many members as its name says; and
`boosting`, `lightgbm` and `mlps` as in `benchmarks/default_model.py`.
"""

from typing import Any

import numpy as np
from default_model import estimator_scores, fitted_row
from rows import commits, markdown, run, values

LAW = "smooth law"
NUM_ROWS, NUM_FRESH, NUM_INPUTS = 100_000, 10_000, 20
NOISE = 0.3
HIDDEN = (90, 90)


def function(x: np.ndarray) -> np.ndarray:
    """The mean of the target."""
    waves = np.sin(2 * x[:, :4]).sum(axis=1) / 2
    products = (x[:, 4:8] * x[:, 8:12]).sum(axis=1) / 4
    return waves + products + 0.3 * np.cos(x[:, 0] + 2 * x[:, 4])


def table_of(number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows to fit and rows to predict: x, y, x, y."""
    rng = np.random.default_rng(number)
    x = rng.uniform(-1.5, 1.5, (NUM_ROWS + NUM_FRESH, NUM_INPUTS))
    y = function(x) + NOISE * rng.normal(size=len(x))
    return x[:NUM_ROWS], y[:NUM_ROWS], x[NUM_ROWS:], y[NUM_ROWS:]


def network_scores(model: str, rows: Any, seed: int) -> dict[str, Any]:
    """Scores of the named network: `auto`, or `deep_ensemble-MEMBERS`."""
    from credence import BNNRegressor, methods

    name, _, members = model.partition("-")
    method = methods.DeepEnsemble(num_members=int(members)) if members else name
    return estimator_scores(BNNRegressor(hidden=HIDDEN, method=method, random_state=seed), rows)


def row_of(name: str, number: int, model: str) -> dict[str, Any]:
    """One model on the table of a seed."""
    return fitted_row(name, number, model, table_of(number), network_scores)


def table_lines(rows: list[dict[str, Any]]) -> list[str]:
    """A line for each model."""
    heads = ("", "RMSE", "NLL", "CRPS", "95 % holds", "seconds", "MiB")
    cells = []
    for row in rows:
        scores = [f"{row[score]:.4f}" for score in ("rmse", "nll", "crps")]
        spent = [f"{row['seconds']:.0f}", f"{row['peak_memory_mib']:.0f}"]
        cells.append([row["model"], *scores, f"{row['coverage_95']:.1%}", *spent])
    cores = values(rows, "num_cores")
    return [*markdown(heads, cells), "", f"One run, seed 0, {cores} cores, commit {commits(rows)}."]


def main() -> None:
    models = ("boosting", "lightgbm", "mlps", "deep_ensemble-5", "deep_ensemble-20", "auto")
    run(__doc__, (LAW,), models, lambda name: 1, row_of, table_lines)


if __name__ == "__main__":
    main()
