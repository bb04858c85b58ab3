"""The seconds of a run are those of the clock on the wall, and all of them are accounted for."""

import time

import pytest

from credence.runs.stopwatch import Stopwatch


def test_laps_and_phases_make_up_the_clock_on_the_wall(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(time, "perf_counter", lambda: now)
    watch = Stopwatch()
    for name, seconds in (("read", 2), ("fit", 10), ("judge", 3), ("write", 1), ("judge", 4)):
        now += seconds
        watch.lap(name)
    phases = {"compile": 5.0, "sample": 3.5, "other": 0.25}
    assert watch.seconds(phases) == {
        "read": 2,
        "compile": 5,
        "sample": 3.5,
        "other": 1.5,
        "judge": 7,
        "write": 1,
        "total": 20,
    }


def test_a_resumed_run_counts_what_its_phases_took_before() -> None:
    watch = Stopwatch()
    watch.laps = {"fit": 2.0}
    assert watch.seconds({"sample": 30.0}) == {"sample": 30.0, "other": 0.0, "total": 30.0}
