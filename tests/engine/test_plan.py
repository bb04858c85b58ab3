"""Plans: what they refuse, and how many draws they make."""

from dataclasses import replace

import jax.numpy as jnp
import pytest

from credence.engine.plan import Plan
from credence.errors import InputError
from credence.kernels.base import Recipe
from credence.kernels.mcmc.mala import one_leapfrog

PLAN = Plan(Recipe(one_leapfrog, lambda position, data: jnp.sum(position)), "warmup", num_steps=50)


def test_sampling_makes_the_draws_that_are_asked_for() -> None:
    """The thinning is that of the warm-up, or its own."""
    assert PLAN.sampling((), num_draws=7).num_draws == 7
    thinned = PLAN.sampling((), num_draws=7, thinning=10)
    assert (thinned.num_draws, thinned.num_steps) == (7, 70)
    assert replace(PLAN, thinning=4).sampling((), num_draws=7).num_steps == 28


@pytest.mark.parametrize("name", ["num_steps", "thinning", "block_steps", "batch_size"])
def test_a_phase_without_a_step_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"{name} must be > 0, got 0"):
        replace(PLAN, **{name: 0})
