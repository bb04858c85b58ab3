"""What the programs of an error-cost study say together: points, slopes, ratios; to JSON."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from credence.environment import UNKNOWN_MACHINE
from credence_papers.multilevel.error_cost.cost_envelope import (
    NOTHING,
    Fitted,
    Point,
    bound_width,
    cost_ratio,
    envelope,
    lowest_common,
    mean_squares,
    resolved,
    slope,
    theory,
)
from credence_papers.multilevel.error_cost.settings_tried import Job
from credence_papers.multilevel.error_cost.width_problems import SOURCES, WidthProblem

MEASURES = {
    "flops": "floating-point operations counted: all temperatures, mutation steps and tuning, but "
    "neither pilots nor the choice of widths",
    "seconds": "seconds of one replicate, without compilation, on the machine of most runs",
    "nominal": "the paper's nominal cost: sum of particles x width^2",
}
METHODS = ("smc", "mlsmc")

Outcome = tuple[Job, dict[str, Any]]


def problem_row(outcomes: Sequence[Outcome], published: str) -> dict[str, Any]:
    """What the programs of a problem come to.

    Args:
        outcomes: that of the reference comes first.
        published: what the paper reports.
    """
    problem, width = outcomes[0][0].problem, outcomes[0][0].width
    failed = [
        {"label": job.label, "error": result["error"]}
        for job, result in outcomes
        if result["status"] != "done"
    ]
    done = [(job, result) for job, result in outcomes if result["status"] == "done"]
    long = {job.width: result for job, result in done if job.kind == "reference"}
    about = {
        "name": problem.name,
        "description": problem.description,
        "model": _model(problem),
        "quantity": SOURCES[problem.source].quantity,
        "published": published,
        "theory": theory(problem.alpha, problem.depth),
        "failed": failed,
        "warnings": [
            f"{job.label}: {text}" for job, result in done for text in result.get("warnings", ())
        ],
    }
    if width not in long:
        missing = {"converged": False, "width": width}
        return {**about, "reference": missing, "biases": [], "points": [], "fits": {}}
    exact, noise, reference = _reference(long[width], width)
    points = [
        measured(job, result, exact, noise) for job, result in done if job.kind == "replicates"
    ]
    pilots = [_pilot(job, result) for job, result in done if job.kind == "pilot"]
    choices = [result for job, result in done if job.kind == "ladder"]
    return {
        **about,
        "reference": reference,
        "biases": _biases(long, width),
        "shares": {tried: share for each in choices for tried, share in each["shares"].items()},
        "pilots": pilots,
        "points": points,
        "preparation": preparation(points, pilots, sum(each["flops"] for each in choices), noise),
        "fits": {measure: fits(points, measure, noise, problem.alpha) for measure in MEASURES},
    }


def _reference(result: dict[str, Any], width: int) -> tuple[np.ndarray, float, dict[str, Any]]:
    """Posterior means, their mean squared standard error, and what is to be said of both."""
    exact, squared = long_means(result)
    noise = float(np.mean(squared))
    return (
        exact,
        noise,
        {
            "width": width,
            "noise": noise,
            **{k: result[k] for k in ("max_rhat", "min_ess", "converged", "num_draws", "seconds")},
            "method": result["method"],
            "num_chains": len(result["chain_means"]),
            "posterior_variance": result["spread"],
        },
    )


def long_means(result: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Posterior means of a long run, and their squared standard errors from its chains."""
    chains = np.array(result["chain_means"], float)
    return chains.mean(axis=0), chains.var(axis=0, ddof=1) / len(chains)


def _biases(long: dict[int, dict[str, Any]], finest: int) -> list[dict[str, Any]]:
    """How far the posterior means of narrower networks are from the finest one's."""
    exact, exact_noise = long_means(long[finest])
    rows = []
    for width, result in sorted(long.items()):
        if width == finest:
            continue
        means, noise = long_means(result)
        both = float(np.mean(noise + exact_noise))
        rows.append(
            {
                "width": width,
                "bias_squared": float(np.mean((means - exact) ** 2)) - both,
                "noise": both,
                "max_rhat": result["max_rhat"],
            }
        )
    return rows


def measured(job: Job, result: dict[str, Any], exact: np.ndarray, noise: float) -> dict[str, Any]:
    """What became of one contender: its errors and costs."""
    contender, means = job.contender, np.array(result["means"], float)
    assert contender is not None
    squares = np.mean((means - exact) ** 2, axis=1)
    return {
        "method": contender.method,
        "family": contender.family,
        "widths": list(contender.widths),
        "particles": list(contender.num_particles),
        "replicates": len(means),
        **{name: result[name] for name in ("flops", "seconds", "compile_seconds")},
        "machine": result.get("machine", UNKNOWN_MACHINE),
        "nominal": contender.nominal_cost,
        "mse": float(squares.mean()) - noise,
        "mse_error": float(squares.std(ddof=1)) / len(squares) ** 0.5,
        "variance": float(np.mean(means.var(axis=0, ddof=1))),
        "squares": squares.tolist(),
        "log_evidence": list(result["log_evidence"]),
        "tempered": _num_tempered(result),
    }


def _num_tempered(result: dict[str, Any]) -> int | None:
    """Replicates that did not reach every level above the first by weights alone.

    None where that was not kept.
    """
    if "num_temperatures" not in result:
        return None
    return sum(any(count > 1 for count in above) for _, *above in result["num_temperatures"])


def comparable(rows: Sequence[dict[str, Any]], measure: str) -> list[dict[str, Any]]:
    """The rows whose costs compare: seconds only on one machine, that of most rows.

    Rows that do not tell their machine are taken to be of one.
    """
    told = [row.get("machine") for row in rows]
    if measure != "seconds" or len(set(told)) < 2:
        return list(rows)
    counts = Counter(each for each in told if each != UNKNOWN_MACHINE)
    ((most, _),) = counts.most_common(1)
    return [row for row, machine in zip(rows, told, strict=True) if machine == most]


def points_of(rows: Sequence[dict[str, Any]], method: str, measure: str) -> list[Point]:
    """The points of one method, by one measure of cost."""
    mine = (row for row in rows if row["method"] == method)
    return [Point(row["family"], row[measure], np.array(row["squares"])) for row in mine]


def fits(rows: list[dict[str, Any]], measure: str, noise: float, alpha: float) -> dict[str, Any]:
    """Slopes, envelopes and ratios of costs, by one measure of cost."""
    rows = comparable(rows, measure)
    both = {method: points_of(rows, method, measure) for method in METHODS}
    smc, mlsmc = (both[method] for method in METHODS)
    at_widest = points_of(_of_widest(rows), "smc", measure)
    return {
        "slopes": {
            method: (slope(points, noise) if points else NOTHING)._asdict()
            for method, points in both.items()
        },
        "slopes_by_family": {
            family: slope([p for p in mlsmc if p.family == family], noise)._asdict()
            for family in dict.fromkeys(point.family for point in mlsmc)
        },
        "envelopes": {method: _envelope(points, noise) for method, points in both.items()},
        "lowest_common": lowest_common(smc, mlsmc, noise) if smc and mlsmc else None,
        "ratio": (cost_ratio(smc, mlsmc, noise) if smc and mlsmc else NOTHING)._asdict(),
        "ratio_widest": (
            cost_ratio(at_widest, mlsmc, noise) if at_widest and mlsmc else NOTHING
        )._asdict(),
        "ratio_narrower": ratio_of_narrower(rows, measure, noise)._asdict(),
        "ratio_bound": as_bound_says(rows, measure, noise, alpha),
    }


def _of_widest(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One level at its widest network."""
    singles = [row for row in rows if row["method"] == "smc"]
    widest = max((row["widths"] for row in singles), default=[])
    return [row for row in singles if row["widths"] == widest]


def preparation(
    rows: Sequence[dict[str, Any]],
    pilots: Sequence[dict[str, Any]],
    ladder_flops: float,
    noise: float,
) -> dict[str, Any]:
    """Work of several levels before their first replicate, and their ratios with that charged.

    To every replicate the choice of the ladder is charged, and all runs of its family's pilot.

    Args:
        ladder_flops: work of the choice of the ladder.
    """
    work = {pilot["family"]: pilot["all_flops"] for pilot in pilots}
    charged = [
        {**row, "flops": row["flops"] + ladder_flops + work.get(row["family"], 0.0)}
        for row in rows
        if row["method"] == "mlsmc"
    ]
    mlsmc = points_of(charged, "mlsmc", "flops")
    ratios = {
        name: cost_ratio(points_of(singles, "smc", "flops"), mlsmc, noise)._asdict()
        for name, singles in (("ratio", rows), ("ratio_widest", _of_widest(rows)))
    }
    return {"ladder_flops": ladder_flops, "pilot_flops": work, **ratios}


def ratio_of_narrower(rows: list[dict[str, Any]], measure: str, noise: float) -> Fitted:
    """The ratio against one level at its best width below the widest.

    The lowest error of all widths is that of one setting by a hair, and its cost may be many times
    that of a narrower network whose error is nearly as low.
    """
    mlsmc = points_of(rows, "mlsmc", measure)
    singles = [row for row in rows if row["method"] == "smc"]
    widest = max((row["widths"][-1] for row in singles), default=0)
    narrower = points_of([r for r in singles if r["widths"][-1] < widest], "smc", measure)
    return cost_ratio(narrower, mlsmc, noise) if narrower and mlsmc else NOTHING


def as_bound_says(
    rows: list[dict[str, Any]], measure: str, noise: float, alpha: float
) -> dict[str, Any]:
    """The ratio against one level at the narrowest width that the paper's bound allows.

    The error is the lowest that both reach; a bound beyond all widths takes the widest.
    """
    mlsmc = points_of(rows, "mlsmc", measure)
    singles = [row for row in rows if row["method"] == "smc"]
    widths = sorted({row["widths"][-1] for row in singles})
    found, chosen = NOTHING, None
    for width in widths if mlsmc else ():
        at_width = [row for row in singles if row["widths"][-1] == width]
        points = points_of(at_width, "smc", measure)
        error = lowest_common(points, mlsmc, noise)
        if width == widths[-1] or width >= bound_width(error, alpha):
            found, chosen = cost_ratio(points, mlsmc, noise), width
            break
    return {**found._asdict(), "width": chosen}


def _envelope(points: list[Point], noise: float) -> dict[str, list[float]]:
    points = resolved(points, noise)
    if not points:
        return {"errors": [], "costs": []}
    found = envelope(points, mean_squares(points, noise))
    return {"errors": found.errors.tolist(), "costs": found.costs.tolist()}


def _pilot(job: Job, result: dict[str, Any]) -> dict[str, Any]:
    """Variances and costs per level, and what the best allocation of particles makes of them."""
    assert job.contender is not None
    variances, costs = (np.array(result[name], float) for name in ("variances", "costs"))
    return {
        "family": job.contender.family,
        "widths": list(job.contender.widths),
        "variances": variances.tolist(),
        "costs": costs.tolist(),
        "nats": result["nats"],
        "product": float(np.sum(np.sqrt(variances * costs)) ** 2),
        "flops": result["flops"],
        "all_flops": result["flops"] * job.replicates,
    }


def _model(problem: WidthProblem) -> str:
    decay = ", the first layer decaying over inputs" if problem.decay_inputs else ""
    layers = "one hidden layer" if problem.depth == 1 else f"{problem.depth} hidden layers"
    return (
        f"alpha = {problem.alpha:g}{decay}, {layers} of {problem.activation}, "
        f"{problem.num_points} data points"
    )
