"""How JAX is set up: the one place that touches its global configuration.

The command line calls `configure` before anything is computed, and the estimators' `fit` uses all
cores where nobody has said otherwise. Who works with posteriors and methods calls it before the
first JAX computation of the process; to import Credence is none:

    import credence
    credence.configure()
"""

import contextlib
import os
from pathlib import Path


def cache_folder() -> Path:
    """Where downloads and compiled programs are kept: CREDENCE_CACHE, or the system's cache."""
    import pooch

    return Path(os.environ.get("CREDENCE_CACHE") or pooch.os_cache("credence")).expanduser()


def num_cores() -> int:
    """CPU cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def use_all_cores() -> None:
    """One JAX device per core, unless their number was set or JAX has started."""
    import jax

    if jax.config.values["jax_num_cpu_devices"] < 1:
        with contextlib.suppress(RuntimeError):
            configure(compilation_cache=False)


def configure(num_cpu_devices: int | None = None, compilation_cache: bool = True) -> None:
    """One JAX device per core, so that chains run side by side, and a cache of compiled programs.

    Args:
        num_cpu_devices: CPU devices; by default as many as the process may use cores, 8 at most.
        compilation_cache: keep compiled programs on disk, so that the next process starts faster.
    Raises:
        RuntimeError: from JAX, if it has already computed something with another number of devices.
    """
    import jax

    jax.config.update("jax_num_cpu_devices", num_cpu_devices or min(num_cores(), 8))
    if compilation_cache and "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        jax.config.update("jax_compilation_cache_dir", str(cache_folder() / "compiled"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
