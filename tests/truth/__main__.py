"""python -m truth [--quick] [--out FILE]: print the table, keep it; status 1 on a fault."""

import argparse
import json
import os
import sys
import time
from datetime import date
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markdown import Markdown

from .cells import FULL, QUICK
from .page import about, page
from .table import run, to_json


def main() -> int:
    """Run, print, write."""
    parser = argparse.ArgumentParser(prog="truth", description="Kernels against exact targets.")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter chains")
    parser.add_argument("--out", type=Path, help="file to write, results/truth/full.json say")
    arguments = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    console, start = Console(), time.perf_counter()

    def report(result: Any) -> None:
        seconds = time.perf_counter() - start
        console.print(f"{seconds:5.0f} s  {summary(result)}", highlight=False)

    table = run(QUICK if arguments.quick else FULL, report=report)
    seconds = time.perf_counter() - start
    found = {**about(seconds=seconds, cores=cores, date=date.today().isoformat()), **to_json(table)}
    console.print(Markdown(page(found)))
    if arguments.out:
        arguments.out.parent.mkdir(parents=True, exist_ok=True)
        arguments.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    for fault in table.faults():
        console.print("FAULT", fault)
    return 1 if table.faults() else 0


def summary(result: Any) -> str:
    """A result in one line."""
    return "  ".join(f"{value:.3g}" if isinstance(value, float) else str(value) for value in result)


if __name__ == "__main__":
    sys.exit(main())
