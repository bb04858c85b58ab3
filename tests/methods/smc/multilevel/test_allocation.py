"""Particles per level: the cheapest way to a variance, and the variances a pilot finds."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import jax
import numpy as np
import pytest

from credence import Posterior
from credence.errors import InputError
from credence.methods import MLSMC, SMC, Mutation
from credence.methods.smc.multilevel import allocation
from credence.methods.smc.multilevel.increments import exact_second_moment
from credence.models import MLP, Normal, StudentT, TraceClass

VARIANCES = np.array([4.0, 0.5, 0.06, 0.008])
COSTS = np.array([10.0, 21.0, 44.0, 90.0])


def test_reaches_the_variance() -> None:
    counts = np.array(allocation.for_variance(1e-5, VARIANCES, COSTS))
    assert 0.999e-5 < np.sum(VARIANCES / counts) <= 1e-5


def test_no_neighbour_is_cheaper() -> None:
    """Moving work between two levels at the same cost never lowers the variance."""
    counts = np.array(allocation.for_variance(1e-5, VARIANCES, COSTS), float)
    best = np.sum(VARIANCES / counts)
    for here in range(4):
        for there in set(range(4)) - {here}:
            other = counts.copy()
            other[here] *= 1.1
            other[there] -= 0.1 * counts[here] * COSTS[here] / COSTS[there]
            if other[there] > 0:
                assert np.sum(VARIANCES / other) > best


def test_never_fewer_than_a_level_needs() -> None:
    assert min(allocation.for_variance(100.0, VARIANCES, COSTS)) == allocation.LEAST_PARTICLES
    assert allocation.usual(1000, [10, 20, 40, 1000]) == (1000, 354, 125, 50)
    assert allocation.usual(20, [10, 20]) == (20, 20)


@pytest.mark.slow
def test_a_pilot_finds_the_variance_of_every_increment() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20, 2))
    posterior = Posterior(MLP(1, (8,)), TraceClass(), Normal(0.5), (x, np.tanh(x[:, 0])))
    method = MLSMC(
        widths=((4,), (8,)), num_particles=(100, 50), num_runs=3, mutation=Mutation(num_steps=2)
    )
    pilot = method.run(0, posterior)
    assert pilot.weights is not None
    found, _, costs = allocation.increments(pilot, x)
    np.testing.assert_allclose(3 * np.dot(costs, (100, 50)), pilot.cost.flops, rtol=1e-6)
    functions = pilot.functions(x)[..., 0]
    for number, count in enumerate((100, 50)):
        part = 3 * pilot.weights * (pilot.scalars["increment"] == number)
        terms = np.sum(part[..., None] * functions, axis=1)
        np.testing.assert_allclose(found[number], count * terms.var(axis=0, ddof=1).mean(), 1e-4)
    better = method.allocated(pilot, x, variance=1e-5)
    assert better.num_particles == allocation.for_variance(1e-5, found, costs)
    with pytest.raises(InputError, match="must be > 0"):
        method.allocated(pilot, x, variance=0.0)


def test_a_pilot_of_another_method_is_refused() -> None:
    x = np.random.default_rng(0).normal(size=(10, 2))
    posterior = Posterior(MLP(1, (2,)), TraceClass(), Normal(0.5), (x, x[:, 0]))
    pilot = SMC(num_particles=10, num_runs=2, mutation=Mutation(num_steps=10)).run(0, posterior)
    with pytest.raises(InputError, match="ensemble of mlsmc"):
        allocation.increments(pilot, x)


def wide(noise_std: float, width: int = 256, num_rows: int = 200) -> Posterior:
    """The paper's regression."""
    x = np.random.default_rng(1).normal(2.0, 0.5**0.5, (num_rows, 10))
    return Posterior(MLP(1, (width,)), TraceClass(2.0), Normal(noise_std), (x, x[:, 0]))


@pytest.mark.rotates(3)
@pytest.mark.parametrize("seed", [None, 7])
def test_nats_between_levels_are_those_of_the_closed_form(seed: int | None) -> None:
    """N E(f_l - f_{l-1})^2 / (2 sigma^2)."""
    posterior = wide(0.1)
    levels = MLSMC(base=8).levels(posterior)
    key = None if seed is None else jax.random.key(seed)
    found = allocation.nats_between(levels, num_draws=4000, num_rows=200, key=key)
    networks = [level.model.network for level in levels]
    x = np.asarray(posterior.data.x)
    exact = [
        np.sum(exact_second_moment(TraceClass(2.0), coarse, fine, x)) / (2 * 0.1**2)
        for coarse, fine in pairwise(networks)
    ]
    print(found, exact)
    np.testing.assert_allclose(found, exact, rtol=0.15)  # 3 standard errors of 4000 draws
    wrong = allocation.nats_between(MLSMC(base=8).levels(wide(0.13)), num_draws=4000, num_rows=200)
    assert not np.allclose(wrong, exact, rtol=0.15)


@pytest.mark.parametrize(("noise_std", "width"), [(0.5, 32), (0.1, 128), (0.01, 128)])
def test_the_coarsest_level_is_one_that_can_be_weighed(noise_std: float, width: int) -> None:
    levels = MLSMC().levels(wide(noise_std))
    assert levels[0].model.network.hidden == (width,)  # type: ignore[attr-defined]
    assert levels[-1].model.network.hidden == (256,)  # type: ignore[attr-defined]
    assert len(MLSMC(base=8).levels(wide(noise_std))) == 6


def test_bias_is_what_a_geometric_series_still_lacks() -> None:
    """Increments 4^-l sum up to the last over 3 beyond it; a small last one is not trusted."""
    steps = np.array([7.0, *(4.0 ** -np.arange(4))])
    found = allocation.Increments(np.ones(5), steps**2, np.ones(5))
    np.testing.assert_allclose(allocation.bias(found, [4.0] * 4), 4.0**-3 / 3)
    lucky = allocation.Increments(np.ones(5), np.append(steps[:-1], 1e-6) ** 2, np.ones(5))
    np.testing.assert_allclose(allocation.bias(lucky, [4.0] * 4), 4.0**-3 / 3)
    with pytest.raises(InputError, match="two levels or more"):
        allocation.bias(allocation.Increments(*np.ones((3, 1))), [])


def test_bias_of_levels_that_widen_unevenly() -> None:
    """Expectations 1 - width^-3 at widths 4, 8, 64: what is missing at 64 is 64^-3."""
    widths = np.array([4.0, 8.0, 64.0])
    increments = np.array([1.0, *np.diff(-(widths**-3.0))])
    found = allocation.Increments(np.ones(3), increments**2, np.ones(3))
    factors = (widths[1:] / widths[:-1]) ** 3
    np.testing.assert_allclose(allocation.bias(found, list(factors)), 64.0**-3)


def test_levels_of_which_no_bias_can_be_told_are_refused() -> None:
    x = np.zeros((4, 2))
    posterior = Posterior(MLP(1, (8, 8)), TraceClass(2.0), Normal(0.5), (x, x[:, 0]))
    method = MLSMC(widths=((4, 8), (8, 8)), num_particles=10)
    with pytest.raises(InputError, match="every layer must get wider"):
        method.for_error(0.1, posterior, x)


def test_nats_of_heavy_tails_are_not_negative() -> None:
    """The log density of a Student-t is not concave where targets lie in its tail."""
    x = np.random.default_rng(1).normal(size=(50, 2))
    heavy = Posterior(MLP(1, (16,)), TraceClass(2.0), StudentT(scale=0.5), (x, 30 + x[:, 0]))
    found = allocation.nats_between(MLSMC(base=4).levels(heavy))
    assert np.all(found > 0)
    assert np.all(np.diff(found) < 0)


@pytest.mark.parametrize("settings", [{"base": 4}, {"num_levels": 2}, {"widths": ((4,), (8,))}])
def test_fewer_levels_are_named_by_their_widths(settings: dict[str, Any]) -> None:
    """However the levels were given; a pilot of `for_error` runs on the lowest ones."""
    posterior = wide(0.5, width=8, num_rows=20)
    method = MLSMC(**settings)
    levels = method.levels(posterior)
    (found,) = method._upto(levels[:1]).levels(levels[0])
    assert found.model.network == levels[0].model.network


@pytest.mark.slow
def test_for_error_stops_at_the_level_that_suffices() -> None:
    posterior = wide(0.5, width=32, num_rows=50)
    x = np.asarray(posterior.data.x)[:5]
    method = MLSMC(base=4, num_particles=200, num_runs=4, mutation=Mutation(num_steps=5))
    found, narrower = method.for_error(0.3, posterior, x)
    assert isinstance(found.num_particles, tuple)
    assert len(found.num_particles) == len(found.levels(narrower)) == 2
    assert narrower.model.network.hidden == (8,)  # type: ignore[attr-defined]
    rough = Posterior(MLP(1, (4,)), TraceClass(1.05), Normal(0.5), posterior.data[:2])
    with pytest.raises(InputError, match="give the posterior a wider network"):
        replace(method, base=2).for_error(0.02, rough, x)
    with pytest.raises(InputError, match="more than memory holds: accept a larger error"):
        method.for_error(1e-7, posterior, x)
    with pytest.raises(InputError, match="error must be > 0"):
        method.for_error(0.0, posterior, x)
