"""Numbers in the sentences of docs/explanation/ces.md."""

from collections.abc import Iterator
from typing import Any

from kept import kept_rows
from phrases import Phrase, given, made


def phrases() -> Iterator[Phrase]:
    """The phrases of the page, in its order."""
    yield from given(
        "makes a network 2.7 times less probable",
        "to an acceptance of 0.6",
        "Adam with rate .01 on batches",
        "with step .01, friction .05, batches of 32",
        "with h = .01, which is `step_size` .09975 here",
        "k-hat above 0.7 means",
        "where R-hat is not below 1.05",
        "had 61 seconds a method at 1000 rows",
        "within 0.3 standard deviations",
    )
    yield from of_published_emulator()
    yield from of_the_map()


def of_published_emulator() -> Iterator[Phrase]:
    """How far off the published emulator of Adult is."""
    (error,) = (
        row["emulator_error"]
        for row in kept_rows("fbnn_as_published")
        if row["problem"] == "adult" and row["emulator_error"] is not None
    )
    yield made("is off by {:,.0f} nats at draws that it has not seen", round(error, -1))


def of_the_map() -> Iterator[Phrase]:
    """Tables on which an emulator pays, and on which it does not."""
    mclmc = seconds("mclmc", 100_000) / seconds("ces", 100_000)
    unsettled = row_of("mclmc", 200_000)
    settled = max(row["rhat"] for row in kept_rows("emulation") if row["is_converged"])
    yield made("emulator's time at 10,000 rows, and {:.1f} times as long", mclmc)
    yield made(
        "converged after {:.0f} seconds (R-hat {:.2f})",
        unsettled["seconds_spent"],
        unsettled["rhat"],
    )
    assert settled < 1.005
    yield from given("of all others is below 1.005")


def row_of(method: str, num_rows: int) -> dict[str, Any]:
    """The row of a method on a table of so many rows."""
    asked = {"problem": "teacher", "method": method, "num_rows": num_rows}
    (row,) = (row for row in kept_rows("emulation") if asked.items() <= row.items())
    return row


def seconds(method: str, num_rows: int) -> float:
    """Seconds to 400 effective draws."""
    return row_of(method, num_rows)["seconds_to_400"]
