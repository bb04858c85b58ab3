"""Choose as many particles as a time budget affords: a small run first, then one that fits.

The small run is an answer already: a budget that it fits into never ends with nothing.
"""

import warnings
from collections.abc import Callable
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from credence.engine.driver import Driver
from credence.errors import Interrupted, StorageError
from credence.methods.base import Drawn

FEWEST = 32
"""Particles of a level in the small run."""

FEWEST_MOVING = 8
"""Particles that move in the small run where each leaves several behind: one that moves alone, as
few particles of long chains would, is only a chain."""

GROWTH = 2.0
"""A second run with fewer than so many times the particles of the first is not worth its time."""

PLANNED = 0.7
"""Share of the time left that the second run is planned for: it may need more temperatures."""

SMALL_RUN = 2**31 - 1
"""What its key is folded with: the run with all particles that are wanted has its draws whether
there is a budget or not."""

Counts = tuple[int, ...]


class FewParticlesWarning(UserWarning):
    """The run had time for the fewest particles only: evidence and posterior are rough."""


class Allotment(NamedTuple):
    """What a small run tells about a larger one."""

    costs: Float[np.ndarray, " level"]
    """Work of one particle of every level, in any unit."""
    shares: Float[np.ndarray, " level"]
    """Particles of every level over those of the coarsest."""


def within_budget(
    key: PRNGKeyArray,
    driver: Driver,
    wanted: Counts,
    run: Callable[[PRNGKeyArray, Counts], Drawn],
    *,
    allot: Callable[[Drawn], Allotment] | None = None,
    multiple: int = 1,
) -> Drawn:
    """Run with as many particles as are wanted, or as the driver's time budget affords.

    Args:
        wanted: particles of every level; without a budget there is one run, with these.
        run: the algorithm, with a key and so many particles of every level.
        allot: what a result tells; None takes all particles for equally dear, and keeps the shares
            of those wanted.
        multiple: particles of a level are a multiple of it.
    Raises:
        Interrupted: where time or Ctrl-C ends the small run, too.
    """
    fewest = FEWEST if multiple == 1 else multiple * max(FEWEST_MOVING, -(-FEWEST // multiple))
    if max(wanted) <= fewest:
        return run(key, wanted)
    small = tuple(min(fewest, count) for count in wanted)
    if driver.max_seconds is None:
        return run(key, _begun(driver, small, wanted))
    seconds_before = _seconds(driver)
    with driver.part("few particles"):
        answer = run(jax.random.fold_in(key, SMALL_RUN), small)
    seconds, compiling = np.subtract(_seconds(driver), seconds_before)

    def affordable() -> list[int]:
        allotment = allot(answer) if allot else alike(wanted)
        left = PLANNED * (driver.seconds_left - compiling)  # other shapes are compiled anew
        counts = scaled(left / seconds, small, wanted[0], allotment)
        return [count // multiple * multiple for count in counts]

    counts = _decided(driver, small, wanted, affordable)
    seconds_left = f"The time budget left {driver.max_seconds:.0f} s for sampling"
    if _is_rough(counts, small, wanted):
        return _rough(answer, small, seconds_left)
    driver.progress.say(f"There is time for {'-'.join(map(str, counts))} particles of a run.")
    try:
        return run(key, counts)
    except Interrupted:
        return _rough(answer, small, "The run was stopped" if driver.interrupted else seconds_left)


def _begun(driver: Driver, small: Counts, wanted: Counts) -> Counts:
    """The numbers of a run without a budget: those wanted, or those with which a run that had one
    began in the same folder."""
    counts = _decided(driver, small, wanted, lambda: list(wanted))
    return wanted if _is_rough(counts, small, wanted) else counts


def _decided(
    driver: Driver, small: Counts, wanted: Counts, decide: Callable[[], list[int]]
) -> Counts:
    """Decide numbers once, with or without a budget, so that a run goes on under another one.

    Raises:
        StorageError: where the folder has numbers that no run decided.
    """
    counts = driver.decided("particles", Counts, decide)
    if not _are_between(counts, small, max(wanted)):
        raise StorageError(
            f"{driver.folder} has numbers of particles that no run decided: {counts}."
        )
    return counts


def _is_rough(counts: Counts, small: Counts, wanted: Counts) -> bool:
    """Whether a second run is not worth its time."""
    return counts[0] < min(GROWTH * small[0], wanted[0])


def _are_between(counts: Counts, least: Counts, most: int) -> bool:
    """Whether there is a number for every level, in its range."""
    return len(counts) == len(least) and all(
        few <= count <= most for few, count in zip(least, counts, strict=True)
    )


def alike(wanted: Counts) -> Allotment:
    """All particles are equally dear, and their shares are those wanted."""
    return Allotment(np.ones(len(wanted)), np.array(wanted) / wanted[0])


def scaled(times: float, small: Counts, most: int, allotment: Allotment) -> Counts:
    """Particles of every level that are so many times as much work as those of the small run.

    Args:
        most: particles of the coarsest level.
    """
    costs, shares = allotment
    work = times * float(np.dot(small, costs))
    coarsest = min(work / float(np.dot(shares, costs)), most)
    return tuple(int(count) for count in np.maximum(np.floor(coarsest * shares), small))


def _seconds(driver: Driver) -> tuple[float, float]:
    """Seconds of all phases so far and of their compilation: a resumed run has the same."""
    results = driver.results.values()
    return sum(each.seconds for each in results), sum(each.compile_seconds for each in results)


def _rough(answer: Drawn, small: Counts, reason: str) -> Drawn:
    """The answer of the small run, with a warning."""
    warnings.warn(
        f"{reason}, enough for {max(small)} particles of a run only: evidence and posterior are "
        "rough. Allow more seconds.",
        FewParticlesWarning,
        stacklevel=3,
    )
    return answer
