"""A phase under way: equal compiled blocks of steps of one kernel for all chains, saved one by one.

The driver (`credence.engine.driver`) decides when a phase goes on; here is what it runs and what
it leaves.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from credence.density.data import Data
from credence.engine.blocks import Block, spread
from credence.engine.checkpoint import load_tree, save_tree
from credence.engine.clock import CompileClock
from credence.kernels.base import Settings
from credence.storage import read_arrays

Draws = Float[np.ndarray, "chain draw weight"]
STATE = "state.npz"
"""The file that a phase keeps beside its blocks: see `Saved`."""


@dataclass(frozen=True)
class Adapter:
    """Changes a kernel's settings between blocks, from the draws of all chains.

    The functions are pure. Where nothing is to be tuned, take `fixed(step_size=0.1)`.

    Args:
        memory: what is remembered between blocks, a pytree of fixed shapes, saved with every
            checkpoint.
        settings: (memory) -> the kernel's settings in the next block, keywords of its builder.
        update: (memory, block) -> memory after a block; see `credence.engine.blocks.Block`.
        finished: (memory) -> whether the phase may end.
        rearrange: (updated memory, block) -> states where the next block starts: resampling.
        tuned: (memory) -> the settings to sample with; by default those of the next block.
    """

    memory: Any
    settings: Callable[[Any], Settings]
    update: Callable[[Any, Block], Any] = lambda memory, block: memory
    finished: Callable[[Any], bool] = lambda memory: False
    rearrange: Callable[[Any, Block], Any] = lambda memory, block: block.states
    tuned: Callable[[Any], Settings] = None  # type: ignore[assignment]  # see __post_init__

    def __post_init__(self) -> None:
        """Let `tuned` be `settings`, the latest ones, where nothing else is given."""
        object.__setattr__(self, "tuned", self.tuned or self.settings)


def fixed(**settings: Any) -> Adapter:
    """An adapter that changes nothing: every block has the same settings, kept in no checkpoint."""
    return Adapter((), lambda memory: settings)


@dataclass(frozen=True)
class PhaseResult:
    """The result of a phase; `Drawn.by(phase)` makes an ensemble's draws and scalars of it."""

    states: Any
    """The kernel's last states: where a later phase of the same kernel may go on."""
    draws: Draws
    """Empty (chain, 0, weight) where the phase keeps none."""
    info: dict[str, np.ndarray]
    """Numbers that the kernel's Info reported, by name, each (chain, draw)."""
    memory: Any
    num_steps: int
    cost_class: str
    """What its seconds count as; see `credence.engine.plan.Plan`."""
    num_rows: int
    """Data rows each step saw: a minibatch, or all."""
    num_weights: int
    """Weights of the networks that one evaluation ran."""
    surrogate_flops: float
    """Floating point operations of one evaluation of a surrogate."""
    seconds: float
    """Wall time without compilation."""
    compile_seconds: float

    @property
    def positions(self) -> Float[Array, "chain weight"]:
        """The positions at which the chains are."""
        return self.states.position


class Saved(NamedTuple):
    """The checkpoint between blocks."""

    num_blocks: Any
    num_draws: Any
    """Number of draws of all blocks, which time may have cut short."""
    states: Any
    memory: Any
    seconds: Any
    compile_seconds: Any
    done: Any


Stored = tuple[np.ndarray, dict[str, np.ndarray]]
"""What is kept of a block: draws (chain, draw, weight) and info, each (chain, draw)."""


@dataclass
class Phase:
    """A phase under way: what it runs, where it is saved, how far it is."""

    program: Callable[..., Block]
    num_draws: int | None
    """None: until the adapter has finished."""
    block_draws: int
    devices: int
    key: PRNGKeyArray
    data: Data
    adapter: Adapter
    keep_draws: bool
    folder: Path | None
    saved: Saved
    blocks: list[Stored] = field(default_factory=list)
    draw_seconds: float = 0.0
    """Seconds that a draw took lately; zero before the first."""

    def restore(self) -> None:
        """Read the blocks that an earlier process finished."""
        if self.folder is None or not (self.folder / STATE).exists():
            return
        layout = jax.tree.map(lambda leaf: leaf.sharding, self.saved.states)
        stored = _stored(jax.eval_shape(partial(self._block, self.block_draws)), self.keep_draws)
        saved = load_tree(self.folder / STATE, self.saved)
        self.blocks = [
            load_tree(self._block_path(index), stored, free_axis=1)
            for index in range(int(saved.num_blocks))
        ]
        self.saved = saved._replace(
            states=jax.device_put(saved.states, layout),
            seconds=float(saved.seconds),
            compile_seconds=float(saved.compile_seconds),
        )
        self.draw_seconds = self.saved.seconds / int(saved.num_draws)

    def probe(self) -> None:
        """Time a first draw, which the first block will compute again."""
        with self._timed(1):
            jax.block_until_ready(self._block(1))

    def advance(self, num_draws: int) -> None:
        """Run so many draws of the next block and adapt."""
        with self._timed(num_draws):
            block = self._block(num_draws)
            updated = self.adapter.update(self.saved.memory, block)
            memory = jax.tree.map(_as_restored, updated, self.saved.memory)
            states = self.adapter.rearrange(memory, block)
            self.blocks.append(jax.device_get(_stored(block, self.keep_draws)))
        self.saved = self.saved._replace(
            num_blocks=len(self.blocks),
            num_draws=int(self.saved.num_draws) + num_draws,
            states=spread(states, self.devices),
            memory=memory,
        )
        self.saved = self.saved._replace(done=self.is_whole)

    @property
    def is_whole(self) -> bool:
        """Whether it has all its draws, or its adapter has finished."""
        return self.num_left == 0 or self.adapter.finished(self.saved.memory)

    @property
    def num_left(self) -> int | None:
        """Draws still to make; None where it is open-ended."""
        return None if self.num_draws is None else self.num_draws - int(self.saved.num_draws)

    @contextmanager
    def _timed(self, num_draws: int) -> Iterator[None]:
        """Count the seconds of what happens inside, which makes so many draws."""
        start = time.perf_counter()
        with CompileClock() as clock:
            yield
        seconds = time.perf_counter() - start - clock.seconds
        self.draw_seconds = seconds / num_draws
        self.saved = self.saved._replace(
            seconds=self.saved.seconds + seconds,
            compile_seconds=self.saved.compile_seconds + clock.seconds,
        )

    def save(self) -> None:
        """Write the last block, then the state that counts it as done."""
        if self.folder is not None:
            save_tree(self._block_path(len(self.blocks) - 1), self.blocks[-1])
            save_tree(self.folder / STATE, self.saved)

    def result(self, thinning: int, **costs: Any) -> PhaseResult:
        """Blocks joined along the draws."""
        join = lambda *arrays: np.concatenate(arrays, axis=1)  # noqa: E731
        draws, info = jax.tree.map(join, *self.blocks)
        return PhaseResult(
            states=self.saved.states,
            draws=draws,
            info=info,
            memory=self.saved.memory,
            num_steps=next(iter(info.values())).shape[1] * thinning,
            seconds=float(self.saved.seconds),
            compile_seconds=float(self.saved.compile_seconds),
            **costs,
        )

    def _block(self, num_draws: int) -> Block:
        """The first draws of the next block, whose key comes from its index."""
        key = jax.random.fold_in(self.key, len(self.blocks))
        settings = self.adapter.settings(self.saved.memory)
        block = self.program(key, self.saved.states, settings, self.data, wanted=num_draws)
        if num_draws == block.draws.shape[1]:
            return block
        first = jax.tree.map(lambda leaf: leaf[:, :num_draws], block._replace(states=None))
        return first._replace(states=block.states)

    def _block_path(self, index: int) -> Path:
        assert self.folder is not None
        return self.folder / f"block-{index:05d}.npz"


def _as_restored(new: Any, old: Any) -> Any:
    """A leaf of the memory as `load_tree` would give it back: of the type it had at the start, so
    that a resumed run rounds as one that never stopped."""
    if not isinstance(old, jax.Array):
        return np.asarray(new)
    is_same = isinstance(new, jax.Array) and new.dtype == old.dtype
    return new if is_same else jnp.asarray(new, old.dtype)


def _stored(block: Block, keep_draws: bool) -> tuple[Any, dict[str, Any]]:
    """What is kept of a block: arrays, or their shapes where it holds shapes."""
    if keep_draws:
        return block.draws, block.info
    chains, _, weights = block.draws.shape
    return np.zeros((chains, 0, weights), block.draws.dtype), block.info


def seconds_spent(folder: Path | None) -> float:
    """Seconds that all phases kept in a folder, and in those within it, took; 0 without one."""
    found = [] if folder is None else sorted(folder.rglob(STATE))
    return sum(_seconds(path) for path in found)


def _seconds(path: Path) -> float:
    """Seconds of a phase, compilation included: near the end of what `Saved` lists."""
    arrays = read_arrays(path)
    *_, seconds, compiling, _ = (arrays[name] for name in sorted(arrays))
    return float(seconds) + float(compiling)
