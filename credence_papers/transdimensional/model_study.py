"""The study that sets models of one table side by side, split by split."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from rich.table import Table

from credence.compare.seeds import mean_and_error
from credence.html.document import document
from credence.html.markup import element
from credence.html.parts import masthead, section, table
from credence.storage import jsonable
from credence_papers.cache import Cache
from credence_papers.study import Row, Study
from credence_papers.transdimensional.models import ModelEffort, ModelProblem, run_model

SCORES = {
    "rmse": {"rmse": ("RMSE", 2), "nll": ("NLL", 2), "coverage_95": ("coverage", 3)},
    "accuracy": {"accuracy": ("accuracy", 4), "nll": ("NLL", 3), "ece": ("ECE", 3)},
}
"""The scores that a row tells, of numbers and of labels, by the first; their heads and decimals."""
HEADS = ("size", "R-hat of size", "of predictions", "seconds")


@dataclass(frozen=True, kw_only=True)
class ModelStudy(Study[ModelProblem, ModelEffort]):
    """Models of one table: the same splits for all, means over them with standard errors."""

    def check(self, problem: ModelProblem, effort: ModelEffort, seed: int) -> None:
        """Load the data once."""
        problem.data(seed)

    def run_one(
        self, problem: ModelProblem, effort: ModelEffort, seed: int, cache: Cache
    ) -> dict[str, Any]:
        """One model of one split; what was stopped goes on from its checkpoints."""
        compute = partial(run_model, problem, effort, seed)
        return cache.resumed(f"{problem.name}, seed {seed}", [problem, effort, seed], compute)

    def rows(
        self, problem: ModelProblem, effort: ModelEffort, results: Mapping[int, Any]
    ) -> list[Row]:
        """One row a model."""
        return [{"name": problem.name, "how": problem.how, **over_splits(list(results.values()))}]

    def sentence(self, row: Row) -> str:
        """Join the cells of a row."""
        return ", ".join(cells(row))

    def summary(self, effort: ModelEffort, rows: list[Row]) -> dict[str, Any]:
        """All models, and whether all of their runs converged."""
        return {
            "models": rows,
            "converged": all(row["num_converged"] in (None, row["num_splits"]) for row in rows),
        }

    def render(self, summary: dict[str, Any]) -> str:
        """The page as text."""
        facts = f"Credence · size {summary['size']} · {summary['num_seeds']} splits"
        models = summary["models"]
        found = table(heads(models), [cells(row) for row in models])
        body = element(
            "main",
            masthead(summary["description"], facts),
            section("Models", found, is_converged=True),
        )
        return document(f"Models: {summary['experiment']}", body)

    def table(self, summary: dict[str, Any]) -> Table:
        """One line a model."""
        found = Table(*heads(summary["models"]))
        for row in summary["models"]:
            found.add_row(*cells(row))
        return found


def over_splits(results: list[dict[str, Any]]) -> Row:
    """Means with standard errors, and the worst R-hat.

    Shares of sizes are means over splits; sizes that no split visited are left out. A score that a
    split lacks has no mean.
    """
    first = first_score(results[0])
    floats = (n for r in results for n, value in r.items() if isinstance(value, float))
    names = [name for name in dict.fromkeys((first, *floats)) if name != "rhat_predictions"]
    known = {name: mean_and_error([r[name] for r in results]) for name in names}
    row: Row = {
        "num_splits": len(results),
        "means": {name: mean for name, (mean, _) in known.items()},
        "errors": {n: error for n, (_, error) in known.items() if error is not None},
        first: [r[first] for r in results],
        "size": None,
        "num_converged": None,
        "rhat_predictions": [r["rhat_predictions"] for r in results],
    }
    row |= worst_and_median("rhat_predictions", row["rhat_predictions"])
    if results[0]["converged"] is not None:
        row["num_converged"] = sum(bool(r["converged"]) for r in results)
    if results[0]["size"] is None:
        return row
    sizes = [r["size"] for r in results]
    shares: dict[int, float] = {}
    for each in sizes:
        for size, share in zip(each["sizes"], each["probabilities"], strict=True):
            shares[size] = shares.get(size, 0.0) + share / len(sizes)
    row["size"] = {
        "shares": {size: shares[size] for size in sorted(shares) if shares[size] > 0},
        "modes": [each["mode"] for each in sizes],
        "mean": float(np.mean([each["mean"] for each in sizes])),
        "across": float(np.mean([each["across"] for each in sizes])),
        "rhat": [each["rhat"] for each in sizes],
        **worst_and_median("rhat", [each["rhat"] for each in sizes]),
    }
    return row


def worst_and_median(name: str, values: list[float | str | None]) -> dict[str, Any]:
    """Largest and median of what is known, None where nothing is; "inf" is known, and infinite."""
    known = [float(value) for value in values if value is not None]
    found = {"worst": max(known), "median": float(np.median(known))} if known else {}
    return {
        f"{name}_{which}": jsonable(found.get(which), spell_infinite=True)
        for which in ("worst", "median")
    }


def first_score(names: Iterable[str]) -> str:
    """The score by which models are told apart: "rmse" of numbers, "accuracy" of labels."""
    return next(name for name in SCORES if name in names)


def heads(rows: list[Row]) -> list[str]:
    """Those of `cells`."""
    scores = SCORES[first_score(rows[0]["means"])].values() if rows else ()
    return ["model", *(head for head, _ in scores), *HEADS]


def cells(row: Row) -> list[str]:
    """A model in eight words, as of `heads`."""
    size, scores = row["size"], SCORES[first_score(row["means"])]
    return [
        row["name"],
        *(with_error(row, name, decimals) for name, (_, decimals) in scores.items()),
        likeliest_sizes(size["shares"]) if size else "fixed",
        rhats(size, "rhat"),
        rhats(row, "rhat_predictions"),
        f"{row['means']['seconds']:.0f}",
    ]


def with_error(row: Row, name: str, decimals: int = 2) -> str:
    """A mean with its standard error."""
    if row["means"].get(name) is None:
        return "–"
    error = row["errors"].get(name)
    more = "" if error is None else f" ± {error:.{decimals}f}"
    return f"{float(row['means'][name]):.{decimals}f}{more}"


def likeliest_sizes(shares: Mapping[Any, float]) -> str:
    """The three likeliest sizes in their order, each with its probability."""
    top = sorted(shares, key=lambda size: -shares[size])[:3]
    return ", ".join(f"{size}: {shares[size]:.2f}" for size in sorted(top, key=int))


def rhats(found: Mapping[str, Any] | None, name: str) -> str:
    """Median and, in brackets, the worst over the splits."""
    if not found or found.get(f"{name}_median") is None:
        return "–"
    median, worst = (float(found[f"{name}_{which}"]) for which in ("median", "worst"))
    return f"{median:.2f} ({worst:.2f})"
