"""What a run cost: work in evaluations and nominal FLOPs, and where the time went."""

from collections import defaultdict
from collections.abc import Collection

import numpy as np

from credence.density.data import feature_shape
from credence.density.posterior import Posterior
from credence.engine.phases import PhaseResult
from credence.ensembles.diagnostics.cost import Cost


def measured_cost(
    results: Collection[PhaseResult],
    posterior: Posterior,
    seconds: float,
    compile_seconds: float,
) -> Cost:
    """All work the kernels' steps did, in evaluations of single data points, and where time went.

    What adapters take between blocks (a first step size, trials of one) is in the seconds only.

    Nominal FLOPs: 2 per weight and point forward, 6 for a value with its gradient; as often as a
    weight is used, where the network says that it is used more than once. Seconds are summed by the
    cost class that a phase's plan declares; all of them add up to the wall time, and what belongs
    to no phase is "other". A resumed run counts what its phases took before as well.

    Args:
        results: of all phases.
        seconds, compile_seconds: of the whole run, by the clock.
    """
    spent = defaultdict(float)
    for result in results:
        spent[result.cost_class] += result.seconds
    spent["compile"] += max(sum(result.compile_seconds for result in results), compile_seconds)
    spent["other"] += max(seconds - sum(spent.values()), 0.0)
    gradients = sum(_evaluated(result, "num_gradients") for result in results)
    values = sum(_evaluated(result, "num_evaluations") for result in results)
    return Cost(
        likelihood_evaluations=values + gradients,
        gradient_evaluations=gradients,
        flops=uses_per_weight(posterior) * total_flops(results),
        seconds=dict(spent),
    )


def uses_per_weight(posterior: Posterior) -> float:
    """How often a network multiplies by a weight for one point; 1 unless it says otherwise."""
    network, data = posterior.model.network, posterior.data
    if not hasattr(network, "uses_per_weight"):
        return 1.0
    template = posterior.model.template(data)
    return network.uses_per_weight(template.network, feature_shape(posterior.data))  # type: ignore[attr-defined]


def total_flops(results: Collection[PhaseResult]) -> float:
    """Nominal FLOPs of phases, each weight used once per evaluation."""
    return float(sum(map(_flops, results)))


def _flops(result: PhaseResult) -> float:
    """Two per weight and data point for a value, four more for its gradient; and what the surrogate
    took."""
    values, gradients = (_evaluated(result, name) for name in ("num_evaluations", "num_gradients"))
    surrogates = result.info.get("num_surrogate_evaluations", np.zeros(())).sum(dtype=float)
    exact = result.num_weights * (2.0 * values + 6.0 * gradients)
    return exact + result.surrogate_flops * float(surrogates)


def _evaluated(result: PhaseResult, count: str) -> int:
    """Data points at which a phase's steps evaluated the likelihood, by a count of their Info."""
    return int(result.info[count].sum()) * result.num_rows if count in result.info else 0
