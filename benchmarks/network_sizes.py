"""Does averaging over the size of a network predict better than one size? Ten small UCI tables.

    CREDENCE_DATA=... python benchmarks/network_sizes.py --out FOLDER
    CREDENCE_DATA=... python benchmarks/network_sizes.py --out FOLDER --datasets yacht --splits 0-4
    python benchmarks/network_sizes.py --out FOLDER --table

Networks of one hidden layer of tanh neurons; the size of the noise and, for every layer, of the
weights is learnt. `average` lets chains jump between 1 and 32 neurons. `2`, `8` and `32` are the
same kernel, but without jumps, at that many neurons. Draws of `average` that have the likeliest
width are its `likeliest` entry: what one would have got had one asked the posterior for one width.
`no_settling` is `average` with jumps from the first iteration of the warm-up on.
All take 4 chains of 1000 draws after 1000 of warm-up, steps of NUTS of at most 64 leapfrogs, and
ten jumps a step where there are any.

Five tables come with their published splits, of which these are the first; the others are split at
random, a tenth of the rows to test. Of `forest_fires` the target is log(1 + area). NLL is in nats
per test row, in the unit of the target. What is done already is in FOLDER/rows.jsonl and is not
done again.
"""

import os
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from default_model import FILES, split_of
from rows import commit, commits, markdown, mean_error, run, values

TABLES = {
    "airfoil": {"target": "sound_pressure_level"},
    "bike_sharing_day": {"target": "cnt", "drop": ("instant", "dteday", "casual", "registered")},
    "forest_fires": {"target": "area"},
    "credit_approval": {"target": "class"},
    "vehicle": {"target": "Class"},
}
"""How `TableSource` reads the tables that have no published splits."""
DATASETS = ("yacht", "boston", "forest_fires", "credit_approval", "bike_sharing_day", "energy",
            "vehicle", "concrete", "airfoil", "wine")  # fmt: skip
AVERAGE, NO_SETTLING, WIDEST, FIXED = "average", "no_settling", 32, (2, 8, 32)
MODELS = (AVERAGE, NO_SETTLING, *map(str, FIXED))
NUM_SPLITS = 5


def arrays_of(name: str, number: int) -> Any:
    """A split as a network sees it, standardised by its training rows."""
    from sklearn.preprocessing import StandardScaler

    from credence.compare import problem
    from credence.compare.problem import Arrays
    from credence.compare.sources import TableSource
    from credence.compare.specs import RowLimits
    from credence.preprocessing import TargetScaler

    if name in TABLES:
        path = Path(os.environ["CREDENCE_DATA"]) / "tables" / f"{name}.parquet"
        source = TableSource(table=str(path), test_fraction=0.1, split_seed=number, **TABLES[name])
        found = problem.load(source, RowLimits())
        return in_logarithms(found) if name == "forest_fires" else found
    assert name in FILES
    x, y, x_test, y_test = split_of(name, number)
    inputs, target = StandardScaler().fit(x), TargetScaler.fit(y)
    return Arrays(
        inputs.transform(x), target.transform(y), inputs.transform(x_test),
        target.transform(y_test), target, (),
    )  # fmt: skip


def in_logarithms(arrays: Any) -> Any:
    """The same rows with log(1 + target), standardised anew."""
    from dataclasses import replace

    from credence.preprocessing import TargetScaler

    y, y_test = (
        np.log1p(arrays.scaler.inverse(np.ravel(z))) for z in (arrays.y_train, arrays.y_test)
    )
    scaler = TargetScaler.fit(y)
    z, z_test = scaler.transform(y), scaler.transform(y_test)
    return replace(arrays, y_train=z, y_test=z_test, scaler=scaler)


def row_of(name: str, number: int, model: str) -> dict[str, Any]:
    """One model on one split: scores, sizes, convergence and seconds."""
    from credence.compare import scoring
    from credence.density.posterior import Posterior
    from credence.environment import num_cores
    from credence.methods import Transdimensional
    from credence.methods.transdimensional import method as method_module
    from credence.methods.transdimensional.architecture.posterior import architecture_posterior
    from credence.methods.transdimensional.architecture.selection import given
    from credence.methods.transdimensional.size_priors import WidthPrior
    from credence.models import MLP, Categorical, HierarchicalGamma, Normal

    arrays = arrays_of(name, number)
    is_average = not model.isdigit()
    width = WIDEST if is_average else int(model)
    likelihood = Categorical() if arrays.scaler is None else Normal()
    network = MLP(likelihood.num_outputs(len(arrays.labels) or 1), (width,), "tanh")
    rows = arrays.x_train, arrays.y_train
    posterior = Posterior(network, HierarchicalGamma(), likelihood, rows)
    method = Transdimensional(
        width_prior=WidthPrior(smallest=1 if is_average else width),
        num_chains=4, num_draws=1000, num_warmup=1000, max_doublings=6, num_jumps=10,
    )  # fmt: skip
    share = 0.0 if model == NO_SETTLING else method_module.SETTLING
    with mock.patch.object(method_module, "SETTLING", share):
        ensemble = method.run(number, posterior)
    judged = scoring.judge(ensemble, arrays.x_test, ())
    found: dict[str, Any] = {
        "data": name, "split": number, "model": model, "seed": number, "commit": commit(),
        **kept_scores(scoring.scores(ensemble, arrays, ())[0]),
        "num_train": len(arrays.x_train), "num_test": len(arrays.x_test),
        "rhat": judged["convergence"]["max_rhat_function"], "ess": judged["ess_function"],
        "seconds": ensemble.cost.total_seconds, "num_cores": num_cores(),
    }  # fmt: skip
    if is_average:
        size = architecture_posterior(ensemble.scalars).size
        alone = given(ensemble, widths=(size.mode,))
        found |= {
            "likeliest": kept_scores(scoring.scores(alone, arrays, ())[0]),
            "widths": list(size.widths), "probabilities": list(size.probabilities),
            "mode": size.mode, "mean_width": size.mean, "rhat_width": size.rhat,
        }  # fmt: skip
    return found


def kept_scores(numbers: dict[str, Any]) -> dict[str, float]:
    """NLL of the test rows, and the error in the unit of the target or the accuracy."""
    loss = numbers["nll"] if "nll" in numbers else numbers["log_loss"]
    name = "rmse" if "rmse" in numbers else "accuracy"
    return {"nll": loss, name: numbers[name]}


def table_lines(rows: list[dict[str, Any]]) -> list[str]:
    """NLL of the average, and by how much that of fixed widths is above it, table by table."""
    heads = ("data", "rows", "splits", "mean width", "NLL of the average", "likeliest width alone",
             *(f"{width} neurons" for width in FIXED), "jumps from the start on",
             "worst R-hat")  # fmt: skip
    lines = [line_of(mine) for name in DATASETS if (mine := of_data(rows, name))]
    about = f"Cores: {values(rows, 'num_cores')}; commit {commits(rows)}."
    return [*markdown(heads, lines), "", about]


def of_data(rows: list[dict[str, Any]], name: str) -> dict[str, list[dict[str, Any]]]:
    """Rows of a table, by model, on the splits that all models have."""
    by_model = {model: {r["split"]: r for r in rows if (r["data"], r["model"]) == (name, model)}
                for model in MODELS}  # fmt: skip
    shared = sorted(set.intersection(*(set(mine) for mine in by_model.values())))
    return {model: [mine[s] for s in shared] for model, mine in by_model.items()} if shared else {}


def line_of(mine: dict[str, list[dict[str, Any]]]) -> list[str]:
    """A line: losses above the average are paired, split by split."""
    average = mine[AVERAGE]
    nll = np.array([row["nll"] for row in average])
    above = [np.array([row["likeliest"]["nll"] for row in average]) - nll]
    without = mine.pop(NO_SETTLING)
    others = *(mine[str(width)] for width in FIXED), without
    above += [np.array([row["nll"] for row in each]) - nll for each in others]
    widths = [row["mean_width"] for row in average]
    return [
        average[0]["data"], str(average[0]["num_train"]), str(len(average)),
        f"{np.mean(widths):.1f}", mean_error(nll.tolist()),
        *(mean_error(each.tolist()) for each in above),
        " ; ".join(f"{max(map(rhat_of, each)):.2f}" for each in mine.values()),
    ]  # fmt: skip


def rhat_of(row: dict[str, Any]) -> float:
    """R-hat of the predictions; it is infinite where chains stand still."""
    return np.inf if row["rhat"] is None else row["rhat"]


def main() -> None:
    run(__doc__, DATASETS, MODELS, lambda name: NUM_SPLITS, row_of, table_lines)


if __name__ == "__main__":
    main()
