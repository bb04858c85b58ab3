"""Particles per level: the cheapest way to a variance, and the variances a pilot finds."""

import numpy as np
import pytest

from credence import Posterior
from credence.errors import InputError
from credence.methods import MLSMC, SMC, Mutation, allocation
from credence.models import MLP, Normal, TraceClass

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


def test_a_pilot_finds_the_variance_of_every_increment() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20, 2))
    posterior = Posterior(MLP(1, (8,)), TraceClass(), Normal(0.5), (x, np.tanh(x[:, 0])))
    method = MLSMC(
        widths=((4,), (8,)), num_particles=(100, 50), num_runs=3, mutation=Mutation(num_steps=2)
    )
    pilot = method.run(0, posterior)
    assert pilot.weights is not None
    found = allocation.increment_variances(pilot, x)
    functions = pilot.functions(x)[..., 0]
    for number, count in enumerate((100, 50)):
        part = 3 * pilot.weights * (pilot.scalars["increment"] == number)
        terms = np.sum(part[..., None] * functions, axis=1)
        np.testing.assert_allclose(found[number], count * terms.var(axis=0, ddof=1).mean(), 1e-4)
    assert found[1] < found[0]
    better = method.allocated(pilot, posterior, x, variance=1e-5)
    assert isinstance(better.num_particles, tuple)
    assert better.num_particles[0] > better.num_particles[1] >= 50
    with pytest.raises(InputError, match="must be > 0"):
        method.allocated(pilot, posterior, x, variance=0.0)


def test_a_pilot_of_another_method_is_refused() -> None:
    x = np.random.default_rng(0).normal(size=(10, 2))
    posterior = Posterior(MLP(1, (2,)), TraceClass(), Normal(0.5), (x, x[:, 0]))
    pilot = SMC(num_particles=10, num_runs=2, mutation=Mutation(num_steps=1)).run(0, posterior)
    with pytest.raises(InputError, match="ensemble of mlsmc"):
        allocation.increment_variances(pilot, x)
