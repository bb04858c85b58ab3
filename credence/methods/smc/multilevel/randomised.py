"""Expectations without the bias of a finest width, from runs that climb a random number of levels.

Rhee & Glynn, "Unbiased estimation with square root convergence for SDE models" (2015), the coupled
sum estimator: where level l is reached with probability S_l, its increment counts 1 / S_l as much,
so that in the mean every level counts once, however wide. What is summed are unnormalised
expectations, Z_l E_l f with the evidence Z_l, which SMC estimates without bias up to the adaptation
of its temperatures; the ratio of two such sums, over f and over 1, is the posterior mean. Its error
falls as one over the root of the number of runs, with few particles in each.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float, Int, PRNGKeyArray

from credence.density.posterior import Posterior
from credence.engine.progress import Progress
from credence.ensembles.ensemble import Ensemble
from credence.ensembles.predictor import Inputs
from credence.errors import InputError, check_share
from credence.methods.base import as_key
from credence.methods.smc.multilevel.method import MLSMC, below


class Sums(NamedTuple):
    """Unnormalised sums over the levels of every run, all over exp(log_scale)."""

    of_function: Float[np.ndarray, "run point output"]
    of_one: Float[np.ndarray, " run"]
    reached: Int[np.ndarray, " run"]
    """The last level of every run."""
    flops: Float[np.ndarray, " run"]
    log_scale: float
    """The scale's logarithm, in nats."""


@dataclass(frozen=True)
class Unbiased:
    """Posterior means and the evidence of the widest of all levels."""

    mean: Float[np.ndarray, "point output"]
    standard_error: Float[np.ndarray, "point output"]
    log_evidence: float
    """The logarithm of the evidence, in nats."""
    log_evidence_error: float
    sums: Sums

    @classmethod
    def of(cls, sums: Sums) -> "Unbiased":
        """Take the ratio of mean sums; its error is that of a ratio, to first order."""
        count, one = len(sums.of_one), sums.of_one.mean()
        mean = sums.of_function.mean(axis=0) / one
        left = sums.of_function - mean * sums.of_one[:, None, None]
        error = left.std(axis=0, ddof=1) / (abs(one) * count**0.5)
        spread = sums.of_one.std(ddof=1) / (abs(one) * count**0.5)
        return cls(mean, error, float(sums.log_scale + np.log(max(one, 0.0))), float(spread), sums)


def unbiased(
    key: PRNGKeyArray | int,
    method: MLSMC,
    levels: Sequence[Posterior],
    x: Inputs,
    *,
    survival: float = 0.25,
    folder: str | Path | None = None,
    progress: Progress | None = None,
) -> Unbiased:
    """Estimate posterior means of the finest level by runs most of which stop at coarse ones.

    Variance and work are finite for any number of levels where the survival lies between the factor
    by which increments' variances fall from level to level and one over that by which work grows.
    Runs that end at the same level share temperatures and step sizes, and so err alike, which the
    standard error does not see: several calls, with keys of their own, show it.

    Args:
        method: its `num_runs` is the number of runs, its `num_particles` one number or that of
            every level.
        levels: posteriors of nested networks, from coarse to fine, as many as should count.
        x: inputs at which the network's outputs are averaged.
        survival: probability that a run goes on from a level to the next; all take the first step.
        folder: where runs are kept, a folder for all that end at a level: those that are finished
            are not run again.
        progress: what shows the progress of the runs.
    Raises:
        InputError: for fewer than two levels or runs, and where levels are so far apart that
            particles are tempered between them: the sum of (3.5) has no unnormalised form then.
    """
    check_share(survival=survival)
    if len(levels) < 2 or method.num_runs < 2 or method.coupling != "sequential":
        raise InputError(
            "Runs climb a random number of levels: give two levels or more, num_runs >= 2, and "
            'coupling="sequential".'
        )
    key_levels, *keys = jax.random.split(as_key(key), 1 + len(levels))
    climbed = jax.random.geometric(key_levels, 1 - survival, (method.num_runs,))
    reached = np.minimum(np.asarray(climbed), len(levels) - 1)
    parts = []
    for last in np.unique(reached)[::-1]:  # the deepest first, which may be refused
        some = _some(method, levels[: last + 1], int(np.sum(reached == last)))
        place = below(folder, f"up to level {last}")
        found = some.run(keys[last], levels[last], folder=place, progress=progress)
        parts.append(_sums(found, x, survival))
    return Unbiased.of(_joined(parts))


def _some(method: MLSMC, levels: Sequence[Posterior], num_runs: int) -> MLSMC:
    """The method on these levels, with so many runs."""
    counts = method.num_particles
    return replace(
        method,
        widths=None,
        num_levels=None,
        base=None,
        ratio=None,
        coarse=tuple(level.model.network for level in levels[:-1]),
        num_particles=counts[: len(levels)] if isinstance(counts, tuple) else counts,
        num_runs=num_runs,
    )


def _sums(found: Ensemble, x: Inputs, survival: float) -> Sums:
    """The sums of runs that all end at the same level."""
    _require_untempered(found)
    num_runs, increment = found.num_chains, found.scalars["increment"]
    evidence = found.scalars["level_log_evidence"]
    log_scale = float(np.max(evidence))
    reached_with = survival ** np.maximum(increment - 1, 0)
    assert found.weights is not None
    counting = num_runs * found.weights * np.exp(evidence - log_scale) / reached_with
    return Sums(
        np.einsum("rm,rmpt->rpt", counting, np.asarray(found.functions(x), float)),
        counting.sum(axis=1),
        np.full(num_runs, int(increment.max())),
        np.full(num_runs, found.cost.flops / num_runs),
        log_scale,
    )


def _require_untempered(found: Ensemble) -> None:
    """Refuse an ensemble some of whose increments have more than one weighing.

    Every weighing after the first has its particles' equal weights subtracted.
    """
    increment, visited = (
        np.asarray(found.scalars[name])[0] for name in ("increment", "num_temperatures")
    )
    for number in np.unique(increment[(increment > 0) & (visited > 1)]):
        raise InputError(
            f"Level {number:.0f} is too far from the one below it: particles had to be tempered "
            "between them. Start from a wider network, or let widths grow more slowly."
        )


def _joined(parts: Sequence[Sums]) -> Sums:
    """All runs, in one scale."""
    log_scale = max(part.log_scale for part in parts)
    factors = [np.exp(part.log_scale - log_scale) for part in parts]
    scaled = [
        part._replace(of_function=factor * part.of_function, of_one=factor * part.of_one)
        for part, factor in zip(parts, factors, strict=True)
    ]
    return Sums(*map(np.concatenate, list(zip(*scaled, strict=True))[:-1]), log_scale=log_scale)
