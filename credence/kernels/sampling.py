"""Kernels run by hand: a loop in one compiled program, without a driver."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, PRNGKeyArray

from credence.density.data import Data
from credence.errors import InputError, require_counts
from credence.kernels.base import Kernel

Keep = Callable[[Any, Any], Any]
"""(State, Info) after a step -> arrays to store."""


def position_of(state: Any, info: Any) -> Array:
    """Keep where the chain is."""
    return state.position


def sample(
    key: PRNGKeyArray,
    kernel: Kernel,
    start: Any,
    data: Data | None = None,
    *,
    num_draws: int,
    thinning: int = 1,
    keep: Keep = position_of,
) -> tuple[Any, Any]:
    """Run a kernel, and store what `keep` returns of every draw: nothing else takes memory.

        final, draws = sample(key, kernel, position, data, num_draws=1000)
        final, draws = sample(another_key, kernel, final, data, num_draws=1000)   # goes on

    A program is compiled for every kernel object, `keep` and number of draws: build a kernel once.

    Args:
        key: of `jax.random.key`.
        kernel: from one of the builders of `credence.kernels`, or any `Kernel(init, step)`.
        start: a position (weight,) or, for chains abreast, (chain, weight); or the state or states
            that an earlier call returned.
        data: what the kernel's log density takes as data; None where it needs none.
        num_draws: of every chain.
        thinning: steps per draw; `keep` sees the last of them.
        keep: (State, Info) -> any pytree of arrays.
    Returns:
        The final state, its leaves with a leading axis (chain,) if there are several; and what was
        kept, leaves (draw, ...) or (chain, draw, ...).
    Raises:
        InputError: for what is no Kernel, a number of draws or steps that is not whole and
            positive, or a start of another shape.
    """
    if not isinstance(kernel, Kernel):
        raise InputError(
            f"sample needs a Kernel, got {kernel!r}: call its builder first, "
            "kernels.mala(log_density, step_size=0.1, inverse_mass=...)."
        )
    require_counts(num_draws=num_draws, thinning=thinning)
    goes_on = hasattr(start, "position")
    if not goes_on:
        start = jnp.asarray(start, float)
    dimensions = jnp.ndim(start.position if goes_on else start)
    if dimensions not in (1, 2):
        raise InputError(
            f"start must be a position (weight,) or positions (chain, weight), got {dimensions} "
            "axes: ravel the parameters of a chain (jax.flatten_util.ravel_pytree)."
        )
    return _sample(
        key,
        start,
        _NOTHING if data is None else data,
        kernel=kernel,
        keep=keep,
        num_draws=int(num_draws),
        thinning=int(thinning),
        is_state=goes_on,
        is_one=dimensions == 1,
    )


_NOTHING = Data(0.0, (), 1.0)  # type: ignore[arg-type]  # no rows


@partial(jax.jit, static_argnames=("kernel", "keep", "num_draws", "thinning", "is_state", "is_one"))
def _sample(
    key: PRNGKeyArray,
    start: Any,
    data: Data,
    *,
    kernel: Kernel,
    keep: Keep,
    num_draws: int,
    thinning: int,
    is_state: bool,
    is_one: bool,
) -> tuple[Any, Any]:
    def draw(state: Any, key: PRNGKeyArray) -> tuple[Any, Any]:
        """The last of `thinning` steps."""
        keys = jax.random.split(key, thinning)
        reached = kernel.step(keys[0], state, data)
        if thinning > 1:
            move = lambda index, reached: kernel.step(keys[index], reached[0], data)  # noqa: E731
            reached = jax.lax.fori_loop(1, thinning, move, reached)
        return reached[0], keep(*reached)

    def chain(key: PRNGKeyArray, start: Any) -> tuple[Any, Any]:
        state = start if is_state else kernel.init(start, data)
        state = jax.tree.map(lambda leaf: jnp.asarray(leaf, leaf.dtype), state)  # no weak types
        return jax.lax.scan(draw, state, jax.random.split(key, num_draws))

    if is_one:
        return chain(key, start)
    num_chains = jax.tree.leaves(start)[0].shape[0]
    return jax.vmap(chain)(jax.random.split(key, num_chains), start)
