"""Compiled blocks: steps of one kernel for all chains, spread over the devices."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Float, Int, Key, PRNGKeyArray

from credence.density.compiling import jit_quickly
from credence.density.data import Data
from credence.engine.minibatches import epochs
from credence.kernels.base import Recipe, Settings


class Block(NamedTuple):
    """What one compiled block did."""

    states: Any
    """State after the block, leaves (chain, ...)."""
    draws: Float[Array, "chain draw weight"]
    info: dict[str, Array]
    """Each (chain, draw): flags and rates averaged, counts summed over the draw's steps."""


def chain_devices(num_chains: int) -> int:
    """Devices that share the chains: the most that divide them evenly."""
    available = jax.local_device_count()
    return max(n for n in range(1, available + 1) if num_chains % n == 0)


@partial(jit_quickly, static_argnames=("recipe",))
def init_states(starts: Any, settings: Settings, data: Data, *, recipe: Recipe) -> Any:
    """The kernel's first state of every chain.

    Args:
        starts: what `kernel.init` takes, a position as a rule, leaves (chain, ...).
    """
    kernel = recipe(settings)
    states = jax.vmap(lambda start: kernel.init(start, data))(starts)
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, leaf.dtype), states)  # no weak types


def spread(states: Any, devices: int) -> Any:
    """Lay leaves (chain, ...) out as `run_block` returns them, which saves compiling it twice."""
    return states if devices == 1 else jax.device_put(states, NamedSharding(_mesh(devices), _CHAIN))


_CHAIN = PartitionSpec("chain")
_ABREAST = "abreast"
"""Axis of the chains that share a device."""


def divided(function: Callable[[Array], Array], items: Array) -> Array:
    """Compute function(items), which maps over the first axis, with a part on every device."""
    devices = chain_devices(len(items))
    if devices == 1:
        return function(items)
    part = jax.shard_map(
        function, mesh=_mesh(devices), in_specs=_CHAIN, out_specs=_CHAIN, check_vma=False
    )
    return part(items)


def _mesh(devices: int) -> Mesh:
    return Mesh(np.array(jax.local_devices()[:devices]), ("chain",))


@partial(jax.jit, static_argnames=("recipe", "num_draws", "thinning", "batch_size", "devices"))
def run_block(
    key: PRNGKeyArray,
    states: Any,
    settings: Settings,
    data: Data,
    *,
    recipe: Recipe,
    num_draws: int,
    thinning: int,
    batch_size: int | None,
    devices: int,
    wanted: Array | int,
) -> Block:
    """Run num_draws * thinning steps of every chain, the chains spread over the devices.

    `wanted` ends the block after so many draws and leaves zeros for the others. It is an argument
    of the program, so that another number compiles nothing anew.

    All random numbers of a block come from its key. One part is for the minibatches; the other
    gives each chain a key, and from it each step. None depends on the number of devices.
    """
    num_chains = jax.tree.leaves(states)[0].shape[0]
    wanted_steps = jnp.asarray(wanted, jnp.int32) * thinning
    key_chains, key_batches = jax.random.split(key)
    step_keys = jax.vmap(lambda chain_key: jax.random.split(chain_key, num_draws * thinning))(
        jax.random.split(key_chains, num_chains)
    )
    on_device = partial(
        _on_device,
        recipe=recipe,
        axes=("chain", _ABREAST) if devices > 1 else (_ABREAST,),
        num_draws=num_draws,
        thinning=thinning,
        batch_size=batch_size,
    )
    if devices > 1:
        every = PartitionSpec()
        on_device = jax.shard_map(
            on_device,
            mesh=_mesh(devices),
            in_specs=(_CHAIN, _CHAIN, every, every, every, every),
            out_specs=_CHAIN,
            check_vma=False,
        )
    return on_device(step_keys, states, settings, data, key_batches, wanted_steps)


def _on_device(
    step_keys: Key[Array, "chain step"],
    states: Any,
    settings: Settings,
    data: Data,
    key: PRNGKeyArray,
    wanted_steps: Int[Array, ""],
    *,
    recipe: Recipe,
    axes: tuple[str, ...],
    num_draws: int,
    thinning: int,
    batch_size: int | None,
) -> Block:
    """The block of the chains that share a device, epoch by epoch.

    Args:
        key: of the minibatches.
        axes: the kernel's, over which all chains lie.
    """
    step_all = _abreast(recipe, settings, axes)
    num_batches, shuffled = epochs(key, data, batch_size, num_draws * thinning)

    def step(index: Array, trace: _Trace, batch: Data) -> _Trace:
        states, info = step_all(step_keys[:, index], trace.states, batch)
        return trace.after(states, info, index // thinning)

    def epoch(number: Array, trace: _Trace) -> _Trace:
        load, first = shuffled(number), number * num_batches
        last = jnp.minimum(first + num_batches, wanted_steps)
        return jax.lax.fori_loop(
            first, last, lambda index, trace: step(index, trace, load(index - first)), trace
        )

    one_batch = jax.eval_shape(lambda: shuffled(0)(0))
    info = jax.eval_shape(step_all, step_keys[:, 0], states, one_batch)[1]
    trace = _Trace(states, *_empty(states.position, info, num_draws))
    return jax.lax.fori_loop(0, -(-wanted_steps // num_batches), epoch, trace).block(thinning)


def _abreast(recipe: Recipe, settings: Settings, axes: tuple[str, ...]) -> Callable[..., Any]:
    """A step of all chains: (keys, states, batch) -> (states, info)."""
    kernel = recipe(settings, axes)
    is_abreast = recipe.fixed_cost or jax.default_backend() != "cpu"
    kernel_map = partial(jax.vmap, axis_name=_ABREAST) if is_abreast else _one_by_one

    @jax.jit  # traced once, for its shapes and for the loop
    def step_all(keys: Key[Array, " chain"], states: Any, batch: Data) -> tuple[Any, Any]:
        step = lambda key, state: kernel.step(key, state, batch)  # noqa: E731
        return kernel_map(step)(keys, states)

    return step_all


def _one_by_one(step: Callable[..., Any]) -> Callable[..., Any]:
    """Map as jax.vmap does, but one chain after another: none waits for the longest one."""
    return lambda *arguments: jax.lax.map(lambda chain: step(*chain), arguments)


class _Trace(NamedTuple):
    """What a block carries from step to step."""

    states: Any
    draws: Float[Array, "draw chain weight"]
    sums: dict[str, Array]
    """Every number in Info, summed over the steps of a draw: (draw, chain)."""

    def after(self, states: Any, info: Any, draw: Array) -> "_Trace":
        """Add what a step leaves, which belongs to this draw."""
        add = lambda sums, leaf: sums.at[draw].add(leaf)  # noqa: E731
        return _Trace(
            states,
            self.draws.at[draw].set(states.position),
            jax.tree.map(add, self.sums, info._asdict()),
        )

    def block(self, thinning: int) -> Block:
        """Return what it comes to, chains first."""
        chain_first = lambda leaf: leaf.swapaxes(0, 1)  # noqa: E731
        return Block(
            self.states,
            chain_first(self.draws),
            jax.tree.map(lambda sums: chain_first(_per_draw(sums, thinning)), self.sums),
        )


def _empty(
    positions: Float[Array, "chain weight"], info: Any, num_draws: int
) -> tuple[Float[Array, "draw chain weight"], dict[str, Array]]:
    """Draws and sums before the first step."""

    def zeros(leaf: Any) -> Array:
        is_count = jnp.issubdtype(leaf.dtype, jnp.integer)
        return jnp.zeros((num_draws, *leaf.shape), leaf.dtype if is_count else float)

    draws = jnp.zeros((num_draws, *positions.shape), positions.dtype)
    sums = {name: zeros(leaf) for name, leaf in info._asdict().items()}
    return jax.lax.optimization_barrier((draws, sums))  # or a block of one step is folded away


def _per_draw(sums: Array, thinning: int) -> Array:
    """Counts stay sums over a draw's steps, the rest becomes a mean."""
    return sums if jnp.issubdtype(sums.dtype, jnp.integer) else sums / thinning
