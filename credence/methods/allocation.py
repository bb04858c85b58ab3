"""How many particles each level of a multilevel estimator gets.

Giles, "Multilevel Monte Carlo path simulation" (2008), eq. (12): the cheapest way to a variance.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from credence.ensemble import Ensemble, Inputs
from credence.errors import InputError

LEAST_PARTICLES = 50
"""At a level: fewer know too little of their own weights."""


def usual(num_particles: int, sizes: Sequence[int]) -> tuple[int, ...]:
    """Particles of every level without a pilot: they fall as sizes^-1.5, to 50 at least.

    That is between width^-2 (one hidden layer: beta = 3, gamma = 1 in Theorem 2.1 of Chada et al.)
    and width^-2.5 (more layers: gamma = 2), as which sqrt(V_l / C_l) falls.
    """
    least = min(num_particles, LEAST_PARTICLES)
    return tuple(max(least, round(num_particles * (sizes[0] / size) ** 1.5)) for size in sizes)


def for_variance(
    variance: float, variances: Float[np.ndarray, " level"], costs: Float[np.ndarray, " level"]
) -> tuple[int, ...]:
    """Particles that reach a variance at least cost, 50 at least.

        P_l = sqrt(V_l / C_l) sum_j sqrt(V_j C_j) / variance

    Args:
        variance: of the estimator, in squared units of the predictions.
        variances: V_l, of one particle's share in the level's increment; see `increment_variances`.
        costs: C_l, of one particle at the level.
    """
    if not variance > 0:
        raise InputError(f"The variance to reach must be > 0, got {variance}.")
    wanted = np.sqrt(variances / costs) * np.sum(np.sqrt(variances * costs)) / variance
    return tuple(max(LEAST_PARTICLES, int(np.ceil(count))) for count in wanted)


def increment_variances(pilot: Ensemble, x: Inputs) -> Float[np.ndarray, " level"]:
    """V_l = P_l Var(Y_l) of every increment, from the runs of a pilot; the mean over predictions.

    Args:
        pilot: of `mlsmc`, with several runs.
        x: inputs at which predictions matter.
    Raises:
        InputError: for an ensemble that is not multilevel, or of one run.
    """
    if "increment" not in pilot.scalars or pilot.weights is None or pilot.num_chains < 2:
        raise InputError("A pilot is an ensemble of mlsmc with num_runs >= 2.")
    functions = pilot.functions(x)
    increment, level = (pilot.scalars[name][0] for name in ("increment", "level"))
    weights = pilot.weights * pilot.num_chains

    def variance(number: int) -> float:
        mine = increment == number
        num_particles = np.sum(mine & (level == number - 1)) if number else np.sum(mine)
        term = np.einsum("rm,rmpt->rpt", weights[:, mine], functions[:, mine])
        return float(num_particles * np.mean(np.var(term, axis=0, ddof=1)))

    return np.array([variance(number) for number in range(int(increment.max()) + 1)])
