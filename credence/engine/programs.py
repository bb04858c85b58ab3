"""Compiled programs are forgotten before there are too many of them."""

import gc

import jax

from credence.engine.clock import count_programs
from credence.environment import max_programs

_num_forgotten = 0
"""Programs that had been compiled when they were last dropped."""


def forget_programs() -> None:
    """Drop all compiled programs where more than `configure` allows have been compiled since they
    were last dropped: caches of JAX hold them, each with tens of kilobytes to megabytes."""
    global _num_forgotten
    most, num_programs = max_programs(), count_programs()
    if most is not None and num_programs - _num_forgotten > most:
        jax.clear_caches()
        gc.collect()
        _num_forgotten = num_programs
