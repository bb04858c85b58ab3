"""SMC and multilevel SMC on tables, against a long run of NUTS.

    CREDENCE_DATA=FOLDER python benchmarks/smc_reference.py [boston] [wine] [--noise .7]

One hidden layer of 16 tanh neurons, trace-class prior (alpha = 2), learnt or known noise,
standardised columns. Printed for each: root mean square offset of predictive means from NUTS, in
posterior standard deviations, beside what Monte Carlo errors explain (the spread of runs and of
chains); the ratio of posterior standard deviations; the log evidence. All phases are in the
seconds.
"""

import argparse
import time
from typing import Any

import numpy as np

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


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tables", nargs="*", default=list(TABLES))
    parser.add_argument("--particles", type=int, default=400)
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--noise", type=float, help="known standard deviation, target's units")
    options = parser.parse_args()
    import credence

    credence.configure()
    from credence import methods
    from credence.ensembles.diagnostics.convergence import assess

    size = {"num_particles": options.particles, "num_runs": options.runs}
    for table in options.tables:
        target, x = posterior(table, options.noise)
        reference = methods.NUTS(num_draws=4000, num_chains=8, num_warmup=2000).run(0, target)
        known, spread = moments(reference, x)
        std = spread.mean(axis=0)
        rhat = assess(reference.monitored(x)).max_rhat_function
        print(f"{table}: NUTS R-hat {rhat:.3f}, {reference.cost.total_seconds:.0f} s", flush=True)
        for method in (methods.SMC(**size), methods.MLSMC(base=8, **size)):
            start = time.perf_counter()
            ensemble = method.run(1, target)
            mean, stds = moments(ensemble, x)
            offset = (mean.mean(axis=0) - known.mean(axis=0)) / std
            explained = np.hypot(error(mean), error(known)) / std
            found = methods.findings(ensemble)["log_evidence"]
            nats, standard_error = found.nats, found.standard_error
            print(
                f"{table} {method.name}: offset {np.sqrt(np.mean(offset**2)):.3f} sd "
                f"(Monte Carlo {np.sqrt(np.mean(explained**2)):.3f}), sd ratio "
                f"{np.mean(stds.mean(axis=0) / std):.3f}, log evidence {nats:.2f} +- "
                f"{standard_error:.2f}, {time.perf_counter() - start:.0f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
