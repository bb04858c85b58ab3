"""Where emulation pays: seconds to 400 effective draws of predictions, against the number of rows.

    python benchmarks/emulation.py [--problem teacher] [--rows 2000 200000] [--methods nuts ces]

Regression with noise .3. "teacher": 10 inputs; the data come from a network of the shape that is
fitted, one hidden layer of 3 tanh units (38 parameters with the noise), so that many rows leave one
mode and its mirror images. "sine": sin x_1 + x_2 / 2 of 3 inputs, fitted by 3-5-5-1 (57
parameters); many rows leave curved valleys. Every method has 4 chains and so many seconds for all
that it does: training, calibration, emulator, warm-up, sampling, compilation.

Effective draws are the smallest bulk ESS of the noise-free prediction at 20 new inputs; seconds "to
400" are all seconds before sampling, and those of sampling in proportion, compilation apart; a dash
where R-hat is not below 1.05. "off" is the largest distance between predictive means and those of
the method named first, in its standard deviations.

ces: delayed acceptance, with the coreset and the Taylor emulator; none: the coreset uncorrected;
published: the network emulator, uncorrected.
"""

import argparse
import time
import warnings
from typing import Any

import numpy as np

CHAINS = 4


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
    from credence.methods.emulators import Coreset, Taylor

    endless = {"num_chains": CHAINS, "num_draws": 200_000}
    ces = {**endless, "max_error": np.inf}
    published = {"calibration": "sghmc", "emulator": "network", "sampler": "pcn", "thinning": 20}
    return {
        "nuts": methods.NUTS(**endless),
        "pcn": methods.PCN(**endless),
        "sghmc": methods.SGHMC(**endless),
        "ces": methods.CES(emulator=Coreset(), **ces),
        "ces_taylor": methods.CES(emulator=Taylor(), **ces),
        "none": methods.CES(emulator=Coreset(), correction="none", **ces),
        "published": methods.CES(correction="none", reference="prior", **published, **ces),
    }


def main() -> None:
    """Print a table per number of rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[2000, 20_000, 200_000])
    parser.add_argument("--problem", choices=("teacher", "sine"), default="teacher")
    parser.add_argument("--methods", nargs="+", default=list(candidates()))
    parser.add_argument("--seconds", type=float, default=120.0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for num_rows in options.rows:
        posterior, x_new = problem(options.problem, num_rows)
        print(f"\n{num_rows:,} rows, {posterior.num_weights} weights\n")
        print("| method | draws | R-hat | ESS | seconds | to 400 | off | accepted | error, nats |")
        print("|---|---|---|---|---|---|---|---|---|", flush=True)
        reference = None
        for name in options.methods:
            row, functions = measured(name, posterior, x_new, options.seconds, reference)
            reference = functions if reference is None else reference
            print(row, flush=True)


def measured(
    name: str, posterior: Any, x_new: np.ndarray, seconds: float, reference: Any
) -> tuple[str, np.ndarray | None]:
    """A row of the table, and predictions (chain, draw, point)."""
    from credence.diagnostics import ess_bulk, rhat
    from credence.errors import CredenceError

    start = time.perf_counter()
    try:
        ensemble = candidates()[name].run(0, posterior, max_seconds=seconds)
    except CredenceError as error:
        return (
            f"| {name} | {str(error)[:80]} | | | {time.perf_counter() - start:.0f} | | | | |",
            None,
        )
    functions = np.asarray(ensemble.functions(x_new)[..., 0], float)
    worst, size = float(rhat(functions).max()), float(ess_bulk(functions).min())
    spent = sum(value for key, value in ensemble.cost.seconds.items() if key != "compile")
    sampling = ensemble.cost.seconds["sample"]
    to_400 = f"{spent + sampling * (400 / size - 1):.0f}" if worst < 1.05 else "-"
    off = "-"
    if reference is not None:
        mean, std = reference.mean(axis=(0, 1)), reference.std(axis=(0, 1))
        off = f"{np.max(abs(functions.mean(axis=(0, 1)) - mean) / std):.2f}"
    scalars = ensemble.scalars
    shown = [
        f"{np.mean(scalars[key]):.2g}" if key in scalars else "-"
        for key in ("acceptance_rate", "emulator_error")
    ]
    cells = [name, functions.shape[1], f"{worst:.3f}", f"{size:.0f}", f"{spent:.0f}", to_400, off]
    return "| " + " | ".join(map(str, [*cells, *shown])) + " |", functions


if __name__ == "__main__":
    main()
