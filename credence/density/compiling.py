"""Programs that run once or twice: XLA compiles them quickly rather than well.

Half of the time of a small fit would go into making fast what runs for a millisecond.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

import jax
from jax.core import Tracer

QUICKLY = {"xla_backend_optimization_level": 0}
"""Options of XLA: without the costly optimisations, about four times as fast to compile."""


def jit_quickly(function: Callable[..., Any], **settings: Any) -> Callable[..., Any]:
    """Compile a function as `jax.jit` does, but quickly; in another program as a part of it.

    Args:
        function: to compile.
        settings: as of `jax.jit`.
    """
    alone = jax.jit(function, compiler_options=QUICKLY, **settings)
    as_part = jax.jit(function, **settings)

    @wraps(function)
    def call(*arguments: Any, **keywords: Any) -> Any:
        leaves = jax.tree.leaves((arguments, keywords))
        is_part = any(isinstance(leaf, Tracer) for leaf in leaves)
        return (as_part if is_part else alone)(*arguments, **keywords)

    call._cache_size = alone._cache_size  # type: ignore[attr-defined]  # as programs of jax.jit
    return call
