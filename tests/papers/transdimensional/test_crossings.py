"""Ratios of depths from the jumps of chains that stay at theirs, against quadrature."""

import jax
import numpy as np
import pytest
from tools.deep_line import LINE

from credence.density.posterior import Params
from credence.methods.transdimensional.target import Point
from credence_papers.transdimensional.crossings import (
    change_of_depth,
    deepened,
    log_ratios,
)

NUM_RUNS, NUM_DRAWS = 20, 1000
KINDS = ("collapsed_layer", "collapsed_identity_layer")


@pytest.fixture(scope="module")
def rates() -> tuple[np.ndarray, np.ndarray]:
    """Exact draws of deep linear networks at every depth, each with one jump: (depth, run)."""
    with jax.enable_x64(True):
        found = []
        for depth in range(1, LINE.deepest + 1):
            points = LINE.points(depth, NUM_RUNS * NUM_DRAWS, depth)
            change = change_of_depth(
                jax.random.key(depth), points, LINE.data, target=LINE.target, kinds=KINDS
            )
            found.append(np.asarray(change).reshape(NUM_RUNS, NUM_DRAWS))
    change = np.array(found)
    return (change > 0).mean(axis=-1), (change < 0).mean(axis=-1)


def test_crossings_give_the_exact_ratios(rates: tuple[np.ndarray, np.ndarray]) -> None:
    """Planted: rates there and back in each other's place; and as if all were accepted."""
    up, down = rates
    exact = np.log(LINE.probabilities())
    found, errors = log_ratios(up[:-1], down[1:])
    off = found - (exact - exact[0])
    print(found, errors, off)
    assert errors[1:].max() < 0.05
    assert np.abs(off[1:] / errors[1:]).max() < 4
    swapped, _ = log_ratios(down[1:], up[:-1])
    assert np.abs((swapped - exact + exact[0])[1:] / errors[1:]).min() > 8
    assert np.abs((exact - exact[0])[1:] / errors[1:]).min() > 8


def test_only_one_layer_less_or_more(rates: tuple[np.ndarray, np.ndarray]) -> None:
    up, down = rates
    assert (down[0], up[-1]) == (pytest.approx(0), pytest.approx(0))


def test_errors_are_those_of_independent_runs() -> None:
    """A run with too many accepted jumps both ways errs twice in a ratio of two steps, and its
    errors cancel in none."""
    rng = np.random.default_rng(0)
    shared = rng.normal(1, 0.1, size=(3, 4000, 8))
    logs, errors = [], []
    for each in range(4000):
        up = np.stack([shared[0, each], shared[1, each]])
        down = np.stack([shared[1, each], shared[2, each]])
        found, error = log_ratios(up, down)
        logs.append(found)
        errors.append(error)
    spread = np.std(logs, axis=0)
    np.testing.assert_allclose(np.sqrt(np.mean(np.square(errors), axis=0)), spread, rtol=0.05)
    assert spread[2] == pytest.approx(0.1 * (2 / 8) ** 0.5, rel=0.05)


def test_a_shallow_network_lives_in_the_deepest(rates: tuple[np.ndarray, np.ndarray]) -> None:
    """The same function, widths and likelihood."""
    points = LINE.points(0, 5, 2)
    first, second, *_, last = points.params.network
    shallow = Params((first, second, last), points.params.likelihood, points.params.prior)
    found = jax.vmap(lambda each: deepened(LINE.target, each, LINE.data))(shallow)
    assert isinstance(found, Point)
    for mine, known in zip(jax.tree.leaves(found), jax.tree.leaves(points), strict=True):
        np.testing.assert_allclose(mine, known, rtol=1e-5, atol=1e-5)
