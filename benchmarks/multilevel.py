"""Error against cost: multilevel SMC beside single-level SMC.

    python benchmarks/multilevel.py [--alpha 2] [--replicates 20] [--finest 64] [--out FILE.json]

Experiment A1 of Chada, Jasra, Law & Singh, "Bayesian Deep Learning with Multilevel Trace-class
Neural Networks" (section 5.1): 10 inputs x ~ N(2, 0.5), targets from a trace-class network of width
256 drawn from the prior plus noise, one hidden layer of tanh. The quantity of interest is the
posterior mean of f at x* = (2, ..., 2) and at nine more inputs.

Cost is counted work in floating-point operations: points x weights x (2 per value, 4 more with its
gradient), all temperatures, mutation steps and tuning included; beside it wall-clock seconds
without compilation. The reference is a long run of another method, NUTS. Errors are mean squares
over replicates (independent runs); errors of the fitted slopes come from a bootstrap over them.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

INPUTS, POINTS, TRUTH_WIDTH, BASE = 10, 200, 256, 8


def problem(alpha: float, noise_std: float, width: int) -> tuple[Any, np.ndarray]:
    """The posterior of a width, and the inputs of interest."""
    import jax

    from credence import Posterior
    from credence.models import MLP, Normal, TraceClass

    rng = np.random.default_rng(0)
    x = rng.normal(2.0, 0.5**0.5, (POINTS, INPUTS))
    prior, truth = TraceClass(alpha), MLP(1, (TRUTH_WIDTH,))
    template = jax.eval_shape(truth.init, jax.random.key(0), x)
    params, _ = prior.sample(jax.random.key(1), truth, template)
    y = np.asarray(truth.apply(params, x))[:, 0] + noise_std * rng.normal(size=POINTS)
    interest = np.vstack([np.full(INPUTS, 2.0), rng.normal(2.0, 0.5**0.5, (9, INPUTS))])
    return Posterior(MLP(1, (width,)), prior, Normal(noise_std), (x, y)), interest


def estimates(method: Any, posterior: Any, interest: np.ndarray, seed: int) -> dict[str, Any]:
    """Posterior means of every run, work and seconds of one run."""
    begin = time.perf_counter()
    ensemble = method.run(seed, posterior)
    functions = ensemble.functions(interest)[..., 0]
    weights = ensemble.weights
    if weights is None:
        means = functions.mean(axis=1)
    else:
        means = len(functions) * np.einsum("rm,rmp->rp", weights, functions)
    seconds = {name: value for name, value in ensemble.cost.seconds.items() if name != "compile"}
    runs = len(functions)
    return {
        "means": means.tolist(),
        "flops": ensemble.cost.flops / runs,
        "seconds": sum(seconds.values()) / runs,
        "log_evidence": np.asarray(ensemble.scalars["log_evidence"])[:, 0].tolist(),
        "wall": time.perf_counter() - begin,
    }


def reference(posterior: Any, interest: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Posterior means by NUTS, their Monte Carlo error from its chains, and R-hat."""
    from credence import methods
    from credence.diagnostics.convergence import assess

    ensemble = methods.NUTS(num_draws=2000, num_chains=4, num_warmup=1000).run(0, posterior)
    functions = ensemble.functions(interest)[..., 0]
    means = functions.mean(axis=1)
    error = means.std(axis=0, ddof=1) / len(means) ** 0.5
    rhat = assess(ensemble.monitored(interest)).max_rhat_function or np.nan
    return means.mean(axis=0), error, rhat


def slope(costs: np.ndarray, errors: np.ndarray) -> tuple[float, float]:
    """Of log cost against log mean square error, and its bootstrap error.

    errors: (size, replicate) squared errors.
    """
    rng = np.random.default_rng(0)

    def fit(chosen: np.ndarray) -> float:
        mse = errors[:, chosen].mean(axis=1)
        return float(np.polyfit(np.log(mse), np.log(costs), 1)[0])

    replicates = errors.shape[1]
    draws = [fit(rng.integers(0, replicates, replicates)) for _ in range(500)]
    return fit(np.arange(replicates)), float(np.std(draws))


def main() -> None:
    """Print the table of errors and costs, and the slopes."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--alpha", type=float, default=2.0)
    parser.add_argument("--noise-std", type=float, default=0.1)
    parser.add_argument("--finest", type=int, default=64)
    parser.add_argument("--replicates", type=int, default=20)
    parser.add_argument("--particles", type=int, nargs="+", default=[100, 400, 1600])
    parser.add_argument("--kernel", default="hmc")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    import credence

    credence.configure()
    from credence import methods

    posterior, interest = problem(options.alpha, options.noise_std, options.finest)
    exact, error, rhat = reference(posterior, interest)
    print(f"NUTS: R-hat {rhat:.3f}, Monte Carlo error {error.max():.2g}", flush=True)
    mutation = methods.Mutation(kernel=options.kernel)
    found: dict[str, list[dict[str, Any]]] = {"smc": [], "mlsmc": []}
    for count in options.particles:
        settings = {"num_runs": options.replicates, "mutation": mutation}
        for method in (
            methods.SMC(num_particles=count, **settings),
            methods.MLSMC(num_particles=4 * count, base=BASE, **settings),
        ):
            result = estimates(method, posterior, interest, seed=1)
            squares = np.mean((np.asarray(result["means"]) - exact) ** 2, axis=1)
            found[method.name].append({**result, "particles": count, "squares": squares.tolist()})
            print(
                f"{method.name:5} {method.num_particles:6} particles: MSE {squares.mean():.3g} +- "
                f"{squares.std(ddof=1) / len(squares) ** 0.5:.1g}, {result['flops']:.3g} FLOP, "
                f"{result['seconds']:.3g} s a run; wall {result['wall']:.0f} s",
                flush=True,
            )
    for name, results in found.items():
        costs = np.array([result["flops"] for result in results])
        fitted, spread = slope(costs, np.array([result["squares"] for result in results]))
        print(f"{name}: log cost falls by {fitted:.2f} +- {spread:.2f} per unit of log MSE")
    print(f"squared Monte Carlo error of the reference: {np.mean(error**2):.2g}")
    if options.out is not None:
        about = {"reference": exact.tolist(), "reference_error": error.tolist(), **found}
        options.out.write_text(json.dumps(about), encoding="utf-8")


if __name__ == "__main__":
    main()
