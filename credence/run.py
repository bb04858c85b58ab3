"""The one driver of every chain and particle method.

A run is a sequence of *phases* (train, warm up, sample); a phase is a sequence of equal compiled
*blocks* of steps of one kernel for all chains. Between blocks, on the host, the driver moves the
progress bar, lets an `Adapter` change the kernel's settings, writes a checkpoint and obeys Ctrl-C
and the time budget.

Resuming is replaying: call the same method with the same folder. Finished phases and blocks are
read, not computed, and every block's key comes from its index, so a run killed at any instant and
resumed on the same number of devices gives bit for bit the draws of a run never killed. (Another
number of devices draws from the same law; compiled code for other shapes may round otherwise.)
"""

import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from credence.blocks import Block, chain_devices, init_states, run_block, spread
from credence.checkpoint import claim_folder, load_tree, save_tree
from credence.clock import CompileClock, count_compilation
from credence.environment import num_cores
from credence.errors import Interrupted
from credence.kernels.base import Recipe, Settings
from credence.posterior import Data
from credence.progress import NoProgress, Progress

Draws = Float[np.ndarray, "chain draw weight"]

FEWEST_DRAWS = 4
"""Of a block that time cuts short: of fewer nothing can be said."""


@dataclass(frozen=True)
class Adapter:
    """Changes a kernel's settings between blocks, from the draws of all chains.

    `memory` is a pytree of fixed shapes, saved with every checkpoint; the functions are pure.
    """

    memory: Any
    settings: Callable[[Any], Settings]
    update: Callable[[Any, Block], Any] = lambda memory, block: memory
    finished: Callable[[Any], bool] = lambda memory: False
    rearrange: Callable[[Any, Block], Any] = lambda memory, block: block.states
    """(updated memory, block) -> states where the next block starts: resampling."""


def fixed(**settings: Any) -> Adapter:
    """No adaptation: the same settings for every block, which no checkpoint repeats."""
    return Adapter((), lambda memory: settings)


@dataclass(frozen=True)
class PhaseResult:
    """What a phase leaves behind."""

    states: Any
    """The kernel's last states: where a later phase of the same kernel may go on."""
    draws: Draws
    """Empty (chain, 0, weight) where the phase keeps none."""
    info: dict[str, np.ndarray]
    """Each (chain, draw)."""
    memory: Any
    num_steps: int
    num_rows: int
    """Data rows each step saw: a minibatch, or all."""
    num_weights: int
    """Weights of the networks that one evaluation ran."""
    surrogate_flops: float
    """Of one evaluation of a surrogate."""
    seconds: float
    """Wall time without compilation."""
    compile_seconds: float

    @property
    def positions(self) -> Float[Array, "chain weight"]:
        """Where the chains are."""
        return self.states.position


class _Part(NamedTuple):
    """Where in a run phases belong."""

    prefix: str
    budget_share: float


class _Saved(NamedTuple):
    """The checkpoint between blocks."""

    next_block: Any
    num_draws: Any
    """Of all blocks, which time may have cut short."""
    states: Any
    memory: Any
    seconds: Any
    compile_seconds: Any
    done: Any


Stored = tuple[np.ndarray, dict[str, np.ndarray]]
"""What is kept of a block: draws (chain, draw, weight) and info, each (chain, draw)."""


@dataclass
class _Phase:
    """A phase under way: what it runs, where it is saved, how far it is."""

    program: Callable[..., Block]
    block_draws: int
    devices: int
    key: PRNGKeyArray
    data: Data
    adapter: Adapter
    keep_draws: bool
    folder: Path | None
    saved: _Saved
    blocks: list[Stored] = field(default_factory=list)
    draw_seconds: float = 0.0
    """Of a draw, as the latest ones took; zero before the first."""

    def restore(self) -> None:
        """Read the blocks that an earlier process finished."""
        if self.folder is None or not (self.folder / "state.npz").exists():
            return
        layout = jax.tree.map(lambda leaf: leaf.sharding, self.saved.states)
        stored = _stored(jax.eval_shape(partial(self._block, self.block_draws)), self.keep_draws)
        saved = load_tree(self.folder / "state.npz", self.saved)
        self.blocks = [
            load_tree(self._block_path(index), stored, free_axis=1)
            for index in range(int(saved.next_block))
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
            next_block=len(self.blocks),
            num_draws=int(self.saved.num_draws) + num_draws,
            states=spread(states, self.devices),
            memory=memory,
            done=self.adapter.finished(memory),
        )

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
            save_tree(self.folder / "state.npz", self.saved)

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


@dataclass
class Driver(AbstractContextManager["Driver"]):
    """Runs phases; use as a context manager so that Ctrl-C ends a block, not the process.

    Args:
        folder: where checkpoints go; None keeps none.
        progress: what shows progress; see `credence.progress`.
        max_seconds: wall-clock budget of the whole run, compilation included; every phase makes at
            least `FEWEST_DRAWS`. A phase that time ended stays ended when the run is resumed,
            unless it is open-ended: what it has is of no use.
        identity: what makes the run what it is (method, settings, key, data), as JSON values; the
            folder refuses a run with another.
    Raises, on entry:
        StorageError: where the folder holds another run or cannot be written.
    """

    folder: Path | None = None
    progress: Progress = field(default_factory=NoProgress)
    max_seconds: float | None = None
    identity: Mapping[str, Any] = field(default_factory=dict)
    interrupted: bool = field(default=False, init=False)
    stopped: Literal["finished", "time", "interrupt"] = field(default="finished", init=False)
    """Whether every phase has all its draws, and if not, why."""
    results: dict[str, PhaseResult] = field(default_factory=dict, init=False)
    _entered: float = field(default_factory=time.perf_counter, init=False)
    _earlier_seconds: float = field(default=0.0, init=False)
    _part: "_Part" = field(default_factory=lambda: _Part("", 1.0), init=False)

    @contextmanager
    def part(self, name: str, *, budget_share: float = 1.0) -> Iterator[None]:
        """A method within a method: its phases are called "name ..." and count together.

        Args:
            budget_share: share of max_seconds used up when the part must end.
        """
        outer = self._part
        self._part = _Part(f"{outer.prefix}{name} ", outer.budget_share * budget_share)
        try:
            yield
        finally:
            self._part = outer

    def phase(
        self,
        name: str,
        key: PRNGKeyArray,
        recipe: Recipe,
        positions: Float[Array, "chain weight"],
        data: Data,
        adapter: Adapter,
        *,
        num_steps: int | None,
        thinning: int = 1,
        block_steps: int = 100,
        batch_size: int | None = None,
        keep_draws: bool = True,
        budget_share: float = 1.0,
        may_stop_early: bool = False,
        states: Any = None,
        num_weights: int | None = None,
        surrogate_flops: float = 0.0,
    ) -> PhaseResult:
        """Run one phase, or read it from the folder as far as it got.

        Args:
            name: of the phase, unique in the run; its folder and its line in the cost table.
            recipe, positions, data: what moves, where from (chain, weight), and on what data.
            adapter: settings of the kernel and how they change between blocks.
            num_steps: kernel steps per chain; every `thinning`-th is a draw. None: until the
                adapter has finished.
            block_steps: most steps of a block; blocks are equal and cover num_steps. Phases of as
                long blocks share a program.
            batch_size: rows per step, from shuffled epochs; None uses all rows in every step.
            keep_draws: return (and save) positions of all draws.
            budget_share: share of max_seconds used up when this phase must end.
            may_stop_early: True where an interrupted phase leaves a usable result.
            states: of this kernel, left by an earlier phase, to go on from, in place of positions.
            num_weights: of the networks that one evaluation runs; by default those of a position.
            surrogate_flops: of one evaluation of the surrogate, if the kernel counts any.
        Raises:
            Interrupted: on Ctrl-C where there is nothing usable yet.
            StorageError: where a checkpoint cannot be written or read.
        """
        name, budget_share = self._part.prefix + name, self._part.budget_share * budget_share
        num_draws, block_draws, room = _draws(num_steps, thinning, block_steps)
        devices = chain_devices(len(positions))
        settings = adapter.settings(adapter.memory)
        if states is None:
            states = init_states(positions, settings, data, recipe=recipe)
        states = spread(states, devices)
        phase = _Phase(
            program=partial(
                run_block,
                recipe=recipe,
                num_draws=room,
                thinning=thinning,
                batch_size=batch_size,
                devices=devices,
            ),
            block_draws=block_draws,
            devices=devices,
            key=key,
            data=data,
            adapter=adapter,
            keep_draws=keep_draws,
            folder=self.folder and self.folder / f"{len(self.results):02d}-{name}",
            saved=_Saved(0, 0, states, adapter.memory, 0.0, 0.0, False),
        )
        phase.restore()
        self._earlier_seconds += phase.saved.seconds + phase.saved.compile_seconds

        with self.progress.phase(name, num_draws, done=int(phase.saved.num_draws)) as line:
            for stored in phase.blocks:
                line.show(*stored)
            if self.max_seconds is not None and num_draws and not phase.blocks:
                phase.probe()
            fitting = self._num_fitting(phase, budget_share) or min(FEWEST_DRAWS, block_draws)
            while fitting and not (phase.saved.done or self.interrupted):
                this_time = fitting if num_draws else block_draws
                phase.advance(this_time)
                fitting = self._num_fitting(phase, budget_share)
                if num_draws and (phase.saved.num_draws >= num_draws or not fitting):
                    phase.saved = phase.saved._replace(done=True)
                phase.save()
                line.advance(this_time)
                line.show(*phase.blocks[-1])
            if phase.saved.done:
                line.finish()

        if self.interrupted and not phase.saved.done and not (may_stop_early and phase.blocks):
            raise Interrupted(
                f"Stopped in phase '{name}', before there was a result to return"
                + ("." if self.folder is None else ": resume to go on where it stopped.")
            )
        is_whole = adapter.finished(phase.saved.memory) or (
            num_draws is not None and int(phase.saved.num_draws) >= num_draws
        )
        if not is_whole:
            self.stopped = "interrupt" if self.interrupted else "time"
        num_rows = min(batch_size or len(data.x), len(data.x))
        num_weights = num_weights or positions.shape[-1]
        costs = num_rows, num_weights, surrogate_flops
        self.results[name] = _collect(phase.saved, phase.blocks, num_draws, thinning, costs)
        return self.results[name]

    def _num_fitting(self, phase: _Phase, budget_share: float) -> int:
        """Draws of the next block that will end in time; none where they would be too few."""
        if self.max_seconds is None:
            return phase.block_draws
        elapsed = self._earlier_seconds + time.perf_counter() - self._entered
        left = budget_share * self.max_seconds - elapsed
        fitting = int(np.clip(left / max(phase.draw_seconds, 1e-9), 0, phase.block_draws))
        return fitting if fitting >= min(FEWEST_DRAWS, phase.block_draws) else 0

    def __enter__(self) -> "Driver":
        if self.folder is not None:
            precision = {"dtype": jnp.result_type(float).name}
            claim_folder(self.folder, {**self.identity, **precision})
        self._previous = None
        if threading.current_thread() is threading.main_thread():
            self._previous = signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)

    def _interrupt(self, *_: Any) -> None:
        """The first Ctrl-C ends the run after its block, the second at once."""
        if self.interrupted:
            raise KeyboardInterrupt
        self.interrupted = True
        self.progress.say("Stopping after this block; Ctrl-C again stops at once.")


@contextmanager
def compile_ahead(jobs: Iterable[Callable[[], Any]]) -> Iterator[list[Callable[[], None]]]:
    """Calls that compile programs, in threads while the context is open; yields waits for them.

    Compilers use a core each, and one core is enough for tracing, so the next phases' programs are
    ready when the run gets there. Time spent waiting counts as compilation.
    """
    double = jnp.result_type(float) == jnp.float64  # what `jax.enable_x64` says holds for a thread

    def call(job: Callable[[], Any]) -> Any:
        with jax.enable_x64(bool(double)):
            return job()

    def wait(future: Future[Any]) -> None:
        start = time.perf_counter()
        future.result()
        count_compilation(time.perf_counter() - start)

    pool = ThreadPoolExecutor(num_cores())
    try:
        yield [partial(wait, pool.submit(call, job)) for job in jobs]
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _as_restored(new: Any, old: Any) -> Any:
    """A leaf of the memory as `load_tree` would give it back: of the type it had at the start, so
    that a resumed run rounds as one that never stopped."""
    if not isinstance(old, jax.Array):
        return np.asarray(new)
    is_same = isinstance(new, jax.Array) and new.dtype == old.dtype
    return new if is_same else jnp.asarray(new, old.dtype)


def _draws(num_steps: int | None, thinning: int, block_steps: int) -> tuple[int | None, int, int]:
    """Of the phase, None where it is open-ended, of a block, and those that it has room for."""
    room = max(1, block_steps // thinning)
    if num_steps is None:
        return None, room, room
    num_draws = -(-num_steps // thinning)
    room = min(room, num_draws)
    return num_draws, -(-num_draws // -(-num_draws // room)), room


def _stored(block: Block, keep_draws: bool) -> tuple[Any, dict[str, Any]]:
    """What is kept of a block: arrays, or their shapes where it holds shapes."""
    if keep_draws:
        return block.draws, block.info
    chains, _, weights = block.draws.shape
    return np.zeros((chains, 0, weights), block.draws.dtype), block.info


def _collect(
    saved: _Saved,
    blocks: list[tuple[np.ndarray, dict[str, np.ndarray]]],
    num_draws: int | None,
    thinning: int,
    costs: tuple[int, int, float],
) -> PhaseResult:
    """Blocks joined along the draws; surplus draws of the last block dropped."""
    draws = np.concatenate([draws for draws, _ in blocks], axis=1)[:, :num_draws]
    info = {
        name: np.concatenate([block[name] for _, block in blocks], axis=1)[:, :num_draws]
        for name in blocks[0][1]
    }
    done = next(iter(info.values())).shape[1]
    return PhaseResult(
        saved.states,
        draws,
        info,
        saved.memory,
        done * thinning,
        *costs,
        float(saved.seconds),
        float(saved.compile_seconds),
    )
