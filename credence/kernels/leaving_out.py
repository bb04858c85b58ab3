"""Chains that each leave out a part of the rows.

What a chain says of rows that it has not seen is what it says of new ones. So chains that leave out
one part each score a model by cross-validation, all of them in one compiled program.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from credence.density.data import Data
from credence.density.posterior import LogDensity, Position
from credence.kernels.base import Kernel


class LeavingOut(NamedTuple):
    """The state of a chain, and the first part of the rows that it leaves out."""

    state: Any
    fold: Int[Array, ""]

    @property
    def position(self) -> Float[Array, "*chain weight"]:
        """The weights at which the chain is, or the chains are."""
        return self.state.position


def leaving_out(
    log_density: LogDensity,
    *,
    build: Callable[..., Kernel],
    num_folds: int,
    num_left: int = 1,
    **settings: Any,
) -> Kernel:
    """Move a chain by another kernel on the rows that are in none of the folds it leaves out.

    Data have a `fold` for every row. `init` takes (position, fold) in place of a position: a chain
    leaves out `num_left` folds from this one on, after the last comes the first.

    Args:
        log_density: (position, data) -> log density, a sum over rows with their weights, in nats.
        build: builds the kernel that moves the chain.
        num_folds: into which the rows are divided.
        num_left: folds that the chain leaves out.
        settings: of the kernel that moves the chain.
    """
    kernel = build(log_density, **settings)

    def seen(data: Data, fold: Int[Array, ""]) -> Data:
        return data._replace(weight=data.weight * ~is_left_out(data, fold, num_folds, num_left))

    def init(start: tuple[Position, Int[Array, ""]], data: Data) -> LeavingOut:
        position, fold = start
        return LeavingOut(kernel.init(position, seen(data, fold)), fold)

    def step(key: PRNGKeyArray, state: LeavingOut, data: Data) -> tuple[LeavingOut, Any]:
        new, info = kernel.step(key, state.state, seen(data, state.fold))
        return LeavingOut(new, state.fold), info

    return Kernel(init, step)  # type: ignore[arg-type]  # init takes a pair


def is_left_out(data: Data, fold: Int[Array, ""], num_folds: int, num_left: int = 1) -> Any:
    """Whether each row is in one of `num_left` folds, from `fold` on."""
    assert data.fold is not None
    return jnp.mod(data.fold - fold, num_folds) < num_left
