"""Measures what tests cost, and says whose turn it is among those that cost much.

    PYTHONPATH=tests python -m pytest -p tools.costs -m "not slow" -n auto

writes `tests/costs.json`: what the variants of a test take on a day, in processor seconds, of tests
whose variants take more than LEAST. Such a test runs on every seventh day; `make test-slow` runs
the others. Its module may be exempt: what people meet first is tested every day. Where the tests of
a file share what costs, the file has one entry, made by hand, and they run on the same days.
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
"""Processor seconds beyond which a test takes turns."""
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


def has_turn(nodeid: str, day: int) -> bool:
    """Whether a test runs today: a cheap one always does.

    Variants change with the day too, every third or so (see conftest): DAYS has no factor in common
    with these numbers, so that each variant has its turn.
    """
    function = function_of(nodeid)
    turn = turns().get(function.split("::")[0], turns().get(function))
    return turn is None or turn == day % DAYS


def function_of(nodeid: str) -> str:
    """The test without its variant."""
    return nodeid.split("[")[0]


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
        lines.write(f"{_seconds() - before:.2f} {item.nodeid}\n")
    return result


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Add what was measured to the table, once, from the process that others report to."""
    if os.environ.get("PYTEST_XDIST_WORKER") or not OUT.exists():
        return
    found = defaultdict(list)
    for line in OUT.read_text(encoding="utf-8").splitlines():
        seconds, nodeid = line.split(" ", 1)
        found[function_of(nodeid)].append(float(seconds))
    known = {name: value for name, value in costly().items() if name not in found}
    table = known | {
        name: round(sum(values), 1)
        for name, values in found.items()
        if sum(values) > LEAST * len(values) and not name.startswith(EXEMPT)
    }
    TABLE.write_text(json.dumps(dict(sorted(table.items())), indent=1) + "\n", encoding="utf-8")
    OUT.unlink()
