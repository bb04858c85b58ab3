"""Chains that leave out a fold each: their law, and what they say of rows they have not seen."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from tools.exact import LinearRegression, linear_regression, weights

from credence.density.posterior import Posterior
from credence.engine.driver import Driver
from credence.errors import InputError
from credence.kernels.ascent.optimizer import OptimizerState
from credence.kernels.leaving_out import LeavingOut
from credence.methods import Training
from credence.methods.base import as_key, fingerprint
from credence.methods.stacking import fold_rows, folds
from credence.methods.stacking.fold_rows import assign_folds
from credence.methods.stacking.folds import LEAST_WARMUP, FoldChains, of_fold
from credence.methods.stacking.left_out import left_out
from credence.methods.stacking.models import ModelSpec
from credence.methods.training import Best
from credence.models import MLP, Bernoulli, Gaussian, Normal

PROBLEM = linear_regression(num_points=24)
METHOD = FoldChains(
    num_chains=8,
    num_folds=4,
    num_draws=800,
    num_warmup=200,
    trajectory_length=1.5,
    training=Training(max_epochs=50),
)


def without(fold: int) -> LinearRegression:
    """The rows that chains see that leave out a fold."""
    kept = METHOD.folds_of(PROBLEM.posterior) != fold
    return PROBLEM._replace(x=PROBLEM.x[kept], y=PROBLEM.y[kept])


@pytest.fixture(scope="module")
def ensemble() -> Any:
    return METHOD.run(0, PROBLEM.posterior)


def largest_z(draws: np.ndarray, exact: np.ndarray) -> float:
    """Deviation of the mean of autocorrelated draws, in standard errors from means of batches."""
    batches = draws.reshape(-1, 50, draws.shape[-1]).mean(axis=1)
    error = batches.std(axis=0, ddof=1) / len(batches) ** 0.5
    return float(np.max(np.abs(batches.mean(axis=0) - exact) / error))


def test_each_chain_has_the_posterior_of_the_rows_it_sees(ensemble: Any) -> None:
    """Chain i leaves out fold i modulo 4, so chain 4 leaves out fold 0 again."""
    draws = weights(ensemble)
    for fold in range(4):
        mean, covariance = without(fold).solve()
        mine = draws[METHOD.leave_out(fold)].reshape(-1, 4)
        assert largest_z(mine, mean) < 4.5
        assert largest_z((mine - mean) ** 2, np.diag(covariance)) < 4.5
    others = np.stack([without(fold).solve()[0] for fold in (1, 2, 3)])
    mine = draws[METHOD.leave_out(0)].reshape(-1, 4)
    planted = [*others, PROBLEM.solve()[0]]
    assert min(largest_z(mine, mean) for mean in planted) > 8, "planted: other rows left out"


def test_rows_are_scored_by_chains_that_have_not_seen_them(ensemble: Any) -> None:
    found = left_out(ensemble, METHOD, PROBLEM.posterior).log_probs
    fold = METHOD.folds_of(PROBLEM.posterior)
    exact, seen = np.empty(24), stats.norm(*PROBLEM.predict(PROBLEM.x)).logpdf(PROBLEM.y)
    for each in range(4):
        mean, std = without(each).predict(PROBLEM.x[fold == each])
        exact[fold == each] = stats.norm(mean, std).logpdf(PROBLEM.y[fold == each])
    truths = jnp.asarray(PROBLEM.y[:, None], jnp.float32)
    predictive = ensemble.predictive(PROBLEM.x.astype(np.float32))
    density = np.exp(np.asarray(predictive.member_log_probs(truths), float)).reshape(8, 16, 50, 24)
    batches = np.stack([density[METHOD.leave_out(int(f)), ..., i] for i, f in enumerate(fold)], -1)
    batches = batches.mean(axis=2).reshape(-1, 24)
    error = batches.std(axis=0, ddof=1) / len(batches) ** 0.5
    assert np.max(np.abs(np.exp(found) - np.exp(exact)) / error) < 4.5
    assert np.abs(seen - exact).max() > 0.3, "planted: rows scored by chains that saw them"


def test_training_sees_neither_its_fold_nor_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """Targets of fold 0 and 1 change nothing of where chain 0 starts, but for when to stop."""
    found = []

    def never_better(best: Any, states: Any, *_: Any, **__: Any) -> Any:
        return best._replace(positions=states.position)

    monkeypatch.setattr(folds, "improve_on_next_fold", never_better)
    fold = METHOD.folds_of(PROBLEM.posterior)
    brief = replace(METHOD, training=Training(max_epochs=20), num_draws=4, num_warmup=4)
    monkeypatch.setattr(FoldChains, "folds_of", lambda self, *_: fold)
    starts: Any = []
    monkeypatch.setattr(Posterior, "anchored", lambda self, at: starts.append(at) or self.data)
    for changed in ((), (0, 1), (2,)):
        y = np.where(np.isin(fold, changed), -PROBLEM.y, PROBLEM.y)
        brief.run(0, PROBLEM._replace(y=y).posterior)
        found.append(np.asarray(starts[-1]))
    np.testing.assert_array_equal(found[0], found[1])
    assert np.abs(found[0] - found[2]).max() > 1e-3


def test_the_next_fold_says_when_to_stop() -> None:
    """A member's loss is that of the fold after its own, whatever the other rows hold."""
    posterior = PROBLEM.posterior
    data, fold = posterior.data, np.arange(24) % 4
    positions = posterior.init(jax.random.key(0), 2)
    states = LeavingOut(OptimizerState(positions, ()), jnp.asarray([0, 3]))
    best = Best(positions, jnp.full(2, np.inf), jnp.zeros(2))
    rows = fold_rows.FoldRows.of(fold, 4)
    found = fold_rows.improve_on_next_fold(best, states, data, rows, model=posterior.model)
    for member, fold in enumerate((1, 0)):
        rows = slice(fold, None, 4)
        params = posterior.unravel(positions[member])
        exact = posterior.model.pointwise_log_likelihood(params, data.x[rows], data.y[rows])
        np.testing.assert_allclose(found.loss[member], -jnp.mean(exact), rtol=1e-5)


def test_a_fold_of_rows_is_scored_by_all_chains_that_left_it_out() -> None:
    """Folds need not have equally many rows, nor equally many chains."""
    posterior, model = PROBLEM.posterior, PROBLEM.posterior.model
    fold = np.minimum(np.arange(24) % 5, 3)
    positions = posterior.init(jax.random.key(1), 6)
    chain_folds = jnp.asarray([0, 1, 2, 3, 0, 3])
    states = LeavingOut(OptimizerState(positions, ()), chain_folds)
    rows = fold_rows.FoldRows.of(fold, 4)
    found = np.asarray(fold_rows.unseen_log_prob(states, posterior.data, rows, model=model))
    all_rows = [
        model.pointwise_log_likelihood(posterior.unravel(each), *posterior.data[:2])
        for each in positions
    ]
    exact = np.logaddexp.reduce(
        np.where(fold == np.asarray(chain_folds)[:, None], all_rows, -np.inf), axis=0
    )
    np.testing.assert_allclose(
        found[rows.is_there], exact[rows.positions[rows.is_there]], rtol=1e-5
    )
    assert sorted(rows.positions[rows.is_there]) == list(range(24))
    left = rows.at(posterior.data, jnp.asarray(1))
    assert left.weight.sum() == np.sum(fold == 1)


def test_folds_are_alike_in_their_targets() -> None:
    y = np.random.default_rng(0).normal(size=103)
    fold = assign_folds(y, 5)
    assert sorted(np.bincount(fold)) == [20, 20, 21, 21, 21]
    np.testing.assert_array_equal(fold, assign_folds(y[:, None], 5))
    assert np.any(fold != assign_folds(y, 5, seed=1))
    ranks = np.argsort(np.argsort(y))
    by_chance = np.random.default_rng(0).permutation(fold)
    alike, planted = (
        np.ptp([ranks[each == k].mean() for k in range(5)]) for each in (fold, by_chance)
    )
    assert alike < 5 < planted
    labels = np.repeat([0, 1], [95, 5])
    assert [np.sum(labels[assign_folds(labels, 5) == k]) for k in range(5)] == [1] * 5


def test_every_fold_has_rows_with_weight() -> None:
    """A fold of rows that do not count says nothing of when to stop: its loss is no number."""
    random = np.random.default_rng(0)
    y, weight = random.normal(size=40), np.ones(40)
    weight[assign_folds(y, 5) == 3] = 0.0
    fold = assign_folds(y, 5, weight=weight)
    counts = np.bincount(fold, weights=weight, minlength=5)
    assert np.ptp(counts) <= 1
    assert counts.min() > 0
    assert sorted(np.bincount(fold)) == [8] * 5
    np.testing.assert_array_equal(assign_folds(y, 5, weight=random.random(40)), assign_folds(y, 5))


def test_it_is_resumed_bit_for_bit(tmp_path: Any, ensemble: Any) -> None:
    short = replace(METHOD, num_draws=20, num_warmup=20)
    whole = short.run(1, PROBLEM.posterior, folder=tmp_path)
    again = short.run(1, PROBLEM.posterior, folder=tmp_path)
    np.testing.assert_array_equal(weights(whole), weights(again))
    assert of_fold(ensemble, METHOD, 2).num_members == 2 * METHOD.num_draws


def test_large_tables_have_shorter_warmups_and_trajectories_and_then_fewer_steps() -> None:
    posterior, method = PROBLEM.posterior, FoldChains(max_integration_steps=90)
    gradient = posterior.num_points * posterior.num_weights * method.num_chains
    steps = method.num_warmup + method.num_draws
    assert method.within(posterior, 60 * steps * gradient) == method
    assert method.within(posterior, 60 * 170 * gradient) == replace(method, num_warmup=150)
    steps = LEAST_WARMUP + method.num_draws
    shortest = replace(method, num_warmup=LEAST_WARMUP)
    assert method.within(posterior, 60 * steps * gradient) == shortest
    brief = lambda epochs: replace(method.training, max_epochs=epochs)  # noqa: E731
    shorter = method.within(posterior, 20 * steps * gradient)
    assert shorter == replace(shortest, max_integration_steps=30, training=brief(20 * steps))
    fewer = method.within(posterior, 4 / 3 * steps * gradient)
    least = {"max_integration_steps": 8}
    assert fewer == replace(method, num_warmup=25, num_draws=5, training=brief(160), **least)
    once = method.within(posterior, 1e-9)
    assert once == replace(method, num_warmup=1, num_draws=1, training=brief(1), **least)
    assert once.run(0, posterior).num_members == method.num_chains
    large = linear_regression(num_points=4000).posterior
    work = 20 * steps * large.num_points * large.num_weights * method.num_chains
    assert method.within(large, work / 2).max_integration_steps == 30, "twice that of 1000 rows"


def test_the_warmup_ends_when_predictions_no_longer_get_better() -> None:
    """Linear regression forgets its start at once; the data have three windows to say so."""
    drivers: list[Driver] = []

    def phases(method: FoldChains) -> dict[str, int]:
        driver = Driver()
        drivers.append(driver)
        method._run(as_key(0), PROBLEM.posterior, driver)
        return {name: phase.num_steps for name, phase in driver.results.items()}

    found = phases(replace(METHOD, num_draws=20, num_warmup=400))
    assert 60 <= found["warmup"] < 400
    assert found["sample"] == 20


def test_rows_are_predicted_by_chains_that_have_not_seen_them(ensemble: Any) -> None:
    _, mean, excess, cdfs = left_out(ensemble, METHOD, PROBLEM.posterior)
    errors = PROBLEM.y[:, None] - mean
    fold = METHOD.folds_of(PROBLEM.posterior)
    means = ensemble.functions(PROBLEM.x.astype(np.float32))[..., 0].reshape(8, 16, 50, 24)
    batches = np.stack([means[METHOD.leave_out(int(f)), ..., i] for i, f in enumerate(fold)], -1)
    batches = batches.mean(axis=2).reshape(-1, 24)
    error = batches.std(axis=0, ddof=1) / len(batches) ** 0.5
    exact, seen = np.empty(24), PROBLEM.y - PROBLEM.predict(PROBLEM.x)[0]
    below = np.empty(24)
    for each in range(4):
        is_in = fold == each
        centre, std = without(each).predict(PROBLEM.x[is_in])
        exact[is_in] = PROBLEM.y[is_in] - centre
        below[is_in] = stats.norm.cdf(exact[is_in] / std)
    assert np.max(np.abs(errors[:, 0] - exact) / error) < 4.5
    assert np.max(np.abs(seen - exact) / error) > 20, "planted: by chains that saw them"
    assert cdfs is not None
    cdf = cdfs.mean(axis=0)
    steepest = stats.norm.pdf(0) / PROBLEM.noise_std
    assert np.max(np.abs(cdf[:, 0] - below) / (steepest * error)) < 4.5
    assert 0 < excess < 0.01 * np.mean(errors**2), "chains of one mode hardly gain by their number"


def test_what_cannot_be_divided_is_refused() -> None:
    with pytest.raises(InputError, match="every fold needs equally many chains"):
        FoldChains(num_chains=4, num_folds=5)
    with pytest.raises(InputError, match="at least 3"):
        FoldChains(num_folds=2)
    with pytest.raises(InputError, match="trajectory_length must be > 0"):
        FoldChains(trajectory_length=-1.0)
    with pytest.raises(InputError, match="decoherence_length must be >= 0"):
        FoldChains(decoherence_length=float("nan"))
    few = linear_regression(num_points=3)
    with pytest.raises(InputError, match="3 rows cannot be divided into 4 folds"):
        METHOD.run(0, few.posterior)
    model, (x, y) = PROBLEM.posterior.model, (PROBLEM.x, PROBLEM.y)
    idle = Posterior(model.network, model.prior, model.likelihood, (x, y, np.arange(24) < 3))
    with pytest.raises(InputError, match=r"3 rows cannot .*; rows of weight 0 do not count"):
        METHOD.run(0, idle)


def test_copies_of_a_row_are_left_out_together() -> None:
    """Who has seen one has seen the other: 60 rows, each there twice, and 20 alone."""
    random = np.random.default_rng(0)
    x, y = random.normal(size=(80, 2)), random.normal(size=(80, 1))
    rows = random.permutation([*range(80), *range(60)])
    posterior = Posterior(MLP(1, ()), Gaussian(), Normal(), (x[rows], y[rows]))
    fold = FoldChains(num_folds=5, num_chains=5).folds_of(posterior)
    assert all(len(set(fold[rows == each])) == 1 for each in range(80))
    assert np.ptp(np.bincount(fold)) <= 10
    apart = assign_folds(y[rows], 5)
    assert not all(len(set(apart[rows == each])) == 1 for each in range(80)), "planted"


def test_rows_that_are_alike_by_nature_are_no_copies() -> None:
    """Most rows of a coin and a label are alike, and each is an observation of its own."""
    random = np.random.default_rng(0)
    coins, labels = random.integers(0, 2, (2, 200))
    rows = coins[:, None].astype(float), labels
    posterior = Posterior(MLP(1, ()), Gaussian(), Bernoulli(), rows)
    np.testing.assert_array_equal(
        METHOD.folds_of(posterior), assign_folds(labels, METHOD.num_folds)
    )


def grouped(num_groups: int, num_points: int = 60, weight: Any = None) -> Posterior:
    """Rows of groups of unlike sizes."""
    random = np.random.default_rng(0)
    groups = random.permutation(np.arange(num_points) ** 2 // 60 % num_groups)
    rows = (random.normal(size=(num_points, 2)), random.normal(size=num_points))
    rows = rows if weight is None else (*rows, weight)
    return Posterior(MLP(1, ()), Gaussian(), Normal(), rows, groups)


def test_rows_of_a_group_are_left_out_together() -> None:
    posterior = grouped(12)
    method = FoldChains(num_folds=4, num_chains=4)
    fold, groups = method.folds_of(posterior), posterior.groups
    assert set(fold) == set(range(4))
    assert all(len(set(fold[groups == each])) == 1 for each in range(12))
    assert np.ptp(np.bincount([fold[groups == each][0] for each in range(12)])) == 0
    other = ModelSpec.read("3/fan_in/normal").posterior(posterior)
    assert method.prepared(other) is other
    np.testing.assert_array_equal(method.folds_of(other), fold)
    without = Posterior(MLP(1, ()), Gaussian(), Normal(), (posterior.data.x, posterior.data.y))
    assert fingerprint(posterior) != fingerprint(without), "a folder knows its groups"
    assert posterior.part(jax.random.key(0), 20).groups is None


def test_few_groups_have_few_folds() -> None:
    chains = FoldChains()
    assert [chains.for_groups(grouped(n)).num_folds for n in (30, 9, 4)] == [10, 5, 4]
    with pytest.raises(InputError, match="in 3 groups, and cannot be divided into 10 folds"):
        chains.for_groups(grouped(3)).prepared(grouped(3))
    weight = (grouped(9).groups < 4).astype(float)
    assert chains.for_groups(grouped(9, weight=weight)).num_folds == 4, "those with weight"


@pytest.mark.parametrize("groups", [np.zeros(23, int), np.zeros(24), np.zeros((24, 1), int)])
def test_groups_are_one_number_a_row(groups: np.ndarray) -> None:
    rows = PROBLEM.x, PROBLEM.y
    with pytest.raises(InputError, match="groups must be 24 whole numbers"):
        Posterior(MLP(1, ()), Gaussian(), Normal(), rows, groups)
