"""What one process shares: JAX's devices can be set after everything is imported."""

import subprocess
import sys

IMPORTS = """
import credence
from credence import diagnostics, estimators, experiments, methods, models, report
from credence.experiments import studies
credence.configure(2, compilation_cache=False)
import jax
assert jax.local_device_count() == 2
from credence.kernels import blackjax_kernels
blackjax_kernels.nuts(lambda position, data: 0.0, step_size=0.1, inverse_mass=1.0)
"""


def test_no_import_starts_jax() -> None:
    found = subprocess.run([sys.executable, "-c", IMPORTS], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
