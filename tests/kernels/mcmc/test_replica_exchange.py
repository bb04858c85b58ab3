"""Replica exchange on linear regressions: every rung has a posterior in closed form."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tools.exact import LinearRegression, linear_regression
from tools.moments import moment_z

from credence.adaptation.tunable_kernels import tunable_kernel
from credence.kernels.mcmc import replica_exchange as module
from credence.kernels.mcmc.replica_exchange import Ladder, ReplicaInfo, ReplicaState

PROBLEM = linear_regression()
LADDER = Ladder(PROBLEM.posterior.model)
POWERS = np.array([0.0, 0.1, 0.4, 1.0], np.float32)
NUM_LADDERS, NUM_STEPS = 400, 40


def problem_at(power: float) -> LinearRegression:
    """The regression whose posterior is that of a rung: the noise is larger."""
    return PROBLEM._replace(noise_std=PROBLEM.noise_std / max(power, 1e-9) ** 0.5)


def exact_starts() -> np.ndarray:
    """Independent draws of every rung (ladder, rung, weight)."""
    rng = np.random.default_rng(0)
    moments = [problem_at(power).solve() for power in POWERS]
    draws = [rng.multivariate_normal(*each, size=NUM_LADDERS) for each in moments]
    return np.stack(draws, axis=1).astype(np.float32)


def run(name: str = "mclmc", num_moves: int = 1) -> tuple[np.ndarray, ReplicaInfo]:
    """Positions (ladder, step, rung, weight) of ladders that start from exact draws."""
    tunable = tunable_kernel(name).for_particles
    variances = [np.diag(problem_at(power).solve()[1]) for power in POWERS]
    kernel = module.replica_exchange(
        LADDER,
        powers=jnp.asarray(POWERS),
        step_size=jnp.full(len(POWERS), 0.6),
        inverse_mass=jnp.asarray(variances, jnp.float32),
        build=(tunable.reversible_together or tunable).build,
        num_moves=num_moves,
        num_leapfrogs=3 if "trajectory_length" in tunable.options else None,
    )
    data = PROBLEM.posterior.data

    def one(key: Any, start: Any) -> tuple[Any, ReplicaInfo]:
        def step(state: ReplicaState, key: Any) -> tuple[ReplicaState, Any]:
            state, info = kernel.step(key, state, data)
            return state, (state.positions, info)

        keys = jax.random.split(key, NUM_STEPS)
        return jax.lax.scan(step, kernel.init(start, data), keys)[1]

    keys = jax.random.split(jax.random.key(1), NUM_LADDERS)
    positions, info = jax.jit(jax.vmap(one))(keys, jnp.asarray(exact_starts()))
    return np.asarray(positions, float), info


def worst_z(positions: np.ndarray) -> float:
    """The worst |z| of the moments of all rungs."""
    return max(
        moment_z(positions[:, :, rung], problem_at(power)) for rung, power in enumerate(POWERS)
    )


@pytest.mark.parametrize(
    ("name", "num_moves"), [("mclmc", 1), ("mclmc", 2), ("hmc", 1), ("mala", 1)]
)
def test_every_rung_keeps_its_law(name: str, num_moves: int) -> None:
    positions, info = run(name, num_moves)
    z = worst_z(positions)
    print(f"{name}, {num_moves}: z {z:.1f}, exchanges {np.nanmean(info.exchange_rate, (0, 1))}")
    assert z < 4.5
    assert np.all(info.is_finite)
    assert np.nanmean(info.exchange_rate) > 0.2, "they meet"
    assert np.all(np.mean(info.acceptance_rate, (0, 1)) > 0.5), "they move"


@pytest.mark.parametrize("planted", ["always", "upside down", "a quarter"])
def test_planted_ratios_of_exchanges_are_caught(planted: str, monkeypatch: Any) -> None:
    right = module.exchanged

    def wrong(key: Any, log_likelihoods: Any, powers: Any, parity: Any) -> Any:
        factor = {"always": 0.0, "upside down": -1.0, "a quarter": 0.25}[planted]
        return right(key, factor * log_likelihoods, powers, parity)

    monkeypatch.setattr(module, "exchanged", wrong)
    z = worst_z(run()[0])
    print(f"{planted}: z {z:.1f}")
    assert z > 8


def test_exchanges_of_two_rungs_are_metropolis_tests() -> None:
    """The rate and its frequency, of a pair whose ratio is known."""
    powers = jnp.array([0.0, 0.5, 1.0])
    log_likelihoods = jnp.array([-3.0, -5.0, -4.0])
    exchange = partial(module.exchanged, log_likelihoods=log_likelihoods, powers=powers)
    keys = jax.random.split(jax.random.key(0), 20_000)
    even, odd = (
        jax.vmap(lambda key: exchange(key, parity=jnp.uint32(parity)))(keys)  # noqa: B023
        for parity in (0, 1)
    )
    np.testing.assert_allclose(even[1][0], [1.0, np.nan], rtol=1e-6)  # the likelier state is hotter
    assert np.all(even[0] == jnp.array([1, 0, 2]))
    np.testing.assert_allclose(odd[1][0], [np.nan, np.exp(-0.5)], rtol=1e-6)
    swapped = np.mean(np.all(np.asarray(odd[0]) == [0, 2, 1], axis=1))
    assert abs(swapped - np.exp(-0.5)) < 4.5 * (0.25 / len(keys)) ** 0.5


def test_a_likelihood_that_is_not_finite_is_never_exchanged() -> None:
    order, rates = module.exchanged(
        jax.random.key(0), jnp.array([-jnp.inf, 0.0]), jnp.array([0.0, 1.0]), jnp.uint32(0)
    )
    assert order.tolist() == [0, 1]
    assert rates.tolist() == [0.0]


def test_restarts_are_states_that_came_all_the_way_from_the_prior() -> None:
    """A state takes a step for each rung where all exchanges happen; then one in two is new."""
    honest = module.metropolis
    try:
        module.metropolis = lambda key, log_ratio, possible: (possible * 1.0, possible)
        _, info = run()
    finally:
        module.metropolis = honest
    restarts = np.asarray(info.is_restart)[0]
    assert not restarts[:2].any()
    assert restarts[3:].mean() == pytest.approx(0.5, abs=0.05)
