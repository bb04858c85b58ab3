"""R1: without data a jump leaves the prior of widths and weights as it is, whatever its kind.

Chains start from exact draws of the prior, so chi-squared and z-scores are honest.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tools.forced_borders import at_forced_borders, log_directions
from tools.widths import (
    always,
    chi_squared,
    count_widths,
    hamiltonian,
    in_chunks,
    jitted,
    move_of,
    network_target,
    no_data,
    prior_points,
    prior_scores,
    with_error,
)

from credence.density.data import Data
from credence.methods.transdimensional.moves import split_merge as split_merge_module
from credence.methods.transdimensional.moves.base import JumpInfo, Move, jump
from credence.methods.transdimensional.moves.by_name import MOVES
from credence.methods.transdimensional.size_priors import WidthPrior
from credence.methods.transdimensional.target import Point, VariableWidth
from credence.models import Gaussian, TraceClass
from credence_papers.transdimensional.published_chain import accepted_by_the_ends

pytestmark = [pytest.mark.usefixtures("float64"), pytest.mark.rotates(3)]

NUM_CHAINS, NUM_JUMPS, LARGEST = 6000, 12, 16
TARGET = network_target()
UNIFORM = np.full(LARGEST, 1 / LARGEST)


@partial(jitted, static_argnames=("target", "move", "num_jumps", "forced"))
def _run(
    key: Any, points: Point, data: Data, *, target: VariableWidth, move: Move, num_jumps: int,
    forced: bool,
) -> tuple[Point, JumpInfo]:  # fmt: skip
    any_jump = at_forced_borders(jump) if forced else jump
    one = partial(any_jump, data=data, target=target, move=move)

    def chain(key: Any, point: Point) -> Any:
        keys = jax.random.split(key, num_jumps)
        return jax.lax.scan(lambda point, key: one(key, point), point, keys)

    return in_chunks(chain, jax.random.split(key, len(points.widths)), points)


def ends(
    move: Move, target: VariableWidth = TARGET, forced: bool = False, num_jumps: int = NUM_JUMPS
) -> tuple[Point, JumpInfo]:
    """The ends of chains that start from exact draws of the prior."""
    points = prior_points(jax.random.key(0), target, no_data(), NUM_CHAINS)
    return _run(
        jax.random.key(1), points, no_data(), target=target, move=move, num_jumps=num_jumps,
        forced=forced,
    )  # fmt: skip


def scores(points: Point, target: VariableWidth = TARGET) -> tuple[float, float, float]:
    """chi-squared of the widths, its p, and the worst |z| of the weights."""
    log_probs = np.asarray(target.width_prior.log_probs(LARGEST))[1:-1]
    statistic, p = chi_squared(count_widths(points.widths, LARGEST), np.exp(log_probs))
    return statistic, p, max(map(abs, prior_scores(target, points).values()))


SOME = [pytest.param(name, marks=pytest.mark.slow if name == "annealed" else ()) for name in MOVES]
SEVERAL = ("plain_by_3", "informed_by_2", "split_merge_by_4")


@pytest.mark.sized
@pytest.mark.parametrize("name", [*SOME, *SEVERAL])
def test_prior_is_invariant(name: str, size_of: Any) -> None:
    points, info = ends(move_of(name, TARGET, no_data()))
    statistic, p, worst = scores(points)
    size_of("none", on=f"prior alone, {name}", of="widths", chi_squared=statistic, degrees=15)
    assert p > 1e-4
    assert worst < 4.5
    assert np.all(info.is_finite)
    if "split_merge" not in name:  # the prior is the proposal; for `annealed` whatever its steps do
        rates = np.asarray(info.acceptance_rate)[np.asarray(info.is_in_range)]
        np.testing.assert_allclose(rates, 1.0, rtol=1e-9)


@pytest.mark.parametrize("name", ["plain", "plain_by_3"])
def test_prior_is_invariant_where_borders_force_a_direction(name: str) -> None:
    statistic, p, worst = scores(ends(move_of(name, TARGET, no_data()), forced=True)[0])
    print(f"{name}, forced borders: chi2_15 {statistic:.1f} (p {p:.2g}), weights z {worst:.1f}")
    assert p > 1e-4
    assert worst < 4.5


@pytest.mark.parametrize(
    "width_prior",
    [WidthPrior("poisson", 3.0, 2), WidthPrior("geometric", 4.0)],
    ids=["poisson from 2", "geometric"],
)
def test_other_priors_of_the_width_are_invariant(width_prior: WidthPrior) -> None:
    target = network_target(width_prior=width_prior)
    points, _ = ends(move_of("plain", target, no_data()), target)
    probabilities = np.exp(width_prior.log_probs(LARGEST))[1:-1]
    counts = count_widths(points.widths, LARGEST)
    assert counts[probabilities == 0].sum() == 0
    is_common = probabilities * NUM_CHAINS > 10
    expected = np.append(probabilities[is_common], probabilities[~is_common].sum())
    observed = np.append(counts[is_common], counts[~is_common].sum())
    is_possible = expected > 0
    _, p = chi_squared(observed[is_possible], expected[is_possible])
    assert p > 1e-4


@pytest.mark.parametrize(
    ("name", "prior"),
    [
        pytest.param(name, Gaussian(), marks=pytest.mark.slow if name == "annealed" else ())
        for name in MOVES
    ]
    + [("informed", TraceClass()), ("split_merge", TraceClass()), ("plain_by_3", TraceClass())]
    + [("informed_by_3", Gaussian())],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_priors_that_depend_on_width_or_order_are_invariant(name: str, prior: Any) -> None:
    target = network_target(prior=prior)
    points, _ = ends(move_of(name, target, no_data()), target)
    statistic, p, worst = scores(points, target)
    print(f"{name}, {type(prior).__name__}: chi2_15 {statistic:.1f}, z {worst:.1f}")
    assert p > 1e-4
    assert worst < 4.5


@pytest.mark.sized
@pytest.mark.rotates(3)
def test_planted_forced_borders_without_their_factor_are_caught(size_of: Any) -> None:
    log_prior = jnp.asarray(TARGET.width_prior.log_probs(LARGEST))
    log_birth, log_death = log_directions(log_prior)
    wrong = with_error(
        move_of("plain", TARGET, no_data()),
        birth=lambda k, _: log_birth[k] - log_death[k + 1],
        death=lambda k, _: log_death[k] - log_birth[k - 1],
    )
    statistic, p, _ = scores(ends(wrong, forced=True, num_jumps=60)[0])
    size_of("borders", on="prior alone", of="widths", chi_squared=statistic, degrees=15)
    assert p < 1e-8


@pytest.mark.sized
def test_planted_position_factor_of_births_alone_is_caught(size_of: Any) -> None:
    wrong = with_error(move_of("plain", TARGET, no_data()), birth=lambda k, _: -jnp.log(k + 1.0))
    statistic, p, _ = scores(ends(wrong)[0])
    size_of("place", on="prior alone", of="widths", chi_squared=statistic, degrees=15)
    assert p < 1e-8


@pytest.mark.sized
def test_planted_split_without_jacobian_is_caught(size_of: Any) -> None:
    """2^3: two inputs and a bias."""
    log_jacobian = 3 * np.log(2.0)
    wrong = with_error(
        move_of("split_merge", TARGET, no_data()),
        birth=lambda k, _: -log_jacobian,
        death=lambda k, _: log_jacobian,
    )
    statistic, p, _ = scores(ends(wrong)[0])
    size_of("jacobian", on="prior alone", of="widths", chi_squared=statistic, degrees=15)
    assert p < 1e-8


@pytest.mark.sized
@pytest.mark.rotates(3)
def test_planted_sandwich_without_the_steps_is_caught(size_of: Any) -> None:
    """|w|^2 falls to a share of what it should be: such a chain climbs."""
    points = prior_points(jax.random.key(0), TARGET, no_data(), 4000)
    step = partial(hamiltonian, TARGET, inverse_mass=jnp.ones(4 * LARGEST + 1))
    one = partial(
        accepted_by_the_ends,
        data=no_data(),
        target=TARGET,
        leap=always(move_of("plain", TARGET, no_data()), TARGET),
        step=step,
    )

    def chain(key: Any, point: Point) -> Point:
        keys = jax.random.split(key, 10)
        return jax.lax.scan(lambda point, key: (one(key, point)[0], None), point, keys)[0]

    end = jax.jit(jax.vmap(chain))(jax.random.split(jax.random.key(2), 4000), points)
    worst = max(map(abs, prior_scores(TARGET, end).values()))
    size_of("two ends", on="prior alone", of="weights", standard_errors=worst)
    assert worst > 8


def test_split_and_merge_are_each_others_reverse() -> None:
    neuron = split_merge_module.Neuron(jnp.arange(3.0), jnp.asarray(0.5), jnp.asarray([1.0, -2.0]))
    differences = split_merge_module.Neuron(jnp.ones(3), jnp.asarray(-0.2), jnp.asarray([0.3, 0.1]))
    first, second = neuron.split(differences)
    merged, found = first.merge(second)
    jax.tree.map(np.testing.assert_allclose, merged, neuron)
    jax.tree.map(np.testing.assert_allclose, found, differences)
