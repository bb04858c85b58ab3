"""Rows of a benchmark: run what is missing, keep each row as it comes, and print the table."""

import argparse
import json
import math
import multiprocessing
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from credence.environment import DIRTY, UNKNOWN_COMMIT, machine, source_commit

RESULTS = Path(__file__).parents[1] / "results"


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


class KeepingParser(argparse.ArgumentParser):
    """Reads a command line; refuses to add rows to `results/` that no commit would make."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        add_dirty(self)

    def parse_args(self, args: Any = None, namespace: Any = None) -> argparse.Namespace:
        """The options, of which `out` is a folder, or None."""
        options = super().parse_args(args, namespace)
        is_kept = options.out is not None and options.out.resolve().is_relative_to(RESULTS)
        if is_kept and not (options.dirty or getattr(options, "table", False)):
            refuse_dirty(commit())
        return options


def parser_of(description: str | None) -> KeepingParser:
    """The options of all benchmarks that keep rows: a folder, and whether only to print."""
    parser = KeepingParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--table", action="store_true", help="only print what is there")
    return parser


def add_dirty(parser: argparse.ArgumentParser) -> None:
    """Add the option that keeps what no commit has made."""
    parser.add_argument(
        "--dirty", action="store_true", help="keep results though files differ from the commit"
    )


def refuse_dirty(*commits: str) -> None:
    """End the program where one of these commits is not what ran.

    Raises:
        SystemExit: says what to do.
    """
    if found := [each for each in commits if DIRTY in each]:
        sys.exit(
            f"Not kept: files differ from the commit ({found[0]}). Commit them and run again, "
            "write to a folder outside of results/, or say --dirty."
        )


def measure(
    folder: Path,
    cases: Iterable[dict[str, Any]],
    measured: Callable[[dict[str, Any]], dict[str, Any]],
) -> None:
    """Measure what has no row yet: each case in a new process, pinned to the cores that it says.

    Args:
        folder: of the rows.
        cases: the entries that tell a row from the others, `num_cores` among them.
        measured: (case) -> the other entries, a function of a module. The `seconds` of a row are
            those of its process, where they are not among them.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for case in cases:
        if any(case.items() <= row.items() for row in done(folder)):
            continue
        about, start = {"commit": commit()}, time.perf_counter()
        found = in_new_process(measured, case, num_cores=case["num_cores"])
        seconds = time.perf_counter() - start
        add_row(folder, {**case, "seconds": seconds, **found, **about})
        print(f"{case}: {seconds:.0f} s", flush=True)


def run_cases(
    description: str | None,
    cases: Callable[[int], Iterable[dict[str, Any]]],
    measured: Callable[[dict[str, Any]], dict[str, Any]],
    table_lines: Callable[[list[dict[str, Any]]], list[str]],
) -> None:
    """Measure the cases of the seed that the command line says, and print the table.

    Args:
        description: of the script, for its help.
        cases: (seed) -> cases as of `measure`.
        measured: as of `measure`.
        table_lines: (rows) -> a Markdown table.
    """
    parser = parser_of(description)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    measure(options.out, () if options.table else cases(options.seed), measured)
    print("\n".join(table_lines(done(options.out))))


def in_new_process(
    function: Callable[..., Any], *arguments: Any, num_cores: int, cache: str | None = None
) -> Any:
    """Call a function in a new process that is pinned to cores, with a JAX device on each.

    Args:
        function, arguments: can be pickled; the function's module does not import JAX.
        num_cores: how many of the cores that this process may use, the last ones. Needs Linux.
        cache: a folder for compiled programs.
    """
    cores = sorted(os.sched_getaffinity(0))[-num_cores:]
    environment = {"JAX_NUM_CPU_DEVICES": str(num_cores), "JAX_PLATFORMS": "cpu"}
    if cache:
        environment |= {"JAX_COMPILATION_CACHE_DIR": cache}
        environment |= {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, spawn, _settle, (cores, environment)) as pool:
        return pool.submit(function, *arguments).result()


def _settle(cores: list[int], environment: dict[str, str]) -> None:
    """Pin this process, before it imports JAX."""
    os.sched_setaffinity(0, cores)
    os.environ.update(environment)


def nll_of(row: dict[str, Any]) -> float:
    """The log loss of labels goes by its own name."""
    return row["nll"] if "nll" in row else row["log_loss"]


def done(folder: Path) -> list[dict[str, Any]]:
    """The rows of earlier calls."""
    path = folder / "rows.jsonl"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    return [json.loads(line) for line in text.splitlines()]


def add_row(folder: Path, row: dict[str, Any]) -> None:
    """Append a row, and the machine, to those of earlier calls, its numbers with six digits."""
    with (folder / "rows.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(short({**row, "machine": machine()})) + "\n")


def beside_reference(
    rows: Iterable[dict[str, Any]],
    keys: tuple[str, str],
    orders: tuple[Iterable[str], Sequence[str]],
    reference: str,
    cells: Callable[[dict[str, Any], dict[str, Any] | None], list[str]],
) -> list[list[str]]:
    """Lines of a table: problem by problem, each contender beside the reference there.

    Args:
        keys: entries of a row that name its problem and its contender; the newest row counts.
        orders: problems and contenders as the table lists them.
        reference: the contender that others are compared with.
        cells: (row, the reference's row where there is one) -> a line.
    """
    problem, contender = keys
    newest = {(row[problem], row[contender]): row for row in rows}
    problems, contenders = orders
    return [
        cells(newest[one, other], newest.get((one, reference)))
        for one in problems
        for other in contenders
        if (one, other) in newest
    ]


def how_run(rows: list[dict[str, Any]]) -> str:
    """Tell seed, cores and commit of rows in a sentence."""
    seeds, cores = values(rows, "seed"), values(rows, "num_cores")
    return f"Seed: {seeds}; cores: {cores}; commit: {commits(rows)}."


def evidence_text(row: dict[str, Any], decimals: int = 1) -> str:
    """Write the log evidence of a row in nats, with its error where that is known; or a dash."""
    if row["log_evidence"] is None:
        return "-"
    error = row["log_evidence_error"]
    shown = f"{row['log_evidence']:.{decimals}f}"
    return shown + (f" ± {error:.{decimals}f}" if math.isfinite(error) else "")


def short(value: Any) -> Any:
    """Write numbers with six digits, which is more than a page shows."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: short(each) for key, each in value.items()}
    return [short(each) for each in value] if isinstance(value, list) else value


def commit(*, is_needed: bool = False) -> str:
    """The commit that runs, as `source_commit` tells it; empty where there is none.

    Args:
        is_needed: end the program in place of an empty one.
    """
    found = source_commit()
    if found != UNKNOWN_COMMIT:
        return found
    return sys.exit("No commit is known: run this in a checkout.") if is_needed else ""


def commits(rows: list[dict[str, Any]]) -> str:
    """Name the commits that made these rows."""
    return values(rows, "commit")


def values(rows: list[dict[str, Any]], name: str) -> str:
    """Join all values of an entry."""
    return ", ".join(map(str, sorted({row[name] for row in rows})))


def mean_error(values: list[float]) -> str:
    """Write a mean and its standard error over splits."""
    if len(values) < 2:
        return f"{values[0]:.4g}"
    return f"{statistics.mean(values):.4g} ± {statistics.stdev(values) / len(values) ** 0.5:.2g}"


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a Markdown table."""
    line, *lines = [f"| {' | '.join(cells)} |" for cells in (heads, *rows)]
    return [line, f"|{'---|' * len(heads)}", *lines]
