"""BNNRegressor on the 20 published splits of UCI data sets, beside published results.

    CREDENCE_DATA=... python benchmarks/uci.py                      Boston and red wine, defaults
    CREDENCE_DATA=... python benchmarks/uci.py --datasets boston --likelihood student_t --splits 0-4

The protocol is that of Hernández-Lobato & Adams (2015), whose splits these are: fit on 90 % of the
rows, score the other 10 % in the units of the target, mean and standard error over the splits.
NLL is minus the log predictive density, in nats, also for wine's whole-number quality. LOO is what
NLL should be by the training rows alone: Pareto-smoothed leave-one-out cross-validation (Vehtari,
Gelman & Gabry, 2017), the score to choose a likelihood or prior by; in brackets the share of rows
whose Pareto k is above .7, where the estimate is unsure. ESS and R-hat are of predictions at 100
training rows. Seconds are those of `fit`; the first split compiles, the others reuse its program.
"""

import argparse
import json
import math
import statistics
import time
import warnings
from typing import Any

import numpy as np

PUBLISHED = {
    "boston": {
        "MC dropout": "2.904 +- .181   2.402 +- .043",
        "PBP": "3.01            2.57",
        "deep ensembles": "3.28            2.41",
    },
    "wine_quality_red": {
        "MC dropout": " .622 +- .008    .928 +- .013",
        "PBP": " .64             .97",
        "deep ensembles": " .64             .94",
    },
}
"""Test RMSE and NLL, mean +- standard error where given: Mukhoti, Stenetorp & Gal, "On the
importance of strong baselines in Bayesian deep learning" (2018); Hernández-Lobato & Adams,
"Probabilistic backpropagation" (2015); Lakshminarayanan, Pritzel & Blundell (2017)."""

SCORES = ("rmse", "nll", "crps", "coverage_95", "loo")


def make_model(options: argparse.Namespace) -> Any:
    """The estimator that the command line describes; its defaults where it says nothing."""
    from credence import BNNRegressor, models

    likelihoods = {
        "normal": models.Normal(),
        "student_t": models.StudentT(df=4),
        "heteroscedastic": models.HeteroscedasticNormal(),
    }
    priors = {
        "fan_in": models.Gaussian(),
        "unit": models.Gaussian(scaling="unit"),
        "hierarchical": models.HierarchicalGamma(),
    }
    return BNNRegressor(
        hidden=tuple(options.hidden),
        num_draws=options.num_draws,
        likelihood=likelihoods[options.likelihood],
        prior=priors[options.prior],
        random_state=options.seed,
    )


def run_split(name: str, number: int, options: argparse.Namespace) -> dict[str, float]:
    """Fit one split and score its test rows."""
    from credence import datasets
    from credence.ensembles.diagnostics import regression

    data = datasets.load(name, split=number)
    x, y = data.frame.drop(columns=data.target), data.frame[data.target].to_numpy(float)
    x_test, y_test = x.iloc[data.test], y[data.test]

    start = time.perf_counter()
    model = make_model(options).fit(x.iloc[data.train], y[data.train])
    seconds = time.perf_counter() - start

    scores = model.evaluate(x_test, y_test)
    lower, upper = model.predict_interval(x_test, coverage=0.95)
    judged = model.diagnostics_
    return {
        "split": number,
        "rmse": regression.rmse(model.predict(x_test), y_test),
        "nll": regression.nll(scores["log_prob"]),
        "crps": float(scores["crps"].mean()),
        "coverage_95": regression.interval_coverage(lower, upper, y_test),
        **leave_one_out(model, x.iloc[data.train], y[data.train]),
        "rhat": judged.max_rhat_function,
        "ess": judged.min_ess_function,
        "converged": judged.converged,
        "seconds": seconds,
    }


def leave_one_out(model: Any, x: Any, y: np.ndarray) -> dict[str, float]:
    """PSIS estimate of the NLL of the training rows (x, y), each predicted from the others.

    `loo` in nats per row in units of y; `loo_unsure` is the share of rows with Pareto k > .7.
    """
    import arviz_stats
    import jax
    import xarray

    inputs, scaler = model.preprocessor_.transform(x), model.target_scaler_
    predictive = model.ensemble_.predictive(inputs)
    log_prob = jax.jit(jax.vmap(predictive.likelihood.log_prob, (0, 0, None)))(
        predictive.likelihood_params,
        predictive.outputs,
        scaler.transform(y)[:, None].astype(np.float32),
    )
    chains, draws = model.ensemble_.num_chains, model.ensemble_.num_draws
    log_likelihood = np.asarray(log_prob, float).reshape(chains, draws, len(y))
    group = xarray.Dataset({"y": (("chain", "draw", "row"), log_likelihood)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # large Pareto k: reported as a number
        found = arviz_stats.loo(
            xarray.DataTree.from_dict({"posterior": group, "log_likelihood": group}), pointwise=True
        )
    return {
        "loo": float(-found.elpd / len(y) + np.log(scaler.scale).sum()),
        "loo_unsure": float(np.mean(np.asarray(found.pareto_k) > 0.7)),
    }


def show_split(row: dict[str, Any]) -> None:
    """One line per split, as it comes."""
    scores = "".join(f"{row[name]:12.4f}" for name in SCORES)
    print(
        f"{row['split']:8d}{scores} ({row['loo_unsure']:4.0%}){row['rhat']:9.3f}{row['ess']:7.0f}"
        f"{row['seconds']:8.1f}{'' if row['converged'] else '   NOT CONVERGED'}",
        flush=True,
    )


def show_summary(name: str, rows: list[dict[str, Any]]) -> None:
    """Means and standard errors over the splits, and the published ones."""

    def mean_error(score: str) -> str:
        values = [row[score] for row in rows if math.isfinite(row[score])]
        error = statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else float("nan")
        return f"{statistics.mean(values):.3f} +- {error:.3f}"

    def span(quantity: str, digits: int) -> str:
        values = [row[quantity] for row in rows]
        return f"{min(values):.{digits}f} .. {max(values):.{digits}f}"

    labels = ("RMSE", "NLL", "CRPS", "95 % coverage", "LOO")
    print(f"\n{name}: mean +- standard error over {len(rows)} splits")
    for label, score in zip(labels, SCORES, strict=True):
        print(f"    {label:22s}{mean_error(score)}")
    unsure = statistics.mean(row["loo_unsure"] for row in rows)
    print(f"    {'rows LOO is unsure of':22s}{unsure:.1%}")
    print(f"    {'R-hat':22s}{span('rhat', 3)}")
    print(f"    {'ESS':22s}{span('ess', 0)}")
    print(f"    {'not converged':22s}{sum(not row['converged'] for row in rows)}")
    seconds = statistics.median(row["seconds"] for row in rows)
    print(f"    {'seconds per split':22s}{seconds:.1f} (median)")
    print("  published RMSE and NLL")
    for method, scores in PUBLISHED.get(name, {}).items():
        print(f"    {method:22s}{scores}")
    print(flush=True)


def split_numbers(text: str) -> list[int]:
    """'3', '0-4' or '0,2,5-7' as numbers."""
    numbers: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        numbers.extend(range(int(first), int(last or first) + 1))
    return numbers


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--datasets", default="boston,wine_quality_red")
    add("--splits", type=split_numbers, default="0-19", help="3, 0-4 or 0,2,5-7")
    add("--likelihood", choices=("normal", "student_t", "heteroscedastic"), default="normal")
    add("--prior", choices=("fan_in", "unit", "hierarchical"), default="fan_in")
    add("--hidden", type=int, nargs="*", default=[50])
    add("--num-draws", type=int, default=1000)
    add("--seed", type=int, default=0)
    add("--json", metavar="FILE", help="write settings and every split's scores")
    return parser.parse_args()


def main() -> None:
    options = parse()
    import credence

    credence.configure()
    print(
        f"likelihood={options.likelihood}, prior={options.prior}, hidden={options.hidden}, "
        f"{options.num_draws} draws per chain, seed {options.seed}"
    )
    results: dict[str, list[dict[str, Any]]] = {}
    for name in options.datasets.split(","):
        print(f"\n{name:8s}" + "".join(f"{score:>12s}" for score in SCORES), end="")
        print(" (unsure)  R-hat    ESS seconds")
        results[name] = []
        for number in options.splits:
            results[name].append(run_split(name, number, options))
            show_split(results[name][-1])
            if options.json:
                with open(options.json, "w", encoding="utf-8") as file:
                    json.dump({"settings": vars(options), "results": results}, file, indent=2)
        show_summary(name, results[name])


if __name__ == "__main__":
    main()
