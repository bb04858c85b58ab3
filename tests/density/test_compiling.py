"""Programs that are compiled quickly say what others say, by themselves and inside of others."""

import jax
import jax.numpy as jnp
import numpy as np

from credence.density.compiling import jit_quickly
from credence.density.posterior import Posterior
from credence.models import MLP, Gaussian, Normal


def test_alone_and_as_a_part_of_another_program() -> None:
    def doubled(x: jax.Array, *, times: int) -> jax.Array:
        """Twice, and again."""
        return times * 2 * x

    quick = jit_quickly(doubled, static_argnames="times")
    x = jnp.arange(3.0)
    np.testing.assert_array_equal(quick(x, times=3), 6 * x)
    np.testing.assert_array_equal(jax.jit(lambda x: quick(x, times=3) + 1)(x), 6 * x + 1)
    np.testing.assert_array_equal(jax.grad(lambda x: quick(x, times=2).sum())(x), np.full(3, 4.0))
    np.testing.assert_array_equal(jax.vmap(lambda x: quick(x, times=1))(x), 2 * x)
    assert (quick.__doc__, quick._cache_size()) == ("Twice, and again.", 1)


def test_a_posterior_starts_and_unravels_in_a_program_of_ones_own() -> None:
    x = np.linspace(-1, 1, 9)[:, None]
    posterior = Posterior(MLP(1, (3,)), Gaussian(), Normal(), (x, x[:, 0]))
    key = jax.random.key(0)
    start = posterior.init(key, 2)
    inside = jax.jit(lambda key: posterior.init(key, 2))(jax.random.clone(key))
    np.testing.assert_allclose(inside, start, rtol=1e-5)
    again = jax.jit(lambda position: posterior.ravel(posterior.unravel(position)))(start[0])
    np.testing.assert_array_equal(again, start[0])
