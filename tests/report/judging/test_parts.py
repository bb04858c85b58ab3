"""Checks of parts: intervals by quarter, every class, simple models; and the laws behind them."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from tools.report_faults import credit, with_truth
from tools.report_samples import classification_target, regression_target

from credence.ensembles.diagnostics.calibration import ece
from credence.report import Level, LogScores, RegressionTarget, Verdict, verdict
from credence.report.data import is_inside
from credence.report.judging.advice import (
    LONGER,
    MORE_ROWS,
    OF_INTERVALS,
    OF_PROBABILITIES,
    UNCHECKED,
    advice,
)
from credence.report.judging.classes import check_classes, count_classes
from credence.report.judging.evidence import collect_evidence, smallest_gross_ece
from credence.report.judging.laws import (
    could_hold_only,
    count_interval,
    count_law,
    smallest_gross_gap,
)
from credence.report.judging.levels import ALPHA, BETA, Check, Subject, answer
from credence.report.judging.quarters import Quarter, check_quarters, count_quarters
from credence.report.judging.simple_models import check_simple_models


def quarters(n: int, *num_95: int) -> list[Quarter]:
    """Quarters by prediction of n rows each, those by spread sound."""
    by_prediction = [Quarter("prediction", i, n, k, n // 2) for i, k in enumerate(num_95)]
    sound = [Quarter("spread", i, n, round(0.95 * n), n // 2) for i in range(4)]
    return [*by_prediction, *sound]


def test_intervals_that_hold_100_100_83_and_80_percent_are_not_trusted() -> None:
    """The run of the tracker: enough rows prove the fault, and the sentence says where it is."""
    judged = check_quarters(quarters(50, 50, 50, 42, 40), 200)
    assert judged.level == Level.DO_NOT_TRUST
    assert "quarter of the rows with the highest predictions" in judged.sentence
    assert "80.0\u00a0% (40 of 50)" in judged.sentence
    assert "too narrow" in judged.sentence


def test_the_same_shares_of_few_rows_cannot_be_told() -> None:
    judged = check_quarters(quarters(20, 20, 20, 17, 16), 80)
    assert judged.level == Level.CANNOT_TELL
    assert "not enough rows to tell" in judged.sentence


def test_a_quarter_that_is_too_wide_is_no_fault_but_50_percent_intervals_may_be() -> None:
    assert check_quarters(quarters(200, 200, 200, 200, 200), 800).level == Level.TRUST
    wide = [each._replace(num_50=150) for each in quarters(200, 190, 190, 190, 190)]
    judged = check_quarters(wide, 800)
    assert judged.level == Level.CARE
    assert "too wide" in judged.sentence


def test_quarters_are_counted_by_hand() -> None:
    target = regression_target(8)
    order = np.argsort(target.mean)
    y = target.mean.copy()
    y[order[-1]] = target.upper_95[order[-1]] + 1
    found = count_quarters(replace(target, y=y))
    assert [(each.num_95, each.num_50) for each in found[:4]] == [(2, 2)] * 3 + [(1, 1)]
    assert sum(each.num_95 for each in found[4:]) == 7


def test_quarters_are_of_the_rows_and_no_column_of_that_name() -> None:
    sound, worse = (check_quarters(quarters(100, *[n] * 4), 400) for n in (95, 60))
    for check in (sound, worse, check_quarters((), 3)):
        assert "quarter" not in check.subject
        text = check.sentence
        assert text.count("quarter") == text.count("quarter of the rows")


def test_predictions_all_alike_have_no_parts() -> None:
    target = replace(regression_target(80), mean=np.zeros(80), std=np.ones(80))
    assert count_quarters(target) == ()
    assert check_quarters((), 80).level == Level.TRUST
    assert check_quarters((), 3).level == Level.CANNOT_TELL


@pytest.mark.parametrize("stated", [0.7, 0.95])
def test_a_credit_model_that_calls_bad_customers_good_is_not_trusted(stated: float) -> None:
    target = credit(stated=stated)
    judged = verdict(True, "Fine.", [collect_evidence(target)])
    check = next(each for each in judged.checks if each.subject == "Every class")
    assert judged.level > Level.TRUST
    assert "75 rows that are “bad”, 58 are missed" in check.sentence
    assert "23\u00a0% of a class that is 30\u00a0% of the rows, fewer than drawing lots" in (
        check.sentence
    )
    assert check.level == (Level.DO_NOT_TRUST if stated == 0.95 else Level.CARE)


def test_counts_of_classes_by_hand() -> None:
    bad, good = count_classes(credit(stated=0.75), ALPHA)
    assert (bad.n, bad.called.n, bad.called.found, bad.missed.n, bad.missed.found) == (
        75, 25, 17, 225, 58,
    )  # fmt: skip
    assert bad.missed.promised == pytest.approx(225 * 0.25)
    assert (good.called.found, good.missed.found) == (167, 8)
    assert bad.rival == "good"


def test_a_class_that_is_never_called_or_never_true_has_a_sentence() -> None:
    target = classification_target(n=120)
    never = replace(target, predicted=np.where(target.predicted == 2, 1, target.predicted))
    assert check_classes(count_classes(never, ALPHA)).sentence
    absent = with_truth(target, np.where(target.y == 2, 1, target.y))
    assert check_classes(count_classes(absent, ALPHA)).level == Level.DO_NOT_TRUST


@pytest.mark.parametrize("n", [0, 1, 2, 3, 5])
def test_tiny_test_sets_cannot_be_told(n: int) -> None:
    for target in (regression_target(n), classification_target(n=n) if n else credit(0, 0, 0)):
        if n or target.name == "progression":
            judged = verdict(True, "Fine.", [collect_evidence(target)])
            assert judged.level == Level.CANNOT_TELL
            assert all(check.sentence for check in judged.checks)


def scores(network: float, marginal: float, linear: float, noise: float = 0.1, n: int = 100):
    rng = np.random.default_rng(0)
    each = (mean + noise * rng.normal(size=n) for mean in (network, marginal, linear))
    return LogScores(*each)


@pytest.mark.parametrize(
    ("found", "expected", "words"),
    [
        (scores(-1.0, -2.0, -1.5), Level.TRUST, "a linear model's is 1.5"),
        (scores(-1.5, -2.0, -1.0), Level.CARE, "worse than the linear model by"),
        (scores(-1.5, -2.0, -1.48, noise=1), Level.TRUST, "a straight line predicts as well"),
        (scores(-2.5, -2.0, -1.0), Level.DO_NOT_TRUST, "worse than guessing"),
        (scores(-2.3, -2.0, -1.0, noise=3, n=50), Level.CANNOT_TELL, "not enough rows"),
        (scores(-np.inf, -2.0, -1.0), Level.DO_NOT_TRUST, "infinite"),
        (scores(-2.5, -2.0, -1.0, n=1), Level.CANNOT_TELL, "not enough rows"),
        (scores(0, 0, 0, n=0), Level.CANNOT_TELL, "No test rows"),
    ],
)
def test_simple_models(found: LogScores, expected: Level, words: str) -> None:
    judged = check_simple_models(found)
    assert (judged.level, words in judged.sentence) == (expected, True), judged.sentence


def test_a_clear_gain_over_a_straight_line_is_not_doubted() -> None:
    assert "straight line" not in check_simple_models(scores(-1.0, -2.0, -1.5)).sentence


def test_answers_only_get_worse() -> None:
    """A larger estimate, or one that sound models have not, never lowers the answer."""
    for flags in itertools.product((False, True), repeat=3):
        base = dict(zip(("is_disqualifying", "could_be_gross"), flags[:2], strict=True))
        worse = answer(is_chance=False, **base)
        assert worse >= answer(is_chance=True, **base)
        assert answer(is_chance=flags[2], is_disqualifying=True, could_be_gross=flags[1]) >= (
            answer(is_chance=flags[2], is_disqualifying=False, could_be_gross=flags[1])
        )


def test_the_law_of_a_count() -> None:
    np.testing.assert_allclose(count_law(np.full(7, 0.3)), stats.binom.pmf(range(8), 7, 0.3))
    np.testing.assert_allclose(count_law(np.array([0.5, 1.0, 0.2])), [0, 0.4, 0.5, 0.1], atol=1e-12)
    assert count_law(np.empty(0)).tolist() == [1.0]
    p = np.random.default_rng(0).random(3000)
    law = count_law(p)
    assert law.sum() == pytest.approx(1)
    assert law @ np.arange(3001) == pytest.approx(p.sum())
    lower, upper = count_interval(p, ALPHA)
    assert law[:lower].sum() < ALPHA / 2 <= law[: lower + 1].sum() + 1e-12
    assert law[upper + 1 :].sum() <= ALPHA / 2 + 1e-12


@pytest.mark.parametrize("n", [10, 60, 300])
def test_grossly_faulty_gaps_seldom_look_smaller(n: int) -> None:
    """Shares of uniforms of which a fifth has moved from above the middle to below it."""
    limit, rng = smallest_gross_gap(n, 0.2), np.random.default_rng(0)
    u = rng.random((600, n))
    moved = (u > 0.5) & (rng.random((600, n)) < 0.4)
    u = np.where(moved, u - 0.5, u)
    gaps = [_distance(row) for row in u]
    assert np.mean(np.array(gaps) < limit) < BETA + 3 * np.sqrt(BETA / 600)


def _distance(u: np.ndarray) -> float:
    """Kolmogorov-Smirnov distance from uniform."""
    u, steps = np.sort(u), np.arange(len(u) + 1) / len(u)
    return float(max(np.max(steps[1:] - u), np.max(u - steps[:-1])))


def test_gross_limits_by_hand() -> None:
    assert could_hold_only(50, 50, 0.95)
    assert not could_hold_only(50, 50, 0.90)
    assert could_hold_only(5, 5, 0.85)
    assert smallest_gross_gap(0, 0.2) < 0
    table = classification_target(n=400).reliability
    assert 0.08 < smallest_gross_ece(table, 0.15) < 0.15
    one = replace(table, confidence=np.ones(10))  # none can be more modest than they are
    assert smallest_gross_ece(one, 0.15) > 0.1


def judged_beside(tested: RegressionTarget, more: RegressionTarget) -> Verdict:
    """Judge test rows and rows that networks left out."""
    both = [collect_evidence(tested, left_out=more)]
    return verdict(True, "Fine.", [collect_evidence(tested)], 0, both)


def test_rows_that_networks_left_out_count_where_test_rows_are_too_few() -> None:
    tested, more = regression_target(60, seed=1), regression_target(340, seed=2)
    alone = verdict(True, "Fine.", [collect_evidence(tested)])
    assert alone.level == Level.CANNOT_TELL
    both = collect_evidence(tested, left_out=more)
    assert (both.num_rows, both.num_left_out) == (400, 340)
    assert both.num_covered == is_inside(tested).sum() + is_inside(more).sum()
    judged = judged_beside(tested, more)
    assert judged.level == Level.TRUST
    sentences = {check.subject: check.sentence for check in judged.checks}
    assert sentences["Test rows"].startswith("Checked on 400 rows: 60 held back for testing, and")
    faulty = judged_beside(tested, regression_target(340, seed=2, spread=0.5))
    assert faulty.level == Level.DO_NOT_TRUST
    few = judged_beside(regression_target(10), regression_target(20, seed=3))
    assert "Only 30 rows: 10 held back" in few.checks[1].sentence


def test_left_out_rows_do_not_acquit_what_test_rows_convict() -> None:
    """Chance does not explain 85 of 100 covered test rows, but 465 of 500 with the others."""
    tested, more = regression_target(100, seed=4), regression_target(400, seed=5)
    for target, share in ((tested, 0.85), (more, 0.95)):
        is_in = np.arange(len(target.y)) < share * len(target.y)
        target.lower_95[:] = np.where(is_in, target.y - 1, target.y + 1)
        target.upper_95[:] = target.y + 2
    pool = verdict(True, "Fine.", [collect_evidence(tested, left_out=more)]).checks[2]
    assert pool.level < Level.DO_NOT_TRUST, "planted: one pool of both"
    assert judged_beside(tested, more).checks[2].level == Level.DO_NOT_TRUST
    assert judged_beside(tested, more).level == Level.DO_NOT_TRUST


def test_rows_that_tell_two_stories_are_said() -> None:
    """Narrow intervals at test rows and sound ones at left-out rows, and the other way round."""
    sound, narrow = regression_target(3000, seed=5), regression_target(100, seed=4, spread=0.7)
    only_in_test = judged_beside(narrow, sound).checks[2]
    assert only_in_test.level > Level.TRUST
    assert only_in_test.sentence.endswith("left out there is no such fault.")
    tested, worse = regression_target(400, seed=8), regression_target(3000, seed=6, spread=0.6)
    only_left_out = judged_beside(tested, worse).checks[2]
    assert only_left_out.level == Level.TRUST
    assert only_left_out.sentence.endswith("networks left out there is a fault.")
    agreed = judged_beside(tested, sound)
    assert not any("left out there" in check.sentence for check in agreed.checks)


def test_every_fault_has_advice_and_what_is_passed_has_none() -> None:
    passed = [Check(Level.TRUST, subject, "Fine.") for subject in Subject]
    assert advice(passed) == ()
    for level in (Level.CARE, Level.DO_NOT_TRUST):
        for check in passed:
            assert len(advice([check._replace(level=level)])) == 1
    few = [check._replace(level=Level.CANNOT_TELL) for check in passed]
    assert advice(few) == (MORE_ROWS,)
    assert "--test-fraction" not in " ".join(advice(few, has_own_split=True))


def test_of_chains_that_disagree_nothing_else_is_advised() -> None:
    narrow = collect_evidence(regression_target(400, spread=0.6))
    assert verdict(True, "Fine.", [narrow]).advice == (OF_INTERVALS,)
    assert verdict(False, "The chains disagree.", [narrow]).advice == (LONGER,)
    assert verdict(None, "No chain.", [narrow]).advice == (UNCHECKED, OF_INTERVALS)


def test_advice_on_calibration_is_of_numbers_or_of_labels() -> None:
    off = Check(Level.CARE, Subject.CALIBRATION, "Off.")
    assert advice([off]) == (OF_PROBABILITIES,)
    assert advice([Check(Level.TRUST, Subject.INTERVALS, "Fine."), off]) == (OF_INTERVALS,)


def test_left_out_rows_of_labels_are_pooled_and_odd_ones_dropped() -> None:
    tested, more = classification_target(n=80, seed=1), classification_target(n=220, seed=2)
    found = collect_evidence(tested, left_out=more)
    truth = np.concatenate([tested.y, more.y])
    assert [each.n for each in found.classes] == np.bincount(truth).tolist()
    whole = ece(
        np.concatenate([tested.probabilities, more.probabilities]),
        np.concatenate([tested.y, more.y]),
    )
    assert found.gap == pytest.approx(whole)
    odd = regression_target(50, seed=3)
    odd.mean[4] = np.nan
    found = collect_evidence(regression_target(80), left_out=odd)
    assert (found.num_left_out, found.num_rows, found.num_not_finite) == (49, 129, 1)


def test_intervals_that_do_not_hold_are_shown_beside_conformal_ones() -> None:
    narrow = replace(regression_target(400, spread=0.6), conformal_share=0.947)
    told = verdict(True, "Fine.", [collect_evidence(narrow)]).checks[2].sentence
    assert told.endswith("Conformal intervals hold 94.7\u00a0% of the test rows.")
    sound = replace(regression_target(400), conformal_share=0.947)
    assert "Conformal" not in verdict(True, "Fine.", [collect_evidence(sound)]).checks[2].sentence
