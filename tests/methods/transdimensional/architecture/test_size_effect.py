"""Does the size matter: losses of left-out rows against the closed form, and what is told."""

from typing import Any

import numpy as np
import pytest
from scipy import stats
from tools.ensembles import make_ensemble

from credence.density.posterior import Posterior
from credence.ensembles.diagnostics.stacking import leave_one_out, mean_with_error
from credence.methods import Transdimensional, findings
from credence.methods.transdimensional.architecture import size_effect as effect
from credence.methods.transdimensional.architecture.size_effect import (
    NATS_THAT_MATTER,
    SizeEffect,
    compared,
    groups_of,
)
from credence.models import MLP, PRIORS, Normal

STD = 0.7
WEIGHT = np.array([3.0, 2.0, 1.0, 1.0, 0.5, 1.0, 0.25, 1.0])


def line() -> tuple[np.ndarray, np.ndarray]:
    """Eight rows of y = slope * x + noise."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=8)
    return x, 1.3 * x + STD * rng.normal(size=8)


def law_of_slope(x: np.ndarray, y: np.ndarray, weight: np.ndarray) -> tuple[float, float]:
    """Mean and precision of the slope given weighted rows, under slope ~ N(0, 1)."""
    precision = 1 + np.sum(weight * x**2) / STD**2
    return np.sum(weight * x * y) / STD**2 / precision, precision


def left_out_losses(log_probs: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """-log p(y_i | other rows) of every row, from draws given all of them."""
    return -leave_one_out(log_probs, weight).log_probs


def exact_loss(x: np.ndarray, y: np.ndarray, weight: np.ndarray, row: int) -> float:
    """-log p(y_row | other rows)."""
    mean, precision = law_of_slope(x, y, np.where(np.arange(len(x)) == row, 0, weight))
    return -stats.norm.logpdf(y[row], x[row] * mean, (x[row] ** 2 / precision + STD**2) ** 0.5)


@pytest.mark.parametrize("weight", [np.ones(8), WEIGHT])
def test_losses_are_those_of_left_out_rows(weight: np.ndarray) -> None:
    x, y = line()
    mean, precision = law_of_slope(x, y, weight)
    exact = np.array([exact_loss(x, y, weight, row) for row in range(len(x))])
    runs = []
    for seed in range(20):
        slopes = mean + np.random.default_rng(seed).normal(size=4000) / precision**0.5
        log_probs = stats.norm.logpdf(y, slopes[:, None] * x, STD)
        runs.append(left_out_losses(log_probs, weight))
    found = np.mean(runs, axis=0)
    error = np.std(runs, axis=0, ddof=1) / len(runs) ** 0.5
    assert error.max() < 0.01
    assert np.abs((found - exact) / error).max() < 5
    planted = -np.log(np.exp(log_probs).mean(axis=0))  # rows that were learnt from
    assert np.abs((planted - exact) / error).max() > 9
    unweighted = left_out_losses(log_probs, np.ones(8))
    assert np.all(weight == 1) or np.abs((unweighted - exact) / error).max() > 9


def test_a_row_counts_as_often_as_it_stands_for_observations() -> None:
    values, weight = np.array([1.0, 2.0, 5.0]), np.array([2.0, 1.0, 1.0])
    assert mean_with_error(values, weight)[0] == np.mean([1, 1, 2, 5])
    assert mean_with_error(values, np.full(3, 4.0)) == mean_with_error(values)


def test_groups_are_of_sizes_and_have_enough_draws() -> None:
    counts = np.repeat([1, 2, 3, 9], [60, 500, 400, 40])
    found = {name: set(counts[there]) for name, there in groups_of(counts)}
    assert found == {
        "likeliest size": {2},
        "smallest networks": {1, 2},
        "largest networks": {3, 9},
    }
    assert groups_of(np.repeat([1, 2], [30, 10])) == []


def test_sizes_that_mean_nothing_make_no_difference() -> None:
    """Draws of one regression in groups at random; planted: all draws against a tenth of them."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=(40, 6))
    y = x @ rng.normal(size=6) + STD * rng.normal(size=40)
    covariance = np.linalg.inv(np.eye(6) + x.T @ x / STD**2)
    found, planted = [], []
    for _ in range(40):
        slopes = rng.multivariate_normal(covariance @ x.T @ y / STD**2, covariance, size=600)
        means = slopes @ x.T
        log_probs = stats.norm.logpdf(y, means, STD)
        counts = rng.permutation(np.repeat([1, 2, 3], [66, 468, 66]))
        groups = compared(log_probs, means[..., None], counts, np.ones(40))
        found.append([each["loss"] for each in groups if each["largest"] in (1, 3)])
        whole = left_out_losses(log_probs, np.ones(40)).mean()
        some = left_out_losses(log_probs[counts == 1], np.ones(40))
        planted.append(some.mean() - whole)
    found = np.array(found).mean(axis=1)
    error = found.std(ddof=1) / len(found) ** 0.5
    assert error < NATS_THAT_MATTER / 3
    assert abs(found.mean()) < 4.5 * error
    assert np.mean(planted) < -4 * np.std(planted, ddof=1) / len(planted) ** 0.5


def group(name: str, loss: float, **more: Any) -> Any:
    sizes = {"smallest": 1, "largest": 1, "share": 0.1, "away": 0.2, "is_judged": True}
    return {"name": name, "loss": loss, "loss_error": 0.01, **sizes, **more}


def test_a_size_that_matters_is_named() -> None:
    groups = (group("likeliest size", 0.0), group("smallest networks", 0.3))
    found = SizeEffect("neurons", groups)
    assert "smallest networks alone (1 neuron) would predict" in found.verdict
    assert SizeEffect.read(found.entries(), {}) == found
    assert "Does the size matter?" in str(found.section({}, is_converged=True))
    assert "hardly matters" in SizeEffect("layers", groups[:1]).verdict
    unjudged = SizeEffect("layers", (group("likeliest size", 9.0, is_judged=False),))
    assert "cannot tell" in unjudged.sentences()[0]


def test_damaged_entries_are_refused() -> None:
    with pytest.raises(ValueError, match="size_effect"):
        SizeEffect.read({"size_effect": {"noun": "neurons", "groups": [{"name": 1}]}}, {})
    assert SizeEffect.read({}, {}) is None
    assert SizeEffect.of(make_ensemble()) is None


def test_a_run_tells_whether_the_size_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    """End to end, with the precisions learnt by default."""
    monkeypatch.setattr(effect, "FEWEST", 25)
    x, y = line()
    method = Transdimensional(num_chains=2, num_draws=60, num_warmup=20, max_doublings=3)
    posterior = Posterior(
        MLP(1, (3,)), PRIORS[method.prior], Normal(), (x[:, None], y, [0.0] * 2 + [1.0] * 6)
    )
    ensemble = method.run(0, posterior)
    found = findings(ensemble)["size_effect"]
    assert found.noun == "neurons"
    assert all(np.isfinite(each["away"]) for each in found.groups)
    assert method._draws_precisions(posterior)
    assert not Transdimensional(sandwich=True)._draws_precisions(posterior)
