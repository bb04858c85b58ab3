"""R2-R4: regression on an unknown number of Legendre polynomials, whose p(k | data) is known.

Chains start from exact draws and must stay exact draws; rates have an exact upper bound; and the
flow up between two widths equals the flow down.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tools.widths import (
    Toy,
    always,
    balance_z,
    check_flows,
    chi_squared,
    count_widths,
    hamiltonian,
    in_chunks,
    jitted,
    move_of,
    toy,
    with_error,
)

from credence.density.data import Data
from credence.methods.transdimensional.moves import base as jumps
from credence.methods.transdimensional.moves.base import JumpInfo, Move, jump
from credence.methods.transdimensional.moves.by_name import MOVES
from credence.methods.transdimensional.target import Point
from credence_papers.transdimensional.published_chain import accepted_by_the_ends

pytestmark = [pytest.mark.usefixtures("float64"), pytest.mark.rotates(3)]

NUM_CHAINS, NUM_SWEEPS = 10_000, 10
TOY = toy()


def flat_variances() -> Any:
    """Prior variances in the order of positions."""
    layers = TOY.target.model.template(TOY.data).network
    stds = TOY.target.model.prior.stds(TOY.target.model.network, layers)  # type: ignore[attr-defined]
    full = jax.tree.map(lambda leaf, std: jnp.full(leaf.shape, std**2), layers, stds)
    return jnp.concatenate([jnp.ravel(leaf) for leaf in jax.tree.leaves(full)])


def sweep(key: Any, point: Point, data: Data, *, move: Move, one: Any) -> Any:
    """A jump, then a Hamiltonian step."""
    key_jump, key_step = jax.random.split(key)
    point, info = one(key_jump, point, data, target=TOY.target, move=move)
    step = partial(hamiltonian, TOY.target, inverse_mass=flat_variances(), step_size=0.08)
    return step(point, key_step, data), info


def sandwich(key: Any, point: Point, data: Data, *, move: Move, one: Any) -> Any:
    """Planted: the ratio of the target at the two ends."""
    step = lambda point, key, data: hamiltonian(  # noqa: E731
        TOY.target, point, key, data, inverse_mass=flat_variances(), step_size=0.08
    )
    leap = always(move, TOY.target)
    return accepted_by_the_ends(key, point, data, target=TOY.target, leap=leap, step=step)


@partial(jitted, static_argnames=("move", "how", "num_sweeps"))
def _run(key: Any, points: Point, data: Data, *, move: Move, how: Any, num_sweeps: int) -> Any:
    def chain(key: Any, point: Point) -> Any:
        keys = jax.random.split(key, num_sweeps)
        one = partial(how, data=data, move=move, one=jump)
        return jax.lax.scan(lambda point, key: one(key, point), point, keys)

    return in_chunks(chain, jax.random.split(key, len(points.widths)), points)


def scores(points: Point, of: Toy) -> tuple[float, float, float]:
    """chi-squared of the widths, its p, and |z| of the mean log likelihood."""
    statistic, p = chi_squared(count_widths(points.widths, of.largest), of.probabilities())
    values = np.asarray(points.log_likelihood)
    error = values.std() / len(values) ** 0.5
    return statistic, p, abs(values.mean() - of.mean_log_likelihood()) / error


def run(move: Move, how: Any = sweep) -> tuple[Point, JumpInfo]:
    points = TOY.points(0, NUM_CHAINS)
    return _run(jax.random.key(1), points, TOY.data, move=move, how=how, num_sweeps=NUM_SWEEPS)


def test_exact_draws_are_exact() -> None:
    _, p, z = scores(TOY.points(0, NUM_CHAINS), TOY)
    assert p > 1e-4
    assert z < 4.5
    assert np.all(TOY.probabilities() > 0.01), "every width matters"


SEVERAL = ("plain_by_2", "collapsed_by_3", "informed_by_2", "split_merge_by_2")


@pytest.mark.parametrize("name", [*MOVES, *SEVERAL])
def test_posterior_is_invariant(name: str) -> None:
    """The jumps keep the posterior, and no rate is above its ceiling."""
    points, info = run(move_of(name, TOY.target, TOY.data))
    statistic, p, z = scores(points, TOY)
    rate = np.asarray(info.acceptance_rate)[np.asarray(info.is_in_range)].mean()
    print(f"{name}: chi2_5 {statistic:.1f} (p {p:.2g}), log L z {z:.1f}, rate {rate:.3f}")
    assert p > 1e-4
    assert z < 4.5


@pytest.mark.sized
def test_planted_ratio_of_the_first_unit_alone_is_caught(monkeypatch: Any, size_of: Any) -> None:
    """Planted: two neurons are judged by the first."""
    one_by_one = jumps.one_by_one

    def forgetful(keys: Any, point: Point, propose: Any, layer: int, change: int) -> Any:
        first = one_by_one(keys[:1], point, propose, layer, change)
        return one_by_one(keys, point, propose, layer, change)._replace(log_ratio=first.log_ratio)

    monkeypatch.setattr(jumps, "one_by_one", forgetful)
    points, _ = run(move_of("plain_by_2", TOY.target, TOY.data))
    statistic, p, _ = scores(points, TOY)
    size_of("first neuron", on="polynomials", of="widths", chi_squared=statistic, degrees=5)
    assert p < 1e-8


def test_planted_sandwich_without_the_steps_is_caught() -> None:
    points, _ = run(move_of("plain", TOY.target, TOY.data), how=sandwich)
    statistic, p, z = scores(points, TOY)
    print(f"planted sandwich: chi2_5 {statistic:.0f}, log L z {z:.0f}")
    assert p < 1e-8


@partial(jitted, static_argnames=("move",))
def _proposals(key: Any, points: Point, data: Data, *, move: Move) -> Any:
    """log r of a birth and of a death at every point."""

    def one(key: Any, point: Point) -> Any:
        return move.birth(key, point, data).log_ratio, move.death(key, point, data).log_ratio

    return in_chunks(one, jax.random.split(key, len(points.widths)), points)


def two_of(width: int) -> np.ndarray:
    """Probabilities of a width and of the next."""
    return TOY.probabilities()[width - 1 : width + 1]


def flows(move: Move, width: int) -> tuple[np.ndarray, np.ndarray]:
    """min(1, R) of births from a width and of deaths from the next, at exact draws."""
    up = TOY.points(2, NUM_CHAINS, width), TOY.points(3, NUM_CHAINS, width + 1)
    log_up = _proposals(jax.random.key(4), up[0], TOY.data, move=move)[0]
    log_down = _proposals(jax.random.key(5), up[1], TOY.data, move=move)[1]
    return tuple(np.exp(np.minimum(np.asarray(log), 0.0)) for log in (log_up, log_down))


@pytest.mark.parametrize("name", MOVES)
def test_detailed_balance_and_ceiling(name: str) -> None:
    move = move_of(name, TOY.target, TOY.data)
    for width in (1, 2, 4, 5):
        check_flows(two_of(width), flows(move, width), f"{name} {width} to {width + 1}")


@pytest.mark.parametrize(
    ("name", "error"),
    [("plain", 0.2), ("informed", 0.2), ("collapsed", 0.2), ("split_merge", 3 * np.log(2.0))],
)
def test_planted_factor_breaks_detailed_balance(name: str, error: float) -> None:
    """A constant in the log ratio: a normalising constant of the prior, or a Jacobian, left out."""
    wrong = with_error(move_of(name, TOY.target, TOY.data), lambda k, _: -error, lambda k, _: error)
    z = max(balance_z(two_of(width), flows(wrong, width)) for width in (2, 4))
    print(f"planted in {name}: z {z:.0f}")
    assert z > 8


def birth_rate(how: Any, width: int, num_chains: int = 40_000) -> tuple[float, float]:
    """Rate of births from a width at the first sweep from exact draws, and its standard error."""
    points, move = TOY.points(6, num_chains, width), move_of("plain", TOY.target, TOY.data)
    ends, _ = _run(jax.random.key(7), points, TOY.data, move=move, how=how, num_sweeps=1)
    share = np.mean(np.asarray(ends.widths) > width)  # one half of all tries are births
    return 2 * share, 2 * (share * (1 - share) / num_chains) ** 0.5


@pytest.mark.rotates(3)
def test_planted_sandwich_goes_through_the_ceiling() -> None:
    ceiling = TOY.probabilities()[5] / TOY.probabilities()[4]
    exact, exact_error = birth_rate(sweep, 5)
    rate, error = birth_rate(sandwich, 5)
    z = (rate - ceiling) / error
    print(f"birth 5 to 6: {exact:.3f}, sandwich {rate:.3f}, ceiling {ceiling:.3f}, z {z:.0f}")
    assert exact < ceiling + 4.5 * exact_error
    assert z > 8


@pytest.mark.rotates(3)
def test_annealing_raises_the_rate_towards_the_ceiling() -> None:
    ratio = TOY.probabilities()[4] / TOY.probabilities()[3]
    found = []
    for steps in (1, 5, 25):
        move = move_of("annealed", TOY.target, TOY.data, num_temperatures=steps, step_size=0.08)
        found.append(flows(move, 4)[0].mean())
    print(f"T = 1, 5, 25: {np.round(found, 3)}, ceiling {min(1, ratio):.3f}")
    plain = flows(move_of("plain", TOY.target, TOY.data), 4)[0]
    assert abs(found[0] - plain.mean()) < 4.5 * np.hypot(plain.std(), plain.std()) / 100
    assert found[0] < found[1] < found[2] < min(1, ratio) + 0.02
