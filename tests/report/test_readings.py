"""The sentences follow the data: planted faults turn them around."""

from dataclasses import replace

import numpy as np
import pytest
from tools.report_samples import classification_target, convergence, regression_target

from credence.html.wording import (
    count,
    cut_short,
    digits_to_tell,
    divergent,
    duration,
    number,
    percent,
    steps,
    with_unit,
)
from credence.report import readings
from credence.report.charts import convergence as charts
from credence.report.charts.classification import selective_accuracy
from credence.report.charts.regression import epistemic_share, error_by_std


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ({}, "No gap is larger than chance makes it"),
        ({"spread": 0.5}, "too narrow"),
        ({"spread": 2.0}, "too wide"),
    ],
)
def test_coverage(fault, expected):
    assert expected in readings.read_coverage(regression_target(400, **fault))


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ({}, "level within chance"),
        ({"spread": 0.5}, "at the edge of what was thought possible"),
        ({"spread": 2.0}, "nearer to the prediction than was claimed"),
        ({"shift": 0.7}, "is below the middle"),
        ({"shift": -0.7}, "is above the middle"),
    ],
)
def test_pit(fault, expected):
    assert expected in readings.read_pit(regression_target(400, **fault))


def test_predictions():
    target = regression_target(400)
    assert "within 32.2\u00a0points; together the predictions explain 58" in (
        readings.read_predictions(target)
    )
    useless = replace(target, mean=np.full(400, 900.0))
    assert "none of the variation" in readings.read_predictions(useless)


def test_intervals_counts_rows():
    target = regression_target(4)
    target = replace(target, y=target.mean, unit="")
    target.y[0] = target.upper_95[0] + 1
    assert "on 3 of 4 rows (75.0\u00a0%)" in readings.read_intervals(target)


def test_split():
    target = regression_target()
    assert "more rows would not remove" in readings.read_split(target)
    doubtful = replace(target, epistemic_std=5 * target.aleatoric_std)
    assert "not yet learnt: more rows would sharpen" in readings.read_split(doubtful)
    alone = replace(target, epistemic_std=np.zeros_like(target.epistemic_std))
    assert "cannot tell" in readings.read_split(alone)
    by_hand = replace(
        regression_target(2), aleatoric_std=np.array([3.0, 0.0]), epistemic_std=np.array([4.0, 0.0])
    )
    np.testing.assert_allclose(epistemic_share(by_hand), [16 / 25, 0])


def test_errors():
    assert "knows where it is weak" in readings.read_errors(regression_target(4000))
    flat = replace(regression_target(), std=np.ones(110))
    assert "equally sure of every row" in readings.read_errors(flat)
    target = regression_target(4000)
    blind = replace(target, std=np.random.default_rng(1).permutation(target.std))
    assert "does not reliably single out" in readings.read_errors(blind)


def test_error_by_std_by_hand():
    target = replace(
        regression_target(4),
        y=np.array([3.0, 4.0, 0.0, 0.0]),
        mean=np.zeros(4),
        std=np.array([2.0, 2.0, 1.0, 1.0]),
    )
    observed, claimed = error_by_std(target, groups=2)
    np.testing.assert_allclose(observed, [0, np.sqrt(12.5)])
    np.testing.assert_allclose(claimed, [1, 2])


def test_confusion():
    target = classification_target(("a", "b"))
    target = replace(target, predicted=target.y.copy())
    assert "no mistake" in readings.read_confusion(target)
    target.predicted[:3] = 1 - target.y[:3]
    target.y[:3], target.predicted[:3] = 0, 1
    assert "to say “b” where the truth is “a” (3 rows)" in readings.read_confusion(target)


def test_reliability():
    assert "means what it says" in readings.read_reliability(classification_target(n=1000))
    sure = classification_target(n=1000, sharpen=3.0)
    assert "too sure of itself" in readings.read_reliability(sure)
    modest = classification_target(n=1000, sharpen=0.4)
    assert "too modest" in readings.read_reliability(modest)


def test_selective():
    target = classification_target(n=1000)
    assert "raises the share" in readings.read_selective(target)
    inverted = replace(target, entropy_total=-target.entropy_total)
    assert "would not help" in readings.read_selective(inverted)
    kept, accuracy = selective_accuracy(target)
    assert kept[-1] == 1
    assert accuracy[-1] == pytest.approx(target.is_correct.mean())


def test_convergence():
    settled, apart = convergence(), convergence(converged=False)
    assert "same story" in readings.read_traces(settled)
    assert "different stories" in readings.read_traces(apart)
    assert "did not settle" in readings.read_rhat(apart)
    assert "All 110 predictions settled" in readings.read_rhat(settled)
    assert "too few" in readings.read_ess(apart)
    assert "enough draws" in readings.read_ess(settled)


def test_chains_that_stand_still_in_different_places_do_not_agree() -> None:
    settled = convergence()
    assert settled.traces is not None
    assert settled.rhat is not None
    stuck = np.broadcast_to(np.arange(4.0)[:, None, None], settled.traces.shape)
    rhat = np.append(settled.rhat[:-1], np.inf)
    still = replace(settled, traces=stuck, rhat=rhat)
    assert "stand still, in different places" in readings.read_traces(still)
    assert "1 of 110 predictions did not settle" in readings.read_rhat(still)
    assert "R-hat is infinite" in readings.read_rhat(still)
    page = str(charts.rhat_chart(still, "rhat", "reading"))
    assert page != str(charts.rhat_chart(settled, "rhat", "reading")), "the last bin holds it"
    charts.rhat_chart(replace(settled, rhat=np.full(110, np.inf)), "rhat", "reading")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1234567.0, "1\u202f234\u202f567"),
        (1962, "1962"),
        (-9999.4, "−9999"),
        (9999.6, "10\u202f000"),
        (10_000, "10\u202f000"),
        (0.012345, "0.0123"),
        (-3.0, "−3"),
        (152.34, "152"),
        (0.0, "0"),
        (1e-7, "1.00e−7"),
        (2.5e12, "2.50e12"),
        (float("nan"), "not finite"),
        (None, "–"),
        (np.float32(0.25), "0.25"),
        (np.int64(12), "12"),
        (True, "True"),
    ],
)
def test_number(value, text):
    assert number(value) == text


@pytest.mark.parametrize(
    ("offset", "width", "text"),
    [
        (0.0, 4.6, "4.6"),
        (1e3, 0.5, "1000.5"),
        (1e8, 3.9, "100\u202f000\u202f003.9"),
        (1e12, 4.0, "1.0000000000040e12"),
        (-1.0, 1e-3, "−0.999"),
        (1e3, 0.0, "1000"),
        (1e3, np.nan, "not finite"),
    ],
)
def test_numbers_tell_their_width(offset, width, text):
    assert number(offset + width, digits_to_tell(width, abs(offset) + width)) == text


def test_percent_never_rounds_onto_certainty():
    assert percent(0.9999) == ">99\u00a0%"
    assert percent(0.99999, 1) == "99.9\u00a0%"
    assert percent(0.0001) == "<1\u00a0%"
    assert percent(1.0) == "100\u00a0%"
    assert percent(0.0, 1) == "0.0\u00a0%"


def test_units_and_counts():
    assert with_unit(3.14159, "€") == "3.14\u00a0€"
    assert with_unit(2, "") == "2"
    assert (count(1, "row"), count(0, "row")) == ("1 row", "0 rows")
    assert [duration(s) for s in (0.5, 90, 600, 7200)] == [
        "0.5\u00a0s",
        "90\u00a0s",
        "10\u00a0min",
        "2.0\u00a0h",
    ]


def test_steps_of_a_run_have_names_that_people_say():
    seconds = {"start": 2.0, "warmup": 3.0, "polish": 0.01, "total": 6.0}
    assert steps(seconds, shortest=0.05) == (6.0, {"starting": 2.0, "warm-up": 3.0})
    assert steps({"sample": 3.0, "judge": 1.0}) == (4.0, {"sampling": 3.0, "judging": 1.0})


def test_a_run_that_drew_everything_is_not_said_to_lack_draws():
    assert cut_short("finished", 100, 100) == ""
    assert (
        cut_short("time", 60, 100)
        == "Only 60 draws per chain: the time budget was enough for no more. Warm-up or training "
        "may be cut short, too."
    )
    assert divergent(0, 1200) == divergent(None, 1200) == ""
    assert divergent(44, 1200).startswith("On the way to 44 of 1200 draws (3.7")
    assert cut_short("interrupt", 60, None) == "The run was cut short: it was interrupted."
    assert cut_short("time", 100, 100).startswith("All 100 draws per chain were made, but")
