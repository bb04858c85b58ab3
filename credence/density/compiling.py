"""Programs that run once or twice: XLA compiles them quickly rather than well.

Half of the time of a small fit would go into making fast what runs for a millisecond.
"""

from functools import partial

import jax

jit_quickly = partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
"""`jax.jit` without the costly optimisations, about four times as fast to compile; not to be called
in another compiled program."""
