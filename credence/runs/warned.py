"""Keep what Python warns of during a fit, so that the report can say it too."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sklearn.exceptions import ConvergenceWarning


@contextmanager
def warnings_kept() -> Iterator[list[str]]:
    """Keep the text of every warning that is shown meanwhile, each once, in the list it gives.

    A `ConvergenceWarning` is left out: the verdict has a place of its own for that.
    """
    texts: list[str] = []
    show = warnings.showwarning

    def show_and_keep(
        message: Warning | str, category: type[Warning], *where: Any, **more: Any
    ) -> None:
        if not issubclass(category, ConvergenceWarning) and str(message) not in texts:
            texts.append(str(message))
        show(message, category, *where, **more)

    warnings.showwarning = show_and_keep
    try:
        yield texts
    finally:
        warnings.showwarning = show
