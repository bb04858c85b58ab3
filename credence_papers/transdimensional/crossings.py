"""Chains that stay at their depth give p(depth + 1) / p(depth): jumps are tried from their draws.

Every kind of jump leaves the posterior as it is, there and back, so that at each pair of depths

    p(d) E_d[u] = p(d + 1) E_{d + 1}[v]

with u the probability that a jump from a network of d layers leads to d + 1, and v from d + 1 to d.
It is the acceptance ratio of Bennett, "Efficient estimation of free energy differences from Monte
Carlo data" (1976). No chain has to cross, and none has to have the right shares of depths.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from credence.density.data import Data
from credence.density.posterior import Params
from credence.methods.transdimensional.active_neurons import count_active, count_layers
from credence.methods.transdimensional.mixed_jumps import equally_likely, mixed_jump
from credence.methods.transdimensional.moves.by_name import build_layer_move
from credence.methods.transdimensional.target import Point, VariableWidth

AT_ONCE = 1000
"""Networks that jump abreast."""


def deepened(target: VariableWidth, params: Params, data: Data) -> Point:
    """A network of some layers, all as wide as there is room for, as one of the deepest ones."""
    *hidden, last = params.network
    template = target.model.template(data).network[len(hidden) : -1]
    absent = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), template)
    params = params._replace(network=(*hidden, *absent, last))
    widths = count_active(params.network).astype(jnp.int32)
    return Point(params, widths, target.log_likelihood(params, data))


@partial(jax.jit, static_argnames=("target", "kinds"))
def change_of_depth(
    key: PRNGKeyArray,
    points: Point,
    data: Data,
    *,
    target: VariableWidth,
    kinds: tuple[str, ...],
) -> Int[Array, " draw"]:
    """Let each of some networks try one jump; return 1 where it got deeper, -1 where shallower.

    Args:
        points: with a leading axis, independent of one another.
        kinds: of jumps between depths, equally likely; none that is annealed.
    """
    moves = tuple(build_layer_move(kind, target, tuning={}, settings={}) for kind in kinds)
    probabilities = equally_likely((1, len(kinds)))

    def of_one(each: tuple[PRNGKeyArray, Point]) -> Int[Array, ""]:
        key, point = each
        new, _ = mixed_jump(
            key, point, data, target=target, width_moves=(), depth_moves=moves, num_kinds=1,
            kind_probs=probabilities,
        )  # fmt: skip
        return count_layers(new.widths) - count_layers(point.widths)

    keys = jax.random.split(key, len(points.widths))
    return jax.lax.map(of_one, (keys, points), batch_size=AT_ONCE)


def rates(
    key: PRNGKeyArray,
    target: VariableWidth,
    kinds: tuple[str, ...],
    params: Params,
    data: Data,
) -> tuple[Float[np.ndarray, " run"], Float[np.ndarray, " run"]]:
    """Tell how often a jump from the draws of a run leads one layer deeper, and one shallower.

    Args:
        kinds: of jumps, as of `change_of_depth`.
        params: of networks of one depth, with leading axes (run, draw).
    """
    deepen = jax.jit(jax.vmap(partial(deepened, target, data=data)))
    num_runs = len(jax.tree.leaves(params)[0])
    change = []
    for run, key_run in enumerate(jax.random.split(key, num_runs)):
        points = deepen(jax.tree.map(lambda leaf, run=run: leaf[run], params))
        change.append(change_of_depth(key_run, points, data, target=target, kinds=kinds))
    found = np.array(change)
    return (found > 0).mean(axis=1), (found < 0).mean(axis=1)


def log_ratios(
    up: Float[np.ndarray, "step run"], down: Float[np.ndarray, "step run"]
) -> tuple[Float[np.ndarray, " depth"], Float[np.ndarray, " depth"]]:
    """Return log p(depth) - log p(first depth) of all depths, and its error.

    The error is of first order, and that of a mean over runs with independent random numbers. What
    runs of one depth say of the step to it and of that from it is not independent.

    Args:
        up: rates of all depths but the last.
        down: rates of all depths but the first.
    Returns:
        NaN from the first step on that no run made, there or back.
    """
    deeper, shallower = (
        np.where((rates > 0).any(axis=1, keepdims=True), rates.mean(axis=1, keepdims=True), np.nan)
        for rates in (up, down)
    )
    steps = np.log(deeper / shallower)[:, 0]
    per_up, per_down = up / deeper, down / shallower
    on_the_way = np.vstack([per_up[:1], per_up[1:] - per_down[:-1]]).var(axis=1, ddof=1)
    variances = np.cumsum(on_the_way) + per_down.var(axis=1, ddof=1)
    return np.append(0.0, np.cumsum(steps)), np.append(0.0, np.sqrt(variances / up.shape[1]))
