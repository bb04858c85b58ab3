"""What one process shares: JAX's devices can be set after everything is imported."""

import subprocess
import sys

import pytest

IMPORTS = """
import credence
from credence import compare, diagnostics, estimators, methods, models, report
from credence_papers.multilevel import studies
credence.configure(2, compilation_cache=False)
import jax
assert jax.local_device_count() == 2
from credence.kernels.mcmc import hmc
hmc.nuts(lambda position, data: 0.0, step_size=0.1, inverse_mass=1.0)
"""
FIT = """
import sys
import numpy as np
from credence import configure, BNNRegressor
from credence.environment import num_cores
if sys.argv[1:]:
    configure(int(sys.argv[1]), compilation_cache=False)
x = np.linspace(0, 1, 12)[:, None]
BNNRegressor(hidden=(2,), method="map").fit(x, x[:, 0])
import jax
assert jax.local_device_count() == (int(sys.argv[1]) if sys.argv[1:] else min(num_cores(), 8))
"""


def test_no_import_starts_jax() -> None:
    check(IMPORTS)


@pytest.mark.parametrize("asked", [(), ("3",)])
def test_a_fit_uses_all_cores_where_nobody_has_said(asked: tuple[str, ...]) -> None:
    check(FIT, *asked)


def check(script: str, *words: str) -> None:
    """Run it in a process of its own, where JAX has not started."""
    found = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
