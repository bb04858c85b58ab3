"""An answer before the end: what a method has first, kept where others can read it."""

import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from credence.engine.progress import Line, Monitor, Progress
from credence.errors import CredenceError, StorageError

EARLY_FOLDER = "early"
"""Lies in the checkpoint folder, and holds a fitted estimator."""

EARLY = (
    "An early answer: networks that were trained, not sampled, of the first model that is tried. "
    "Its intervals were compared with nothing yet."
)


class EarlyAnswers:
    """Shows what another `Progress` shows, and keeps the first early answer of a run.

    A command that is finished removes it: there is a better one.

    Args:
        shown: what shows the run.
        folder: for an estimator; one of an earlier run is removed as soon as this one has a phase,
            for by then it was found to be a run of the folder around it.
        save: is given the answer, a `Predictor`, and the folder.
    """

    def __init__(self, shown: Progress, folder: Path, save: Callable[[Any, Path], None]) -> None:
        self.shown, self.folder, self.save = shown, folder, save
        self.is_kept = self.has_begun = False

    def phase(
        self, name: str, num_draws: int | None, *, done: int = 0, monitor: Monitor | None = None
    ) -> AbstractContextManager[Line]:
        """Open the line of one phase; the first removes an early answer of an earlier run."""
        if not self.has_begun and self._is_answer():
            shutil.rmtree(self.folder, ignore_errors=True)
        self.has_begun = True
        return self.shown.phase(name, num_draws, done=done, monitor=monitor)

    def say(self, message: str) -> None:
        """Show a sentence to the person who watches."""
        self.shown.say(message)

    def early(self, answer: Callable[[], Any]) -> None:
        """Keep the first, and tell where it is; where it cannot be kept, tell why, and go on."""
        if self.is_kept:
            return
        self.is_kept = True
        try:
            self._check_folder()
            self.save(answer(), self.folder)
        except (CredenceError, OSError, TypeError, ValueError) as error:
            self.say(f"No early answer could be kept: {error}")
        else:
            self.say(
                "While the fit goes on, an early answer can be used: `credence predict` of the run "
                f"gives it, or credence.load({str(self.folder)!r})."
            )

    def _is_answer(self) -> bool:
        """Whether the folder holds an estimator; other folders are the user's."""
        return (self.folder / "estimator.json").is_file()

    def _check_folder(self) -> None:
        """Refuse a folder of other files: the next run would remove them with the answer."""
        if self.folder.exists() and not self._is_answer() and any(self.folder.iterdir()):
            raise StorageError(f"{self.folder} holds other files: move it to another place.")
