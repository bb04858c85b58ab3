"""Averages of predictions as draws come: the same numbers as of kept draws, in bounded memory."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tools.exact import linear_regression

from credence.density.posterior import Posterior
from credence.engine.phases import Phase
from credence.ensembles.averages import AveragedPredictions
from credence.ensembles.ensemble import Ensemble
from credence.ensembles.scores import averaged_scores, classification_scores
from credence.errors import InputError
from credence.methods import MAP, NUTS, SGHMC, SGLD, NonlinearSGLD
from credence.methods.interacting.partner_warnings import DegenerateAuxiliaryWarning
from credence.methods.stochastic_gradient import StochasticGradient
from credence.methods.training import Training
from credence.models import MLP, Categorical, Gaussian

pytestmark = pytest.mark.filterwarnings(
    f"ignore::{DegenerateAuxiliaryWarning.__module__}.{DegenerateAuxiliaryWarning.__name__}"
)

SETTINGS: dict[str, Any] = {
    "num_chains": 3,
    "num_draws": 7,
    "num_warmup": 20,
    "thinning": 4,
    "batch_size": 8,
    "training": Training(max_epochs=5),
}
METHODS = {
    "sgld": SGLD(**SETTINGS),
    "sghmc": SGHMC(**SETTINGS),
    "nonlinear": NonlinearSGLD(**SETTINGS, auxiliary_kernel="sghmc"),
}


def labelled(num: int = 40) -> Posterior:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(num, 3))
    y = np.argmax(x + rng.normal(size=x.shape), axis=1)
    return Posterior(MLP(3, (4,)), Gaussian(), Categorical(), (x, y))


LABELLED = labelled()
X, Y = np.asarray(LABELLED.data.x), np.asarray(LABELLED.data.y)


@pytest.fixture
def in_one_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of one draw in both runs: random numbers come block by block."""
    monkeypatch.setattr(StochasticGradient, "round_draws", 1)


def both(method: Any, posterior: Posterior, x: Any, y: Any) -> tuple[Ensemble, AveragedPredictions]:
    return method.run(3, posterior), method.run_averaged(3, posterior, x, y)


@pytest.mark.usefixtures("in_one_way")
@pytest.mark.parametrize("name", METHODS)
def test_averages_are_those_of_the_kept_draws(name: str) -> None:
    kept, averaged = both(METHODS[name], LABELLED, X, Y)
    predictive = kept.predictive(X)
    functions = kept.functions(X)
    assert (averaged.num_chains, averaged.num_draws) == functions.shape[:2]
    np.testing.assert_allclose(averaged.mean(), predictive.mean(), atol=1e-5)
    np.testing.assert_allclose(averaged.log_prob(), predictive.log_prob(jnp.asarray(Y)), atol=1e-4)
    np.testing.assert_allclose(averaged.epistemic_variance(), functions.var(axis=(0, 1)), atol=1e-5)
    np.testing.assert_allclose(
        averaged.entropy_aleatoric(), predictive.entropy_aleatoric(), atol=1e-4
    )
    assert averaged.cost.gradient_evaluations == kept.cost.gradient_evaluations
    numbers = averaged_scores(averaged, Y).numbers
    for score, value in classification_scores(kept, X, Y).numbers.items():
        assert numbers[score] == pytest.approx(value, abs=1e-4), score
    half = replace(kept, params=jax.tree.map(lambda leaf: leaf[:, :4], kept.params))
    assert np.abs(half.predictive(X).mean() - averaged.mean()).max() > 1e-3  # would be caught


@pytest.mark.usefixtures("in_one_way")
def test_paths_are_those_of_the_draws_so_far() -> None:
    kept, averaged = both(METHODS["sgld"], LABELLED, X, Y)
    paths = averaged.averages.paths
    functions = kept.functions(X)
    for index in range(kept.num_draws):
        cloud, so_far = functions[:, index].mean(axis=0), functions[:, : index + 1].mean((0, 1))
        for name, p in (("cloud_", cloud), ("", so_far)):
            assert paths[f"{name}error"][index] == pytest.approx(np.mean(p.argmax(axis=1) != Y))
            nll = -np.log(p[np.arange(len(Y)), Y]).mean()
            assert paths[f"{name}nll"][index] == pytest.approx(nll, rel=1e-4)


@pytest.mark.usefixtures("in_one_way")
def test_r_hat_is_gelman_and_rubins() -> None:
    kept, averaged = both(METHODS["sgld"], LABELLED, X, Y)
    functions = np.asarray(kept.functions(X), float)
    num = functions.shape[1]
    within = functions.var(axis=1, ddof=1).mean(axis=0)
    between = functions.mean(axis=1).var(axis=0, ddof=1)
    exact = np.sqrt((num - 1) / num + between / within).max()
    assert averaged.max_rhat() == pytest.approx(exact, rel=1e-3)
    mean = np.array(averaged.averages.mean)
    mean[:, 0] = np.nan
    broken = replace(averaged, averages=averaged.averages._replace(mean=jnp.asarray(mean)))
    assert broken.verdict()[0] is False
    assert "not finite" in broken.verdict()[1]


@pytest.mark.usefixtures("in_one_way")
def test_regression() -> None:
    problem = linear_regression()
    kept, averaged = both(METHODS["sgld"], problem.posterior, problem.x, problem.y)
    predictive = kept.predictive(problem.x)
    np.testing.assert_allclose(averaged.mean(), predictive.mean(), atol=1e-5)
    np.testing.assert_allclose(averaged.std(), predictive.std(), rtol=1e-4)
    truth = jnp.asarray(problem.y[:, None], jnp.float32)
    np.testing.assert_allclose(averaged.log_prob(), predictive.log_prob(truth), atol=1e-4)
    residuals = np.asarray(averaged.mean())[:, 0] - problem.y
    last = averaged.averages.paths["error"][-1]
    assert last == pytest.approx(np.sqrt(np.mean(residuals**2)), rel=1e-4)


@pytest.mark.parametrize("averages", [True, False])
def test_memory_does_not_grow_with_the_number_of_draws(
    averages: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kept draws grow by all weights each; averages by the numbers of Info."""
    sizes: list[int] = []
    advance = Phase.advance

    def measured(self: Phase, num_draws: int) -> None:
        advance(self, num_draws)
        held = jax.tree.leaves((self.blocks, self.saved.memory, self.saved.states))
        sizes.append(sum(np.asarray(leaf).nbytes for leaf in held))

    monkeypatch.setattr(Phase, "advance", measured)
    monkeypatch.setattr(StochasticGradient, "round_draws", 1)
    method = replace(METHODS["sgld"], num_draws=30)
    method.run_averaged(0, LABELLED, X, Y) if averages else method.run(0, LABELLED)
    growth = (sizes[-1] - sizes[-21]) / 20  # a draw
    weights = 3 * LABELLED.num_weights * 4
    print(f"{growth:.0f} bytes a draw; weights of a draw: {weights}")
    assert (growth < 100) if averages else (growth > weights)


def test_a_stopped_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed between two draws, and resumed, it has the same averages bit for bit."""
    method = METHODS["sghmc"]
    whole = method.run_averaged(1, LABELLED, X, Y)
    advance, count = Phase.advance, [0]

    def killed(self: Phase, num_draws: int) -> None:
        advance(self, num_draws)
        count[0] += not self.keep_draws and self.block_draws == 1
        if count[0] == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr(Phase, "advance", killed)
    with pytest.raises(KeyboardInterrupt):
        method.run_averaged(1, LABELLED, X, Y, folder=tmp_path)
    monkeypatch.setattr(Phase, "advance", advance)
    resumed = method.run_averaged(1, LABELLED, X, Y, folder=tmp_path)
    np.testing.assert_array_equal(resumed.mean(), whole.mean())
    np.testing.assert_array_equal(resumed.averages.paths["nll"], whole.averages.paths["nll"])


class TestRefusals:
    @pytest.mark.parametrize("method", [NUTS(num_draws=4), MAP()])
    def test_methods_that_need_their_draws(self, method: Any) -> None:
        with pytest.raises(InputError, match="needs its draws"):
            method.run_averaged(0, LABELLED, X)

    def test_cycles(self) -> None:
        method = replace(METHODS["sghmc"], num_cycles=2)
        with pytest.raises(InputError, match="num_cycles=2 chooses among the draws"):
            method.run_averaged(0, LABELLED, X)

    def test_rows_that_do_not_fit(self) -> None:
        with pytest.raises(InputError, match=r"x has shape \(40, 2\)"):
            METHODS["sgld"].run_averaged(0, LABELLED, X[:, :2])
        with pytest.raises(InputError, match=r"y has shape \(39,\), but x has 40 rows"):
            METHODS["sgld"].run_averaged(0, LABELLED, X, Y[1:])

    def test_what_averages_do_not_have(self) -> None:
        averaged = METHODS["sgld"].run_averaged(0, LABELLED, X)
        with pytest.raises(InputError, match="No truths were given"):
            averaged.log_prob()
        with pytest.raises(InputError, match="averages of class probabilities"):
            averaged.std()


@pytest.mark.usefixtures("in_one_way")
def test_other_rows_are_averaged_too_and_count_in_no_score() -> None:
    others = 5 * X[:11]
    plain = METHODS["nonlinear"].run_averaged(3, LABELLED, X, Y)
    found = METHODS["nonlinear"].run_averaged(3, LABELLED, X, Y, others=others)
    alone = METHODS["nonlinear"].run_averaged(3, LABELLED, others)
    assert found.others is not None
    assert not found.others.has_truths
    np.testing.assert_allclose(found.mean(), plain.mean(), atol=1e-6)
    np.testing.assert_allclose(found.others.mean(), alone.mean(), atol=1e-6)
    np.testing.assert_allclose(found.others.rows(3, 5).mean(), alone.mean()[3:5], atol=1e-6)
    np.testing.assert_allclose(
        found.others.entropy_aleatoric(), alone.entropy_aleatoric(), atol=1e-5
    )
    assert found.max_rhat() == pytest.approx(plain.max_rhat(), rel=1e-4)
    for name, path in plain.averages.paths.items():
        np.testing.assert_allclose(found.averages.paths[name], path, rtol=1e-5)
    assert np.isnan(found.others.averages.paths["nll"]).all()
    with pytest.raises(InputError, match="others has shape"):
        METHODS["sgld"].run_averaged(0, LABELLED, X, Y, others=X[:, :2])
    with pytest.raises(InputError, match="not finite"):
        METHODS["sgld"].run_averaged(0, LABELLED, X, Y, others=np.where(X > 1, np.nan, X))
    with pytest.raises(InputError, match="There are 11 rows"):
        found.others.rows(11)


def test_other_rows_far_off_leave_the_paths_of_a_regression_alone() -> None:
    posterior = linear_regression().posterior
    x, y = np.asarray(posterior.data.x), np.asarray(posterior.data.y)
    plain = METHODS["sgld"].run_averaged(3, posterior, x, y)
    found = METHODS["sgld"].run_averaged(3, posterior, x, y, others=1e30 * np.ones_like(x[:2]))
    for name, path in plain.averages.paths.items():
        assert np.isfinite(path).all()
        np.testing.assert_allclose(found.averages.paths[name], path, rtol=1e-5)
