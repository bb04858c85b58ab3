"""Ctrl-C ends a command wherever it is."""

import _thread
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SECONDS_LATER = 0.05
"""Seconds until it is delivered again: at once the hook that hears of it would drop it, too."""


@contextmanager
def delivered_again() -> Iterator[None]:
    """Deliver a Ctrl-C again that Python drops.

    An exception in a callback, as JAX has of the garbage collector, or in a `__del__` is printed
    and forgotten, and the program runs on.
    """

    def hook(dropped: Any) -> None:
        if issubclass(dropped.exc_type, KeyboardInterrupt):
            threading.Timer(SECONDS_LATER, _thread.interrupt_main).start()
        else:
            previous(dropped)

    previous, sys.unraisablehook = sys.unraisablehook, hook
    try:
        yield
    finally:
        sys.unraisablehook = previous


def is_interrupt(stop: BaseException) -> bool:
    """Whether a command ends by Ctrl-C, which typer turns into an exit without a word."""
    cause = getattr(stop.__context__, "__cause__", None)
    return isinstance(stop, KeyboardInterrupt) or isinstance(cause, KeyboardInterrupt)
