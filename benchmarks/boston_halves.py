"""How well can Boston housing be predicted from half of its rows? Peers on the thesis's protocol.

    CREDENCE_DATA=... python benchmarks/boston_halves.py --out FOLDER
    python benchmarks/boston_halves.py --out FOLDER --table

The ten splits are those of `credence experiment run transdimensional_models`: 253 rows to learn
from, 253 to predict. So its errors stand beside these, split by split. Models are those of
`benchmarks/default_model.py` (`auto` is what `fit` does without options), and `forest` and
`extra_trees` of scikit-learn with 1000 trees. The target is in thousand dollars. What is done
already is in FOLDER/rows.jsonl and is not done again.
"""

import time
from typing import Any

import numpy as np
from default_model import PEERS, fitted_row, network_scores, normal_scores
from rows import commits, markdown, mean_error, run, values

NUM_SPLITS = 10
TREES = {"forest": "RandomForestRegressor", "extra_trees": "ExtraTreesRegressor"}
"""Names of scikit-learn's classes."""


def halves(number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows to fit and rows to predict of a split: x, y, x, y."""
    from credence_papers.transdimensional.data import boston

    arrays = boston(number)
    assert arrays.scaler is not None
    y, y_test = (arrays.scaler.inverse(np.ravel(y)) for y in (arrays.y_train, arrays.y_test))
    return arrays.x_train.astype(float), y, arrays.x_test.astype(float), y_test


def scores(model: str, rows: Any, seed: int) -> dict[str, Any]:
    """Scores of trees, with the normal residuals of rows that a tree did not see; or a network."""
    if model not in TREES:
        return network_scores(model, rows, seed)
    from sklearn import ensemble

    x, y, x_test, y_test = rows
    start = time.perf_counter()
    build = getattr(ensemble, TREES[model])
    fitted = build(1000, bootstrap=True, oob_score=True, random_state=seed).fit(x, y)
    std = np.sqrt(np.mean((fitted.oob_prediction_ - y) ** 2))
    seconds = time.perf_counter() - start
    mean = fitted.predict(x_test)
    return {**normal_scores(mean, np.full(len(mean), std), y_test), "seconds": seconds}


def row_of(name: str, number: int, model: str) -> dict[str, Any]:
    """One model on one split."""
    return fitted_row(name, number, model, halves(number), scores)


def table_lines(rows: list[dict[str, Any]]) -> list[str]:
    """Means and standard errors over splits, the best RMSE first."""
    models = dict.fromkeys(row["model"] for row in rows)
    mine = {model: [row for row in rows if row["model"] == model] for model in models}
    heads = ("model", "splits", "RMSE, thousand dollars", "best, worst split", "NLL", "95 % holds")
    lines = []
    for model in sorted(mine, key=lambda model: np.mean([row["rmse"] for row in mine[model]])):
        rmse, nll, coverage = (
            [row[score] for row in mine[model]] for score in ("rmse", "nll", "coverage_95")
        )
        ends = f"{min(rmse):.2f}, {max(rmse):.2f}"
        means = (mean_error(rmse), ends, mean_error(nll), mean_error(coverage))
        lines.append([model, str(len(rmse)), *means])
    return [
        *markdown(heads, lines),
        "",
        f"Cores: {values(rows, 'num_cores')}; commit {commits(rows)}.",
    ]


def main() -> None:
    models = (*PEERS, *TREES, "auto")
    run(__doc__, ("boston",), models, lambda name: NUM_SPLITS, row_of, table_lines)


if __name__ == "__main__":
    main()
