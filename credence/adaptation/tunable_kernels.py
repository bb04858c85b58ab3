"""The table of kernels that other methods move with: how each is built, set up and tuned.

SMC mutations, interacting particles, chains on a surrogate and trans-dimensional sampling all need
some Markov kernel that leaves a density invariant. They take the name of a row of this table, or a
`Tunable` of your own, which is then a row too:

    barker = Tunable("barker", build_barker, target_acceptance_rate=0.57, order=3.0)
    SMC(mutation=Mutation(kernel=barker))

Step sizes are those of a leapfrog, in units of the weights over sqrt(inverse_mass).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from credence.adaptation.windows import (
    AddDraws,
    first_window_adaptation,
    same_metric,
    window_adaptation,
)
from credence.density.posterior import LogDensity
from credence.engine.phases import Adapter
from credence.errors import InputError, check_share, did_you_mean, require_positive
from credence.kernels.base import Kernel, Scalar, Settings
from credence.kernels.mcmc.hmc import hmc, leapfrogs, nuts
from credence.kernels.mcmc.mala import one_leapfrog
from credence.kernels.mcmc.microcanonical import adjusted_mclmc
from credence.kernels.mcmc.pcn import LARGEST_STEP, pcn

MOST_LEAPFROGS = 64
"""Most leapfrogs of a trajectory of particles that move abreast, whatever their step size; the most
on average where lengths vary."""

ROUNDING = 1e-3
"""Share of a leapfrog by which a length may miss a whole number of them, for float32."""

REFERENCES = (None, "prior", "draws")


@dataclass(frozen=True)
class Tunable:
    """A Markov kernel, and what it takes to set it up and to tune it.

    Settings of methods name it, as do saved runs: whoever reads these back registers it first
    (`register_kernel`).

    Args:
        name: of the kernel, its own.
        build: build(log_density, *, step_size, inverse_mass) -> Kernel that leaves the density
            exactly invariant; with a reference build(log_density, *, step_size, reference_mean,
            reference_std). Its State, a NamedTuple, has `position` and `log_density`; its Info has
            `acceptance_rate` and `is_finite`, and num_evaluations or num_gradients for the count of
            work: see `credence.kernels.base`. A function of a module, so that compiled programs are
            found again.
        target_acceptance_rate: usual for its step size.
        order: the root of its energy error is proportional to this power of the step size: 2 for
            trajectories of many leapfrogs, 3 for one leapfrog, 1 without a gradient.
        first_step: before anything is known, where the metric is right.
        largest_step: that makes sense.
        reference: None, where it takes a metric; "prior", or "draws", for a Gaussian reference with
            the moments of the prior or of the draws.
        options: further settings of `build`, which a method may have too: "trajectory_length",
            "max_doublings", "max_integration_steps".
        evaluations: of the log density, about as many a step; a gradient counts three.
        fixed_cost: whether every step costs the same, so that chains may move abreast.
        abreast: another builder, whose steps cost the same for all particles that move abreast.
        is_reversible: whether any number of steps from a first state is reversible, as delayed
            acceptance and sandwiched jumps need it. Steps with a Metropolis test are; steps that
            remember a direction may not be.
        reversible: another builder, whose steps are.
        state_follows_position: whether the State holds only what follows from the position, so that
            a jump to another one may replace it.
        fewest_weights: that it can move.
    Raises:
        InputError: for a number out of range, or an unknown reference.
    """

    name: str
    build: Callable[..., Kernel]
    target_acceptance_rate: float
    order: float
    first_step: float = 0.3
    largest_step: float = np.inf
    reference: str | None = None
    options: tuple[str, ...] = ()
    evaluations: int = 3
    fixed_cost: bool = True
    abreast: Callable[..., Kernel] | None = None
    is_reversible: bool = True
    reversible: Callable[..., Kernel] | None = None
    state_follows_position: bool = True
    fewest_weights: int = 1

    def __post_init__(self) -> None:
        check_share(target_acceptance_rate=self.target_acceptance_rate)
        require_positive(
            order=self.order,
            first_step=self.first_step,
            largest_step=None if self.largest_step == np.inf else self.largest_step,
            evaluations=self.evaluations,
            fewest_weights=self.fewest_weights,
        )
        if self.reference not in REFERENCES:
            raise InputError(
                f"reference must be None (the kernel takes a metric), 'prior' or 'draws', got "
                f"{self.reference!r}."
            )

    @property
    def for_particles(self) -> "Tunable":
        """The same kernel for particles that move abreast."""
        if self.abreast is None:
            return self
        return replace(self, build=self.abreast, abreast=None, fixed_cost=True)

    @property
    def reversible_together(self) -> "Tunable | None":
        """The same kernel, so built that any number of its steps is reversible, if that can be."""
        if self.is_reversible or self.reversible is None:
            return self if self.is_reversible else None
        return replace(self, build=self.reversible, reversible=None, is_reversible=True)

    def settings(
        self,
        step_size: Any,
        inverse_mass: Float[Any, " weight"],
        reference: tuple[Any, Any] | None = None,
        **options: float,
    ) -> Settings:
        """The arguments of `build`.

        Args:
            step_size: a NumPy number in the precision of the weights.
            inverse_mass: about the posterior variances; not read where there is a reference.
            reference: mean and standard deviation (weight,).
            options: those that the kernel does not take are left out.
        """
        taken = self.taken(**options)
        sizes = {name: np.asarray(value, step_size.dtype) for name, value in taken.items()}
        if self.reference is None:
            return {"step_size": step_size, "inverse_mass": inverse_mass, **sizes}
        assert reference is not None
        mean, std = reference
        return {"step_size": step_size, "reference_mean": mean, "reference_std": std, **sizes}

    def taken(self, **options: Any) -> dict[str, Any]:
        """Those options that the kernel takes."""
        return {name: value for name, value in options.items() if name in self.options}

    def tuning(
        self,
        key: PRNGKeyArray,
        positions: Float[Array, "chain weight"],
        data: Any,
        *,
        log_density: LogDensity,
        num_rounds: int,
        target_acceptance_rate: float | None = None,
        add_draws: AddDraws | None = None,
    ) -> Adapter:
        """The adapter that tunes the step size, and the metric if the kernel takes one.

        Args:
            key, positions, data, log_density, num_rounds, add_draws: see `window_adaptation`.
            target_acceptance_rate: None is the usual one.
        """
        more: dict[str, Any] = {
            "num_rounds": num_rounds,
            "target_acceptance_rate": target_acceptance_rate or self.target_acceptance_rate,
            "order": self.order,
            "largest": self.largest_step,
        }
        if self.reference is not None:
            ones = jnp.ones(positions.shape[1], positions.dtype)
            return window_adaptation(self.first_step, ones, add_draws=same_metric, **more)
        more |= {"log_density": log_density, "add_draws": add_draws}
        return first_window_adaptation(key, positions, data, **more)


def tunable_kernel(name: str, what: str = "kernel") -> Tunable:
    """The row of that name.

    Args:
        what: is looked for, for the sentence.
    Raises:
        InputError: where there is none.
    """
    if name not in _TABLE:
        raise InputError(
            f"Unknown {what} {name!r}: choose one of {', '.join(_TABLE)}, or give a Tunable; one "
            "of your own that a saved run names must be registered first (register_kernel)."
            + did_you_mean(str(name), _TABLE)
        )
    return _TABLE[name]


def register_kernel(tunable: Tunable) -> Tunable:
    """Add a kernel of your own to the table, in place of an earlier one of its name.

    Raises:
        InputError: for a name of Credence's own kernels.
    """
    _refuse_ours(tunable)
    _TABLE[tunable.name] = tunable
    return tunable


def _refuse_ours(tunable: Tunable) -> None:
    """Refuse a kernel that has the name of another of Credence's own."""
    if tunable.name in _OURS and tunable != _TABLE[tunable.name]:
        raise InputError(
            f"'{tunable.name}' is a kernel of Credence's own: give yours another name."
        )


WhyNot = Callable[[Tunable], str | None]
"""A kernel -> why a method cannot use it, as a sentence; None where it can."""


def checked_kernel(what: str, kernel: str | Tunable, why_not: WhyNot = lambda _: None) -> str:
    """The name of a kernel, which is in the table from now on.

    Args:
        what: the setting it is given for.
        kernel: a name, or a `Tunable`.
        why_not: of the method.
    Raises:
        InputError: for an unknown name, the name of another kernel, and one that is of no use.
    """
    if isinstance(kernel, Tunable):
        _refuse_ours(kernel)
        if _TABLE.setdefault(kernel.name, kernel) != kernel:
            raise InputError(
                f"Another kernel has the name '{kernel.name}': give yours another one, or replace "
                "the other by register_kernel, if it is an older version of yours."
            )
        kernel = kernel.name
    reason = why_not(tunable_kernel(kernel, what))
    if reason is not None:
        raise InputError(f"The {what} cannot be '{kernel}': {reason}")
    return kernel


def check_weights(tunable: Tunable, num_weights: int) -> None:
    """Refuse a posterior of fewer weights than a kernel can move, before anything is trained.

    Raises:
        InputError: it says what can move them.
    """
    if num_weights < tunable.fewest_weights:
        raise InputError(
            f"The kernel '{tunable.name}' needs at least {tunable.fewest_weights} weights, got "
            f"{num_weights}: use 'hmc'."
        )


def _equal_leapfrogs(
    log_density: LogDensity,
    *,
    step_size: Scalar,
    inverse_mass: Float[Array, " weight"],
    trajectory_length: Scalar = 1.5,
) -> Kernel:
    """HMC whose trajectories all have as many leapfrogs as make up their length."""
    num_steps = jnp.ceil(trajectory_length / step_size - ROUNDING)
    num_steps = jnp.clip(num_steps, 1, MOST_LEAPFROGS)
    return leapfrogs(
        log_density,
        step_size=step_size,
        inverse_mass=inverse_mass,
        num_integration_steps=num_steps.astype(jnp.int32),
    )


def _bounded_mclmc(
    log_density: LogDensity,
    *,
    step_size: Scalar,
    inverse_mass: Float[Array, " weight"],
    trajectory_length: Scalar = 1.0,
    varies: bool = True,
) -> Kernel:
    """`adjusted_mclmc` with a bound on the leapfrogs of a trajectory."""
    length = jnp.minimum(trajectory_length, MOST_LEAPFROGS * step_size)
    return adjusted_mclmc(
        log_density,
        step_size=step_size,
        inverse_mass=inverse_mass,
        trajectory_length=length,
        varies=varies,
    )


def _even_mclmc(log_density: LogDensity, **settings: Any) -> Kernel:
    """Trajectories that are all of one length, so that steps are reversible together."""
    return _bounded_mclmc(log_density, varies=False, **settings)


_PCN: dict[str, Any] = {
    "build": pcn,
    "target_acceptance_rate": 0.25,
    "order": 1.0,
    "first_step": 0.5,
    "largest_step": LARGEST_STEP,
    "evaluations": 1,
}
_OURS = {
    tunable.name: tunable
    for tunable in (
        Tunable(
            "hmc",
            hmc,
            target_acceptance_rate=0.8,
            order=2.0,
            options=("max_integration_steps", "trajectory_length"),
            evaluations=30,
            fixed_cost=False,
            abreast=_equal_leapfrogs,
        ),
        Tunable("mala", one_leapfrog, target_acceptance_rate=0.574, order=3.0),
        Tunable(
            "nuts",
            nuts,
            target_acceptance_rate=0.8,
            order=2.0,
            options=("max_doublings",),
            evaluations=100,
            fixed_cost=False,
        ),
        Tunable(
            "mclmc",
            _bounded_mclmc,
            target_acceptance_rate=0.9,
            order=2.0,
            options=("trajectory_length",),
            evaluations=15,
            is_reversible=False,
            reversible=_even_mclmc,
            state_follows_position=False,
            fewest_weights=2,
        ),
        Tunable("pcn", **_PCN, reference="prior"),
        Tunable("pcn_cloud", **_PCN, reference="draws"),
    )
}
"""The kernels that Credence itself brings."""
_TABLE = dict(_OURS)
"""Credence's kernels, and those that others have registered."""
