"""Warnings where jumps mislead: few partners have all the weight, or partners have not met."""

import warnings
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from credence.engine.phases import PhaseResult
from credence.ensembles.diagnostics.convergence import rhat
from credence.ensembles.diagnostics.importance import pareto_smoothed
from credence.storage import jsonable

LEAST_ESS = 2.0
"""Effective auxiliary particles below which one has nearly all the weight."""
LEAST_SHARE = 0.05
"""The same as a share of all."""
LARGEST_K = 0.5
"""Tail index of the potentials above which they have no variance; it is 1 - s^2 where target and
auxiliary are Gaussians with standard deviations 1 and s < 1."""
FEWEST_FOR_K = 100
"""Auxiliary particles needed to tell a tail."""
LARGEST_RHAT = 1.1
"""R-hat of the potential between partners above which they have not met."""
FEWEST_FOR_RHAT = 100
"""Draws per partner below which R-hat is mostly noise."""


class StuckPartnersWarning(UserWarning):
    """Partners live in different places: particles that jump to them mix, and yet find every place
    as often as partners were started there."""


class DegenerateAuxiliaryWarning(UserWarning):
    """Jumps lead to very few auxiliary particles: Boltzmann-Gibbs copies one of them, accept-reject
    refuses nearly all."""


class ColdPartnersWarning(UserWarning):
    """Partners are colder than the posterior, as published: they are narrower than it."""


class Advice(NamedTuple):
    """What to do."""

    degenerate: str
    stuck: str


CHOOSE = Advice(
    "Use one nearer to the posterior with heavier tails: 'tempered' with a temperature nearer to "
    "1, or a larger widening.",
    "Draw more, or use an auxiliary density that is drawn from afresh: 'prior', 'laplace' or "
    "'ensemble'.",
)
ENDURE = Advice("Use a temperature nearer to 1.", "Draw more, or compare runs with other keys.")
"""The advice where there is no other auxiliary density to choose."""


def warn_where_cold(temperature: float) -> None:
    """Say so where partners are narrower than the posterior."""
    if temperature < 1:
        warnings.warn(
            f"temperature={temperature:g} is the published variant: partners are colder than the "
            "posterior and narrower than it, so that the potential G, the posterior to the power "
            f"{1 - 1 / temperature:.3g}, grows without bound where the posterior is small. Jumps "
            "then prefer the partners with the lowest posterior, and few partners have all the "
            "weight. Use a temperature a little above 1, or leave it out, for draws of the "
            "posterior.",
            ColdPartnersWarning,
            stacklevel=2,
        )


def warn_of_partners(
    sample: PhaseResult,
    *,
    auxiliary: str,
    compares: bool,
    advice: Advice = ENDURE,
    is_fresh: bool = False,
    synchronous: bool = False,
) -> dict[str, Any]:
    """Warn of either, where it is due, and return what partners were worth, ready for JSON.

    Args:
        sample: phase of the kernel `interacting`.
        auxiliary: name of the auxiliary density.
        compares: accept-reject jumps, which may be refused.
        advice: what the method's user can do.
        is_fresh: partners are drawn afresh, so that they have always met.
        synchronous: particles jump in the same steps, between which potentials are not renewed.
    Returns:
        As `Partners` reads it, by its name.
    """
    warn_where_degenerate(sample, auxiliary=auxiliary, compares=compares, advice=advice)
    between = None
    if not is_fresh:
        log_potential = np.asarray(sample.info["log_potential"])
        if synchronous:
            is_new = np.any(log_potential[:, 1:] != log_potential[:, :-1], axis=0)
            log_potential = log_potential[:, 1:][:, is_new]
        between = warn_where_stuck(log_potential, auxiliary=auxiliary, advice=advice)
    found = {
        "auxiliary": auxiliary,
        "num_particles": len(np.asarray(sample.states.past.log_potential)),
        "potential_ess": float(np.mean(sample.info["potential_ess"])),
        "rhat": between,
    }
    return {"partners": jsonable(found, spell_infinite=True)}


def warn_where_degenerate(
    sample: PhaseResult, *, auxiliary: str, compares: bool, advice: Advice = CHOOSE
) -> None:
    """Say so where few auxiliary particles have nearly all the weight."""
    num = np.size(sample.states.past.log_potential)
    ess = float(np.mean(sample.info["potential_ess"]))
    tried, accepted = (
        float(np.mean(sample.info[name])) for name in ("is_jump", "is_accepted_jump")
    )
    log_potential = np.asarray(sample.states.past.log_potential, float).ravel()
    log_potential = log_potential[np.isfinite(log_potential)]
    has_tail = len(log_potential) >= FEWEST_FOR_K
    tail = pareto_smoothed(log_potential).pareto_k if has_tail else 0.0
    if ess >= max(LEAST_ESS if num > 2 else 1.05, LEAST_SHARE * num) and tail <= LARGEST_K:
        return
    heavy = f", Pareto k {tail:.2f} (above .5 they have no variance)" if has_tail else ""
    is_told = compares and tried > 0
    refused = f"; {accepted / tried:.1%} of jumps were accepted" if is_told else ""
    warnings.warn(
        f"The potentials of the auxiliary density '{auxiliary}' are worth {ess:.1f} of "
        f"{num} particles{heavy}{refused}. {advice.degenerate}",
        DegenerateAuxiliaryWarning,
        stacklevel=2,
    )


def warn_where_stuck(
    log_potential: Float[np.ndarray, "particle draw"], *, auxiliary: str, advice: Advice = CHOOSE
) -> float | None:
    """Say so where the potentials of partners that move by themselves disagree.

    R-hat of the particles cannot show it: they jump to all partners alike. Modes of one height
    stay unseen here too.

    Returns:
        R-hat of the potentials; None for too few draws.
    """
    if log_potential.shape[1] < FEWEST_FOR_RHAT:
        return None
    finite = log_potential[:, np.isfinite(log_potential).all(axis=0)]
    between = float(rhat(finite)) if finite.shape[1] >= FEWEST_FOR_RHAT else np.inf
    if between < LARGEST_RHAT:
        return between
    warnings.warn(
        f"The partners on the auxiliary density '{auxiliary}' have not met: R-hat of their "
        f"potentials is {between:.2f}. Each part of the posterior then counts as often as partners "
        f"happened to start there, whatever R-hat the particles have. {advice.stuck}",
        StuckPartnersWarning,
        stacklevel=2,
    )
    return between
