"""Models side by side on the published splits of the UCI regressions, beside published results.

    CREDENCE_DATA=... python benchmarks/default_model.py --out FOLDER
    CREDENCE_DATA=... python benchmarks/default_model.py --out FOLDER --datasets concrete,yacht \\
        --splits 0-4 --models stacking,gp
    python benchmarks/default_model.py --out FOLDER --table

The protocol is that of Hernandez-Lobato & Adams, "Probabilistic backpropagation" (2015), whose
splits these are: fit on 90 % of the rows, score the others in the units of the target; mean and
standard error over splits. Every model sees the same rows of a split. What is done already is in
FOLDER/rows.jsonl and is not done again; `--table` only prints it. Seconds are those of the fit,
compilation included, on as many cores as the row says; `cpu_seconds` are those of the processor
for fit and scores, which do not grow when something else runs beside.

Models: `auto` (what `fit` does without options) and any method of the library, with `@30` behind
it for a budget of 30 seconds; and what a user might take instead, `pip install "credence[bench]"`:

- `lightgbm`: LightGBM on all training rows; how many trees, and whether a leaf has at least 5 rows
  or 20, five folds say, each stopped early. Normal with the spread of the residuals that the folds
  leave out; 95 % interval by conformal prediction from the same (the simple one of Barber et al.,
  "Predictive inference with the jackknife+", 2021, section 1.2, by folds).
- `boosting`: scikit-learn's histogram gradient boosting in the same way, with normal intervals.
- `ngboost`: NGBoost, normal, stopped early on a tenth of the training rows.
- `mlps`: five scikit-learn networks of 50-50, stopped early; normal with their variance and that
  of held-out residuals.
- `gp`: a Gaussian process (Matern 5/2, a length scale per input, learnt noise) on at most 2000
  rows.

Not here: TabPFN, whose weights must be downloaded when it runs, and `bde`, which is not on PyPI.
"""

import os
import resource
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import trees
from rows import commit, mean_error, run

FILES = {
    "boston": "boston_housing_uci_splits.npz",
    "concrete": "uci/concrete_uci_splits.npz",
    "energy": "uci/energy_uci_splits.npz",
    "kin8nm": "uci/kin8nm_uci_splits.npz",
    "naval": "uci/naval_uci_splits.npz",
    "power": "uci/power_plant_uci_splits.npz",
    "protein": "uci/protein_uci_splits.npz",
    "wine": "wine_quality_red_uci_splits.npz",
    "yacht": "uci/yacht_uci_splits.npz",
}
PUBLISHED = {
    "boston": (2.904, 2.35),
    "concrete": (4.827, 2.937),
    "energy": (0.539, 1.01),
    "kin8nm": (0.0789, -1.28),
    "naval": (0.0007, -6.29),
    "power": (4.014, 2.77),
    "protein": (4.274, 2.63),
    "wine": (0.622, 0.87),
    "yacht": (0.666, 0.47),
}
"""RMSE of MC dropout (Mukhoti, Stenetorp & Gal, "On the importance of strong baselines in Bayesian
deep learning", 2018), and the best NLL of MC dropout, deep ensembles (Lakshminarayanan et al.,
2017), deterministic variational inference (Wu et al., 2019), PBP-MV (Sun et al., 2017) and deep
evidential regression (Amini et al., 2020)."""
SCORES = ("rmse", "nll", "crps", "coverage_95")
MOST_GP_ROWS = 2000


def split_of(name: str, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training and test rows of a published split: x, y, x, y."""
    with np.load(Path(os.environ["CREDENCE_DATA"]) / FILES[name], allow_pickle=False) as file:
        data, columns = file["data"], file["index_features"].astype(int)
        target = int(file["index_target"])
        train, test = (file[f"index_{part}"][number] for part in ("train", "test"))
    x, y = data[:, columns].astype(float), data[:, target].astype(float)
    return x[train], y[train], x[test], y[test]


def num_splits(name: str) -> int:
    """The number of published splits."""
    return 5 if name == "protein" else 20


def network_scores(model: str, rows: Any, seed: int) -> dict[str, Any]:
    """Scores of a method of the library with its default settings, METHOD or METHOD@SECONDS."""
    from credence import BNNRegressor

    method, _, budget = model.partition("@")
    limit = float(budget) if budget else None
    return estimator_scores(BNNRegressor(method=method, max_seconds=limit, random_state=seed), rows)


def estimator_scores(estimator: Any, rows: Any) -> dict[str, Any]:
    """Scores of an estimator of the library, and what its fit took."""
    x, y, x_test, y_test = rows
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = estimator.fit(x, y)
    seconds = time.perf_counter() - start
    numbers = fitted.scores(x_test, y_test).numbers
    tried = fitted.findings_.get("models")
    return {
        **{name: numbers[name] for name in SCORES},
        "coverage_95_conformal": numbers.get("coverage_95_conformal"),
        "seconds": seconds,
        "seconds_by_phase": dict(fitted.ensemble_.cost.seconds),
        "method": fitted.method_.name,
        "converged": fitted.diagnostics_.converged,
        "max_rhat": fitted.diagnostics_.max_rhat_function,
        "models": None if tried is None else list(tried.tried),
    }


def normal_scores(mean: np.ndarray, std: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Scores of normal predictions."""
    from scipy import stats

    from credence.ensembles.diagnostics.crps import crps_normal

    return {
        "rmse": float(np.sqrt(np.mean((mean - y) ** 2))),
        "nll": -float(stats.norm.logpdf(y, mean, std).mean()),
        "crps": float(crps_normal(mean, std, y).mean()),
        "coverage_95": float(np.mean(np.abs(y - mean) <= stats.norm.ppf(0.975) * std)),
    }


def gp_scores(rows: Any, seed: int) -> dict[str, Any]:
    """Scores of a Gaussian process, on some of the rows where there are many."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
    from sklearn.preprocessing import StandardScaler

    x, y, x_test, y_test = rows
    kept = np.random.default_rng(seed).permutation(len(x))[:MOST_GP_ROWS]
    start = time.perf_counter()
    scaler = StandardScaler().fit(x[kept])
    kernel = ConstantKernel() * Matern(np.ones(x.shape[1]), (1e-2, 1e3), nu=2.5) + WhiteKernel(0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = GaussianProcessRegressor(
            kernel, normalize_y=True, n_restarts_optimizer=1, random_state=seed
        ).fit(scaler.transform(x[kept]), y[kept])
    seconds = time.perf_counter() - start
    mean, std = model.predict(scaler.transform(x_test), return_std=True)
    return {**normal_scores(mean, std, y_test), "seconds": seconds}


def boosting_scores(rows: Any, seed: int) -> dict[str, Any]:
    """Scores of scikit-learn's gradient boosting, normal with the spread of left-out rows."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    return tree_scores(rows, trees.boosting(HistGradientBoostingRegressor, seed), seed)[0]


def lightgbm_scores(rows: Any, seed: int) -> dict[str, Any]:
    """Scores of LightGBM, normal with the spread of left-out rows, with conformal intervals."""
    from lightgbm import LGBMRegressor

    kind = trees.lightgbm(LGBMRegressor, seed, are_labels=False)
    found, errors, mean = tree_scores(rows, kind, seed)
    level = min(np.ceil(0.95 * (len(errors) + 1)) / len(errors), 1.0)
    half = np.quantile(np.abs(errors), level, method="higher")
    return {**found, "coverage_95": float(np.mean(np.abs(rows[3] - mean) <= half))}


def tree_scores(
    rows: Any, kind: trees.Kind, seed: int
) -> tuple[dict[str, Any], np.ndarray, np.ndarray]:
    """Scores of boosted trees, errors of left-out rows, and predictions of test rows."""
    from sklearn.model_selection import KFold

    x, y, x_test, y_test = rows
    start = time.perf_counter()
    folds = KFold(trees.NUM_FOLDS, shuffle=True, random_state=seed).split(x)
    found = trees.tuned(
        kind, x, y, folds, lambda model, x: model.predict(x), lambda y, p: np.mean((p - y) ** 2)
    )
    mean, errors = found.model.predict(x_test), found.left_out - y
    seconds = time.perf_counter() - start
    std = np.full(len(mean), np.sqrt(np.mean(errors**2)))
    scores = normal_scores(mean, std, y_test)
    return {**scores, "seconds": seconds, "rows_of_a_leaf": found.leaf}, errors, mean


def ngboost_scores(rows: Any, seed: int) -> dict[str, Any]:
    """Scores of NGBoost with normal predictions."""
    from ngboost import NGBRegressor

    x, y, x_test, y_test = rows
    start = time.perf_counter()
    model = NGBRegressor(
        n_estimators=2000,
        random_state=seed,
        verbose=False,
        validation_fraction=0.1,
        early_stopping_rounds=50,
    ).fit(x, y)
    seconds = time.perf_counter() - start
    found = model.pred_dist(x_test, max_iter=model.best_val_loss_itr)
    return {**normal_scores(found.loc, found.scale, y_test), "seconds": seconds}


def mlps_scores(rows: Any, seed: int) -> dict[str, Any]:
    """Scores of an ensemble of five scikit-learn networks."""
    from sklearn.model_selection import train_test_split
    from sklearn.neural_network import MLPRegressor
    from sklearn.preprocessing import StandardScaler

    x, y, x_test, y_test = rows
    start = time.perf_counter()
    scaler, centre, unit = StandardScaler().fit(x), y.mean(), y.std()
    x, x_test, scaled = scaler.transform(x), scaler.transform(x_test), (y - centre) / unit
    members, noise = [], []
    for index in range(5):
        state = 10 * seed + index
        x_fit, x_held, y_fit, y_held = train_test_split(
            x, scaled, test_size=0.1, random_state=state
        )
        model = MLPRegressor(
            (50, 50), max_iter=2000, early_stopping=True, n_iter_no_change=50, random_state=state
        ).fit(x_fit, y_fit)
        members.append(model.predict(x_test))
        noise.append(np.mean((model.predict(x_held) - y_held) ** 2))
    seconds = time.perf_counter() - start
    std = np.sqrt(np.var(members, axis=0) + np.mean(noise))
    mean = centre + unit * np.mean(members, axis=0)
    return {**normal_scores(mean, unit * std, y_test), "seconds": seconds}


PEERS = {
    "boosting": boosting_scores,
    "gp": gp_scores,
    "lightgbm": lightgbm_scores,
    "mlps": mlps_scores,
    "ngboost": ngboost_scores,
}


def row_of(name: str, number: int, model: str) -> dict[str, Any]:
    """One model on one split."""
    return fitted_row(name, number, model, split_of(name, number), network_scores)


def fitted_row(
    name: str,
    number: int,
    model: str,
    rows: Any,
    scores: Callable[[str, Any, int], dict[str, Any]],
) -> dict[str, Any]:
    """What was fitted, its scores, and what it took of the machine.

    Args:
        rows: training and test rows, see `split_of`.
        scores: (model, rows, seed) -> scores of a model that is none of the peers.
    """
    from credence.environment import num_cores

    start = time.process_time()
    found = PEERS[model](rows, number) if model in PEERS else scores(model, rows, number)
    cpu_seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    what = {"data": name, "split": number, "model": model, "seed": number, "commit": commit()}
    machine = {"num_cores": num_cores(), "cpu_seconds": cpu_seconds, "peak_memory_mib": peak}
    return {**what, **found, **machine}


def table_lines(rows: list[dict[str, Any]]) -> list[str]:
    """Means and standard errors over splits, as a Markdown table."""
    heads = "| data | model | splits | RMSE | NLL | CRPS | 95 % holds | conformal | seconds | MiB |"
    lines = [heads, f"|{'---|' * 10}"]
    for name in FILES:
        models = dict.fromkeys(row["model"] for row in rows if row["data"] == name)
        for model in models:
            mine = [row for row in rows if (row["data"], row["model"]) == (name, model)]
            cells = [mean_error([row[score] for row in mine]) for score in SCORES]
            conformal = [row.get("coverage_95_conformal") for row in mine]
            conformal = [share for share in conformal if share is not None]
            cells.append(mean_error(conformal) if conformal else "")
            cells.append(f"{statistics.median(seconds_of(mine)):.1f}")
            cells.append(f"{min(row['peak_memory_mib'] for row in mine):.0f}")
            lines.append(f"| {name} | {model} | {len(mine)} | {' | '.join(cells)} |")
        if models:
            rmse, nll = PUBLISHED[name]
            lines.append(f"| {name} | published | | {rmse:g} | {nll:g} | | | | | |")
    return lines


def seconds_of(rows: list[dict[str, Any]]) -> list[float]:
    """Seconds of the fits on two cores or more; of all, where there are none."""
    found = [row["seconds"] for row in rows if row.get("num_cores", 2) > 1]
    return found or [row["seconds"] for row in rows]


def main() -> None:
    run(__doc__, tuple(FILES), ("auto", *PEERS), num_splits, row_of, table_lines)


if __name__ == "__main__":
    main()
