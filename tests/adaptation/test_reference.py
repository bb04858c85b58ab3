"""References of pCN: the moments of a window, in spite of single precision."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from credence.adaptation.reference import reference_adaptation
from credence.engine.blocks import Block


@pytest.mark.parametrize(("mean", "std"), [(100.0, 0.01), (0.0, 1e-9)])
def test_moments_of_a_window_keep_their_digits(mean: float, std: float) -> None:
    """A mean 10,000 times the spread, and spreads as under a trace-class prior."""
    draws = np.random.default_rng(0).normal(mean, std, (4, 60, 3)).astype(np.float32)
    adapter = reference_adaptation(
        np.zeros(3, np.float32),
        np.ones(3, np.float32),
        num_rounds=4,
        target_acceptance_rate=0.3,
        fit_reference=True,
    )
    memory: Any = adapter.memory
    for part in np.split(draws, 3, axis=1):  # the first window of four rounds
        rates = jnp.full((4, 20), 0.3)
        block = Block(None, jnp.asarray(part), {"acceptance_rate": rates})
        memory = adapter.update(memory, block)
    found, flat = adapter.settings(memory), draws.reshape(-1, 3).astype(float)
    np.testing.assert_allclose(found["reference_mean"], flat.mean(axis=0), rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(found["reference_std"], flat.std(axis=0), rtol=1e-3)
    assert found["reference_std"].dtype == np.float32
    planted = np.sqrt(np.maximum((draws**2).mean((0, 1)) - draws.mean((0, 1)) ** 2, 1e-8))
    assert not np.allclose(planted, flat.std(axis=0), rtol=1e-3)
