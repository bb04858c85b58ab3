"""Runs that are stopped on the way."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from credence.engine.progress import Line, Monitor, NoLine, NoProgress


class Stop(Exception):
    """What a test throws into a run."""


def stop() -> None:
    """Stop a run as a crash would."""
    raise Stop


class AfterBlocks(NoProgress):
    """Does something when so many blocks of the run are saved; by default it stops."""

    def __init__(self, num_blocks: int, action: Callable[[], Any] = stop) -> None:
        self.left, self.action = num_blocks, action
        self.said: list[str] = []

    def phase(
        self, name: str, num_draws: int | None, *, done: int = 0, monitor: Monitor | None = None
    ) -> AbstractContextManager[Line]:
        owner = self

        class Counting(NoLine):
            def advance(self, num_draws: int) -> None:
                owner.left -= 1
                if owner.left == 0:
                    owner.action()

        return nullcontext(Counting())

    def say(self, message: str) -> None:
        self.said.append(message)
