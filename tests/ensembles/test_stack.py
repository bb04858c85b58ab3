"""Stacks of ensembles: weights and predictions where the answer is known."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from tools.ensembles import X, make_ensemble
from tools.exact import LinearRegression, linear_regression

from credence.density.posterior import Params
from credence.ensembles.diagnostics.cost import Cost
from credence.ensembles.diagnostics.recalibration import conformal_levels
from credence.ensembles.ensemble import Ensemble
from credence.ensembles.scores import regression_scores
from credence.ensembles.stack import Stack
from credence.ensembles.weighing import stack
from credence.errors import InputError
from credence.models import MLP, Layer, Normal
from credence.preprocessing import TargetScaler

PROBLEM = linear_regression(num_points=200)


def exact_draws(problem: LinearRegression, num_draws: int = 400, chains: int = 2) -> Ensemble:
    """Independent draws of a linear network's posterior, as chains."""
    rng = np.random.default_rng(0)
    draws = rng.multivariate_normal(*problem.solve(), size=(chains, num_draws)).astype(np.float32)
    layer = Layer(draws[..., :-1, None], draws[..., -1:])
    like = make_ensemble()
    model = replace(like.model, network=MLP(1, hidden=()), likelihood=Normal(problem.noise_std))
    return replace(
        like,
        model=model,
        params=Params((layer,), (), ()),
        num_features=problem.x.shape[1],
        scalars={},
        cost=Cost(gradient_evaluations=10),
    )


def without_inputs(problem: LinearRegression) -> LinearRegression:
    """The same targets, modelled by a constant and wide noise."""
    return problem._replace(x=np.zeros_like(problem.x), noise_std=float(np.std(problem.y)))


def test_the_true_model_gets_the_weight_and_unseen_rows_are_scored_as_such() -> None:
    right, wrong = exact_draws(PROBLEM), exact_draws(without_inputs(PROBLEM))
    found = stack([right, wrong], PROBLEM.x.astype(np.float32), PROBLEM.y[:, None])
    by_model = [sum(each.weight for each in found.candidates if each.ensemble == i) for i in (0, 1)]
    assert by_model[0] > 0.97
    assert [each.chain for each in found.candidates] == [0, 1, 0, 1]
    mean, std = leave_one_out_of(PROBLEM)
    exact = stats.norm(mean, std).logpdf(PROBLEM.y)
    score = found.candidates[0].log_score
    assert abs(score - exact.mean()) < 0.01
    given_all = stats.norm(*PROBLEM.predict(PROBLEM.x)).logpdf(PROBLEM.y).mean()
    assert abs(score - given_all) > 0.01  # rows scored as seen would look better


def leave_one_out_of(problem: LinearRegression) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of every target given the other rows, in closed form."""
    found = []
    for i in range(len(problem.y)):
        others = problem._replace(x=np.delete(problem.x, i, 0), y=np.delete(problem.y, i))
        found.append([value[0] for value in others.predict(problem.x[i : i + 1])])
    mean, std = np.array(found).T
    return mean, std


def test_two_halves_of_the_truth_share_the_weight() -> None:
    """Rows of two kinds, each explained by one of the ensembles: held out, weights are shares."""
    rng = np.random.default_rng(1)
    x = np.zeros((3000, 3), np.float32)
    is_low = rng.random(3000) < 0.7
    y = np.where(is_low, -3.0, 3.0) + rng.normal(0, 0.5, 3000)
    parts = [constant(-3.0), constant(3.0)]
    found = stack(parts, x, y[:, None], held_out=True, by_chain=False)
    assert abs(found.part_weights[0] - is_low.mean()) < 0.01
    assert [each.share_unreliable for each in found.candidates] == [None, None]
    predicted = found.predictive(x[:5])
    np.testing.assert_allclose(predicted.mean()[:, 0], 3 - 6 * found.part_weights[0], rtol=1e-4)
    scores = regression_scores(found, x, y, TargetScaler.unscaled(y[:, None], np.ones(3000)))
    density = 0.7 * stats.norm(-3, 0.5).pdf(y) + 0.3 * stats.norm(3, 0.5).pdf(y)
    assert abs(scores.numbers["nll"] + np.log(density).mean()) < 0.01
    assert abs(scores.numbers["coverage_95"] - 0.95) < 4 * (0.95 * 0.05 / 3000) ** 0.5


def constant(value: float) -> Ensemble:
    """Networks that predict a constant with noise 0.5."""
    likeness = exact_draws(linear_regression(noise_std=0.5), num_draws=30)
    layer = Layer(np.zeros((2, 30, 3, 1), np.float32), np.full((2, 30, 1), value, np.float32))
    return replace(likeness, params=Params((layer,), (), ()))


def test_rows_are_left_out_of_the_draws_that_count() -> None:
    """A chain without weight says nothing of rows, however wrong it is."""
    good = exact_draws(PROBLEM)
    layer = good.params.network[0]
    moved = Layer(layer.kernel, layer.bias + np.array([0.0, 1.0], np.float32)[:, None, None])
    half = np.repeat([[1 / 400], [0.0]], 400, axis=1)
    parts = [
        replace(good, params=Params((moved,), (), ()), weights=half),
        good.subset(half > 0, is_chain=True),
    ]
    found = stack(parts, PROBLEM.x.astype(np.float32), PROBLEM.y[:, None], by_chain=False)
    weighted, alone = (each.log_score for each in found.candidates)
    assert weighted == pytest.approx(alone, abs=1e-6)


def test_a_chain_in_a_bad_mode_loses_its_weight() -> None:
    good = exact_draws(PROBLEM)
    layer = good.params.network[0]
    moved = Layer(layer.kernel, layer.bias + np.array([0.0, 5.0], np.float32)[:, None, None])
    found = stack(
        [replace(good, params=Params((moved,), (), ()))],
        PROBLEM.x.astype(np.float32),
        PROBLEM.y[:, None],
    )
    assert [each.weight for each in found.candidates] == [1.0, 0.0]
    assert len(found.parts) == 1
    assert found.parts[0].num_chains == 1


def test_the_cost_is_that_of_all_ensembles_once() -> None:
    ensembles = [exact_draws(PROBLEM), exact_draws(without_inputs(PROBLEM))]
    found = stack(ensembles, PROBLEM.x.astype(np.float32), PROBLEM.y[:, None])
    assert found.cost.gradient_evaluations == 20
    assert found.num_rows == 200


def test_few_rows_hardly_tell_models_apart() -> None:
    parts = [constant(0.0), constant(1.0)]
    x, y = np.zeros((5, 3), np.float32), np.zeros((5, 1))
    found = stack(parts, x, y, held_out=True, by_chain=False)
    assert found.part_weights.min() > 0.2


def test_conformal_ends_do_not_depend_on_the_shape() -> None:
    """Quantiles far out of the narrow mixture are ordinary ones of the wide one."""
    ensemble = make_ensemble()
    wide = Stack((ensemble,), np.ones(1), ensemble.cost, ensemble.provenance)
    pit = np.linspace(0.001, 0.999, 999)
    ends = []
    for shape, few in ((1.0, 1.0), (3.0, 3.0), (5.0, 2.0)):
        left_out = {"pit": stats.beta(few, few).cdf(pit)}
        stacked = replace(wide, shape=shape, left_out=left_out, left_out_shape=few)
        assert stacked.recalibration is not None
        levels = conformal_levels(stacked.recalibration, 0.97)
        assert 0 < levels[0] < levels[1] < 1
        ends.append(stacked.predictive(X).quantiles(levels))
    assert levels[0] < 1e-6
    np.testing.assert_allclose(ends[1], ends[0], rtol=1e-4)
    np.testing.assert_allclose(ends[2], ends[0], rtol=1e-4)


def test_what_cannot_be_stacked_is_refused() -> None:
    x, y = PROBLEM.x.astype(np.float32), PROBLEM.y[:, None]
    ensemble = exact_draws(PROBLEM)
    with pytest.raises(InputError, match="no ensembles"):
        stack([], x, y)
    with pytest.raises(InputError, match="must match row by row"):
        stack([ensemble], x, y[:-1])
    with pytest.raises(InputError, match="at least 25 draws"):
        stack([exact_draws(PROBLEM, num_draws=10)], x, y)
    with pytest.raises(InputError, match="held_out=True"):
        stack([replace(ensemble, is_chain=False)], x, y)
    signed = replace(ensemble, weights=np.full((2, 400), 1 / 800) * np.sign(np.arange(400) - 1.5))
    with pytest.raises(InputError, match="signed weights"):
        stack([signed], x, y)
    assert jnp.isfinite(stack([ensemble], x, y).predictive(x[:2]).mean()).all()


def test_rows_that_stand_for_many_are_left_out_with_all_of_them() -> None:
    """Each row counts three times: its score is that of a model without any of the three."""
    tripled = PROBLEM._replace(x=np.repeat(PROBLEM.x, 3, 0), y=np.repeat(PROBLEM.y, 3))
    ensemble, x, y = exact_draws(tripled), PROBLEM.x.astype(np.float32), PROBLEM.y[:, None]
    score = stack([ensemble], x, y, weight=np.full(200, 3.0)).candidates[0].log_score
    without = (np.arange(600) // 3 != i for i in range(200))
    exact = [
        stats.norm(
            *tripled._replace(x=tripled.x[rows], y=tripled.y[rows]).predict(PROBLEM.x[i : i + 1])
        ).logpdf(PROBLEM.y[i])
        for i, rows in enumerate(without)
    ]
    planted = stack([ensemble], x, y).candidates[0].log_score
    assert abs(score - np.mean(exact)) < 0.2 * abs(planted - np.mean(exact))


def test_rows_without_weight_say_nothing() -> None:
    ensemble, weight = exact_draws(PROBLEM), np.ones(200)
    weight[:50] = 0.0
    x, y = PROBLEM.x.astype(np.float32), PROBLEM.y[:, None]
    found = stack([ensemble], x, np.where(weight[:, None] > 0, y, 1e6), weight=weight)
    assert found.candidates == stack([ensemble], x[50:], y[50:], weight=weight[50:]).candidates
    for wrong in (weight[1:], -weight, 0 * weight, np.nan * weight):
        with pytest.raises(InputError, match="weight must be 200 numbers"):
            stack([ensemble], x, y, weight=wrong)


def test_ensembles_of_other_rows_leave_none_out_together() -> None:
    ensemble, x, y = exact_draws(PROBLEM), PROBLEM.x.astype(np.float32), PROBLEM.y[:, None]
    other = replace(
        ensemble, provenance=replace(ensemble.provenance, data_fingerprint="of other rows")
    )
    with pytest.raises(InputError, match="fitted to rows that differ"):
        stack([ensemble, other], x, y)
    assert len(stack([ensemble, other], x, y, held_out=True).candidates) == 4
