"""What every study of the papers is, and the one loop that runs them all.

OUT/study.json          what is run
OUT/runs/NAME.json      one finished result; its name holds a hash of all that it depends on
OUT/results.json        the summary
OUT/report.html         the page

A study says what one run of one problem is, and how results are told; the loop goes over problems
and seeds. A seed moves everything random: the data and their split as well as the chains. What is
there already is read, not run again.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from credence.compare.earlier import require_same_name
from credence.compare.published import Named
from credence.compare.results import heading
from credence.compare.runner import NoWatch, Watch, write_results
from credence.compare.specs import check_size, chosen
from credence.errors import InputError
from credence.runs.folder import require_usable
from credence.runs.workflow import check_seed_and_time
from credence.storage import write_text
from credence_papers.cache import PIECES, Cache, plain

ABOUT = "study.json"

Problem = TypeVar("Problem", bound=Named)
Effort = TypeVar("Effort")
Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Study(ABC, Generic[Problem, Effort]):
    """Problems that are run in one way, at three sizes.

    Args:
        efforts: how much is run, by size.
        source: the paper.
        num_seeds: by size, how often every problem is run, each time with another seed; a size that
            is not named has one.
    """

    name: str
    description: str
    problems: tuple[Problem, ...]
    efforts: Mapping[str, Effort]
    source: str = ""
    num_seeds: Mapping[str, int] = field(default_factory=dict)

    @abstractmethod
    def run_one(self, problem: Problem, effort: Effort, seed: int, cache: Cache) -> Any:
        """One problem with one seed; what takes long goes through the cache."""

    @abstractmethod
    def rows(self, problem: Problem, effort: Effort, results: Mapping[int, Any]) -> list[Row]:
        """What the results of a problem, by seed, come to."""

    @abstractmethod
    def sentence(self, row: Row) -> str:
        """A row for the person who watches."""

    @abstractmethod
    def summary(self, effort: Effort, rows: list[Row]) -> dict[str, Any]:
        """What follows the heading in results.json."""

    @abstractmethod
    def render(self, summary: dict[str, Any]) -> str:
        """The page as text."""

    @abstractmethod
    def table(self, summary: dict[str, Any]) -> RenderableType:
        """The results for a terminal."""

    def effort(self, problem: Problem, size: str) -> Effort:
        """How much is run of a problem."""
        return self.efforts[size]

    def seeds_of(self, problem: Problem, size: str) -> int:
        """How often a problem is run where nobody says it."""
        return self.num_seeds.get(size, 1)

    def check(self, problem: Problem, effort: Effort, seed: int) -> None:
        """Refuse a problem whose data are not to be had with that seed."""

    def run(
        self,
        out: str | Path,
        *,
        size: str = "laptop",
        seed: int = 0,
        num_seeds: int | None = None,
        problems: tuple[str, ...] = (),
        watch: Watch | None = None,
    ) -> dict[str, Any]:
        """Run what is not there yet; write and return the summary.

        Args:
            out: folder; a new one, or that of an earlier run.
            size: smoke, laptop or paper.
            seed: the first; repetitions have those that follow.
            num_seeds: None takes the study's own number.
            problems: only these; () takes all.
        Raises:
            InputError: for an unknown size or problem, a seed out of range, an unusable folder, or
                data that are not to be had.
            KeyboardInterrupt: on Ctrl-C; what is finished is kept.
        """
        watch = watch or NoWatch()
        check_size(size)
        check_seed_and_time(seed, None)
        if num_seeds is not None and num_seeds < 1:
            raise InputError(f"--seeds must be >= 1, got {num_seeds}; 5 show the spread.")
        wanted = chosen("problem", problems, [each.name for each in self.problems])
        todo = [
            (p, self.effort(p, size), range(seed, seed + (num_seeds or self.seeds_of(p, size))))
            for p in self.problems
            if p.name in wanted
        ]
        for problem, effort, seeds in todo:
            self.check(problem, effort, seeds[-1])
        most = max((seeds for *_, seeds in todo), key=len)
        cache = Cache(self._claimed(Path(out), size, most), watch)
        about = {**heading(self, size=size, seed=seed), "num_seeds": len(most)}
        summary: dict[str, Any] = {}
        rows: list[Row] = []
        for problem, effort, seeds in todo:
            results = {each: self.run_one(problem, effort, each, cache) for each in seeds}
            for row in self.rows(problem, effort, results):
                rows.append(row)
                watch.say(self.sentence(row))
            summary = {
                **about,
                "commits": sorted(cache.commits),
                "machines": sorted(cache.machines),
                **self.summary(self.efforts[size], rows),
            }
            write_results(cache.folder.parent, summary, self.render)  # what is there can be read
        return summary

    def about(self) -> dict[str, Any]:
        """What the study is, as JSON data."""
        return {
            "name": self.name,
            "description": self.description,
            "source": self.source,
            "problems": {each.name: each.description for each in self.problems},
            "sizes": {size: plain(effort) for size, effort in self.efforts.items()},
        }

    def details(self) -> RenderableType:
        """What the study is, for a terminal."""
        problems = Table("problem", "what it is")
        for each in self.problems:
            problems.add_row(each.name, each.description)
        sizes = "\n".join(f"{size}: {effort}" for size, effort in self.efforts.items())
        return Group(Text(f"{self.description}\n{self.source}"), problems, Text(sizes))

    def _claimed(self, folder: Path, size: str, seeds: Sequence[int]) -> Path:
        """The folder, new or that of an earlier run."""
        require_usable(folder, ABOUT, kept=PIECES)
        require_same_name(folder / ABOUT, self.name)
        told = {"size": size, "seed": seeds[0], "num_seeds": len(seeds), **self.about()}
        write_text(folder / ABOUT, json.dumps(told, indent=2))
        return folder


def with_seed(row: Row, seed: int, results: Mapping[int, Any]) -> Row:
    """The row of one seed; where there are several, its name tells which."""
    name = f"{row['name']}, seed {seed}" if len(results) > 1 else row["name"]
    return {**row, "name": name, "seed": seed}
