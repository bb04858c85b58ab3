"""Put a report on disk, whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

from credence.report.data import ReportData
from credence.report.page import render


def write_report(report: ReportData, path: str | os.PathLike[str]) -> Path:
    """Render to `path` atomically: a reader sees the old file or the new one, never a part.

    Raises:
        OSError: the folder is missing, read-only or full; says which and what to do. What was
            at `path` before is still there.
    """
    target = Path(path)
    page = render(report)
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        with open(part, "w", encoding="utf-8", newline="\n") as file:
            file.write(page)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, target)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink()
        raise OSError(error.errno, _explain(error), str(target)) from error
    return target


def _explain(error: OSError) -> str:
    advice = {
        errno.ENOENT: "its folder does not exist: create the folder first",
        errno.ENOTDIR: "its folder is a file: choose another folder",
        errno.EACCES: "no permission to write there: choose another folder",
        errno.EPERM: "no permission to write there: choose another folder",
        errno.EROFS: "the file system is read-only: choose another folder",
        errno.ENOSPC: "the disk is full: free some space or choose another disk",
        errno.EDQUOT: "the disk quota is used up: free some space or choose another disk",
        errno.EISDIR: "a folder has that name: choose another file name",
    }
    reason = advice.get(error.errno or 0, error.strerror or "unknown reason")
    return f"cannot write the report, {reason}"
