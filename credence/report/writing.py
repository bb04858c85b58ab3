"""Put a report on disk, whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from credence.report.data import ReportData
from credence.report.page import render
from credence.storage import write_text


def write_report(report: ReportData, path: str | os.PathLike[str]) -> Path:
    """Render to `path` atomically: a reader sees the old file or the new one, never a part.

    Raises:
        StorageError: where it cannot be written; what was at `path` before is still there.
    """
    write_text(Path(path), render(report))
    return Path(path)
