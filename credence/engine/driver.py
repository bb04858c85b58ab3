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

from credence.density.posterior import Data
from credence.engine.blocks import chain_devices, init_states, run_block, spread
from credence.engine.checkpoint import claim_folder
from credence.engine.clock import count_compilation
from credence.engine.phases import Adapter, Phase, PhaseResult, Saved
from credence.engine.progress import NoProgress, Progress
from credence.environment import num_cores
from credence.errors import Interrupted
from credence.kernels.base import Recipe

FEWEST_DRAWS = 4
"""Of a block that time cuts short: of fewer nothing can be said."""


class _Part(NamedTuple):
    """Where in a run phases belong."""

    prefix: str
    budget_share: float


@dataclass
class Driver(AbstractContextManager["Driver"]):
    """Runs phases; use as a context manager so that Ctrl-C ends a block, not the process.

    Args:
        folder: where checkpoints go; None keeps none.
        progress: what shows progress; see `credence.engine.progress`.
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
    _part: _Part = field(default_factory=lambda: _Part("", 1.0), init=False)

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
        if self.interrupted:
            raise self._interruption(name)
        num_draws, block_draws, room = _draws(num_steps, thinning, block_steps)
        devices = chain_devices(len(positions))
        settings = adapter.settings(adapter.memory)
        if states is None:
            states = init_states(positions, settings, data, recipe=recipe)
        states = spread(states, devices)
        phase = Phase(
            program=partial(
                run_block,
                recipe=recipe,
                num_draws=room,
                thinning=thinning,
                batch_size=batch_size,
                devices=devices,
            ),
            num_draws=num_draws,
            block_draws=block_draws,
            devices=devices,
            key=key,
            data=data,
            adapter=adapter,
            keep_draws=keep_draws,
            folder=self.folder and self.folder / f"{len(self.results):02d}-{name}",
            saved=Saved(0, 0, states, adapter.memory, 0.0, 0.0, False),
        )
        phase.restore()
        self._earlier_seconds += phase.saved.seconds + phase.saved.compile_seconds
        self._run(name, phase, budget_share)
        if self.interrupted and not phase.saved.done and not (may_stop_early and phase.blocks):
            raise self._interruption(name)
        if not phase.is_whole:
            self.stopped = "interrupt" if self.interrupted else "time"
        self.results[name] = phase.result(
            thinning,
            num_rows=min(batch_size or len(data.x), len(data.x)),
            num_weights=num_weights or positions.shape[-1],
            surrogate_flops=surrogate_flops,
        )
        return self.results[name]

    def _run(self, name: str, phase: Phase, budget_share: float) -> None:
        """Block by block to the end: all draws, Ctrl-C, or time."""
        with self.progress.phase(name, phase.num_draws, done=int(phase.saved.num_draws)) as line:
            for stored in phase.blocks:
                line.show(*stored)
            if self.max_seconds is not None and phase.num_draws and not phase.blocks:
                phase.probe()
            fewest = min(FEWEST_DRAWS, phase.block_draws)
            fitting = self._num_fitting(phase, budget_share) or fewest
            while fitting and not (phase.saved.done or self.interrupted):
                left = phase.num_left
                num_draws = phase.block_draws if left is None else min(fitting, left)
                phase.advance(num_draws)
                fitting = self._num_fitting(phase, budget_share)
                if phase.num_draws and not fitting:
                    phase.saved = phase.saved._replace(done=True)
                phase.save()
                line.advance(num_draws)
                line.show(*phase.blocks[-1])
            if phase.saved.done:
                line.finish()

    def _num_fitting(self, phase: Phase, budget_share: float) -> int:
        """Draws of the next block that will end in time; none where they would be too few."""
        if self.max_seconds is None:
            return phase.block_draws
        elapsed = self._earlier_seconds + time.perf_counter() - self._entered
        left = budget_share * self.max_seconds - elapsed
        fitting = int(np.clip(left / max(phase.draw_seconds, 1e-9), 0, phase.block_draws))
        return fitting if fitting >= min(FEWEST_DRAWS, phase.block_draws) else 0

    def _interruption(self, name: str) -> Interrupted:
        """Ctrl-C before a phase has anything to return."""
        return Interrupted(
            f"Stopped in phase '{name}', before there was a result to return"
            + ("." if self.folder is None else ": resume to go on where it stopped.")
        )

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


def _draws(num_steps: int | None, thinning: int, block_steps: int) -> tuple[int | None, int, int]:
    """Of the phase, None where it is open-ended, of a block, and those that it has room for."""
    room = max(1, block_steps // thinning)
    if num_steps is None:
        return None, room, room
    num_draws = -(-num_steps // thinning)
    room = min(room, num_draws)
    return num_draws, -(-num_draws // -(-num_draws // room)), room
