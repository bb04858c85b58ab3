"""What a person sees while a run goes on.

The driver tells a `Progress` which phase runs, how far it is, and every block's draws and info.
`NoProgress` shows nothing; `RichProgress` shows a live line: rate, time left, acceptance,
divergences, and what a `Monitor` says of the draws.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

if TYPE_CHECKING:
    from rich.console import Console


class Monitor(NamedTuple):
    """Says how chains do while they run; a method hands it in, the engine knows no statistics."""

    functions: Callable[
        [Float[np.ndarray, "chain draw weight"]], Float[np.ndarray, "chain draw point"]
    ]
    """Predictions at a few points, from draws."""
    summary: Callable[[Float[np.ndarray, "chain draw point"]], str]
    """A few words, from the predictions of all draws so far."""


@runtime_checkable
class Line(Protocol):
    """What is shown of one phase."""

    def advance(self, num_draws: int) -> None:
        """Count `num_draws` more draws per chain as done."""
        ...

    def finish(self) -> None:
        """The phase is complete, perhaps before its last draw."""
        ...

    def show(self, draws: np.ndarray, info: dict[str, np.ndarray]) -> None:
        """A block's draws (chain, draw, weight) and its info, each (chain, draw)."""
        ...


@runtime_checkable
class Progress(Protocol):
    """What shows the progress of a run."""

    def phase(
        self,
        name: str,
        num_draws: int | None,
        *,
        done: int = 0,
        monitor: Monitor | None = None,
    ) -> AbstractContextManager[Line]:
        """Open the line of one phase.

        Args:
            num_draws: of the phase; None where nobody knows how many it takes.
            done: how many of these were read from a checkpoint.
            monitor: what to say of the draws.
        """
        ...

    def say(self, message: str) -> None:
        """Show a sentence to the person who watches."""
        ...

    def early(self, answer: Callable[[], Any]) -> None:
        """Hear that something can predict already, while the run goes on to something better.

        Args:
            answer: makes it.
        """
        ...


class NoLine:
    """Shows nothing of a phase."""

    def advance(self, num_draws: int) -> None:
        """Do nothing: no line is shown."""

    def finish(self) -> None:
        """Do nothing: no line is shown."""

    def show(self, draws: np.ndarray, info: dict[str, np.ndarray]) -> None:
        """Do nothing: no line is shown."""


class NoProgress:
    """Shows nothing of a run."""

    def phase(
        self, name: str, num_draws: int | None, *, done: int = 0, monitor: Monitor | None = None
    ) -> AbstractContextManager[Line]:
        """Open a line that shows nothing."""
        return nullcontext(NoLine())

    def say(self, message: str) -> None:
        """Do nothing: no message is shown."""

    def early(self, answer: Callable[[], Any]) -> None:
        """Do nothing: nobody asks before the end."""


class RichProgress:
    """A live line per phase on a terminal; a plain line per phase where there is none.

    Args:
        console: where to draw; standard error by default, so that standard output stays clean.
        seconds_between_checks: how often at most a monitor is asked for its summary.
    """

    def __init__(self, console: "Console | None" = None, seconds_between_checks: float = 3.0):
        from rich.console import Console

        self.console = console or Console(stderr=True)
        self.seconds_between_checks = seconds_between_checks

    @contextmanager
    def phase(
        self, name: str, num_draws: int | None, *, done: int = 0, monitor: Monitor | None = None
    ) -> Iterator[Line]:
        """Open a line, which stays when the phase ends."""
        line = _RichLine(self, name, num_draws, done, monitor)
        with line.bars:
            yield line

    def say(self, message: str) -> None:
        """Print a sentence above the line."""
        self.console.print(message, markup=False, emoji=False, highlight=False)

    def early(self, answer: Callable[[], Any]) -> None:
        """Do nothing: a terminal shows no predictions."""


class _RichLine:
    def __init__(
        self,
        owner: RichProgress,
        name: str,
        num_draws: int | None,
        done: int,
        monitor: Monitor | None,
    ) -> None:
        from rich.progress import (
            BarColumn,
            Progress,
            TaskProgressColumn,
            TextColumn,
            TimeRemainingColumn,
        )

        self.monitor = monitor
        self.seconds_between_checks = owner.seconds_between_checks
        self.functions: list[np.ndarray] = []
        self.next_check = time.monotonic() + owner.seconds_between_checks
        self.summary = ""
        self.divergent = 0
        self.bars = Progress(
            TextColumn("{task.fields[phase]:<9}"),
            BarColumn(bar_width=24),
            TaskProgressColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[status]}"),
            console=owner.console,
        )
        self.total, self.done, self.start, self.first = num_draws, 0, time.monotonic(), done
        self.task = self.bars.add_task("", total=num_draws, phase=name, rate="", status="")
        self._set(done)

    def advance(self, num_draws: int) -> None:
        self._set(self.done + num_draws)
        rate = (self.done - self.first) / max(time.monotonic() - self.start, 1e-9)
        self.bars.update(self.task, rate=f"{rate:.0f}/s")

    def _set(self, done: int) -> None:
        self.done = done if self.total is None else min(done, self.total)
        self.bars.update(self.task, completed=self.done)

    def finish(self) -> None:
        self.bars.update(self.task, total=self.done, completed=self.done)

    def show(self, draws: np.ndarray, info: dict[str, np.ndarray]) -> None:
        words = []
        if "temperature" in info:
            words.append(f"temperature {np.mean(info['temperature'][:, -1]):.2g}")
        if "acceptance_rate" in info:
            words.append(f"acceptance {np.mean(info['acceptance_rate']):.2f}")
        if "loss" in info:
            words.append(f"loss {np.mean(info['loss'][:, -1]):.3f}")
        self.divergent += int(np.sum(info.get("is_divergent", np.zeros(1)) > 0))
        if self.divergent:
            words.append(f"divergent {self.divergent}")
        self._watch(draws)
        self.bars.update(self.task, status="  ".join([*words, self.summary]))

    def _watch(self, draws: np.ndarray) -> None:
        """Ask the monitor, now and then."""
        if self.monitor is None or draws.shape[1] == 0:
            return
        self.functions.append(self.monitor.functions(draws))
        if time.monotonic() < self.next_check:
            return
        self.summary = self.monitor.summary(np.concatenate(self.functions, axis=1))
        self.next_check = time.monotonic() + self.seconds_between_checks
