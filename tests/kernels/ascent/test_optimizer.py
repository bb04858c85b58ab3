"""Adam as a kernel: the mode of a Gaussian, the loss, and what happens to NaN."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from credence.density.data import Data
from credence.kernels.ascent.optimizer import adam

pytestmark = pytest.mark.usefixtures("float64")

DATA = Data(jnp.array([[1.0], [3.0]]), jnp.array([[-2.0], [0.0]]), jnp.ones(2))


def log_density(position, data):
    """Two points pull two weights: the mode is the mean of the rows (x, y), here (2, -1)."""
    rows = jnp.concatenate([data.x, data.y], axis=1)
    return -0.5 * jnp.sum(data.weight[:, None] * (position - rows) ** 2)


def climb(start, data, *, learning_rate, num_steps, log_density=log_density):
    kernel = adam(log_density, learning_rate=learning_rate)

    @jax.jit
    def run(start, data):
        return jax.lax.scan(
            lambda state, _: kernel.step(jax.random.key(0), state, data),
            kernel.init(start, data),
            length=num_steps,
        )

    return run(start, data)


def test_adam_climbs_to_the_mode():
    state, info = climb(jnp.zeros(2), DATA, learning_rate=0.05, num_steps=1000)
    np.testing.assert_allclose(state.position, [2.0, -1.0], atol=1e-4)
    assert info.loss[-1] < info.loss[0]
    assert info.is_finite.all()
    assert (info.num_gradients == 1).all()


def test_rows_without_weight_move_nothing():
    """A batch of such rows alone says nothing; it is no failure either."""
    nobody = DATA._replace(weight=jnp.zeros(2))
    state, info = climb(jnp.array([0.5, 0.5]), nobody, learning_rate=0.05, num_steps=3)
    np.testing.assert_array_equal(state.position, [0.5, 0.5])
    assert info.is_finite.all()
    assert jnp.isfinite(info.loss).all()


def test_planted_wrong_gradient_misses_the_mode():
    def wrong(position, data):
        return log_density(position, data) + 0.05 * position[0] ** 2

    state, _ = climb(jnp.zeros(2), DATA, learning_rate=0.05, num_steps=1000, log_density=wrong)
    assert abs(state.position[0] - 2.0) > 0.05


def test_loss_is_minus_the_log_density_per_point_before_the_update():
    _, info = climb(jnp.array([1.0, 1.0]), DATA, learning_rate=0.1, num_steps=1)
    np.testing.assert_allclose(info.loss[0], 0.5 * (0 + 4 + 9 + 1) / 2)


def test_first_step_is_the_learning_rate_along_each_axis():
    """Adam's first update is learning_rate * sign(gradient), Kingma & Ba (2015), section 2.1."""
    state, _ = climb(jnp.zeros(2), DATA, learning_rate=0.03, num_steps=1)
    np.testing.assert_allclose(state.position, [0.03, -0.03], rtol=1e-6)


def test_steps_do_not_depend_on_how_often_the_data_are_counted():
    """The gradient is per point: data that count ten times move the weights alike."""
    counted = DATA._replace(weight=10 * DATA.weight)
    once, _ = climb(jnp.zeros(2), DATA, learning_rate=0.05, num_steps=20)
    ten_times, _ = climb(jnp.zeros(2), counted, learning_rate=0.05, num_steps=20)
    np.testing.assert_allclose(ten_times.position, once.position, rtol=1e-6)


def test_nan_is_refused_and_counted_and_does_not_poison_the_memory():
    """A row that is NaN for the first step only."""
    kernel = adam(log_density, learning_rate=0.05)
    broken = DATA._replace(y=jnp.array([[jnp.nan], [0.0]]))
    start = kernel.init(jnp.zeros(2), DATA)
    refused, info = kernel.step(jax.random.key(0), start, broken)
    np.testing.assert_array_equal(refused.position, start.position)
    assert not info.is_finite

    moved, info = kernel.step(jax.random.key(0), refused, DATA)
    expected, _ = kernel.step(jax.random.key(0), start, DATA)
    np.testing.assert_array_equal(moved.position, expected.position)
    assert info.is_finite
