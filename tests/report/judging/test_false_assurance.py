"""How often a faulty model is called trust, and a sound one do not trust, at several sizes."""

import importlib
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tools.report_faults import bad_quarter, wrong_class
from tools.report_samples import classification_target, grouped_target, regression_target

from credence.report import Check, Level, LogScores, verdict
from credence.report.judging import evidence, quarters
from credence.report.judging.evidence import collect_evidence
from credence.report.judging.levels import Subject

FAULTS: dict[str, Callable[[int, int], Any]] = {
    "overconfident by 30 %": lambda n, seed: regression_target(n, seed, spread=0.7),
    "highest predictions hold 80 %": bad_quarter,
    "surest predictions hold 80 %": lambda n, seed: bad_quarter(n, seed, "std", 0),
    "leans by half a spread": lambda n, seed: regression_target(n, seed, shift=0.55),
    "wrong class": wrong_class,
    "overconfident classes": lambda n, seed: classification_target(n=n, seed=seed, sharpen=2.5),
}
SOUND: dict[str, Callable[[int, int], Any]] = {
    "numbers": regression_target,
    "two classes": lambda n, seed: classification_target(("a", "b"), n=n, seed=seed),
    "three classes": lambda n, seed: classification_target(n=n, seed=seed),
}
RULE: Any = importlib.import_module("credence.report.judging.verdict")  # not the function
SIZES = (5, 60, 120, 300, 1000)


NUM_GROUPS = 80


def grouped(_: int, seed: int) -> Any:
    return grouped_target(NUM_GROUPS, 8, seed)


def answers(make: Callable[[int, int], Any], n: int, times: int) -> Counter[Level]:
    """Verdicts on converged runs over simulated held-out sets."""
    found = (collect_evidence(make(n, seed)) for seed in range(times))
    return Counter(verdict(True, "Fine.", [each]).level for each in found)


@pytest.mark.slow
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("fault", FAULTS)
def test_faulty_models_are_trusted_in_less_than_5_percent(fault: str, n: int) -> None:
    assert answers(FAULTS[fault], n, 200)[Level.TRUST] < 10


@pytest.mark.slow
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("kind", SOUND)
def test_sound_models_are_refused_in_less_than_5_percent(kind: str, n: int) -> None:
    assert answers(SOUND[kind], n, 200)[Level.DO_NOT_TRUST] < 10


@pytest.mark.slow
@pytest.mark.parametrize("kind", SOUND)
def test_sound_models_are_trusted_once_the_rows_suffice(kind: str) -> None:
    """Never with 5 rows, nearly always with 400: else "cannot tell" would be a way out."""
    assert answers(SOUND[kind], 5, 20)[Level.TRUST] == 0
    assert answers(SOUND[kind], 400, 100)[Level.TRUST] > 85


@pytest.mark.parametrize("fault", ["highest predictions hold 80 %", "wrong class"])
def test_faults_in_a_part_are_not_trusted(fault: str) -> None:
    """A short form of the simulation above: by chance, 5 of 40 have a probability of 5 %."""
    assert answers(FAULTS[fault], 120, 40)[Level.TRUST] < 5


def test_a_sound_model_of_rows_in_groups_is_not_blamed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of three checks may blame it in 1 of 100 cases: 5 of 60 or more have a probability of
    4 % at most."""
    blamed = {Level.CARE, Level.DO_NOT_TRUST}
    assert sum(answers(grouped, 0, 60)[level] for level in blamed) < 5
    monkeypatch.setattr(evidence, "independent", lambda target: target)  # planted
    assert sum(answers(grouped, 0, 60)[level] for level in blamed) > 20


def test_one_row_of_every_group_is_evidence() -> None:
    target = grouped_target(NUM_GROUPS, 8)
    scores = LogScores(*np.arange(3.0 * len(target.y)).reshape(3, -1))
    target = replace(target, scores=scores, y=np.where(target.groups == 7, np.nan, target.y))
    found = collect_evidence(target, replace(target, groups=target.groups + NUM_GROUPS))
    assert (found.num_rows, found.num_left_out) == (2 * (NUM_GROUPS - 1), NUM_GROUPS - 1)
    assert found.num_not_finite == 2 * 8
    assert found.scores is not None
    assert list(found.scores.network // 8) == list(range(NUM_GROUPS))
    assert np.ptp(found.scores.network % 8) > 0  # not the first of every group
    assert found.scores.linear[0] - found.scores.network[0] == 2 * len(target.y)
    said = [check.sentence for check in verdict(True, "Fine.", [collect_evidence(target)]).checks]
    assert any(sentence.startswith("8 predictions are not finite numbers") for sentence in said)


def test_the_simulation_finds_a_verdict_that_looks_at_no_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Planted: averages alone."""
    trusted = Check(Level.TRUST, Subject.QUARTERS, "")
    monkeypatch.setattr(RULE, "check_quarters", lambda *_: trusted)
    assert answers(bad_quarter, 120, 40)[Level.TRUST] >= 5


def test_the_simulation_finds_a_verdict_without_power(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: what chance could explain is trusted, as before there was a fourth answer."""
    for module in (RULE, quarters):
        monkeypatch.setattr(
            module,
            "answer",
            lambda is_chance, **_: Level.TRUST if is_chance else Level.DO_NOT_TRUST,
        )
    assert answers(bad_quarter, 60, 40)[Level.TRUST] >= 5
