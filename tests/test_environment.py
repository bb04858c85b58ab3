"""What one process shares: JAX's devices can be set after everything is imported."""

import platform
import subprocess
import sys

import jax
import pytest

from credence import environment
from credence.engine import clock, programs
from credence.errors import InputError

IMPORTS = """
import credence
from credence import (compare, estimators, methods, models, report)
from credence.ensembles import diagnostics
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
FORK = """
import os
import numpy as np
from credence import BNNRegressor
from credence.environment import ForkedProcessError
x = np.linspace(0, 1, 12)[:, None]
model = BNNRegressor(hidden=(2,), method="map").fit(x, x[:, 0])
child = os.fork()
if child == 0:
    for compute in (lambda: model.predict(x), lambda: model.fit(x, x[:, 0])):
        try:
            compute()
        except ForkedProcessError as error:
            continue
        os._exit(1)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""


def test_no_import_starts_jax() -> None:
    check(IMPORTS)


@pytest.mark.parametrize("asked", [(), ("3",)])
def test_a_fit_uses_all_cores_where_nobody_has_said(asked: tuple[str, ...]) -> None:
    check(FIT, *asked)


def test_a_number_of_devices_that_xla_was_told_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_FLAGS", "--xla_force_host_platform_device_count=5")
    monkeypatch.setattr(environment, "configure", lambda **_: pytest.fail("asked for others"))
    environment.use_all_cores()


def test_a_forked_process_is_refused() -> None:
    check(FORK)


def test_programs_are_forgotten_when_a_run_finds_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    times_cleared = []
    monkeypatch.setattr(jax, "clear_caches", lambda: times_cleared.append(num_programs))
    monkeypatch.setattr(programs, "count_programs", lambda: num_programs)
    monkeypatch.setattr(environment, "_max_programs", 10)
    monkeypatch.setattr(programs, "_num_forgotten", 0)
    for num_programs in (0, 10, 11, 21, 22, 30):  # noqa: B007
        programs.forget_programs()
    assert times_cleared == [11, 22]
    monkeypatch.setattr(environment, "_max_programs", None)
    programs.forget_programs()
    assert times_cleared == [11, 22]


def test_a_clock_counts_programs() -> None:
    with clock.CompileClock():
        before = clock.count_programs()
        jax.jit(lambda x: x + before)(1.0)
        assert clock.count_programs() > before


def test_a_bound_of_no_programs_is_refused() -> None:
    with pytest.raises(InputError, match="max_programs must be >= 1"):
        environment.configure(max_programs=0)


def check(script: str, *words: str) -> None:
    """Run it in a process of its own, where JAX has not started."""
    found = subprocess.run(
        [sys.executable, "-c", script, *words], capture_output=True, text=True, timeout=300
    )
    assert found.returncode == 0, found.stderr


def test_the_commit_is_that_of_the_checkout(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"]
    module = tmp_path / "environment.py"
    monkeypatch.setattr(environment, "__file__", str(module))
    module.write_text("1")
    subprocess.run([*git, "init"], check=True, capture_output=True)
    assert environment.source_commit() == "unknown"  # not tracked: installed into a repository
    rows = tmp_path / "results" / "rows.jsonl"
    rows.parent.mkdir()
    rows.write_text("1")
    for command in (["add", "environment.py", "results"], ["commit", "-m", "first"]):
        subprocess.run([*git, *command], check=True, capture_output=True)
    found = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    clean = environment.source_commit()
    assert len(clean) >= 7
    assert found.stdout.startswith(clean)
    rows.write_text("2")
    assert environment.source_commit() == clean
    module.write_text("2")
    assert environment.source_commit() == f"{clean}-dirty"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert environment.source_commit() == "unknown"


def test_the_machine_is_told_alike_each_time() -> None:
    told = environment.machine()
    assert told == environment.machine()
    assert platform.machine() in told
    assert told.endswith(("core", "cores"))
    assert ";" not in told  # which stands between several machines
