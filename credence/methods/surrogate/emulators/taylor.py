"""Part of the rows, and a Taylor series for what they leave out."""

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from credence.density.data import Data, minibatch
from credence.density.posterior import BayesianModel, Position, Posterior, flat_log_likelihood
from credence.engine.driver import Driver
from credence.engine.plan import Plan
from credence.errors import InputError, OutOfTime, require_positive
from credence.kernels.base import Recipe
from credence.kernels.evaluation.evaluation import evaluation
from credence.kernels.evaluation.hessian import hessian_columns
from credence.methods.surrogate.emulators.base import Emulated, Emulator, Points

MOST_QUADRATIC = 5000
"""Weights up to which a Hessian is computed: its columns cost two gradients each."""
SHARE_OF_ROWS = 50
"""One in so many rows stays, where their number is not given."""


@dataclass(frozen=True, kw_only=True)
class Taylor(Emulator):
    """A random part S of the rows, with control variates:

        l(w) ~ l_S(w) + g . (w - m) + (w - m)' H (w - m) / 2,    l_S = N / |S| sum over S of l_n,

    g and H the gradient and Hessian of l - l_S at m, the likeliest calibration point of each chain.
    The error is that of the third order and of sampling S: it falls as the posterior narrows, so
    many rows favour it. The control variates of Quiroz, Kohn, Villani & Tran, "Speeding up MCMC by
    efficient data subsampling" (2019), equation (3.3), on a fixed S; without rows the Laplace
    approximation of the likelihood.

    Args:
        num_rows: rows of S; 0 for none; None for a fiftieth, at least 100.
        order: 2; 1 leaves out H, as networks with thousands of weights must; 0 also g; None
            chooses.
    """

    name: str = field(default="taylor", init=False)

    num_rows: int | None = None
    order: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.num_rows is not None and self.num_rows != 0:
            require_positive(num_rows=self.num_rows)
        if self.order not in (None, 0, 1, 2):
            raise InputError(f"order must be 0, 1 or 2, got {self.order}.")
        if self.num_rows == 0 and self.order in (0, 1):
            raise InputError("Without rows the series needs order=2, or it has no maximum.")

    def check(self, posterior: Posterior, num_draws: int) -> None:
        """Refuse a second-order series of inputs on disk; see `Emulator.check`."""
        if self._order(posterior) == 2 and not posterior.data.rows.in_memory:
            raise InputError(
                "Inputs on disk are read once for a value and its gradient, not for a Hessian: use "
                "Taylor(order=1) or Coreset()."
            )

    def fit(
        self, key: PRNGKeyArray, points: Points, posterior: Posterior, data: Data, driver: Driver
    ) -> Emulated:
        """Expand the log likelihood around a centre."""
        num_rows, order = self._num_rows(posterior), self._order(posterior)
        key_rows, key_gradient, key_hessian = jax.random.split(key, 3)
        chosen = some_rows(key_rows, data, num_rows)
        rows = minibatch(data, jnp.asarray(chosen), jnp.ones(len(chosen)))
        left_out = data.weight.at[chosen].add(-rows.weight) if num_rows else data.weight
        best = np.argmax(points.log_densities, axis=1)
        centres = jnp.asarray(points.positions[np.arange(len(best)), best])
        likelihood = flat_log_likelihood(posterior.model)
        others = data._replace(weight=left_out)
        plan = Plan(Recipe(evaluation, likelihood), "emulate", num_steps=1, keep_draws=False)
        zero = jnp.zeros_like(centres)
        gradient, hessian = zero, zero[..., :0]
        if order > 0:
            found = driver.phase("gradient", key_gradient, plan, centres, others)
            gradient = found.states.gradient
        num_weights = posterior.num_weights
        if order > 1:
            plan = replace(
                plan,
                recipe=Recipe(hessian_columns, likelihood),
                num_steps=num_weights,
                keep_draws=True,
                monitored=False,
            )
            columns = driver.phase("hessian", key_hessian, plan, centres, others).draws
            if columns.shape[1] == num_weights:
                hessian = jnp.asarray(0.5 * (columns + columns.swapaxes(1, 2)))
            else:
                order = self._shortened(columns.shape[1], num_weights, driver)
        return Emulated(
            TaylorLikelihood(posterior.model, num_rows > 0, order),
            Series(
                jax.tree.map(lambda leaf: jnp.stack([leaf] * len(centres)), rows),
                centres,
                gradient,
                hessian,
            ),
            2.0 * num_rows * num_weights + 2.0 * num_weights ** max(order, 1),
        )

    def _shortened(self, num_columns: int, num_weights: int, driver: Driver) -> int:
        """The order of the series where time ran out before the Hessian had all its columns.

        Raises:
            OutOfTime: where there are no rows whose likelihood gives the series a maximum.
        """
        had = f"Time was up when the Hessian had {num_columns} of {num_weights} columns"
        if self.num_rows == 0:
            raise OutOfTime(
                f"{had}, and without rows the series needs all: give more seconds, or rows."
            )
        driver.progress.say(f"{had}: the series ends with its first order.")
        return 1

    def _num_rows(self, posterior: Posterior) -> int:
        usual = max(100, posterior.num_points // SHARE_OF_ROWS)
        return min(usual if self.num_rows is None else self.num_rows, posterior.num_points)

    def _order(self, posterior: Posterior) -> int:
        if self.order is not None:
            return self.order
        if self.num_rows != 0 and not posterior.data.rows.in_memory:
            return 1
        return 2 if posterior.num_weights <= MOST_QUADRATIC or self.num_rows == 0 else 1


class Series(NamedTuple):
    """Taylor series of the log likelihood around a centre; leaves (member, ...)."""

    rows: Data
    centre: Position
    gradient: Position
    hessian: Float[Array, "weight weight"]


@dataclass(frozen=True)
class TaylorLikelihood:
    """Log likelihood of the rows kept, and the series of the others."""

    model: BayesianModel
    has_rows: bool
    order: int

    def __call__(self, position: Position, series: Series) -> Float[Array, ""]:
        away = position - series.centre
        total = jnp.zeros((), position.dtype)
        if self.has_rows:
            total = total + flat_log_likelihood(self.model)(position, series.rows)
        if self.order > 0:
            total = total + jnp.dot(series.gradient, away, precision="highest")
        if self.order > 1:
            curved = jnp.matmul(series.hessian, away, precision="highest")
            total = total + 0.5 * jnp.dot(away, curved, precision="highest")
        return total


def some_rows(key: PRNGKeyArray, data: Data, num_rows: int) -> Int[np.ndarray, " row"]:
    """Indices of rows at random, without repetition; of one where none is wanted."""
    order = jax.random.permutation(key, data.x.shape[0])
    return np.sort(np.asarray(order)[: max(num_rows, 1)])
