"""Runs that climb a random number of levels, against the closed form of the finest level."""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tools.nested_features import X_NEW, exact, posterior

from credence.engine.phases import Phase
from credence.errors import InputError
from credence.methods.smc.multilevel import randomised
from credence.methods.smc.multilevel.method import MLSMC
from credence.methods.smc.multilevel.randomised import Unbiased, unbiased
from credence.methods.smc.mutation import Mutation

pytestmark = pytest.mark.rotates(3)

NUM_FEATURES = (2, 4, 8, 32)
LEVELS = [posterior(num_features) for num_features in NUM_FEATURES]
SURVIVAL = 0.5
METHOD = MLSMC(
    num_particles=100, num_runs=400, mutation=Mutation(kernel="pcn", num_steps=5, ess_target=0.1)
)
"""Particles that stay where they are a little are no bias of an unnormalised sum."""


@lru_cache
def found() -> Unbiased:
    return unbiased(1, METHOD, LEVELS, X_NEW, survival=SURVIVAL)


def test_runs_that_are_finished_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = replace(METHOD, num_runs=8)
    first = unbiased(1, few, LEVELS[:2], X_NEW, survival=SURVIVAL, folder=tmp_path)
    (place,) = tmp_path.iterdir()
    assert place.name == "up to level 1"
    monkeypatch.setattr(Phase, "advance", lambda *_: pytest.fail("run again"))
    again = unbiased(1, few, LEVELS[:2], X_NEW, survival=SURVIVAL, folder=tmp_path)
    np.testing.assert_array_equal(again.mean, first.mean)


def worst_z(result: Unbiased) -> float:
    """The worst z of the posterior mean at all points and of the evidence."""
    mean, log_evidence = exact(NUM_FEATURES[-1])
    ratio = np.exp(result.log_evidence - log_evidence)
    evidence = (1 - 1 / ratio) / result.log_evidence_error
    means = (result.mean[:, 0] - mean) / result.standard_error[:, 0]
    return float(max(abs(evidence), np.max(np.abs(means))))


@pytest.mark.usefixtures("float64")
def test_mean_and_evidence_of_the_finest_level() -> None:
    z, error = worst_z(found()), found().log_evidence_error
    print(f"z {z:.1f}, errors {found().standard_error.ravel()} and {error:.3f} nats")
    assert z < 4.5
    assert error < (exact(4)[1] - exact(32)[1]) / 6


@pytest.mark.usefixtures("float64")
def test_levels_are_reached_as_often_as_they_should_be() -> None:
    expected = 400 * np.array([0.5, 0.25, 0.25])
    reached = np.bincount(found().sums.reached, minlength=4)[1:]
    assert stats.chisquare(reached, expected).pvalue > 1e-4
    flops = [found().sums.flops[found().sums.reached == level][0] for level in (1, 2, 3)]
    assert np.all(np.diff(flops) > 0)


def count_rare_levels_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Increments count as often as they are found."""
    sums: Any = randomised._sums
    wrong: Any = lambda *args: sums(*args[:-1], 1.0)  # noqa: E731
    monkeypatch.setattr(randomised, "_sums", wrong)


def weigh_by_the_last_evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run has one evidence, that of the level where it ends."""
    run = MLSMC.run

    def wrong(*args: Any, **named: Any) -> Any:
        found = run(*args, **named)
        shape = found.scalars["level_log_evidence"].shape
        last = np.broadcast_to(found.scalars["log_evidence"], shape)
        return replace(found, scalars={**found.scalars, "level_log_evidence": last})

    monkeypatch.setattr(MLSMC, "run", wrong)


@pytest.mark.parametrize("plant", [count_rare_levels_once, weigh_by_the_last_evidence])
@pytest.mark.usefixtures("float64")
def test_planted_wrong_sums_are_caught(
    plant: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    z = worst_z(unbiased(1, METHOD, LEVELS, X_NEW, survival=SURVIVAL))
    print(f"{plant.__name__}: z {z:.1f}")
    assert z > 8


@pytest.mark.parametrize("num_tries", [1, 2])
def test_levels_that_need_tempering_are_refused(num_tries: int) -> None:
    mutation = Mutation(ess_target=0.99)
    few = {"num_runs": 4, "num_particles": 40, "num_tries": num_tries, "num_levels": 3}
    method = replace(METHOD, **few, mutation=mutation, direct_ess=0.99)
    with pytest.raises(InputError, match="too far from the one below"):
        unbiased(1, method, LEVELS[:2], X_NEW, survival=0.9)


@pytest.mark.usefixtures("float64")
def test_several_tries_for_a_particle_are_no_tempering() -> None:
    several = unbiased(1, replace(METHOD, num_tries=3), LEVELS, X_NEW, survival=SURVIVAL)
    print(f"z {worst_z(several):.1f}")
    assert worst_z(several) < 4.5


@pytest.mark.parametrize(
    ("levels", "settings", "survival"),
    [
        (LEVELS[:1], {}, 0.5),
        (LEVELS, {"num_runs": 1}, 0.5),
        (LEVELS, {"coupling": "independent"}, 0.5),
        (LEVELS, {}, 1.5),
    ],
)
def test_bad_input(levels: Any, settings: dict[str, Any], survival: float) -> None:
    with pytest.raises(InputError):
        unbiased(0, replace(METHOD, **settings), levels, X_NEW, survival=survival)
