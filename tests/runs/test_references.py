"""Simple models beside the network: against closed forms, and where there is next to nothing."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats

from credence.ensembles.diagnostics.crps import crps_normal
from credence.runs import workflow
from credence.runs.documents import read_metrics
from credence.runs.folder import FitSettings
from credence.runs.page import report_data
from credence.runs.references import (
    Tables,
    classification_references,
    empirical_crps,
    linear_prediction,
    logistic_probabilities,
    marginal_log_density,
    regression_references,
)
from credence.storage import read_json, write_json


def line(n: int, noise: float = 0.5, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 2))
    return x, 3 + x @ np.array([2.0, -1.0]) + noise * rng.normal(size=n)


def test_a_line_is_found_with_its_noise() -> None:
    x, y = line(2000)
    mean, std = linear_prediction(Tables(x, x[:5]), y)
    np.testing.assert_allclose(mean, 3 + x[:5] @ np.array([2.0, -1.0]), atol=0.05)
    assert std == pytest.approx(0.5, rel=0.05)


def test_scores_of_a_line_are_those_of_its_law() -> None:
    (x, y), (x_test, y_test) = line(3000), line(3000, seed=1)
    found = regression_references(Tables(x, x_test), y, y_test).numbers
    assert found["nll_linear"] == pytest.approx(0.5 * np.log(2 * np.pi * np.e * 0.25), abs=0.05)
    assert found["crps_linear"] == pytest.approx(0.5 / np.sqrt(np.pi), rel=0.05)
    spread = np.sqrt(5.25)
    assert found["nll_marginal"] == pytest.approx(
        0.5 * np.log(2 * np.pi * np.e * spread**2), abs=0.05
    )
    assert found["crps_marginal"] == pytest.approx(spread / np.sqrt(np.pi), rel=0.05)


def test_crps_by_its_definition() -> None:
    rng = np.random.default_rng(0)
    sample, y = rng.gamma(2, size=40) + 1e6, np.array([1e6 - 1, 1e6 + 0.7, 1e6 + 9])
    slow = [abs(sample - t).mean() - abs(sample[:, None] - sample).mean() / 2 for t in y]
    np.testing.assert_allclose(empirical_crps(sample, y), slow, rtol=1e-8)
    grid = np.linspace(-20, 20, 400_001)
    squared = (stats.norm.cdf(grid, 0.3, 2) - (grid >= 1.1)) ** 2
    exact = integrate.trapezoid(squared, grid)
    assert crps_normal(np.array([0.3]), np.array([2.0]), np.array([1.1]))[0] == pytest.approx(
        exact, abs=1e-3
    )


@pytest.mark.parametrize("n", [2, 50, 4000])
def test_the_marginal_density_is_one_and_nowhere_zero(n: int) -> None:
    y_train = np.random.default_rng(0).gamma(2, size=n)
    grid = np.linspace(-40, 60, 4001)
    density = np.exp(marginal_log_density(y_train, grid))
    assert integrate.trapezoid(density, grid) == pytest.approx(1, abs=0.01)
    assert np.isfinite(marginal_log_density(y_train, np.array([20.0, -20.0]))).all()


def test_targets_all_alike_and_classes_never_seen_have_scores() -> None:
    x = np.zeros((4, 1))
    found = regression_references(Tables(x, x), np.full(4, 7.0), np.array([7.0, 7, 7, 8]))
    assert all(np.isfinite(value) for value in found.numbers.values())
    one = classification_references(Tables(x, x), np.zeros(4, int), np.array([0, 0, 1, 2]), 3)
    assert all(np.isfinite(value) for value in one.numbers.values())


def test_logistic_probabilities_are_those_of_the_law() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20_000, 1))
    truth = 1 / (1 + np.exp(-2 * x[:, 0]))
    y = (rng.random(20_000) < truth).astype(int)
    found = logistic_probabilities(Tables(x, x[:9]), y, 3)
    np.testing.assert_allclose(found[:, 1], truth[:9], atol=0.03)
    assert (found[:, 2] == 0).all()
    shares = classification_references(Tables(x, x), y, y, 3).numbers["nll_marginal"]
    assert shares == pytest.approx(np.log(2), abs=0.01)


@pytest.mark.parametrize("target", ["y", "name"])
def test_a_run_keeps_them_and_opens_without_them(target: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=60)
    columns = {"x": x, "y": 2 * x + rng.normal(size=60), "name": np.where(x > 0, "b", "a")}
    pd.DataFrame(columns).to_csv(tmp_path / "table.csv", index=False)
    settings = FitSettings(
        table=str(tmp_path / "table.csv"),
        target=target,
        hidden=(2,),
        method="deep_ensemble",
        method_settings=("num_members=2", "training.max_epochs=20"),
    )
    folder = tmp_path / "run"
    metrics = workflow.fit(settings, folder).metrics
    assert metrics["nll_linear"] < metrics["nll_marginal"]
    assert ("crps_linear" in metrics) == (target == "y")
    scores = report_data(folder).targets[0].scores
    assert scores is not None
    assert -scores.network.mean() == pytest.approx(metrics["nll"])
    assert -scores.linear.mean() == pytest.approx(metrics["nll_linear"])
    kept = read_json(folder / "metrics.json", dict)
    older = {name: kept[name] for name in kept if not name.endswith(("_linear", "_marginal"))}
    write_json(folder / "metrics.json", older)
    assert "nll_linear" not in read_metrics(folder / "metrics.json")
