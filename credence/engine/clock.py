"""How long compilation takes, as JAX itself reports it."""

import threading
import time
from types import TracebackType

import jax

_EVENTS = ("jaxpr_trace_duration", "jaxpr_to_mlir_module_duration", "backend_compile_duration")
_is_listening = False
_num_programs = 0
"""Compiled, or read from disk, since the first clock was opened."""


class CompileClock:
    """Seconds and number of this thread's compilations (cache reads included) while it is open.

    A function traced inside another counts as a trace of its own, but its seconds count once.
    """

    def __init__(self) -> None:
        self.num_traces = 0
        self._spans: list[tuple[float, float]] = []

    @property
    def seconds(self) -> float:
        """Seconds spent compiling so far."""
        return sum(end - start for start, end in self._spans)

    def add(self, seconds: float) -> None:
        """Something that took so long has just ended; what it contains is counted with it."""
        end = time.perf_counter()
        while self._spans and self._spans[-1][0] >= end - seconds:
            self._spans.pop()
        self._spans.append((end - seconds, end))

    def __enter__(self) -> "CompileClock":
        _listen()
        _running.clocks.append(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _running.clocks.remove(self)


class _Running(threading.local):
    """Open clocks of a thread."""

    def __init__(self) -> None:
        self.clocks: list[CompileClock] = []


_running = _Running()


def count_compilation(seconds: float) -> None:
    """Add time that this thread has just spent waiting for another one that compiles."""
    for clock in _running.clocks:
        clock.add(seconds)


def _listen() -> None:
    """Register with JAX, once per process: it keeps listeners for good."""
    global _is_listening
    if not _is_listening:
        jax.monitoring.register_event_duration_secs_listener(_on_event)
        _is_listening = True


def count_programs() -> int:
    """Programs that this process has compiled, or read from disk, since its first clock."""
    return _num_programs


def _on_event(event: str, duration_secs: float, **_: str | int) -> None:
    global _num_programs
    _num_programs += event.endswith(_EVENTS[-1])
    if event.endswith(_EVENTS):
        for clock in _running.clocks:
            clock.add(duration_secs)
            clock.num_traces += event.endswith(_EVENTS[0])
