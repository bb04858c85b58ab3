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

import glob
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NamedTuple, NoReturn

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from credence.density.data import Data
from credence.engine.blocks import chain_devices, init_states, run_block, spread
from credence.engine.checkpoint import claim_folder, kept_decision
from credence.engine.clock import count_compilation
from credence.engine.phases import Phase, PhaseResult, Saved
from credence.engine.plan import Plan
from credence.engine.progress import Monitor, NoProgress, Progress
from credence.engine.streams import Stream, streamed
from credence.environment import num_cores
from credence.errors import Interrupted
from credence.schema import build

FEWEST_DRAWS = 4
"""Fewest draws of a block that time cuts short: from fewer nothing can be concluded."""


class _Part(NamedTuple):
    """The part of a run that phases belong to: a prefix to their names, and what they share."""

    prefix: str = ""
    cost_class: str | None = None
    budget_share: float = 1.0

    def joined(self, plan: Plan) -> Plan:
        """The plan of a phase as it runs in this part."""
        return replace(
            plan,
            cost_class=self.cost_class or plan.cost_class,
            budget_share=self.budget_share * plan.budget_share,
        )


@dataclass
class Driver(AbstractContextManager["Driver"]):
    """Runs phases; use as a context manager so that Ctrl-C ends a block, not the process.

    Args:
        folder: where checkpoints go; None keeps none.
        progress: what shows progress; see `credence.engine.progress`.
        monitor: what it says of the draws of phases that are monitored.
        max_seconds: wall-clock budget of the whole run, compilation included; every phase makes at
            least `FEWEST_DRAWS`. A phase that time ended stays ended when the run is resumed,
            unless it is open-ended: what it has is of no use.
        stream: what is kept in place of the draws of phases whose plan `streams`, as `kept`.
        identity: what makes the run what it is (method, settings, key, data), as JSON values; the
            folder refuses a run with another.
    Raises, on entry:
        StorageError: where the folder holds another run or cannot be written.
    """

    folder: Path | None = None
    progress: Progress = field(default_factory=NoProgress)
    monitor: Monitor | None = None
    max_seconds: float | None = None
    stream: Stream | None = None
    identity: Mapping[str, Any] = field(default_factory=dict)
    interrupted: bool = field(default=False, init=False)
    stopped: Literal["finished", "time", "interrupt"] = field(default="finished", init=False)
    """"finished" if every phase has all its draws; otherwise what ended one early."""
    results: dict[str, PhaseResult] = field(default_factory=dict, init=False)
    kept: Any = field(default=None, init=False)
    """What the stream has kept; None before the phase that streams."""
    _entered: float = field(default_factory=time.perf_counter, init=False)
    _earlier_seconds: float = field(default=0.0, init=False)
    _part: _Part = field(default=_Part(), init=False)

    @property
    def seconds_left(self) -> float:
        """Seconds of the budget that are not spent; infinite without a budget."""
        if self.max_seconds is None:
            return float("inf")
        return self.max_seconds - self._earlier_seconds - (time.perf_counter() - self._entered)

    def decided(self, name: str, kind: Any, decide: Callable[[], Any]) -> Any:
        """Make a decision that depends on the clock once: a resumed run makes the same one.

        Args:
            name: of the decision, unique in this part of the run.
            kind: its type, as an annotation that `credence.schema.build` knows.
            decide: gives a JSON value.
        Raises:
            StorageError: where the decision cannot be written or read.
        """
        if self.folder is None:
            return build(kind, decide())
        return kept_decision(self.folder / f"{self._part.prefix}{name}.json", kind, decide)

    @contextmanager
    def part(
        self, name: str, *, cost_class: str | None = None, budget_share: float = 1.0
    ) -> Iterator[None]:
        """Open a part of the run, such as a method within a method: its phases are called
        "name ...".

        Args:
            cost_class: what all its phases count as; None leaves that to their plans.
            budget_share: share of max_seconds used up when the part must end.
        """
        outer = self._part
        self._part = _Part(
            f"{outer.prefix}{name} ",
            outer.cost_class or cost_class,
            outer.budget_share * budget_share,
        )
        try:
            yield
        finally:
            self._part = outer

    def phase(
        self,
        name: str,
        key: PRNGKeyArray,
        plan: Plan,
        start: Float[Array, "chain weight"] | Any,
        data: Data,
    ) -> PhaseResult:
        """Run one phase, or read it from the folder as far as it got.

        Args:
            name: of the phase, unique in the run: its folder, and its line of the progress.
            plan: what moves, how it is tuned, for how long.
            start: positions; or states of this kernel, left by an earlier phase.
            data: what the kernel sees.
        Raises:
            Interrupted: on Ctrl-C where there is nothing usable yet.
            StorageError: where a checkpoint cannot be written or read.
            ValueError: for a name that an earlier phase had: they would share a folder.
        """
        name, plan = self._part.prefix + name, self._part.joined(plan)
        if name in self.results:
            raise ValueError(f"There was a phase '{name}' already: give this one another name.")
        if self.interrupted:
            self._stop(name)
        states: Any = start
        if isinstance(start, jax.Array | np.ndarray):
            states = init_states(start, plan.settings, data, recipe=plan.recipe)
        num_chains, num_weights = states.position.shape
        stream = self.stream if plan.streams else None
        if stream is not None:
            plan = streamed(plan, stream, num_chains)
        devices = chain_devices(num_chains)
        phase = Phase(
            program=partial(
                run_block,
                recipe=plan.recipe,
                num_draws=plan.room,
                thinning=plan.thinning,
                batch_size=plan.batch_size,
                devices=devices,
            ),
            num_draws=plan.num_draws,
            block_draws=plan.block_draws,
            devices=devices,
            key=key,
            data=data,
            adapter=plan.adapter,
            keep_draws=plan.keep_draws,
            folder=self._folder_of(name),
            saved=Saved(0, 0, spread(states, devices), plan.adapter.memory, 0.0, 0.0, False),
        )
        phase.restore()
        self._earlier_seconds += phase.saved.seconds + phase.saved.compile_seconds
        self._run(name, phase, plan)
        if self.interrupted and not phase.saved.done and not (plan.may_stop_early and phase.blocks):
            self._stop(name)
        if not phase.is_whole:
            self.stopped = "interrupt" if self.interrupted else "time"
        result = phase.result(
            plan.thinning,
            cost_class=plan.cost_class,
            num_rows=min(plan.batch_size or data.x.shape[0], data.x.shape[0]),
            num_weights=plan.num_weights or num_weights,
            surrogate_flops=plan.surrogate_flops,
        )
        if stream is not None:
            self.kept = result.memory.kept
            result = replace(result, memory=result.memory.adapted)
        self.results[name] = result
        return result

    def _folder_of(self, name: str) -> Path | None:
        """The folder of a phase: that of an earlier run, where its place may have been another."""
        if self.folder is None:
            return None
        found = sorted(self.folder.glob(f"[0-9][0-9]-{glob.escape(name)}"))
        return found[0] if found else self.folder / f"{len(self.results):02d}-{name}"

    def _run(self, name: str, phase: Phase, plan: Plan) -> None:
        """Run a phase block by block until it has all draws, Ctrl-C comes, or time is up."""
        shown = self.progress.phase(
            name,
            phase.num_draws,
            done=int(phase.saved.num_draws),
            monitor=self.monitor if plan.monitored else None,
        )
        with shown as line:
            for stored in phase.blocks:
                line.show(*stored)
            if self.max_seconds is not None and phase.num_draws and not phase.blocks:
                phase.probe()
            fewest = min(FEWEST_DRAWS, phase.block_draws)
            fitting = self._num_fitting(phase, plan.budget_share) or fewest
            while fitting and not (phase.saved.done or self.interrupted):
                left = phase.num_left
                num_draws = phase.block_draws if left is None else min(fitting, left)
                phase.advance(num_draws)
                fitting = self._num_fitting(phase, plan.budget_share)
                if phase.num_draws and not fitting:
                    phase.saved = phase.saved._replace(done=True)
                phase.save()
                line.advance(num_draws)
                line.show(*phase.blocks[-1])
            if phase.saved.done:
                line.finish()

    def _num_fitting(self, phase: Phase, budget_share: float) -> int:
        """Number of draws of the next block that will end in time; 0 where they would be few."""
        if self.max_seconds is None:
            return phase.block_draws
        left = self.seconds_left - (1 - budget_share) * self.max_seconds
        fitting = int(np.clip(left / max(phase.draw_seconds, 1e-9), 0, phase.block_draws))
        if phase.num_draws and int(phase.saved.num_draws) < min(FEWEST_DRAWS, phase.num_draws):
            return max(fitting, 1)
        return fitting if fitting >= min(FEWEST_DRAWS, phase.block_draws) else 0

    def _stop(self, name: str) -> NoReturn:
        """End the run on Ctrl-C before a phase has anything to return."""
        self.stopped = "interrupt"
        raise Interrupted(
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
        """End the run after its block on the first Ctrl-C, at once on the second."""
        if self.interrupted:
            raise KeyboardInterrupt
        self.interrupted = True
        self.progress.say("Stopping after this block; Ctrl-C again stops at once.")


@contextmanager
def compile_ahead(jobs: Iterable[Callable[[], Any]]) -> Iterator[list[Callable[[], None]]]:
    """Compile programs in threads while the context is open; yield functions that wait for them.

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
