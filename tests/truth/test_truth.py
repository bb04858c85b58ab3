"""The truth table: its quick size for two kernels, and all of it in the slow tests."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from truth.cells import FULL, Bias, Cell, Size, compare, exact_cell, scores
from truth.page import about, page
from truth.planted import Planted, is_caught, repeated_keys
from truth.rows import EXACT
from truth.slopes import Slope
from truth.table import PASS, Table, run, to_json
from truth.targets import (
    Target,
    banana,
    hierarchical,
    linear,
    logistic,
    logistic_reference,
    mixture,
)

ROWS = {row.name: row for row in EXACT}
TINY = Size(num_chains=500, num_long_chains=4, share_of_draws=0.1)

pytestmark = pytest.mark.usefixtures("float64")


@pytest.mark.parametrize("make", [banana, mixture, linear, logistic, hierarchical])
def test_exact_draws_become_standard_normal(make):
    """Exact draws pass, and draws a fifth too wide are told from them."""
    target: Target = make()
    draws = target.sample(7, 2000)
    found = scores(target, draws)
    assert max(found.values()) < PASS, found
    wrong = scores(target, target.scale.mean + 1.2 * (draws - target.scale.mean))
    assert max(wrong.values()) > 8, wrong


@pytest.mark.parametrize("make", [banana, mixture, linear])
def test_log_density_is_that_of_the_draws(make):
    """p(w) = N(whiten(w)) |Jacobian| up to one constant, by finite differences."""
    target: Target = make()
    draws, width = target.sample(8, 50), 1e-3
    sides = [
        (target.whiten(draws + width * axis) - target.whiten(draws - width * axis)) / (2 * width)
        for axis in np.eye(target.dimension)
    ]
    jacobian = np.linalg.slogdet(np.stack(sides, axis=-1))[1]
    exact = jacobian - 0.5 * np.sum(target.whiten(draws) ** 2, axis=1)
    given = np.asarray(jax.vmap(target.log_density, (0, None))(jnp.asarray(draws), target.data))
    difference = given - exact
    assert np.ptp(difference) < 0.02


def test_log_density_of_logistic_regression():
    target = logistic()
    draws = target.sample(8, 50)
    given = jax.vmap(target.log_density, (0, None))(jnp.asarray(draws), target.data)
    assert np.ptp(given - logistic_reference(*draws.T)) < 1e-9


@pytest.mark.parametrize(("kernel", "make"), [("adjusted_mclmc", banana), ("pcn", mixture)])
def test_quick_cells(kernel: str, make):
    cell = exact_cell(ROWS[kernel], make(), TINY)
    assert cell.worst < PASS, cell
    assert abs(cell.memory) < 0.9
    assert 0 < cell.efficiency < 1


def test_quick_planted_error():
    assert is_caught(repeated_keys(ROWS["mala"]))


def test_planted_wrong_banana_is_caught():
    """A banana half as bent is another target."""
    target = banana()
    data = target.data._replace(x=0.5 * target.data.x)
    starts = target.sample(9, 4000)
    assert compare(ROWS["mala"].build, ROWS["mala"], target, starts, data=data)[0] > 8


@pytest.mark.parametrize(("worst", "verdict"), [(3.2, "All tests pass."), (6.0, "1 faults.")])
def test_the_page_is_made_of_what_is_kept(worst: float, verdict: str):
    table = Table(
        [Cell("hmc", "standard-2", worst, "mean", 0.1)],
        [Cell("ula", "standard-2", 2.0, "mean", 0.1)],
        [Bias("ula", "banana", 0.05, 0.01)],
        [Planted("hmc", "no momentum flip", 2.5, 40.0)],
        [Slope("hmc", "energy", 2.0, 2.1, 0.1)],
    )
    found = {**about(seconds=7.4, cores=2, date="2026-11-24"), **to_json(table)}
    text = page(json.loads(json.dumps(found)))
    assert f"**{verdict}**" in text
    assert f"| hmc | {worst:.1f} · – |" in text
    assert "| ula | +5.0 ± 1.0 |" in text
    assert "7 s on 2 cores" in text


@pytest.mark.slow
def test_the_whole_table():
    table = run(FULL)
    assert not table.faults()
    assert {cell.kernel for cell in table.exact} == set(ROWS)
