"""What a run may keep in place of its draws: something of fixed size that each draw is added to.

An ensemble of large networks does not fit into memory, and what is asked of it may: averages of
its predictions at some rows. A `Stream` says what is kept; it is saved with every checkpoint, so
that a run that was stopped goes on as one that never did.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import numpy as np
from jaxtyping import Array, Float

from credence.engine.blocks import Block
from credence.engine.phases import Adapter
from credence.engine.plan import Plan


@runtime_checkable
class Stream(Protocol):
    """What is kept of draws as they come."""

    def start(self, num_chains: int, num_draws: int) -> Any:
        """What is kept before the first draw: a pytree of arrays, whose shapes never change."""
        ...

    def add(self, kept: Any, draws: Float[Array, "chain draw weight"]) -> Any:
        """What is kept after these draws of all chains."""
        ...


class Streaming(NamedTuple):
    """The memory of a phase that keeps a stream: the adapter's own, and what is kept."""

    adapted: Any
    kept: Any


def streamed(plan: Plan, stream: Stream, num_chains: int) -> Plan:
    """The plan with a stream in place of its draws, one draw of every chain at a time.

    Raises:
        ValueError: for a phase that has no number of draws.
    """
    if plan.num_draws is None:
        raise ValueError("A phase that ends when its adapter says so cannot be streamed.")
    inner = plan.adapter
    first = jax.tree.map(np.asarray, stream.start(num_chains, plan.num_draws))

    def update(memory: Streaming, block: Block) -> Streaming:
        adapted = inner.update(memory.adapted, block)
        return Streaming(adapted, jax.device_get(stream.add(memory.kept, block.draws)))

    def of_inner(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda memory, *rest: function(memory.adapted, *rest)

    adapter = Adapter(
        Streaming(inner.memory, first),
        of_inner(inner.settings),
        update,
        of_inner(inner.finished),
        of_inner(inner.rearrange),
        of_inner(inner.tuned),
    )
    return replace(plan, adapter=adapter, keep_draws=False, block_steps=plan.thinning)
