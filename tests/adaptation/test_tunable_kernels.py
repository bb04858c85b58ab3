"""Kernels as warm-ups and particles take them."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from credence.adaptation import tunable_kernels
from credence.adaptation.tunable_kernels import _equal_leapfrogs
from credence.kernels.base import Kernel
from credence.kernels.mcmc import hmc


def test_a_length_of_whole_leapfrogs_has_no_one_more(monkeypatch) -> None:
    """The quotient n h / h is a little more than n for one step size in ten of single precision."""
    seen = []

    def leapfrogs(*given: Any, **how: Any) -> Kernel:
        seen.append(how)
        return hmc.leapfrogs(*given, **how)

    monkeypatch.setattr(tunable_kernels, "leapfrogs", leapfrogs)
    step_sizes = np.random.default_rng(0).uniform(0.01, 1, 200).astype(np.float32)
    for step_size in map(jnp.float32, step_sizes):
        _equal_leapfrogs(
            lambda position, data: 0.0,
            step_size=step_size,
            inverse_mass=jnp.ones(1),
            trajectory_length=7 * step_size,
        )
    assert {int(how["num_integration_steps"]) for how in seen} == {7}
