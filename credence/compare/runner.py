"""All cells of an experiment: each in a fresh process, several side by side through joblib.

OUT/experiment.json     what is run
OUT/cells/NAME.json     one finished cell; its name holds a hash of all that the result depends on
OUT/results.json        the table
OUT/report.html         the page

A cell whose file is there is read, not run again; a failed one is tried again. Ctrl-C keeps what is
finished, and the cell that was under way goes on from its checkpoint.
"""

import contextlib
import json
import os
import subprocess
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from credence.compare import problem
from credence.compare.earlier import ABOUT, require_same
from credence.compare.sources import moved
from credence.compare.specs import CellSpec, Experiment, Outcome, RowLimits, to_json
from credence.environment import num_cores
from credence.errors import InputError, StorageError, time_limit
from credence.processes import module_command
from credence.runs.folder import require_usable
from credence.runs.workflow import check_seed_and_time
from credence.storage import write_text

BACKENDS = ("loky", "dask", "ray")
OUT_OF_MEMORY, TOLD = "; out of memory perhaps", "; it was told to stop"
WHY = {-9: OUT_OF_MEMORY, 128 + 9: OUT_OF_MEMORY, -15: TOLD, 128 + 15: TOLD}
"""What the status of a process says that the system ended, in a container or not."""


class Watch(Protocol):
    """What hears of every finished cell."""

    def start(self, total: int, done: int) -> None:
        """Begin a run of `total` cells, of which `done` were read from files."""
        ...

    def finished(self, outcome: Outcome) -> None:
        """One more cell is finished."""
        ...

    def say(self, message: str) -> None:
        """Show a sentence to the person who watches."""
        ...


class NoWatch:
    """A watch that shows nothing."""

    def start(self, total: int, done: int) -> None:
        """Do nothing: no progress is shown."""

    def finished(self, outcome: Outcome) -> None:
        """Do nothing: no cell is shown."""

    def say(self, message: str) -> None:
        """Do nothing: no message is shown."""


def run(
    experiment: Experiment,
    out: str | Path,
    *,
    size: str = "laptop",
    seed: int = 0,
    n_jobs: int = 1,
    backend: str = "loky",
    max_seconds: float | None = None,
    num_seeds: int | None = None,
    watch: Watch | None = None,
) -> dict[str, Any]:
    """Run what is not finished yet; write and return the table (see `results.summarise`).

    Args:
        out: folder; a new one, or that of an earlier run.
        size: smoke, laptop or paper.
        n_jobs: cells at a time; they share the cores evenly. Times are only comparable at 1.
        backend: of joblib: loky on this machine; dask and ray, set up by the caller, on a cluster
            whose machines share `out`.
        max_seconds: time budget of every method.
        num_seeds: how often every cell is repeated with another seed, hence on another split; None
            takes the experiment's own number.
    Raises:
        InputError: for a setting out of range, one that a method does not have, data that are not
            to be had, an unusable folder, one that holds another experiment or comparison.
        StorageError: where the folder cannot be written.
        KeyboardInterrupt: on Ctrl-C.
    """
    from credence.compare import results
    from credence.compare.show.page import render

    watch = watch or NoWatch()
    _check(n_jobs, backend, max_seconds, seed, num_seeds)
    max_seconds = time_limit(max_seconds)
    cells = experiment.cells(size, seed, max_seconds, num_seeds)
    folder = Path(out)
    require_usable(folder, ABOUT)
    require_same(folder, experiment, cells)
    last = seed + (num_seeds or experiment.num_seeds.get(size, 1)) - 1
    experiment = _to_be_had(experiment, size, last, watch)
    cells = experiment.cells(size, seed, max_seconds, num_seeds)
    outcomes = {cell.name: found for cell in cells if (found := read(folder, cell))}
    missing = [cell for cell in cells if cell.name not in outcomes]
    _check_methods(missing)
    claim(folder, experiment)
    watch.start(len(cells), len(outcomes))
    for outcome in _run_all(missing, folder, n_jobs, backend):
        outcomes[outcome.cell.name] = outcome
        watch.finished(outcome)
    ordered = [outcomes[cell.name] for cell in cells]
    summary = results.summarise(
        experiment, ordered, size=size, seed=seed, n_jobs=n_jobs, max_seconds=max_seconds
    )
    write_results(folder, summary, render)
    return summary


def write_results(
    folder: Path, summary: dict[str, Any], render: Callable[[dict[str, Any]], str]
) -> None:
    """Write the table and its page, each whole or not at all.

    Raises:
        StorageError: where they cannot be written.
    """
    write_text(folder / "results.json", json.dumps(summary, indent=2, allow_nan=False))
    write_text(folder / "report.html", render(summary))


def read(folder: Path, cell: CellSpec) -> Outcome | None:
    """A finished cell; None where there is none, or it failed."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        outcome = Outcome(cell, json.loads(cell_path(folder, cell).read_text(encoding="utf-8")))
        return outcome if outcome.is_done else None
    return None


def cell_path(folder: Path, cell: CellSpec) -> Path:
    """The path of the file that holds a cell's result."""
    return folder / "cells" / f"{cell.name}.json"


def run_cell(cell: CellSpec, folder: Path, cores: int) -> Outcome:
    """Run one cell in a fresh process and read what it wrote.

    A process that dies leaves a failed cell that says so. A cell that another process has finished
    meanwhile is read.
    """
    if (found := read(folder, cell)) is not None:
        return found
    out = cell_path(folder, cell)
    spec = out.with_suffix(".spec.json")
    write_text(spec, json.dumps(to_json(cell)))
    out.unlink(missing_ok=True)
    command = module_command("credence.compare.cell", str(spec), str(out), str(min(cores, 8)))
    ended = subprocess.run(
        command, env=_environment(cores), capture_output=True, text=True, check=False
    )
    if ended.returncode == 130:
        raise KeyboardInterrupt
    spec.unlink(missing_ok=True)
    if out.exists():
        return Outcome(cell, json.loads(out.read_text(encoding="utf-8")))
    last = (ended.stderr.strip().splitlines() or ["no message"])[-1]
    why = WHY.get(ended.returncode, "")
    error = f"The process ended with status {ended.returncode} ({last}){why}."
    return Outcome(cell, {"status": "failed", "error": error, "traceback": ended.stderr[-4000:]})


def _environment(cores: int) -> dict[str, str]:
    """Environment variables of a cell's process.

    Every library has `cores` threads, and no compiled program comes from another process.
    """
    threads = ("PJRT_NPROC", "NPROC", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    kept = {k: v for k, v in os.environ.items() if k != "JAX_COMPILATION_CACHE_DIR"}
    return {**kept, **dict.fromkeys(threads, str(cores)), "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}


def _run_all(cells: list[CellSpec], folder: Path, n_jobs: int, backend: str) -> Iterator[Outcome]:
    """Outcomes as they come."""
    if n_jobs == 1 and backend == "loky":
        yield from (run_cell(cell, folder, num_cores()) for cell in cells)
        return
    import joblib

    cores = max(1, num_cores() // n_jobs)
    streams = "generator_unordered" if backend == "loky" else "list"
    with joblib.parallel_config(backend=backend, n_jobs=n_jobs):
        parallel = joblib.Parallel(return_as=streams, batch_size=1)  # pyright: ignore
        yield from parallel(joblib.delayed(run_cell)(cell, folder, cores) for cell in cells)


def claim(folder: Path, experiment: Experiment) -> None:
    """Make the folder this experiment's.

    Raises:
        InputError: where it cannot be written.
    """
    try:
        write_text(folder / ABOUT, json.dumps(to_json(experiment), indent=2))
        (folder / "cells").mkdir(exist_ok=True)
    except (OSError, StorageError) as error:
        raise InputError(f"{folder} cannot be written ({error}): give another --out.") from error


def _check(
    n_jobs: int, backend: str, max_seconds: float | None, seed: int, num_seeds: int | None
) -> None:
    if n_jobs < 1:
        raise InputError(f"--jobs must be >= 1, got {n_jobs}; 1 gives comparable times.")
    if backend not in BACKENDS:
        raise InputError(f"Unknown backend '{backend}': choose one of {', '.join(BACKENDS)}.")
    if num_seeds is not None and num_seeds < 1:
        raise InputError(f"--seeds must be >= 1, got {num_seeds}; 5 show the spread.")
    check_seed_and_time(seed, max_seconds)
    if backend == "dask":
        _require("distributed", "dask")
    if backend == "ray":
        _require("ray", "ray")
        from ray.util.joblib import register_ray  # pyright: ignore[reportMissingImports]

        register_ray()


def _check_methods(cells: Iterable[CellSpec]) -> None:
    """Refuse a method or a setting that there is not, which would fail its cell hours later."""
    from credence.compare.cell import build_method

    each_seed_alike = {(cell.problem, cell.label): cell for cell in cells}
    for cell in each_seed_alike.values():
        build_method(cell)


def _require(module: str, extra: str) -> None:
    from importlib.util import find_spec

    if find_spec(module) is None:
        raise InputError(
            f"The backend '{extra}' needs a package that is missing: "
            f"pip install 'credence[{extra}]'."
        )


def _to_be_had(experiment: Experiment, size: str, last: int, watch: Watch) -> Experiment:
    """The experiment without optional problems whose data are not to be had.

    Every problem is loaded once, with the last seed: what cannot be had, a published split beyond
    those that there are included, is said at once, and what was done to the data; refused if
    nothing can be had.
    """
    problems, errors, notes = experiment.problems, {}, []
    for each in problems:
        try:
            source = moved(each.source_at(size), last)
            found = problem.load(source, each.rows.get(size, RowLimits())).notes
            notes += [f"{each.name}: {note}" if len(problems) > 1 else note for note in found]
        except InputError as error:
            errors[each.name] = str(error)
    if len(errors) == len(problems):
        named = [f"{name}: {error}" for name, error in errors.items()]
        raise InputError(" ".join(named if len(named) > 1 else errors.values()))
    kept = tuple(p for p in problems if p.name not in errors or not p.is_optional)
    for name, error in errors.items():
        is_kept = any(each.name == name for each in kept)
        watch.say(f"{name} will fail: {error}" if is_kept else f"Left out {name}: {error}")
    for note in notes:
        watch.say(f"Note: {note}")
    return replace(experiment, problems=kept)
