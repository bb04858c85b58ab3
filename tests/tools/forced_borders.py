"""Planted: the narrowest network always tries a birth and the widest a death, as published."""

from collections.abc import Callable
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from credence.methods.transdimensional.moves import base
from credence.methods.transdimensional.moves.base import Choice


def at_forced_borders(jump: Callable[..., Any]) -> Callable[..., Any]:
    """`jump` or `layer_jump` with `forced_direction`."""

    def forced(*arguments: Any, **settings: Any) -> Any:
        with mock.patch.object(base, "directed", forced_direction):
            return jump(*arguments, **settings)

    return forced


def forced_direction(
    key: PRNGKeyArray, count: Int[Array, ""], log_prior: Float[Array, " count"], *, size: int = 1
) -> Choice:
    """A direction as `base.directed` gives, with the factor that borders then need."""
    log_birth, log_death = log_directions(log_prior, size)
    is_birth = jnp.log(jax.random.uniform(key)) < log_birth[count]
    new = jnp.clip(jnp.where(is_birth, count + size, count - size), 0, len(log_prior) - 1)
    log_forward = jnp.where(is_birth, log_birth[count], log_death[count])
    log_reverse = jnp.where(is_birth, log_death[new], log_birth[new])
    return Choice(
        jnp.where(jnp.isfinite(log_prior[new]), jnp.where(is_birth, 1, 2), 0),
        new,
        log_prior[new] - log_prior[count] + log_reverse - log_forward,
    )


def log_directions(
    log_prior: Float[Array, " count"], size: int = 1
) -> tuple[Float[Array, " count"], Float[Array, " count"]]:
    """Log probabilities to try a birth and a death, at every width or depth."""
    half, nowhere = jnp.full(log_prior.shape, jnp.log(0.5)), jnp.full(size, -jnp.inf)
    may_grow = jnp.isfinite(jnp.append(log_prior[size:], nowhere))
    may_shrink = jnp.isfinite(jnp.append(nowhere, log_prior[:-size]))
    only = lambda this, other: jnp.where(this, jnp.where(other, half, 0.0), -jnp.inf)  # noqa: E731
    return only(may_grow, may_shrink), only(may_shrink, may_grow)
