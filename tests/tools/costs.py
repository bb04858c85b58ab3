"""Measures what tests cost, and says whose turn it is among those that cost much.

    PYTHONPATH=tests python -m pytest -p tools.costs -m "not slow" -n auto --dist loadfile

writes `tests/costs.json`: what the variants of a test take on a day, in processor seconds, of tests
of which a variant takes more than LEAST, or all of them more than MOST. Such a test runs on every
seventh day; `make test-slow` runs the others. Its module may be exempt: what people meet first is
tested every day. Where tests share what costs, all of a file or those with a fixture of its own,
FILE or FILE::FIXTURE has one entry, made by hand, and they run on the same days.
"""

import json
import os
from collections import defaultdict
from collections.abc import Generator
from functools import cache
from pathlib import Path

import pytest

TABLE = Path(__file__).parents[1] / "costs.json"
LEAST = 2.0
"""Processor seconds of a variant beyond which a test takes turns."""
MOST = 6.0
"""Processor seconds of all variants of a day beyond which it does."""
LITTLE = 0.2
"""Processor seconds that a test without an entry is thought to take."""
DAYS = 7
EXEMPT = (
    "tests/cli/", "tests/docs/", "tests/estimators/", "tests/report/", "tests/runs/", "tests/test_",
)  # fmt: skip
"""Tests of the faces, and files that stand for the whole house."""
OUT = Path(os.environ.get("CREDENCE_COSTS", ".test-costs"))
"""Each process appends what it measures here."""


@cache
def costly() -> dict[str, float]:
    """Tests that take turns, and the processor seconds of their variants on a day."""
    return json.loads(TABLE.read_text(encoding="utf-8")) if TABLE.exists() else {}


@cache
def turns() -> dict[str, int]:
    """The turn of every costly test: dearest first, each to the turn that is cheapest so far."""
    totals, found = [0.0] * DAYS, {}
    for name, seconds in sorted(costly().items(), key=lambda each: (-each[1], each[0])):
        found[name] = totals.index(min(totals))
        totals[found[name]] += seconds
    return found


def has_turn(item: pytest.Item, day: int) -> bool:
    """Whether a test runs today: a cheap one always does.

    Variants change with the day too, every third or so (see conftest): DAYS has no factor in common
    with these numbers, so that each variant has its turn.
    """
    turn = turns().get(entry_of(item))
    return turn is None or turn == day % DAYS


def seconds_of_files(items: list[pytest.Item], day: int) -> dict[str, float]:
    """Processor seconds of all files today: of their entries, and a little for each other test."""
    found: dict[str, dict[str, float]] = defaultdict(dict)
    for item in items:
        entry = entry_of(item)
        is_costly = entry in costly()
        seconds = costly()[entry] if is_costly and has_turn(item, day) else LITTLE
        found[item.nodeid.split("::")[0]][entry if is_costly else item.nodeid] = seconds
    return {file: sum(entries.values()) for file, entries in found.items()}


def entry_of(item: pytest.Item) -> str:
    """The name under which a test counts: its file, a fixture, or itself without its variant."""
    function = item.nodeid.split("[")[0]
    file = function.split("::")[0]
    fixtures = (f"{file}::{name}" for name in getattr(item, "fixturenames", ()))
    return next((name for name in (file, *fixtures) if name in costly()), function)


def is_shared(entry: str) -> bool:
    """Whether it is of a file or a fixture, not of a test."""
    return "::test_" not in entry


def _seconds() -> float:
    """Processor seconds of this process and of those it has waited for."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Measure each test with its fixtures."""
    before = _seconds()
    result = yield
    with OUT.open("a", encoding="utf-8") as lines:
        lines.write(f"{_seconds() - before:.2f} {entry_of(item)}\n")
    return result


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Add what was measured to the table, once, from the process that others report to."""
    if os.environ.get("PYTEST_XDIST_WORKER") or not OUT.exists():
        return
    found = defaultdict(list)
    for line in OUT.read_text(encoding="utf-8").splitlines():
        seconds, entry = line.split(" ", 1)
        if entry in costly() or not entry.startswith(EXEMPT):
            found[entry].append(float(seconds))
    known = {name: value for name, value in costly().items() if name not in found}
    table = known | {
        name: round(sum(values), 1)
        for name, values in found.items()
        if is_shared(name) or sum(values) > min(LEAST * len(values), MOST)
    }
    TABLE.write_text(json.dumps(dict(sorted(table.items())), indent=1) + "\n", encoding="utf-8")
    OUT.unlink()
