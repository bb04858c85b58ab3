"""Planted errors: wrong kernels that the table must catch, each next to the right one."""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray
from tools.laws import Chain, scores_after
from tools.targets import gaussian_log_density, standard

from credence.density.data import Data
from credence.density.posterior import BayesianModel, LogDensity, Position
from credence.kernels.base import Kernel, either
from credence.kernels.mcmc.gibbs import gibbs_precisions
from credence.kernels.mcmc.mala import MALAState, mala
from credence.kernels.mcmc.microcanonical import mclmc
from credence.kernels.mcmc.pcn import pcn
from credence.methods.interacting.auxiliary import MIXTURE
from credence.models import HierarchicalGamma

from .cells import compare, law_name
from .rows import EXACT, Row, mclmc_settings, steps
from .targets import HIERARCHY, RATE, SHAPE, Target, hierarchical, of_gaussian

NUM_CHAINS, FACTOR = 10_000, 1.05


class Planted(NamedTuple):
    """A wrong kernel and the right one on the same target."""

    kernel: str
    error: str
    right: float
    """Worst score without the error."""
    wrong: float
    """Worst score with it."""


ROWS = {row.name: row for row in EXACT}
SMALL_STEPS = Row(
    "mclmc, small steps",
    mclmc,
    lambda target: {**mclmc_settings(target), "step_size": 0.05},
    steps(300),
    0,
)
"""A row with steps so small that mclmc's bias, about h^2 / 4, is far below a standard error."""


def planted_in_row(row: Row, target: Target, error: str, **errors: Any) -> Planted:
    """A row with and without an error; `errors` are those of `compare`."""
    build = errors.pop("build", row.build)
    starts = target.sample(4, NUM_CHAINS)
    right, wrong = (
        compare(row.build, row, target, starts),
        compare(build, row, target, starts, **errors),
    )
    return Planted(row.name, error, right[0], wrong[0])


def too_large(row: Row) -> Planted:
    """A log density 5 % too large."""
    gaussian = standard(20)
    data = gaussian._replace(factor=FACTOR).data
    return planted_in_row(row, of_gaussian(gaussian), "log density 5 % too large", data=data)


def repeated_keys(row: Row) -> Planted:
    """The same key in every step."""
    target = of_gaussian(standard(20))
    return planted_in_row(row, target, "the same key in every step", repeat_keys=True)


def wrong_proposal_variance(row: Row) -> Planted:
    """MALA whose proposal density reads its variance h as 2 h."""
    target = of_gaussian(standard(20))
    error = "proposal density with twice the proposal's variance"
    return planted_in_row(row, target, error, build=mala_with_wrong_variance)


def mala_with_wrong_variance(
    log_density: LogDensity, *, step_size: Any, inverse_mass: Float[Array, " weight"]
) -> Kernel:
    """A `mala` in which q(w' | w) is taken for N(w + (h/2) G grad, 2 h G)."""
    right = mala(log_density, step_size=step_size, inverse_mass=inverse_mass)
    std = jnp.sqrt(step_size * inverse_mass)

    def log_q(end: MALAState, start: MALAState) -> Float[Array, ""]:
        noise = (end.position - start.position) / std - 0.5 * std * start.gradient
        return -0.25 * jnp.sum(noise**2)

    def step(key: PRNGKeyArray, state: MALAState, data: Data) -> tuple[MALAState, tuple[()]]:
        key_noise, key_accept = jax.random.split(key)
        noise = jax.random.normal(key_noise, state.position.shape)
        new = right.init(state.position + 0.5 * std**2 * state.gradient + std * noise, data)
        log_ratio = new.log_density - state.log_density + log_q(state, new) - log_q(new, state)
        is_accepted = jnp.log(jax.random.uniform(key_accept)) < log_ratio
        return either(is_accepted, new, state), ()

    return Kernel(right.init, step)


def reference_twice(row: Row) -> Planted:
    """pCN whose accept ratio has the reference in it, which the proposal already obeys."""
    target = of_gaussian(standard(20))
    error = "reference (prior) again in the accept ratio"
    return planted_in_row(row, target, error, build=pcn_with_reference_twice)


def pcn_with_reference_twice(log_density: LogDensity, **settings: Any) -> Kernel:
    """The kernel `pcn` for the target times the reference."""
    mean, std = settings["reference_mean"], settings["reference_std"]

    def with_reference(position: Position, data: Data) -> Float[Array, ""]:
        return log_density(position, data) - 0.5 * jnp.sum(((position - mean) / std) ** 2)

    return pcn(with_reference, **settings)


def uncorrected_partners(row: Row) -> Planted:
    """Jumps to partners by the target's density alone, as if partners were uniform."""
    only_target = MIXTURE._replace(log_potential=lambda log_target, *_: log_target)
    error = "auxiliary density left out of the potentials"
    build = partial(row.build, auxiliary=only_target)
    return planted_in_row(row, of_gaussian(standard(20)), error, build=build)


class WrongGamma(HierarchicalGamma):
    """A prior whose conditional law has n in place of n / 2 in the shape."""

    def conditional(self, network: Any, params: Any) -> Any:
        """Twice as many weights as there are."""
        shape, rate = super().conditional(network, params)
        return 2 * shape - self.shape, rate


def wrong_shape(row: Row) -> Planted:
    """Gibbs with the wrong shape."""
    wrong = BayesianModel(
        HIERARCHY.network, WrongGamma(shape=SHAPE, rate=RATE), HIERARCHY.likelihood
    )
    build = partial(gibbs_precisions, model=wrong)
    error = "n in place of n/2 in the Gamma's shape"
    return planted_in_row(row, hierarchical(), error, build=build)


def missing_jacobian(row: Row) -> Planted:
    """Log precisions sampled as if they were the precisions."""
    target = hierarchical()

    def log_density(position: Position, data: Data) -> Float[Array, ""]:
        log_precision = HIERARCHY.unravel(position, data).prior
        return target.log_density(position, data) - jnp.sum(log_precision)

    error = "Jacobian of the log precisions left out"
    return planted_in_row(row, target, error, log_density=log_density)


def planted_in_law(
    make: Callable[..., Chain],
    error: str,
    *,
    noise: float = 1.0,
    **errors: Any,
) -> Planted:
    """A chain with an error, against the law that is right without it.

    Args:
        noise: the kernel's noise has this share of the variance that the law has.
        errors: of `whitened_after`.
    """
    target = standard(20)
    chain = make(target, gaussian_log_density)
    planted = chain._replace(noise=chain.noise / noise)
    wrong = scores_after(planted, target, num_chains=NUM_CHAINS, **errors)
    return Planted(law_name(make), error, right_law(make), max(wrong.values()))


@lru_cache(maxsize=16)
def right_law(make: Callable[..., Chain]) -> float:
    """Worst score of a chain without an error."""
    target = standard(20)
    chain = make(target, gaussian_log_density)
    return max(scores_after(chain, target, num_chains=NUM_CHAINS).values())


def planted_jobs(rows: list[Row], laws: list[Callable[..., Chain]]) -> list[Callable[[], Planted]]:
    """All planted errors of these kernels, not yet run."""
    of_every = [row for row in rows if not row.only]
    jobs: list[Callable[[], Planted]] = [partial(too_large, row) for row in of_every]
    jobs += [partial(repeated_keys, row) for row in of_every]
    special = {
        "mala": [wrong_proposal_variance],
        "pcn": [reference_twice],
        "interacting": [uncorrected_partners],
        "gibbs_precisions": [wrong_shape],
        "nuts": [missing_jacobian],
    }
    jobs += [partial(plant, row) for row in rows for plant in special.get(row.name, [])]
    for make in laws:
        jobs += [
            partial(planted_in_law, make, "gradient 5 % too large", factor=FACTOR),
            partial(planted_in_law, make, "the same key in every step", repeat_keys=True),
            partial(planted_in_law, make, "half the noise's variance", noise=0.5),
        ]
    if laws:
        jobs.append(partial(too_large, SMALL_STEPS))
    return jobs


def is_caught(planted: Planted) -> bool:
    """Seen with the error, not seen without."""
    return bool(np.isfinite(planted.right)) and planted.right < 4.5 and planted.wrong > 8
