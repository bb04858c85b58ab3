"""What is measured for a kernel on a target: exact-start scores, bias, and ESS per gradient."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray
from scipy import stats
from tools.laws import Chain, whitened_after
from tools.targets import GaussianTarget, gaussian_log_density, z_scores

from credence.density.data import Data
from credence.density.posterior import LogDensity
from credence.ensembles.diagnostics.convergence import ess_bulk
from credence.kernels.base import Kernel
from credence.spacing import evenly_spaced

from .rows import Row
from .targets import Target

MAX_COORDINATES = 20
"""Coordinates whose moments are scored one by one, evenly spaced; chi^2 is over all."""


class Size(NamedTuple):
    """How much is drawn."""

    num_chains: int
    """Started exactly and compared with the exact law; a quarter of them from 100 weights on."""
    num_long_chains: int
    share_of_draws: float
    """Share of `Row.num_draws` drawn for the effective sample size."""

    def chains(self, dimension: int) -> int:
        """Chains for a target of this dimension."""
        return self.num_chains if dimension < 100 else self.num_chains // 4

    def draws(self, row: Row, dimension: int) -> int:
        """Draws of each long chain."""
        share = self.share_of_draws if dimension < 100 else 0.3 * self.share_of_draws
        return max(50, round(share * row.num_draws))


FULL = Size(num_chains=4000, num_long_chains=8, share_of_draws=1.0)
QUICK = Size(num_chains=1000, num_long_chains=4, share_of_draws=0.2)


class Cell(NamedTuple):
    """A kernel on a target."""

    kernel: str
    target: str
    worst: float
    """Largest deviation from the exact law, in standard errors."""
    where: str
    """The functional it belongs to."""
    memory: float
    """Correlation of starts and ends: near 1 invariance would mean nothing."""
    efficiency: float = np.nan
    """Smallest bulk ESS of coordinates and chi^2, per gradient (pCN: per density)."""


class Bias(NamedTuple):
    """An unadjusted kernel on a target it is not exact on."""

    kernel: str
    target: str
    excess: float
    """Mean square of the whitened weights, less 1."""
    error: float
    """Standard error of the bias."""


@partial(jax.jit, static_argnames=("build", "log_density", "num_steps", "repeat_keys"))
def run_chains(
    build: Callable[..., Kernel],
    log_density: LogDensity,
    num_steps: int,
    settings: dict[str, Any],
    data: Data,
    starts: Float[Array, "chain weight"],
    seed: int,
    repeat_keys: bool = False,
) -> Float[Array, "chain weight"]:
    """End positions; with the planted error `repeat_keys` all steps of a chain share a key."""
    kernel = build(log_density, **settings)

    def chain(key: PRNGKeyArray, start: Float[Array, " weight"]) -> Any:
        keys = jax.random.split(key, num_steps)
        if repeat_keys:
            keys = jnp.broadcast_to(key, keys.shape)
        state, _ = jax.lax.scan(
            lambda state, key: (kernel.step(key, state, data)[0], None),
            kernel.init(start, data),
            keys,
        )
        return state.position

    return jax.vmap(chain)(jax.random.split(jax.random.key(seed), len(starts)), starts)


@partial(jax.jit, static_argnames=("build", "log_density", "num_draws"))
def long_chains(
    build: Callable[..., Kernel],
    log_density: LogDensity,
    num_draws: int,
    settings: dict[str, Any],
    data: Data,
    starts: Float[Array, "chain weight"],
    seed: int,
) -> tuple[Float[Array, "chain draw weight"], Any]:
    """All positions, and Info with leaves (chain, draw)."""
    kernel = build(log_density, **settings)

    def chain(key: PRNGKeyArray, start: Float[Array, " weight"]) -> Any:
        def step(state: Any, key: PRNGKeyArray) -> Any:
            state, info = kernel.step(key, state, data)
            return state, (state.position, info)

        keys = jax.random.split(key, num_draws)
        return jax.lax.scan(step, kernel.init(start, data), keys)[1]

    return jax.vmap(chain)(jax.random.split(jax.random.key(seed), len(starts)), starts)


def exact_cell(row: Row, target: Target, size: Size) -> Cell:
    """Exact starts, some steps, and the exact law again."""
    starts = target.sample(1, size.chains(target.dimension))
    worst, where, memory = compare(row.build, row, target, starts)
    return Cell(row.name, target.name, worst, where, memory, efficiency(row, target, size))


def compare(
    build: Callable[..., Kernel],
    row: Row,
    target: Target,
    starts: Float[np.ndarray, "chain weight"],
    *,
    data: Data | None = None,
    log_density: LogDensity | None = None,
    repeat_keys: bool = False,
) -> tuple[float, str, float]:
    """Worst score, its functional and the memory of a kernel in a row's place, from exact starts.

    Args:
        build, data, log_density, repeat_keys: where they differ from the row's and the target's,
            a planted error.
    """
    ends = run_chains(
        build,
        log_density or target.log_density,
        row.num_steps(target),
        row.settings(target),
        target.data if data is None else data,
        starts,
        0,
        repeat_keys,
    )
    ends = np.asarray(ends)
    found = scores(target, ends)
    where = max(found, key=found.__getitem__)
    before, after = (positions - starts.mean(axis=0) for positions in (starts, ends))
    before, after = before[ends != starts], after[ends != starts]
    memory = np.corrcoef(before, after)[0, 1] if before.size else 1.0
    return found[where], where, float(memory)


def scores(target: Target, draws: Float[np.ndarray, "draw weight"]) -> dict[str, float]:
    """Worst deviations from the exact law by kind of functional, in standard errors.

    Moments and chi^2 as in `z_scores`, the distribution of the first and the last coordinate in 20
    equally likely bins (Pearson's test, as the normal deviate of equal two-sided probability), and
    the target's further functionals.
    """
    whitened = target.whiten(draws)
    found = z_scores(whitened[:, kept(target)])
    num_draws, dimension = whitened.shape
    found["chi^2"] = abs(np.mean(whitened**2) - 1) * (num_draws * dimension / 2) ** 0.5
    for name, column in (("first", whitened[:, 0]), ("last", whitened[:, -1])):
        counts = np.histogram(stats.norm.cdf(column), bins=20, range=(0, 1))[0]
        pvalue = max(stats.chisquare(counts).pvalue, 1e-300)
        found[f"distribution of the {name}"] = float(stats.norm.isf(pvalue / 2))
    if target.extra is not None:
        extra = target.extra(draws)
        error = extra.std(axis=0, ddof=1) / num_draws**0.5
        found["moments"] = float(np.max(np.abs(extra.mean(axis=0)) / error))
    return found


def kept(target: Target) -> np.ndarray:
    """Coordinates that are scored one by one."""
    return evenly_spaced(target.dimension, MAX_COORDINATES)


def efficiency(row: Row, target: Target, size: Size) -> float:
    """Smallest bulk ESS of the kept coordinates and of their sum of squares, per unit of work.

    NaN for kernels that count no work.
    """
    num_draws = size.draws(row, target.dimension)
    starts = target.sample(2, size.num_long_chains)
    positions, info = long_chains(
        row.build, target.log_density, num_draws, row.settings(target), target.data, starts, 3
    )
    work = getattr(info, "num_gradients", getattr(info, "num_evaluations", None))
    if work is None:
        return np.nan
    flat = target.scale.whiten(np.asarray(positions).reshape(-1, target.dimension))
    whitened = flat.reshape(*positions.shape)
    chi_squared = np.sum(whitened**2, axis=-1, keepdims=True)
    quantities = np.concatenate([whitened[..., kept(target)], chi_squared], axis=-1)
    return float(ess_bulk(quantities).min() / np.sum(work))


def law_cell(make: Callable[..., Chain], gaussian: GaussianTarget, size: Size) -> Cell:
    """An unadjusted kernel started in the exact stationary law of its discretisation."""
    chain = make(gaussian, gaussian_log_density)
    whitened = whitened_after(chain, gaussian, num_chains=size.chains(gaussian.dimension))
    columns = np.linspace(0, whitened.shape[1] - 1, min(MAX_COORDINATES, whitened.shape[1]))
    found = z_scores(whitened[:, columns.round().astype(int)])
    num_draws, dimension = whitened.shape
    found["chi^2"] = abs(np.mean(whitened**2) - 1) * (num_draws * dimension / 2) ** 0.5
    where = max(found, key=found.__getitem__)
    return Cell(law_name(make), gaussian.name, found[where], where, np.nan)


def law_name(make: Callable[..., Chain]) -> str:
    """The kernel a law belongs to."""
    names = {"frozen_rms": "rms_sgld, frozen", "frozen_adapted": "scale_adapted_sghmc, frozen"}
    name = make.__name__.removesuffix("_chain")
    return names.get(name, name)


def bias_cell(row: Row, target: Target, size: Size) -> Bias:
    """Exact starts, many steps: how far the mean square of the whitened weights has gone."""
    starts = target.sample(1, size.chains(target.dimension))
    ends = run_chains(
        row.build,
        target.log_density,
        row.num_steps(target),
        row.settings(target),
        target.data,
        starts,
        0,
    )
    with np.errstate(over="ignore", invalid="ignore"):  # some diverge
        squares = np.mean(target.whiten(np.asarray(ends)) ** 2, axis=1)
        error = squares.std(ddof=1) / len(squares) ** 0.5
    return Bias(row.name, target.name, float(squares.mean() - 1), float(error))
