"""Unadjusted kernels on a Gaussian stay in the stationary law of their own discretisation."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import solve_discrete_lyapunov
from tools.laws import (
    Chain,
    cyclical_chain,
    frozen_adapted_chain,
    frozen_rms_chain,
    precision,
    scores_after,
    sghmc_chain,
    sgld_chain,
    ula_chain,
)
from tools.targets import GaussianTarget, correlated, gaussian_log_density, standard

from credence.kernels.sgmcmc.cyclical import cyclical
from credence.kernels.sgmcmc.rms_sgld import rms_sgld
from credence.kernels.sgmcmc.sghmc import AdaptiveState, SGHMCState, scale_adapted_sghmc, sghmc
from credence.kernels.sgmcmc.ula import ula

pytestmark = [pytest.mark.usefixtures("float64"), pytest.mark.rotates(3)]

CHAINS = [
    ula_chain,
    sgld_chain,
    frozen_rms_chain,
    sghmc_chain,
    frozen_adapted_chain,
    cyclical_chain,
]
TARGETS = [standard(2), correlated(2), correlated(20, correlation=0.5)]

chains = pytest.mark.parametrize("make", CHAINS, ids=lambda make: make.__name__)
targets = pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)


@chains
@targets
def test_law_of_the_discretised_chain(make: Callable[..., Chain], target: GaussianTarget):
    scores = scores_after(make(target, gaussian_log_density), target)
    assert max(scores.values()) < 4.5, scores


@chains
def test_planted_gradient_error_is_caught(make: Callable[..., Chain]):
    target = standard(20)
    scores = scores_after(make(target, gaussian_log_density), target, factor=1.05)
    assert max(scores.values()) > 8, scores


def test_planted_noise_outside_the_square_root_is_caught():
    """Noise h xi in place of sqrt(h) xi: a published mistake."""
    target = standard(20)
    chain = ula_chain(target, gaussian_log_density)
    step = 0.9 * target.stds[0] ** 2
    scores = scores_after(chain._replace(noise=step * chain.noise), target)
    assert max(scores.values()) > 8


def test_variance_of_langevin_dynamics_in_closed_form():
    """1 / (1 - h/4) on N(0, 1), as the docstring says, and at temperature T times T."""
    for temperature in (1.0, 0.5):
        chain = ula_chain(standard(1), gaussian_log_density, temperature)
        step, metric = 0.9, 0.5
        stationary = solve_discrete_lyapunov(chain.transition, chain.noise)[0, 0]
        assert stationary == pytest.approx(temperature / (1 - step * metric / 4))


def test_bias_of_langevin_dynamics_is_of_first_order():
    def excess(step: float) -> float:
        transition, noise = np.array([[1 - step / 2]]), np.array([[step]])
        return solve_discrete_lyapunov(transition, noise)[0, 0] - 1

    slope = np.log2(excess(0.02) / excess(0.01))
    assert slope == pytest.approx(1, abs=0.01)


def test_temperature_zero_climbs():
    target = correlated(2)
    kernel = ula(
        gaussian_log_density,
        step_size=0.5 * target.stds[0] ** 2,
        inverse_mass=jnp.ones(2),
        temperature=0.0,
    )
    state = kernel.init(jnp.full(2, 3.0), target.data)
    keys = jax.random.split(jax.random.key(0), 5000)
    state, _ = jax.lax.scan(lambda state, key: kernel.step(key, state, target.data), state, keys)
    np.testing.assert_allclose(state.position, target.mean, atol=1e-6)


def test_rms_preconditioner_is_the_running_mean_square():
    target = correlated(2)
    kernel = rms_sgld(gaussian_log_density, step_size=1e-6, decay=0.9)
    data = target.data._replace(weight=jnp.asarray([1.0, 3.0]))  # N = 4, bound 3
    state = kernel.init(jnp.zeros(2), data)
    gradient = precision(target) @ target.mean
    np.testing.assert_allclose(state.mean_square, (gradient / 4) ** 2, rtol=1e-6)
    moved = state._replace(mean_square=jnp.zeros(2))
    new, _ = kernel.step(jax.random.key(0), moved, data)
    np.testing.assert_allclose(new.mean_square, 0.1 * (gradient / 4) ** 2, rtol=1e-6)


def test_adapted_mass_finds_the_gradients_scale():
    """V after burn-in is of the order of the mean square, 1 / variance; then it stays.

    log10 V of a chain has a standard deviation of up to 1.1, its median over 64 chains one of .18.
    """
    target = standard(2)._replace(cholesky=np.diag([0.1, 0.2]), bound=1.0)
    data = target.data  # the row weights, of which the first V is made, sum to 2

    def run(is_adapting: bool, states: Any, seed: int) -> Any:
        kernel = scale_adapted_sghmc(
            gaussian_log_density, step_size=0.1, friction=0.1, is_adapting=jnp.asarray(is_adapting)
        )

        def chain(key: Any, state: Any) -> Any:
            step = lambda state, key: kernel.step(key, state, data)  # noqa: E731
            return jax.lax.scan(step, state, jax.random.split(key, 5_000))[0]

        if states is None:
            states = jax.vmap(lambda position: kernel.init(position, data))(jnp.full((64, 2), 0.1))
        return jax.vmap(chain)(jax.random.split(jax.random.key(seed), 64), states)

    burnt = run(True, None, 0)
    typical = np.median(np.log10(burnt.mean_square / np.array([100.0, 25.0])), axis=0)
    assert np.all(abs(typical) < 5 * 0.18)
    after = run(False, burnt, 1)
    np.testing.assert_array_equal(after.mean_square, burnt.mean_square)


def test_gradients_of_all_rows_leave_no_injected_noise_out():
    """Their squares are no noise: the step is that of `sghmc`, whose metric is 1 / sqrt(V)."""
    target, square = correlated(2), jnp.asarray([300.0, 900.0])
    settings = {"step_size": 0.3, "friction": 0.1}
    zero, velocity = jnp.zeros(2), jnp.asarray([0.2, -0.1])
    state = AdaptiveState(jnp.ones(2), velocity, zero, square, zero + 1)

    def moved(noise_share: float) -> Any:
        kernel = scale_adapted_sghmc(
            gaussian_log_density, is_adapting=False, noise_share=noise_share, **settings
        )
        return kernel.step(jax.random.key(0), state, target.data)[0].position

    plain = sghmc(gaussian_log_density, inverse_mass=square**-0.5, **settings)
    expected, _ = plain.step(jax.random.key(0), SGHMCState(state.position, velocity), target.data)
    np.testing.assert_allclose(moved(0.0), expected.position, rtol=1e-6)
    assert np.all(np.abs(moved(1.0) - expected.position) > 1e-3)


def test_cyclical_step_sizes_and_temperature():
    """A cycle explores first, and each of its steps is the kernel's with the cosine's size."""
    target, length, largest = correlated(2), 8, 0.2
    build: Any = cyclical
    kernel = build(
        gaussian_log_density,
        kernel=ula,
        steps_per_cycle=length,
        exploration_share=0.5,
        step_size=largest,
        inverse_mass=jnp.ones(2),
    )
    state = kernel.init(jnp.ones(2), target.data)
    for index, key in enumerate(jax.random.split(jax.random.key(0), 2 * length)):
        done = (index % length) / length
        plain = ula(
            gaussian_log_density,
            step_size=0.5 * largest * (np.cos(np.pi * done) + 1),
            inverse_mass=jnp.ones(2),
            temperature=0.0 if done < 0.5 else 1.0,
        )
        expected, _ = plain.step(key, state.inner, target.data)
        state, info = kernel.step(key, state, target.data)
        np.testing.assert_allclose(state.position, expected.position, rtol=1e-6)
        assert bool(info.is_exploring) == (done < 0.5)
