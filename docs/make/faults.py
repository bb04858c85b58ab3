"""How wrong published faults make results: sizes that the tests tell which plant them.

    python docs/make/faults.py        # runs these tests, and keeps what they tell; some minutes

Tests marked `sized` plant a fault and say by how much a result is wrong then, or what the same
number is without a fault. The kept sizes are in `results/planted_faults/rows.jsonl`.
"""

import json
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as Tree
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kept import ROOT, commit, keep_rows, kept_rows, reads_dirty
from parts import markdown

NAME = "planted_faults"
SHOWN = {
    "two ends": "ratio of the two ends",
    "place": "1 / k in births alone, of neurons or layers",
    "borders": "forced births and deaths at the borders without their factor",
    "jacobian": "split without its Jacobian",
    "first neuron": "of two neurons at once the ratio of the first alone",
    "absent weights": "precisions drawn as if absent weights counted",
}
"""The faults of jumps between sizes, as their table says them."""


def main() -> None:
    """Run the tests that tell sizes, and keep these."""
    is_dirty, about = reads_dirty(__doc__), {"commit": commit(is_needed=True)}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tests.xml"
        report = ["-o", "junit_family=xunit1", f"--junitxml={path}"]
        command = [sys.executable, "-m", "pytest", "-q", "-m", "sized", *report]
        subprocess.run(command, cwd=ROOT, check=True)
        rows = [{**row, **about} for row in told(path.read_text(encoding="utf-8"))]
    keep_rows(NAME, rows, is_dirty=is_dirty)


def told(report: str) -> Iterator[dict[str, Any]]:
    """Read the sizes in a report of tests, each with the test that told it.

    Args:
        report: in the format of JUnit, of tests that this repository runs itself.
    """
    for case in Tree.fromstring(report).iter("testcase"):
        for found in case.iterfind("properties/property[@name='planted']"):
            test = f"{case.attrib['classname']}.{case.attrib['name']}"
            yield {"test": test, **json.loads(found.attrib["value"])}


def size(fault: str, on: str, of: str) -> float:
    """The size of a fault: standard errors, or a chi-squared statistic."""
    asked = {"fault": fault, "on": on, "of": of}
    (row,) = (row for row in kept_rows(NAME) if asked.items() <= row.items())
    return row["chi_squared"] if "chi_squared" in row else row["standard_errors"]


def without_fault() -> tuple[float, float]:
    """The smallest and the largest chi-squared of widths that exact jumps have."""
    found = [row["chi_squared"] for row in kept_rows(NAME) if row["fault"] == "none"]
    return min(found), max(found)


def table() -> str:
    """Faults of jumps between sizes, on what they are planted, and what is wrong then."""

    def wrong(row: dict[str, Any]) -> str:
        if "chi_squared" in row:
            of = f"on {row['degrees']:.0f} degrees of freedom"
            return f"{row['of']}: chi-squared {row['chi_squared']:.0f} {of}"
        return f"{row['of']}: off by {row['standard_errors']:.0f} standard errors"

    rows = [
        (shown, row["on"], wrong(row))
        for fault, shown in SHOWN.items()
        for row in kept_rows(NAME)
        if row["fault"] == fault
    ]
    return markdown(("planted", "on", "what is wrong then"), rows)


if __name__ == "__main__":
    main()
