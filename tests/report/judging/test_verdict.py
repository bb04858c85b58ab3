"""The rule of the verdict, and the evidence that it weighs."""

import numpy as np
import pytest
from scipy import stats
from tools.report_samples import classification_target, regression_target, reliability

from credence.report import Level, verdict
from credence.report.charts.regression import LEVELS
from credence.report.judging.evidence import (
    ALPHA,
    Evidence,
    binomial_band,
    central_coverage,
    collect_evidence,
    expected_calibration_error,
    pit_gap,
)
from credence.report.judging.laws import binomial_interval, could_hold_only
from credence.report.judging.levels import BETA, ErrorRates
from credence.report.judging.quarters import Quarter
from credence.report.judging.verdict import MIN_TEST

TRUST, CARE, CANNOT_TELL, DO_NOT_TRUST = Level
SOUND = tuple(Quarter(by, i, 50, 48, 25) for by in ("prediction", "spread") for i in range(4))


def regression_evidence(covered: int = 190, n: int = 200, **changes: object) -> Evidence:
    return Evidence(
        **{
            "name": "y",
            "num_rows": n,
            "num_not_finite": 0,
            "skill": 0.5,
            "gap": 0.04,
            "gap_limit": 0.12,
            "gross_limit": 0.18,
            "num_covered": covered,
            "quarters": SOUND,
            **changes,
        }
    )


def label_evidence(**changes: object) -> Evidence:
    return regression_evidence(
        **{"num_covered": None, "gap": 0.01, "gap_limit": 0.02, "quarters": (), **changes}
    )


RULE = [
    # converged, evidence, verdict
    (True, regression_evidence(), TRUST),
    (False, regression_evidence(), DO_NOT_TRUST),
    (None, regression_evidence(), CARE),
    (True, regression_evidence(covered=181), TRUST),  # 90.5 %: the lower end of the band
    (True, regression_evidence(covered=180), CARE),  # 90 %: below the band, not disastrous
    (True, regression_evidence(covered=179), DO_NOT_TRUST),
    (True, regression_evidence(covered=200), CARE),  # too wide is never disastrous
    (True, regression_evidence(covered=94_100, n=100_000), TRUST),  # beyond chance, harmless
    (True, regression_evidence(covered=93_900, n=100_000), CARE),
    (True, regression_evidence(covered=47, n=49), CANNOT_TELL),
    (True, regression_evidence(covered=48, n=50), TRUST),
    (True, regression_evidence(covered=0, n=0, gap=0.0, gap_limit=1.0, skill=np.nan), CANNOT_TELL),
    (True, regression_evidence(num_not_finite=1), DO_NOT_TRUST),
    (True, regression_evidence(gap=0.119), TRUST),  # within chance
    (True, regression_evidence(gap=0.13), CARE),
    (True, regression_evidence(gap=0.16), DO_NOT_TRUST),
    (True, regression_evidence(gap=0.179, gap_limit=0.22), CANNOT_TELL),  # bad, or chance
    (True, regression_evidence(gap=0.13, gap_limit=0.22, gross_limit=0.12), CANNOT_TELL),
    (True, regression_evidence(gap=0.16, gross_limit=0.15), DO_NOT_TRUST),
    (True, regression_evidence(covered=46, n=50), CANNOT_TELL),  # 85 % would often look so
    (True, regression_evidence(covered=49, n=55), CANNOT_TELL),  # 89 %: bad, or chance
    (True, regression_evidence(gap=0.04, gap_limit=0.01), TRUST),  # beyond chance, harmless
    (True, regression_evidence(skill=0.0), CARE),
    (True, regression_evidence(skill=np.nan), CARE),
    (True, label_evidence(), TRUST),
    (True, label_evidence(gap=0.05), CARE),
    (True, label_evidence(gap=0.11), DO_NOT_TRUST),
    (True, label_evidence(gap=0.05, gap_limit=0.06), TRUST),
    (True, label_evidence(gap=0.11, gap_limit=0.12), CANNOT_TELL),
    (True, label_evidence(gap=0.05, gap_limit=0.06, gross_limit=0.04), CANNOT_TELL),
    (True, label_evidence(skill=-0.1), CARE),
    (False, label_evidence(), DO_NOT_TRUST),
]


@pytest.mark.parametrize(("converged", "evidence", "expected"), RULE)
def test_rule(converged, evidence, expected):
    judged = verdict(converged, "Because.", [evidence])
    assert judged.level == expected
    assert judged.level == max(check.level for check in judged.checks)


def test_a_run_that_did_not_converge_says_so_first():
    judged = verdict(False, "R-hat is 1.4.", [regression_evidence()])
    assert "did not converge" in judged.headline
    assert judged.checks[0].subject == "Convergence"
    assert "R-hat is 1.4." in judged.checks[0].sentence


def test_the_worst_target_decides_and_is_named():
    evidence = [regression_evidence(name=n, covered=c) for n, c in [("a", 190), ("b", 120)]]
    judged = verdict(True, "Fine.", evidence)
    coverage = next(check for check in judged.checks if check.subject == "95 % intervals")
    assert judged.level == coverage.level == DO_NOT_TRUST
    assert coverage.sentence.startswith("b: ")


def test_more_targets_widen_the_band():
    """One of six calibrated targets strays further than a single one: it is not to blame."""
    assert verdict(True, "", [regression_evidence(covered=180)]).level == CARE
    rates = ErrorRates.of(num_targets=6, num_looks=1)
    strayed = regression_evidence(covered=180, rates=rates)
    sound = [regression_evidence(name=str(i), rates=rates) for i in range(5)]
    assert verdict(True, "", [strayed, *sound]).level == TRUST


def test_a_gross_fault_passes_two_looks_as_seldom_as_one():
    """Test rows first, then both kinds of row together, exactly; each look at BETA is caught."""
    tested, others, gross = 40, 110, 0.85
    rows = [stats.binom.pmf(np.arange(n + 1), n, gross) for n in (tested, others)]

    def passes(beta: float) -> float:
        could = could_hold_only
        return sum(
            float(rows[0][i] * rows[1][j])
            for i in range(tested + 1)
            for j in range(others + 1)
            if not could(i, tested, gross, beta) or not could(i + j, tested + others, gross, beta)
        )

    assert passes(ErrorRates.of(num_targets=3, num_looks=2).beta) <= BETA < passes(BETA)


def test_bands_hold_all_their_places():
    """Calibrated models stay inside at every level, 99 of 100; a band at each is caught."""
    pit = np.random.default_rng(0).uniform(size=(2000, 500))
    found = np.array([central_coverage(each, LEVELS) for each in pit])

    def share_inside(lower: np.ndarray, upper: np.ndarray) -> float:
        return float(np.mean(((found >= lower) & (found <= upper)).all(axis=1)))

    assert share_inside(*binomial_band(500, LEVELS)) > 1 - ALPHA
    each = np.transpose([binomial_interval(500, level) for level in LEVELS])
    assert share_inside(*each) < 0.95


def test_min_test_finds_out_intervals_that_cover_80_percent():
    lower, _ = binomial_interval(MIN_TEST, 0.95)
    power = stats.binom.cdf(round(lower * MIN_TEST) - 1, MIN_TEST, 0.8)
    assert 0.75 < power < 0.85


def test_binomial_interval_holds_its_share():
    n, p = 110, 0.95
    lower, upper = (round(end * n) for end in binomial_interval(n, p))
    assert stats.binom.cdf(lower - 1, n, p) < ALPHA / 2 <= stats.binom.cdf(lower, n, p)
    assert stats.binom.sf(upper, n, p) <= ALPHA / 2 < stats.binom.sf(upper - 1, n, p)


def test_central_coverage_by_hand():
    pit = np.array([0.5, 0.3, 0.9])  # need levels 0, 0.4, 0.8
    found = central_coverage(pit, np.array([0.1, 0.4000001, 0.9]))
    np.testing.assert_allclose(found, [1 / 3, 2 / 3, 1])


def test_expected_calibration_error_by_hand():
    confidence, right = np.array([0.6, 0.6, 0.9, 0.9]), np.array([1, 0, 1, 1])
    ece, _ = expected_calibration_error(reliability(confidence, right, bins=2))
    assert ece == pytest.approx(0.5 * 0.1 + 0.5 * 0.1)


def blame_rate(evidence_of) -> float:
    """Share of 300 simulated models whose calibration exceeds its limit."""
    found = [evidence_of(seed) for seed in range(300)]
    return float(np.mean([gap > limit for gap, limit in found]))


def test_calibrated_models_are_blamed_at_the_stated_rate():
    """The rate is at most 1 %; with 300 models, 9 or more blamed has a probability of 0.4 %."""
    assert blame_rate(lambda s: pit_gap(regression_target(150, s).pit)) <= 8 / 300
    labels = blame_rate(
        lambda s: expected_calibration_error(classification_target(seed=s).reliability)
    )
    assert labels <= 8 / 300


@pytest.mark.parametrize("fault", [{"spread": 0.6}, {"spread": 1.8}, {"shift": 0.6}])
def test_planted_faults_are_found(fault):
    assert blame_rate(lambda s: pit_gap(regression_target(150, s, **fault).pit)) > 0.8


def test_planted_overconfidence_is_found():
    rate = blame_rate(
        lambda s: expected_calibration_error(classification_target(seed=s, sharpen=2.5).reliability)
    )
    assert rate > 0.8


def test_rows_that_are_not_finite_are_counted_not_hidden():
    target = regression_target()
    target.mean[3] = np.nan
    target.upper_95[5] = np.inf
    evidence = collect_evidence(target)
    assert evidence.num_not_finite == 2
    assert evidence.num_rows == len(target.y) - 2
    assert verdict(True, "", [evidence]).level == DO_NOT_TRUST
