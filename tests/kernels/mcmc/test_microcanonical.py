"""Microcanonical samplers: the flow against its differential equation, moments, and the bias.

The shared table (`test_table.py`) tests what holds for every kernel; here is what is special.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tools.targets import GaussianTarget, correlated, gaussian_log_density, standard

from credence.density.data import Data
from credence.errors import InputError
from credence.kernels.mcmc import microcanonical
from credence.kernels.mcmc.microcanonical import adjusted_mclmc, mclmc

pytestmark = [pytest.mark.usefixtures("float64"), pytest.mark.rotates(3)]

NUM_CHAINS = 128


def unit(vector):
    return vector / jnp.linalg.norm(vector)


def run(kernel, target: GaussianTarget, starts, *, num_steps: int, keep_from: int = 0):
    """Positions (chain, draw, weight) and Info (chain, step)."""

    @jax.jit
    def chains(keys, starts, data):
        def chain(key, start):
            def step(state, key):
                state, info = kernel.step(key, state, data)
                return state, (state.position, info)

            keys = jax.random.split(key, num_steps)
            return jax.lax.scan(step, kernel.init(start, data), keys)[1]

        return jax.vmap(chain)(keys, starts)

    keys = jax.random.split(jax.random.key(11), len(starts))
    positions, info = chains(keys, jnp.asarray(starts), target.data)
    return np.asarray(positions)[:, keep_from:], info


def worst_z_score(target: GaussianTarget, draws) -> float:
    """Largest deviation of first and second moments, in standard errors between chains."""
    whitened = np.stack([target.whiten(chain) for chain in draws])
    moments = np.concatenate([whitened, whitened**2 - 1], axis=2).mean(axis=1)
    return np.max(np.abs(moments.mean(0)) / moments.std(0, ddof=1)) * len(draws) ** 0.5


def adjusted(target: GaussianTarget, **settings: Any):
    defaults = {
        "step_size": 0.8 * float(target.stds[0]),
        "inverse_mass": jnp.ones(target.dimension),
        "trajectory_length": float(target.stds[-1]),
        "decoherence_length": 2.0 * float(target.stds[-1]),
    }
    return adjusted_mclmc(gaussian_log_density, **{**defaults, **settings})


# ---------------------------------------------------------------- the flow


def test_kick_solves_its_differential_equation():
    """du/dt = sqrt(d) / (d - 1) (I - u u') g and dK/dt = sqrt(d) u.g, by Runge and Kutta."""
    direction = unit(jnp.array([0.3, -1.0, 0.5, 0.2]))
    gradient, time, d = jnp.array([2.0, 1.0, -3.0, 0.5]), 0.7, 4

    def slope(u):
        return d**0.5 / (d - 1) * (gradient - u * (u @ gradient))

    u, gained, h = direction, 0.0, time / 1000
    for _ in range(1000):
        a = slope(u)
        middle = u + h / 2 * a
        b = slope(middle)
        c = slope(u + h / 2 * b)
        end = u + h * c
        new = u + h / 6 * (a + 2 * b + 2 * c + slope(end))
        gained += h / 6 * d**0.5 * (u + 4 * (u + h / 4 * (a + b)) + new) @ gradient
        u = new
    turned, energy = microcanonical._kick(direction, gradient, time)
    np.testing.assert_allclose(turned, u, rtol=1e-9)
    np.testing.assert_allclose(energy, gained, rtol=1e-5)


def test_energy_gained_by_a_kick_is_its_contraction_of_the_sphere():
    """The Metropolis test is right only if exp(-energy) is the Jacobian on the unit sphere."""
    direction = unit(jnp.array([0.3, -1.0, 0.5, 0.2]))
    gradient = jnp.array([2.0, 1.0, -3.0, 0.5])
    kick = partial(microcanonical._kick, gradient=gradient, time=0.7)
    turned, energy = kick(direction)
    jacobian = jax.jacobian(lambda u: kick(unit(u))[0])(direction)
    before, after = (np.linalg.svd(np.asarray(u)[None])[2][1:] for u in (direction, turned))
    contraction = np.linalg.det(after @ np.asarray(jacobian) @ before.T)
    np.testing.assert_allclose(np.exp(-energy), abs(contraction), rtol=1e-10)


@pytest.mark.parametrize("gradient", [0.0, 1e-30, 1e4])
def test_kick_neither_overflows_nor_divides_by_zero(gradient: float):
    direction = unit(jnp.arange(1.0, 5.0))
    turned, energy = microcanonical._kick(direction, gradient * jnp.ones(4), 1.0)
    assert jnp.isfinite(energy)
    np.testing.assert_allclose(jnp.linalg.norm(turned), 1.0)
    if gradient < 1:
        np.testing.assert_allclose(turned, direction)
    else:
        np.testing.assert_allclose(turned, 0.5 * jnp.ones(4))


def trajectory(target: GaussianTarget, start, step_size: float, num_steps: int):
    flow = microcanonical._Flow(gaussian_log_density, jnp.ones(target.dimension))
    carry = start, jnp.zeros(())
    for _ in range(num_steps):
        carry = flow.leapfrog(*carry, step_size, target.data)
    end, kinetic_change = carry
    return end, kinetic_change - (end.log_density - start.log_density)


def start_state(target: GaussianTarget):
    kernel = adjusted(target)
    state = kernel.init(jnp.asarray(target.sample(3, 1)[0]), target.data)
    return state._replace(direction=unit(jnp.ones(target.dimension)))


def test_trajectories_are_reversible():
    target = correlated(5)
    start = start_state(target)
    end, change = trajectory(target, start, 0.3, 10)
    back, change_back = trajectory(target, end._replace(direction=-end.direction), 0.3, 10)
    np.testing.assert_allclose(back.position, start.position, rtol=1e-10)
    np.testing.assert_allclose(back.direction, -start.direction, rtol=1e-10)
    np.testing.assert_allclose(change_back, -change, rtol=1e-8)


def test_half_the_step_divides_the_energy_error_by_four():
    target = correlated(5)
    start = start_state(target)
    _, change = trajectory(target, start, 0.1, 16)
    _, change_of_half = trajectory(target, start, 0.05, 32)
    assert 3.8 < change / change_of_half < 4.2


# ---------------------------------------------------------------- the adjusted sampler


@pytest.mark.parametrize("dimension", [2, 20])
def test_moments_from_far_starts(dimension: int):
    target = correlated(dimension)
    starts = target.mean + 10.0 * np.ones((NUM_CHAINS, dimension))
    draws, info = run(adjusted(target), target, starts, num_steps=300, keep_from=150)
    assert worst_z_score(target, draws) < 4.5
    assert 0.5 < np.mean(info.acceptance_rate) < 0.99


def test_inverse_mass_matters_and_does_not_bias():
    target = correlated(20)
    variances = jnp.asarray(np.sum(target.cholesky**2, axis=1))
    starts = target.sample(1, NUM_CHAINS)
    settings = {"step_size": 0.5, "trajectory_length": 1.0, "decoherence_length": 2.0}
    kernel = adjusted(target, inverse_mass=variances, **settings)
    draws, info = run(kernel, target, starts, num_steps=120)
    assert worst_z_score(target, draws) < 4.5
    _, plain = run(adjusted(target, **settings), target, starts, num_steps=120)
    assert np.mean(info.acceptance_rate) > np.mean(plain.acceptance_rate)


def test_wrong_gradient_does_not_bias_the_adjusted_sampler():
    """The kick's energy is its own Jacobian: whatever turns it, the test makes it right."""
    target = standard(10)
    starts = target.sample(1, NUM_CHAINS)
    kernel = adjusted_mclmc(
        with_wrong_gradient, step_size=0.5, inverse_mass=jnp.ones(10), trajectory_length=1.0
    )
    draws, _ = run(kernel, target, starts, num_steps=120)
    assert worst_z_score(target, draws) < 4.5


@pytest.mark.parametrize("factor", [0.8, 1.2])
def test_planted_wrong_energy_change_is_caught(factor: float, monkeypatch):
    right = microcanonical._kick

    def wrong(direction, gradient, time):
        turned, energy = right(direction, gradient, time)
        return turned, factor * energy

    monkeypatch.setattr(microcanonical, "_kick", wrong)
    target = standard(10)
    draws, _ = run(adjusted(target), target, target.sample(1, NUM_CHAINS), num_steps=120)
    assert worst_z_score(target, draws) > 8


@pytest.mark.rotates(3)
def test_planted_missing_test_is_caught(monkeypatch):
    """The test is all that keeps the law where the step is near the limit of stability."""
    target = standard(10)
    starts = target.sample(1, NUM_CHAINS)
    settings = {"step_size": 1.4, "trajectory_length": 4.0, "decoherence_length": 4.0}
    draws, info = run(adjusted(target, **settings), target, starts, num_steps=120)
    assert np.mean(info.acceptance_rate) < 0.9
    assert worst_z_score(target, draws) < 4.5

    monkeypatch.setattr(jax.random, "uniform", lambda key: jnp.zeros(()))
    draws, _ = run(adjusted(target, **settings), target, starts, num_steps=120)
    assert worst_z_score(target, draws) > 8


def test_leapfrogs_vary_evenly_around_the_mean():
    counts = jax.vmap(lambda step: microcanonical.varied_leapfrogs(step, 10.0))(
        jnp.arange(1000, dtype=jnp.uint32)
    )
    assert (counts.min(), counts.max()) == (5, 15)
    np.testing.assert_allclose(counts.mean(), 10.0, atol=0.05)
    late = microcanonical.varied_leapfrogs(jnp.uint32(2**31 + 7), 10.0)
    assert 5 <= late <= 15
    assert microcanonical.varied_leapfrogs(jnp.uint32(0), 0.1) == 1


def test_bounded_trajectories_are_exact_and_no_longer_than_the_bound():
    target = correlated(20)
    kernel = adjusted(target, max_integration_steps=6)
    draws, info = run(kernel, target, target.sample(1, NUM_CHAINS), num_steps=120)
    assert worst_z_score(target, draws) < 4.5
    assert (info.num_gradients.min(), info.num_gradients.max()) == (2, 6)
    _, free = run(adjusted(target), target, target.sample(1, NUM_CHAINS), num_steps=120)
    assert free.num_gradients.max() > 6


def test_decoherence_length_is_the_memory_of_the_direction():
    """The direction only decays without a gradient: the cosine after length s is exp(-s / L)."""
    dimension = 2000
    kernel = adjusted_mclmc(
        lambda position, data: 0.0 * jnp.sum(position),
        step_size=0.5,
        inverse_mass=jnp.ones(dimension),
        trajectory_length=0.5,
        decoherence_length=2.0,
    )
    data = standard(2).data
    state, _ = kernel.step(jax.random.key(1), kernel.init(jnp.zeros(dimension), data), data)
    np.testing.assert_allclose(jnp.linalg.norm(state.direction), 1.0)
    new, info = kernel.step(jax.random.key(2), state, data)
    expected = np.exp(-0.5 * info.num_gradients / 2.0)
    assert abs(new.direction @ state.direction - expected) < 5 / dimension**0.5


def test_a_refused_chain_turns_back():
    target = standard(3)
    kernel = adjusted(target, step_size=0.5, decoherence_length=1e9)
    state = start_state(target)
    nowhere = target._replace(bound=-np.inf)
    new, info = kernel.step(jax.random.key(0), state, nowhere.data)
    assert not info.is_finite
    assert info.is_divergent
    np.testing.assert_array_equal(new.position, state.position)
    np.testing.assert_allclose(new.direction, -state.direction, atol=1e-3)
    assert new.num_steps == state.num_steps + 1


def test_a_chain_at_rest_gets_a_direction_however_much_it_remembers() -> None:
    target = standard(3)
    position, inverse_mass = jnp.zeros(3, jnp.float32), jnp.ones(3, jnp.float32)
    for build, lengths in (
        (mclmc, {"decoherence_length": 1e9}),
        (mclmc, {"decoherence_length": 0.0}),
        (adjusted_mclmc, {"trajectory_length": 0.5, "decoherence_length": 1e9}),
    ):
        kernel = build(gaussian_log_density, step_size=0.1, inverse_mass=inverse_mass, **lengths)
        state, data = kernel.init(position, target.data), target.data
        for key in jax.random.split(jax.random.key(0), 3):
            state, info = kernel.step(key, state, data)
            assert info.is_finite
        assert np.linalg.norm(state.position) > 0.01
        assert np.linalg.norm(state.direction) == pytest.approx(1, abs=1e-3)


def test_one_weight_is_refused():
    for kernel in (adjusted_mclmc, mclmc):
        built = kernel(gaussian_log_density, step_size=0.1, inverse_mass=jnp.ones(1))
        with pytest.raises(InputError, match="at least 2 weights"):
            built.init(jnp.zeros(1), standard(1).data)


# ---------------------------------------------------------------- without a test

MCLMC_CHAINS, MCLMC_LENGTH = 1000, 40.0


def mean_square(log_density, step_size: float) -> tuple[float, float]:
    """Mean square of a weight of N(0, I), d = 20, under mclmc, and its standard error."""
    target = standard(20)
    kernel = mclmc(log_density, step_size=step_size, inverse_mass=jnp.ones(20))
    num_steps = round(MCLMC_LENGTH / step_size)
    starts = target.sample(1, MCLMC_CHAINS)
    draws, _ = run(kernel, target, starts, num_steps=num_steps, keep_from=num_steps // 3)
    squares = np.mean(draws**2, axis=(1, 2))
    return squares.mean(), squares.std(ddof=1) / MCLMC_CHAINS**0.5


@pytest.mark.rotates(3)
def test_bias_of_the_unadjusted_sampler_is_of_second_order():
    coarse, coarse_error = mean_square(gaussian_log_density, 1.0)
    fine, fine_error = mean_square(gaussian_log_density, 0.5)
    order = np.log2((coarse - 1) / (fine - 1))
    error = np.hypot(coarse_error / (coarse - 1), fine_error / (fine - 1)) / np.log(2)
    assert error < 0.1, "too noisy to tell: draw more"
    assert abs(order - 2) < 0.3 + 5 * error, (coarse, fine)


def test_small_steps_are_nearly_exact():
    """The bias at step h of leapfrog, about h^2 / 4, is below half a percent at h = 0.1."""
    square, error = mean_square(gaussian_log_density, 0.1)
    assert abs(square - 1) < 0.005 + 5 * error


def with_wrong_gradient(position, data: Data):
    """The right density with a gradient 5 % too large."""
    value = gaussian_log_density(position, data)
    return value + 0.05 * (value - jax.lax.stop_gradient(value))


@pytest.mark.rotates(3)
def test_planted_wrong_gradient_is_caught():
    square, error = mean_square(with_wrong_gradient, 0.1)
    assert abs(square - 1) > 0.005 + 8 * error


def test_a_step_keeps_the_types_of_its_state():
    """Same tree and dtypes before and after, as compiled loops need."""
    target = correlated(4)
    untested = mclmc(gaussian_log_density, step_size=0.1, inverse_mass=jnp.ones(4))
    for kernel in (adjusted(target), untested):
        state = kernel.init(jnp.zeros(4), target.data)
        new, _ = kernel.step(jax.random.key(0), state, target.data)
        dtypes, new_dtypes = (jax.tree.map(lambda leaf: leaf.dtype, tree) for tree in (state, new))
        assert new_dtypes == dtypes
