"""Setting up particles and partners: where partners start, and what tunes both kernels."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from credence.adaptation.reference import prior_reference
from credence.adaptation.tunable_kernels import Tunable
from credence.density.data import Data
from credence.density.posterior import Posterior
from credence.engine.phases import Adapter, fixed
from credence.kernels.base import Settings
from credence.methods.interacting.auxiliary_choice import Chosen
from credence.methods.interacting.jump_tuning import JumpTuning


class Setup(NamedTuple):
    """The linear kernels of particles and partners, and how they get their settings."""

    posterior: Posterior
    chosen: Chosen
    """The auxiliary density, on which partners live."""
    kernels: Sequence[Tunable]
    """K, and Q unless partners are drawn afresh."""
    num_rungs: int | None
    """Number of temperatures of a ladder of partners; None for other auxiliary densities."""
    trajectory_length: float
    """Length of HMC trajectories, in posterior standard deviations."""

    def adapter(
        self,
        key: PRNGKeyArray,
        members: Float[Array, "particle weight"],
        data: Data,
        *,
        num_rounds: int,
        target_acceptance_rate: float | None,
        jump_probability: float,
        target_jump_rate: float | None,
        synchronous: bool,
    ) -> Adapter:
        """What tunes both kernels and the probability of a jump; settings as of `Interacting`."""
        particles, *partners = [
            kernel.tuning(
                key,
                members,
                data,
                log_density=self.posterior.log_density,
                num_rounds=num_rounds,
                target_acceptance_rate=target_acceptance_rate,
            )
            for kernel, key in zip(self.kernels, jax.random.split(key), strict=False)
        ]
        return JumpTuning(
            particles,
            partners[0] if partners else fixed(),
            self.settings,
            num_rounds=num_rounds,
            jump_probability=jump_probability,
            target_jump_rate=target_jump_rate,
            synchronous=synchronous,
        ).adapter

    def settings(self, particles: Settings, partners: Settings, probability: float) -> Settings:
        """The settings of the kernel `interacting` or `tempered_ladder`."""
        dtype = particles["step_size"].dtype
        kernel, *mover = self.kernels
        if self.num_rungs is not None:
            return {
                "ratio": self.chosen.arrays,
                "rungs": self._ladder(self.num_rungs, particles, partners),
                "jump_probability": np.asarray(probability, dtype),
            }
        return {
            "arrays": self.chosen.arrays,
            "settings": self._linear(kernel, particles),
            "auxiliary_settings": self._linear(mover[0], partners) if mover else {},
            "jump_probability": np.asarray(probability, dtype),
        }

    def _ladder(self, num_rungs: int, coldest: Settings, hottest: Settings) -> tuple[Settings, ...]:
        """The settings at all temperatures of the ladder, coldest first.

        The step sizes of both ends are tuned; those between are geometric, as they are for a
        Gaussian posterior.
        """
        shares = np.linspace(0, 1, num_rungs + 1)
        ends = coldest["step_size"], hottest["step_size"]
        sizes = [ends[0] ** (1 - share) * ends[1] ** share for share in shares]
        return tuple(
            self._linear(self.kernels[0], {**coldest, "step_size": size.astype(ends[0].dtype)})
            for size in sizes
        )

    def _linear(self, kernel: Tunable, found: Settings) -> Settings:
        """The settings of K or Q, from a step size and a metric."""
        return kernel.settings(
            found["step_size"],
            found["inverse_mass"],
            prior_reference(self.posterior) if kernel.reference else None,
            trajectory_length=self.trajectory_length,
        )


def starts_of_partners(
    key: PRNGKeyArray, chosen: Chosen, members: Float[Array, "particle weight"]
) -> Float[Array, "particle weight"]:
    """The positions at which partners start: drawn afresh where that is possible."""
    sample = chosen.density.sample
    if sample is None:
        return members
    keys = jax.random.split(key, len(members))
    return jax.jit(jax.vmap(lambda key: sample(key, chosen.arrays)))(keys)
