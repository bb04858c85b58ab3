"""The faulty MALA of the public code, and the law that it leaves invariant."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from credence.density.data import Data
from credence.kernels.mcmc.mala import mala
from credence_papers.nonlinear.published_mala import published_mala

DATA = Data(jnp.zeros((1, 1)), jnp.zeros((1, 1)), jnp.ones(1))
STEP_SIZE, NUM_CHAINS, NUM_STEPS = 0.05, 20_000, 400


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize(("build", "is_faulty"), [(published_mala, True), (mala, False)])
def test_variance_on_a_standard_normal(build, is_faulty: bool) -> None:
    """1 / (1 + (1 - h/4) (1 - sqrt(h))) with the fault, and 1 without it."""
    kernel = build(
        lambda x, data: -0.5 * jnp.sum(x**2), step_size=STEP_SIZE, inverse_mass=jnp.ones(1)
    )

    @jax.jit
    def last(key):
        def step(state, key):
            return kernel.step(key, state, DATA)[0], None

        first = kernel.init(jax.random.normal(key, (1,)), DATA)
        return jax.lax.scan(step, first, jax.random.split(key, NUM_STEPS))[0].position[0]

    draws = np.asarray(jax.vmap(last)(jax.random.split(jax.random.key(2), NUM_CHAINS)))
    faulty = 1 / (1 + (1 - STEP_SIZE / 4) * (1 - STEP_SIZE**0.5))
    error = np.std(draws**2, ddof=1) / NUM_CHAINS**0.5
    z = {name: abs(np.mean(draws**2) - law) / error for name, law in (("f", faulty), ("r", 1.0))}
    print(build.__name__, z)
    right, wrong = (z["f"], z["r"]) if is_faulty else (z["r"], z["f"])
    assert right < 4.5
    assert wrong > 8
