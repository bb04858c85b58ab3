"""Parallel tempering as a whole method: exact posteriors, evidences, and two modes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tools.exact import linear_regression, weights
from tools.moments import chain_z, moment_z
from tools.stops import AfterBlocks, Stop

from credence import Posterior, methods, models
from credence.ensembles.ensemble import Ensemble
from credence.errors import InputError
from credence.methods import ParallelTempering
from credence.methods.evidence import LogEvidence, bennett, ladder_evidence
from credence.methods.exchanges import Exchanges, told_of_ladder
from credence.methods.training import Training

PROBLEM = linear_regression()
QUICK: dict[str, Any] = {"training": Training(max_epochs=100), "num_rungs": 6}


@pytest.fixture(scope="module")
def ensemble() -> Ensemble:
    method = ParallelTempering(num_chains=32, num_draws=250, num_warmup=300, **QUICK)
    return method.run(1, PROBLEM.posterior)


@pytest.mark.rotates(3)
def test_posterior_and_evidence_of_a_linear_regression(ensemble: Ensemble) -> None:
    wrong = PROBLEM._replace(noise_std=1.5 * PROBLEM.noise_std)
    nats = np.asarray(ensemble.scalars["log_evidence"])[:, :1]
    right, planted = (chain_z(nats, p.log_evidence()).max() for p in (PROBLEM, wrong))
    z = moment_z(weights(ensemble), PROBLEM)
    print(f"moments z {z:.1f}; evidence z {right:.1f}, of another noise {planted:.1f}")
    assert max(z, right) < 4.5
    assert moment_z(weights(ensemble), wrong) > 8
    assert planted > 8


@pytest.mark.rotates(3)
def test_scalars_and_findings_say_how_the_ladder_is_travelled(ensemble: Ensemble) -> None:
    found = methods.findings(ensemble)
    exchanges = found["exchanges"]
    assert isinstance(found["log_evidence"], LogEvidence)
    assert min(exchanges.num_restarts) > 1
    assert exchanges.settled is None
    assert np.std(exchanges.rates) < 0.1, "equally often"
    assert all(np.shape(each) == (32, 250) for each in ensemble.scalars.values())
    assert Exchanges.read(exchanges.entries(), {}) == exchanges
    assert "of the prior came down" in exchanges.sentences()[0]
    assert ensemble.cost.likelihood_evaluations > np.sum(ensemble.scalars["num_gradients"])


def test_a_draw_without_a_turn_has_the_last_known_rate() -> None:
    """No pair has a turn in every second step of two rungs."""
    info = {
        "acceptance_rate": np.ones((1, 6, 2)),
        "log_likelihood": np.zeros((1, 6, 2)),
        "exchange_rate": np.array([[[np.nan], [0.8], [np.nan], [0.6], [np.nan], [np.nan]]]),
        "is_restart": np.zeros((1, 6)),
    }
    scalars, _ = told_of_ladder(info, np.array([0.0, 1.0]), 0.0)
    np.testing.assert_allclose(scalars["exchange_rate"], [[0.8, 0.8, 0.8, 0.6, 0.6, 0.6]])


def test_no_restart_is_no_convergence() -> None:
    rates = np.full((2, 5, 2), [0.1, 0.3])
    rates[:, ::2, 1] = rates[:, 1::2, 0] = np.nan  # they take turns
    found = Exchanges.measured(
        np.array([0, 0.1, 1]), rates, np.array([[0.0] * 5, [1.0, 0.0, 1.0, 0.0, 0.0]])
    )
    assert found.rates == pytest.approx((0.1, 0.3))
    assert found.num_restarts == (0, 2)
    assert found.settled is False
    assert "In 1 chain no draw" in found.reason
    assert "or 4 rungs or more" in found.reason
    assert Exchanges.read(found.entries(), {}) == found
    assert Exchanges.read({}, {}) is None
    settled = Exchanges.measured(np.array([0, 0.1, 1]), rates, np.ones((2, 5)))
    assert settled.settled is None


def one_neuron(gap: float = 2.0) -> Posterior:
    """One neuron of tanh without ambiguity but its sign: two modes, each other's mirror image."""
    x = np.linspace(-2, 2, 40, dtype=np.float32)[:, None]
    y = gap * np.tanh(1.5 * x[:, 0]) + 0.3 * np.random.default_rng(0).normal(size=40)
    prior = models.Gaussian(scaling="unit", bias_std=0.1)
    return Posterior(models.MLP(1, (1,)), prior, models.Normal(0.3), (x, y))


@pytest.mark.rotates(3)
def test_chains_cross_between_modes_that_stop_others() -> None:
    """The sign of the neuron is a fair coin, for every chain."""
    posterior = one_neuron()
    found = ParallelTempering(
        num_chains=8, num_draws=800, num_warmup=400, num_rungs=10,
        training=Training(max_epochs=100),
    ).run(0, posterior)  # fmt: skip
    sign = np.sign(posterior_weights(found))
    stuck = np.sign(posterior_weights(methods.MCLMC(num_chains=8, num_draws=400).run(0, posterior)))
    print("means of the sign:", sign.mean(axis=1), "MCLMC:", stuck.mean(axis=1))
    assert chain_z(sign[..., None], np.zeros(1)).max() < 4.5
    assert np.all(np.abs(sign.mean(axis=1)) < 0.9)
    assert np.all(np.abs(stuck.mean(axis=1)) == 1)


def posterior_weights(ensemble: Ensemble) -> np.ndarray:
    """The weight into the neuron (chain, draw)."""
    return np.asarray(ensemble.params.network[0].kernel, float)[..., 0, 0]


def test_the_same_draws_after_a_stop(tmp_path: Path) -> None:
    method = ParallelTempering(num_chains=2, num_draws=60, num_warmup=50, **QUICK)
    whole = method.run(3, PROBLEM.posterior)
    with pytest.raises(Stop):
        method.run(3, PROBLEM.posterior, folder=tmp_path, progress=AfterBlocks(6))
    again = method.run(3, PROBLEM.posterior, folder=tmp_path)
    np.testing.assert_array_equal(weights(whole), weights(again))
    assert whole.provenance.found == again.provenance.found


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"num_rungs": 1}, "num_rungs must be at least 2"),
        ({"num_leapfrogs": 0}, "num_leapfrogs"),
        ({"num_leapfrogs": 43}, "between 1 and 42"),
        ({"kernel": "pcn"}, "takes no metric"),
        ({"kernel": "mclcm"}, "mclmc"),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, Any], match: str) -> None:
    with pytest.raises(InputError, match=match):
        ParallelTempering(**settings)


def test_bridge_sampling_bears_draws_without_a_likelihood() -> None:
    rng = np.random.default_rng(0)
    low, high = rng.normal(size=(2, 200))
    right = bennett(low, high)
    low[0] = -1e30
    few = bennett(low, high)
    assert few == pytest.approx(right, abs=0.05)
    for value in (-np.inf, np.nan):
        low[0] = value
        assert bennett(low, high) == pytest.approx(few, abs=1e-6)
    assert bennett(np.full(5, -np.inf), high[:5]) == -np.inf


def test_bridge_sampling_between_gaussians() -> None:
    """log of the ratio of two normalising constants, the ratio of two standard deviations."""
    rng = np.random.default_rng(0)
    stds, count = np.array([1.0, 2.0]), 400
    found = []
    for _ in range(100):
        draws = rng.normal(size=(2, count)) * stds[:, None]
        low, high = (0.5 * (1 / stds[0] ** 2 - 1 / stds[1] ** 2) * each**2 for each in draws)
        found.append(bennett(low, high))
    error = np.std(found) / 10
    assert abs(np.mean(found) - np.log(2.0)) < 4.5 * error
    assert abs(np.mean(found)) > 8 * error


def test_evidence_of_a_ladder_is_a_product_of_ratios() -> None:
    """One normal observation with a normal prior: draws of every rung are exact."""
    rng, powers = np.random.default_rng(1), np.array([0.0, 0.1, 0.4, 1.0])
    y, std = 1.5, 0.5
    precision = 1 + powers / std**2
    nats = []
    for _ in range(60):
        draws = rng.normal(powers * y / std**2 / precision, precision**-0.5, size=(400, 4))
        nats.append(ladder_evidence(stats.norm.logpdf(y, draws, std), powers))
    exact = stats.norm.logpdf(y, 0, np.hypot(1, std))
    assert abs(np.mean(nats) - exact) < 4.5 * np.std(nats) / 60**0.5
