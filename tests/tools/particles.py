"""Runs of particles compared bit for bit, and a planted error in their resampling."""

from typing import Any

import jax
import numpy as np
import pytest

from credence.ensembles.ensemble import Ensemble
from credence.methods.smc import tempering


def assert_same(found: Ensemble, expected: Ensemble) -> None:
    """Bit for bit."""
    jax.tree.map(np.testing.assert_array_equal, found.params, expected.params)
    assert found.scalars.keys() == expected.scalars.keys()
    for name, values in found.scalars.items():
        np.testing.assert_array_equal(values, expected.scalars[name])
    np.testing.assert_array_equal(found.weights, expected.weights)


def resample_positions_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Likelihoods stay where they were."""
    resampled = tempering.resampled

    def wrong(memory: Any, *, scheme: str, num: int) -> Any:
        kept = [leaf[:, :num].reshape(-1) for leaf in memory.cloud[1:]]
        position = resampled(memory, scheme=scheme, num=num).position
        return tempering.ParticleState(position, *kept, position)

    monkeypatch.setattr(tempering, "resampled", wrong)
