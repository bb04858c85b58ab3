"""What the true likelihood has to say of a chain that follows an emulator."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from credence.adaptation.tunable_kernels import Tunable
from credence.density.posterior import Posterior
from credence.kernels.base import Kernel, Recipe
from credence.methods.base import Drawn
from credence.methods.surrogate.delayed_acceptance import (
    DelayedState,
    UncorrectedState,
    delayed_acceptance,
    uncorrected,
)
from credence.methods.surrogate.emulators import Emulated, Points, SurrogateDensity
from credence.methods.surrogate.true_likelihood import Target, checked, reweighed


class Correction(NamedTuple):
    """A way to correct for the emulator's error, or to leave it."""

    moves: Callable[..., Kernel]
    """Builder of the kernel, with the arguments of `delayed_acceptance`."""
    first: Callable[..., Any]
    """(positions, log densities, members) -> the kernel's first states."""
    afterwards: Callable[[PRNGKeyArray, Drawn, Emulated, Target], Drawn]
    """What becomes of the draws."""
    tests_moves: bool
    """Whether the likelihood accepts or refuses every draw, so that its acceptance rate can tune
    how many steps lead to the next."""
    takes_sghmc: bool = False

    def recipe(
        self, build: Callable[..., Kernel], emulated: Emulated, posterior: Posterior, cost: bool
    ) -> Recipe:
        """The driver's recipe for a chain that moves by an emulator.

        Args:
            build: of the chain's own kernel.
            cost: whether its steps cost all the same.
        """
        surrogate = SurrogateDensity(posterior.model, emulated.log_likelihood)
        static = (("build", build), ("surrogate", surrogate))
        return Recipe(self.moves, posterior.log_density, static, cost)

    def states(self, emulated: Emulated, points: Points) -> Any:
        """The states at the end of the calibration, each chain with its emulator."""
        positions = jnp.asarray(points.positions[:, -1])
        log_densities = jnp.asarray(points.log_densities[:, -1], positions.dtype)
        return self.first(positions, log_densities, jnp.asarray(emulated.members(len(positions))))

    def why_not(self, tunable: Tunable) -> str | None:
        """Why a kernel cannot move along the emulator."""
        if self.tests_moves and tunable.reversible_together is None:
            return (
                "delayed acceptance is right for steps that are reversible together, and steps "
                "of this kernel are not. Use 'nuts', 'mclmc', 'hmc' or 'mala', or "
                "correction='psis'."
            )
        if tunable.reference == "draws":
            return "here reference='posterior' is how 'pcn' gets the moments of the draws."
        return None


def _untested(positions: Any, log_densities: Any, members: Any) -> UncorrectedState:
    return UncorrectedState(positions, members)


def _as_drawn(key: PRNGKeyArray, drawn: Drawn, emulated: Emulated, target: Target) -> Drawn:
    return drawn


DELAYED = Correction(delayed_acceptance, DelayedState, _as_drawn, tests_moves=True)
CORRECTIONS = {
    "delayed_acceptance": DELAYED,
    "psis": Correction(uncorrected, _untested, reweighed, tests_moves=False),
    "none": Correction(uncorrected, _untested, checked, tests_moves=False, takes_sghmc=True),
}
"""The ways to correct for an emulator's error, by their names."""
