"""Convergence of Markov chains, judged where it matters: on the network's functions.

Every number about chains is computed by ArviZ (its package arviz-stats), none by hand; about the
effective number of particles, which are no chain, ArviZ says nothing: see `family_ess`.
The definitions are those of Vehtari, Gelman, Simpson, Carpenter & Bürkner (2021), "Rank-
normalization, folding, and localization: an improved R-hat", Bayesian Analysis 16(2).
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from credence.ensembles.diagnostics._checks import finite
from credence.spacing import evenly_spaced

RHAT_LIMIT = 1.05
"""R-hat from which on chains have not converged."""
ESS_LIMIT = 100.0
"""Effective sample size that predictive means and standard deviations need."""
MIN_DRAWS = 4  # R-hat and ESS split every chain in two halves, and a variance needs two draws
MOST_FUNCTIONS = 200  # are judged, which takes about a second
Families = Float[np.ndarray, "chain draw"] | None
MOST_RHAT = 1e6  # what is larger is infinite, but for rounding


@dataclass(frozen=True)
class Convergence:
    """Verdict on a set of chains, from functions[chain, draw, point, output] at held-out inputs.

    A number is None where it cannot be computed; R-hat is infinite where chains that do not move
    disagree. `converged` is None for what is not a Markov chain (MAP, deep ensembles).
    `reason` is for people.
    """

    max_rhat_function: float | None
    min_ess_function: float | None
    median_ess_function: float | None
    min_ess_tail_function: float | None
    num_chains: int
    num_draws: int
    converged: bool | None
    reason: str
    unseen_rows: int = 0
    """Rows that chains left out, and that say whether to rely on what are no chains of one
    posterior, such as a stack of models; 0 where there are none."""


def rhat(draws: Float[np.ndarray, "chain draw *shape"]) -> Float[np.ndarray, "*shape"]:
    """Rank-normalised split R-hat: the larger of the plain and the folded one; 1 is perfect.

    NaN where a quantity never changes, infinite where chains stand still in different places.
    Raises ValueError for one chain, fewer than 4 draws, or values that are not finite. About 2 ms
    per quantity for 4 chains of 1000 draws.
    """
    if np.shape(draws)[:1] == (1,):
        raise ValueError("R-hat compares chains and got 1 chain: run at least 2, better 4.")
    found = _by_arviz("rhat", draws, method="rank")
    return np.where(found > MOST_RHAT, np.inf, found)


def ess_bulk(
    draws: Float[np.ndarray, "chain draw *shape"], families: Families = None
) -> Float[np.ndarray, "*shape"]:
    """Bulk effective sample size: independent draws worth as much for the centre, all chains.

    Args:
        families: of particles; see `family_ess`.
    NaN where a quantity never changes. Raises ValueError for fewer than 4 draws or values that
    are not finite. 1 to 4 ms per quantity for 4 chains of 1000 draws, more the slower they mix.
    """
    if families is None:
        return _by_arviz("ess", draws, method="bulk")
    from scipy.special import ndtri
    from scipy.stats import rankdata

    ranks = rankdata(draws.reshape(-1, *draws.shape[2:]), axis=0).reshape(draws.shape)
    normal_scores = ndtri((ranks - 3 / 8) / (draws.shape[0] * draws.shape[1] + 1 / 4))
    return family_ess(normal_scores, families)


def ess_tail(
    draws: Float[np.ndarray, "chain draw *shape"], families: Families = None
) -> Float[np.ndarray, "*shape"]:
    """Tail effective sample size: the smaller of those of the 5 % and the 95 % quantile.

    Arguments, NaN, errors and time as `ess_bulk`.
    """
    if families is None:
        return _by_arviz("ess", draws, method="tail", prob=(0.05, 0.95))
    limits = np.quantile(draws, (0.05, 0.95), axis=(0, 1))
    return np.fmin(*(family_ess((draws <= limit).astype(float), families) for limit in limits))


def family_ess(
    draws: Float[np.ndarray, "chain draw *shape"], families: Float[np.ndarray, "chain draw"]
) -> Float[np.ndarray, "*shape"]:
    """Independent draws worth as much as these particles of independent runs, for their mean.

    Particles with a common ancestor are not independent, however they moved since; families are.
    So the variance of the mean is that of a sum over families,

        G / (G - 1) sum_g (sum_(i in g) (x_i - mean))^2 / N^2,    G families, N particles,

    the estimator of Lee & Whiteley, "Variance estimation in the particle filter" (2018), from all
    runs at once: where one ancestor is left in every run, it is the spread of the runs. Its
    relative error is about sqrt(2 / G). Never more than N; NaN where a quantity never changes.

    Args:
        families: label of each particle's family, within its run.
    """
    draws = finite("draws", draws)
    values = draws.reshape(families.size, -1)
    run = np.repeat(np.arange(len(families)), families.shape[1])
    pairs = np.column_stack([run, families.ravel()])
    _, family = np.unique(pairs, axis=0, return_inverse=True)
    num_families, num_particles = family.max() + 1, len(values)
    deviations = values - values.mean(axis=0)
    sums = np.zeros((num_families, values.shape[1]))
    np.add.at(sums, family.ravel(), deviations)
    if num_families == 1:
        worth = np.ones(values.shape[1])
    else:
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.sum(deviations**2, axis=0) / np.sum(sums**2, axis=0)
        worth = np.minimum((1 - 1 / num_families) * num_particles * ratio, num_particles)
    worth = np.where(_varies(draws.reshape(*families.shape, -1)), worth, np.nan)
    return worth.reshape(draws.shape[2:])


def mcse_mean(draws: Float[np.ndarray, "chain draw *shape"]) -> Float[np.ndarray, "*shape"]:
    """Monte Carlo standard error of the mean over all draws, in the units of `draws`.

    NaN, errors and time as `ess_bulk`.
    """
    return _by_arviz("mcse", draws, method="mean")


def assess(
    functions: Float[np.ndarray, "chain draw point *output"] | None,
    *,
    rhat_threshold: float = RHAT_LIMIT,
    min_ess: float = ESS_LIMIT,
    max_functions: int = MOST_FUNCTIONS,
    families: Families = None,
    most_ess: float = np.inf,
) -> Convergence:
    """Judge chains by their functions; never raises for what a sampler may return.

    Converged: the largest R-hat < `rhat_threshold` and the smallest bulk and tail ESS, of all
    chains together, >= `min_ess`. The defaults are enough for predictive means and standard
    deviations; Vehtari et al. (2021) ask more of published numbers: R-hat < 1.01 and 100 for every
    chain.

    Args:
        functions: noise-free outputs at held-out inputs; None for what is not a Markov chain.
        max_functions: about so many of point x output are judged, at evenly spaced points with
            all their outputs: it bounds the time. Functions that never change are left out.
        families: of particles, whose effective sample size counts families; see `family_ess`.
        most_ess: what the weights of the draws are worth: no function has a larger effective
            sample size, however well its chains mix.
    """
    if functions is None:
        reason = (
            "There is no R-hat and no ESS: these networks are not draws of a chain, but were "
            "trained or drawn one by one, or count with signs."
        )
        return _unjudged(0, 0, None, reason)
    num_chains, num_draws = functions.shape[:2]
    judged = at_some_points(functions, max_functions).reshape(num_chains, num_draws, -1)
    judged, reason = judged[:, :, _varies(judged)], ""
    if num_draws < MIN_DRAWS:
        reason = too_few(num_draws)
    elif not np.isfinite(functions).all():
        reason = "Some outputs of the networks are not finite: the chains have diverged."
    elif judged.size == 0:
        reason = "No function ever changes: the chains did not move."
    if reason:
        return _unjudged(num_chains, num_draws, False, reason)
    largest_rhat = float(rhat(judged).max()) if num_chains > 1 else None
    bulk = np.minimum(ess_bulk(judged, families), most_ess)
    smallest_ess = float(bulk.min())
    smallest_tail = min(float(ess_tail(judged, families).min()), most_ess)
    words = OF_CHAINS if families is None else OF_PARTICLES
    faults = _faults(largest_rhat, rhat_threshold, smallest_ess, min_ess, words)
    if not faults and not smallest_tail >= min_ess:
        faults = [f"Tail ESS is {smallest_tail:.0f}, below {min_ess:g}: {words.more}."]
    return Convergence(
        max_rhat_function=largest_rhat,
        min_ess_function=smallest_ess,
        median_ess_function=float(np.median(bulk)),
        min_ess_tail_function=smallest_tail,
        num_chains=num_chains,
        num_draws=num_draws,
        converged=not faults,
        reason=" ".join(faults)
        or f"R-hat is at most {largest_rhat:.3f} and bulk ESS at least {smallest_ess:.0f}.",
    )


def too_few(num_draws: int) -> str:
    """The sentence on chains of fewer than `MIN_DRAWS` draws."""
    return f"{num_draws} draws per chain cannot be judged: at least {MIN_DRAWS} are needed."


def _unjudged(num_chains: int, num_draws: int, converged: bool | None, reason: str) -> Convergence:
    return Convergence(None, None, None, None, num_chains, num_draws, converged, reason)


class Words(NamedTuple):
    """Tell what the runs are called that are compared, and what helps where they disagree."""

    run: str
    more: str


OF_CHAINS = Words("chain", "draw more")
OF_PARTICLES = Words("run", "take more particles")


def _faults(
    largest_rhat: float | None,
    rhat_threshold: float,
    smallest_ess: float,
    min_ess: float,
    words: Words,
) -> list[str]:
    faults = []
    if largest_rhat is None:
        faults.append(f"One {words.run} cannot be compared with another: at least 2, better 4.")
    elif not largest_rhat < rhat_threshold:
        faults.append(
            f"The {words.run}s disagree: R-hat is {largest_rhat:.3f}, not below "
            f"{rhat_threshold:g}; {words.more}."
        )
    if not smallest_ess >= min_ess:
        faults.append(f"Bulk ESS is {smallest_ess:.0f}, below {min_ess:g}: {words.more}.")
    return faults


def at_some_points(
    functions: Float[np.ndarray, "chain draw point *output"], max_functions: int = MOST_FUNCTIONS
) -> Float[np.ndarray, "chain draw kept *output"]:
    """About so many functions at evenly spaced points, whole ones: no class or target is left
    out."""
    num_points = functions.shape[2]
    num_outputs = int(np.prod(functions.shape[3:]))
    return functions[:, :, evenly_spaced(num_points, max(1, max_functions // num_outputs))]


def _varies(draws: Float[np.ndarray, "chain draw q"]) -> Bool[np.ndarray, " q"]:
    return (draws != draws[:1, :1]).any(axis=(0, 1))


def _by_arviz(
    statistic: str, draws: Float[np.ndarray, "chain draw *shape"], **settings: Any
) -> Float[np.ndarray, "*shape"]:
    """ArviZ's statistic of every quantity that varies; NaN for the constant ones.

    ArviZ gives a constant its full number of draws as ESS: a chain that never moved would pass.
    """
    draws = finite("draws", draws)
    if draws.ndim < 2 or draws.shape[1] < MIN_DRAWS:
        raise ValueError(
            f"draws has shape {draws.shape}; it must be (chain, draw, ...) with at least "
            f"{MIN_DRAWS} draws per chain."
        )
    quantities = draws.reshape(*draws.shape[:2], -1)
    varies = _varies(quantities)
    result = np.full(varies.shape, np.nan)
    if varies.any():
        result[varies] = _call_arviz(statistic, quantities[:, :, varies], settings)
    return result.reshape(draws.shape[2:])


def _call_arviz(
    statistic: str, draws: Float[np.ndarray, "chain draw quantity"], settings: dict[str, Any]
) -> Float[np.ndarray, " quantity"]:
    import arviz_stats
    import xarray

    data = xarray.Dataset({"draws": (("chain", "draw", "quantity"), draws)})
    with np.errstate(divide="ignore", invalid="ignore"):  # chains that stand still: R-hat is inf
        return getattr(arviz_stats, statistic)(data, **settings)["draws"].to_numpy()
