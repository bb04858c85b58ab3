"""Evidence by a ladder of temperatures, against closed forms; and what is told of three ways."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tools.deep_line import LINE

from credence.density.posterior import Posterior
from credence.ensembles.diagnostics import rhat
from credence.methods import ParallelTempering
from credence.models import MLP, Gaussian, Normal
from credence_papers.transdimensional import depth_ways
from credence_papers.transdimensional.depth_ways import (
    cells,
    from_crossings,
    from_evidences,
    from_jumps,
    from_particles,
)
from credence_papers.transdimensional.tables import DEPTH_WAYS


def line_posterior(depth: int) -> Posterior:
    prior = Gaussian(scaling="unit", bias_std=1e-6)
    network = MLP(1, (1,) * depth, "identity")
    return Posterior(network, prior, Normal(noise_std=LINE.noise_std), (LINE.x[:, None], LINE.y))


@pytest.mark.slow
@pytest.mark.usefixtures("float64")
def test_ladders_find_the_evidence_of_deep_linear_networks() -> None:
    """log p(d) / p(1), known by quadrature."""
    method = ParallelTempering(num_chains=6, num_rungs=8, num_draws=3000, num_warmup=500)
    exact = np.log(LINE.probabilities()[:3])
    runs = [method.run(depth, line_posterior(depth)) for depth in (1, 2, 3)]
    nats = np.stack([np.asarray(run.scalars["log_evidence"])[:, 0] for run in runs])
    means, errors = nats.mean(axis=1), nats.std(axis=1, ddof=1) / nats.shape[1] ** 0.5
    print(means - means[0], exact - exact[0], errors)
    assert errors.max() < 0.05
    z = (means - means[0] - exact + exact[0])[1:] / np.hypot(errors[1:], errors[0])
    assert np.abs(z).max() < 5
    assert max(float(rhat(np.asarray(run.scalars["log_likelihood"]))) for run in runs) < 1.02


def test_errors_are_those_of_independent_runs() -> None:
    """Errors are those of simulation; of a depth that no run has seen nothing is said."""
    rng = np.random.default_rng(1)
    nats = rng.normal([[0.0], [-1.0]], 0.2, size=(2, 400))
    found = from_evidences([{"nats": list(n), "rhat": 1.01, "seconds": 2.0} for n in nats])
    assert found["log_ratio"][1] == pytest.approx(-1, abs=5 * 0.2 * (2 / 400) ** 0.5)
    assert found["error"] == pytest.approx([0, 0.2 * (2 / 400) ** 0.5], rel=0.1)
    unbiased = from_particles([{"nats": list(n), "rhat": None, "seconds": 2.0} for n in nats])
    assert unbiased["log_evidence"][0] == pytest.approx(0.5 * 0.2**2, abs=0.06)
    counts = rng.multinomial(500, [0.6, 0.3, 0.1], size=2000) / 500
    told = {"rhat": 1.0, "seconds": 1.0}
    found = from_jumps([{"shares": [*row, 0.0], **told} for row in counts.tolist()])
    np.testing.assert_allclose(found["log_ratio"][:3], np.log([1, 0.5, 1 / 6]), atol=0.02)
    assert (found["log_ratio"][3], found["error"][3]) == (None, None)
    spread = np.log(counts[:, 1] / counts[:, 0]).std() / 2000**0.5
    assert found["error"][1] == pytest.approx(spread, rel=0.1)
    gap = from_jumps([{"shares": [0.5, 0.0, 0.5], **told}] * 2)
    assert cells(gap) == ["0.00 ± 0.00", "–", "0.00 ± 0.00"]
    unseen = from_jumps([{"shares": [0.0, 1.0], **told}] * 2)
    assert cells(unseen) == ["–", "–"]


def test_the_prior_of_the_depth_is_divided_out() -> None:
    """Rates of jumps made under any prior tell of a uniform one."""
    log_prior = np.array([0.0, 2.0, 3.0])
    exact = np.log([1.0, 0.4, 0.1])
    shares = np.exp(exact + log_prior)
    told = {"rhat": 1.0, "seconds": 1.0}
    up, down = [0.3, 0.2, 0.0], [0.0, *(np.array([0.3, 0.2]) * shares[:-1] / shares[1:])]
    rates = [{"up": [up[d]] * 2, "down": [down[d]] * 2, **told} for d in range(3)]
    np.testing.assert_allclose(from_crossings(rates, log_prior)["log_ratio"], exact)


def test_the_prior_of_the_depth_is_that_of_the_crossings() -> None:
    effort, problem = DEPTH_WAYS.efforts["laptop"], DEPTH_WAYS.problems[0].problem
    assert effort.crossing(problem).depth_prior == effort.depth_prior
    nats = effort.log_prior(problem)
    k = np.arange(1, 9)
    np.testing.assert_allclose(nats, (k - 1) * np.log(10.5) - np.cumsum(np.log(k)), rtol=1e-6)


def test_of_a_step_that_no_run_made_nothing_is_said() -> None:
    told = {"rhat": 1.0, "seconds": 1.0}
    rates = [([0.2, 0.2], [0.0, 0.0]), ([0.0, 0.0], [0.4, 0.4]), ([0.1, 0.1], [0.1, 0.1])]
    found = from_crossings([{"up": u, "down": d, **told} for u, d in rates], np.zeros(3))
    assert cells(found) == ["0.00 ± 0.00", "-0.69 ± 0.00", "–"]


def test_the_study_goes_piece_by_piece(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """No piece is run twice; a page and a table come of it."""
    ran = []

    def piece(problem: Any, effort: Any, seed: int, number: int) -> dict[str, Any]:
        ran.append(number)
        return {"nats": [-1.0 * number, -1.1 * number], "rhat": 1.01, "seconds": 1.0}

    monkeypatch.setitem(depth_ways.PIECES, "ladder", piece)
    study = replace(DEPTH_WAYS, problems=DEPTH_WAYS.problems[2:3])
    for _ in range(2):
        summary = study.run(tmp_path, size="smoke")
    assert ran == [1, 2]
    assert summary["ways"][0]["log_ratio"] == pytest.approx([0, -1.05])
    assert "log p(depth)" in (tmp_path / "report.html").read_text()
    assert study.table(summary).row_count == 1
    again = study.run(tmp_path / "seeds", size="smoke", num_seeds=2)["ways"]
    assert [each["name"] for each in again] == ["ladder, seed 0", "ladder, seed 1"]


def pieces_of(monkeypatch: pytest.MonkeyPatch, way: str, piece: dict[str, Any]) -> list[int]:
    """The pieces that are run from now on, each with that result."""
    ran: list[int] = []
    monkeypatch.setitem(depth_ways.PIECES, way, lambda *about: ran.append(about[-1]) or piece)
    return ran


def only(way: str) -> depth_ways.DepthStudy:
    return replace(DEPTH_WAYS, problems=tuple(p for p in DEPTH_WAYS.problems if p.way == way))


def test_a_deeper_study_of_crossings_keeps_what_is_there(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    piece = {"up": [0.2] * 2, "down": [0.1] * 2, "rhat": 1.01, "seconds": 1.0}
    ran, study = pieces_of(monkeypatch, "crossings", piece), only("crossings")
    study.run(tmp_path, size="smoke")
    deeper = {"smoke": replace(study.efforts["smoke"], depths=3)}
    (row,) = replace(study, efforts=deeper).run(tmp_path, size="smoke")["ways"]
    assert ran == [1, 2, 3]
    prior = deeper["smoke"].log_prior(study.problems[0].problem)
    np.testing.assert_allclose(row["log_ratio"], np.log(2) * np.arange(3) - prior, rtol=1e-6)


def test_further_batches_of_ladders_keep_what_is_there(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def piece(problem: Any, effort: Any, seed: int, *which: int) -> dict[str, Any]:
        asked.append(which)
        nats = [-1.0 * which[0] + 0.1 * len(which)] * 2
        return {"nats": nats, "rhat": 1.0 + len(which) / 100, "seconds": 1.0}

    monkeypatch.setitem(depth_ways.PIECES, "ladder", piece)
    study = only("ladder")
    study.run(tmp_path, size="smoke")
    more = {"smoke": replace(study.efforts["smoke"], num_batches={"ladder": 2})}
    (row,) = replace(study, efforts=more).run(tmp_path, size="smoke")["ways"]
    assert asked == [(1,), (2,), (1, 1), (2, 1)]
    assert row["log_evidence"] == pytest.approx([-0.85, -1.85])
    assert (row["rhat"], row["seconds"], row["num_pieces"]) == (1.02, 4.0, 2)
    assert row["error"][1] == pytest.approx((2 * 0.01 / 3 / 4) ** 0.5)


def test_ladders_of_further_batches_have_their_own_random_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    keys = []

    def told(self: Any, key: int, posterior: Any) -> Any:
        keys.append(key)
        raise InterruptedError

    monkeypatch.setattr(depth_ways.ParallelTempering, "run", told)
    monkeypatch.setattr(depth_ways, "sized", lambda *about: None)
    effort, problem = DEPTH_WAYS.efforts["smoke"], DEPTH_WAYS.problems[0].problem
    for piece in (depth_ways.by_ladder, depth_ways.by_crossings):
        for which in ((1,), (2,), (1, 1), (2, 1)):
            with pytest.raises(InterruptedError):
                piece(problem, effort, 0, *which)
    assert len(set(keys)) == 8


def test_nothing_is_said_of_the_agreement_of_particles(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    piece = {"nats": [-1.0, -1.1], "rhat": None, "seconds": 1.0}
    pieces_of(monkeypatch, "particles", piece)
    summary = only("particles").run(tmp_path, size="smoke")
    assert summary["ways"][0]["converged"] is None
    assert summary["converged"] is True


def test_chains_that_stand_apart_show_it(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    piece = {"nats": [-1.0, -1.1], "rhat": float("inf"), "seconds": 1.0}
    pieces_of(monkeypatch, "ladder", piece)
    summary = only("ladder").run(tmp_path, size="smoke")
    assert (summary["ways"][0]["rhat"], summary["converged"]) == ("inf", False)
    assert list(only("ladder").table(summary).columns[2].cells) == ["inf"]


def test_at_paper_size_every_way_gets_more() -> None:
    laptop, paper = (DEPTH_WAYS.efforts[size] for size in ("laptop", "paper"))
    draws = [effort.jumps.num_chains * effort.jumps.num_draws for effort in (laptop, paper)]
    assert draws[1] >= draws[0]
    for name in ("num_runs", "num_particles", "chain_length", "num_rungs", "num_draws"):
        assert getattr(paper, name) >= getattr(laptop, name)
