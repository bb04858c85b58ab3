"""Annealed importance sampling along a bridge of densities: what annealed jumps share."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from credence.density.data import Data
from credence.density.posterior import Position
from credence.errors import InputError
from credence.kernels.mcmc.hmc import leapfrogs


@dataclass(frozen=True, kw_only=True)
class Bridge:
    """T equal changes from one density to another, and Hamiltonian steps between them.

    Karagiannis & Andrieu, "Annealed importance sampling reversible jump MCMC algorithms" (2013).

    Args:
        num_temperatures: T.
        num_integration_steps: leapfrog steps between two changes.
        step_size: of the leapfrog steps.
    Raises:
        InputError: for T < 1 or no leapfrog step.
    """

    num_temperatures: int = 10
    num_integration_steps: int = 5
    step_size: float | Float[Array, ""]

    def __post_init__(self) -> None:
        if self.num_temperatures < 1 or self.num_integration_steps < 1:
            raise InputError(
                "Annealed moves need at least one temperature and one leapfrog step, got "
                f"num_temperatures={self.num_temperatures}, "
                f"num_integration_steps={self.num_integration_steps}."
            )

    @property
    def num_gradients(self) -> int:
        """Gradients from one end to the other."""
        return (self.num_temperatures - 1) * (self.num_integration_steps + 1)

    def crossed(
        self,
        key: PRNGKeyArray,
        start: Position,
        log_rho: Callable[[Position, Float[Array, ""]], Float[Array, ""]],
        inverse_mass: Float[Array, " weight"],
        data: Data,
    ) -> tuple[Position, Float[Array, ""]]:
        """The end of the bridge, and the sum of the changes of log rho.

        Args:
            log_rho: (position, share of the way from 0 to 1) -> log density, in nats.
            inverse_mass: of the steps, the same in both directions.
        """

        def at(step: Int[Array, ""]) -> Callable[[Position], Float[Array, ""]]:
            return lambda position: log_rho(position, step / self.num_temperatures)

        def change(step: Int[Array, ""], carry: Any) -> Any:
            position, before, log_ratio = carry
            kernel = leapfrogs(
                lambda position, data: at(step)(position),
                step_size=self.step_size,
                inverse_mass=inverse_mass,
                num_integration_steps=self.num_integration_steps,
            )
            state = kernel.init(position, data)
            log_ratio += state.log_density - before
            state, _ = kernel.step(jax.random.fold_in(key, step), state, data)
            return state.position, state.log_density, log_ratio

        first = (start, at(jnp.asarray(0))(start), jnp.zeros((), start.dtype))
        position, before, log_ratio = jax.lax.fori_loop(1, self.num_temperatures, change, first)
        return position, log_ratio + at(jnp.asarray(self.num_temperatures))(position) - before
