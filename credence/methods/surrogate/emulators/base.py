"""What an emulator is: a cheap log likelihood of positions, fitted to a few true ones."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from credence.density.data import Data, rows_at
from credence.density.posterior import BayesianModel, Position, Posterior, flat_log_prior
from credence.engine.driver import Driver
from credence.errors import check_numbers
from credence.methods.surrogate.delayed_acceptance import Surrogate, member_of

CUT_SHORT = "trained_epochs"
"""The name, in `about`, of the epochs after which time ended the training, if it did."""


class Points(NamedTuple):
    """Points at which a log likelihood was evaluated, and its values there, by chain."""

    positions: Float[np.ndarray, "chain draw weight"]
    log_likelihoods: Float[np.ndarray, "chain draw"]
    """Log likelihoods in nats, from the anchor of the data."""
    log_densities: Float[np.ndarray, "chain draw"]
    """Log likelihoods plus log prior, in nats."""


class Emulated(NamedTuple):
    """A fitted emulator."""

    log_likelihood: Surrogate
    """(position, arrays of a member) -> nats up to a constant; hashable, so that programs are
    found again."""
    arrays: Any
    """Leaves (member, ...): as many as chains, or one; see `members`."""
    flops: float
    """Floating point operations of one evaluation."""
    about: Mapping[str, Any] = MappingProxyType({})
    """What was chosen, ready for JSON."""
    is_likelihood: bool = False
    """Whether it is the likelihood itself, and there is nothing to learn."""

    @property
    def num_members(self) -> int:
        """How many emulators these are."""
        return len(jax.tree.leaves(self.arrays)[0])

    def members(self, num_chains: int) -> Int[np.ndarray, " chain"]:
        """Number of the member that each chain follows: its own, or the only one."""
        return np.broadcast_to(np.arange(self.num_members, dtype=np.int32), num_chains)


@dataclass(frozen=True, kw_only=True)
class Emulator(ABC):
    """Base of all emulators; a subclass is a frozen dataclass of settings with `fit`."""

    needs_draws: ClassVar[bool] = False
    """Whether one point per chain teaches it nothing."""

    name: str = field(default="", init=False)

    def __post_init__(self) -> None:
        check_numbers(self)

    def check(self, posterior: Posterior, num_draws: int) -> None:  # noqa: B027  (a hook)
        """Refuse, before anything is computed, a posterior that this emulator cannot learn.

        Args:
            num_draws: of the calibration, of all chains.
        """

    def is_whole(self, posterior: Posterior) -> bool:
        """Whether it would take all rows as they are, so that nothing is emulated."""
        return False

    @abstractmethod
    def fit(
        self, key: PRNGKeyArray, points: Points, posterior: Posterior, data: Data, driver: Driver
    ) -> Emulated:
        """The emulator of the posterior's log likelihood.

        Args:
            points: to fit; none of those held out.
            data: the posterior's, anchored as the points were.
            driver: runs what sees the data, or takes long, as phases.
        """


class Arrays(NamedTuple):
    """Arrays that a surrogate log density takes in place of data."""

    rows: Data
    """One row, for the shapes of the parameters."""
    emulator: Any


@dataclass(frozen=True)
class SurrogateDensity:
    """The model's log prior, and an emulator's log likelihood."""

    model: BayesianModel
    log_likelihood: Surrogate

    def __call__(self, position: Position, arrays: Arrays) -> Float[Array, ""]:
        log_prior = flat_log_prior(self.model)(position, arrays.rows)
        return log_prior + self.log_likelihood(position, arrays.emulator)


def arrays_of(emulated: Emulated, data: Data) -> Arrays:
    """The arrays of the surrogate log density, leaves (member, ...)."""
    row = rows_at(data, slice(1))
    first = jax.tree.map(lambda leaf: jnp.stack([leaf] * emulated.num_members), row)
    return Arrays(first, jax.tree.map(jnp.asarray, emulated.arrays))


def emulate(
    emulated: Emulated, positions: Float[np.ndarray, "chain draw weight"]
) -> Float[np.ndarray, "chain draw"]:
    """Emulated log likelihoods in nats, up to a constant, each chain by its own member."""
    members = jnp.asarray(emulated.members(len(positions)))
    arrays = jax.tree.map(jnp.asarray, emulated.arrays)
    found = _by_chain(
        jnp.asarray(positions), members, arrays, log_likelihood=emulated.log_likelihood
    )
    return np.asarray(found, float)


@partial(jax.jit, static_argnames="log_likelihood")
def _by_chain(
    positions: Float[Array, "chain draw weight"],
    members: Int[Array, " chain"],
    arrays: Any,
    *,
    log_likelihood: Surrogate,
) -> Float[Array, "chain draw"]:
    def of_chain(chain: Any) -> Float[Array, " draw"]:
        position, member = chain
        return jax.lax.map(lambda at: log_likelihood(at, member_of(arrays, member)), position)

    return jax.lax.map(of_chain, (positions, members))


class Error(NamedTuple):
    """How far an emulator is off at points that it has not seen."""

    nats: float
    """Root mean square of emulated minus true log likelihood, each chain's mean taken off."""
    share: float
    """The error's square over the variance of the true values: 1 for an emulator that says nothing.
    """


def centred(values: Float[np.ndarray, "chain draw"]) -> Float[np.ndarray, "chain draw"]:
    """Each chain's mean taken off: an emulator knows its log density up to a constant."""
    return values - values.mean(axis=1, keepdims=True)


def error_of(emulated: Emulated, held_out: Points) -> Error:
    """The error at held-out points; infinite where each chain has but one, or the same twice."""
    if not np.any(np.diff(held_out.positions, axis=1)):
        return Error(np.inf, np.inf)

    true = np.asarray(held_out.log_likelihoods, float)
    missed = np.mean(centred(emulate(emulated, held_out.positions) - true) ** 2)
    return Error(float(missed**0.5), float(missed / max(np.mean(centred(true) ** 2), 1e-12)))


@partial(jax.jit, static_argnames="model")
def without_prior(
    state: Any, data: Data, *, model: BayesianModel
) -> tuple[Float[Array, " draw"], Float[Array, "draw weight"]]:
    """Log likelihoods and their gradients, from those of the log density."""
    prior = jax.value_and_grad(flat_log_prior(model))
    values, gradients = jax.lax.map(lambda position: prior(position, data), state.position)
    return state.log_density - values, state.gradient - gradients
