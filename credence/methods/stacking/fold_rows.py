"""Divide rows into folds, and score networks on the fold that they have not seen."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from credence.density.data import Data
from credence.density.posterior import BayesianModel
from credence.kernels.leaving_out import LeavingOut
from credence.methods.training import Best, better_of

COMMON_VALUES = 20
"""Rows are alike as a matter of course where no column has more values."""


def assign_folds(
    y: Any, num_folds: int, seed: int = 0, weight: Any = None, groups: Any = None
) -> Int[np.ndarray, " row"]:
    """Divide rows into folds at random, alike in their targets: of any `num_folds` rows that are
    neighbours in the order of their targets, each belongs to another fold.

    Args:
        y: targets (row,) or (row, target), of which the first counts; or labels.
        weight: of the rows: those without any are divided for themselves, so that every fold has
            as many of the others as any; None where all have some.
        groups: a number for every row: rows with the same one belong to one fold, and it is groups
            that are neighbours in their mean target. None where no two do.
    """
    y = np.asarray(y).reshape(len(y), -1)[:, 0]
    if groups is not None:
        places = np.unique(groups, return_inverse=True)[1]
        each = np.ones(len(y)) if weight is None else np.asarray(weight, float)
        total = np.bincount(places, each)
        mean = np.bincount(places, each * y) / np.maximum(total, np.finfo(float).tiny)
        return assign_folds(mean, num_folds, seed, total)[places]
    random = np.random.default_rng(seed)
    is_idle = np.zeros(len(y), bool) if weight is None else np.asarray(weight) == 0
    order = np.lexsort((random.random(len(y)), y, is_idle))
    blocks = -(-len(y) // num_folds)
    fold = np.empty(len(y), np.int32)
    fold[order] = random.random((blocks, num_folds)).argsort(axis=1).ravel()[: len(y)]
    return fold


def copies(data: Data, num_folds: int) -> Int[np.ndarray, " row"] | None:
    """A number for every row, the same for rows with the same inputs and targets, of which networks
    that have seen one have seen the others; None where no two are alike.

    None as well where that says nothing, because no column has more than `COMMON_VALUES` values,
    and where fewer rows than folds differ.
    """
    columns = [np.asarray(each, np.float32).reshape(len(data.y), -1) for each in (data.x, data.y)]
    table = np.hstack([*columns, np.asarray(data.weight == 0)[:, None]]) + 0.0  # no -0
    if not any(len(np.unique(column)) > COMMON_VALUES for column in table.T):
        return None
    rows = np.ascontiguousarray(table).view(f"V{table.itemsize * table.shape[1]}")[:, 0]
    unique, places = np.unique(rows, return_inverse=True)
    return places if num_folds <= len(unique) < len(rows) else None


class FoldRows(NamedTuple):
    """Holds where the rows of every fold are, for programs that look at one fold at a time."""

    positions: Int[np.ndarray, "fold row"]
    """Positions of a fold's rows; some of them twice where other folds have more."""
    is_there: Bool[np.ndarray, "fold row"]
    """Whether a position is there for the first time."""

    @classmethod
    def of(cls, fold: Int[np.ndarray, " point"], num_folds: int) -> "FoldRows":
        """Find the rows of every fold, given the fold of every row."""
        found = [np.flatnonzero(fold == each) for each in range(num_folds)]
        most = max(map(len, found))
        return cls(
            np.stack([np.resize(rows, most) for rows in found]),
            np.stack([np.arange(most) < len(rows) for rows in found]),
        )

    def at(self, data: Data, fold: Int[Array, ""]) -> Data:
        """The rows of one fold; what is there twice has no weight the second time."""
        positions = jnp.asarray(self.positions)[fold]
        weight = data.weight[positions] * jnp.asarray(self.is_there)[fold]
        return Data(data.rows.gather(positions), data.y[positions], weight)


@partial(jax.jit, static_argnames="model")
def improve_on_next_fold(
    best: Best, states: LeavingOut, data: Data, rows: FoldRows, *, model: BayesianModel
) -> Best:
    """Keep, member by member, what predicts the fold after its own better."""

    def loss(state: tuple[Array, Array]) -> Float[Array, ""]:
        position, fold = state
        left = rows.at(data, (fold + 1) % len(rows.positions))
        return -model.log_likelihood(model.unravel(position, left), left) / jnp.sum(left.weight)

    return better_of(best, states.position, jax.lax.map(loss, (states.position, states.fold)))


@partial(jax.jit, static_argnames="model")
def unseen_log_prob(
    states: LeavingOut, data: Data, rows: FoldRows, *, model: BayesianModel
) -> Float[Array, "fold row"]:
    """Log probability of every fold's rows, summed over the chains that have not seen it."""

    def log_probs(state: tuple[Array, Array]) -> Float[Array, " row"]:
        position, fold = state
        left = rows.at(data, fold)
        return model.pointwise_log_likelihood(model.unravel(position, left), left.x, left.y)

    by_chain = jax.lax.map(log_probs, (states.position, states.fold))
    is_of = jnp.arange(len(rows.positions))[:, None] == states.fold
    return jax.nn.logsumexp(jnp.where(is_of[..., None], by_chain, -jnp.inf), axis=1)
