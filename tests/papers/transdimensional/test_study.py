"""Experiments D1 to D3: splits without leaks, and what is told of a run."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tools.data_folder import needs_data
from tools.ensembles import make_ensemble

from credence.compare import find
from credence.compare.problem import Arrays
from credence.density.posterior import Posterior
from credence.errors import InputError
from credence.methods.transdimensional.architecture.posterior import architecture_posterior
from credence.methods.transdimensional.size_priors import DepthPrior
from credence.methods.transdimensional.starts import Sizes
from credence.models import MLP, Gaussian, Normal
from credence.preprocessing import TargetScaler
from credence_papers.transdimensional import runs
from credence_papers.transdimensional import three_ways as architecture_ways
from credence_papers.transdimensional.data import Clouds, Digits, boston
from credence_papers.transdimensional.page import three_ways
from credence_papers.transdimensional.tables import BOSTON, DIGITS, THREE_WAYS, UCI, XOR
from credence_papers.transdimensional.three_ways import (
    Ways,
    cross_validated,
    jump_shares,
    share_errors,
)


def rows_of(x: np.ndarray) -> set[bytes]:
    return {row.tobytes() for row in np.ascontiguousarray(np.asarray(x, float).round(9))}


def test_clouds_of_training_and_test_have_the_same_noise() -> None:
    found = Clouds(0.1)(0)
    assert not rows_of(found.x_train) & rows_of(found.x_test)
    spread = [np.var(x - np.sign(x) / 2, axis=0) for x in (found.x_train, found.x_test)]
    np.testing.assert_allclose(*spread, rtol=0.35)


@needs_data
def test_boston_is_divided_in_halves_and_standardised_by_the_first() -> None:
    found = boston(0)
    assert (len(found.x_train), len(found.x_test)) == (253, 253)
    np.testing.assert_allclose(found.y_train.mean(), 0, atol=1e-6)
    assert abs(found.y_test.mean()) > 1e-3
    assert not rows_of(found.x_train) & rows_of(found.x_test)


@needs_data
def test_digits_are_balanced_and_of_other_writers() -> None:
    found = Digits(5)(0)
    assert found.x_train.shape == (250, 20)
    np.testing.assert_array_equal(np.bincount(found.y_train), 50)
    assert np.bincount(found.y_test).min() > 150
    assert not rows_of(found.x_train) & rows_of(found.x_test)
    np.testing.assert_allclose(found.x_train.mean(axis=0), 0, atol=1e-9)
    assert np.abs(found.x_test.mean(axis=0)).max() > 0.01


def test_methods_start_where_the_thesis_does() -> None:
    for study in (XOR, DIGITS, BOSTON):
        assert find(study.name) is study
        for problem in study.problems:
            method = problem.method(study.efforts["paper"])
            is_ladder = problem.name == "boston_2b"
            assert method.num_rungs == (12 if is_ladder else 1)
            assert (method.num_chains, method.num_starts) == (4 if is_ladder else 16, 1000)
            assert method.num_draws == (2500 if is_ladder else 1000)
            if problem.max_depth is None:
                assert tuple(method.initial_widths or ()) == tuple(
                    problem.max_width // 16 * (i + 1) for i in range(16)
                )
    method = BOSTON.problems[0].method(BOSTON.efforts["paper"])
    depths = Sizes("depth", method.depth_prior, method.initial_depths).of_chains(8, 16)
    np.testing.assert_array_equal(np.bincount(depths)[1:], 2)


def measured(problem: Any, effort: Any, seed: int, folder: Any) -> dict[str, Any]:
    """A run that nobody ran."""
    rng = np.random.default_rng(seed)
    depth = rng.integers(1, 4, size=(4, 100)).astype(float)
    ones = np.ones_like(depth)
    scalars = {"width": 2 * depth, "has_moved": ones, "depth": depth}
    scalars |= {f"width_{i}": 2.0 * (depth >= i) for i in (1, 2, 3)}
    scalars |= {"num_jumps_layer": 5 * ones, "num_jumps_accepted_layer": ones}
    found = architecture_posterior(scalars)
    assert found is not None
    return {
        "chains": 4,
        "draws": 100,
        "architecture": found.to_dict(),
        "scores": {
            "rmse": 4.2,
            "best_chain": 4.1,
            "across": 0.2,
            "within": 0.8,
            "mode": 1,
            "mean": 2.0,
        },
        "convergence": {"converged": True, "reason": "It did."},
        "traces": depth.astype(int).tolist(),
        "every": 1,
        "total_seconds": 10.0,
    }


def no_data(seed: int) -> None:
    """A data set that nobody has."""


def test_page_and_results_and_going_on(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "measured", measured)
    problem = replace(BOSTON.problems[0], data=no_data, description="layers <of> two neurons")
    study = replace(BOSTON, problems=(problem,))
    summary = study.run(tmp_path, size="smoke", problems=("boston_2a",))
    assert summary["converged"] is True
    page = (tmp_path / "report.html").read_text()
    assert page.count("<svg") == 2
    assert "layers &lt;of&gt; two neurons" in page
    assert "Published mode: 2" in page
    assert "Most probable size" in page
    assert "RMSE of the best of 4 chains, chosen by the test rows" in page
    seeds = study.run(tmp_path / "seeds", size="smoke", num_seeds=2)
    assert "RMSE of the best of 4 chains, chosen by the test rows" in study.render(
        {**seeds, "architectures": []}
    )
    monkeypatch.setattr(runs, "measured", None)
    again = study.run(tmp_path, size="smoke", problems=("boston_2a",))
    assert json.dumps(again) == json.dumps(summary)
    with pytest.raises(InputError, match="no problem 'boston'"):
        study.run(tmp_path, size="smoke", problems=("boston",))


@pytest.mark.slow
@pytest.mark.parametrize(
    "study",
    [
        pytest.param(XOR, id="xor"),
        pytest.param(BOSTON, marks=needs_data, id="boston"),
        pytest.param(THREE_WAYS, marks=needs_data, id="three_ways"),
        pytest.param(UCI, marks=needs_data, id="uci"),
    ],
)
def test_a_small_run(study: Any, tmp_path: Any) -> None:
    name = study.problems[-1].name
    (row,) = study.run(tmp_path, size="smoke", problems=(name,))["architectures"]
    assert row["architecture"]["num_draws"] == 12
    assert 0 <= row["scores"]["across"] <= 1
    assert (row["ways"] is not None) == (study is THREE_WAYS)
    assert DepthPrior() == study.problems[-1].method(study.efforts["smoke"]).depth_prior


def test_shares_of_evidences_have_the_errors_of_simulation() -> None:
    rng = np.random.default_rng(0)
    log, errors = np.array([-1.0, 0.0, 0.3]), np.array([0.02, 0.05, 0.01])
    shares = np.exp(log - np.logaddexp.reduce(log))
    drawn = np.exp(log + errors * rng.normal(size=(100_000, 3)))
    drawn /= drawn.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(share_errors(shares, errors), drawn.std(axis=0), rtol=0.03)


def test_cross_validation_leaves_the_row_out() -> None:
    """The predictive density of y = w x + noise, known exactly, without each row's fold."""
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(30, 1)), rng.normal(size=30)
    arrays = Arrays(x, y, x, y, TargetScaler.fit(np.array([[-1.0], [1.0]])), ())
    posterior = Posterior(MLP(1, ()), Gaussian(scaling="unit"), Normal(noise_std=0.5), (x, y))
    ways = Ways((1,), num_particles=2000, num_runs=2, num_folds=5)
    found = cross_validated(posterior, arrays, ways, 3, "line")
    folds = np.random.default_rng(3).permutation(30) % 5
    design = np.hstack([x, np.ones((30, 1))])

    def exact(row: int, known: np.ndarray) -> tuple[float, float]:
        """-log p(y | known rows), and the Monte Carlo error of a mean density, by one draw."""
        covariance = np.linalg.inv(np.eye(2) + design[known].T @ design[known] / 0.25)
        mean = design[row] @ covariance @ design[known].T @ y[known] / 0.25
        variance = design[row] @ covariance @ design[row]
        log = stats.norm.logpdf(y[row], mean, (variance + 0.25) ** 0.5)
        log_square = stats.norm.logpdf(y[row], mean, (variance + 0.125) ** 0.5) - np.log(
            2 * np.pi**0.5 * 0.5
        )
        return -log, np.expm1(log_square - 2 * log) ** 0.5

    left_out, of_one = np.transpose([exact(row, folds != folds[row]) for row in range(30)])
    planted = np.array([exact(row, np.ones(30, bool))[0] for row in range(30)])
    errors = of_one / np.sqrt(ways.num_particles)
    assert np.abs((found - left_out) / errors).max() < 4.5
    assert np.abs((found - planted) / errors).max() > 9


def test_sizes_that_no_draw_has_are_compared_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bound stands in place of an error, so that results can be written."""
    x, y = np.ones((6, 1)), np.ones(6)
    posterior = Posterior(MLP(1, (4,)), Gaussian(scaling="unit"), Normal(), (x, y))
    problem = replace(XOR.problems[0], max_width=4)
    width = np.random.default_rng(0).integers(3, 5, size=(4, 100)).astype(float)
    keys: list[int] = []
    run = replace(make_ensemble(), scalars={"log_evidence": np.array([[-1.1], [-0.9]])})
    monkeypatch.setattr(architecture_ways.SMC, "run", lambda _, key, __: keys.append(key) or run)
    row_scores = iter(np.arange(6.0) + np.array([[0.0], [0.2], [0.1], [0.3]]))
    monkeypatch.setattr(architecture_ways, "cross_validated", lambda *_: next(row_scores))
    compared: Any = runs._ways
    ways = compared(problem, posterior, None, width, 200.0, Ways((1, 2, 3, 4), 2, 2, 2), 0)
    assert len(set(keys)) == 4, "no two sizes share random numbers"
    json.dumps(ways, allow_nan=False)
    assert ways["jumps"][:2] == [0, 0]
    assert 0 < ways["jumps_error"][0] < 0.1
    np.testing.assert_allclose(ways["evidence"], 0.25)
    np.testing.assert_allclose(ways["nll_behind"], [0, 0.2, 0.1, 0.3])
    np.testing.assert_allclose(ways["nll_behind_error"], 0, atol=1e-12)
    assert ways["nll_error"][1] > 0.5, "rows differ, sizes do not"


def test_folds_have_random_numbers_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: neighbouring seeds, whose folds would share them if they were counted."""
    x, y = np.ones((6, 1)), np.ones(6)
    arrays = Arrays(x, y, x, y, TargetScaler.fit(np.array([[-1.0], [1.0]])), ())
    posterior = Posterior(MLP(1, (1,)), Gaussian(scaling="unit"), Normal(), (x, y))
    keys: list[int] = []
    monkeypatch.setattr(architecture_ways.SMC, "run", lambda _, key, __: keys.append(key))
    monkeypatch.setattr(
        architecture_ways.scoring, "scores", lambda _, a: ({}, {"nll": np.ones(len(a.x_test))})
    )
    for name, seed in (("problem, 1", 0), ("problem, 2", 0), ("problem, 1", 1)):
        cross_validated(posterior, arrays, Ways((1,), 2, 2, 3), seed, name)
    assert len(set(keys)) == len(keys) == 9


def test_shares_of_some_sizes_have_the_errors_of_simulation() -> None:
    """Independent draws of three sizes, of which two are compared."""
    rng = np.random.default_rng(0)
    drawn = rng.choice([1.0, 2.0, 3.0], p=[0.1, 0.3, 0.6], size=(500, 4, 250))
    shares = [[np.mean(run == 1) / np.mean(run < 3), np.mean(run == 2) / np.mean(run < 3)]
              for run in drawn]  # fmt: skip
    found, errors = jump_shares(drawn[0], (1, 2), 1000.0)
    np.testing.assert_allclose(found, shares[0])
    np.testing.assert_allclose(errors, np.std(shares, axis=0), rtol=0.15)
    counted = (0.1 * 0.9 / 1000) ** 0.5 / 0.4  # planted: the error of a share of all, divided
    assert abs(counted / np.std(shares, axis=0)[0] - 1) > 0.05
    whole, errors = jump_shares(drawn[0], (1, 2, 3), 1000.0)
    np.testing.assert_allclose(errors[0], (whole[0] * (1 - whole[0]) / 1000) ** 0.5, rtol=0.15)
    unseen, errors = jump_shares(drawn[0], (4, 5), 1000.0)
    assert (unseen.tolist(), errors.tolist()) == ([0, 0], [1, 1])


def test_a_chart_shows_three_answers() -> None:
    """A size that no draw has counts where answers differ; scores are compared row by row."""
    ways = {
        "sizes": [1, 2, 4],
        "jumps": [0.0, 0.4, 0.6],
        "jumps_error": [0.03, 0.02, 0.03],
        "evidence": [0.31, 0.28, 0.41],
        "evidence_error": [0.04, 0.02, 0.04],
        "nll": [0.5, 0.4, 0.41],
        "nll_error": [0.05, 0.04, 0.04],
        "nll_behind": [0.1, 0.0, 0.01],
        "nll_behind_error": [0.03, 0.0, 0.002],
    }
    page = str(three_ways(ways, "Hidden neurons", "ways"))
    assert page.count("<svg") == 1
    assert "the jumps prefer 4" in page
    assert "by at most 6.2 standard errors" in page  # of the sizes that draws have: 4.24
    assert "Cross-validation prefers 2; 4 is worse by 0.010 ± 0.002 nats" in page
