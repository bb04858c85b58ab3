"""L-BFGS as a kernel: the mode of a Gaussian, the bound on what is left, and what NaN does."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from credence.density.data import Data
from credence.kernels.ascent.lbfgs import lbfgs

pytestmark = pytest.mark.usefixtures("float64")

DATA = Data(jnp.ones((1, 1)), jnp.array([[2.0]]), jnp.ones(1))
PRECISION = jnp.array([[4.0, 1.0], [1.0, 100.0]])
MODE = jnp.array([1.0, -3.0])


def log_density(position, data):
    offset = position - MODE * data.y[0, 0] / 2.0
    return 7.0 - 0.5 * offset @ PRECISION @ offset


def climb(num_steps, *, scale, log_density=log_density, start=(5.0, 5.0)):
    kernel = lbfgs(log_density, scale=jnp.asarray(scale))

    @jax.jit
    def run(data):
        return jax.lax.scan(
            lambda state, _: kernel.step(jax.random.key(0), state, data),
            kernel.init(jnp.asarray(start), data),
            length=num_steps,
        )

    return run(DATA)


@pytest.mark.parametrize("scale", [(1.0, 1.0), (0.5, 0.1)])
def test_it_climbs_to_the_mode(scale):
    state, info = climb(30, scale=scale)
    np.testing.assert_allclose(state.position, MODE, atol=1e-6)
    np.testing.assert_allclose(info.log_density[-1], 7.0)
    assert info.is_finite.all()
    assert (info.num_gradients == 1).all()
    assert np.all(np.diff(info.log_density) > -1e-9)


def test_the_gap_bounds_what_is_missing():
    """The scales make the curvature at least one; planted: scales far too small."""
    _, info = climb(6, scale=(1.0, 1.0))
    missing = 7.0 - info.log_density
    assert np.all(info.gap >= missing * (1 - 1e-12))
    _, info = climb(1, scale=(0.001, 0.001))
    assert info.gap[0] < 7.0 - info.log_density[0]


def test_it_climbs_a_curved_ridge_from_where_the_density_is_convex():
    """Rosenbrock's function: most of the way no quadratic fits."""

    def ridge(position, data):
        x, y = position
        return -((1 - x) ** 2) - 100 * (y - x**2) ** 2

    state, info = climb(200, scale=(1.0, 1.0), log_density=ridge, start=(-1.2, 1.0))
    np.testing.assert_allclose(state.position, [1.0, 1.0], atol=1e-6)
    assert 0 < (~info.is_accepted).sum() < 100


def test_a_nan_is_refused():
    def broken(position, data):
        return log_density(position, data) * jnp.nan

    state, info = climb(3, scale=(1.0, 1.0), log_density=broken)
    np.testing.assert_array_equal(state.position, [5.0, 5.0])
    assert not info.is_finite.any()
