"""Error against cost of single-level and multilevel SMC: all programs of a study, resumable.

OUT/study.json          what is run
OUT/jobs/NAME.json      one finished program: estimates of every replicate, work and seconds
OUT/results.json        points, envelopes, slopes and ratios (see `envelope`)
OUT/report.html         the page

For every problem: NUTS on the finest network is the reference, with its own Monte Carlo error;
single-level SMC runs at all widths and particle numbers; multilevel SMC on all ladders of widths,
with particles per level as its pilot says. A program whose file is there is read, not run again;
one that failed is tried again.
"""

import contextlib
import json
import time
import warnings
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from credence.errors import InputError
from credence.experiments.contenders import Contender, Effort, Job, Study
from credence.experiments.programs import execute
from credence.experiments.runner import NoWatch, write_results
from credence.experiments.study_folder import claimed
from credence.experiments.width_problems import WidthProblem
from credence.storage import write_text

ABOUT = "study.json"
FEWEST = 20
"""Particles at a level."""


def run(
    study: Study,
    out: str | Path,
    *,
    size: str = "laptop",
    seed: int = 0,
    problems: tuple[str, ...] = (),
    watch: NoWatch | None = None,
) -> dict[str, Any]:
    """Run what is not finished yet; write and return the summary.

    Args:
        out: folder; a new one, or that of an earlier run.
        size: smoke, laptop or paper.
        problems: only these; () takes all.
    Raises:
        InputError: for an unknown size or problem, an unusable folder, data that are not to be had.
        KeyboardInterrupt: on Ctrl-C; finished programs are kept.
    """
    from credence.experiments.error_cost_page import render
    from credence.experiments.error_cost_results import summarise

    watch, effort = watch or NoWatch(), study.effort(size)
    chosen = [replace(problem, **effort.problem) for problem in study.only(problems)]
    folder = claimed(out, ABOUT, study, size=size, seed=seed, effort=asdict(effort))
    found = {}
    for problem in chosen:
        limited = effort.within(study.limits.get(problem.name))
        found[problem.name] = _problem(problem, limited, seed, folder, watch)
    summary = summarise(study, effort, found, size=size, seed=seed)
    write_results(folder, summary, render)
    return summary


def _problem(
    problem: WidthProblem, effort: Effort, seed: int, folder: Path, watch: NoWatch
) -> list[tuple[Job, dict[str, Any]]]:
    """All programs of a problem with their results."""
    import jax

    jax.clear_caches()  # programs of the last problem, which no other can use
    first = [*references(problem, effort, seed), *pilots(problem, effort, seed)]
    done = [(job, finished(job, folder, watch)) for job in first]
    contenders = effort.singles
    for job, result in done:
        if job.kind == "pilot" and result["status"] == "done":
            contenders += allotted(job, result, effort)
    count, together = effort.replicates, effort.together
    later = [
        Job(
            kind="replicates",
            problem=problem,
            contender=contender,
            replicates=count,
            batch=together,
            seed=seed,
        )
        for contender in contenders
    ]
    return done + [(job, finished(job, folder, watch)) for job in later]


def references(problem: WidthProblem, effort: Effort, seed: int) -> list[Job]:
    """NUTS on the finest network, and on the others if biases are asked for."""
    widths = {effort.finest, *(effort.widths if effort.biases else ())}
    settings = effort.reference
    return [
        Job(kind="reference", problem=problem, width=width, settings=settings, seed=seed)
        for width in sorted(widths, reverse=True)
    ]


def pilots(problem: WidthProblem, effort: Effort, seed: int) -> list[Job]:
    """A short multilevel run on every ladder, for the variances of its increments."""
    from credence.methods.allocation import usual

    jobs = []
    for base, finest in effort.ladders:
        widths = effort.ladder_widths(base, finest)
        sizes = [problem.posterior(width).num_weights for width in widths]
        counts = usual(effort.pilot_particles, sizes)
        pilot = Contender(
            method="mlsmc", widths=widths, num_particles=counts, mutation=effort.mutation
        )
        runs = effort.pilot_runs
        jobs.append(Job(kind="pilot", problem=problem, contender=pilot, replicates=runs, seed=seed))
    return jobs


def allotted(pilot: Job, result: dict[str, Any], effort: Effort) -> list[Contender]:
    """The ladder of a pilot at all sizes: particles fall as sqrt(V_l / C_l)."""
    assert pilot.contender is not None
    variances, costs = (np.array(result[name], float) for name in ("variances", "costs"))
    shares = np.sqrt(np.maximum(variances, 1e-30) / costs)
    shares = shares / shares[0]
    return [
        replace(
            pilot.contender,
            num_particles=tuple(max(FEWEST, int(np.ceil(count * share))) for share in shares),
        )
        for count in effort.base_particles
    ]


def finished(job: Job, folder: Path, watch: NoWatch) -> dict[str, Any]:
    """The result of a program: read, or run and written. One that cannot be run says why."""
    path = folder / "jobs" / f"{job.kind}-{job.digest}.json"
    with contextlib.suppress(OSError, ValueError):
        result = json.loads(path.read_text(encoding="utf-8"))["result"]
        if result["status"] == "done":
            return result
    path.parent.mkdir(parents=True, exist_ok=True)
    begin = time.perf_counter()
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            result = {"status": "done", **execute(job)}
        result["warnings"] = sorted({str(warning.message) for warning in caught})
    except InputError as error:
        result = {"status": "failed", "error": str(error)}
    write_text(path, json.dumps({"job": asdict(job), "result": result}))
    ending = "" if result["status"] == "done" else f" failed: {result['error']}"
    watch.say(f"{job.label}: {time.perf_counter() - begin:.0f} s{ending}")
    return result
