"""The rearranged perceptron and its tanh against the textbook forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from credence.models.networks.dense import Layer, mlp, tanh


def random_layers(key, widths):
    keys = jax.random.split(key, len(widths) - 1)
    return tuple(
        Layer(jax.random.normal(key, (fan_in, fan_out)), jnp.arange(1.0, fan_out + 1))
        for key, fan_in, fan_out in zip(keys, widths[:-1], widths[1:], strict=True)
    )


@pytest.mark.parametrize("widths", [(3, 1), (3, 5, 2), (3, 4, 6, 1)])
def test_mlp_is_the_textbook_formula(widths):
    with jax.enable_x64(True):
        layers = random_layers(jax.random.key(0), widths)
        x = jax.random.normal(jax.random.key(1), (7, 3))
        expected = x
        for layer in layers[:-1]:
            expected = jnp.sin(expected @ layer.kernel + layer.bias)
        expected = expected @ layers[-1].kernel + layers[-1].bias
        np.testing.assert_allclose(mlp(layers, x, jnp.sin), expected, rtol=1e-12)


@pytest.mark.optimized
def test_tanh_is_accurate_to_five_units_in_the_last_place():
    z = np.concatenate([np.linspace(-20, 20, 400_001), np.geomspace(1e-30, 10, 100_001)])
    z = z.astype(np.float32)
    exact = np.tanh(z.astype(np.float64))
    error = np.abs(np.asarray(jax.jit(tanh)(z), np.float64) - exact)
    assert np.all(error <= 5 * np.spacing(np.abs(exact).astype(np.float32)))


def test_tanh_at_the_edges():
    y = tanh(jnp.array([-jnp.inf, 0.0, jnp.inf, jnp.nan], jnp.float32))
    np.testing.assert_allclose(y, [-1, 0, 1, np.nan], atol=3e-7)
    assert np.all(np.abs(y[:3]) < 1)


def test_tanh_derivative():
    z = jnp.linspace(-9, 9, 1001, dtype=jnp.float32)
    slope = jax.vmap(jax.grad(tanh))(z)
    np.testing.assert_allclose(slope, 1 / np.cosh(np.asarray(z, np.float64)) ** 2, atol=6e-7)


def test_tanh_in_double_precision_is_exact():
    with jax.enable_x64(True):
        z = jnp.linspace(-9, 9, 1001)
        np.testing.assert_array_equal(tanh(z), jnp.tanh(z))
