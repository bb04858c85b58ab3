"""A small weighted data set in place of the large one."""

from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray
from scipy.optimize import nnls

from credence.blocks import Block
from credence.kernels.base import Recipe
from credence.kernels.evaluation import evaluation
from credence.methods.emulators.base import Emulated, Emulator, Points
from credence.methods.fitting import Equations, num_held_out
from credence.models.likelihoods import LocationScale
from credence.models.priors import require_positive
from credence.posterior import (
    BayesianModel,
    Data,
    Position,
    Posterior,
    flat_log_likelihood,
    flat_log_prior,
    pointwise,
)
from credence.run import Adapter, Driver

SPREAD = 1.7
"""Of a pseudo-target from the mean prediction, in standard deviations of the noise. More than one,
so that three of them can have the noise's variance with positive weights."""
PENALTIES = np.array([1e-6, 1e-5, 1e-4, 1e-3])
"""Ridge penalties tried, in units of the Gram matrix's mean diagonal."""


@dataclass(frozen=True, kw_only=True)
class Coreset(Emulator):
    """A few pseudo-observations that say about as much as all rows:

        l(w) ~ sum_k v_k log p(y_k | x_k, w),    v_k >= 0.

    Inputs x_k are rows at random, each with every label, or with three targets around the mean
    prediction there; the v_k make values and gradients those of all rows at the draws w_j of the
    calibration,

        sum_j |S (grad l(w_j) - sum_k v_k grad l_k(w_j))|^2 + (l(w_j) - sum_k v_k l_k(w_j))^2,

    S the standard deviations of the weights, plus a ridge towards equal weights that held-out draws
    choose. The sparse regression of log likelihoods of Campbell & Broderick, "Automated scalable
    Bayesian inference via Hilbert coresets" (2019), in the norm of their section 4 without its
    random projection, on targets that need not be data, as in Manousakis, Masegosa & Broderick's
    "Bayesian pseudocoresets" (2020). It inherits the network's symmetries: what holds at one mode
    holds at its copies. The error is one of quadrature over the inputs, the same for any number of
    rows.

    Args:
        num_inputs: candidates for x_k.
        num_draws: of the calibration, whose gradients on all rows are computed.
    """

    name: str = field(default="coreset", init=False)

    num_inputs: int = 200
    num_draws: int = 200

    def __post_init__(self) -> None:
        require_positive(num_inputs=self.num_inputs, num_draws=self.num_draws)

    def fit(
        self, key: PRNGKeyArray, points: Points, posterior: Posterior, data: Data, driver: Driver
    ) -> Emulated:
        key_inputs, key_order, key_phase = jax.random.split(key, 3)
        flat = points.positions.reshape(-1, posterior.num_weights)
        chosen = np.linspace(0, len(flat) - 1, min(self.num_draws, len(flat))).astype(int)
        positions = jax.random.permutation(key_order, jnp.asarray(flat[chosen]))
        std = points.positions.std(axis=1).mean(axis=0)
        rows, usual = self._candidates(key_inputs, positions, posterior, data)

        def update(weights: Any, block: Block) -> np.ndarray:
            state = block.states
            values, gradients = without_prior(state, data, model=posterior.model)
            parts = np.asarray(values, float), np.asarray(gradients * std, float)
            found = solved(positions, rows, std, *parts, usual, model=posterior.model)
            return found.astype(std.dtype)

        weights = driver.phase(
            "gradients",
            key_phase,
            Recipe(evaluation, posterior.log_density),
            positions,
            data,
            Adapter(usual.astype(std.dtype), lambda weights: {}, update),
            num_steps=1,
            keep_draws=False,
        ).memory
        kept = np.flatnonzero(np.asarray(weights) > 0)
        rows = jax.tree.map(lambda leaf: jnp.asarray(leaf)[kept], rows._replace(weight=weights))
        arrays = jax.tree.map(lambda leaf: leaf[None], rows)
        flops = 2.0 * len(kept) * posterior.num_weights
        return Emulated(flat_log_likelihood(posterior.model), arrays, flops)

    def _candidates(
        self, key: PRNGKeyArray, positions: Any, posterior: Posterior, data: Data
    ) -> tuple[Data, Float[np.ndarray, " row"]]:
        """Pseudo-observations, anchored as the data are, and their equal weights."""
        num_inputs, model = min(self.num_inputs, len(data.x)), posterior.model
        chosen = np.asarray(jax.random.permutation(key, len(data.x)))[:num_inputs]
        x = jnp.asarray(np.asarray(data.x)[np.sort(chosen)])
        if data.y.ndim == 1:
            x, y, shares = every_label(positions, x, data, model=model)
        else:
            x, y = around_the_mean(positions, x, data, model=model)
            shares = jnp.full(len(x), num_inputs / len(x))
        rows = Data(x, y, jnp.ones(len(x), data.weight.dtype))
        anchor = pointwise(positions[0], rows, model=model)
        usual = np.asarray(shares, float) * float(np.sum(np.asarray(data.weight))) / num_inputs
        return rows._replace(anchor=anchor), usual


@partial(jax.jit, static_argnames="model")
def every_label(positions: Any, x: Any, data: Data, *, model: BayesianModel) -> Any:
    """Every input with every label, and the mean probability of each."""
    one = lambda position: model.network.apply(model.unravel(position, data).network, x)  # noqa: E731
    num_labels = max(2, jax.eval_shape(one, positions[0]).shape[-1])
    x_all = jnp.repeat(x, num_labels, axis=0)
    y_all = jnp.tile(jnp.arange(num_labels, dtype=data.y.dtype), len(x))

    def probabilities(position: Position) -> Float[Array, " row"]:
        return jnp.exp(model.pointwise_log_likelihood(model.unravel(position, data), x_all, y_all))

    return x_all, y_all, jnp.mean(jax.lax.map(probabilities, positions), axis=0)


@partial(jax.jit, static_argnames="model")
def around_the_mean(positions: Any, x: Any, data: Data, *, model: BayesianModel) -> Any:
    """Every input with its mean prediction, and with targets to both sides in each dimension."""
    likelihood = cast(LocationScale, model.likelihood)

    def location_scale(position: Position) -> Any:
        params = model.unravel(position, data)
        outputs = model.network.apply(params.network, x)
        location, scale = likelihood.location_scale(params.likelihood, outputs)
        return location, jnp.broadcast_to(scale, location.shape)

    location, scale = (part.mean(axis=0) for part in jax.lax.map(location_scale, positions))
    unit = jnp.eye(location.shape[1], dtype=location.dtype)
    sides = SPREAD * jnp.concatenate([0 * unit[:1], unit, -unit])
    y = location[:, None] + scale[:, None] * sides
    return jnp.repeat(x, len(sides), axis=0), y.reshape(-1, location.shape[1])


@partial(jax.jit, static_argnames="model")
def without_prior(
    state: Any, data: Data, *, model: BayesianModel
) -> tuple[Float[Array, " draw"], Float[Array, "draw weight"]]:
    """Log likelihoods and their gradients, from those of the log density."""
    prior = jax.value_and_grad(flat_log_prior(model))
    values, gradients = jax.lax.map(lambda position: prior(position, data), state.position)
    return state.log_density - values, state.gradient - gradients


@partial(jax.jit, static_argnames="model")
def row_terms(
    position: Position, rows: Data, *, model: BayesianModel
) -> tuple[Float[Array, " row"], Float[Array, "row weight"]]:
    """Log likelihood of every row from the anchor, and its gradient."""

    def one(position: Position, row: Data) -> Float[Array, ""]:
        alone = jax.tree.map(lambda leaf: leaf[None], row)
        return flat_log_likelihood(model)(position, alone)

    return jax.vmap(jax.value_and_grad(one), (None, 0))(position, rows)


def solved(
    positions: Float[Array, "draw weight"],
    rows: Data,
    std: Float[np.ndarray, " weight"],
    values: Float[np.ndarray, " draw"],
    gradients: Float[np.ndarray, "draw weight"],
    usual: Float[np.ndarray, " row"],
    *,
    model: BayesianModel,
) -> Float[np.ndarray, " row"]:
    """Weights >= 0 of the rows, by the penalty that leaves least at held-out draws.

    Args:
        values, gradients: to match, the latter times std.
        usual: weights that the penalty draws to.
    """
    count = num_held_out(len(positions))
    targets = np.concatenate([gradients, (values - values.mean())[:, None]], axis=1)
    targets = jnp.asarray(targets, std.dtype)
    means = row_means(positions, rows, model=model)
    sums = partial(row_products, rows=rows, std=jnp.asarray(std), means=means, model=model)
    held_out, fit = (
        Equations(*(np.asarray(each, float) for each in sums(positions[part], targets[part])))
        for part in (slice(count), slice(count, None))
    )
    unit = float(np.mean(np.diag(fit.gram)))
    return min(nonnegative(fit, usual, unit * PENALTIES), key=held_out.squared_error)


@partial(jax.jit, static_argnames="model")
def row_means(
    positions: Float[Array, "draw weight"], rows: Data, *, model: BayesianModel
) -> Float[Array, " row"]:
    """Log likelihood of every row, mean over draws."""
    return jnp.mean(
        jax.lax.map(lambda position: row_terms(position, rows, model=model)[0], positions), axis=0
    )


@partial(jax.jit, static_argnames="model")
def row_products(
    positions: Float[Array, "draw weight"],
    targets: Float[Array, "draw term"],
    *,
    rows: Data,
    std: Float[Array, " weight"],
    means: Float[Array, " row"],
    model: BayesianModel,
) -> tuple[Float[Array, "row row"], Float[Array, " row"], Float[Array, ""]]:
    """Of `Equations`: sums over draws, one draw's gradients of the rows in memory at a time."""

    def add(sums: Any, draw: Any) -> tuple[Any, None]:
        position, target = draw
        values, gradients = row_terms(position, rows, model=model)
        terms = jnp.concatenate([gradients * std, (values - means)[:, None]], axis=1)
        return (sums[0] + terms @ terms.T, sums[1] + terms @ target), None

    zeros = jnp.zeros((len(means), len(means)), means.dtype), jnp.zeros_like(means)
    (gram, moment), _ = jax.lax.scan(add, zeros, (positions, targets))
    return gram, moment, jnp.sum(targets**2)


def nonnegative(
    equations: Equations, usual: Float[np.ndarray, " row"], penalties: Float[np.ndarray, " penalty"]
) -> list[Float[np.ndarray, " row"]]:
    """Least squares with weights >= 0, for ridge penalties towards the usual weights."""
    values, vectors = np.linalg.eigh(equations.gram)
    found = []
    for penalty in penalties:
        roots = np.sqrt(np.maximum(values, 0) + penalty)
        moment = vectors.T @ (equations.moment + penalty * usual)
        found.append(nnls(roots[:, None] * vectors.T, moment / roots)[0])
    return found
