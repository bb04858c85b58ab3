"""Ctrl-C reaches the command, and is told."""

import sys
import time

import pytest
import typer

from credence import cli
from credence.cli.interrupts import delivered_again


class Drops:
    """Python drops what `__del__` raises."""

    def __init__(self, error: type[BaseException]) -> None:
        self.error = error

    def __del__(self) -> None:
        raise self.error


def test_an_interrupt_that_python_drops_is_delivered_again() -> None:
    def work() -> None:
        with delivered_again():
            Drops(KeyboardInterrupt)
            for _ in range(500):
                time.sleep(0.01)

    before = sys.unraisablehook
    with pytest.raises(KeyboardInterrupt):
        work()
    assert sys.unraisablehook is before


def test_other_errors_are_left_to_the_hook_before(monkeypatch: pytest.MonkeyPatch) -> None:
    dropped = []
    monkeypatch.setattr(sys, "unraisablehook", dropped.append)
    with delivered_again():
        Drops(ValueError)
    assert [each.exc_type for each in dropped] == [ValueError]


def test_an_interrupted_command_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped() -> None:
        raise KeyboardInterrupt

    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(stopped)
    monkeypatch.setattr(cli, "app", app)
    monkeypatch.setattr(sys, "argv", ["credence"])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 130
    assert "Stopped. A run that had saved something goes on" in capsys.readouterr().err
