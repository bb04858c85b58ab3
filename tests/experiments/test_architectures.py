"""Experiments D1 to D3: splits without leaks, and what is told of a run."""

import json
from typing import Any

import numpy as np
import pytest
from data_folder import needs_data

from credence.diagnostics import architecture_posterior
from credence.errors import InputError
from credence.experiments import architectures
from credence.experiments.architecture_data import boston, clouds, digits
from credence.experiments.architectures import BOSTON, DIGITS, XOR, run
from credence.experiments.studies import STUDIES
from credence.models.width_priors import DepthPrior


def rows_of(x: np.ndarray) -> set[bytes]:
    return {row.tobytes() for row in np.ascontiguousarray(np.asarray(x, float).round(9))}


def test_clouds_of_training_and_test_have_the_same_noise() -> None:
    found = clouds(0.1)(0)
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
    found = digits(5)(0)
    assert found.x_train.shape == (250, 20)
    np.testing.assert_array_equal(np.bincount(found.y_train), 50)
    assert np.bincount(found.y_test).min() > 150
    assert not rows_of(found.x_train) & rows_of(found.x_test)
    np.testing.assert_allclose(found.x_train.mean(axis=0), 0, atol=1e-9)
    assert np.abs(found.x_test.mean(axis=0)).max() > 0.01


def test_methods_start_where_the_thesis_does() -> None:
    for study in (XOR, DIGITS, BOSTON):
        assert STUDIES[study.name] is study
        for problem in study.problems:
            method = problem.method(study.efforts["paper"])
            assert (method.num_chains, method.num_draws, method.num_starts) == (16, 1000, 1000)
            if problem.max_depth is None:
                assert tuple(method.initial_widths or ()) == tuple(
                    problem.max_width // 16 * (i + 1) for i in range(16)
                )
    depths = BOSTON.problems[0].method(BOSTON.efforts["paper"])._initial("depth", 8)
    np.testing.assert_array_equal(np.bincount(depths)[1:], 2)


def measured(problem: Any, effort: Any, seed: int) -> dict[str, Any]:
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
        "name": problem.name,
        "description": "layers <of> two units",
        "published": dict(problem.published),
        "reasons": list(problem.reasons),
        "chains": 4,
        "draws": 100,
        "architecture": found.to_dict(),
        "scores": {"rmse": 4.2, "across": 0.2, "within": 0.8, "mode": 1, "mean": 2.0},
        "convergence": {"converged": True, "reason": "It did."},
        "traces": depth.astype(int).tolist(),
        "every": 1,
        "total_seconds": 10.0,
    }


def test_page_and_results_and_going_on(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(architectures, "measured", measured)
    summary = run(BOSTON, tmp_path, size="smoke", problems=("boston_2a",))
    assert summary["converged"] is True
    page = (tmp_path / "report.html").read_text()
    assert page.count("<svg") == 2
    assert "layers &lt;of&gt; two units" in page
    assert "Published mode: 2" in page
    assert "Most probable size" in page
    monkeypatch.setattr(architectures, "measured", None)
    again = run(BOSTON, tmp_path, size="smoke", problems=("boston_2a",))
    assert json.dumps(again) == json.dumps(summary)
    with pytest.raises(InputError, match="no problem 'boston'"):
        run(BOSTON, tmp_path, size="smoke", problems=("boston",))


@pytest.mark.slow
@pytest.mark.parametrize("study", [XOR, BOSTON], ids=lambda study: study.name)
def test_a_small_run(study: Any, tmp_path: Any) -> None:
    name = study.problems[-1].name
    (row,) = run(study, tmp_path, size="smoke", problems=(name,))["architectures"]
    assert row["architecture"]["num_draws"] == 12
    assert 0 <= row["scores"]["across"] <= 1
    assert DepthPrior() == study.problems[-1].method(study.efforts["smoke"]).depth_prior
