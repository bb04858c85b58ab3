"""The contract of every Markov kernel: one chain, one step, pure functions.

    init(position, data) -> State           State: a NamedTuple with a `position` (weight,)
    step(key, state, data) -> (State, Info) Info: a NamedTuple of scalars, what happened

Every Info has `is_finite`; where they mean something also `acceptance_rate`, `is_divergent` and
`num_gradients` (gradients of the log density that the step cost) or `num_evaluations` (of the log
density alone). The driver maps a kernel over
chains and devices; a kernel never knows of them. Over the steps of a draw (`Plan.thinning`) it sums
what is an integer in an Info, and averages everything else, booleans too; `kernels.sample` hands
`keep` the last step's Info. Data are an argument, so that a minibatch or
another data set of the same shape needs no new program.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from credence.density.data import Data
from credence.density.posterior import Position
from credence.errors import InputError

Settings = Mapping[str, Any]
"""Arrays a kernel is built with (step size, ...): arguments of compiled programs."""

Scalar = float | Float[Array, ""]


class Kernel(NamedTuple):
    """One chain's Markov kernel; see the module's docstring."""

    init: Callable[[Position, Data], Any]
    step: Callable[[PRNGKeyArray, Any, Data], tuple[Any, Any]]


@dataclass(frozen=True)
class Recipe:
    """How to build a kernel inside a compiled program: frozen, so programs are found again.

    Args:
        build: build(log_density, **settings, **static) -> Kernel.
        log_density: from `flat_log_density`, or a `Bridge`; the same object for the same model.
        static: settings that change the program itself, as sorted (name, value) pairs.
        fixed_cost: True if all chains cost the same per step, so that they run abreast; False
            (NUTS) lets each CPU device run its chains one after another.
        interacts: whether chains meet in a step. build then gets `axes` too, the names of the
            mapped axes along which they lie, outermost first.
    """

    build: Callable[..., Kernel]
    log_density: Callable[[Position, Any], Float[Array, ""]]
    static: tuple[tuple[str, Any], ...] = ()
    fixed_cost: bool = True
    interacts: bool = False

    def __call__(self, settings: Settings, axes: tuple[str, ...] = ()) -> Kernel:
        meeting = {"axes": axes} if self.interacts else {}
        return self.build(self.log_density, **settings, **dict(self.static), **meeting)


class Work(NamedTuple):
    """Log densities evaluated, without and with gradient."""

    values: Any
    gradients: Any

    def plus(self, other: "Work") -> "Work":
        """The sum of this work and another."""
        return Work(self.values + other.values, self.gradients + other.gradients)

    def in_values(self) -> Any:
        """All of it in values: a gradient and its value take as long as three."""
        return self.values + 3 * self.gradients


def step_work(info: Any) -> Work:
    """What a step took, as its Info says."""
    return Work(getattr(info, "num_evaluations", 0), getattr(info, "num_gradients", 0))


class Moves(NamedTuple):
    """Sums over several steps of a kernel."""

    acceptance: Float[Array, ""]
    """Sum of their acceptance rates."""
    is_finite: Bool[Array, ""]
    """Whether all of them met finite numbers only."""
    evaluations: Int[Array, ""]
    gradients: Int[Array, ""]

    @classmethod
    def none(cls, like: Any, work: Work) -> "Moves":
        """The sums before the first step.

        Args:
            like: a number of the type of acceptance rates.
            work: what was done before, such as that of the first state.
        """
        values, gradients = (jnp.asarray(each, jnp.int32) for each in work)
        return cls(jnp.zeros_like(like), jnp.ones((), bool), values, gradients)

    def after(self, info: Any) -> "Moves":
        """These sums with one more step added."""
        values, gradients = step_work(info)
        return Moves(
            self.acceptance + getattr(info, "acceptance_rate", 1.0),
            self.is_finite & info.is_finite,
            self.evaluations + values,
            self.gradients + gradients,
        )


def repeated(
    kernel: Kernel,
    key: PRNGKeyArray,
    first: Any,
    data: Data,
    num_steps: Int[Array, ""] | int,
    before: Moves,
) -> tuple[Any, Moves]:
    """Take several steps of a kernel; return where they end, and what they did.

    Args:
        first: state.
        num_steps: may be traced: one program for any number.
        before: what was done earlier.
    """

    def move(index: Int[Array, ""], carry: tuple[Any, Moves]) -> tuple[Any, Moves]:
        state, moves = carry
        state, info = kernel.step(jax.random.fold_in(key, index), state, data)
        return state, moves.after(info)

    return jax.lax.fori_loop(0, num_steps, move, (first, before))


def first_work(state: Any) -> Work:
    """What a kernel's first state took, by what it holds."""
    if hasattr(state, "gradient"):
        return Work(0, 1)
    return Work(int(hasattr(state, "log_density")), 0)


def either(condition: Bool[Array, ""] | bool, yes: Any, no: Any) -> Any:
    """The one or the other of two states, leaf by leaf."""
    return jax.tree.map(lambda yes, no: jnp.where(condition, yes, no), yes, no)


def metropolis(
    key: PRNGKeyArray, log_ratio: Float[Array, ""], is_possible: Bool[Array, ""]
) -> tuple[Float[Array, ""], Bool[Array, ""]]:
    """Test a proposal by Metropolis's rule.

    Args:
        log_ratio: log of the ratio R, in nats.
        is_possible: False refuses, whatever the ratio: where it is not finite, or out of range.
    Returns:
        The acceptance rate min(1, R), and whether it is accepted.
    """
    acceptance_rate = jnp.where(is_possible, jnp.exp(jnp.minimum(log_ratio, 0.0)), 0.0)
    return acceptance_rate, jax.random.uniform(key) < acceptance_rate


def check_step_size(step_size: float | Float[Array, ""]) -> None:
    """Refuse a step size that is not > 0; inside a compiled program it is unknown and passes."""
    if not isinstance(step_size, Tracer) and not step_size > 0:
        raise InputError(f"step_size must be > 0, got {step_size}; start near 0.01.")
