"""python -m truth [--quick] [--out PAGE]: print the table, write the page; status 1 on a fault."""

import argparse
import os
import sys
import time
from datetime import date
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markdown import Markdown

from .cells import FULL, QUICK
from .page import page
from .table import run


def main() -> int:
    """Run, print, write."""
    parser = argparse.ArgumentParser(prog="truth", description="Kernels against exact targets.")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter chains")
    parser.add_argument("--out", type=Path, help="page to write, docs/results/truth.md say")
    arguments = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    console, start = Console(), time.perf_counter()

    def report(result: Any) -> None:
        seconds = time.perf_counter() - start
        console.print(f"{seconds:5.0f} s  {summary(result)}", highlight=False)

    table = run(QUICK if arguments.quick else FULL, report=report)
    seconds = time.perf_counter() - start
    text = page(table, seconds=seconds, cores=cores, date=date.today().isoformat())
    console.print(Markdown(text))
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(text, encoding="utf-8")
    for fault in table.faults():
        console.print("FAULT", fault)
    return 1 if table.faults() else 0


def summary(result: Any) -> str:
    """A result in one line."""
    return "  ".join(f"{value:.3g}" if isinstance(value, float) else str(value) for value in result)


if __name__ == "__main__":
    sys.exit(main())
