"""R5: the whole kernel by Geweke's joint test, and the planted ratio of the thesis.

(widths, weights, noise) from the prior, data from them, some sweeps on these data: what comes out
must be the prior again (Geweke, "Getting it right", 2004; independent replicates, so that standard
errors are honest).
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy import stats
from tools.widths import (
    always,
    chi_squared,
    count_widths,
    hamiltonian,
    in_chunks,
    jitted,
    move_of,
    network_target,
    prior_point,
    prior_points,
    prior_scores,
)

from credence.adaptation.tunable_kernels import tunable_kernel
from credence.density.data import Data
from credence.density.posterior import flat_log_density
from credence.errors import InputError
from credence.kernels.mcmc.hmc import hmc, nuts
from credence.methods.transdimensional import target as variable_width
from credence.methods.transdimensional.active_neurons import only_active
from credence.methods.transdimensional.kernel import transdimensional
from credence.methods.transdimensional.moves.by_name import LAYER_MOVES, MOVES
from credence.methods.transdimensional.size_priors import DepthPrior
from credence.methods.transdimensional.target import Point, VariableWidth
from credence.models import Categorical, Gaussian, HierarchicalGamma, Normal
from credence_papers.transdimensional.published_chain import accepted_by_the_ends

pytestmark = [pytest.mark.usefixtures("float64"), pytest.mark.rotates(3)]

NUM_REPLICATES, NUM_SWEEPS, LARGEST = 3000, 8, 8
X = np.random.default_rng(0).normal(size=(20, 2))
HMC = (("max_integration_steps", 8), ("trajectory_length", 0.8))
MCLMC = tunable_kernel("mclmc").build
WITHIN = {hmc: HMC, nuts: (("max_doublings", 4),)}
BRIDGE = (
    ("identity_std", 0.7),
    ("num_integration_steps", 3),
    ("num_temperatures", 3),
    ("split_std", 0.7),
)


def blank(target: VariableWidth, weight: Any = None) -> Data:
    """Data of the right shape."""
    is_label = isinstance(target.model.likelihood, Categorical)
    num_targets = target.model.network.num_outputs  # type: ignore[attr-defined]
    y = jnp.zeros(len(X), jnp.int32) if is_label else jnp.zeros((len(X), num_targets))
    return Data(jnp.asarray(X), y, jnp.ones(len(X)) if weight is None else jnp.asarray(weight))


def sweeps(
    target: VariableWidth,
    moves: tuple[str, ...],
    within: Any = hmc,
    layer_moves: tuple[str, ...] = LAYER_MOVES,
    **more: Any,
) -> Any:
    """(key, point, data) -> point after some steps of the kernel."""
    size = sum(leaf.size for leaf in jax.tree.leaves(target.model.template(blank(target))))
    build: Any = transdimensional
    kernel = build(
        flat_log_density(target.model), target=target, within=within,
        within_settings=WITHIN.get(within, ()), moves=moves,
        layer_moves=layer_moves, num_jumps=3, move_settings=BRIDGE, step_size=0.1,
        inverse_mass=jnp.ones(size), **more,
    )  # fmt: skip

    def run(key: Any, point: Point, data: Data) -> Point:
        state = kernel.init(ravel_pytree(point.params)[0], data)
        step = lambda state, key: kernel.step(key, state, data)  # noqa: E731
        state, info = jax.lax.scan(step, state, jax.random.split(key, NUM_SWEEPS))
        params = target.model.unravel(state.position, data)
        ended = Point(params, state.widths, target.log_likelihood(params, data))
        return ended, info

    return run


def geweke(target: VariableWidth, run: Any, num: int = NUM_REPLICATES, weight: Any = None) -> Any:
    """Starts, ends and info of replicates, each with data of its own.

    A row of weight w, with normal noise of known deviation s, is one of deviation s / sqrt(w).
    """

    def replicate(key: Any) -> Any:
        key_prior, key_data, key_run = jax.random.split(key, 3)
        data = blank(target, weight)
        start = prior_point(key_prior, target, data)
        y = target.model.simulate(key_data, start.params, data.x)
        if weight is not None:
            mean = target.model.network.apply(start.params.network, data.x)
            y = mean + (y - mean) / jnp.sqrt(data.weight)[:, None]
        data = data._replace(y=y)
        start = start._replace(log_likelihood=target.log_likelihood(start.params, data))
        return start, run(key_run, start, data)

    return jitted(partial(in_chunks, replicate))(jax.random.split(jax.random.key(5), num))


def scores(target: VariableWidth, ends: Point) -> tuple[float, float, float]:
    """chi-squared of widths, its p, worst |z| of weights (and of a learnt noise)."""
    statistic, p = chi_squared(count_widths(ends.widths, LARGEST), np.full(LARGEST, 1 / LARGEST))
    found = list(prior_scores(target, ends).values())
    if isinstance(ends.params.likelihood, jax.Array):
        uniform = stats.halfnorm.cdf(np.exp(ends.params.likelihood))
        found.append((uniform.mean() - 0.5) * (12 * uniform.size) ** 0.5)
    if isinstance(ends.params.prior, jax.Array):
        uniform = stats.gamma.cdf(np.exp(ends.params.prior), 4.0, scale=1 / 4)
        found += list((uniform.mean(axis=0) - 0.5) * (12 * len(uniform)) ** 0.5)
    return statistic, p, max(map(abs, found))


def is_noisy(points: Point) -> np.ndarray:
    """Whether a learnt noise is large enough for the test's one step size."""
    if not isinstance(points.params.likelihood, jax.Array):
        return np.ones(len(points.widths), bool)
    return np.exp(np.asarray(points.params.likelihood))[:, 0] > 0.5


NOISY = network_target(largest=(LARGEST,), likelihood=Normal(noise_std=None))
CLASSES = network_target(largest=(LARGEST,), likelihood=Categorical(0.5), num_outputs=3)
FAN_IN = network_target(largest=(LARGEST,), prior=Gaussian(), likelihood=Normal(0.6))
HYPER = network_target(
    largest=(LARGEST,), prior=HierarchicalGamma(4.0, 4.0), likelihood=Normal(0.5)
)
CASES = [
    pytest.param(NOISY, MOVES, hmc, marks=pytest.mark.slow, id="all-moves-learnt-noise"),
    pytest.param(CLASSES, ("informed", "split_merge"), hmc, id="classes"),
    pytest.param(NOISY, ("informed",), MCLMC, marks=pytest.mark.slow, id="mclmc"),
    pytest.param(FAN_IN, ("informed", "collapsed"), nuts, marks=pytest.mark.slow, id="fan-in-nuts"),
    pytest.param(
        HYPER,
        ("informed", "collapsed", "plain"),
        hmc,
        marks=pytest.mark.slow,
        id="precisions",
    ),
    *(pytest.param(NOISY, (name,), hmc, marks=pytest.mark.slow, id=name) for name in MOVES),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "more"),
    [
        pytest.param(CLASSES, {"sandwich": True}, id="sandwich"),
        pytest.param(HYPER, {"gibbs": True}, id="gibbs"),
        pytest.param(
            network_target(
                largest=(LARGEST,),
                prior=HierarchicalGamma(4.0, 4.0, per="array", scaling="unit"),
                likelihood=Normal(0.5),
            ),
            {"gibbs": True},
            id="gibbs-arrays",
        ),
        pytest.param(
            network_target(
                largest=(LARGEST,),
                prior=HierarchicalGamma(4.0, 4.0, per="input"),
                likelihood=Normal(0.5),
            ),
            {"gibbs": True},
            id="gibbs-inputs",
        ),
        pytest.param(CLASSES, {"kind_probs": jnp.array([0.7, 0.3])}, id="unequal-kinds"),
    ],
)
def test_joint_law_is_invariant_with(target: Any, more: Any) -> None:
    moves = ("informed", "plain_by_2") if "kind_probs" in more else ("informed",)
    starts, (ends, _) = geweke(target, sweeps(target, moves, **more))
    statistic, p, worst = scores(target, ends)
    moved = np.mean(starts.widths != ends.widths)
    print(f"{list(more)}: chi2_7 {statistic:.1f} (p {p:.2g}), worst z {worst:.1f}, moved {moved}")
    assert p > 1e-4
    assert worst < 4.5
    assert moved > 0.3


@pytest.mark.sized
@pytest.mark.slow
def test_planted_precisions_that_count_absent_weights_are_caught(
    monkeypatch: Any, size_of: Any
) -> None:
    conditional_of = HierarchicalGamma.conditional_of

    def of_all(prior: Any, params: Any, stds: Any, mask: Any) -> Any:
        active = jax.tree.map(jnp.multiply, params, mask)
        return conditional_of(prior, active, stds, jax.tree.map(jnp.ones_like, params))

    monkeypatch.setattr(HierarchicalGamma, "conditional_of", of_all)
    _, (ends, _) = geweke(HYPER, sweeps(HYPER, ("plain",), gibbs=True))
    *_, worst = scores(HYPER, ends)
    size_of("absent weights", on="20 rows", of="weights or precisions", standard_errors=worst)
    assert worst > 8


@pytest.mark.parametrize(("target", "moves", "within"), CASES)
def test_joint_law_is_invariant(target: Any, moves: tuple[str, ...], within: Any) -> None:
    starts, (ends, info) = geweke(target, sweeps(target, moves, within))
    statistic, p, worst = scores(target, ends)
    rate = info.num_jumps_accepted.sum() / info.num_jumps.sum()
    print(f"{moves}: chi2_7 {statistic:.1f} (p {p:.2g}), worst z {worst:.1f}, rate {rate:.3f}")
    assert p > 1e-4
    assert worst < 4.5
    assert np.mean(np.asarray(info.is_finite)[is_noisy(starts) & is_noisy(ends)]) > 0.98
    assert np.mean(starts.widths != ends.widths) > 0.3, "it moves"
    assert np.mean(info.acceptance_rate) > 0.5


WEIGHT = np.tile([0.5, 1.0, 3.0, 0.2], 5)
LAYERS = network_target(largest=(4, 4), likelihood=Normal(0.7), num_outputs=2)
DEEP = network_target(
    largest=(3, 3, 3), likelihood=Normal(0.7), num_outputs=2, depth_prior=DepthPrior()
)


def architecture_p(target: VariableWidth, ends: Point) -> float:
    """Smallest p of the depth and of the widths of every layer, uniform under the prior."""
    widths = np.asarray(ends.widths)
    room, num_layers = widths.max(), widths.shape[1]
    found = [np.bincount(w[w > 0], minlength=room + 1)[1:] for w in widths.T]
    if target.depth_prior is not None:
        found.append(np.bincount((widths > 0).sum(axis=1), minlength=num_layers + 1)[1:])
    return min(chi_squared(counts, np.full(len(counts), 1 / len(counts)))[1] for counts in found)


@pytest.mark.parametrize(
    ("target", "moves", "layer_moves"),
    [
        pytest.param(LAYERS, ("informed", "collapsed"), (), id="two-layers"),
        pytest.param(LAYERS, MOVES, (), marks=pytest.mark.slow, id="two-layers-all-moves"),
        pytest.param(
            DEEP,
            ("plain",),
            ("identity_layer", "collapsed_layer"),
            marks=pytest.mark.slow,
            id="any-depth",
        ),
        pytest.param(DEEP, MOVES, LAYER_MOVES, marks=pytest.mark.slow, id="any-depth-all-moves"),
    ],
)
def test_joint_law_of_layers_with_two_targets_and_row_weights_is_invariant(
    target: Any, moves: tuple[str, ...], layer_moves: tuple[str, ...]
) -> None:
    run = sweeps(target, moves, layer_moves=layer_moves or LAYER_MOVES)
    starts, (ends, info) = geweke(target, run, weight=WEIGHT)
    p, worst = architecture_p(target, ends), max(map(abs, prior_scores(target, ends).values()))
    rate = info.num_jumps_accepted.sum(axis=(0, 1)) / info.num_jumps.sum(axis=(0, 1))
    print(f"{moves}, {layer_moves}: smallest p {p:.2g}, worst z {worst:.1f}, rates {rate}")
    assert p > 1e-4
    assert worst < 4.5
    assert np.mean(np.any(starts.widths != ends.widths, axis=1)) > 0.3, "it moves"
    assert np.mean(info.acceptance_rate) > 0.5


@pytest.mark.rotates(3)
def test_planted_row_weights_left_out_are_caught() -> None:
    """What the same test says of kernels that take every row for one."""

    def deaf(key: Any, point: Point, data: Data) -> Any:
        even = data._replace(weight=jnp.ones(len(X)))
        point = point._replace(log_likelihood=LAYERS_PLAIN.log_likelihood(point.params, even))
        return sweeps(LAYERS_PLAIN, ("plain",))(key, point, even)

    _, (ends, _) = geweke(LAYERS_PLAIN, deaf, weight=WEIGHT)
    worst = max(map(abs, prior_scores(LAYERS_PLAIN, ends).values()))
    print(f"planted: row weights left out, worst z {worst:.0f}")
    assert worst > 8


LAYERS_PLAIN = network_target(largest=(4,), likelihood=Normal(0.7), num_outputs=2)


@pytest.mark.sized
@pytest.mark.slow
def test_planted_sandwich_without_the_steps_is_caught(size_of: Any) -> None:
    target = network_target(largest=(LARGEST,), likelihood=Normal(1.0))
    one = partial(
        accepted_by_the_ends,
        target=target,
        leap=always(move_of("plain", target, blank(target)), target),
        step=partial(
            hamiltonian,
            target,
            inverse_mass=jnp.ones(4 * LARGEST + 1),
            step_size=0.07,
            num_steps=12,
        ),
    )

    def run(key: Any, point: Point, data: Data) -> Point:
        step = lambda point, key: (one(key, point, data)[0], None)  # noqa: E731
        return jax.lax.scan(step, point, jax.random.split(key, NUM_SWEEPS))[0]

    *_, worst = scores(target, geweke(target, run)[1])
    size_of("two ends", on="20 rows", of="weights", standard_errors=worst)
    assert worst > 8


def build(**changed: Any) -> Any:
    """A kernel with one setting changed."""
    kernel: Any = transdimensional
    settings = {"target": NOISY, "within": hmc, "step_size": 0.1, "inverse_mass": jnp.ones(33)}
    return kernel(flat_log_density(NOISY.model), **settings | changed)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"moves": ("inform",)}, "Did you mean 'informed'"),
        ({"moves": ()}, "at least one kind"),
        ({"step_size": 0.0}, "step_size must be > 0"),
        ({"target": CLASSES, "moves": ("collapsed",)}, "needs Gaussian noise"),
        ({"moves": ("annealed",), "move_settings": (("num_temperatures", 0),)}, "temperature"),
        ({"moves": ("split_merge",), "move_settings": (("split_std", 0.0),)}, "split_std"),
    ],
)
def test_bad_settings_are_refused(changed: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        build(**changed)


@pytest.mark.parametrize(
    ("largest", "depth_prior"), [((8,), None), ((8, 5), None), ((6, 6, 6), DepthPrior())]
)
def test_narrow_networks_are_computed_by_narrow_programs(
    largest: tuple[int, ...], depth_prior: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Value and gradient by active weights are those of the widest program."""
    monkeypatch.setattr(variable_width, "SMALLEST_BUCKET", 2)
    target = network_target(
        largest=largest, likelihood=Categorical(), num_outputs=3, depth_prior=depth_prior
    )
    data = blank(target)
    assert variable_width.buckets(largest) == {8: (2, 4, 8), 6: (3, 6)}[max(largest)]
    points = prior_points(jax.random.key(0), target, data, 40)
    by_bucket = jax.jit(jax.value_and_grad(target.log_likelihood))
    whole = jax.jit(jax.value_and_grad(target.model.log_likelihood))
    for index in range(40):
        params, widths = jax.tree.map(lambda leaf, i=index: leaf[i], tuple(points)[:2])
        found, slope = by_bucket(params, data)
        exact, exact_slope = whole(params, data)
        np.testing.assert_allclose(found, exact, rtol=1e-10)
        active = only_active(slope.network, widths)
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12),
            active,
            only_active(exact_slope.network, widths),
        )
    assert len(np.unique(points.widths.max(axis=1))) > 2
