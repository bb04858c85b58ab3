"""Evidence by a ladder of temperatures, against closed forms; and what is told of three ways."""

from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest
from tools.deep_line import LINE

from credence.density.posterior import Posterior
from credence.models import MLP, Gaussian, Normal
from credence_papers.transdimensional import depth_ways
from credence_papers.transdimensional.depth_ways import from_evidences, from_jumps, from_particles
from credence_papers.transdimensional.ladder import (
    bennett,
    ladder_evidence,
    log_evidence,
    prior_scales,
    temperatures,
)
from credence_papers.transdimensional.tables import DEPTH_WAYS


def test_bennett_finds_a_known_ratio() -> None:
    """N(0, 1) and exp(0.3) N(0.5, 1): the ratio is 0.3 nats."""
    rng = np.random.default_rng(0)
    low = rng.normal(size=(40, 2000))
    high = 0.5 + rng.normal(size=(40, 2000))
    log_ratio = lambda x: 0.3 + 0.5 * x - 0.125  # noqa: E731
    found = np.array([bennett(*map(log_ratio, pair)) for pair in zip(low, high, strict=True)])
    error = found.std(ddof=1) / len(found) ** 0.5
    assert error < 0.01
    assert abs(found.mean() - 0.3) < 5 * error
    planted = np.array([log_ratio(each).mean() for each in low])  # draws of one law alone
    assert abs(planted.mean() - 0.3) > 9 * error


def line_posterior(depth: int) -> Posterior:
    prior = Gaussian(scaling="unit", bias_std=1e-6)
    network = MLP(1, (1,) * depth, "identity")
    return Posterior(network, prior, Normal(noise_std=LINE.noise_std), (LINE.x[:, None], LINE.y))


@pytest.mark.slow
@pytest.mark.usefixtures("float64")
def test_ladders_find_the_evidence_of_deep_linear_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    """log p(d) / p(1), known by quadrature; without the lowest rungs it is missed."""
    sizes = {"num_runs": 6, "num_rungs": 8, "num_draws": 3000, "num_warmup": 500}
    exact = np.log(LINE.probabilities()[:3])
    found = [ladder_evidence(jax.random.key(d), line_posterior(d), **sizes) for d in (1, 2, 3)]
    nats = np.stack([each.nats for each in found])
    means, errors = nats.mean(axis=1), nats.std(axis=1, ddof=1) / nats.shape[1] ** 0.5
    print(means - means[0], exact - exact[0], errors)
    assert errors.max() < 0.05
    z = (means - means[0] - exact + exact[0])[1:] / np.hypot(errors[1:], errors[0])
    assert np.abs(z).max() < 5
    assert max(each.rhat for each in found) < 1.02
    monkeypatch.setattr(
        "credence_papers.transdimensional.ladder.temperatures", lambda n: np.linspace(0.2, 1, n)
    )
    planted = [ladder_evidence(jax.random.key(d), line_posterior(d), **sizes) for d in (1, 3)]
    low, high = (each.nats.mean() for each in planted)
    assert abs(high - low - exact[2] + exact[0]) > 5 * np.hypot(errors[2], errors[0])


def test_temperatures_go_from_prior_to_posterior() -> None:
    powers = temperatures(5)
    assert (powers[0], powers[-1]) == (0, 1)
    flat = np.zeros((10, 5))
    assert log_evidence(flat, powers) == pytest.approx(0, abs=1e-9)
    posterior = Posterior(MLP(1, (2,)), Gaussian(), Normal(), (np.ones((3, 1)), np.ones(3)))
    with pytest.raises(ValueError, match="fixed noise"):
        prior_scales(posterior.model, posterior.data)


def test_errors_are_those_of_independent_runs() -> None:
    """Errors are those of simulation; a depth that no run has seen is left out."""
    rng = np.random.default_rng(1)
    nats = rng.normal([[0.0], [-1.0]], 0.2, size=(2, 400))
    found = from_evidences([{"nats": list(n), "rhat": 1.01, "seconds": 2.0} for n in nats])
    assert found["log_ratio"][1] == pytest.approx(-1, abs=5 * 0.2 * (2 / 400) ** 0.5)
    assert found["error"] == pytest.approx([0, 0.2 * (2 / 400) ** 0.5], rel=0.1)
    unbiased = from_particles([{"nats": list(n), "rhat": None, "seconds": 2.0} for n in nats])
    assert unbiased["log_evidence"][0] == pytest.approx(0.5 * 0.2**2, abs=0.06)
    counts = rng.multinomial(500, [0.6, 0.3, 0.1], size=2000) / 500
    pieces = [{"shares": [*row, 0.0], "rhat": 1.0, "seconds": 1.0} for row in counts.tolist()]
    found = from_jumps(pieces)
    np.testing.assert_allclose(found["log_ratio"], np.log([1, 0.5, 1 / 6]), atol=0.02)
    spread = np.log(counts[:, 1] / counts[:, 0]).std() / 2000**0.5
    assert found["error"][1] == pytest.approx(spread, rel=0.1)


def test_the_study_goes_piece_by_piece(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """No piece is run twice; a page and a table come of it."""
    ran = []

    def piece(problem: Any, effort: Any, seed: int, number: int) -> dict[str, Any]:
        ran.append(number)
        return {"nats": [-1.0 * number, -1.1 * number], "rhat": 1.01, "seconds": 1.0}

    monkeypatch.setattr(depth_ways, "by_ladder", piece)
    study = replace(DEPTH_WAYS, problems=DEPTH_WAYS.problems[2:])
    for _ in range(2):
        summary = study.run(tmp_path, size="smoke")
    assert ran == [1, 2]
    assert summary["ways"][0]["log_ratio"] == pytest.approx([0, -1.05])
    assert "log p(depth)" in (tmp_path / "report.html").read_text()
    assert study.table(summary).row_count == 1
