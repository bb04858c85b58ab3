"""Error against cost of single-level and multilevel SMC: all programs of a study, resumable.

For every problem: NUTS or a long SMC is the reference, with its own Monte Carlo error;
single-level SMC runs at all widths and particle numbers; multilevel SMC on all ladders of widths,
with particles per level as its pilot says. A program that failed is tried again.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from rich.console import Group
from rich.table import Table
from rich.text import Text

from credence.errors import CredenceError, Interrupted
from credence.storage import jsonable
from credence_papers.cache import Cache
from credence_papers.multilevel.error_cost.page import interval, render, sentence
from credence_papers.multilevel.error_cost.programs import execute
from credence_papers.multilevel.error_cost.results import MEASURES, Outcome, problem_row
from credence_papers.multilevel.error_cost.settings_tried import (
    NARROWEST,
    Contender,
    Effort,
    Job,
    doubled,
)
from credence_papers.multilevel.error_cost.width_problems import WidthProblem, arrays
from credence_papers.study import Row, Study, with_seed

FEWEST = 20
"""Particles at a level."""
MORE = 4
"""Times the particles of a reference whose runs do not agree."""


@dataclass(frozen=True, kw_only=True)
class ErrorCostStudy(Study[WidthProblem, Effort]):
    """Problems whose error against cost is measured.

    Args:
        published: what the paper reports, by problem: sentences.
        limits: widest networks of a problem, where they are fewer than the effort's.
    """

    published: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, int] = field(default_factory=dict)

    def effort(self, problem: WidthProblem, size: str) -> Effort:
        """Kept to the problem's limit."""
        return self.efforts[size].within(self.limits.get(problem.name))

    def check(self, problem: WidthProblem, effort: Effort, seed: int) -> None:
        """Load the data once."""
        arrays(problem.at(effort.problem, seed))

    def run_one(
        self, problem: WidthProblem, effort: Effort, seed: int, cache: Cache
    ) -> list[Outcome]:
        """All programs of a problem with their results."""
        import jax

        jax.clear_caches()  # programs of the last problem, which no other can use
        problem = problem.at(effort.problem, seed)
        ladder = ladders(problem, effort, seed)
        done = [
            *(converged(job, cache) for job in references(problem, effort, seed)),
            *((job, finished(job, cache)) for job in ladder),
        ]
        chosen = [
            tuple(result["widths"])
            for job, result in done
            if job.kind == "ladder" and result["status"] == "done"
        ]
        first = pilots(problem, effort, seed, chosen)
        done += [(job, finished(job, cache)) for job in first]
        contenders = [
            contender
            for job, result in done
            if job.kind == "pilot" and result["status"] == "done"
            for contender in allotted(job, result, effort)
        ]
        later = [
            Job(
                kind="replicates",
                problem=problem,
                contender=contender,
                replicates=contender.replicates or effort.replicates,
                batch=effort.together,
                seed=seed,
            )
            for contender in sorted(contenders + effort.singles, key=_size)
        ]
        return done + [(job, finished(job, cache)) for job in later]

    def rows(
        self, problem: WidthProblem, effort: Effort, results: Mapping[int, list[Outcome]]
    ) -> list[Row]:
        """A row per seed: each has data and a reference of its own."""
        published = self.published.get(problem.name, "")
        return [
            with_seed(jsonable(problem_row(outcomes, published)), seed, results)
            for seed, outcomes in results.items()
        ]

    def sentence(self, row: Row) -> str:
        """What the row shows."""
        return f"{row['name']}: {sentence(row)}"

    def summary(self, effort: Effort, rows: list[Row]) -> dict[str, Any]:
        """All rows as JSON data, with the measures of cost and whether the references converged."""
        return {
            "replicates": effort.replicates,
            "measures": MEASURES,
            "problems": rows,
            "failed": sum(len(row["failed"]) for row in rows),
            "converged": all(row["reference"]["converged"] for row in rows),
        }

    def render(self, summary: dict[str, Any]) -> str:
        """The page as text."""
        return render(summary)

    def table(self, summary: dict[str, Any]) -> Group:
        """Slopes, and what the study says of every problem."""
        table = Table("problem", "slope, one level", "slope, several", "theory")
        for row in summary["problems"]:
            slopes = row["fits"].get("flops", {}).get("slopes", {})
            found = [interval(slopes[method]) for method in slopes] or ["–", "–"]
            table.add_row(row["name"], *found, "{smc:.2f}, {mlsmc:.2f}".format(**row["theory"]))
        return Group(table, Text("\n".join(map(self.sentence, summary["problems"]))))


def _size(contender: Contender) -> int:
    """Small runs of all methods come first, so that a study that is stopped has some of each."""
    return contender.num_particles[0]


def references(problem: WidthProblem, effort: Effort, seed: int) -> list[Job]:
    """Long runs on the finest network or one like it, and on the others if biases are asked for.

    The first one is what errors are measured against.
    """
    first = reference_width(problem, effort)
    others = [width for width in effort.widths if effort.biases and width != first]
    settings = effort.reference
    return [
        Job(kind="reference", problem=problem, width=width, settings=settings, seed=seed)
        for width in (first, *sorted(others, reverse=True))
    ]


def reference_width(problem: WidthProblem, effort: Effort) -> int:
    """The narrowest width whose posterior is, within so many nats, that of the finest network.

    Increments of different levels are uncorrelated, so that the nats of the steps add up.
    """
    from credence.methods.smc.multilevel.allocation import nats_between

    if not effort.reference_nats:
        return effort.finest
    widths = doubled(min(effort.widths), effort.finest)
    steps = nats_between(list(map(problem.posterior, widths)))
    left = [float(steps[i:].sum()) for i in range(len(widths))]
    near = (w for w, nats in zip(widths, left, strict=True) if nats < effort.reference_nats)
    return next(near)


def ladders(problem: WidthProblem, effort: Effort, seed: int) -> list[Job]:
    """The choice of a ladder, where small runs at narrow widths make it.

    One ladder serves all manners, and so it is judged with the fewest tries of any.
    """
    if not effort.base_share:
        return []
    num_tries = min(manner.get("num_tries", 1) for manner in effort.manners.values())
    settings = {"share": effort.base_share, "num_tries": num_tries}
    return [Job(kind="ladder", problem=problem, width=effort.finest, settings=settings, seed=seed)]


def pilots(
    problem: WidthProblem, effort: Effort, seed: int, chosen: Sequence[tuple[int, ...]] = ()
) -> list[Job]:
    """A short multilevel run on every ladder, for the variances of its increments.

    Args:
        chosen: ladders by `ladders`.
    """
    from credence.methods.smc.multilevel.allocation import usual

    jobs = []
    for widths in chosen or effort.ladders or (chosen_ladder(problem, effort.finest),):
        sizes = [problem.posterior(width).num_weights for width in widths]
        contender = Contender(
            method="mlsmc",
            widths=widths,
            num_particles=usual(effort.pilot_particles, sizes),
        )
        pilot = Job(kind="pilot", problem=problem, replicates=effort.pilot_runs, seed=seed)
        jobs += [
            replace(pilot, contender=in_manner(contender, manner, effort))
            for manner in effort.manners
        ]
    return jobs


def in_manner(contender: Contender, manner: str, effort: Effort) -> Contender:
    """The multilevel method in one of the manners in which it is tried."""
    own = {k: v for k, v in effort.manners[manner].items() if k != "base_particles"}
    mutation = own.pop("mutation", effort.mutation)
    return replace(contender, manner=manner, mutation=mutation, settings=own)


def chosen_ladder(problem: WidthProblem, finest: int) -> tuple[int, ...]:
    """Widths of a ladder with few steps, from the coarsest width that can be weighed.

    Every step goes to the widest network that changes the log likelihood by less than
    `MOST_NATS`; one more step costs a program, and a term of the sum.
    """
    from credence.methods.smc.multilevel.allocation import MOST_NATS, coarsest, nats_between

    widths = doubled(NARROWEST, finest)
    levels = dict(zip(widths, map(problem.posterior, widths), strict=True))
    ladder = [widths[coarsest(list(levels.values()))]]
    while ladder[-1] < finest:
        wider = [width for width in widths if width > ladder[-1]]
        nats = [nats_between([levels[ladder[-1]], levels[width]])[0] for width in wider]
        near = [width for width, step in zip(wider, nats, strict=True) if step < MOST_NATS]
        ladder.append(near[-1] if near else wider[0])
    return tuple(ladder)


def allotted(pilot: Job, result: dict[str, Any], effort: Effort) -> list[Contender]:
    """The ladder of a pilot at all sizes, its particles as `mlsmc` takes them."""
    from credence.methods.smc.multilevel.allocation import shares

    assert pilot.contender is not None
    variances, costs = (np.array(result[name], float) for name in ("variances", "costs"))
    manner, each = effort.manners[pilot.contender.manner], shares(variances, costs)
    return [
        replace(
            pilot.contender,
            num_particles=tuple(max(FEWEST, int(np.ceil(count * share))) for share in each),
        )
        for count in manner.get("base_particles", effort.base_particles)
    ]


def converged(job: Job, cache: Cache) -> Outcome:
    """A long run; where runs of SMC do not agree, one with `MORE` times the particles.

    A run that finds a rare mode with one of few particles gives it too much weight.
    """
    result = finished(job, cache)
    if result.get("converged") is not False or "num_particles" not in job.settings:
        return job, result
    number = MORE * job.settings["num_particles"]
    longer = replace(job, settings={**job.settings, "num_particles": number})
    return longer, finished(longer, cache)


def finished(job: Job, cache: Cache) -> dict[str, Any]:
    """The result of a program. One that cannot be run, or wants more memory than there is, says
    why, and is not kept; the others are run, and tell the kind of machine they ran on."""

    def compute() -> dict[str, Any]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            result = execute(job)
        told = sorted({str(warning.message) for warning in caught})
        return {"status": "done", **result, "warnings": told}

    try:
        result, machine = cache.told(job.label, job, compute)
        return {**result, "machine": machine}
    except Interrupted:
        raise
    except (CredenceError, MemoryError, RuntimeError) as error:  # JAX's own are RuntimeErrors
        cache.watch.say(f"{job.label} failed: {error}")
        return {"status": "failed", "error": str(error)}
