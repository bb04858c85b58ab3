"""Rows of a benchmark: run what is missing, keep each row as it comes, and print the table."""

import argparse
import json
import statistics
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


def run(
    description: str | None,
    datasets: Sequence[str],
    models: Sequence[str],
    splits_of: Callable[[str], int],
    row_of: Callable[[str, int, str], dict[str, Any]],
    table_lines: Callable[[list[dict[str, Any]]], list[str]],
) -> None:
    """Run what the command line asks for and is not done yet, row by row, and print the table.

    Args:
        description: of the script, for its help.
        datasets, models: by default.
        splits_of: (data set) -> how many splits it has.
        row_of: (data set, split, model) -> a row, with its `seconds`.
        table_lines: (rows) -> a Markdown table.
    """
    parser = parser_of(description)
    parser.add_argument("--datasets", default=",".join(datasets))
    parser.add_argument("--splits", default="", help="such as 0-4; all by default")
    parser.add_argument("--models", default=",".join(models))
    options = parser.parse_args()
    import credence

    credence.configure()
    options.out.mkdir(parents=True, exist_ok=True)
    known = {(row["data"], row["split"], row["model"]) for row in done(options.out)}
    first, _, last = options.splits.partition("-")
    for name in () if options.table else options.datasets.split(","):
        numbers = range(splits_of(name))
        if options.splits:
            numbers = range(int(first), int(last or first) + 1)
        for number in numbers:
            for model in options.models.split(","):
                if (name, number, model) in known:
                    continue
                row = row_of(name, number, model)
                add_row(options.out, row)
                told = f"NLL {nll_of(row):.4f}, {row['seconds']:.1f} s"
                print(f"{name} {number} {model}: {told}", flush=True)
    print("\n".join(table_lines(done(options.out))))


def parser_of(description: str | None) -> argparse.ArgumentParser:
    """The options of all benchmarks that keep rows: a folder, and whether only to print."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--table", action="store_true", help="only print what is there")
    return parser


def nll_of(row: dict[str, Any]) -> float:
    """The log loss of labels goes by its own name."""
    return row["nll"] if "nll" in row else row["log_loss"]


def done(folder: Path) -> list[dict[str, Any]]:
    """The rows of earlier calls."""
    path = folder / "rows.jsonl"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return [json.loads(line) for line in text.splitlines()]


def add_row(folder: Path, row: dict[str, Any]) -> None:
    """Append a row to those of earlier calls."""
    with (folder / "rows.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def commit(*, is_needed: bool = False) -> str:
    """The commit that runs, with a mark where files differ from it; empty where there is none.

    Args:
        is_needed: fail in place of an empty one.
    """
    command = ["git", "-C", str(HERE), "describe", "--always", "--dirty", "--exclude", "*"]
    return subprocess.run(command, capture_output=True, text=True, check=is_needed).stdout.strip()


def commits(rows: list[dict[str, Any]]) -> str:
    """The commits that made these rows."""
    return ", ".join(sorted({row["commit"] for row in rows}))


def mean_error(values: list[float]) -> str:
    """Write a mean and its standard error over splits."""
    if len(values) < 2:
        return f"{values[0]:.4g}"
    return f"{statistics.mean(values):.4g} ± {statistics.stdev(values) / len(values) ** 0.5:.2g}"
