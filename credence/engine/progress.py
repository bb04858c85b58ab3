"""What a person sees while a run goes on.

The driver tells a `Progress` which phase runs, how far it is, and every block's draws and info;
`RichProgress` turns that into a live line: rate, time left, acceptance, divergences, R-hat and
effective sample size of predictions.
"""

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

if TYPE_CHECKING:
    from rich.console import Console

Monitor = Callable[[Float[np.ndarray, "chain draw weight"]], Float[np.ndarray, "chain draw point"]]
"""Predictions at a few points, from draws."""


class Line(AbstractContextManager["Line"]):
    """One phase's line; this one shows nothing."""

    def advance(self, num_draws: int) -> None:
        """So many more draws per chain are done."""

    def finish(self) -> None:
        """The phase is complete, perhaps before its last draw."""

    def show(self, draws: np.ndarray, info: dict[str, np.ndarray]) -> None:
        """A block's draws (chain, draw, weight) and its info, each (chain, draw)."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        pass


class NoProgress:
    """Shows nothing."""

    monitor: Monitor | None = None

    def phase(self, name: str, num_draws: int | None, done: int = 0) -> Line:
        """The line of one phase, `done` of whose draws were read from a checkpoint; num_draws is
        None where nobody knows how many it takes."""
        return Line()

    def say(self, message: str) -> None:
        """A sentence for the person who watches."""


Progress = NoProgress


class RichProgress(NoProgress):
    """A live line per phase on a terminal; a plain line per phase where there is none.

    Args:
        console: where to draw; standard error by default, so that standard output stays clean.
        seconds_between_checks: how often R-hat and ESS are recomputed at most.
    """

    def __init__(self, console: "Console | None" = None, seconds_between_checks: float = 3.0):
        from rich.console import Console

        self.console = console or Console(stderr=True)
        self.seconds_between_checks = seconds_between_checks

    def phase(self, name: str, num_draws: int | None, done: int = 0) -> Line:
        return _RichLine(self, name, num_draws, done)

    def say(self, message: str) -> None:
        self.console.print(message, markup=False, emoji=False, highlight=False)


class _RichLine(Line):
    def __init__(self, owner: RichProgress, name: str, num_draws: int | None, done: int) -> None:
        from rich.progress import (
            BarColumn,
            Progress,
            TaskProgressColumn,
            TextColumn,
            TimeRemainingColumn,
        )

        self.owner = owner
        self.functions: list[np.ndarray] = []
        self.next_check = time.monotonic() + owner.seconds_between_checks
        self.convergence = ""
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

    def __enter__(self) -> "_RichLine":
        self.bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.bars.stop()

    def advance(self, num_draws: int) -> None:
        self._set(self.done + num_draws)
        rate = (self.done - self.first) / max(time.monotonic() - self.start, 1e-9)
        self.bars.update(self.task, rate=f"{rate:.0f}/s per chain")

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
        self.bars.update(self.task, status="  ".join([*words, self.convergence]))

    def _watch(self, draws: np.ndarray) -> None:
        """R-hat and ESS of predictions at the monitored points, now and then."""
        if self.owner.monitor is None or draws.shape[1] == 0:
            return
        self.functions.append(self.owner.monitor(draws))
        if time.monotonic() < self.next_check:
            return
        from credence.ensembles.diagnostics.convergence import assess

        found = assess(np.concatenate(self.functions, axis=1)[..., None])
        self.convergence = f"R-hat {found.max_rhat_function:.3f}  ESS {found.min_ess_function:.0f}"
        self.next_check = time.monotonic() + self.owner.seconds_between_checks
