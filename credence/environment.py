"""How JAX is set up: the one place that touches its global configuration.

The command line calls `configure` before anything is computed, and the estimators' `fit` uses all
cores where nobody has said otherwise. Who works with posteriors and methods calls it before the
first JAX computation of the process; to import Credence is none:

    import credence
    credence.configure()
"""

import contextlib
import os
import platform
import subprocess
from itertools import takewhile
from pathlib import Path

from credence import program_cache
from credence.errors import CredenceError, InputError

MOST_PROGRAMS = 256
"""Compiled programs that stay in memory where nobody has said otherwise: about 1 GB of them."""
UNKNOWN_COMMIT = "unknown"
DEVICE_COUNT = "xla_force_host_platform_device_count"
"""The flag of XLA by which JAX was told its number of CPU devices before it had an option."""
UNKNOWN_MACHINE = "a machine that is not known"
DIRTY = "-dirty"
"""The end of a commit from which files differ."""


class ForkedProcessError(CredenceError, RuntimeError):
    """JAX does not work in a process that was forked from one in which it had started."""


def cache_folder() -> Path:
    """The folder of downloads and compiled programs: CREDENCE_CACHE, or the system's cache."""
    import pooch

    return Path(os.environ.get("CREDENCE_CACHE") or pooch.os_cache("credence")).expanduser()


def num_cores() -> int:
    """CPU cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def machine() -> str:
    """The kind of machine, which results tell because seconds of others do not compare.

    Architecture, processor, and the cores that this process may use; where the system tells them,
    family, model and stepping, because several processors have one name.
    """
    told = {"model name": platform.processor()}
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as lines:
        pairs = (line.partition(":") for line in takewhile(str.strip, lines))
        told |= {name.strip(): value.strip() for name, _, value in pairs}
    number = "/".join(told[name] for name in ("cpu family", "model", "stepping") if name in told)
    cores = f"{num_cores()} core{'s' if num_cores() > 1 else ''}"
    parts = (platform.machine(), f"{told['model name']} {number}".strip(), cores)
    return ", ".join(part for part in parts if part)


def source_commit() -> str:
    """The commit of the checkout that runs, with a mark where files but `results/` differ from it.

    UNKNOWN_COMMIT where Credence is installed without one, or git is not there.
    """
    git = ["git", "-C", str(Path(__file__).parent)]
    is_tracked = [*git, "ls-files", "--error-unmatch", Path(__file__).name]
    describe = [*git, "describe", "--always", "--exclude", "*"]
    differ = [*git, "diff", "--name-only", "HEAD", "--", ":/", ":(top,exclude)results"]
    try:
        _, found, files = (
            subprocess.run(command, capture_output=True, text=True, check=True).stdout
            for command in (is_tracked, describe, differ)
        )
    except (OSError, subprocess.CalledProcessError):
        return UNKNOWN_COMMIT
    return f"{found.strip()}{DIRTY if files else ''}"


def use_all_cores() -> None:
    """One JAX device per core, unless their number was set or JAX has started."""
    import jax

    is_set = DEVICE_COUNT in os.environ.get("XLA_FLAGS", "")
    if jax.config.values["jax_num_cpu_devices"] < 1 and not is_set:
        with contextlib.suppress(RuntimeError):
            configure(compilation_cache=False)


def configure(
    num_cpu_devices: int | None = None,
    compilation_cache: bool = True,
    max_programs: int | None = MOST_PROGRAMS,
) -> None:
    """One JAX device per core, so that chains run side by side, and a cache of compiled programs.

    Args:
        num_cpu_devices: CPU devices; by default as many as the process may use cores, 8 at most.
        compilation_cache: keep compiled programs on disk, so that the next process starts faster.
            Where there is more than 1 GiB of them, the oldest are deleted.
        max_programs: compiled programs that may be in memory when a run starts; where there are
            more, JAX forgets them all, your own too, and compiles again what is needed. Every new
            shape of the data takes about 25 programs, 35 to 80 MB. None: keep all.
    Raises:
        InputError: for num_cpu_devices or max_programs below 1.
        RuntimeError: from JAX, if it has already computed something with another number of devices.
    """
    global _max_programs
    if num_cpu_devices is not None and num_cpu_devices < 1:
        raise InputError(f"num_cpu_devices must be >= 1, or None, got {num_cpu_devices}.")
    if max_programs is not None and max_programs < 1:
        raise InputError(f"max_programs must be >= 1, or None to keep all, got {max_programs}.")
    _max_programs = max_programs
    import jax

    jax.config.update("jax_num_cpu_devices", num_cpu_devices or min(num_cores(), 8))
    if compilation_cache and "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        folder = program_cache.folder_within(cache_folder())
        program_cache.drop_oldest(folder)
        jax.config.update("jax_compilation_cache_dir", str(folder))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)


def require_own_process() -> None:
    """Refuse to compute in a process forked from one that has computed: JAX would wait for ever.

    Raises:
        ForkedProcessError: where the first call was made by another process.
    """
    global _started_in
    _started_in = _started_in or os.getpid()
    if _started_in != os.getpid():
        raise ForkedProcessError(
            f"This process ({os.getpid()}) was forked from process {_started_in}, in which JAX had "
            "started, and JAX would hang here: start workers by multiprocessing's 'spawn' or by "
            "joblib's 'loky', or fork before anything is fitted, loaded or predicted."
        )


def max_programs() -> int | None:
    """How many compiled programs may stay in memory; None: all."""
    return _max_programs


_max_programs: int | None = MOST_PROGRAMS
_started_in: int | None = None
"""The process in which JAX was first used."""
