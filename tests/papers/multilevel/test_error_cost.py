"""Error against cost: slopes, envelopes and ratios with known answers; small true runs."""

import json
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tools.data_folder import needs_data

from credence.compare import find
from credence.compare.runner import NoWatch
from credence.environment import UNKNOWN_MACHINE
from credence.errors import InputError
from credence.methods.smc.multilevel.allocation import nats_between
from credence.methods.smc.multilevel.increments import exact_second_moment
from credence.storage import jsonable
from credence_papers.cache import Cache, number
from credence_papers.multilevel import prior_rates
from credence_papers.multilevel.error_cost import page as error_cost_page
from credence_papers.multilevel.error_cost import programs
from credence_papers.multilevel.error_cost import study as error_cost
from credence_papers.multilevel.error_cost.cost_envelope import (
    Point,
    bound_width,
    cost_of,
    cost_ratio,
    envelope,
    lowest_common,
    mean_squares,
    method_cost,
    slope,
    theory,
)
from credence_papers.multilevel.error_cost.programs import execute, joined, temperatures
from credence_papers.multilevel.error_cost.results import (
    as_bound_says,
    comparable,
    fits,
    long_means,
    measured,
    preparation,
)
from credence_papers.multilevel.error_cost.settings_tried import Contender, Job
from credence_papers.multilevel.error_cost.width_problems import WidthProblem, arrays
from credence_papers.multilevel.steps import StepEffort, couples_from
from credence_papers.multilevel.studies import (
    PRIOR_RATES,
    PUBLISHED,
    SENSITIVITY,
    STEPS,
    efforts,
)

REPLICATES = 2000
REGRESSION = replace(
    PUBLISHED,
    name="regression",
    problems=tuple(
        WidthProblem(name=f"regression alpha {alpha:g}", alpha=alpha, source="regression",
                     num_points=200, description="One hidden layer.")
        for alpha in (1.1, 2.0)
    ),
    efforts=efforts(64),
    published={},
)  # fmt: skip
"""A study of small networks, with all widths of a ladder given."""


def chi_squared(mse: float, rng: np.random.Generator, replicates: int = REPLICATES) -> np.ndarray:
    """Squared errors of normal estimates over five quantities of interest."""
    return mse * np.mean(rng.normal(size=(replicates, 5)) ** 2, axis=1)


def family(
    name: str, unit_cost: float, variance: float, bias: float, rng: np.random.Generator
) -> list[Point]:
    """A width whose error is bias^2 + variance / particles."""
    return [
        Point(name, unit_cost * count, chi_squared(bias**2 + variance / count, rng))
        for count in 4 ** np.arange(1, 9)
    ]


def test_one_family_has_slope_minus_one() -> None:
    found = slope(family("a", 3.0, 1.0, 0.0, np.random.default_rng(0)))
    assert found.error < 0.01
    assert abs(found.value + 1) < 5 * found.error


def test_single_level_slope_follows_theory() -> None:
    """Bias n^-1 and cost n: -(1 + gamma / (2 beta)) = -1.5 along the envelope over widths."""
    rng = np.random.default_rng(1)
    points = [
        Point(str(n), n * count, chi_squared(n**-2.0 + 1 / count, rng))
        for n in 2.0 ** np.arange(1, 7)
        for count in 2.0 ** np.arange(0, 17)
    ]
    inside = [p for p in points if np.mean(p.squares) > 1.5 * 64**-2.0]
    assert abs(slope(inside).value + theory(1.0, 1)["gamma"] / (2 * 1.0) + 1) < 0.06


def test_envelope_is_the_cheaper_family_at_every_error() -> None:
    points = [
        Point("narrow", 1.0, np.ones(2)),
        Point("narrow", 100.0, np.full(2, 0.5)),
        Point("wide", 10.0, np.full(2, 0.9)),
        Point("wide", 1000.0, np.full(2, 0.009)),
    ]
    errors = mean_squares(points, 0.0)
    assert method_cost(0.95, points, errors) < 10
    assert method_cost(0.09, points, errors) == pytest.approx(100.0)
    assert method_cost(0.001, points, errors) == np.inf
    assert (np.diff(envelope(points, errors).costs) >= 0).all()


def test_cost_between_points_is_on_the_line() -> None:
    costs, errors = np.array([1.0, 100.0]), np.array([1.0, 0.01])
    assert cost_of(0.1, costs, errors) == pytest.approx(10.0)
    assert cost_of(2.0, costs, errors) == 1.0
    assert cost_of(0.005, costs, errors) == np.inf


def test_noise_of_the_reference_is_taken_off_and_unresolved_points_left_out() -> None:
    rng, noise = np.random.default_rng(2), 1e-3
    points = family("a", 1.0, 1.0, 0.0, rng)
    noisy = [p._replace(squares=p.squares + noise) for p in points]
    assert abs(slope(noisy, noise).value + 1) < 0.03
    assert abs(slope(noisy).value + 1) > 0.1  # planted: not taken off
    assert lowest_common(noisy, noisy, noise) > 2 * noise


@pytest.mark.slow
def test_bootstrap_error_of_a_slope_is_its_spread() -> None:
    rng, replicates = np.random.default_rng(3), 32

    def study() -> tuple[float, float]:
        points = [
            Point("a", 1 / mse, chi_squared(mse, rng, replicates)) for mse in (1.0, 0.1, 0.01)
        ]
        found = slope(points)
        return found.value, found.error

    values, errors = np.array([study() for _ in range(60)]).T
    assert 0.7 < errors.mean() / values.std() < 1.3  # 60 studies: the spread is known to 9 %


def test_ratio_of_costs_and_its_interval() -> None:
    rng = np.random.default_rng(4)
    dear, cheap = family("a", 6.0, 1.0, 0.0, rng), family("b", 2.0, 1.0, 0.0, rng)
    found = cost_ratio(dear, cheap, error=1e-3)
    assert found.low < 3 < found.high
    assert found.high - found.low < 0.6
    swapped = cost_ratio(cheap, dear, error=1e-3)
    assert swapped.value == pytest.approx(1 / found.value)
    assert np.isnan(cost_ratio(dear[:1], cheap).value)


def test_theory_is_that_of_the_papers() -> None:
    assert theory(2.0, 2)["smc"] == pytest.approx(-4 / 3)
    assert theory(2.0, 1)["smc"] == pytest.approx(-7 / 6)
    assert theory(1.1, 1)["mlsmc"] == -1
    assert theory(1.1, 2)["mlsmc"] == pytest.approx(-4 / 3)
    assert theory(1.1, 2)["smc"] < theory(1.1, 2)["mlsmc"] < -1


def test_a_point_joins_its_runs_and_has_the_nominal_cost() -> None:
    rng = np.random.default_rng(5)
    contender = Contender(method="mlsmc", widths=(2, 4), num_particles=(30, 20))
    parts = [
        {"means": rng.normal(size=(50, 3)).tolist(), "log_evidence": [0.0] * 50, "flops": 7.0,
         "seconds": seconds, "compile_seconds": 1.0, "num_temperatures": [[5, 1], [5, 2]] * 25}
        for seconds in (0.5, 1.0, 9.0)
    ]  # fmt: skip
    job = Job(kind="replicates", problem=REGRESSION.problems[0], contender=contender)
    row = measured(job, joined(parts), np.zeros(3), noise=0.1)
    assert row["replicates"] == 150
    assert row["tempered"] == 75, "the second of two levels, in every other replicate"
    assert row["nominal"] == 30 * 2**2 + 20 * 4**2
    assert (row["seconds"], row["compile_seconds"]) == (1.0, 3.0), "one run was disturbed"
    assert row["mse"] == pytest.approx(np.mean(row["squares"]) - 0.1)
    assert row["family"] == "mlsmc 2-4"


def test_seconds_count_dear_replicates_and_forgive_disturbed_ones() -> None:
    """One of four runs did nine times the work, and another was slowed down to a fifth."""
    told = {"means": [], "log_evidence": [], "num_temperatures": [], "compile_seconds": 0.0}
    work = zip((1.0, 1.0, 1.0, 9.0), (1.0, 1.0, 5.0, 9.0), strict=True)
    found = joined([{**told, "flops": flops, "seconds": seconds} for flops, seconds in work])
    assert (found["flops"], found["seconds"]) == (3.0, 3.0)


def test_no_level_gets_more_particles_than_the_coarsest() -> None:
    contender = Contender(method="mlsmc", widths=(2, 4), num_particles=(30, 20))
    pilot = Job(kind="pilot", problem=REGRESSION.problems[0], contender=contender)
    effort = replace(REGRESSION.efforts["laptop"], base_particles=(1000,))
    (found,) = error_cost.allotted(pilot, {"variances": [1.0, 16.0], "costs": [1.0, 4.0]}, effort)
    assert found.num_particles == (1000, 1000)


def test_temperatures_are_told_of_every_level() -> None:
    one = {"num_temperatures": np.full((2, 3), 7.0)}
    assert temperatures(SimpleNamespace(scalars=one)) == [[7], [7]]
    levels = np.array([[0, 0, 1, 1, 2]] * 2)
    several = {"num_temperatures": levels + 1.0, "increment": levels}
    assert temperatures(SimpleNamespace(scalars=several)) == [[1, 2, 3], [1, 2, 3]]


def test_particles_fall_as_the_pilot_says() -> None:
    contender = Contender(method="mlsmc", widths=(2, 4), num_particles=(30, 20))
    pilot = Job(kind="pilot", problem=REGRESSION.problems[0], contender=contender)
    effort = replace(REGRESSION.efforts["laptop"], base_particles=(1000,))
    result = {"variances": [1.0, 0.04], "costs": [1.0, 4.0]}
    (found,) = error_cost.allotted(pilot, result, effort)
    assert found.num_particles == (1000, 100)


def test_a_limit_leaves_the_reference_where_it_was() -> None:
    effort = SENSITIVITY.efforts["laptop"]
    *_, wide, narrow = SENSITIVITY.problems
    limited = SENSITIVITY.effort(narrow, "laptop")
    assert (limited.widths, limited.ladders, limited.finest) == ((8,), ((2, 4, 8),), effort.finest)
    several = replace(effort, further=PUBLISHED.efforts["laptop"].further).within(8)
    assert {each.widths for each in several.further} == {(4,), (8,)}
    assert error_cost.ladders(narrow, limited, 0) == [], "nor is another ladder chosen"
    assert SENSITIVITY.effort(wide, "laptop") == effort


def test_every_job_has_its_own_random_numbers() -> None:
    effort, problem = REGRESSION.efforts["paper"], REGRESSION.problems[0]
    jobs = [Job(kind="replicates", problem=problem, contender=each) for each in effort.singles]
    jobs += [replace(job, seed=1) for job in jobs]
    assert len({number(job) for job in jobs}) == len(jobs)


def test_unknown_names_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Did you mean"):
        REGRESSION.run(tmp_path / "out", problems=("regression alpha 22",))
    with pytest.raises(InputError, match="Unknown size"):
        REGRESSION.run(tmp_path / "out", size="big")
    assert not (tmp_path / "out").exists()


def test_a_long_runs_error_comes_from_its_chains() -> None:
    means, squared = long_means({"chain_means": [[0.0, 1.0], [2.0, 1.0]]})
    assert means.tolist() == [1.0, 1.0]
    assert squared.tolist() == [1.0, 0.0]
    assert jsonable({"a": [np.nan, np.float64(2.0)]}) == {"a": [None, 2.0]}


def made_up(job: Job) -> dict[str, Any]:
    """What a program might return: estimates whose variance is 1 / particles, at a known cost."""
    rng = np.random.default_rng(number(job))
    if job.contender is None:
        return {"chain_means": (1e-3 * rng.normal(size=(4, 5))).tolist(), "spread": 1.0,
                "method": "nuts", "max_rhat": 1.0, "min_ess": 1e6, "converged": True,
                "num_draws": 9, "seconds": 1.0}  # fmt: skip
    if job.kind == "pilot":
        levels = np.arange(len(job.contender.widths))
        return {"variances": (0.01**levels).tolist(), "costs": (4.0**levels).tolist(),
                "nats": [0.1] * (len(levels) - 1), "flops": 1.0, "seconds": 1.0}  # fmt: skip
    count = job.contender.num_particles[0]
    dear = 8.0 if job.contender.method == "smc" else 1.0
    means = rng.normal(size=(job.replicates, 5)) / count**0.5
    return {"means": means.tolist(), "flops": dear * count, "seconds": 2.0 * count,
            "compile_seconds": 1.0, "log_evidence": [0.0] * job.replicates}  # fmt: skip


def test_a_study_finds_the_ratio_that_was_made_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(error_cost, "execute", made_up)
    chosen = ("regression alpha 2",)
    summary = REGRESSION.run(tmp_path, problems=chosen)
    (problem,) = summary["problems"]
    ratio = problem["fits"]["flops"]["ratio"]
    error = np.log(ratio["high"] / ratio["low"]) / 4  # an interval of 95 %
    assert abs(np.log(ratio["value"] / 8)) < 4 * error < np.log(8)
    found = problem["fits"]["flops"]["slopes"]["mlsmc"]
    assert abs(found["value"] + 1) < 4 * found["error"] < 1
    assert ratio["value"] > 3 * problem["fits"]["seconds"]["ratio"]["value"]
    page = (tmp_path / "report.html").read_text()
    assert page.count("<svg") == 3
    assert "several levels are cheaper" in page
    assert "charged to every replicate" in page
    assert "Slope of one choice" in page
    assert "http" not in page.replace("http-equiv", "")
    assert json.loads((tmp_path / "results.json").read_text()) == summary
    monkeypatch.setattr(error_cost, "execute", lambda job: pytest.fail(f"{job.label} again"))
    assert REGRESSION.run(tmp_path, problems=chosen) == summary


def test_the_clock_compares_runs_of_one_machine() -> None:
    """Another machine, a thousand times as fast, did one of three runs of one level."""
    rng = np.random.default_rng(6)

    def row(method: str, particles: int, speed: float, **made_on: str) -> dict[str, Any]:
        squares = (rng.normal(size=50) ** 2 / particles).tolist()
        return {"method": method, "family": method, "widths": [8], "flops": float(particles),
                "seconds": particles / speed, "squares": squares, **made_on}  # fmt: skip

    here = [row(method, n, 1.0, machine="a") for method in ("smc", "mlsmc") for n in (10, 100)]
    rows = [*here, row("smc", 1000, 1e3, machine="b"), row("smc", 30, 1e3, machine=UNKNOWN_MACHINE)]
    assert comparable(rows, "seconds") == here
    assert comparable(rows, "flops") == rows
    assert fits(rows, "seconds", 0.0, 2.0)["ratio"] == fits(here, "seconds", 0.0, 2.0)["ratio"]
    untold = [{key: value for key, value in each.items() if key != "machine"} for each in rows]
    assert comparable(untold, "seconds") == untold, "results of before do not tell it"


def test_results_tell_the_machine_that_made_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(error_cost, "execute", made_up)
    contender = Contender(method="smc", widths=(4,), num_particles=(9,))
    about = {"problem": REGRESSION.problems[0], "contender": contender}
    job = Job(kind="replicates", replicates=2, **about)
    for machine in ("first", "second"):
        monkeypatch.setattr("credence_papers.cache.machine", lambda name=machine: name)
        found = error_cost.finished(job, Cache(tmp_path, NoWatch()))
        assert found["machine"] == "first"
        assert measured(job, found, np.zeros(5), 0.0)["machine"] == "first"


@pytest.mark.parametrize("kind", [InputError, RuntimeError, MemoryError])
def test_what_fails_is_said_and_tried_again(
    kind: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What JAX has no memory for is a RuntimeError."""

    def refuse(job: Job) -> dict[str, Any]:
        raise kind("No <such> thing.")

    monkeypatch.setattr(error_cost, "execute", refuse)
    chosen = ("regression alpha 2",)
    summary = REGRESSION.run(tmp_path, size="smoke", problems=chosen)
    assert summary["failed"] == 3  # reference, pilot, one level; no pilot, no several
    assert summary["converged"] is False
    assert "No &lt;such&gt; thing." in (tmp_path / "report.html").read_text()
    monkeypatch.setattr(error_cost, "execute", made_up)
    assert REGRESSION.run(tmp_path, size="smoke", problems=chosen)["failed"] == 0


def test_a_reference_whose_runs_disagree_is_run_again_with_more_particles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def disagreeing(job: Job) -> dict[str, Any]:
        return {"converged": job.settings.get("num_particles", 0) > 500}

    monkeypatch.setattr(error_cost, "execute", disagreeing)
    problem, cache = REGRESSION.problems[0], Cache(tmp_path, NoWatch())
    job = Job(kind="reference", problem=problem, width=4, settings={"num_particles": 300})
    longer, result = error_cost.converged(job, cache)
    assert longer.settings == {"num_particles": 1200}
    assert result["converged"]
    enough = replace(job, settings={"num_particles": 600})
    assert error_cost.converged(enough, cache)[0] is enough
    by_nuts = replace(job, settings={"num_draws": 300})
    assert error_cost.converged(by_nuts, cache)[0] is by_nuts


@pytest.mark.slow
class TestSmallRun:
    """The whole study at smoke size, once."""

    @pytest.fixture(scope="class")
    def done(self, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
        out = tmp_path_factory.mktemp("study")
        return out, REGRESSION.run(out, size="smoke", problems=("regression alpha 2",))

    def test_it_is_written(self, done: tuple[Path, dict[str, Any]]) -> None:
        out, summary = done
        assert json.loads((out / "results.json").read_text()) == summary
        (problem,) = summary["problems"]
        assert {row["method"] for row in problem["points"]} == {"smc", "mlsmc"}
        assert not problem["failed"]
        page = (out / "report.html").read_text()
        assert page.count("<svg") == 3
        assert "http" not in page.replace("http-equiv", "")

    def test_cost_counts_temperatures_and_mutation_steps(
        self, done: tuple[Path, dict[str, Any]]
    ) -> None:
        _, summary = done
        effort = REGRESSION.efforts["smoke"]
        alpha_2 = next(p for p in REGRESSION.problems if p.name == "regression alpha 2")
        problem = replace(alpha_2, **effort.problem)
        once = 2 * problem.num_points * problem.posterior(4).num_weights
        (row,) = (r for r in summary["problems"][0]["points"] if r["method"] == "smc")
        per_particle = row["flops"] / row["particles"][0] / once
        steps = 2 * 3 * effort.mutation["num_steps"]  # temperatures, gradient and value, steps
        assert per_particle > steps
        assert not per_particle / 50 > steps  # planted: one temperature in fifty counted

    def test_it_is_shown(self, done: tuple[Path, dict[str, Any]]) -> None:
        _, summary = done
        REGRESSION.table(summary)
        assert "several levels" in error_cost_page.render(summary)


@pytest.mark.slow
@needs_data
@pytest.mark.parametrize(
    ("study", "problem"),
    [
        ("multilevel_published", "published regression alpha 2"),
        ("multilevel_published_spiral", "published spiral alpha 2"),
        ("multilevel_published", "published halfcheetah alpha 2"),
        ("multilevel_published", "published mountain_car alpha 2"),
        ("multilevel_sensitivity", "case 1"),
        ("multilevel_sensitivity", "case 5"),
    ],
)
def test_every_problem_runs(study: str, problem: str, tmp_path: Path) -> None:
    summary = find(study).run(tmp_path / "out", size="smoke", problems=(problem,))
    (found,) = summary["problems"]
    assert not found["failed"]
    assert all(row["mse_error"] > 0 for row in found["points"])


class TestPriorRates:
    def test_a_power_law_has_its_exponent(self) -> None:
        widths = 2.0 ** np.arange(1, 9)
        means = 5 * widths**-3.0
        value, error = prior_rates.fitted_slope(widths, means, 0.01 * means)
        assert value == pytest.approx(-3)
        assert 0 < error < 0.02

    def test_measured_moments_are_the_exact_ones(self, tmp_path: Path) -> None:
        panel = "Trace-class prior: one relu layer"
        only = [
            replace(each, curves=tuple(c for c in each.curves if c.name == "alpha = 2"))
            for each in PRIOR_RATES.problems
        ]
        study = replace(PRIOR_RATES, problems=tuple(only))
        summary = study.run(tmp_path / "out", size="smoke", problems=(panel,))
        (row,) = summary["curves"]
        z = (np.array(row["means"]) - row["exact"]) / np.array(row["errors"])
        assert (np.abs(z) < 5).all()
        wrong = (np.array(row["means"]) - 2 * np.array(row["exact"])) / np.array(row["errors"])
        assert (np.abs(wrong) > 5).any()  # planted: a moment twice as large
        assert study.run(tmp_path / "out", size="smoke", problems=(panel,)) == summary
        assert (tmp_path / "out" / "report.html").read_text().count("<svg") == 1

    def test_inverse_width_prior_has_that_variance_everywhere(self) -> None:
        import jax

        from credence.models import MLP

        network = MLP(1, (4, 4))
        params = network.init(jax.random.key(0), jax.numpy.zeros((1, 3)))
        stds = prior_rates.InverseWidth().stds(network, params)
        assert {float(std) for std in jax.tree.leaves(stds)} == {0.5}

    def test_unknown_panels_are_refused(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="no problem"):
            PRIOR_RATES.run(tmp_path / "out", size="smoke", problems=("x",))


def test_a_chosen_ladder_takes_the_widest_step_that_couples() -> None:
    smooth = replace(REGRESSION.problems[0], alpha=3.0, depth=2, num_points=20)
    assert error_cost.chosen_ladder(smooth, 64) == (8, 64)  # 1.02 nats from 4 to 8, then 0.06
    rough = replace(smooth, alpha=1.4, noise_std=1.0)
    assert error_cost.chosen_ladder(rough, 64) == (16, 32, 64)  # 0.67 below 16


def test_a_reference_may_be_as_narrow_as_makes_no_difference() -> None:
    problem = replace(REGRESSION.problems[0], alpha=3.0, depth=2, num_points=20)
    effort = replace(REGRESSION.efforts["laptop"], widths=(8, 16, 32, 64), reference_nats=0.01)
    nats = nats_between([problem.posterior(width) for width in (8, 16, 32, 64)])
    assert nats.sum() > 0.01 > nats[1:].sum()
    first, *others = error_cost.references(problem, replace(effort, biases=True), seed=0)
    assert first.width == 16
    assert [job.width for job in others] == [64, 32, 8]
    assert error_cost.reference_width(problem, replace(effort, reference_nats=0.0)) == 64
    assert error_cost.reference_width(problem, replace(effort, reference_nats=1e-12)) == 64


def test_the_paper_asks_for_the_width_at_which_the_squared_bias_is_half_the_error() -> None:
    assert bound_width(2e-3, 2.0) ** -3.0 == pytest.approx(1e-3)
    assert bound_width(2e-3, 3.0) < bound_width(2e-3, 2.0)


def _points(method: str, width: int, cost: float) -> list[dict[str, Any]]:
    """Two points of a family whose mean square error is 1 / particles, at a cost per particle."""
    squares = {count: np.full(50, 1 / count).tolist() for count in (100, 1000)}
    return [
        {"method": method, "family": f"{method} {width}", "widths": [width], "flops": count * cost,
         "squares": squares[count]}
        for count in squares
    ]  # fmt: skip


@pytest.mark.parametrize(("alpha", "width", "ratio"), [(3.0, 8, 2.0), (2.0, 16, 6.0)])
def test_one_level_at_the_width_of_the_bound(alpha: float, width: int, ratio: float) -> None:
    rows = [
        *_points("smc", 4, 1.0),
        *_points("smc", 8, 2.0),
        *_points("smc", 16, 6.0),
        *_points("smc", 64, 20.0),
        *_points("mlsmc", 64, 1.0),
    ]
    found = as_bound_says(rows, "flops", 0.0, alpha)
    assert found["width"] == width  # at an error of 1e-3: 2000^(1 / 5) = 4.6, 2000^(1 / 3) = 12.6
    assert found["value"] == pytest.approx(ratio)


def test_a_family_has_a_slope_of_its_own() -> None:
    """Along both families the error falls as one over the cost; between them the cost jumps."""
    dear = [{**row, "family": "mlsmc 64, dear"} for row in _points("mlsmc", 64, 10.0)]
    for row in dear:
        row["flops"], row["squares"] = 10 * row["flops"], [s / 10 for s in row["squares"]]
    found = fits([*_points("mlsmc", 64, 1.0), *dear], "flops", 0.0, 3.0)
    slopes = {family: each["value"] for family, each in found["slopes_by_family"].items()}
    assert slopes == pytest.approx({"mlsmc 64": -1, "mlsmc 64, dear": -1})
    assert found["slopes"]["mlsmc"]["value"] < -1.2  # planted: that of the envelope


def test_the_choice_of_widths_and_particles_is_charged() -> None:
    rows = [*_points("smc", 8, 6.0), *_points("smc", 64, 20.0), *_points("mlsmc", 64, 1.0)]
    free = preparation(rows, [], 0.0, 0.0)
    assert (free["ratio"]["value"], free["ratio_widest"]["value"]) == pytest.approx((6, 20))
    pilots = [{"family": "mlsmc 64", "all_flops": 700.0}, {"family": "another", "all_flops": 9e9}]
    charged = preparation(rows, pilots, 300.0, 0.0)  # to 1000 operations for an error of 1e-3
    assert (charged["ratio"]["value"], charged["ratio_widest"]["value"]) == pytest.approx((3, 10))


def test_a_ladder_is_judged_with_the_fewest_tries() -> None:
    effort = PUBLISHED.efforts["laptop"]
    (job,) = error_cost.ladders(PUBLISHED.problems[0], effort, 0)
    assert job.settings == {"share": 0.7, "num_tries": 1}
    few = {"a": {"num_tries": 4}, "b": {"num_tries": 9}}
    (job,) = error_cost.ladders(PUBLISHED.problems[0], replace(effort, manners=few), 0)
    assert job.settings["num_tries"] == 4


def test_a_manner_may_have_moves_and_sizes_of_its_own() -> None:
    effort = replace(
        PUBLISHED.efforts["laptop"],
        mutation={"num_steps": 3},
        base_particles=(10, 20),
        manners={
            "": {},
            "quick": {"mutation": {"num_steps": 1}, "num_tries": 2, "base_particles": (80,)},
        },
    )
    first = error_cost.pilots(PUBLISHED.problems[0], effort, 0, [(4, 8)])
    plain, quick = (job.contender for job in first)
    assert (plain.mutation, plain.settings) == ({"num_steps": 3}, {})
    assert (quick.mutation, quick.settings) == ({"num_steps": 1}, {"num_tries": 2})
    told = {"variances": [4.0, 1.0], "costs": [1.0, 4.0]}
    sizes = [[c.num_particles for c in error_cost.allotted(job, told, effort)] for job in first]
    assert sizes == [[(20, 20), (20, 20)], [(80, 20)]]


def test_one_level_at_its_widest_is_the_cheapest_of_its_manners() -> None:
    dear = [{**row, "family": "smc 64, short moves"} for row in _points("smc", 64, 20.0)]
    rows = [*_points("smc", 8, 1.0), *dear, *_points("smc", 64, 6.0), *_points("mlsmc", 64, 2.0)]
    found = fits(rows, "flops", 0.0, 3.0)
    assert found["ratio_widest"]["value"] == pytest.approx(3.0)
    assert found["ratio_narrower"]["value"] == pytest.approx(0.5)  # of width 8, at its own errors


@dataclass
class Runs:
    """Draws of chains at two places, as an ensemble gives them."""

    draws: np.ndarray
    families: None = None
    cost: Any = field(default_factory=lambda: SimpleNamespace(total_seconds=2.0))

    def functions(self, _: np.ndarray) -> np.ndarray:
        return self.draws

    monitored = functions


def test_a_reference_in_parts_is_that_of_all_runs_together() -> None:
    draws = np.random.default_rng(0).normal(size=(8, 300, 2, 1))
    draws[:4] += 1
    whole, parts = (
        programs._reference(map(Runs, each), np.zeros(2)) for each in ([draws], np.split(draws, 4))
    )
    assert parts.pop("seconds") == 4 * whole.pop("seconds")
    assert parts == whole
    assert whole["converged"] is False, "halves that agree within do not agree together"
    assert programs._reference([Runs(draws[:4])], np.zeros(2))["converged"]


@pytest.mark.slow
def test_smc_is_a_reference_with_an_error_of_its_own(tmp_path: Path) -> None:
    further = Contender(method="smc", widths=(8,), num_particles=(16,), replicates=3, manner="few")
    effort = replace(
        REGRESSION.efforts["smoke"],
        reference={"num_particles": 300, "num_runs": 4},
        further=(further,),
        reference_width=4,
    )
    study = replace(REGRESSION, efforts={"smoke": effort})
    summary = study.run(tmp_path, size="smoke", problems=("regression alpha 2",))
    (problem,) = summary["problems"]
    assert problem["reference"]["num_draws"] == 300
    assert 0 < problem["reference"]["noise"] < 0.1 * problem["reference"]["posterior_variance"]
    (row,) = (row for row in problem["points"] if row["family"] == "smc 8, few")
    assert row["replicates"] == 3
    assert "SMC at width 4, 4 runs of 300 particles" in (tmp_path / "report.html").read_text()


def test_levels_couple_from_where_no_later_step_is_too_far() -> None:
    assert couples_from((4, 8, 16, 32), [0.1, 0.5, 0.1]) == 16
    assert couples_from((4, 8, 16, 32), [0.1, 0.2, 0.1]) == 4
    assert couples_from((4, 8, 16, 32), [0.1, 0.2, 0.5]) is None


def test_steps_agree_with_the_exact_second_moments(tmp_path: Path) -> None:
    """One ReLU layer: N E(f_fine - f_coarse)^2 / (2 sigma^2), whose moment is known exactly."""
    problem = WidthProblem(
        name="relu",
        description="",
        source="regression",
        activation="relu",
        num_points=40,
        noise_std=0.5,
    )
    effort = StepEffort(widths=(8, 16, 32), num_draws=20_000, problem={})
    study = replace(STEPS, problems=(problem,), efforts={"laptop": effort})
    (row,) = study.run(tmp_path / "steps")["problems"]
    x = arrays(problem).x
    for step, pair in enumerate(pairwise(effort.widths)):
        coarse, fine = (problem.posterior(width).model.network for width in pair)
        moments = exact_second_moment(problem.prior, coarse, fine, x)
        # the square of a product of a weight and a neuron varies by some 4 of its means: 3 % of
        # 20,000 draws, and four of these standard errors
        assert row["nats"][step] == pytest.approx(np.sum(moments) / (2 * 0.5**2), rel=0.12)


def test_a_ladder_may_begin_where_a_small_run_says() -> None:
    smooth = replace(REGRESSION.problems[0], alpha=3.0, depth=2, num_points=20)
    effort = replace(REGRESSION.efforts["laptop"], widths=(8, 16), ladders=None)
    assert not error_cost.ladders(smooth, effort, seed=0)
    (job,) = error_cost.ladders(smooth, replace(effort, base_share=1.1), seed=0)
    assert execute(job)["widths"] == [8, 16]
    (job,) = error_cost.ladders(smooth, replace(effort, base_share=0.01), seed=0)
    found = execute(job)
    assert found["widths"] == [4, 16]
    assert found["flops"] > 0
    (pilot,) = error_cost.pilots(smooth, effort, 0, [tuple(found["widths"])])
    assert pilot.contender is not None
    assert pilot.contender.widths == (4, 16)
