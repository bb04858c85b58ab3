"""Make the table of results from finished cells: speed-ups, published numbers, conclusions."""

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from credence.compare.seeds import (
    merged,
    num_converged,
    smallest_ess_per_second,
    speed_ups,
)
from credence.compare.specs import Experiment, Outcome, Problem, to_json
from credence.ensembles.diagnostics.convergence import Convergence
from credence.ensembles.diagnostics.cost import Cost, format_speed_up
from credence.environment import UNKNOWN_COMMIT

COLUMNS = {
    "regression": ("rmse", "mse", "nll", "crps", "coverage_95", "coverage_95_credible"),
    "classification": (
        "accuracy", "nll", "brier", "auroc", "ece", "ece_equal_mass", "ece_all_classes",
    ),
}  # fmt: skip
"""Scores of a task, in the order of the table."""

DOUBT = (
    "epistemic_id", "epistemic_correct", "epistemic_wrong", "epistemic_others", "ood_auroc",
    "ood_auroc_epistemic", "ess_share",
)  # fmt: skip
"""Scores of a classification's doubt, where there are any."""

NUM_ERRORS = 2.0
"""Two methods whose mean scores differ by less than so many paired standard errors are a draw."""

Row = dict[str, Any]


class Described(Protocol):
    """A study or an experiment, as far as a summary begins with it."""

    @property
    def name(self) -> str:
        """The experiment's name."""
        ...

    @property
    def description(self) -> str:
        """Say in a sentence what the experiment shows."""
        ...

    @property
    def source(self) -> str:
        """The paper whose numbers stand beside ours."""
        ...


def heading(study: Described, *, size: str, seed: int) -> dict[str, Any]:
    """The first entries of a summary: which study it is of, its size and its seed."""
    return {
        "experiment": study.name,
        "description": study.description,
        "source": study.source,
        "size": size,
        "seed": seed,
    }


def summarise(
    experiment: Experiment,
    outcomes: Sequence[Outcome],
    *,
    size: str,
    seed: int,
    n_jobs: int,
    max_seconds: float | None = None,
) -> dict[str, Any]:
    """The whole table as JSON data.

    `converged` is False where a chain did not converge or a cell failed, and None where there is
    no chain to judge.
    """
    problems = [
        _summarise_problem(
            experiment, problem, [o for o in outcomes if o.cell.problem == problem.name], size
        )
        for problem in experiment.problems
    ]
    rows = [row for problem in problems for row in problem["rows"]]
    verdicts = [row["converged"] for row in rows if row["converged"] is not None]
    failed = [f"{r['problem']}: {r['label']}" for r in rows if r["num_failed"]]
    return {
        **heading(experiment, size=size, seed=seed),
        "num_seeds": max((row["num_seeds"] + row["num_failed"] for row in rows), default=1),
        "n_jobs": n_jobs,
        "max_seconds": max_seconds,
        "baseline": experiment.baseline,
        "converged": False if failed else (all(verdicts) if verdicts else None),
        "not_converged": [f"{r['problem']}: {r['label']}" for r in rows if r["converged"] is False],
        "failed": failed,
        "reasons": list(experiment.reasons),
        "problems": problems,
        "commits": sorted({commit for row in rows for commit in row["commits"]}),
        "versions": next((o.result["versions"] for o in outcomes if o.is_done), {}),
    }


def _summarise_problem(
    experiment: Experiment, problem: Problem, outcomes: Sequence[Outcome], size: str
) -> dict[str, Any]:
    labels = dict.fromkeys(outcome.cell.label for outcome in outcomes)
    seeds = {label: [o for o in outcomes if o.cell.label == label] for label in labels}
    done = [each for each in map(merged, seeds.values()) if each.is_done]
    published = {entry.label: dict(entry.values) for entry in problem.published}
    rows = [_row(each, seeds.get(experiment.baseline, [])) for each in seeds.values()]
    for row in rows:
        row["published"] = published.get(row["label"], {})
    about = done[0].result["problem"] if done else {"task": "unknown", "notes": []}
    weights = [o.result["num_weights"] for o in done]  # of some methods, twice the network's
    return {
        "name": problem.name,
        "description": problem.description,
        **about,
        "model": to_json(problem.model_at(size)),
        "num_weights": about.get("num_weights", min(weights, default=None)),
        "rows": rows,
        "published_only": {
            label: values
            for label, values in published.items()
            if label not in {row["label"] for row in rows}
        },
        "reasons": list(problem.reasons),
        "best": {score: best(done, score) for score in ("error", "nll")} if done else {},
    }


def _row(outcomes: Sequence[Outcome], baseline: Sequence[Outcome]) -> Row:
    """The row of a method.

    Args:
        outcomes, baseline: of the method's seeds, and of those of what it is compared with.
    """
    outcome = merged(outcomes)
    cell, result = outcome.cell, outcome.result
    row: Row = {
        "problem": cell.problem,
        "label": cell.label,
        "method": cell.method,
        "status": result["status"],
        "error": result.get("error"),
        "converged": None,
        "num_seeds": sum(each.is_done for each in outcomes),
        "num_failed": sum(not each.is_done for each in outcomes),
        "num_converged": num_converged(outcomes),
        "commits": sorted(
            {each.result.get("commit", UNKNOWN_COMMIT) for each in outcomes if each.is_done}
        ),
    }
    if not outcome.is_done:
        return row
    judged, cost = Convergence(**result["convergence"]), Cost.from_dict(result["cost"])
    faster = speed_ups(outcomes, baseline)
    return row | {
        **result["scores"],
        "standard_errors": result.get("standard_errors", {}),
        "scores_by_seed": result.get("scores_by_seed", {}),
        "converged": judged.converged,
        "reason": judged.reason,
        "max_rhat_function": judged.max_rhat_function,
        "ess_function": result["ess_function"],
        "ess_weights": result["ess_weights"],
        "draws_per_effective_draw": result.get("draws_per_effective_draw"),
        "weights_judged": result["weights_judged"],
        "num_weights": result["num_weights"],
        "seconds": dict(cost.seconds),
        "total_seconds": cost.total_seconds,
        "ess_per_second": smallest_ess_per_second(outcomes, "ess_function"),
        "ess_weights_per_second": smallest_ess_per_second(outcomes, "ess_weights"),
        "speed_up": faster and faster.factor,
        "speed_up_error": faster and faster.error,
        "speed_up_text": speed_up_text(outcomes, baseline),
        "likelihood_evaluations": cost.likelihood_evaluations,
        "gradient_evaluations": cost.gradient_evaluations,
        "flops": cost.flops,
        "peak_memory_mib": result["peak_memory_mib"],
        "memory_before_mib": result["memory_before_mib"],
        **{k: result[k] for k in ("num_chains", "num_draws", "stopped", "divergences", "settings")},
    }


def speed_up_text(outcomes: Sequence[Outcome], baseline: Sequence[Outcome]) -> str:
    """The speed-up, and of how many seeds if not of all; or why there is none."""
    verdicts = [each.result["convergence"]["converged"] for each in outcomes if each.is_done]
    if all(verdict is None for verdict in verdicts):
        return "n/a: not a chain"
    if not num_converged(outcomes):
        return format_speed_up(None)
    if not any(each.is_done for each in baseline):
        return "n/a: no baseline"
    faster = speed_ups(outcomes, baseline)
    if faster is None:
        found = {each.result["convergence"]["converged"] for each in baseline if each.is_done}
        if found == {None}:
            return "n/a: baseline not a chain"
        return f"n/a: {'no seed of both' if True in found else 'baseline not'} converged"
    spread = "" if faster.error is None else f" ± {faster.error:.2g}"
    is_of_all = faster.num_seeds == len(outcomes)
    some = "" if is_of_all else f" ({faster.num_seeds} of {len(outcomes)} seeds)"
    return f"{format_speed_up(faster.factor)}{spread}{some}"


def best(done: Sequence[Outcome], score: str) -> dict[str, Any]:
    """Who has the smallest mean of a row-by-row score, and who cannot be told from it.

    The difference of two methods is a mean over the same test rows: they are a draw where it is
    below NUM_ERRORS of its standard errors. Rows are taken as independent; those of several seeds
    may be the same ones again, and count as those of one. Of rows in groups, groups are taken as
    independent. Where seeds differ by more than rows explain, the error is that over seeds. A
    method that failed in a seed has not the rows of the others, and is left out.
    """
    done = [outcome for outcome in done if not outcome.result.get("num_failed")]
    num_seeds = max((o.result.get("num_seeds", 1) for o in done), default=1)
    rows = {o.cell.label: np.asarray(o.result["rows"][score], float) for o in done}
    rows = {label: values for label, values in rows.items() if np.isfinite(values).all()}
    if not rows:
        return {"label": None, "draws": []}
    winner = min(rows, key=lambda label: rows[label].mean())
    away = {label: rows[label] - rows[winner] for label in rows if label != winner}
    groups = done[0].result["rows"].get("group")
    draws = [label for label, each in away.items() if _is_draw(each, num_seeds, groups)]
    return {"label": winner, "draws": draws}


def _is_draw(difference: np.ndarray, num_seeds: int, groups: Sequence[int] | None = None) -> bool:
    if len(difference) < 2:
        return True
    error = difference.std(ddof=1) / math.sqrt(len(difference) / num_seeds)
    if groups is not None:
        error = error_of_groups(difference, np.asarray(groups))
    if num_seeds > 1:
        by_seed = [each.mean() for each in np.array_split(difference, num_seeds)]
        error = max(error, np.std(by_seed, ddof=1) / math.sqrt(num_seeds))
    return bool(difference.mean() <= NUM_ERRORS * error)


def error_of_groups(values: np.ndarray, groups: np.ndarray) -> float:
    """Standard error of the mean of values whose groups are independent, and not their rows.

    Groups come again in other seeds; all of their rows count as one. One group has no error.
    """
    _, places = np.unique(groups, return_inverse=True)
    sums = np.bincount(places, values - values.mean())
    num_groups = len(sums)
    if num_groups < 2:
        return math.inf
    return math.sqrt(num_groups / (num_groups - 1) * np.sum(sums**2)) / len(values)
