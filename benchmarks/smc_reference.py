"""SMC and multilevel SMC on tables, against a long run of NUTS.

    export CREDENCE_DATA=...
    python benchmarks/smc_reference.py --out FOLDER [boston] [wine] [--noise .8]
    python benchmarks/smc_reference.py --out FOLDER [--particles 400] [--runs 4]
    python benchmarks/smc_reference.py --out FOLDER --table

One hidden layer of 16 tanh neurons, trace-class prior (alpha = 2), learnt or known noise,
standardised columns. For each: root mean square offset of predictive means at 50 held-out rows from
those of NUTS, in posterior standard deviations, beside what Monte Carlo errors explain (the spread
of runs and of chains); the ratio of posterior standard deviations; the log evidence. NUTS runs once
for each table and noise. What is done already is in FOLDER/rows.jsonl and is not done again.
"""

from typing import Any

import numpy as np
from rows import commits, done, markdown, measure, parser_of, values

REFERENCE = {"num_draws": 4000, "num_chains": 8, "num_warmup": 2000}
TABLES = {"boston": ("boston", "MEDV"), "wine": ("wine_quality_red", "quality")}


def posterior(table: str, noise: float | None) -> tuple[Any, np.ndarray]:
    """The posterior given all but 50 rows, and the inputs of those."""
    from credence import Posterior, datasets
    from credence.models import MLP, Normal, TraceClass

    name, target = TABLES[table]
    frame = datasets.load(name).frame.astype(float)
    frame = (frame - frame.mean()) / frame.std()
    rows = np.random.default_rng(0).permutation(len(frame))
    x, y = frame.drop(columns=target).to_numpy()[rows], frame[target].to_numpy()[rows]
    return Posterior(MLP(1, (16,)), TraceClass(2.0), Normal(noise), (x[50:], y[50:])), x[:50]


def moments(ensemble: Any, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of the function at x, of every run or chain (run, point)."""
    functions = ensemble.functions(x)[..., 0]
    shape = functions.shape[:2]
    weights = np.full(shape, 1 / shape[1]) if ensemble.weights is None else ensemble.weights
    weights = weights / weights.sum(axis=1, keepdims=True)
    mean = np.einsum("rm,rmp->rp", weights, functions)
    square = np.einsum("rm,rmp->rp", weights, functions**2)
    return mean, np.sqrt(np.maximum(square - mean**2, 1e-12))


def error(values: np.ndarray) -> np.ndarray:
    """Standard error of the mean over runs."""
    return values.std(axis=0, ddof=1) / len(values) ** 0.5


def measured(case: dict[str, Any]) -> dict[str, Any]:
    """Moments at the held-out rows with their Monte Carlo errors, and R-hat or the evidence."""
    from credence import methods
    from credence.ensembles.diagnostics.convergence import assess

    target, x = posterior(case["table"], case["noise"])
    method = methods.METHODS.find(case["method"])(**case["settings"])
    ensemble = method.run(case["seed"], target)
    mean, std = moments(ensemble, x)
    found: dict[str, Any] = {
        "mean": mean.mean(axis=0).tolist(),
        "std": std.mean(axis=0).tolist(),
        "error": error(mean).tolist(),
    }
    if case["method"] == "nuts":
        return {**found, "rhat": assess(ensemble.monitored(x)).max_rhat_function}
    if isinstance(method, methods.MLSMC):
        found["num_particles"] = list(method.counts(method.levels(target)))
    evidence = methods.findings(ensemble)["log_evidence"]
    return {**found, "log_evidence": evidence.nats, "evidence_error": evidence.standard_error}


def table_lines(rows: list[dict[str, Any]]) -> list[str]:
    """A line for each run of a method, beside NUTS on the same table."""
    heads = ("table, method", "chains x draws or particles x runs", "R-hat", "mean off by",
             "Monte Carlo error", "sd ratio", "log evidence")  # fmt: skip
    lines = []
    references = {problem_of(row): row for row in rows if row["method"] == "nuts"}
    for row in sorted(rows, key=problem_of):
        is_exact = row["method"] == "nuts"
        rest = exact_cells(row) if is_exact else cells(row, references[problem_of(row)])
        noise = f", noise {row['noise']:g}" if row["noise"] else ""
        name = f"{row['table']}{noise}, `{row['method']}`"
        lines.append([name, *rest])
    about = f"{values(rows, 'num_cores')} cores, commit {commits(rows)}."
    return [*markdown(heads, lines), "", about]


def problem_of(row: dict[str, Any]) -> tuple[str, float]:
    """The table and the noise, 0 where it is learnt."""
    return row["table"], row["noise"] or 0.0


def exact_cells(row: dict[str, Any]) -> list[str]:
    """Size and R-hat of NUTS."""
    chains, draws = (row["settings"][name] for name in ("num_chains", "num_draws"))
    return [f"{chains} x {draws}", f"{row['rhat']:.3f}", "", "", "", ""]


def cells(row: dict[str, Any], reference: dict[str, Any]) -> list[str]:
    """Size of SMC, how far it is from the reference, and the evidence."""
    (mean, std, mine), (known, scale, theirs) = (
        [np.array(one[name]) for name in ("mean", "std", "error")] for one in (row, reference)
    )
    off, explained = (mean - known) / scale, np.hypot(mine, theirs) / scale
    squares = [f"{np.mean(each**2) ** 0.5:.3f}" for each in (off, explained)]
    counts = row.get("num_particles", [row["settings"]["num_particles"]])
    size = f"{' + '.join(map(str, counts))} x {row['settings']['num_runs']}"
    evidence = f"{row['log_evidence']:.2f} ± {row['evidence_error']:.2f}"
    return [size, "", *squares, f"{np.mean(std / scale):.3f}", evidence]


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("tables", nargs="*", metavar="boston | wine", default=list(TABLES))
    parser.add_argument("--particles", type=int, default=400)
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--noise", type=float, help="known standard deviation, target's units")
    options = parser.parse_args()
    from credence.environment import num_cores

    size = {"num_particles": options.particles, "num_runs": options.runs}
    runs = (("nuts", 0, REFERENCE), ("smc", 1, size), ("mlsmc", 1, {"base": 8, **size}))
    cases = [
        {"table": table, "noise": options.noise, "method": method, "settings": settings}
        | {"seed": seed, "num_cores": num_cores()}
        for table in options.tables
        for method, seed, settings in runs
    ]
    measure(options.out, () if options.table else cases, measured)
    print("\n".join(table_lines(done(options.out))))


if __name__ == "__main__":
    main()
