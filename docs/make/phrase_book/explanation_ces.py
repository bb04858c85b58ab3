"""Numbers in the sentences of docs/explanation/ces.md."""

import math
from collections.abc import Iterator
from typing import Any

from kept import kept, kept_rows, rows_by
from phrases import Phrase, given, made

EMULATED = "ces", "ces_mclmc"
"""The exact chains along the emulator."""


def phrases() -> Iterator[Phrase]:
    """The phrases of the page, in its order."""
    yield from given(
        "(10 nats, unless you say otherwise)",
        "makes a network 2.7 times less probable",
        "to an acceptance of 0.6",
        "Adam with rate .01 on batches",
        "with step .01, friction .05, batches of 32",
        "with h = .01, which is `step_size` .09975 here",
        "k-hat above 0.7 means",
        "where R-hat is not below 1.05",
        "within 0.3 standard deviations",
        "they are more than 3 off",
    )
    yield from of_emulators_at_many_weights()
    yield from of_limits()
    yield from of_the_map()


def of_emulators_at_many_weights() -> Iterator[Phrase]:
    """Tell how far off the published emulator is, and how many weights a coreset had."""
    errors = {
        row["problem"]: row["emulator_error"]
        for row in kept_rows("fbnn_as_published")
        if row["emulator_error"] is not None
    }
    yield made(
        "is off by {:,.0f} nats at draws that it has not seen", round(errors.pop("adult"), -1)
    )
    yield made("1,521 weights by {:,.0f} nats or more", min(errors.values()))
    weights = [problem["num_weights"] for problem in kept("fbnn_full")["problems"]]
    yield made("has been run with {:,} to {:,} weights", min(weights), max(weights))


def of_limits() -> Iterator[Phrase]:
    """The seconds that every method had, by rows."""
    limits = [limit_of(num_rows) for num_rows in (1000, 10_000, 100_000, 200_000)]
    yield made(
        "had {:.0f} seconds a method at 1000 rows (NUTS {:.0f}), {:.0f} at 10,000, "
        "{:.0f} at 100,000 and {:.0f} at 200,000",
        limits[0],
        row_of("nuts", 1000)["limit"],
        *limits[1:],
    )


def of_the_map() -> Iterator[Phrase]:
    """Tables on which an emulator pays, and on which it does not."""
    unsettled = row_of("mclmc", 200_000)
    settled = max(row["rhat"] for row in kept_rows("emulation") if row["is_converged"])
    sooner = [seconds(chain, 10_000) / seconds("mclmc", 10_000) for chain in EMULATED]
    later = [
        seconds(method, 100_000) / seconds(chain, 100_000)
        for method in ("nuts", "mclmc")
        for chain in EMULATED
    ]
    yield made("on all rows was {:.1f} times as fast", sooner[0])
    yield made(
        "took {:.1f} times as long at 100,000",
        seconds("mclmc", 100_000) / seconds("ces", 100_000),
    )
    yield made("on all of them is {:.1f} times as fast as the exact", min(sooner))
    yield made("these are {:.1f} to {:.1f} times as fast as NUTS", min(later), max(later))
    yield made(
        "converged after {:.0f} seconds (R-hat {:.2f})",
        unsettled["seconds_spent"],
        unsettled["rhat"],
    )
    yield made("of all others is below {:.3f}", math.ceil(1000 * settled) / 1000)


def limit_of(num_rows: int) -> float:
    """The seconds that all methods but NUTS had on a table of so many rows."""
    rows = [row for row in kept_rows("emulation") if row["num_rows"] == num_rows]
    (limit,) = {row["limit"] for row in rows if row["method"] != "nuts"}
    return limit


def row_of(method: str, num_rows: int) -> dict[str, Any]:
    """The row of a method on a table of so many rows."""
    return rows_by("emulation", "method", problem="teacher", num_rows=num_rows)[method]


def seconds(method: str, num_rows: int) -> float:
    """Seconds to 400 effective draws."""
    return row_of(method, num_rows)["seconds_to_400"]
