"""One mutation: what is spoiled, what was done with it, and whether that is a fault."""

import resource
import signal
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from credence import netcdf
from credence.errors import CredenceError
from credence.runs import prediction, workflow
from credence.runs.folder import FitSettings

from . import mutations
from .mutations import Spoil, pick
from .subjects import Files, forged, make_subjects, quiet, said, show, use

MOST_SECONDS = 20
"""Most seconds of processor time: others may keep the processor busy."""
MOST_MEMORY = 2**30
"""Bytes that mutations may take beside what the process has when they begin."""


class TooLong(BaseException):
    """A mutation that keeps the reader busy; no `except Exception` catches it."""


@dataclass
class Outcome:
    """What a mutation did."""

    number: int
    what: str
    result: str
    """refused, same, other (a forged or different input, read), or FAULT and what it was."""


@dataclass
class Fuzz:
    """Mutations of folders and tables, each from its own number.

    Args:
        folder: to work in; empty.
        seed: the same one makes the same mutations.
    """

    folder: Path
    seed: int = 0
    subjects: dict[str, Files] = field(init=False)

    def __post_init__(self) -> None:
        quiet()
        netcdf.MOST_SECONDS = 5
        self.subjects = make_subjects(self.folder)
        self.table = self.folder / "houses.csv"
        self.plain_table = self.table.read_bytes()
        self.run = self.folder / "spoiled"
        self.references = {}
        for name, files in self.subjects.items():
            self._write(files)
            found = use(self.run, self.table)
            show(found)
            self.references[name] = said(found)

    def outcomes(self, count: int, start: int = 0) -> Iterator[Outcome]:
        """Do `count` mutations, from number `start` on."""
        for number in range(start, start + count):
            yield self.outcome(number)

    def outcome(self, number: int) -> Outcome:
        """Mutation of that number."""
        rng = np.random.default_rng((self.seed, number))
        if rng.random() < 0.2:
            return self._table(rng, number)
        name = pick(rng, 4 * ("regression", "classification") + ("format 1",))
        files, what, is_forged = self._spoiled(rng, name)
        self._write(files)
        result = self._judged(lambda: self._folder(name, is_forged))
        is_older = name == "format 1"
        if "differs silently" in result and is_older:
            result = "other"  # format 1 has no checksums
        return Outcome(number, f"{name}: {what}", result)

    def _spoiled(self, rng: np.random.Generator, name: str) -> tuple[Files, str, bool]:
        """Files of a subject of which one is spoiled, and whether all checksums fit."""
        files = dict(self.subjects[name])
        changed = pick(rng, list(files))
        ways: list[Spoil] = [mutations.spoil_bytes]
        suffixes: dict[str, Spoil] = {
            ".json": mutations.spoil_json,
            ".npz": mutations.spoil_arrays,
            ".nc": mutations.spoil_netcdf,
        }
        ways += [suffixes[Path(changed).suffix]] * 3
        way = pick(rng, ways)
        if rng.random() < 0.05:
            other = self.subjects[pick(rng, list(self.subjects))]
            content: bytes | None = other.get(changed, b"")
            way_name = "of another run"
        else:
            content, way_name = way(rng, files[changed]), way.__name__
        files |= {changed: content or b""}
        if content is None:
            del files[changed]
        is_forged = rng.random() < 0.6
        if is_forged:
            files = forged(files, changed)
        return files, f"{changed} {way_name}{' forged' * is_forged}", is_forged

    def _folder(self, name: str, is_forged: bool) -> str:
        found = use(self.run, self.table)
        if said(found) == self.references[name]:
            return "same"
        if not is_forged:
            return "FAULT differs silently"
        show(found)
        return "other"

    def _table(self, rng: np.random.Generator, number: int) -> Outcome:
        """A spoiled table, to fit to and to predict for."""
        way = pick(rng, (mutations.spoil_bytes, mutations.spoil_table, mutations.spoil_table))
        table, target = self.folder / "spoiled.csv", pick(rng, ("price", "sold", "area"))
        table.write_bytes(way(rng, self.plain_table) or b"")
        self._write(self.subjects["regression"])

        def fit() -> str:
            settings = FitSettings(table=str(table), target=target)
            workflow.split(settings, *workflow.read(settings))
            return "other"

        def predict() -> str:
            prediction.predict(self.run, str(table))
            return "other"

        results = [self._judged(fit), self._judged(predict)]
        worst = next((each for each in results if each.startswith("FAULT")), results[0])
        return Outcome(number, f"table {way.__name__}", worst)

    def _judged(self, action: Any) -> str:
        try:
            with _limited_time(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return action()
        except CredenceError as error:
            return "refused" if len(str(error)) < 2000 else f"FAULT {len(str(error))} characters"
        except (Exception, TooLong):
            return f"FAULT {traceback.format_exc(limit=-4)}"

    def _write(self, files: Files) -> None:
        """The spoiled RUN, and nothing else, in its folder."""
        for path in self.run.rglob("*"):
            if path.is_file():
                path.unlink()
        for name, content in files.items():
            path = self.run / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    @staticmethod
    def limit_memory() -> None:
        """Make a reader that allocates what a file declares meet a `MemoryError` from now on."""
        pages = int(Path("/proc/self/statm").read_text().split()[5])
        most, (_, hard) = pages * resource.getpagesize(), resource.getrlimit(resource.RLIMIT_DATA)
        resource.setrlimit(resource.RLIMIT_DATA, (most + MOST_MEMORY, hard))


@contextmanager
def _limited_time() -> Iterator[None]:
    def stop(*_: Any) -> None:
        raise TooLong

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
