"""Piecewise-linear encodings: their values, and the prior over functions that they make."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tools.exact import assert_mean

from credence.density.posterior import Posterior
from credence.errors import InputError
from credence.models import MLP, Gaussian, HeteroscedasticNormal, Logarithmic, PiecewiseLinear
from credence.models.networks.encodings import (
    COST_OF_A_PATH,
    FEWEST_ROWS,
    MOST_SUMMED,
    repeated,
    usual_knots,
    usual_scales,
)

KNOTS = ((-1.0, 0.0, 0.5, 3.0), ())


def encoding(spread: float = 2.0) -> PiecewiseLinear:
    return PiecewiseLinear(MLP(1, (3,)), KNOTS, spread)


def test_ramps_add_up_to_the_place_between_knots() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 4, (50, 2)).astype(np.float32)
    found = np.asarray(encoding().inputs(jnp.asarray(x)))
    assert found.shape == (50, 2 + 3)
    np.testing.assert_array_equal(found[:, :2], x)
    place = np.interp(x[:, 0], KNOTS[0], np.arange(4.0))
    np.testing.assert_allclose(found[:, 2:].sum(axis=1), 2 / 3**0.5 * place, rtol=1e-5, atol=1e-6)


def test_any_function_that_is_linear_between_knots_is_linear_in_them() -> None:
    values = np.array([1.0, -2.0, 5.0, 0.5])
    weights = np.diff(values) * 3**0.5 / 2
    x = np.linspace(-2, 4, 40, dtype=np.float32)
    ramps = encoding().inputs(jnp.stack([x, x], axis=1))[:, 2:]
    np.testing.assert_allclose(
        values[0] + ramps @ weights, np.interp(x, KNOTS[0], values), rtol=1e-4, atol=1e-5
    )


def test_unit_weights_make_a_random_walk_at_the_knots() -> None:
    """Covariance spread^2 min(s, t) / T; the second input, a line, has none."""
    network = PiecewiseLinear(MLP(1, ()), KNOTS, spread=1.5)
    x = jnp.array([[knot, 0.0] for knot in KNOTS[0]])
    template = network.init(jax.random.key(0), x)
    prior = Gaussian("unit", bias_std=1.0)

    def walk(key: jax.Array) -> jax.Array:
        params, _ = prior.sample(key, network, template)
        (layer,) = params
        without_line = layer._replace(kernel=layer.kernel.at[:2].set(0), bias=jnp.zeros(1))
        return network.apply((without_line,), x)[:, 0]

    draws = np.asarray(jax.vmap(walk)(jax.random.split(jax.random.key(1), 20_000)))
    expected = 1.5**2 * np.minimum.outer(np.arange(4), np.arange(4)) / 3
    products = (draws[:, :, None] * draws[:, None, :]).reshape(len(draws), -1)
    for found, exact in zip(products.T[5:], expected.ravel()[5:], strict=True):
        if exact:
            assert_mean(found, exact, 0.05)


def test_knots_have_as_many_rows_between_them() -> None:
    rng = np.random.default_rng(0)
    skewed = rng.exponential(size=1000)
    mark, same = np.arange(1000) % 2, np.full(1000, 3.0)
    few = np.arange(1000) % 5
    knots = usual_knots(np.stack([skewed, mark, same, few], axis=1), 10)
    assert [len(each) for each in knots] == [11, 0, 0, 5]
    below = (skewed[:, None] <= np.array(knots[0])[1:-1]).sum(axis=0)
    assert np.abs(below - 100 * np.arange(1, 10)).max() <= 1
    assert knots[3] == (0.0, 1.0, 2.0, 3.0, 4.0)


def test_inputs_whose_values_repeat_have_a_knot_at_every_value() -> None:
    rng = np.random.default_rng(0)
    places, seldom = rng.integers(0, 90, 1000) ** 2, rng.integers(0, 200, 1000)
    x = np.stack([rng.normal(size=1000), places, seldom, np.arange(1000) % 7], axis=1)
    counts = [1000, 90, 190, 7]
    assert repeated(counts, 1000, 20, 100) == {1}
    assert repeated(counts, 1000, 5, 100) == {1, 3}
    assert repeated(counts, 1000, 5, 96) == {3}
    assert repeated(counts, 1000, 5, 6) == frozenset()
    knots = usual_knots(x, 10, frozenset({1}))
    assert knots[1] == tuple(np.unique(places).astype(float))
    assert [len(each) for each in knots] == [11, 90, 11, 7]
    assert [len(each) for each in usual_knots(x, 10)] == [11, 11, 11, 7]


def with_many_knots(hidden: tuple[int, ...] = (5, 4)) -> PiecewiseLinear:
    """Build a network whose first input has few knots, the second many, the third none."""
    rng = np.random.default_rng(3)
    many = tuple(np.sort(rng.normal(size=MOST_SUMMED + 30)).astype(np.float32).tolist())
    return PiecewiseLinear(MLP(2, hidden), ((-1.0, 0.0, 0.5), many, ()))


@pytest.mark.parametrize("hidden", [(), (5,), (5, 4)])
def test_a_path_that_is_looked_up_is_the_sum_of_its_ramps(hidden: tuple[int, ...]) -> None:
    """They agree inside, outside and at the knots, with all gradients."""
    network = with_many_knots(hidden)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(FEWEST_ROWS, 3)).astype(np.float32) * 2
    x[: MOST_SUMMED + 30, 1] = network.knots[1]
    x = jnp.asarray(x)
    params = network.init(jax.random.key(0), x)

    def summed(params: Any, x: Any) -> jax.Array:
        return network.network.apply(params, network.inputs(x))

    np.testing.assert_allclose(network.apply(params, x), summed(params, x), rtol=1e-4, atol=2e-5)
    between = x.at[:, 1].add(1e-3)  # the slope jumps at the knots themselves
    slopes = [
        jax.grad(lambda params, x, f=f: jnp.sum(jnp.sin(f(params, x))), (0, 1))(params, between)
        for f in (network.apply, summed)
    ]
    for found, expected in zip(*map(jax.tree.leaves, slopes), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)


def test_long_paths_are_looked_up_on_many_rows_only(monkeypatch) -> None:
    network, ramps = with_many_knots(), PiecewiseLinear._ramps
    x = jnp.zeros((FEWEST_ROWS, 3))
    params = network.init(jax.random.key(0), x)
    summed = []

    def counted(self: PiecewiseLinear, values: Any, knots: Any) -> Any:
        summed.append(len(knots))
        return ramps(self, values, knots)

    monkeypatch.setattr(PiecewiseLinear, "_ramps", counted)
    network.apply(params, x)
    assert summed == [3]
    network.apply(params, x[1:])
    assert summed == [3, 3, MOST_SUMMED + 30]


def test_chains_look_up_as_one_does() -> None:
    """Chains in chunks have the log densities and gradients of each alone."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(FEWEST_ROWS, 3)).astype(np.float32)
    network = with_many_knots((5,))
    posterior = Posterior(network, Gaussian("unit"), HeteroscedasticNormal(), (x, x[:, 1]))
    positions = posterior.init(jax.random.key(0), 7)
    density = jax.value_and_grad(posterior.log_density)
    together = jax.jit(jax.vmap(density, (0, None)))(positions, posterior.data)
    for index, position in enumerate(positions):
        alone = density(position, posterior.data)
        for found, expected in zip(together, alone, strict=True):
            np.testing.assert_allclose(found[index], expected, rtol=2e-4, atol=2e-3)


def test_a_path_that_is_looked_up_uses_few_weights() -> None:
    network = with_many_knots()
    params = network.init(jax.random.key(0), jnp.zeros((1, 3)))
    num_ramps = MOST_SUMMED + 29
    total = 5 * (3 + 2 + num_ramps + 1) + 4 * 6 + 2 * 5
    used = network.uses_per_weight(params, 3) * total
    assert used == pytest.approx(total - 5 * (num_ramps - COST_OF_A_PATH))
    assert encoding().uses_per_weight(encoding().init(jax.random.key(0), jnp.zeros((1, 2))), 2) == 1


def test_bad_knots_are_refused() -> None:
    with pytest.raises(InputError, match="input 1 has others"):
        PiecewiseLinear(MLP(1), ((0.0, 1.0), (2.0, 1.0)))
    with pytest.raises(InputError, match="input 0 has others"):
        PiecewiseLinear(MLP(1), ((0.0,),))
    with pytest.raises(InputError, match="spread"):
        encoding(0.0)
    with pytest.raises(InputError, match="knots for 2 inputs, but there are 3"):
        encoding().inputs(jnp.zeros((4, 3)))


def test_inputs_with_a_long_tail_become_logarithms() -> None:
    """The others, a mark of yes and no that is seldom yes among them, stay what they are."""
    rng = np.random.default_rng(0)
    amounts = np.exp(2 * rng.normal(size=2000))
    seldom = np.arange(2000) % 100 == 0
    x = np.stack([rng.normal(size=2000), amounts, seldom, -amounts], axis=1).astype(np.float32)
    scales = usual_scales(x)
    assert [len(each) for each in scales] == [0, 4, 0, 4]
    found = np.asarray(Logarithmic(MLP(1), scales).inputs(jnp.asarray(x)))
    np.testing.assert_array_equal(found[:, [0, 2]], x[:, [0, 2]])
    np.testing.assert_allclose(found[:, [1, 3]].mean(axis=0), 0, atol=1e-4)
    np.testing.assert_allclose(found[:, [1, 3]].std(axis=0), 1, rtol=1e-4)
    np.testing.assert_allclose(found[:, 3], -found[:, 1], rtol=1e-4, atol=1e-5)
    order = np.argsort(amounts)
    assert np.all(np.diff(found[order, 1]) >= 0)


def test_a_logarithm_is_a_line_near_its_centre_and_of_orders_far_out() -> None:
    network = Logarithmic(MLP(1), ((1.0, 0.1, 0.5, 2.0),))
    far = jnp.array([[1.0], [1.001], [1 + 1e4], [1 + 1e5], [1 - 1e5]])
    z = 2 * np.asarray(network.inputs(far))[:, 0] + 0.5
    np.testing.assert_allclose(z[:2], [0, 0.01], rtol=1e-2, atol=1e-6)
    np.testing.assert_allclose(z[3] - z[2], np.log(10), rtol=1e-4)
    np.testing.assert_allclose(z[4], -z[3], rtol=1e-4)


def test_scales_that_are_none_are_refused() -> None:
    with pytest.raises(InputError, match="input 1 has"):
        Logarithmic(MLP(1), ((), (0.0, 0.0, 0.0, 1.0)))
    with pytest.raises(InputError, match="scales of 1 inputs, but there are 2"):
        Logarithmic(MLP(1), ((),)).inputs(jnp.zeros((3, 2)))
