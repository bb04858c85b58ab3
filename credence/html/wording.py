"""Numbers as people read them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real

STEPS = {
    "start": "starting",
    "read": "reading",
    "compile": "compiling",
    "train": "training",
    "warmup": "warm-up",
    "sample": "sampling",
    "judge": "judging",
    "write": "writing",
}
"""Steps of a run that have other names in metrics.json than people would say."""


def number(value: object, digits: int = 3) -> str:
    """Three significant digits, a thin space between thousands, a true minus sign.

    Four digits stay together: they may be a year, and read as well.

    >>> number(1234567.0), number(1962), number(0.012345), number(-3.0)
    ('1\u202f234\u202f567', '1962', '0.0123', '−3')
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        return "–" if value is None else str(value)
    value = float(value)
    if not math.isfinite(value):
        return "not finite"
    if value != 0 and not 1e-4 <= abs(value) < 1e9:
        text = f"{value:.{digits - 1}e}".replace("e-0", "e-").replace("e+0", "e").replace("e+", "e")
    elif value.is_integer() or abs(value) >= 10**digits:
        text = f"{value:,.0f}"
    else:
        decimals = digits - 1 - math.floor(math.log10(abs(value)))
        text = f"{value:,.{max(decimals, 0)}f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
    whole = text.lstrip("-").partition(".")[0]
    between = "" if len(whole) == len("9,999") else "\u202f"
    return text.replace(",", between).replace("-", "−")


def digits_to_tell(width: float, size: float) -> int:
    """How many significant digits numbers of a size need, so that a width shows in two of its own.

    >>> number(1000000.1, digits_to_tell(0.5, 1e6))
    '1\u202f000\u202f000.1'
    """
    if not 0 < width < size < math.inf:
        return 3
    return min(max(3, 2 + math.ceil(math.log10(size / width))), 17)


def with_unit(value: object, unit: str, digits: int = 3) -> str:
    """A number and its unit, never broken over two lines."""
    return f"{number(value, digits)}\u00a0{unit}" if unit else number(value, digits)


def percent(share: float, decimals: int = 0) -> str:
    """A share as a percentage; a share short of 0 or 1 is never rounded onto it."""
    if not math.isfinite(share):
        return "–"
    text = f"{100 * share:.{decimals}f}"
    if share < 1 and float(text) >= 100:
        text = f"{100 - 10**-decimals:.{decimals}f}" if decimals else ">99"
    if share > 0 and float(text.lstrip(">")) <= 0:
        text = f"{10**-decimals:.{decimals}f}" if decimals else "<1"
    return f"{text}\u00a0%".replace("-", "−")


def points(difference: float) -> str:
    """A difference of two percentages, in percentage points."""
    value = f"{100 * difference:.1f}"
    return f"{value}\u00a0{'point' if value == '1.0' else 'points'}".replace("-", "−")


SHARES = ("accuracy", "coverage_95", "coverage_95_credible", "coverage_95_conformal")
"""Scores that are shares of rows."""
SHARE_DIFFERENCES = ("ece", "ece_equal_mass", "ece_all_classes", "ece_tempered")
"""Scores that are differences of two shares."""


def score(name: str, value: object, unit: str = "") -> str:
    """A score of metrics.json as it is written everywhere: shares as percentages.

    >>> score("coverage_95", 0.946), score("ece", 0.0974), score("rmse", 48.21)
    ('94.6\xa0%', '9.7\xa0points', '48.2')
    """
    if not isinstance(value, Real) or not math.isfinite(value):
        return with_unit(value, unit if isinstance(value, Real) else "")
    if name in SHARES:
        return percent(float(value), 1)
    return points(float(value)) if name in SHARE_DIFFERENCES else with_unit(value, unit)


def times(larger: float, smaller: float) -> str:
    """A ratio: `2.1 times`."""
    return f"{number(larger / smaller, 2)} times" if smaller > 0 else "many times"


def duration(seconds: float) -> str:
    """Seconds as s, min or h."""
    if not math.isfinite(seconds):
        return "–"
    if seconds < 99.5:
        return f"{number(seconds, 2)}\u00a0s"
    if seconds < 5970:
        return f"{seconds / 60:.0f}\u00a0min"
    return f"{seconds / 3600:.1f}\u00a0h"


def count(n: int, noun: str) -> str:
    """`1 row`, `2 rows`, `12 345 rows`."""
    return f"{number(n)} {noun}" if n == 1 else f"{number(n)} {noun}s"


def steps(seconds: Mapping[str, float], shortest: float = 0.0) -> tuple[float, dict[str, float]]:
    """All seconds together, and the steps they were spent in, short ones left out.

    Runs of earlier versions did not count a total.
    """
    parts = {STEPS.get(name, name): value for name, value in seconds.items() if name != "total"}
    shown = {name: value for name, value in parts.items() if value >= shortest}
    return seconds.get("total", sum(parts.values())), shown


def cut_short(stopped: str, num_draws: int, num_asked: int | None) -> str:
    """The sentence on a run that time or Ctrl-C ended; empty for one that finished."""
    causes = {"time": "the time budget was enough for no more", "interrupt": "it was interrupted"}
    if stopped not in causes:
        return ""
    if num_asked is None:
        return f"The run was cut short: {causes[stopped]}."
    if num_draws >= num_asked:
        return (
            f"All {num_asked} draws per chain were made, but what comes before them, warm-up or "
            f"training, was cut short: {causes[stopped]}."
        )
    before = " Warm-up or training may be cut short, too." if stopped == "time" else ""
    return f"Only {num_draws} draws per chain: {causes[stopped]}.{before}"


def divergent(num_divergent: int | None, num_draws: int) -> str:
    """The sentence on draws whose step diverged; empty where there were none."""
    if not num_divergent:
        return ""
    return (
        f"On the way to {number(num_divergent)} of {count(num_draws, 'draw')} "
        f"({percent(num_divergent / num_draws, 1)}) the sampler diverged: its step was too long "
        "there, and what lies behind may be drawn too seldom."
    )
