"""SMC and multilevel SMC as a user calls them, within a time budget, against a long run of NUTS.

    CREDENCE_DATA=... python benchmarks/smc_reference.py --out FOLDER [--tables boston wine]
    python benchmarks/smc_reference.py --out FOLDER --table

`BNNRegressor(method="mlsmc", max_seconds=300)` and the same with "smc": one hidden layer of 50 tanh
neurons, trace-class prior (alpha = 2), learnt noise; particles, narrowest width and levels are
their own choice. NUTS has the same posterior, at most 4 chains of 4000 draws, and 900 seconds. Rows
are the first published split of UCI tables. "Mean off by" is the root mean square distance of
predictive means from those of NUTS at 50 test rows, in posterior standard deviations; beside it is
what the spread of the runs and of the chains explains. "SD ratio": of the posterior standard
deviations. R-hat of SMC compares its runs; particles that count with signs have none. What is done
is in FOLDER/rows.jsonl and is not done again.
"""

import warnings
from typing import Any

import numpy as np
from rows import beside_reference, done, evidence_text, how_run, markdown, measure, parser_of

TABLES = ("boston", "concrete", "energy", "wine", "yacht", "power")
SECONDS = {"nuts": 900.0, "smc": 300.0, "mlsmc": 300.0}
DRAWS = {"nuts": {"num_draws": 4000, "num_chains": 4}}
NUM_SHOWN = 50


def measured(case: dict[str, Any]) -> dict[str, Any]:
    """Moments at test rows with their Monte Carlo errors, R-hat, the evidence, and the scores."""
    from default_model import split_of

    import credence

    credence.configure()
    warnings.simplefilter("ignore")
    x, y, x_test, y_test = split_of(case["table"], 0)
    method = case["method"]
    model = credence.BNNRegressor(
        method=method, prior="trace_class", hidden=(50,), max_seconds=SECONDS[method],
        random_state=case["seed"], **DRAWS.get(method, {}),
    ).fit(x, y)  # fmt: skip
    mean, std = moments(model, x_test[:NUM_SHOWN])
    evidence = model.findings_.get("log_evidence")
    scores = model.scores(x_test, y_test).numbers
    judged = model.diagnostics_
    return {
        "mean": mean.mean(axis=0).tolist(),
        "std": std.mean(axis=0).tolist(),
        "error": (mean.std(axis=0, ddof=1) / len(mean) ** 0.5).tolist(),
        "num_runs": len(mean),
        "num_draws": model.ensemble_.num_draws,
        "stopped": model.ensemble_.provenance.stopped,
        "rhat": judged.max_rhat_function,
        "log_evidence": evidence and evidence.nats,
        "log_evidence_error": evidence and evidence.standard_error,
        "nll": scores["nll"],
        "seconds": model.ensemble_.cost.total_seconds,
    }


def moments(model: Any, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of the function at x, of every run or chain (run, point)."""
    functions, weights = model.sample_functions(x), model.ensemble_.weights
    shape = functions.shape[:2]
    weights = np.full(shape, 1.0) if weights is None else np.asarray(weights, float)
    weights = weights / weights.sum(axis=1, keepdims=True)
    mean = np.einsum("rm,rmp->rp", weights, functions)
    square = np.einsum("rm,rmp->rp", weights, (functions - mean[:, None]) ** 2)
    return mean, np.sqrt(np.maximum(square, 0.0))


def table_lines(rows: list[dict[str, Any]]) -> list[str]:
    """A line for each method, beside NUTS on the same table."""
    heads = ("table", "method", "runs x draws", "R-hat", "mean off by", "Monte Carlo error",
             "SD ratio", "log evidence", "NLL", "seconds")  # fmt: skip
    lines = beside_reference(rows, ("table", "method"), (TABLES, tuple(SECONDS)), "nuts", cells)
    return [*markdown(heads, lines), "", how_run(rows)]


def cells(row: dict[str, Any], reference: dict[str, Any] | None) -> list[str]:
    """Size, convergence, distance from NUTS, evidence and score of a run."""
    rhat = "-" if row["rhat"] is None else f"{row['rhat']:.3f}"
    away = distances(row, reference) if reference and row is not reference else ("-",) * 3
    return [
        row["table"], f"`{row['method']}`", f"{row['num_runs']} x {row['num_draws']:,}", rhat,
        *away, evidence_text(row), f"{row['nll']:.3f}", f"{row['seconds']:.0f}",
    ]  # fmt: skip


def distances(row: dict[str, Any], reference: dict[str, Any]) -> tuple[str, str, str]:
    """Tell how far off means are, what chance explains of it, and the ratio of spreads."""
    (mean, std, mine), (known, scale, theirs) = (
        [np.array(one[name]) for name in ("mean", "std", "error")] for one in (row, reference)
    )
    off, explained = (mean - known) / scale, np.hypot(mine, theirs) / scale
    squares = [f"{np.mean(each**2) ** 0.5:.3f}" for each in (off, explained)]
    return squares[0], squares[1], f"{np.mean(std / scale):.3f}"


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=TABLES)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    from credence.environment import num_cores

    cases = [
        {"table": table, "method": method, "seed": options.seed, "num_cores": num_cores()}
        for table in options.tables
        for method in SECONDS
    ]
    measure(options.out, () if options.table else cases, measured)
    print("\n".join(table_lines(done(options.out))))


if __name__ == "__main__":
    main()
