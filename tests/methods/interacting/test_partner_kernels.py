"""Partners by a kernel of their own that remembers: exact laws of finite clouds, and of large ones.

Two states: a partner's memory is a bit that says whether it is quick or slow. How far accept-reject
jumps are off depends on it, and the exact law of the whole cloud is known.
"""

from functools import reduce
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import solve_discrete_lyapunov
from tools.clouds import run_clouds
from tools.targets import gaussian_log_density, standard
from tools.two_state import (
    AUXILIARY,
    DENSITY,
    JUMP_PROBABILITY,
    TARGET,
    _stationary,
    flipping,
    flips,
    jump_matrix,
    log_target,
    shares,
)

from credence.kernels.base import Kernel
from credence.kernels.mcmc.mala import mala
from credence.kernels.sgmcmc.sghmc import sghmc
from credence.methods.interacting.auxiliary import MIXTURE, Auxiliary, gaussian, tempered
from credence.methods.interacting.kernel import interacting

pytestmark = [pytest.mark.usefixtures("float64"), pytest.mark.rotates(3)]

K = flips(TARGET, 0.01)
QUICK_OR_SLOW = np.stack([flips(AUXILIARY, 0.003), flips(AUXILIARY, 0.6)])
FORGETS = 0.05
"""Probability that a partner's bit flips in a step."""


class Remembering(NamedTuple):
    position: Any
    is_quick: Any


class Moved(NamedTuple):
    is_finite: Any


def remembering(log_density: Any, *, forgets: float) -> Kernel:
    """A walk on two states with a bit that says how fast it goes."""

    def init(position: Any, data: Any) -> Remembering:
        return Remembering(position, jnp.zeros((), int))

    def step(key: Any, state: Remembering, data: Any) -> Any:
        key_state, key_bit = jax.random.split(key)
        up = jnp.asarray(QUICK_OR_SLOW)[state.is_quick, (state.position[0] > 0.5).astype(int), 1]
        one = (jax.random.uniform(key_state) < up).astype(state.position.dtype)
        flipped = (jax.random.uniform(key_bit) < forgets).astype(int)
        return Remembering(one[None], state.is_quick ^ flipped), Moved(jnp.ones((), bool))

    return Kernel(init, step)


def two_states(forgets: float = FORGETS) -> Kernel:
    return interacting(
        log_target,
        auxiliary=DENSITY,
        arrays=None,
        kernel=flipping,
        settings={"matrix": K},
        auxiliary_kernel=remembering,
        auxiliary_settings={"forgets": forgets},
        jump_probability=JUMP_PROBABILITY,
        jump="ar",
        axes=("particle",),
    )


def exact_mean(num: int) -> float:
    """P(X = 1) from the chain on (X, all partners, all bits); a partner is 2 y + bit."""
    bits = np.array([[1 - FORGETS, FORGETS], [FORGETS, 1 - FORGETS]])
    one = np.einsum("myz,mn->ymzn", QUICK_OR_SLOW, bits).reshape(4, 4)
    partners = reduce(np.kron, [one] * num)
    ones = np.array([bin(s // 2).count("1") for s in range(4)])
    share = reduce(np.add.outer, [ones] * num).ravel() / num
    moves = [(1 - JUMP_PROBABILITY) * K + JUMP_PROBABILITY * jump_matrix("ar", s) for s in share]
    joint = np.einsum("pq,qxy->xpyq", partners, np.stack(moves))
    law = _stationary(joint.reshape(2 * len(share), -1))
    return float(law.reshape(2, -1).sum(axis=1)[1])


def test_clouds_whose_partners_remember_have_the_exact_law() -> None:
    """Planted: partners that lose their bit in every step, and so are always slow."""
    exact = exact_mean(3)

    def z(built: Kernel) -> float:
        found = np.asarray(shares(built, 0, num_clouds=2000, num_particles=3, num_steps=400))
        return float((found.mean() - exact) / (found.std(ddof=1) / len(found) ** 0.5))

    right, planted = z(two_states()), z(two_states(forgets=0.0))
    print(f"P(X = 1) is {exact:.4f}: z {right:.1f}; a bit that is lost {planted:.1f}")
    assert abs(right) < 4.5
    assert abs(planted) > 8


NORMAL = standard(2)
TEMPERATURE, STEP, FRICTION = 1.3, 0.25, 0.2
NUM_CLOUDS, NUM_PARTICLES = 20, 200
MOMENTUM = {"step_size": STEP, "friction": FRICTION, "inverse_mass": jnp.ones(2)}


def momentum_variance(temperature: float) -> float:
    """The variance of a weight under SGHMC on N(0, T): a step is linear in (w, v)."""
    rate = STEP**2
    keep = 1 - FRICTION
    step = np.array([[1 - rate / temperature, keep], [-rate / temperature, keep]])
    noise = 2 * FRICTION * rate * np.ones((2, 2))
    return float(solve_discrete_lyapunov(step, noise)[0, 0])


def around_momentum() -> Auxiliary:
    """Partners move on N(0, T I); the potential is of the law that SGHMC's steps give them."""
    power = tempered(gaussian_log_density)
    std = momentum_variance(TEMPERATURE) ** 0.5
    law = gaussian(jnp.zeros(2), jnp.full(2, std))
    return Auxiliary(
        power.log_density, lambda log, w, data, _: log - MIXTURE.log_density(w, data, law)
    )


def chi_squared_z(**changes: Any) -> float:
    """z of the mean of |X|^2, which is 2, over independent clouds."""
    settings: dict[str, Any] = {
        "auxiliary": around_momentum(),
        "arrays": jnp.asarray(TEMPERATURE),
        "kernel": mala,
        "settings": {"step_size": 0.7, "inverse_mass": jnp.ones(2)},
        "auxiliary_kernel": sghmc,
        "auxiliary_settings": MOMENTUM,
        "jump_probability": 0.5,
        "jump": "ar",
        "axes": ("particle",),
    }
    built = interacting(gaussian_log_density, **{**settings, **changes})
    shape = (NUM_CLOUDS, NUM_PARTICLES, 2)
    starts = NORMAL.sample(1, NUM_CLOUDS * NUM_PARTICLES).reshape(shape)
    partners = starts * momentum_variance(TEMPERATURE) ** 0.5
    states, _ = run_clouds(built, starts, partners[::-1], NORMAL.data, num_steps=30)
    found = np.mean(np.sum(np.asarray(states.position) ** 2, axis=-1), axis=1)
    return float((found.mean() - 2) / (found.std(ddof=1) / len(found) ** 0.5))


@pytest.mark.parametrize("jump", ["bg", "ar"])
def test_large_clouds_with_momentum_partners_have_the_target_s_law(jump: str) -> None:
    """Planted: the potential of another temperature than theirs."""
    wrong = tempered(gaussian_log_density)._replace(
        log_potential=lambda log, w, data, _: (1 - 1 / 4) * log
    )
    right, planted = chi_squared_z(jump=jump), chi_squared_z(jump=jump, auxiliary=wrong)
    print(f"{jump}, SGHMC partners: z {right:.1f}; temperature 4 in the potential {planted:.1f}")
    assert abs(right) < 4.5
    assert abs(planted) > 8


def test_a_particle_s_kernel_must_not_remember() -> None:
    """Planted: particles by SGHMC, whose velocity a jump sets to zero."""
    small = {"step_size": 0.3, "friction": 0.02, "inverse_mass": jnp.ones(2)}
    fresh = {
        "auxiliary": MIXTURE,
        "arrays": gaussian(jnp.zeros(2), jnp.full(2, 1.5)),
        "auxiliary_kernel": None,
        "auxiliary_settings": {},
    }
    planted = chi_squared_z(kernel=sghmc, settings=small, **fresh)
    right = chi_squared_z(**fresh)
    print(f"particles with memory: z {planted:.1f}; without {right:.1f}")
    assert abs(planted) > 8
    assert abs(right) < 4.5
