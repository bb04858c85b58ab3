"""SMC with particles abreast or in chains: how far off is it, in how much work?

    CREDENCE_DATA=... python benchmarks/waste_free.py --out FOLDER [--data cancer] [--settings ...]
    python benchmarks/waste_free.py --out FOLDER --table

`boston` is that of many_modes.py: many modes. `diabetes` is a regression with 50 tanh neurons,
fan-in prior and learnt noise, `cancer` has labels and 16 neurons; both are the tables that come
with scikit-learn, every fifth row kept for the test. The reference is a long run of MCLMC, and for
`boston` of waste-free SMC. "Off" is the root mean square distance of predictive means at 50 test
rows from the reference's, in posterior standard deviations, of all four runs together. What comes
of it at other sizes is about "off" / sqrt(seconds): the last column is off^2 times the processor's
seconds. A cell is a process of its own; what has a row is not done again.
"""

import resource
import warnings
from typing import Any

import numpy as np
from rows import beside_reference, done, evidence_text, how_run, markdown, measure, parser_of

NUM_RUNS, NUM_SHOWN = 4, 50
DATA = ("cancer", "diabetes", "boston")
SHORT = {"kernel": "mclmc", "trajectory_length": 0.16, "num_steps": 4}
SETTINGS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "abreast, HMC": ({"num_particles": 250}, {}),
    "abreast, MCLMC": ({"num_particles": 250}, {"kernel": "mclmc"}),
    "chains of 10, HMC": ({"num_particles": 500, "chain_length": 10}, {"num_steps": 1}),
    "chains of 50, HMC": ({"num_particles": 2500, "chain_length": 50}, {"num_steps": 1}),
    "chains of 50, short MCLMC": ({"num_particles": 2500, "chain_length": 50}, SHORT),
    "chains of 100, short MCLMC": ({"num_particles": 5000, "chain_length": 100}, SHORT),
}
"""Settings of SMC, and of its mutation."""
REFERENCE = "reference"


def problem(name: str) -> tuple[Any, np.ndarray]:
    """Posterior, and inputs of test rows."""
    import many_modes
    from sklearn.datasets import load_breast_cancer, load_diabetes

    from credence import Posterior, models

    if name == "boston":
        posterior, x, _ = many_modes.problem(name)
        return posterior, x
    is_label = name == "cancer"
    x, y = (load_breast_cancer if is_label else load_diabetes)(return_X_y=True)
    is_test = np.arange(len(x)) % 5 == 0
    x = ((x - x[~is_test].mean(axis=0)) / x[~is_test].std(axis=0)).astype(np.float32)
    if is_label:
        network, likelihood, y = models.MLP(2, (16,)), models.Categorical(), y.astype(np.int32)
    else:
        network, likelihood = models.MLP(1, (50,)), models.Normal(noise_std=None)
        y = ((y - y[~is_test].mean()) / y[~is_test].std()).astype(np.float32)
    return Posterior(network, models.Gaussian(), likelihood, (x[~is_test], y[~is_test])), x[is_test]


def method(case: dict[str, Any]) -> Any:
    """The method of a case."""
    from credence import methods

    if case["setting"] == REFERENCE:
        if case["data"] != "boston":
            return methods.MCLMC(num_draws=20_000, num_chains=NUM_RUNS)
        size: dict[str, Any] = {"num_particles": 25_000, "chain_length": 100}
        return methods.SMC(**size, num_runs=NUM_RUNS, mutation=methods.Mutation(**SHORT))
    size, mutation = SETTINGS[case["setting"]]
    return methods.SMC(**size, num_runs=NUM_RUNS, mutation=methods.Mutation(**mutation))


def measured(case: dict[str, Any]) -> dict[str, Any]:
    """Run, and tell the moments of predictions, the evidence, and the cost."""
    import credence
    from credence.ensembles.diagnostics import rhat
    from credence.methods import findings

    credence.configure()
    warnings.simplefilter("ignore")
    posterior, x = problem(case["data"])
    ensemble = method(case).run(case["seed"], posterior)
    functions = np.asarray(ensemble.functions(x[:NUM_SHOWN])[..., -1], float)
    evidence = findings(ensemble).get("log_evidence")
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "num_draws": functions.shape[1],
        "rhat": float(rhat(functions).max()),
        "log_evidence": evidence and evidence.nats,
        "log_evidence_error": evidence and evidence.standard_error,
        "mean": functions.mean(axis=(0, 1)).tolist(),
        "std": functions.std(axis=(0, 1)).tolist(),
        "gradients": ensemble.cost.gradient_evaluations,
        "seconds": ensemble.cost.total_seconds,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
    }


def table_lines(rows: list[dict[str, Any]]) -> list[str]:
    """A line for each posterior and setting."""
    heads = ("posterior", "setting", "runs x particles", "R-hat", "off", "log evidence", "seconds",
             "processor's seconds", "off^2 x seconds")  # fmt: skip
    orders = (DATA, (*SETTINGS, REFERENCE))
    lines = beside_reference(rows, ("data", "setting"), orders, REFERENCE, cells)
    return [*markdown(heads, lines), "", how_run(rows)]


def cells(row: dict[str, Any], reference: dict[str, Any] | None) -> list[str]:
    """A setting's line."""
    away = work = "-"
    if reference is not None and row is not reference:
        off = np.subtract(row["mean"], reference["mean"]) / reference["std"]
        away = f"{np.mean(off**2) ** 0.5:.3f}"
        work = f"{np.mean(off**2) * row['cpu_seconds']:.2f}"
    return [
        row["data"], row["setting"], f"{NUM_RUNS} x {row['num_draws']:,}", f"{row['rhat']:.3f}",
        away, evidence_text(row), f"{row['seconds']:.0f}", f"{row['cpu_seconds']:.0f}", work,
    ]  # fmt: skip


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--data", nargs="+", choices=DATA, default=DATA)
    known = (REFERENCE, *SETTINGS)
    parser.add_argument("--settings", nargs="+", choices=known, default=known)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    from credence.environment import num_cores

    cases = [
        {"data": data, "setting": setting, "seed": options.seed, "num_cores": num_cores()}
        for data in options.data
        for setting in options.settings
    ]
    measure(options.out, () if options.table else cases, measured)
    print("\n".join(table_lines(done(options.out))))


if __name__ == "__main__":
    main()
