"""Decisions of an agent, for inverse reinforcement learning: which value function explains them?

A decision is the states that the actions lead to, and the action taken. With the likelihood
`NoisyArgmax` and a network `PerAction` the posterior is over value functions; after Sell & Singh,
"Trace-class Gaussian priors for Bayesian learning of neural networks with MCMC" (2023).
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from credence.datasets.catalogue.registry import load
from credence.errors import InputError


class Decisions(NamedTuple):
    """What an agent could have reached, and what it chose."""

    x: Float[np.ndarray, "point action feature"]
    """State that each action leads to, every coordinate scaled to [-1, 1]."""
    y: Int[np.ndarray, " point"]
    """The action taken, from 0."""


# Bounds of the 17 state coordinates: 8 positions, then 9 velocities.
_POSITIONS = (
    (-0.25, -0.8, -0.7, -0.7, -0.65, -0.75, -0.95, -0.6),
    (0.4, 1.65, 0.95, 0.9, 0.95, 0.95, 1.1, 0.75),
)
_VELOCITIES = (
    (-1.5, -3.1, -7.1, -20, -24, -27, -27, -30, -20),
    (8, 3.4, 7, 19, 25, 22, 25, 32, 26),
)
_HALFCHEETAH = np.hstack([_POSITIONS, _VELOCITIES])
_MOUNTAIN_CAR = np.array([(-1.2, -0.07), (0.6, 0.07)])
_GOAL = 0.5


def halfcheetah() -> Decisions:
    """100 decisions of an expert running in MuJoCo's HalfCheetah: 17 state coordinates, 8 actions.

    Every fifth state of one run, where the nearest of 8 fixed actions stands for the expert's.

    Raises:
        InputError: if the file is not in CREDENCE_DATA; see `load`.
    """
    arrays = load("halfcheetah_discrete_actions").arrays
    assert arrays is not None
    states, actions = arrays["x_test_100"], arrays["a_test_100"]
    return Decisions(_scaled(states, _HALFCHEETAH), actions.astype(np.int64))


def mountain_car(
    num_decisions: int = 100,
    *,
    seed: int = 0,
    keep_every: int = 5,
    mistake_probability: float = 0.0,
) -> Decisions:
    """Simulated decisions of a driver in a valley: 2 state coordinates, 3 actions.

    Moore's mountain car with the constants of Sutton & Barto, "Reinforcement Learning" (2018),
    example 10.1: push left, coast or push right. The driver pushes the way the car goes, which
    pumps up its energy until it passes the hill on the right; then another start is drawn from
    position ~ U(-0.6, -0.4), at rest.

    Args:
        seed: of the starts and mistakes.
        keep_every: one decision in so many is kept.
        mistake_probability: with it any of the three actions is taken instead.
    Raises:
        InputError: for numbers < 1 or a probability outside [0, 1].
    """
    if num_decisions < 1 or keep_every < 1 or not 0 <= mistake_probability <= 1:
        raise InputError(
            "num_decisions and keep_every must be >= 1 and mistake_probability in [0, 1], got "
            f"{num_decisions}, {keep_every} and {mistake_probability}."
        )
    rng = np.random.default_rng(seed)
    successors, actions, step = [], [], 0
    position, velocity = rng.uniform(-0.6, -0.4), 0.0
    while len(actions) < num_decisions:
        reached = [move(position, velocity, action) for action in range(3)]
        is_mistake = rng.uniform() < mistake_probability
        action = int(rng.integers(3)) if is_mistake else (2 if velocity >= 0 else 0)
        if step % keep_every == 0:
            successors.append(reached)
            actions.append(action)
        position, velocity = reached[action]
        if position >= _GOAL:
            position, velocity = rng.uniform(-0.6, -0.4), 0.0
        step += 1
    return Decisions(_scaled(np.array(successors), _MOUNTAIN_CAR), np.array(actions))


def move(position: float, velocity: float, action: int) -> tuple[float, float]:
    """The car's next position and velocity; action 0 pushes left, 1 coasts, 2 pushes right."""
    (left, slowest), (right, fastest) = _MOUNTAIN_CAR
    velocity = velocity + 0.001 * (action - 1) - 0.0025 * np.cos(3 * position)
    velocity = float(min(max(velocity, slowest), fastest))
    position = float(min(max(position + velocity, left), right))
    return position, 0.0 if position == left else velocity  # the wall on the left stops it


def _scaled(
    states: Float[np.ndarray, "point action feature"], bounds: Float[np.ndarray, "2 feature"]
) -> Float[np.ndarray, "point action feature"]:
    """Coordinates between their bounds to [-1, 1]."""
    low, high = bounds
    return 2 * (states - low) / (high - low) - 1
