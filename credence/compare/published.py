"""The published experiments: what packages add by the entry point group `credence.experiments`.

Each is an `Experiment` (methods on problems, run here), or a `Study` that runs itself.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from rich.console import RenderableType

from credence.compare.runner import Watch
from credence.compare.specs import Experiment
from credence.extensions import Registry


class Named(Protocol):
    """A problem, as far as a list shows it."""

    @property
    def name(self) -> str:
        """The problem's name, by which one is chosen."""
        ...

    @property
    def description(self) -> str:
        """Say in a sentence what the problem is."""
        ...


@runtime_checkable
class Study(Protocol):
    """What `credence experiment` asks of a study that is no table of methods."""

    @property
    def name(self) -> str:
        """The name by which `credence experiment` finds it."""
        ...

    @property
    def description(self) -> str:
        """Say in a sentence what the study shows."""
        ...

    @property
    def source(self) -> str:
        """The paper whose numbers the study stands beside."""
        ...

    @property
    def problems(self) -> Sequence[Named]:
        """The problems that the study runs."""
        ...

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
        """Run what is not there yet; write results.json and report.html, return the summary."""
        ...

    def about(self) -> dict[str, Any]:
        """The study as JSON data, for a list."""
        ...

    def details(self) -> RenderableType:
        """The study in full, for a terminal."""
        ...

    def table(self, summary: dict[str, Any]) -> RenderableType:
        """The results, for a terminal."""
        ...


EXPERIMENTS: Registry[Experiment | Study] = Registry(
    "experiment", "credence.experiments", lambda found: isinstance(found, Experiment | Study)
)
"""The published experiments by name."""


def find(name: str) -> Experiment | Study:
    """The experiment or study of that name.

    Raises:
        InputError: where there is none; the sentence suggests the nearest name.
    """
    return EXPERIMENTS.find(name)
