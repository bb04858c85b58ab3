"""A small weighted data set in place of the large one."""

from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray
from scipy.linalg import solve
from scipy.optimize import Bounds, minimize
from sklearn.cluster import kmeans_plusplus
from sklearn.metrics import pairwise_distances_argmin

from credence.density.posterior import (
    BayesianModel,
    Data,
    Position,
    Posterior,
    flat_log_prior,
    in_memory,
)
from credence.engine.blocks import Block
from credence.engine.driver import Driver
from credence.engine.phases import Adapter
from credence.engine.plan import Plan
from credence.errors import check_numbers, require_positive
from credence.kernels.base import Recipe
from credence.kernels.evaluation.evaluation import evaluation
from credence.methods.surrogate.emulators.base import Emulated, Emulator, Points
from credence.methods.surrogate.fitting import Equations, num_held_out
from credence.models.likelihoods.numbers import LocationScale

PENALTIES = 10.0 ** np.arange(-6.0, 0.0)
"""Ridge penalties tried, in units of the Gram matrix's mean diagonal."""
CANDIDATES = 50
"""Rows per input among which the inputs are chosen."""
NUM_INPUTS = 600
"""Default number of the coreset's inputs."""
MOST_WHOLE = 2000
"""Rows that are taken as they are: one costs as much as an input, and nothing is to be learnt."""
MOST_DESCENT = 1000
"""Steps towards weights >= 0 where blocks do not settle."""


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
        check_numbers(self)
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
    ) -> "PseudoObservations":
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
        rows: "PseudoObservations",
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


class PseudoObservations(NamedTuple):
    """Inputs, each with several targets."""

    x: Float[Array, "input *feature"]
    y: Array
    """(input, target, dimension), or labels (input, target)."""
    weight: Float[Array, "input target"]
    """How many rows each stands for."""
    anchor: Float[Array, "input target"]
    """Log likelihood at a typical parameter, subtracted."""


def themselves(data: Data) -> PseudoObservations:
    """All rows, each with its own target."""
    anchor = jnp.zeros_like(data.weight) if data.anchor is None else data.anchor
    return PseudoObservations(data.x, data.y[:, None], data.weight[:, None], anchor[:, None])


@dataclass(frozen=True)
class CoresetLikelihood:
    """Log likelihood of pseudo-observations."""

    model: BayesianModel

    def __call__(self, position: Position, rows: PseudoObservations) -> Float[Array, ""]:
        return jnp.vdot(rows.weight, terms(position, rows, self.model), precision="highest")


def terms(
    position: Position, rows: PseudoObservations, model: BayesianModel
) -> Float[Array, "input target"]:
    """Log likelihood of every pseudo-observation, from its anchor."""
    params = model.unravel(position, Data(rows.x, rows.y[:, 0], rows.weight[:, 0]))
    outputs = model.network.apply(params.network, rows.x)
    log_prob = lambda y: model.likelihood.log_prob(params.likelihood, outputs, y)  # noqa: E731
    return jax.vmap(log_prob, 1, 1)(rows.y) - rows.anchor


jitted_terms = jax.jit(terms, static_argnames="model")


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


@partial(jax.jit, static_argnames="model")
def every_label(position: Position, x: Any, data: Data, *, model: BayesianModel) -> Any:
    """Labels (input, label), and their probabilities."""
    params = model.unravel(position, data)
    outputs = model.network.apply(params.network, x)
    num_labels = max(2, outputs.shape[-1])
    labels = jnp.broadcast_to(jnp.arange(num_labels, dtype=data.y.dtype), (len(x), num_labels))
    log_prob = lambda y: model.likelihood.log_prob(params.likelihood, outputs, y)  # noqa: E731
    return labels, jnp.exp(jax.vmap(log_prob, 1, 1)(labels))


@partial(jax.jit, static_argnames="model")
def to_both_sides(position: Position, x: Any, data: Data, *, model: BayesianModel) -> Any:
    """Targets (input, 1 + 2 d, d) at the prediction and at sqrt(3 d) scales to its sides, with
    shares that have the noise's variance: weights of Gauss-Hermite quadrature where d = 1."""
    params = model.unravel(position, data)
    outputs = model.network.apply(params.network, x)
    likelihood = cast(LocationScale, model.likelihood)
    location, scale = likelihood.location_scale(params.likelihood, outputs)
    num_dims = location.shape[1]
    unit = jnp.eye(num_dims, dtype=location.dtype)
    sides = (3 * num_dims) ** 0.5 * jnp.concatenate([0 * unit[:1], unit, -unit])
    share = jnp.full(1 + 2 * num_dims, 1 / (6 * num_dims), x.dtype).at[0].set(2 / 3)
    return location[:, None] + scale[:, None] * sides, jnp.broadcast_to(share, (len(x), len(sides)))


@partial(jax.jit, static_argnames="model")
def without_prior(
    state: Any, data: Data, *, model: BayesianModel
) -> tuple[Float[Array, " draw"], Float[Array, "draw weight"]]:
    """Log likelihoods and their gradients, from those of the log density."""
    prior = jax.value_and_grad(flat_log_prior(model))
    values, gradients = jax.lax.map(lambda position: prior(position, data), state.position)
    return state.log_density - values, state.gradient - gradients


def row_terms(
    position: Position, rows: PseudoObservations, *, model: BayesianModel
) -> tuple[Float[Array, " term"], Float[Array, "term weight"]]:
    """Log likelihood of every pseudo-observation from its anchor, and its gradient."""

    def one(position: Position, row: PseudoObservations) -> Float[Array, " target"]:
        return terms(position, jax.tree.map(lambda leaf: leaf[None], row), model)[0]

    gradients = jax.vmap(jax.jacrev(one), (None, 0))(position, rows)
    return terms(position, rows, model).ravel(), gradients.reshape(-1, len(position))


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


def nonnegative(
    fit: Equations,
    held_out: Equations,
    before: Float[np.ndarray, " term"],
    penalties: Float[np.ndarray, " penalty"],
) -> Float[np.ndarray, " term"]:
    """Least squares with weights >= 0 and a ridge towards the weights before.

    The penalty is the one whose weights, of any sign, leave least of the held-out equations.
    """
    values, vectors = np.linalg.eigh(fit.gram)
    values, rotated = np.maximum(values, 0), vectors.T @ fit.moment
    ridge = vectors.T @ before

    def coordinates(penalty: float) -> Float[np.ndarray, " term"]:
        return (rotated + penalty * ridge) / (values + penalty)

    best = min(penalties, key=lambda each: held_out.squared_error(vectors @ coordinates(each)))
    gram = (vectors * (values + best)) @ vectors.T  # of single precision: some values were below 0
    return nonnegative_minimum(gram, fit.moment + best * before)


def nonnegative_minimum(
    gram: Float[np.ndarray, "term term"], moment: Float[np.ndarray, " term"]
) -> Float[np.ndarray, " term"]:
    """Minimum of v . gram v / 2 - moment . v over v >= 0, gram positive definite.

    Block principal pivoting: Portugal, Judice & Vicente, "A comparison of block pivoting and
    interior-point algorithms for linear least squares problems with nonnegative variables" (1994).
    `scipy.optimize.nnls` frees one term at a time, from none; here nearly all are free in the end.
    Where blocks do not settle (many terms say nearly the same) L-BFGS-B goes on, to an optimum that
    is near enough: their rule for one term at a time may take more steps than anybody can wait for.
    """
    is_free, fewest, patience = np.ones(len(moment), bool), len(moment) + 1, 3
    v = np.zeros(len(moment))
    while patience >= 0:
        v[:] = 0.0
        v[is_free] = solve(gram[np.ix_(is_free, is_free)], moment[is_free], assume_a="pos")
        slope = gram @ v - moment
        is_wrong = np.where(is_free, v < 0, slope < -1e-10 * np.abs(moment).max())
        if not np.any(is_wrong):
            return v
        patience = 3 if np.sum(is_wrong) < fewest else patience - 1
        fewest = min(fewest, int(np.sum(is_wrong)))
        is_free ^= is_wrong
    return descended(gram, moment, np.maximum(v, 0.0))


def descended(
    gram: Float[np.ndarray, "term term"],
    moment: Float[np.ndarray, " term"],
    start: Float[np.ndarray, " term"],
) -> Float[np.ndarray, " term"]:
    """The same minimum by projected quasi-Newton steps, in units in which the diagonal is 1."""
    scale = 1.0 / np.sqrt(np.diag(gram))
    unit = scale[:, None] * gram * scale

    def value_and_slope(v: np.ndarray) -> tuple[float, np.ndarray]:
        product = unit @ v
        return float(v @ (0.5 * product - scale * moment)), product - scale * moment

    options = {"maxiter": MOST_DESCENT, "maxfun": 2 * MOST_DESCENT, "maxcor": 30}
    found = minimize(
        value_and_slope, start / scale, jac=True, method="L-BFGS-B",
        bounds=Bounds(0.0, np.inf), options=options,
    )  # fmt: skip
    return scale * found.x
