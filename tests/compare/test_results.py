"""Speed-ups are given between converged chains only; draws are called draws."""

from dataclasses import replace

import numpy as np
import pytest
from tools import experiment_samples as samples

from credence.compare.conclusions import conclusions, overall
from credence.compare.results import best, error_of_groups, summarise
from credence.compare.seeds import mean_and_error, merged, of_seeds
from credence.compare.specs import Outcome
from credence.report.judging.verdict import Level


def table(*outcomes, baseline: str | None = None) -> dict:
    labels = [outcome.cell.label for outcome in outcomes]
    experiment = samples.experiment(*dict.fromkeys(labels), baseline=baseline)
    return summarise(experiment, outcomes, size="smoke", seed=0, n_jobs=1)


def rows(summary: dict) -> dict:
    return {row["label"]: row for row in summary["problems"][0]["rows"]}


def test_speed_up_is_the_ratio_of_ess_per_second_of_all_phases() -> None:
    summary = table(
        samples.done("base", ess=100, seconds=10), samples.done("fast", ess=400, seconds=20)
    )
    found = rows(summary)
    assert found["base"]["speed_up"] == pytest.approx(1.0)
    assert found["fast"]["speed_up"] == pytest.approx(2.0)
    assert found["fast"]["speed_up_text"] == "2x"
    assert found["fast"]["ess_per_second"] == pytest.approx(20.0)
    assert summary["converged"] is True


def test_no_speed_up_without_convergence() -> None:
    summary = table(
        samples.done("base"), samples.done("stuck", converged=False, ess=1e6),
        samples.done("net", converged=None), samples.failed("gone"),
    )  # fmt: skip
    found = rows(summary)
    assert found["stuck"]["speed_up"] is None
    assert found["stuck"]["speed_up_text"] == "n/a: not converged"
    assert found["net"]["speed_up_text"] == "n/a: not a chain"
    assert "speed_up" not in found["gone"]
    assert summary["converged"] is False
    assert summary["not_converged"] == ["line: stuck"]
    assert summary["failed"] == ["line: gone"]


@pytest.mark.parametrize(
    ("baseline", "text"),
    [
        (samples.done("base", converged=False), "n/a: baseline not converged"),
        (samples.failed("base"), "n/a: no baseline"),
    ],
)
def test_no_speed_up_over_a_bad_baseline(baseline, text: str) -> None:
    found = rows(table(baseline, samples.done("good")))
    assert found["good"]["speed_up"] is None
    assert found["good"]["speed_up_text"] == text


def test_published_numbers_stand_beside_ours() -> None:
    problem = table(samples.done("a"), samples.done("b"))["problems"][0]
    assert problem["rows"][0]["published"]["mse"] == 1.5
    assert problem["rows"][1]["published"] == {}
    assert set(problem["published_only"]) == {"Emulator"}


def seeded(label: str, seed: int, **about):
    """A finished cell of a seed."""
    outcome = samples.done(label, **about)
    return Outcome(replace(outcome.cell, seed=seed), outcome.result)


def test_seeds_become_means_with_standard_errors() -> None:
    outcomes = [seeded("a", s, seconds=10 + s, converged=s != 1) for s in range(3)]
    for outcome, mse in zip(outcomes, (1.0, 2.0, 6.0), strict=True):
        outcome.result["scores"]["mse"] = mse
    outcomes[2].result["scores"]["crps"] = None
    (row,) = table(*outcomes)["problems"][0]["rows"]
    assert row["num_seeds"] == 3
    assert row["mse"] == pytest.approx(3.0)
    assert row["standard_errors"]["mse"] == pytest.approx((7 / 3) ** 0.5)  # variance 7, three
    assert row["scores_by_seed"]["mse"] == [1.0, 2.0, 6.0]
    assert row["crps"] is None
    assert row["standard_errors"]["crps"] is None
    assert row["total_seconds"] == pytest.approx(11.0)
    assert row["converged"] is False  # the worst seed


def test_test_rows_of_several_seeds_may_differ() -> None:
    """Each seed has a split of its own: rows stand side by side, and count as those of one seed."""
    rng = np.random.default_rng(1)
    errors = rng.random(samples.NUM_TEST), rng.random(samples.NUM_TEST - 9)
    outcomes = [seeded("a", seed, error=error) for seed, error in enumerate(errors)]
    assert merged(outcomes).result["rows"]["error"] == [*errors[0], *errors[1]]
    noise = rng.normal(size=samples.NUM_TEST)
    noise -= noise.mean()
    shift = 1.7 * noise.std(ddof=1) / samples.NUM_TEST**0.5  # the same rows again tell no more
    worse = [seeded("worse", seed, error=errors[0] + noise + shift) for seed in range(3)]
    good = [seeded("good", seed, error=errors[0]) for seed in range(3)]
    assert best([merged(good), merged(worse)], "error")["draws"] == ["worse"]


def test_seeds_that_scatter_more_than_rows_decide_nothing() -> None:
    """One row's error says that the second is worse; by the seeds it is better as often."""
    rng = np.random.default_rng(2)
    error = rng.random(samples.NUM_TEST)
    worse = [
        seeded("worse", seed, error=error + shift) for seed, shift in enumerate((-1, 0.2, 1.2))
    ]
    good = [seeded("good", seed, error=error) for seed in range(3)]
    assert best([merged(good), merged(worse)], "error") == {"label": "good", "draws": ["worse"]}
    steady = [seeded("worse", seed, error=error + 0.2) for seed in range(3)]
    assert best([merged(good), merged(steady)], "error") == {"label": "good", "draws": []}


def test_rows_of_a_group_count_as_one() -> None:
    """Groups of equal rows: the error is that of the groups' means; other seeds change nothing."""
    rng = np.random.default_rng(3)
    of_group = rng.normal(size=9)
    values, groups = np.repeat(of_group, 4), np.repeat(np.arange(9), 4)
    expected = of_group.std(ddof=1) / 3
    assert error_of_groups(values, groups) == pytest.approx(expected, rel=1e-12)
    twice = error_of_groups(np.tile(values, 2), np.tile(groups, 2))
    assert twice == pytest.approx(expected, rel=1e-12)
    assert error_of_groups(values, np.zeros(36)) == np.inf


def test_methods_are_told_apart_by_groups() -> None:
    """Ten groups that differ by a twentieth of what groups scatter by, each of many rows."""
    groups = np.arange(samples.NUM_TEST) % 10
    error = np.zeros(samples.NUM_TEST)
    away = 0.3 * np.sin(np.arange(10) * 2.4)[groups]
    away += 0.1 - away.mean()
    outcomes = [samples.done("good", error=error), samples.done("worse", error=error + away)]
    assert best(outcomes, "error")["draws"] == [], "planted: rows that stand alone"
    for outcome in outcomes:
        outcome.result["rows"]["group"] = groups.tolist()
    assert best(outcomes, "error")["draws"] == ["worse"]


def test_a_seed_that_failed_is_a_failure() -> None:
    failed = samples.failed("a")
    failed = Outcome(replace(failed.cell, seed=1), failed.result)
    summary = table(seeded("a", 0), failed)
    assert summary["failed"] == ["line: a"]


def with_seeds(label: str, *runs: dict | None) -> list:
    """A cell per seed, None where it failed."""
    found = [
        samples.failed(label) if run is None else seeded(label, seed, **run)
        for seed, run in enumerate(runs)
    ]
    return [Outcome(replace(each.cell, seed=seed), each.result) for seed, each in enumerate(found)]


def test_speed_up_over_seeds_is_the_geometric_mean_of_their_own() -> None:
    """Ratios 2 and 8: 4, where the worst ESS by the mean of the seconds would say 2.5."""
    base = with_seeds("base", {"ess": 100, "seconds": 10}, {"ess": 200, "seconds": 10})
    fast = with_seeds("fast", {"ess": 200, "seconds": 10}, {"ess": 4800, "seconds": 30})
    found = rows(table(*base, *fast))
    assert found["fast"]["speed_up"] == pytest.approx(4.0)
    error = 4 * np.log(2)  # logarithms ln 2 and 3 ln 2 have a standard error of ln 2
    assert found["fast"]["speed_up_error"] == pytest.approx(error)
    assert found["fast"]["speed_up_text"] == "4x ± 2.8"
    assert found["fast"]["ess_per_second"] == pytest.approx((20 * 160) ** 0.5)


def test_a_seed_that_is_of_no_use_leaves_the_others() -> None:
    """Both good; then the method not converged, then the baseline not, then the method failed."""
    bad = {"converged": False}
    base = with_seeds("base", {"seconds": 30}, {"seconds": 30}, bad, {})
    fast = with_seeds("fast", {}, bad | {"ess": 1e6}, {}, None)
    summary = table(*base, *fast)
    found = rows(summary)["fast"]
    assert found["speed_up"] == pytest.approx(3.0)
    assert found["speed_up_text"] == "3x (1 of 4 seeds)"
    assert (found["num_seeds"], found["num_failed"], found["num_converged"]) == (3, 1, 2)
    assert found["status"] == "done"
    assert found["converged"] is False
    assert summary["num_seeds"] == 4
    assert of_seeds(found) == [
        "fast failed in 1 of 4 seeds: Unknown method 'nope'.",
        "fast converged in 2 of 3 seeds.",
    ]
    assert summary["problems"][0]["best"]["error"] == {"label": "base", "draws": []}
    level, _, headline = overall(summary)
    assert level == Level.CARE
    assert headline == "5 of 7 chain runs converged; 1 of 8 cells failed."
    (conclusion,) = conclusions(summary)
    assert "Not converged: base (1 of 4 seeds), fast (1 of 3 seeds)." in conclusion.sentence
    assert "Failed: fast (1 of 4 seeds)." in conclusion.sentence


def test_rows_tell_the_commits_that_made_them() -> None:
    base = with_seeds("base", {}, {}, None)
    base[0].result["commit"], base[1].result["commit"] = "bbb", "aaa"
    summary = table(*base, *with_seeds("other", {}))
    found = rows(summary)
    assert found["base"]["commits"] == ["aaa", "bbb"]
    assert found["other"]["commits"] == ["unknown"]
    assert summary["commits"] == ["aaa", "bbb", "unknown"]


def test_seeds_that_all_failed_are_a_failure() -> None:
    summary = table(*with_seeds("base", {}, {}), *with_seeds("gone", None, None))
    found = rows(summary)["gone"]
    assert (found["status"], found["num_seeds"], found["num_failed"]) == ("failed", 0, 2)
    assert of_seeds(found) == ["gone failed: Unknown method 'nope'."]


def test_nothing_to_converge_is_neither() -> None:
    assert table(samples.done("net", converged=None))["converged"] is None


def test_paired_differences_tell_methods_apart() -> None:
    """A shift of 8 paired standard errors is seen although single rows vary far more."""
    rng = np.random.default_rng(0)
    shared = 100 * rng.random(samples.NUM_TEST)
    noise = rng.normal(size=samples.NUM_TEST)
    shift = 8 * noise.std(ddof=1) / samples.NUM_TEST**0.5
    outcomes = [
        samples.done("good", error=shared),
        samples.done("equal", error=shared + noise - noise.mean()),
        samples.done("worse", error=shared + noise - noise.mean() + shift),
    ]
    found = best(outcomes, "error")
    # "equal" has the very mean of "good", to rounding: either may win, the other is a draw.
    assert {found["label"], *found["draws"]} == {"good", "equal"}


def test_verdict_names_whom_not_to_believe() -> None:
    summary = table(
        samples.done("base"), samples.done("stuck", converged=False), samples.failed("gone")
    )
    level, word, headline = overall(summary)
    assert (level, word) == (Level.CARE, "Compare with care")
    assert headline == "1 of 2 chain runs converged; 1 of 3 cells failed."
    (finding,) = conclusions(summary)
    assert finding.level == Level.CARE
    assert "Not converged: stuck." in finding.sentence
    assert "Failed: gone." in finding.sentence
    assert "Most effective draws per second: base" in finding.sentence


def test_verdict_levels() -> None:
    assert overall(table(samples.done("a")))[0] == Level.TRUST
    assert overall(table(samples.done("a", converged=False)))[0] == Level.DO_NOT_TRUST
    assert overall(table(samples.done("a", converged=None)))[0] == Level.TRUST
    assert overall(table(samples.done("a"), samples.failed("b")))[0] == Level.CARE
    level, word, _ = overall(table(samples.failed("a")))
    assert (level, word) == (Level.DO_NOT_TRUST, "Nothing to compare")


def test_an_infinite_number_stays_so_over_seeds() -> None:
    """The tail index of weights that have no mean."""
    assert mean_and_error(["inf", 0.5]) == ("inf", None)
    assert mean_and_error([1.0, None]) == (None, None)
    assert mean_and_error([True, True]) == (1.0, 0.0)
