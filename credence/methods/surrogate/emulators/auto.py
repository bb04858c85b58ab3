"""Choose an emulator: the one whose error at unseen draws promises most acceptance per work."""

from dataclasses import dataclass, field
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import PRNGKeyArray
from scipy.stats import norm

from credence.density.data import Data
from credence.density.posterior import Posterior
from credence.engine.driver import Driver
from credence.errors import InputError
from credence.methods.surrogate.emulators.base import Emulated, Emulator, Points, error_of
from credence.methods.surrogate.emulators.coreset import Coreset
from credence.methods.surrogate.emulators.gaussian_process import GaussianProcess
from credence.methods.surrogate.emulators.taylor import Taylor
from credence.methods.surrogate.fitting import split

EVALUATIONS = 100
"""Evaluations of an emulator between two of the likelihood, about those of a tuned NUTS."""
FEWEST = 5
"""Draws of a chain of which a part can be held out."""


class Candidate(NamedTuple):
    """An emulator that was tried."""

    name: str
    nats: float | None
    """`Error` at draws that it has not seen; None where infinite, which JSON does not know."""
    share: float | None
    flops: float
    """Floating point operations of `EVALUATIONS` of it and one likelihood."""
    promise: float
    """Acceptance that the error lets expect, per work of a likelihood."""


@dataclass(frozen=True, kw_only=True)
class Auto(Emulator):
    """Fits several emulators, holds out draws, and takes the most promising.

    A difference of log likelihoods between two draws is off by about N(0, s^2), s^2 = 2 e^2, e the
    error at held-out draws in nats; then the second stage accepts 2 Phi(-s / 2) of the proposals
    (Roberts, Gelman & Gilks, "Weak convergence and optimal scaling of random walk Metropolis
    algorithms", 1997, proposition 2.4). Promise is that acceptance over the work between two
    evaluations of the likelihood, which is counted in evaluations of it.

    Args:
        candidates: names in `emulators.EMULATORS`, each with its usual settings; those that need
            more draws than there are, or cannot learn the posterior, are left out.
    """

    name: str = field(default="auto", init=False)

    candidates: tuple[str, ...] = ("coreset", "taylor", "gaussian_process")

    def __post_init__(self) -> None:
        super().__post_init__()
        known = [emulator.name for emulator in _KINDS]
        if not self.candidates or set(self.candidates) - set(known):
            raise InputError(f"candidates must be some of {known}, got {self.candidates}.")

    def fit(
        self, key: PRNGKeyArray, points: Points, posterior: Posterior, data: Data, driver: Driver
    ) -> Emulated:
        """Fit every candidate, and take the one that promises most acceptance per work."""
        usable = self._usable(posterior, points)
        if points.positions.shape[1] < FEWEST or len(usable) == 1:
            return usable[0].fit(key, points, posterior, data, driver)
        to_fit, held_out = split(points)
        exact = 2.0 * posterior.num_points * posterior.num_weights
        tried = []
        for number, emulator in enumerate(usable):
            with driver.part(emulator.name):
                found = emulator.fit(
                    jax.random.fold_in(key, number), to_fit, posterior, data, driver
                )
            error, flops = error_of(found, held_out), exact + EVALUATIONS * found.flops
            promise = expected_acceptance(error.nats) * exact / flops
            nats, share = (each if np.isfinite(each) else None for each in error)
            tried.append((Candidate(emulator.name, nats, share, flops, promise), found))
        best, emulated = max(tried, key=lambda pair: pair[0].promise)
        driver.progress.say(described(best, [candidate for candidate, _ in tried]))
        chosen = [candidate._asdict() for candidate, _ in tried]
        about = {**emulated.about, "emulator": best.name, "candidates": chosen}
        return emulated._replace(about=about)

    def _usable(self, posterior: Posterior, points: Points) -> list[Emulator]:
        """Candidates that can learn from these points."""
        found = []
        for kind in _KINDS:
            emulator = kind()
            too_few = emulator.needs_draws and points.positions.shape[1] < FEWEST
            if kind.name in self.candidates and not too_few and _can(emulator, posterior, points):
                found.append(emulator)
        if not found:
            raise InputError(
                f"None of the emulators {self.candidates} can learn this posterior from "
                f"{points.positions.shape[1]} draws per chain: add 'coreset' to the candidates."
            )
        return found


def _can(emulator: Emulator, posterior: Posterior, points: Points) -> bool:
    try:
        emulator.check(posterior, int(np.prod(points.positions.shape[:2])))
    except InputError:
        return False
    return True


_KINDS: tuple[type[Emulator], ...] = (Coreset, Taylor, GaussianProcess)


def expected_acceptance(nats: float) -> float:
    """Expected acceptance of proposals whose two ends are each off by `nats`, root mean square."""
    return float(2 * norm.cdf(-(2**0.5) * nats / 2)) if np.isfinite(nats) else 0.0


def described(best: Candidate, tried: list[Candidate]) -> str:
    """A sentence on what was tried and what was chosen."""
    each = ", ".join(
        f"{one.name} {np.inf if one.nats is None else one.nats:.2g} nats at {one.flops:.2g} flops"
        for one in tried
    )
    return f"Emulators at unseen draws: {each}. Chosen: {best.name}."
