"""Several runs of one cell, which differ in their seed only, as one outcome with errors."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from credence.compare.specs import Outcome
from credence.ensembles.diagnostics.cost import Cost
from credence.storage import jsonable


def merged(outcomes: Sequence[Outcome]) -> Outcome:
    """Means over the seeds, each score with its standard error; one outcome stays as it is.

    Scores of every seed stay too, so that two methods can be compared seed by seed.

    Convergence, effective sample sizes and settings are those of the worst run, memory that of the
    largest. The rows are those of all seeds, one after the other: each has its own split. Where a
    seed failed, the failure is the outcome.
    """
    failed = next((outcome for outcome in outcomes if not outcome.is_done), None)
    if failed or len(outcomes) == 1:
        return failed or outcomes[0]
    results = [outcome.result for outcome in outcomes]
    worst = max(results, key=_badness)
    scores = {name: [r["scores"].get(name) for r in results] for name in results[0]["scores"]}
    means, errors = {}, {}
    for name, values in scores.items():
        means[name], errors[name] = mean_and_error(values)
    memory = [r["peak_memory_mib"] for r in results if r["peak_memory_mib"] is not None]
    together = {
        "scores": means,
        "standard_errors": errors,
        "scores_by_seed": scores,
        "num_seeds": len(outcomes),
        "cost": mean_cost([Cost.from_dict(r["cost"]) for r in results]).to_dict(),
        "peak_memory_mib": max(memory, default=None),
        "rows": {
            name: [value for result in results for value in result["rows"][name]]
            for name in results[0]["rows"]
        },
    }
    return Outcome(outcomes[0].cell, worst | together)


def mean_and_error(values: Sequence[Any]) -> tuple[Any, float | None]:
    """Mean and its standard error; None where a value is missing, "inf" where one is infinite.

    One value has no error.
    """
    known = [float(value) for value in values if value is not None]
    if len(known) < len(values):
        return None, None
    if not np.isfinite(known).all():
        return jsonable(float(np.mean(known)), spell_infinite=True), None
    error = float(np.std(known, ddof=1) / len(known) ** 0.5) if len(known) > 1 else None
    return float(np.mean(known)), error


def mean_cost(costs: Sequence[Cost]) -> Cost:
    """Average what several runs cost."""
    phases = dict.fromkeys(phase for cost in costs for phase in cost.seconds)
    return Cost(
        likelihood_evaluations=round(np.mean([c.likelihood_evaluations for c in costs])),
        gradient_evaluations=round(np.mean([c.gradient_evaluations for c in costs])),
        flops=float(np.mean([c.flops for c in costs])),
        seconds={p: float(np.mean([c.seconds.get(p, 0.0) for c in costs])) for p in phases},
    )


def _badness(result: dict[str, Any]) -> tuple[bool, float]:
    """Larger for a run that is less to be believed."""
    judged = result["convergence"]
    rhat, is_bad = judged["max_rhat_function"], judged["converged"] is False
    unknown = np.inf if is_bad else 0.0
    return is_bad, unknown if rhat is None else rhat
