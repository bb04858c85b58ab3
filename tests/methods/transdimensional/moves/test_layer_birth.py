"""Jumps between depths: the prior alone, and deep linear networks, whose p(depth | data) is known.

Chains start from exact draws, so chi-squared and z-scores are honest.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tools.deep_line import LINE
from tools.forced_borders import at_forced_borders, log_directions
from tools.widths import (
    SETTINGS,
    balance_z,
    check_flows,
    chi_squared,
    hamiltonian,
    in_chunks,
    jitted,
    move_of,
    network_target,
    no_data,
    prior_points,
    prior_scores,
    tuning_of,
)

from credence.density.data import Data
from credence.methods.transdimensional.active_neurons import activity, count_active, count_layers
from credence.methods.transdimensional.mixed_jumps import equally_likely, mixed_jump
from credence.methods.transdimensional.moves.base import LayerMove, layer_jump
from credence.methods.transdimensional.moves.by_name import LAYER_MOVES, MOVES, build_layer_move
from credence.methods.transdimensional.moves.layer_birth import (
    closed,
    identity_gain,
    inserted,
    removed,
    shifted,
)
from credence.methods.transdimensional.size_priors import DepthPrior, WidthPrior
from credence.methods.transdimensional.target import Point, VariableWidth
from credence.models import Gaussian, HierarchicalGamma, Normal, TraceClass
from credence_papers.transdimensional.published_chain import accepted_by_the_ends

pytestmark = [pytest.mark.usefixtures("float64"), pytest.mark.rotates(3)]

FAST = ("collapsed_layer",)
BY_MOVE = [
    pytest.param(name, marks=() if name in FAST else pytest.mark.slow) for name in LAYER_MOVES
]
NUM_CHAINS, NUM_JUMPS, DEEPEST, WIDEST = 4000, 12, 3, 3


def deep_target(**changed: Any) -> VariableWidth:
    """A target of 1 to 3 hidden layers of 1 to 3 neurons."""
    return network_target(largest=(WIDEST,) * DEEPEST, depth_prior=DepthPrior(), **changed)


TARGET = deep_target()


def layer_move(
    name: str, target: VariableWidth = TARGET, data: Data | None = None, **settings: Any
) -> LayerMove:
    tuning = tuning_of(target, no_data() if data is None else data)
    chosen = SETTINGS | {"identity_std": 0.7} | settings
    return build_layer_move(name, target, tuning=tuning, settings=chosen)


def with_error(move: LayerMove, birth: Any = None, death: Any = None) -> LayerMove:
    """Planted: what the log ratio of a birth or a death has too much, given the depth."""
    zero = lambda depth: 0.0  # noqa: E731

    def wrong(propose: Any, error: Any) -> Any:
        def changed(key: Any, point: Point, after: Any, data: Data) -> Any:
            proposal, widths = propose(key, point, after, data)
            extra = error(count_layers(point.widths))
            return proposal._replace(log_ratio=proposal.log_ratio + extra), widths

        return changed

    return LayerMove(wrong(move.birth, birth or zero), wrong(move.death, death or zero))


@partial(jitted, static_argnames=("one", "num_jumps"))
def _run(key: Any, points: Point, data: Data, *, one: Any, num_jumps: int) -> Any:
    def chain(key: Any, point: Point) -> Any:
        keys = jax.random.split(key, num_jumps)
        return jax.lax.scan(lambda point, key: one(key, point, data), point, keys)

    return in_chunks(chain, jax.random.split(key, len(points.widths)), points)


def ends(one: Any, target: VariableWidth = TARGET, num_jumps: int = NUM_JUMPS) -> tuple[Point, Any]:
    """The ends of chains that start from exact draws of the prior."""
    points = prior_points(jax.random.key(0), target, no_data(), NUM_CHAINS)
    return _run(jax.random.key(1), points, no_data(), one=one, num_jumps=num_jumps)


def only(move: LayerMove, target: VariableWidth = TARGET, forced: bool = False) -> Any:
    """Jumps of one kind."""
    any_jump = at_forced_borders(layer_jump) if forced else layer_jump
    return partial(any_jump, target=target, move=move)


def count_depths(points: Point, deepest: int = DEEPEST) -> np.ndarray:
    """How many chains have 1, ..., deepest hidden layers."""
    return np.bincount(np.asarray(count_layers(points.widths)), minlength=deepest + 1)[1:]


def architecture_p(target: VariableWidth, points: Point) -> tuple[float, float, float]:
    """chi-squared of the depth, its p, and the smallest p of it and of every layer's width."""
    depths = np.exp(target.depth_prior.log_probs(DEEPEST))[1:-1]  # type: ignore[union-attr]
    statistic, p = chi_squared(count_depths(points), depths)
    widths = np.asarray(points.widths)
    law = np.exp(target.width_prior.log_probs(WIDEST))[1:-1]
    smallest = [p]
    for layer in range(DEEPEST):
        there = widths[widths[:, layer] > 0, layer]
        smallest.append(chi_squared(np.bincount(there, minlength=WIDEST + 1)[1:], law)[1])
    return statistic, p, min(smallest)


def check_prior(target: VariableWidth, points: Point, name: str) -> None:
    """All of the architecture and of the weights as in the prior."""
    assert np.array_equal(count_active(points.params.network), points.widths)
    statistic, p, smallest = architecture_p(target, points)
    worst = max(map(abs, prior_scores(target, points).values()))
    print(f"{name}: chi2_2 {statistic:.1f} (p {p:.2g}), smallest p {smallest:.2g}, z {worst:.1f}")
    assert smallest > 1e-4
    assert worst < 4.5


@pytest.mark.parametrize("name", BY_MOVE)
def test_prior_is_invariant(name: str) -> None:
    points, info = ends(only(layer_move(name)))
    check_prior(TARGET, points, name)
    assert np.all(info.is_finite)
    rates = np.asarray(info.acceptance_rate)[np.asarray(info.is_in_range)]
    if name in ("layer", "collapsed_layer"):  # the prior is the proposal
        np.testing.assert_allclose(rates, 1.0, rtol=1e-9)
    else:
        assert 0.01 < rates.mean() < 0.9


def test_precisions_go_with_their_layers() -> None:
    """Otherwise the weights of later layers would meet precisions that are not theirs."""
    target = deep_target(prior=HierarchicalGamma(per="array", scaling="unit"))
    points = prior_points(jax.random.key(0), target, no_data(), 50)
    one = only(layer_move("layer", target), target)
    points, info = _run(jax.random.key(1), points, no_data(), one=one, num_jumps=6)
    rates = np.asarray(info.acceptance_rate)[np.asarray(info.is_in_range)]
    np.testing.assert_allclose(rates, 1.0, rtol=1e-9)
    assert len(np.unique(count_layers(points.widths))) == DEEPEST


def test_a_bridge_of_one_change_is_the_jump_itself() -> None:
    target = deep_target(prior=HierarchicalGamma(), likelihood=Normal())
    data = no_data()._replace(weight=jnp.ones(3))
    points = prior_points(jax.random.key(0), target, data, 20)
    points = jax.tree.map(lambda leaf: leaf[np.asarray(count_layers(points.widths)) == 2], points)

    def proposed(name: str) -> Any:
        move = layer_move(name, target, data, num_temperatures=1)
        key, after = jax.random.key(3), jnp.asarray(0)
        return jitted(jax.vmap(lambda point: (
            move.birth(key, point, after, data), move.death(key, point, after, data)
        )))(points)  # fmt: skip

    def values(found: Any) -> list[Any]:
        return [(p.params, p.log_likelihood, p.log_ratio, widths) for p, widths in found]

    same = partial(np.testing.assert_allclose, rtol=1e-8, atol=1e-9)
    jax.tree.map(same, *(values(proposed(f"{kind}_layer")) for kind in ("annealed", "identity")))


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("identity_layer", {"prior": Gaussian()}),
        pytest.param("collapsed_identity_layer", {"prior": Gaussian()}, marks=pytest.mark.slow),
        pytest.param("identity_layer", {"prior": TraceClass()}, marks=pytest.mark.slow),
        pytest.param(
            "identity_layer",
            {"prior": HierarchicalGamma(4.0, 4.0), "activation": "relu"},
            marks=pytest.mark.slow,
        ),
        pytest.param("layer", {"width_prior": WidthPrior("poisson", 1.5)}, marks=pytest.mark.slow),
        pytest.param(
            "identity_layer", {"width_prior": WidthPrior("geometric", 2.0)}, marks=pytest.mark.slow
        ),
    ],
)
def test_other_priors_are_invariant(name: str, changed: Any) -> None:
    target = deep_target(**changed)
    points, _ = ends(only(layer_move(name, target), target), target)
    check_prior(target, points, f"{name}, {changed}")


@pytest.mark.slow
@pytest.mark.parametrize("prior", [DepthPrior("poisson", 2.0), DepthPrior("geometric", 2.0)])
def test_other_priors_of_the_depth_are_invariant(prior: DepthPrior) -> None:
    target = VariableWidth(TARGET.model, WidthPrior(), prior)
    points, _ = ends(only(layer_move("identity_layer", target), target), target)
    check_prior(target, points, prior.shape)


@pytest.mark.parametrize(
    ("moves", "layer_moves"),
    [
        pytest.param(("plain",), ("layer", "identity_layer"), marks=pytest.mark.slow),
        pytest.param(MOVES, LAYER_MOVES, marks=pytest.mark.slow),
    ],
)
def test_mixture_with_jumps_between_widths_is_invariant(moves: Any, layer_moves: Any) -> None:
    width_moves = tuple(
        move_of(name, TARGET, no_data(), layer=layer) for layer in range(DEEPEST) for name in moves
    )
    one = partial(
        mixed_jump,
        target=TARGET,
        width_moves=width_moves,
        depth_moves=tuple(map(layer_move, layer_moves)),
        num_kinds=len(moves),
        kind_probs=equally_likely((len(moves), len(layer_moves))),
    )
    points, (info, kind) = ends(one, num_jumps=20)
    check_prior(TARGET, points, "mixture")
    tried = np.bincount(np.asarray(kind)[np.asarray(info.is_in_range)])
    assert len(tried) == len(moves) + len(layer_moves)
    assert tried[: len(moves)].sum() / tried.sum() == pytest.approx(0.45, abs=0.15)


@pytest.mark.sized
@pytest.mark.rotates(3)
def test_forced_borders_are_invariant_with_their_factor_only(size_of: Any) -> None:
    log_prior = jnp.asarray(TARGET.depth_prior.log_probs(DEEPEST))  # type: ignore[union-attr]
    log_birth, log_death = log_directions(log_prior)
    right = layer_move("layer")
    wrong = with_error(
        right,
        birth=lambda d: log_birth[d] - log_death[d + 1],
        death=lambda d: log_death[d] - log_birth[d - 1],
    )
    odd = 11  # every jump is accepted: after an even number the depths of an odd start are back
    check_prior(TARGET, ends(only(right, forced=True))[0], "forced borders")
    statistic, p, _ = architecture_p(TARGET, ends(only(wrong, forced=True), num_jumps=odd)[0])
    size_of("borders", on="prior alone", of="depth", chi_squared=statistic, degrees=2)
    assert p < 1e-8


@pytest.mark.sized
@pytest.mark.rotates(3)
def test_planted_position_factor_of_births_alone_is_caught(size_of: Any) -> None:
    """1 / d, the chance of the place, which the death pays as well."""
    wrong = with_error(layer_move("layer"), birth=lambda d: -jnp.log(d))
    statistic, p, _ = architecture_p(TARGET, ends(only(wrong))[0])
    size_of("place", on="prior alone", of="depth", chi_squared=statistic, degrees=2)
    assert p < 1e-8


@pytest.mark.sized
@pytest.mark.slow
def test_planted_ratio_of_the_two_ends_is_caught(size_of: Any) -> None:
    """Planted: the ratio of the two ends, as in the thesis."""
    size = sum(leaf.size for leaf in jax.tree.leaves(TARGET.model.template(no_data())))
    step = partial(hamiltonian, TARGET, inverse_mass=jnp.ones(size))
    leap = only(with_error(layer_move("layer"), lambda d: 1e6, lambda d: 1e6))
    one = partial(accepted_by_the_ends, target=TARGET, leap=leap, step=step)
    points, _ = ends(one, num_jumps=10)
    worst = max(map(abs, prior_scores(TARGET, points).values()))
    size_of("two ends", on="prior alone, layers", of="weights", standard_errors=worst)
    assert worst > 8


NUM_EXACT = 6000


def sweep(key: Any, point: Point, data: Data, *, move: LayerMove) -> Any:
    """A jump, then a Hamiltonian step."""
    key_jump, key_step = jax.random.split(key)
    point, info = layer_jump(key_jump, point, data, target=LINE.target, move=move)
    variances = jnp.tile(jnp.asarray([1e-12, 1.0]), LINE.deepest + 1)  # bias, kernel
    variances = variances.reshape(-1, 2)[:, ::-1].ravel()
    step = partial(hamiltonian, LINE.target, inverse_mass=variances, step_size=0.15)
    return step(point, key_step, data), info


def line_scores(points: Point) -> tuple[float, float]:
    return chi_squared(count_depths(points, LINE.deepest), LINE.probabilities())


def test_line_is_a_fair_test() -> None:
    """Every depth matters, and exact draws are exact."""
    probabilities = LINE.probabilities()
    print(f"p(depth | data) {np.round(probabilities, 3)}")
    assert np.all(probabilities > 0.05)
    assert np.ptp(probabilities) > 0.05
    rng = np.random.default_rng(1)
    products = rng.normal(size=(200_000, LINE.deepest)).cumprod(axis=1)
    values = np.exp(LINE.log_marginal(products))
    error = values.std(axis=0) / len(values) ** 0.5
    ratio = values.mean(axis=0) / probabilities
    assert np.max(np.abs(ratio / ratio.mean() - 1) / (error / values.mean(axis=0))) < 4.5


@pytest.mark.parametrize("name", BY_MOVE)
def test_posterior_of_the_line_is_invariant(name: str) -> None:
    points = LINE.points(0, NUM_EXACT)
    one = partial(sweep, move=layer_move(name, LINE.target, LINE.data))
    ended, info = _run(jax.random.key(1), points, LINE.data, one=one, num_jumps=6)
    statistic, p = line_scores(ended)
    values = [np.asarray(each.log_likelihood) for each in (ended, LINE.points(7, NUM_EXACT))]
    error = np.hypot(*(each.std() for each in values)) / NUM_EXACT**0.5
    z = abs(values[0].mean() - values[1].mean()) / error
    rate = np.asarray(info.acceptance_rate)[np.asarray(info.is_in_range)].mean()
    print(f"{name}: chi2_3 {statistic:.1f} (p {p:.2g}), log L z {z:.1f}, rate {rate:.3f}")
    assert p > 1e-4
    assert z < 4.5
    assert rate > 0.05


@partial(jitted, static_argnames=("move", "target"))
def _proposals(
    key: Any, points: Point, data: Data, *, move: LayerMove, target: VariableWidth
) -> Any:
    """log r of a birth and of a death after a layer chosen as a jump does."""

    def one(key: Any, point: Point) -> Any:
        key_place, key_move = jax.random.split(key)
        depth = count_layers(point.widths)
        at = lambda most: jax.random.randint(key_place, (), 0, jnp.maximum(most, 1))  # noqa: E731
        birth, _ = move.birth(key_move, point, at(depth), data)
        death, _ = move.death(key_move, point, at(depth - 1), data)
        return birth.log_ratio, death.log_ratio

    return in_chunks(one, jax.random.split(key, len(points.widths)), points)


def two_of(depth: int) -> np.ndarray:
    """Probabilities of a depth and of the next."""
    return LINE.probabilities()[depth - 1 : depth + 1]


def flows(move: LayerMove, depth: int) -> tuple[np.ndarray, np.ndarray]:
    """min(1, R) of births from a depth and of deaths from the next, at exact draws."""
    rates = []
    for at, which in ((depth, 0), (depth + 1, 1)):
        points = LINE.points(20 + at, NUM_EXACT, at)
        found = _proposals(
            jax.random.key(at), points, LINE.data, move=move, target=LINE.target
        )[which]  # fmt: skip
        rates.append(np.exp(np.minimum(np.asarray(found), 0.0)))
    return rates[0], rates[1]


@pytest.mark.parametrize("name", BY_MOVE)
def test_detailed_balance_and_ceiling(name: str) -> None:
    move = layer_move(name, LINE.target, LINE.data)
    for depth in (1, 3):
        check_flows(two_of(depth), flows(move, depth), f"{name} {depth} to {depth + 1}")


@pytest.mark.parametrize("name", BY_MOVE)
def test_planted_factor_breaks_detailed_balance(name: str) -> None:
    """A normalising constant left out, of 0.3 nats."""
    wrong = with_error(layer_move(name, LINE.target, LINE.data), lambda d: -0.3, lambda d: 0.3)
    z = max(balance_z(two_of(depth), flows(wrong, depth)) for depth in (1, 3))
    print(f"planted in {name}: z {z:.0f}")
    assert z > 8


def test_insertion_and_removal_are_each_others_reverse() -> None:
    layers = jax.tree.map(jnp.ones_like, TARGET.model.template(no_data()).network)
    widths = jnp.asarray([2, 3, 0])
    layers = jax.tree.map(lambda w, m: jnp.where(m, w, 0.0), layers, activity(layers, widths))
    for after in range(2):
        upper = inserted(widths, jnp.asarray(after), jnp.asarray(1))
        assert upper[after + 1] == 1
        assert int(count_layers(upper)) == 3
        np.testing.assert_array_equal(removed(upper, jnp.asarray(after)), widths)
        again = closed(shifted(layers, jnp.asarray(after)), jnp.asarray(after))
        jax.tree.map(np.testing.assert_array_equal, again, layers)


def test_gain_makes_relu_the_identity_and_tanh_nearly() -> None:
    assert identity_gain("relu") == pytest.approx(1.0, abs=1e-3)
    assert identity_gain("identity") == pytest.approx(1.0, abs=1e-3)
    assert 1.0 < identity_gain("tanh") < 1.6
