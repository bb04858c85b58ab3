"""Several runs of one cell, which differ in their seed only, as one outcome with errors."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from credence.compare.specs import Outcome
from credence.ensembles.diagnostics.convergence import Convergence
from credence.ensembles.diagnostics.cost import Cost, ess_per_second, speed_up
from credence.storage import jsonable


def merged(outcomes: Sequence[Outcome]) -> Outcome:
    """Means over the seeds, each score with its standard error; one outcome stays as it is.

    Scores of every seed stay too, so that two methods can be compared seed by seed.

    Convergence, effective sample sizes and settings are those of the worst run, memory that of the
    largest; num_converged says how many runs converged. The rows are those of all seeds, one after
    the other: each has its own split. Seeds that failed are counted, num_failed, with the sentence
    of the first; where all failed, that failure is the outcome.
    """
    done = [outcome for outcome in outcomes if outcome.is_done]
    failed = [outcome for outcome in outcomes if not outcome.is_done]
    if not done or len(outcomes) == 1:
        return outcomes[0]
    results = [outcome.result for outcome in done]
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
        "num_seeds": len(done),
        "num_failed": len(failed),
        "num_converged": num_converged(done),
        "error": failed[0].result["error"] if failed else None,
        "cost": mean_cost([Cost.from_dict(r["cost"]) for r in results]).to_dict(),
        "peak_memory_mib": max(memory, default=None),
        "rows": {
            name: [value for result in results for value in result["rows"][name]]
            for name in results[0]["rows"]
        },
    }
    return Outcome(done[0].cell, worst | together)


def num_converged(outcomes: Sequence[Outcome]) -> int:
    """The number of runs whose chains agree."""
    done = [outcome for outcome in outcomes if outcome.is_done]
    return sum(outcome.result["convergence"]["converged"] is True for outcome in done)


class Ratio(NamedTuple):
    """How many times as fast one method is as another."""

    factor: float
    """Geometric mean of the ratios of single seeds."""
    error: float | None
    """Standard error of the factor; one seed has none."""
    num_seeds: int
    """Seeds in which both converged."""


def speed_ups(outcomes: Sequence[Outcome], baseline: Sequence[Outcome]) -> Ratio | None:
    """The speed-up over a baseline, seed by seed; None where no seed has both converged."""
    by_seed = {outcome.cell.seed: outcome for outcome in baseline if outcome.is_done}
    pairs = [(o, by_seed[o.cell.seed]) for o in outcomes if o.is_done and o.cell.seed in by_seed]
    ratios = [_speed_up(outcome, other) for outcome, other in pairs]
    known = [ratio for ratio in ratios if ratio]
    return Ratio(*geometric_mean(known), len(known)) if known else None


def _speed_up(outcome: Outcome, baseline: Outcome) -> float | None:
    """The speed-up of one run over another."""
    (judged, cost), (reference, reference_cost) = (
        (Convergence(**o.result["convergence"]), Cost.from_dict(o.result["cost"]))
        for o in (outcome, baseline)
    )
    return speed_up(judged, cost, reference, reference_cost)


def smallest_ess_per_second(outcomes: Sequence[Outcome], name: str) -> float | None:
    """The smallest ESS of a kind per second of all phases, geometric mean over the seeds."""
    results = [outcome.result for outcome in outcomes if outcome.is_done]
    known = [ess_per_second(r[name][0], Cost.from_dict(r["cost"])) for r in results if r.get(name)]
    return geometric_mean(known)[0] if known else None


def geometric_mean(values: Sequence[float]) -> tuple[float, float | None]:
    """Geometric mean and its standard error, by the delta method; one value has no error."""
    logs = np.log(values)
    mean = float(np.exp(logs.mean()))
    return mean, float(mean * logs.std(ddof=1) / len(logs) ** 0.5) if len(logs) > 1 else None


def of_seeds(row: dict[str, Any]) -> list[str]:
    """Say of a row of a table in how many seeds its runs failed, or converged; often nothing."""
    done, failed = row.get("num_seeds", 1), row.get("num_failed", 0)
    label, found = row["label"], []
    if row["status"] != "done":
        found.append(f"{label} failed: {row['error']}")
    elif failed:
        found.append(f"{label} failed in {failed} of {done + failed} seeds: {row['error']}")
    if 0 < row.get("num_converged", 0) < done:
        found.append(f"{label} converged in {row['num_converged']} of {done} seeds.")
    return found


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
