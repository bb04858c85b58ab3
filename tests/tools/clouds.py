"""Clouds of interacting particles run by hand, and a target of two rings with known masses."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credence.kernels.base import Kernel

RADII, RING_STD = np.array([1.0, 2.0]), 0.125


def rings(position: Any, data: Any) -> Any:
    distance = jnp.sqrt(jnp.sum(position**2) + 1e-30)
    return jax.scipy.special.logsumexp(-0.5 * ((distance - RADII) / RING_STD) ** 2)


def _outer() -> float:
    radius = np.linspace(1e-6, 4, 200_001)
    density = radius * np.exp(-0.5 * ((radius[:, None] - RADII) / RING_STD) ** 2).sum(axis=1)
    return float(density[radius > 1.5].sum() / density.sum())


OUTER = _outer()


@partial(jax.jit, static_argnames=("built", "num_steps"))
def run_clouds(
    built: Kernel, starts: Any, partners: Any, data: Any, *, num_steps: int, seed: int = 0
) -> Any:
    """Last states and all Info of clouds: starts (cloud, particle, weight)."""
    shape = starts.shape

    def cloud(key: Any, start: Any, partner: Any) -> Any:
        states = jax.vmap(lambda x: built.init(x, data))(start)
        other = jax.vmap(lambda y: built.init(y, data).auxiliary)(partner)
        step = jax.vmap(lambda key, state: built.step(key, state, data), axis_name="particle")
        move = lambda states, key: step(jax.random.split(key, shape[1]), states)  # noqa: E731
        keys = jax.random.split(key, num_steps)
        return jax.lax.scan(move, states._replace(auxiliary=other), keys)

    return jax.vmap(cloud)(jax.random.split(jax.random.key(seed), shape[0]), starts, partners)
