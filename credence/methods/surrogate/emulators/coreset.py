"""A small weighted data set in place of the large one."""

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray
from sklearn.cluster import kmeans_plusplus
from sklearn.metrics import pairwise_distances_argmin

from credence.density.data import Data, in_memory
from credence.density.posterior import BayesianModel, Posterior
from credence.engine.blocks import Block
from credence.engine.driver import Driver
from credence.engine.phases import Adapter
from credence.engine.plan import Plan
from credence.errors import require_positive
from credence.kernels.base import Recipe
from credence.kernels.evaluation.evaluation import evaluation
from credence.methods.surrogate.emulators.base import (
    Emulated,
    Emulator,
    Points,
    without_prior,
)
from credence.methods.surrogate.emulators.nonnegative import nonnegative
from credence.methods.surrogate.emulators.pseudo_observations import (
    CoresetLikelihood,
    PseudoObservations,
    every_label,
    jitted_terms,
    row_terms,
    terms,
    themselves,
    to_both_sides,
)
from credence.methods.surrogate.fitting import Equations, num_held_out

PENALTIES = 10.0 ** np.arange(-6.0, 0.0)
"""Ridge penalties tried, in units of the Gram matrix's mean diagonal."""
CANDIDATES = 50
"""Rows per input among which the inputs are chosen."""
NUM_INPUTS = 600
"""Default number of the coreset's inputs."""
MOST_WHOLE = 2000
"""Rows that are taken as they are: one costs as much as an input, and nothing is to be learnt."""


@dataclass(frozen=True, kw_only=True)
class Coreset(Emulator):
    """A few pseudo-observations that say about as much as all rows:

        l(w) ~ sum_kt v_kt log p(y_kt | x_k, w),    v_kt >= 0.

    The inputs x_k are rows far from each other (k-means++), and count as many rows as they are the
    nearest of. Each has every label, or a target at either side of a prediction in all dimensions;
    these stand for what the likeliest known weights expect. So far

        l(w) = - sum_k n_k KL(p(. | x_k, w*) | p(. | x_k, w))

    up to a constant, a divergence from w* by quadrature over the inputs. Draws of the calibration
    then move the v_kt, such that values and gradients are those of all rows at the draws w_j,

        sum_j |S (grad l(w_j) - sum v_kt grad l_kt(w_j))|^2 + (l(w_j) - sum v_kt l_kt(w_j))^2,

    S the standard deviations of the weights, plus a ridge towards the weights before that held-out
    draws choose. The sparse regression of log likelihoods of Campbell & Broderick, "Automated
    scalable Bayesian inference via Hilbert coresets" (2019), in the norm of their section 4 without
    its random projection, on targets that need not be data, as in Manousakis, Masegosa &
    Broderick's "Bayesian pseudocoresets" (2020). It inherits the network's symmetries: what holds
    at one mode holds at its copies. The error is one of quadrature over the inputs, the same for
    any number of rows. Rows in memory that are no more than the inputs are taken as they are, and
    there is no error.

    Args:
        num_inputs: of pseudo-observations; None takes 600, or all rows of at most 2000.
        num_draws: of the calibration, the last of all chains, whose gradients on all rows are
            computed.
    """

    name: str = field(default="coreset", init=False)

    num_inputs: int | None = None
    num_draws: int = 200

    def __post_init__(self) -> None:
        super().__post_init__()
        require_positive(num_inputs=self.num_inputs, num_draws=self.num_draws)

    def is_whole(self, posterior: Posterior) -> bool:
        """Whether there are no more rows than inputs; see `Emulator.is_whole`."""
        most = self.num_inputs or MOST_WHOLE
        return posterior.data.rows.in_memory and posterior.num_points <= most

    def fit(
        self, key: PRNGKeyArray, points: Points, posterior: Posterior, data: Data, driver: Driver
    ) -> Emulated:
        """Choose pseudo-observations, and fit their weights to the likelihoods at the points."""
        key_inputs, key_order, key_phase = jax.random.split(key, 3)
        is_all = self.is_whole(posterior)
        if is_all:
            rows = themselves(data)
        else:
            rows = self._before(key_inputs, points, posterior, data)
            if points.positions.shape[1] > 1:
                weights = self._fitted(key_order, key_phase, rows, points, posterior, data, driver)
                rows = rows._replace(weight=jnp.asarray(weights, rows.weight.dtype))
        arrays = jax.tree.map(lambda leaf: leaf[None], rows)
        flops = 2.0 * len(rows.x) * posterior.num_weights
        return Emulated(CoresetLikelihood(posterior.model), arrays, flops, is_likelihood=is_all)

    def _before(
        self, key: PRNGKeyArray, points: Points, posterior: Posterior, data: Data
    ) -> PseudoObservations:
        """What the likeliest weights expect at inputs that stand for all rows."""
        flat = points.positions.reshape(-1, posterior.num_weights)
        likeliest = jnp.asarray(flat[np.argmax(points.log_densities)])
        num_inputs = self.num_inputs or NUM_INPUTS
        key_part, key_spread = jax.random.split(key)
        part = in_memory(key_part, data)
        x, weight = np.asarray(part.x), np.asarray(part.weight)
        chosen, counts = spread_out(key_spread, x, weight, num_inputs)
        x = jnp.asarray(x[chosen])
        expected = every_label if data.y.ndim == 1 else to_both_sides
        y, shares = expected(likeliest, x, data, model=posterior.model)
        rows = PseudoObservations(
            x, y, jnp.asarray(counts, x.dtype)[:, None] * shares, jnp.zeros_like(shares)
        )
        return rows._replace(anchor=jitted_terms(likeliest, rows, model=posterior.model))

    def _fitted(
        self,
        key_order: PRNGKeyArray,
        key_phase: PRNGKeyArray,
        rows: PseudoObservations,
        points: Points,
        posterior: Posterior,
        data: Data,
        driver: Driver,
    ) -> Float[np.ndarray, "input target"]:
        """Weights that give values and gradients of all rows at the last draws."""
        newest = points.positions[:, -max(2, self.num_draws // len(points.positions)) :]
        std = newest.std(axis=1).mean(axis=0)
        flat = newest.reshape(-1, posterior.num_weights)
        positions = jax.random.permutation(key_order, jnp.asarray(flat))

        def update(weights: Any, block: Block) -> np.ndarray:
            state = block.states
            values, gradients = without_prior(state, data, model=posterior.model)
            parts = np.asarray(values, float), np.asarray(gradients * std, float)
            return solved(positions, rows, std, *parts, model=posterior.model).astype(std.dtype)

        plan = Plan(
            Recipe(evaluation, posterior.log_density),
            "emulate",
            Adapter(np.zeros(rows.weight.shape, std.dtype), lambda weights: {}, update),
            num_steps=1,
            keep_draws=False,
        )
        return driver.phase("gradients", key_phase, plan, positions, data).memory


def spread_out(
    key: PRNGKeyArray,
    x: Float[np.ndarray, "row *feature"],
    weight: Float[np.ndarray, " row"],
    num_inputs: int,
) -> tuple[Int[np.ndarray, " input"], Float[np.ndarray, " input"]]:
    """Rows far from each other, and the weight of all rows that are nearest to each.

    Seeds of Arthur & Vassilvitskii, "k-means++: the advantages of careful seeding" (2007): rare
    rows, about which rows at random say nothing, get inputs of their own.
    """
    flat, num_inputs = x.reshape(len(x), -1), min(num_inputs, len(x))
    key_some, key_seed = jax.random.split(key)
    some = np.asarray(jax.random.permutation(key_some, len(x)))[: CANDIDATES * num_inputs]
    seed = int(jax.random.randint(key_seed, (), 0, 2**31 - 1))
    _, index = kmeans_plusplus(flat[some], num_inputs, random_state=seed, n_local_trials=1)
    chosen = some[np.unique(index)]
    counts = np.bincount(pairwise_distances_argmin(flat, flat[chosen]), weight, len(chosen))
    return chosen[counts > 0], counts[counts > 0]


def solved(
    positions: Float[Array, "draw weight"],
    rows: PseudoObservations,
    std: Float[np.ndarray, " weight"],
    values: Float[np.ndarray, " draw"],
    gradients: Float[np.ndarray, "draw weight"],
    *,
    model: BayesianModel,
) -> Float[np.ndarray, "input target"]:
    """Weights >= 0 of the pseudo-observations, by the penalty that suits held-out draws.

    The penalty on a change is in proportion to 1 / weight before: what stands for many rows moves.

    Args:
        rows: with the weights before.
        values, gradients: to match, the latter times std.
    """
    before = np.asarray(rows.weight, float).ravel()
    scale = np.sqrt(np.maximum(before / before.mean(), 1e-3))
    count = num_held_out(len(positions))
    targets = np.concatenate([gradients, (values - values.mean())[:, None]], axis=1)
    targets = jnp.asarray(targets, std.dtype)
    means = row_means(positions, rows, model=model)
    sums = partial(row_products, rows=rows, std=jnp.asarray(std), means=means, model=model)

    def equations(part: slice) -> Equations:
        gram, moment, total = (
            np.asarray(each, float) for each in sums(positions[part], targets[part])
        )
        return Equations(scale[:, None] * gram * scale, scale * moment, total)

    held_out, fit = equations(slice(count)), equations(slice(count, None))
    penalties = float(np.mean(np.diag(fit.gram))) * PENALTIES
    found = nonnegative(fit, held_out, before / scale, penalties)
    return (scale * found).reshape(rows.weight.shape)


@partial(jax.jit, static_argnames="model")
def row_means(
    positions: Float[Array, "draw weight"], rows: PseudoObservations, *, model: BayesianModel
) -> Float[Array, " term"]:
    """Log likelihood of every pseudo-observation, mean over draws."""
    return jnp.mean(
        jax.lax.map(lambda position: terms(position, rows, model).ravel(), positions), axis=0
    )


@partial(jax.jit, static_argnames="model")
def row_products(
    positions: Float[Array, "draw weight"],
    targets: Float[Array, "draw equation"],
    *,
    rows: PseudoObservations,
    std: Float[Array, " weight"],
    means: Float[Array, " term"],
    model: BayesianModel,
) -> tuple[Float[Array, "term term"], Float[Array, " term"], Float[Array, ""]]:
    """Sums over draws that make `Equations`, with one draw's gradients in memory at a time."""

    def add(sums: Any, draw: Any) -> tuple[Any, None]:
        position, target = draw
        values, gradients = row_terms(position, rows, model=model)
        found = jnp.concatenate([gradients * std, (values - means)[:, None]], axis=1)
        return (sums[0] + found @ found.T, sums[1] + found @ target), None

    zeros = jnp.zeros((len(means), len(means)), means.dtype), jnp.zeros_like(means)
    (gram, moment), _ = jax.lax.scan(add, zeros, (positions, targets))
    return gram, moment, jnp.sum(targets**2)
