"""Particles that a time budget affords."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tools.exact import linear_regression
from tools.particles import assert_same

from credence.density.posterior import Posterior
from credence.engine.driver import Driver
from credence.errors import StorageError
from credence.methods.smc import budget
from credence.methods.smc.budget import Allotment, FewParticlesWarning, scaled
from credence.methods.smc.method import SMC
from credence.methods.smc.multilevel.method import MLSMC
from credence.models import MLP, Normal, TraceClass

PROBLEM = linear_regression()
METHOD = SMC(num_particles=100, num_runs=2)
NESTED = Posterior(MLP(1, (8,)), TraceClass(alpha=3), Normal(0.5), (PROBLEM.x, PROBLEM.y))


def particles(ensemble: Any) -> int:
    return ensemble.num_draws


def affords(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """A clock by which so many particles take the rest of the budget."""
    monkeypatch.setattr(Driver, "seconds_left", property(lambda driver: 100.0))
    seconds = budget.PLANNED * 100 * budget.FEWEST / count
    clock = iter([(0.0, 0.0), (seconds, 0.0)])
    monkeypatch.setattr(budget, "_seconds", lambda driver: next(clock))


def test_particles_that_are_as_much_work() -> None:
    """Work of the small run: 32 * (1 + 5) = 192; of a coarse particle with its half of a fine one,
    1 + 5 / 2."""
    allotment = Allotment(np.array([1.0, 5.0]), np.array([1.0, 0.5]))
    assert scaled(7.0, (32, 32), 10_000, allotment) == (384, 192)
    assert scaled(7.0, (32, 32), 300, allotment) == (300, 150)
    assert scaled(0.1, (32, 32), 300, allotment) == (32, 32)


def test_a_budget_for_all_particles_changes_nothing() -> None:
    assert_same(METHOD.run(1, PROBLEM.posterior, max_seconds=1e6), METHOD.run(1, PROBLEM.posterior))


def test_a_smaller_budget_affords_fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    affords(monkeypatch, 80)
    found = METHOD.run(1, PROBLEM.posterior, max_seconds=1e6)
    assert particles(found) == 80


def test_particles_of_waste_free_chains_are_a_multiple(monkeypatch: pytest.MonkeyPatch) -> None:
    affords(monkeypatch, 83)
    method = SMC(num_particles=100, num_runs=2, chain_length=10)
    assert particles(method.run(1, PROBLEM.posterior, max_seconds=1e6)) % 10 == 0


def test_of_long_chains_several_move_in_the_small_run(monkeypatch: pytest.MonkeyPatch) -> None:
    affords(monkeypatch, 40)
    method = SMC(num_particles=1000, num_runs=2, chain_length=50)
    with pytest.warns(FewParticlesWarning, match="enough for 400 particles"):
        found = method.run(1, PROBLEM.posterior, max_seconds=1e6)
    assert particles(found) == 50 * budget.FEWEST_MOVING


def test_without_time_for_twice_as_many_the_small_run_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    affords(monkeypatch, 50)
    with pytest.warns(FewParticlesWarning, match="enough for 32 particles"):
        found = METHOD.run(1, PROBLEM.posterior, max_seconds=1e6)
    assert particles(found) == budget.FEWEST


def test_ctrl_c_in_the_second_run_leaves_the_answer_of_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    affords(monkeypatch, 80)
    tempered = SMC._tempered

    def interrupted(self: SMC, posterior: Any, driver: Driver, key: Any, counts: Any) -> Any:
        driver.interrupted = counts == (80,)
        return tempered(self, posterior, driver, key, counts)

    monkeypatch.setattr(SMC, "_tempered", interrupted)
    with pytest.warns(FewParticlesWarning, match="run was stopped, enough for 32 particles"):
        found = METHOD.run(1, PROBLEM.posterior, max_seconds=1e6)
    assert particles(found) == budget.FEWEST
    assert found.provenance.stopped == "interrupt"


def test_a_resumed_run_keeps_its_decision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    affords(monkeypatch, 80)
    first = METHOD.run(1, PROBLEM.posterior, folder=tmp_path, max_seconds=1e6)
    affords(monkeypatch, 99)
    again = METHOD.run(1, PROBLEM.posterior, folder=tmp_path, max_seconds=1e6)
    assert_same(again, first)


def test_a_run_goes_on_without_its_budget_and_with_a_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of particles is decided once."""
    affords(monkeypatch, 70)
    first = METHOD.run(0, PROBLEM.posterior, folder=tmp_path / "a", max_seconds=1000)
    assert_same(first, METHOD.run(0, PROBLEM.posterior, folder=tmp_path / "a"))
    whole = METHOD.run(0, PROBLEM.posterior, folder=tmp_path / "b")
    affords(monkeypatch, 70)
    again = METHOD.run(0, PROBLEM.posterior, folder=tmp_path / "b", max_seconds=1000)
    assert_same(whole, again)
    assert particles(again) == 100


def test_without_a_limit_a_rough_answer_is_not_the_last_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    affords(monkeypatch, 40)
    with pytest.warns(FewParticlesWarning):
        METHOD.run(0, PROBLEM.posterior, folder=tmp_path, max_seconds=1000)
    assert particles(METHOD.run(0, PROBLEM.posterior, folder=tmp_path)) == 100


@pytest.mark.parametrize("text", ["[", "{}", "[1.5]", "[100, 100]", "[9999]"])
def test_a_damaged_decision_is_named(tmp_path: Path, text: str) -> None:
    METHOD.run(1, PROBLEM.posterior, folder=tmp_path, max_seconds=1e6)
    (path,) = tmp_path.glob("particles.json")
    path.write_text(text, encoding="utf-8")
    with pytest.raises(StorageError, match="particles"):
        METHOD.run(1, PROBLEM.posterior, folder=tmp_path, max_seconds=1e6)


def test_levels_share_a_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """The pilot of a smooth prior gives the fine level fewer particles than the coarse one."""
    affords(monkeypatch, 150)
    method = MLSMC(widths=((4,), (8,)), num_particles=(400, 400), num_runs=4)
    found = method.run(1, NESTED, max_seconds=1e6)
    level, increment = (np.asarray(found.scalars[name])[0] for name in ("level", "increment"))
    coarse, fine = (int(np.sum((increment == i) & (level == i))) for i in (0, 1))
    assert 150 < coarse <= 400
    assert budget.FEWEST <= fine < coarse
    np.testing.assert_allclose(found.weights.sum(), 1.0, rtol=1e-5)
