"""Interacting particles on two states, {0, 1}: exact stationary laws and simulation.

Given the auxiliary cloud the particles move independently, so that the numbers of ones among X and
Y are a Markov chain with binomial transitions.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.stats import binom

from credence.density.data import Data
from credence.kernels.base import Kernel
from credence.methods.interacting.auxiliary import Auxiliary
from credence.methods.interacting.kernel import interacting

TARGET, AUXILIARY = 0.7, 0.2
"""Probability of state 1 under pi and eta."""
JUMP_PROBABILITY = 0.3
RATES = {"target": 0.1, "auxiliary": 0.3}
NOTHING = Data(jnp.zeros((1, 1)), jnp.zeros((1, 1)), jnp.ones(1))


def flips(one: float, rate: float) -> Float[np.ndarray, "2 2"]:
    """Transition matrix with stationary probability `one` of state 1."""
    up, down = rate * one, rate * (1 - one)
    return np.array([[1 - up, up], [down, 1 - down]])


K, Q = flips(TARGET, RATES["target"]), flips(AUXILIARY, RATES["auxiliary"])
G = np.array([(1 - TARGET) / (1 - AUXILIARY), TARGET / AUXILIARY])


def jump_matrix(jump: str, share: float) -> Float[np.ndarray, "2 2"]:
    """J given the share of ones among the auxiliary states."""
    law = np.array([1 - share, share])
    if jump == "bg":
        return np.tile(law * G / np.sum(law * G), (2, 1))
    moves = law[None] * np.minimum(1, G[None] / G[:, None])
    return moves + np.diag(1 - moves.sum(axis=1))


def step_matrix(jump: str, share: float, *, composed: bool = False) -> Float[np.ndarray, "2 2"]:
    """Eq. (1), or K then jump."""
    jumped = jump_matrix(jump, share)
    return (1 - JUMP_PROBABILITY) * K + JUMP_PROBABILITY * (K @ jumped if composed else jumped)


def sums(num: int, matrix: Float[np.ndarray, "2 2"]) -> Float[np.ndarray, "before after"]:
    """Transitions of the number of ones among independent particles."""
    grid = np.arange(num + 1)
    return np.stack(
        [
            np.convolve(binom.pmf(grid[: a + 1], a, matrix[1, 1]),
                        binom.pmf(grid[: num - a + 1], num - a, matrix[0, 1]))
            for a in grid
        ]
    )  # fmt: skip


def step_matrices(
    num: int, jump: str, share: float, *, composed: bool
) -> Float[np.ndarray, "before after"]:
    """Transition of the number of ones among X, each with a coin of its own."""
    return sums(num, step_matrix(jump, share, composed=composed))


def together(
    num: int, jump: str, share: float, *, composed: bool
) -> Float[np.ndarray, "before after"]:
    """Transition of the number of ones among X, with one coin for all."""
    jumped = jump_matrix(jump, share)
    moved = sums(num, K @ jumped if composed else jumped)
    return (1 - JUMP_PROBABILITY) * sums(num, K) + JUMP_PROBABILITY * moved


class Law(NamedTuple):
    """Mean and variance of the share of ones in a cloud."""

    mean: float
    variance: float


def stationary_law(
    num: int, jump: str, *, composed: bool = False, synchronous: bool = False
) -> Law:
    """Stationary law of X, from the chain on (ones among X, ones among Y)."""
    aux = sums(num, Q)
    step = together if synchronous else step_matrices
    given = [step(num, jump, c / num, composed=composed) for c in range(num + 1)]
    size = (num + 1) ** 2
    transitions = np.zeros((num + 1,) * 4)  # x, y, x', y'
    for c in range(num + 1):
        transitions[:, :, :, c] = given[c][:, None, :] * aux[None, :, c, None]
    matrix = transitions.reshape(size, size)
    law = _stationary(matrix).reshape(num + 1, num + 1).sum(axis=1)
    share = np.arange(num + 1) / num
    mean = float(law @ share)
    return Law(mean, float(law @ share**2 - mean**2))


def mean_with_past(num: int, jump: str) -> float:
    """Probability of 1 of one particle that jumps to the two latest states of `num` partners."""
    aux, size = sums(num, Q), num + 1
    transitions = np.zeros((2, size, size, 2, size, size))  # x, y, y before, and after
    for c in range(size):
        for before in range(size):
            moves = step_matrix(jump, (c + before) / (2 * num))
            transitions[:, before, :, :, c, before] = (
                moves[:, None, :] * aux[before, c] * np.ones((1, size, 1))
            )
    law = _stationary(transitions.reshape(2 * size**2, -1))
    return float(law.reshape(2, -1).sum(axis=1)[1])


def _stationary(matrix: Float[np.ndarray, "state state"]) -> Float[np.ndarray, " state"]:
    size = len(matrix)
    system = np.vstack([matrix.T - np.eye(size), np.ones(size)])
    return np.linalg.lstsq(system, np.append(np.zeros(size), 1.0), rcond=None)[0]


def log_target(position: Float[Array, " weight"], data: Any) -> Float[Array, ""]:
    return jnp.where(position[0] > 0.5, np.log(TARGET), np.log(1 - TARGET))


def log_auxiliary(position: Float[Array, " weight"], data: Any, arrays: Any) -> Float[Array, ""]:
    return jnp.where(position[0] > 0.5, np.log(AUXILIARY), np.log(1 - AUXILIARY))


def potential(log_target: Any, position: Any, data: Any, arrays: Any) -> Float[Array, ""]:
    return log_target - log_auxiliary(position, data, arrays)


DENSITY = Auxiliary(log_auxiliary, potential)


class State(NamedTuple):
    position: Any
    log_density: Any


class Info(NamedTuple):
    is_finite: Any


def flipping(log_density: Any, *, matrix: Any) -> Kernel:
    """A kernel by its transition matrix."""

    def init(position: Any, data: Any) -> State:
        return State(position, log_density(position, data))

    def step(key: Any, state: State, data: Any) -> Any:
        up = jnp.asarray(matrix)[(state.position[0] > 0.5).astype(int), 1]
        new = (jax.random.uniform(key) < up).astype(state.position.dtype)
        return init(new[None], data), Info(jnp.ones((), bool))

    return Kernel(init, step)


def kernel(jump: str, density: Auxiliary = DENSITY, **settings: Any) -> Kernel:
    """Interacting particles on the two states; must be mapped along the axis "particle"."""
    return interacting(
        log_target,
        auxiliary=density,
        arrays=None,
        kernel=flipping,
        settings={"matrix": K},
        auxiliary_kernel=flipping,
        auxiliary_settings={"matrix": Q},
        axes=("particle",),
        **{"jump_probability": JUMP_PROBABILITY, "jump": jump, **settings},
    )


@partial(jax.jit, static_argnames=("built", "num_clouds", "num_particles", "num_steps"))
def shares(
    built: Kernel, seed: int, *, num_clouds: int, num_particles: int, num_steps: int
) -> Float[Array, " cloud"]:
    """Share of ones in clouds after a number of steps from exact draws of pi and eta."""

    def cloud(key: Any) -> Any:
        key_x, key_y, key_steps = jax.random.split(key, 3)
        ones = lambda key, one: (  # noqa: E731
            jax.random.uniform(key, (num_particles, 1)) < one
        ).astype(float)
        states = jax.vmap(lambda x: built.init(x, NOTHING))(ones(key_x, TARGET))
        partners = ones(key_y, AUXILIARY)
        states = states._replace(auxiliary=states.auxiliary._replace(position=partners))
        step = jax.vmap(lambda key, state: built.step(key, state, NOTHING), axis_name="particle")
        move = lambda states, key: (  # noqa: E731
            step(jax.random.split(key, num_particles), states)[0],
            None,
        )
        states, _ = jax.lax.scan(move, states, jax.random.split(key_steps, num_steps))
        return states.position.mean()

    return jax.vmap(cloud)(jax.random.split(jax.random.key(seed), num_clouds))
