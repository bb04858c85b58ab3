"""The trans-dimensional study: what a run found beside what is published, seed by seed."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from credence.compare.seeds import mean_and_error
from credence_papers.cache import Cache
from credence_papers.study import Row, Study, with_seed
from credence_papers.transdimensional import runs
from credence_papers.transdimensional.page import render, size_of
from credence_papers.transdimensional.runs import ArchitectureProblem, Effort


@dataclass(frozen=True, kw_only=True)
class ArchitectureStudy(Study[ArchitectureProblem, Effort]):
    """Posteriors over how wide or how deep a network should be."""

    def effort(self, problem: ArchitectureProblem, size: str) -> Effort:
        """How much is run of a problem, with the other ways that it has at that size."""
        return replace(self.efforts[size], ways=problem.ways.get(size))

    def check(self, problem: ArchitectureProblem, effort: Effort, seed: int) -> None:
        """Load the data once."""
        problem.data(seed)

    def run_one(
        self, problem: ArchitectureProblem, effort: Effort, seed: int, cache: Cache
    ) -> dict[str, Any]:
        """One posterior over architectures."""
        compute = lambda folder: runs.measured(problem, effort, seed, folder)  # noqa: E731
        return cache.resumed(f"{problem.name}, seed {seed}", [problem, effort, seed], compute)

    def rows(
        self, problem: ArchitectureProblem, effort: Effort, results: Mapping[int, Any]
    ) -> list[Row]:
        """A row per seed, with what is known of the problem."""
        about = {
            "name": problem.name,
            "problem": problem.name,
            "description": problem.description,
            "published": dict(problem.published),
            "reasons": list(problem.reasons),
        }
        return [with_seed({**about, **row}, seed, results) for seed, row in results.items()]

    def sentence(self, row: Row) -> str:
        """The most probable size, how well jumps went, and a score."""
        scores, (size, noun) = row["scores"], size_of(row)
        score = score_of(scores)
        return (
            f"{row['name']}: most probable {size['mode']} {noun.lower()} "
            f"(mean {size['mean']:.1f}), "
            f"{scores['across']:.1%} of jumps accepted, {score} {scores[score]:.3f}, "
            f"{row['total_seconds']:.0f} s"
        )

    def summary(self, effort: Effort, rows: list[Row]) -> dict[str, Any]:
        """All rows, and means over the seeds."""
        return {
            "architectures": rows,
            "means": means(rows),
            "converged": all(row["convergence"]["converged"] for row in rows),
        }

    def render(self, summary: dict[str, Any]) -> str:
        """The page as text."""
        return render(summary)

    def table(self, summary: dict[str, Any]) -> Group:
        """Ours and, in brackets, what is published."""
        table = Table("problem", "mode", "mean", "accepted", "score", "R-hat of size", "seconds")
        for row in summary["architectures"]:
            names = ("mode", "mean", "across", score_of(row["scores"]))
            rhat = row["architecture"]["max_rhat"]
            table.add_row(
                row["name"],
                *(_beside(row, name) for name in names),
                "–" if rhat is None else f"{float(rhat):.3f}",
                f"{row['total_seconds']:.0f}",
            )
        lines = [
            f"{row['name']}: {row['convergence']['reason']}"
            for row in summary["architectures"]
            if not row["convergence"]["converged"]
        ]
        for row in summary["means"]:
            score = score_of(row["scores"])
            error = row["standard_errors"][score]
            about = f"{row['name']}: mean {score} of {row['num_seeds']} seeds"
            lines.append(f"{about} {_beside(row, score)}, standard error {error:.2g}.")
        return Group(table, Text("\n".join(["In brackets: published.", *lines])))


def means(rows: list[Row]) -> list[Row]:
    """Mean scores, with their standard errors, of every problem that has several seeds."""
    found = []
    for problem in dict.fromkeys(row["problem"] for row in rows):
        mine = [row for row in rows if row["problem"] == problem]
        if len(mine) > 1:
            both = {
                name: mean_and_error([row["scores"][name] for row in mine])
                for name in mine[0]["scores"]
            }
            found.append(
                {
                    "name": problem,
                    "num_seeds": len(mine),
                    "chains": mine[0]["chains"],
                    "published": mine[0]["published"],
                    "scores": {name: mean for name, (mean, _) in both.items()},
                    "standard_errors": {name: error for name, (_, error) in both.items()},
                }
            )
    return found


def score_of(scores: Mapping[str, Any]) -> str:
    """The score that a line has room for."""
    return "accuracy" if "accuracy" in scores else "rmse"


def _beside(row: Row, name: str) -> str:
    known = f" ({row['published'][name]:.3g})" if name in row["published"] else ""
    return f"{row['scores'][name]:.3g}{known}"
