"""Compiled programs on disk: their folder, and how they are kept from filling it."""

import hashlib
import platform
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

MOST_BYTES = 2**30
"""The most that compiled programs take on disk: some hundred shapes of data."""


def folder_within(cache: Path) -> Path:
    """The folder of programs for this JAX and this processor, within the folder of all caches.

    Machines of a cluster share a home, and a program that was compiled for one processor can crash
    on another.
    """
    jaxlib = f"jaxlib-{version('jaxlib')}"
    return cache / "compiled" / f"{jaxlib}-{platform.machine()}-{_processor()}"


def programs_in(folder: Path) -> list[Path]:
    """Files of compiled programs."""
    return list(folder.glob("*-cache"))


def drop_oldest(folder: Path, most_bytes: int = MOST_BYTES) -> None:
    """Delete the oldest programs until the others have this many bytes at most.

    JAX can do so, too, but then reads the age of all programs before it writes each one.
    """
    with suppress(OSError):  # another process may do the same
        newest_first = sorted(
            ((found := file.stat()).st_mtime, found.st_size, file) for file in programs_in(folder)
        )[::-1]
        kept = 0
        for _, size, file in newest_first:
            kept += size
            if kept > most_bytes:
                file.unlink(missing_ok=True)


def _processor() -> str:
    """A name of its instructions, so that processors with others have other names."""
    told = platform.processor()
    with suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as lines:
        told = next((line for line in lines if line.startswith(("flags", "Features"))), told)
    return hashlib.sha256(told.encode()).hexdigest()[:8]
