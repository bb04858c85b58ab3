"""Jumps by potentials of the step's minibatch: partners are weighed before they move along it."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from credence.density.data import Data
from credence.errors import InputError
from credence.kernels.sgmcmc.ula import ula
from credence.methods.interacting.auxiliary import tempered
from credence.methods.interacting.kernel import interacting

NUM_WEIGHTS, NUM_CLOUDS, NUM_PARTICLES, NUM_STEPS = 20, 60, 10, 200
TEMPERATURE, STEP, NOISE_STD = 2.0, 0.2, 3.0
"""Temperature of the partners, size of Langevin steps, noise that minibatches add to a gradient."""


def log_density(w: Any, data: Data) -> Any:
    """N(0, I) beside what a minibatch has for it: a slope of its own."""
    return -0.5 * jnp.sum(w**2) + w @ data.y[:, 0]


class Found(NamedTuple):
    log_potential: np.ndarray
    """Mean over the partners and steps of every cloud."""
    acceptance: np.ndarray


@partial(jax.jit, static_argnames="moves_last")
def _run(*, moves_last: bool) -> Any:
    settings = {"step_size": STEP, "inverse_mass": jnp.ones(NUM_WEIGHTS)}
    built = interacting(
        log_density,
        auxiliary=tempered(log_density),
        arrays=jnp.asarray(TEMPERATURE),
        kernel=ula,
        settings=settings,
        auxiliary_kernel=ula,
        auxiliary_settings=settings,
        jump_probability=0.3,
        jump="ar",
        moves_last=moves_last,
        axes=("particle",),
    )

    def minibatch(key: Any) -> Data:
        slope = NOISE_STD * jax.random.normal(key, (NUM_WEIGHTS, 1))
        return Data(jnp.zeros((NUM_WEIGHTS, 1)), slope, jnp.ones(NUM_WEIGHTS))

    def cloud(key: Any) -> Any:
        def step(states: Any, key: Any) -> Any:
            key_rows, key_step = jax.random.split(key)
            data = minibatch(key_rows)
            one = jax.vmap(lambda key, state: built.step(key, state, data), axis_name="particle")
            states, info = one(jax.random.split(key_step, NUM_PARTICLES), states)
            return states, (info.log_potential, info.jump_acceptance_rate)

        key_start, key_first, key_run = jax.random.split(key, 3)
        start = jax.random.normal(key_start, (NUM_PARTICLES, NUM_WEIGHTS))
        states = jax.vmap(lambda w: built.init(w, minibatch(key_first)))(start)
        return jax.lax.scan(step, states, jax.random.split(key_run, NUM_STEPS))[1]

    return jax.vmap(cloud)(jax.random.split(jax.random.key(0), NUM_CLOUDS))


def found(*, moves_last: bool) -> Found:
    """Run clouds, and leave out 100 steps: five of a partner's relaxation times."""
    return Found(
        *(np.asarray(part)[:, 100:].mean(axis=(1, 2)) for part in _run(moves_last=moves_last))
    )


def z(values: np.ndarray, exact: float) -> float:
    return float((values.mean() - exact) / (values.std(ddof=1) / len(values) ** 0.5))


def test_partners_are_weighed_on_rows_that_they_do_not_know() -> None:
    """E log G of a partner that is independent of the minibatch, in closed form.

    Planted: the old order, in which it has moved along the minibatch that weighs it. How much too
    high its log G then is has a closed form too.
    """
    damping, pull = 1 - STEP / (2 * TEMPERATURE), STEP * NOISE_STD / (2 * TEMPERATURE)
    variance = (STEP + pull**2) / (1 - damping**2)  # of a Langevin partner's weight
    share = 1 - 1 / TEMPERATURE
    exact = -share * NUM_WEIGHTS * variance / 2
    too_high = share * NUM_WEIGHTS * NOISE_STD * pull
    right, planted = found(moves_last=True), found(moves_last=False)
    print(
        f"log G is {exact:.2f}: z {z(right.log_potential, exact):.1f}; "
        f"{too_high:.2f} more in the old order: z {z(planted.log_potential, exact):.1f}; accepted "
        f"{right.acceptance.mean():.3f}, old order {planted.acceptance.mean():.3f}"
    )
    assert abs(z(right.log_potential, exact)) < 4.5
    assert abs(z(planted.log_potential, exact + too_high)) < 4.5
    assert z(planted.log_potential, exact) > 8
    assert z(planted.acceptance - right.acceptance, 0.0) > 8


def test_jumps_from_where_a_particle_has_moved_are_refused() -> None:
    with pytest.raises(InputError, match="composed=True jumps from where a particle has moved"):
        interacting(
            log_density,
            auxiliary=tempered(log_density),
            arrays=jnp.asarray(TEMPERATURE),
            kernel=ula,
            settings={},
            auxiliary_kernel=ula,
            auxiliary_settings={},
            jump_probability=0.3,
            composed=True,
            moves_last=True,
        )
