"""How many nats a step from one width to the next costs, on the problems of the paper.

Chada, Jasra, Law & Singh, "Bayesian Deep Learning with Multilevel Trace-class Neural Networks",
section 5. Particles that step from a width to the next are weighed by the ratio of the likelihoods;
a step that changes its logarithm by more than `MOST_NATS` must be tempered. All of it is known
from the prior, before anything is sampled.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import jax
from rich.table import Table

from credence.html.document import document
from credence.html.markup import element
from credence.html.parts import masthead, section, table
from credence.html.wording import number as in_digits
from credence.methods.smc.multilevel.allocation import MOST_NATS, nats_between
from credence_papers.cache import Cache, number
from credence_papers.multilevel.error_cost.settings_tried import doubled
from credence_papers.multilevel.error_cost.width_problems import WidthProblem, arrays
from credence_papers.study import Row, Study, with_seed

READING = (
    "Expected change of the log likelihood, in nats, from one width to the next, under the prior. "
    f"Levels can be coupled from the width on from which every step is below {MOST_NATS:g}."
)


@dataclass(frozen=True, kw_only=True)
class StepEffort:
    """How much is run.

    Args:
        widths: of the networks, each twice the one before.
        num_draws: of the prior, for every step.
        problem: what of a problem is smaller than published.
    """

    widths: tuple[int, ...]
    num_draws: int
    problem: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class StepStudy(Study[WidthProblem, StepEffort]):
    """Problems whose steps are measured under the prior."""

    def check(self, problem: WidthProblem, effort: StepEffort, seed: int) -> None:
        """Load the data once."""
        arrays(problem.at(effort.problem, seed))

    def run_one(self, problem: WidthProblem, effort: StepEffort, seed: int, cache: Cache) -> Row:
        """All steps of a problem."""
        placed, draws = problem.at(effort.problem, seed), number([problem.name, "steps", seed])

        def compute() -> Row:
            levels = list(map(placed.posterior, effort.widths))
            key = jax.random.key(draws)
            nats = nats_between(levels, num_draws=effort.num_draws, key=key)
            return {"nats": nats.tolist()}

        about = [placed, effort.widths, effort.num_draws, draws]
        return cache.kept(f"{problem.name}, seed {seed}", about, compute)

    def rows(
        self, problem: WidthProblem, effort: StepEffort, results: Mapping[int, Row]
    ) -> list[Row]:
        """A row per seed, whose data are its own."""
        about = {
            "name": problem.name,
            "kind": problem.name.rpartition(" alpha ")[0],
            "alpha": problem.alpha,
            "num_points": len(arrays(problem.at(effort.problem, min(results))).x),
            "widths": list(effort.widths),
        }
        return [
            with_seed(
                {**about, **found, "couples_from": couples_from(effort.widths, found["nats"])},
                seed,
                results,
            )
            for seed, found in results.items()
        ]

    def sentence(self, row: Row) -> str:
        """Say from which width levels can be coupled."""
        width = row["couples_from"]
        where = f"from width {width}" if width else f"not below width {row['widths'][-1]}"
        return f"{row['name']}: levels couple {where}"

    def summary(self, effort: StepEffort, rows: list[Row]) -> dict[str, Any]:
        """All rows as JSON data."""
        return {"num_draws": effort.num_draws, "most_nats": MOST_NATS, "problems": rows}

    def render(self, summary: dict[str, Any]) -> str:
        """The page as text."""
        head = masthead(summary["description"], f"Credence · size {summary['size']}")
        body = section(
            "Steps in nats", element("p", READING), table(*cells(summary)), is_converged=True
        )
        return document(f"Steps: {summary['experiment']}", element("main", head, body))

    def table(self, summary: dict[str, Any]) -> Table:
        """The steps for a terminal."""
        heads, rows = cells(summary)
        found = Table(*heads)
        for row in rows:
            found.add_row(*row)
        return found


def couples_from(widths: tuple[int, ...], nats: list[float]) -> int | None:
    """The width from which on no step is too far; None where the last one is."""
    far = [step for step, cost in enumerate(nats) if cost > MOST_NATS]
    first = far[-1] + 1 if far else 0
    return widths[first] if first < len(nats) else None


def cells(summary: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Heads and rows of the table."""
    widths = summary["problems"][0]["widths"]
    steps = [f"{a}-{b}" for a, b in pairwise(widths)]
    rows = [
        [
            row["kind"],
            f"{row['alpha']:g}",
            *(in_digits(step, 2) for step in row["nats"]),
            str(row["couples_from"] or f"above {widths[-2]}"),
        ]
        for row in summary["problems"]
    ]
    return ["problem", "alpha", *steps, "couples from"], rows


def steps_study(problems: tuple[WidthProblem, ...], name: str, source: str) -> StepStudy:
    """The study of these problems at three sizes."""
    return StepStudy(
        name=name,
        description="How many nats a step from one width to the next costs, under the prior",
        problems=problems,
        efforts={
            "smoke": StepEffort(
                widths=(4, 8, 16), num_draws=20, problem={"num_points": 20, "num_interest": 4}
            ),
            "laptop": StepEffort(widths=doubled(8, 256), num_draws=1000, problem={}),
            "paper": StepEffort(widths=doubled(8, 256), num_draws=10_000, problem={}),
        },
        source=source,
    )
