"""Compare samplers where a posterior has many modes: whose chains agree?

    CREDENCE_DATA=... python benchmarks/many_modes.py --out FOLDER
    CREDENCE_DATA=... python benchmarks/many_modes.py --out FOLDER --data boston --methods nuts smc
    python benchmarks/many_modes.py --out FOLDER --table

`boston` is Boston housing, the first published split, with 16 tanh neurons; `simulated` is the
simulated regression of the first version of the FBNN paper, 1000 rows of 3 inputs with tanh
neurons 5-5. All weights are N(0, 1), and the noise is learnt. Such a prior makes networks that bend
much, and few rows leave many of them. Four chains, or four runs, of every method. R-hat and the
smallest bulk ESS are of noise-free predictions at 50 of the test rows; the log evidence is that of
standardised targets, in nats, with its error over the runs. "off" is the largest distance between
predictive means and those of SMC, in its standard deviations. A cell is a process of its own; what
has a row is not done again.
"""

import warnings
from typing import Any

import numpy as np
from rows import beside_reference, done, evidence_text, how_run, markdown, measure, parser_of

NUM_CHAINS, NUM_SHOWN = 4, 50
METHODS = (
    "smc", "wide_smc", "parallel_tempering", "nuts", "long_nuts", "mclmc", "long_mclmc",
    "deep_ensemble",
)  # fmt: skip
REFERENCE = "smc"
DATA = {"boston": "Boston housing", "simulated": "simulated regression"}
LADDERS = {
    "boston": {"num_rungs": 36, "num_warmup": 1000},
    "simulated": {"num_rungs": 48, "num_warmup": 3000},
}
LONG_NUTS = {"boston": 20_000, "simulated": 8000}
"""Draws of a chain that take as long as parallel tempering, or a third of SMC."""
WIDE = 100_000
"""Particles of a run that wants an accelerator."""
NAMES = {
    "parallel_tempering": "parallel tempering",
    "smc": "SMC",
    "wide_smc": "SMC, wide",
    "nuts": "NUTS",
    "long_nuts": "NUTS, long",
    "mclmc": "MCLMC",
    "long_mclmc": "MCLMC, long",
    "deep_ensemble": "20 trained networks",
}


def method(name: str, data: str) -> Any:
    """A method, so long that it takes minutes on two cores, or a quarter of an hour and more."""
    from credence import methods

    chains: dict[str, Any] = {"num_chains": NUM_CHAINS}
    return {
        "parallel_tempering": lambda: methods.ParallelTempering(
            **LADDERS[data], thinning=4, num_draws=20_000, **chains
        ),
        "smc": lambda: smc(25_000),
        "wide_smc": lambda: smc(WIDE),
        "nuts": lambda: methods.NUTS(num_draws=2000, **chains),
        "long_nuts": lambda: methods.NUTS(num_draws=LONG_NUTS[data], **chains),
        "mclmc": lambda: methods.MCLMC(num_draws=20_000, **chains),
        "long_mclmc": lambda: methods.MCLMC(num_draws=20_000, thinning=9, **chains),
        "deep_ensemble": lambda: methods.DeepEnsemble(num_members=20),
    }[name]()


def smc(num_particles: int) -> Any:
    """The waste-free kind, with many short steps; of every run so many particles."""
    from credence import methods

    return methods.SMC(
        num_particles=num_particles,
        num_runs=NUM_CHAINS,
        chain_length=100,
        mutation=methods.Mutation(kernel="mclmc", trajectory_length=0.16, num_steps=4),
    )


def problem(name: str) -> tuple[Any, np.ndarray, np.ndarray]:
    """Posterior, and test rows, inputs and standardised target."""
    from credence import Posterior, models

    x, y, x_test, y_test = (boston if name == "boston" else simulated)()
    hidden = {"boston": (16,), "simulated": (5, 5)}[name]
    data = x.astype(np.float32), y.astype(np.float32)
    prior, likelihood = models.Gaussian(scaling="unit"), models.Normal(noise_std=None)
    posterior = Posterior(models.MLP(1, hidden), prior, likelihood, data)
    return posterior, x_test.astype(np.float32), y_test


def boston() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Boston housing, the first published split, standardised by its training rows."""
    from default_model import split_of

    x, y, x_test, y_test = split_of("boston", 0)
    mean, std, centre, scale = x.mean(axis=0), x.std(axis=0), y.mean(), y.std()
    return (x - mean) / std, (y - centre) / scale, (x_test - mean) / std, (y_test - centre) / scale


def simulated() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The simulated regression of the FBNN paper's first version, as its experiment has it."""
    from credence.compare import find
    from credence.compare.problem import load
    from credence.compare.specs import RowLimits

    (problem,) = find("fbnn_first_version").only(("simulated_regression",)).problems
    arrays = load(problem.source, RowLimits())
    return arrays.x_train, arrays.y_train, arrays.x_test, arrays.y_test


def measured(case: dict[str, Any]) -> dict[str, Any]:
    """Run a method, and tell how far its chains agree and what they predict."""
    import credence
    from credence.ensembles.diagnostics import ess_bulk, rhat
    from credence.methods import findings

    credence.configure()
    warnings.simplefilter("ignore")
    posterior, x, y = problem(case["data"])
    ensemble = method(case["method"], case["data"]).run(case["seed"], posterior)
    functions = np.asarray(ensemble.functions(x[:NUM_SHOWN])[..., 0], float)
    predictive = ensemble.predictive(x)
    evidence = findings(ensemble).get("log_evidence")
    exchanges = findings(ensemble).get("exchanges")
    is_chain = case["method"] != "deep_ensemble"
    return {
        "num_draws": functions.shape[1],
        "rhat": float(rhat(functions).max()) if is_chain else None,
        "ess": float(ess_bulk(functions).min()) if case["method"] in CHAINS else None,
        "nll": -float(np.mean(predictive.log_prob(y.astype(np.float32)))),
        "rmse": float(np.sqrt(np.mean((np.ravel(predictive.mean()) - y) ** 2))),
        "log_evidence": evidence and evidence.nats,
        "log_evidence_error": evidence and evidence.standard_error,
        "num_restarts": exchanges and sum(exchanges.num_restarts),
        "exchange_rates": exchanges and list(exchanges.rates),
        "mean": functions.mean(axis=(0, 1)).tolist(),
        "std": functions.std(axis=(0, 1)).tolist(),
        "phases": dict(ensemble.cost.seconds),
        "seconds": sum(ensemble.cost.seconds.values()),
    }


CHAINS = ("parallel_tempering", "nuts", "long_nuts", "mclmc", "long_mclmc")


def table_lines(rows: list[dict[str, Any]]) -> list[str]:
    """A line for each posterior and method."""
    heads = (
        "posterior", "method", "draws", "R-hat", "worst ESS", "log evidence", "off", "NLL", "RMSE",
        "seconds",
    )  # fmt: skip
    lines = beside_reference(rows, ("data", "method"), (DATA, METHODS), REFERENCE, cells)
    return [*markdown(heads, lines), "", how_run(rows)]


def cells(row: dict[str, Any], reference: dict[str, Any] | None) -> list[str]:
    """A method's line."""

    def text(name: str, form: str) -> str:
        return "-" if row[name] is None else format(row[name], form)

    is_compared = reference is not None and row is not reference
    distance = f"{off(row, reference):.2f}" if is_compared else "-"
    draws = f"{NUM_CHAINS} x {row['num_draws']:,}" if row["rhat"] is not None else "20"
    return [
        DATA[row["data"]], NAMES[row["method"]], draws, text("rhat", ".3f"), text("ess", ",.0f"),
        evidence_text(row, decimals=2), distance, text("nll", ".3f"), text("rmse", ".3f"),
        text("seconds", ",.0f"),
    ]  # fmt: skip


def off(row: dict[str, Any], reference: dict[str, Any]) -> float:
    """The largest distance of predictive means, in standard deviations of the reference."""
    apart = np.abs(np.subtract(row["mean"], reference["mean"]))
    return float(np.max(apart / reference["std"]))


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--data", nargs="+", choices=tuple(DATA), default=tuple(DATA))
    usual = [name for name in METHODS if name != "wide_smc"]
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=usual)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    from credence.environment import num_cores

    if not options.table:
        cases = [
            {"data": data, "method": name, "seed": options.seed, "num_cores": num_cores()}
            for data in options.data
            for name in options.methods
        ]
        measure(options.out, cases, measured)
    print("\n".join(table_lines(done(options.out))))


if __name__ == "__main__":
    main()
