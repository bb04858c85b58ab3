"""The method as a whole: widths and weights against their exact law, and what comes out of it."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from tools.moments import chain_z
from tools.unchecked import unchecked

from credence.adaptation.windows import window_adaptation
from credence.density.posterior import Posterior
from credence.ensembles.ensemble import Ensemble
from credence.errors import InputError
from credence.methods import METHODS, Training, Transdimensional
from credence.methods.evidence import LogEvidence
from credence.methods.transdimensional.active_metric import add_active_draws
from credence.methods.transdimensional.active_neurons import count_active
from credence.methods.transdimensional.architecture.posterior import (
    architecture_posterior,
    width_posterior,
)
from credence.methods.transdimensional.architecture.selection import given
from credence.methods.transdimensional.architecture.size_effect import size_effect
from credence.methods.transdimensional.moves.by_name import MOVES
from credence.methods.transdimensional.size_priors import DepthPrior, WidthPrior
from credence.models import MLP, Categorical, Gaussian, Normal, TraceClass

pytestmark = pytest.mark.rotates(3)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 2))
Y = np.sin(2 * X[:, 0]) + 0.3 * RNG.normal(size=30)
LARGEST = 6
QUICK: dict[str, Any] = {
    "num_chains": 4, "num_draws": 60, "num_warmup": 50, "num_jumps": 3, "within": "hmc",
    "max_integration_steps": 16,
}  # fmt: skip


def posterior(weight: Any = None, **changed: Any) -> Posterior:
    """Regression of 30 points."""
    parts = {
        "network": MLP(1, (LARGEST,)),
        "prior": Gaussian(scaling="unit"),
        "likelihood": Normal(noise_std=0.3),
        "data": (X, Y) if weight is None else (X, Y, weight),
    } | changed
    return Posterior(**parts)


def small(
    key: int = 0, of: Posterior | None = None, folder: Any = None, **changed: Any
) -> Ensemble:
    return Transdimensional(**QUICK | changed).run(key, of or posterior(), folder=folder)


@pytest.mark.parametrize(
    "prior", [WidthPrior(), WidthPrior("poisson", 3.0, 2)], ids=lambda p: p.shape
)
def test_without_data_the_posterior_is_the_prior(prior: WidthPrior) -> None:
    settings = {"num_chains": 40, "num_draws": 200, "num_jumps": 4, "width_prior": prior}
    moves = ("plain", "informed", "split_merge")
    ensemble = small(1, posterior(np.zeros(30)), moves=moves, **settings)
    widths = np.arange(1, LARGEST + 1)
    log_probs = prior.log_probs(LARGEST)[1:-1]
    possible = np.isfinite(log_probs)
    is_there = np.asarray(ensemble.scalars["width"])[..., None] == widths[possible]
    z = chain_z(is_there, np.exp(log_probs[possible])).max()
    first, last = ensemble.params.network
    bias_z = chain_z(last.bias[..., 0] ** 2, 1.0)
    active = np.sum(first.kernel**2, axis=(-2, -1)) - 2 * np.asarray(ensemble.scalars["width"])
    weights_z = chain_z(active, 0.0)
    wrong = np.exp(WidthPrior("geometric", 2.0).log_probs(LARGEST)[1:-1])
    planted = chain_z(is_there, wrong[possible]).max()
    print(f"{prior.shape}: widths z {z:.1f}, bias {bias_z:.1f}, weights {weights_z:.1f}")
    print(f"planted: another prior of the width, z {planted:.1f}")
    assert max(z, bias_z, weights_z) < 4.5
    assert planted > 8


@pytest.fixture(scope="module")
def ensemble() -> Ensemble:
    return small(num_draws=100)


def test_members_are_networks_of_their_width(ensemble: Ensemble) -> None:
    """What a member predicts, its active neurons alone predict."""
    widths = np.asarray(ensemble.scalars["width"]).astype(int)
    np.testing.assert_array_equal(count_active(ensemble.params.network)[..., 0], widths)
    assert len(np.unique(widths)) > 1
    chain, draw = np.argwhere(widths < LARGEST)[0]
    k = widths[chain, draw]
    layers = jax.tree.map(lambda leaf: jnp.asarray(leaf[chain, draw]), ensemble.params.network)
    (first, last), x = layers, jnp.asarray(X, jnp.float32)
    first = first._replace(kernel=first.kernel[:, :k], bias=first.bias[:k])
    narrow = MLP(1, (int(k),)).apply((first, last._replace(kernel=last.kernel[:k])), x)
    whole = ensemble.outputs(x).reshape(*widths.shape, 30, 1)
    np.testing.assert_allclose(whole[chain, draw], narrow, rtol=1e-4, atol=1e-5)


@pytest.fixture(scope="module")
def deep_ensemble() -> Ensemble:
    settings = {"moves": ("plain",), "layer_moves": ("layer",), "num_draws": 100, "num_jumps": 6}
    return small(
        of=posterior(likelihood=Normal(noise_std=1.0)), max_width=3, max_depth=3, **settings
    )


def test_members_are_networks_of_their_depth(deep_ensemble: Ensemble, tmp_path: Path) -> None:
    """What a member predicts, its layers alone predict; and it can be stored."""
    widths = np.asarray(count_active(deep_ensemble.params.network))
    depths = np.asarray(deep_ensemble.scalars["depth"]).astype(int)
    np.testing.assert_array_equal((widths > 0).sum(axis=-1), depths)
    np.testing.assert_array_equal(widths[..., 1], deep_ensemble.scalars["width_2"])
    assert set(np.unique(depths)) == {1, 2, 3}
    x = jnp.asarray(X, jnp.float32)
    whole = deep_ensemble.outputs(x).reshape(*depths.shape, 30, 1)
    for depth in (1, 2, 3):
        chain, draw = place = tuple(np.argwhere(depths == depth)[0])
        layers = jax.tree.map(
            lambda leaf, place=place: jnp.asarray(leaf[place]), deep_ensemble.params.network
        )
        alone = MLP(1, (3,) * depth).apply((*layers[:depth], layers[-1]), x)
        np.testing.assert_allclose(whole[chain, draw], alone, rtol=1e-4, atol=1e-5)
    about = architecture_posterior(deep_ensemble.scalars)
    assert about is not None
    assert about.depth is not None
    assert set(about.jumps) == {"plain", "layer"}
    deep_ensemble.save(tmp_path)
    again = Ensemble.load(tmp_path)
    np.testing.assert_array_equal(again.outputs(x), deep_ensemble.outputs(x))
    settings = METHODS["transdimensional"].from_settings(again.provenance.settings)
    assert isinstance(settings, Transdimensional)
    assert (settings.max_depth, settings.depth_prior) == (3, DepthPrior())


def test_predictions_given_an_architecture_and_of_one_chain(deep_ensemble: Ensemble) -> None:
    widths = np.asarray(count_active(deep_ensemble.params.network))
    first = architecture_posterior(deep_ensemble.scalars)
    assert first is not None
    wanted = tuple(k for k in first.likeliest[0].widths if k)
    wide = given(deep_ensemble, widths=wanted)
    padded = np.array([*wanted, *[0] * (3 - len(wanted))])
    is_there = (widths == padded).all(axis=-1)
    assert 0 < wide.num_draws == is_there.sum() < deep_ensemble.num_members
    x = jnp.asarray(X, jnp.float32)
    whole = np.asarray(deep_ensemble.outputs(x)).reshape(*is_there.shape, 30, 1)
    np.testing.assert_array_equal(wide.outputs(x), whole[is_there])
    assert not wide.is_chain
    deep = given(deep_ensemble, depth=2, chain=1)
    assert deep.num_draws == ((widths[1] > 0).sum(axis=-1) == 2).sum()
    chain = given(deep_ensemble, chain=0)
    assert chain.is_chain
    np.testing.assert_array_equal(chain.outputs(x), whole[0])
    for nothing, words in (
        ({"widths": (9,)}, "No draw has"),
        ({"widths": (1, 1, 1, 1)}, "No draw has"),
        ({"chain": 4}, "No draw has"),
        ({}, "Say of what"),
    ):
        with pytest.raises(InputError, match=words):
            given(deep_ensemble, **nothing)
    with pytest.raises(InputError, match="same architecture"):
        given(dataclasses.replace(deep_ensemble, scalars={}), depth=1)


def test_collapsed_jumps_cost_what_they_compute() -> None:
    """More than the three values that they were once counted as."""
    from credence.methods.transdimensional.moves.collapsed_birth import collapsed_counts

    of = posterior(network=MLP(1, (50,)))
    params = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape), of.model.template(of.data))
    evaluations, gradients = collapsed_counts(params, of.data)
    flops = 2 * (2 * 30 * 51**2 + 51**3)
    assert int(evaluations) == 3 + np.ceil(flops / (2 * 30 * (4 * 50 + 1)))
    assert int(gradients) == 0


def test_scalars_and_cost_say_what_was_done(ensemble: Ensemble) -> None:
    scalars = ensemble.scalars
    assert {"width", "jump_acceptance_rate", "num_jumps", "acceptance_rate"} <= set(scalars)
    assert np.all(scalars["is_finite"] == 1)
    assert 0.05 < np.sum(scalars["num_jumps_accepted"]) / np.sum(scalars["num_jumps"]) < 0.99
    counted = np.sum(scalars["num_evaluations"]) + np.sum(scalars["num_gradients"])
    assert ensemble.cost.likelihood_evaluations > 30 * counted
    assert set(ensemble.cost.seconds) == {"compile", "warmup", "sample", "other"}


def test_ensemble_is_saved_and_read(ensemble: Ensemble, tmp_path: Path) -> None:
    ensemble.save(tmp_path)
    again = Ensemble.load(tmp_path)
    jax.tree.map(np.testing.assert_array_equal, again.params, ensemble.params)
    settings = again.provenance.settings
    method = Transdimensional(**QUICK | {"num_draws": 100})
    assert METHODS["transdimensional"].from_settings(settings) == method
    earlier = settings | {"training": {"max_epochs": 2000}}  # inherited once, and not used
    assert METHODS["transdimensional"].from_settings(earlier) == method
    with pytest.raises(TypeError, match="training"):
        Transdimensional(training=Training())  # pyright: ignore[reportCallIssue]


def test_summary_of_widths() -> None:
    rng = np.random.default_rng(0)
    found = width_posterior(rng.integers(1, 4, size=(4, 500)).astype(float), 4)
    np.testing.assert_allclose(found.probabilities[:3], 1 / 3, atol=0.06)
    assert found.probabilities[3] == 0
    np.testing.assert_allclose(found.standard_errors[:3], (2 / 9 / 2000) ** 0.5, rtol=0.3)
    assert found.rhat < 1.02
    assert "R-hat" in str(found)


@pytest.mark.rotates(3)
def test_resumed_run_gives_the_same_draws(tmp_path: Path) -> None:
    whole = small(3)
    small(3, folder=tmp_path)
    for block in sorted(tmp_path.glob("*sample/block-*.npz"))[1:]:
        block.unlink()
    state = next(tmp_path.glob("*sample")) / "state.npz"
    state.unlink()  # as if it was killed in its first block of sampling
    again = small(3, folder=tmp_path)
    jax.tree.map(np.testing.assert_array_equal, whole.params, again.params)
    np.testing.assert_array_equal(whole.scalars["width"], again.scalars["width"])


def test_a_depth_that_cannot_change_has_no_jumps() -> None:
    method = Transdimensional(max_depth=2, depth_prior=DepthPrior(smallest=2))
    assert method.kinds_between_depths(posterior()) == ()
    assert len(Transdimensional(max_depth=2).kinds_between_depths(posterior())) == 2


def test_sizes_may_be_any_sequence_of_whole_numbers() -> None:
    for sizes in (range(1, 5), np.array([1, 2, 3, 4]), [np.int64(1), 2, 3, 4]):
        found = unchecked(Transdimensional, initial_widths=sizes).initial_widths
        assert json.dumps(found) == "[1, 2, 3, 4]"
    far = WidthPrior("poisson", 1e300).log_probs(5)
    assert far[5] == pytest.approx(0.0)


def test_groups_of_rows_stay() -> None:
    groups = np.arange(30) // 3
    prepared = Transdimensional(**QUICK).prepared(posterior(groups=groups))
    assert prepared.groups is not None
    assert list(prepared.groups) == list(groups)
    sizes = np.repeat([1.0, 2.0], 400).reshape(2, 400)
    draws = np.zeros((2, 400, posterior().num_weights), np.float32)
    assert size_effect(posterior(), draws, sizes, "neurons")
    assert size_effect(posterior(groups=groups), draws, sizes, "neurons") == {}


def test_log_likelihoods_are_measured_from_where_chains_have_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Sums over many rows from a draw of the prior would round their differences to nats."""
    of, anchored = posterior(), Posterior.anchored
    seen: list[float] = []

    def noted(self: Posterior, position: Any) -> Any:
        seen.append(float(self.log_density(jnp.asarray(position), self.data)))
        return anchored(self, position)

    monkeypatch.setattr(Posterior, "anchored", noted)
    small(of=of, num_starts=1)
    assert len(seen) == 2
    assert seen[1] > seen[0] + 10


@pytest.mark.parametrize("prior", [TraceClass(), Gaussian(scaling="unit")], ids=["trace", "unit"])
def test_the_metric_of_ordered_neurons_decays_as_their_prior(prior: Any) -> None:
    of = posterior(network=MLP(1, (20, 20)), prior=prior)
    keys = jax.random.split(jax.random.key(0), (4, 50))
    draw = lambda key: ravel_pytree(of.model.sample_prior(key, of.data))[0]  # noqa: E731
    draws = np.asarray(jax.vmap(jax.vmap(draw))(keys), np.float32)
    adapter = window_adaptation(0.1, jnp.ones(draws.shape[-1]), num_rounds=4)
    memory = add_active_draws(of, adapter.memory, draws)
    found = np.sqrt(memory.sum_of_squares / memory.degrees_of_freedom)
    whole = of.unravel(jnp.ones(of.num_weights))
    stds = prior.stds(of.model.network, whole.network)
    full = jax.tree.map(lambda leaf, std: leaf * std, whole.network, stds)
    exact = ravel_pytree(whole._replace(network=full))[0]
    assert np.abs(np.log(found / exact)).max() < 0.5


def test_absent_layers_keep_the_metric_they_have() -> None:
    """No draw of their weights is no draw of variance 0, which would make steps huge."""
    of = Transdimensional(max_width=3, max_depth=3).widest(posterior())
    template = of.model.template(of.data)
    rng = np.random.default_rng(0)

    def drawn(layer: Any, is_there: bool) -> Any:
        shape = lambda leaf: (4, 25, *leaf.shape)  # noqa: E731
        return jax.tree.map(
            lambda leaf: jnp.asarray(rng.normal(size=shape(leaf)) * is_there), layer
        )

    layers = [drawn(layer, i in (0, 3)) for i, layer in enumerate(template.network)]
    params = template._replace(network=tuple(layers))
    draws = jax.vmap(jax.vmap(lambda each: ravel_pytree(each)[0]))(params)
    adapter = window_adaptation(0.1, jnp.full(draws.shape[-1], 0.3), num_rounds=4)
    memory = add_active_draws(of, adapter.memory, np.asarray(draws, np.float32))
    found = of.unravel(jnp.asarray(memory.sum_of_squares / memory.degrees_of_freedom)).network
    for leaf in jax.tree.leaves(found[1:3]):
        np.testing.assert_allclose(leaf, 0.3, rtol=1e-5)
    np.testing.assert_allclose(found[0].kernel, 1.0, rtol=0.3)


@pytest.mark.slow
def test_settings_change_the_result() -> None:
    base = small()
    weights = lambda ensemble: ensemble.params.network[0].kernel  # noqa: E731
    assert weights(small(max_width=3)).shape == (4, 60, 2, 3)
    for changed in (
        {"num_jumps": 4},
        {"moves": ("annealed",)},
        {"moves": ("annealed",), "num_temperatures": 3},
        {"moves": ("split_merge",)},
        {"moves": ("split_merge",), "split_std": 0.1},
        {"width_prior": WidthPrior("poisson", 1.0)},
        {"within": "nuts", "max_integration_steps": None},
        {"initial_widths": (1, 1, 2, 2)},
        {"num_starts": 5},
        {"sandwich": True, "num_jumps": None},
        {"num_jumps": None},
        {"moves": ("collapsed_by_2",)},
    ):
        assert not np.array_equal(weights(small(**changed)), weights(base)), changed


@pytest.mark.parametrize(
    "moves",
    [MOVES, *(pytest.param((name,), marks=pytest.mark.slow) for name in MOVES)],
)
def test_two_hidden_layers(moves: tuple[str, ...]) -> None:
    """Each has a width of its own."""
    found = small(of=posterior(network=MLP(1, (4, 3))), moves=moves, num_draws=25)
    widths = np.asarray(count_active(found.params.network))
    assert widths.max(axis=(0, 1)).tolist() <= [4, 3]
    assert widths.min() >= 1
    np.testing.assert_array_equal(widths.sum(axis=-1), found.scalars["width"])


@pytest.mark.parametrize(
    ("settings", "changed", "words"),
    [
        ({"max_width": 2, "width_prior": WidthPrior(smallest=3)}, {}, "no width between 3 and 2"),
        ({"initial_widths": (1, 2, 3, 9)}, {}, "initial width 9 is outside"),
        ({"initial_widths": (1, 2)}, {}, "one per chain"),
        ({"within": "gibbs"}, {}, "Unknown step within 'gibbs'"),
        ({"moves": ("birth",)}, {}, "Unknown kind of jump"),
        ({"num_jumps": 0}, {}, "num_jumps must be > 0"),
        ({"max_depth": 0}, {}, "max_depth must be > 0"),
        ({"max_depth": 2, "depth_prior": DepthPrior(smallest=3)}, {}, "no depth between 3 and 2"),
        ({"max_depth": 2, "initial_depths": (1, 1, 2, 3)}, {}, "initial depth 3 is outside"),
        ({"layer_moves": ("layers",)}, {}, "Unknown kind of jump 'layers'"),
        ({"moves": ("plain", "plain")}, {}, "named twice"),
        ({"moves": ("plain_by_6",)}, {}, "room for 5 more neurons"),
        ({"layer_moves": ("layer_by_2",)}, {}, "Unknown kind of jump 'layer_by_2'"),
        ({"moves": ("plain_by_0",)}, {}, "Unknown kind of jump 'plain_by_0'"),
        ({"gibbs": True, "sandwich": True, "num_jumps": None}, {}, "do not go together"),
        ({"sandwich": True}, {}, "has one jump"),
        ({"gibbs": True}, {}, "gibbs needs prior='hierarchical'"),
        ({"identity_std": 0.0}, {}, "identity_std must be > 0"),
        ({}, {"network": MLP(1, ())}, "no hidden neurons"),
        (
            {"moves": ("collapsed",)},
            {
                "network": MLP(2, (4,)),
                "likelihood": Categorical(),
                "data": (X, (Y > 0).astype(int)),
            },
            "needs Gaussian noise",
        ),
    ],
)
def test_what_cannot_be_run_is_refused(settings: Any, changed: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        small(of=posterior(**changed), **settings)


class Sines:
    """Somebody's own network."""

    def init(self, key: Any, x: Any) -> Any:
        return jnp.zeros((2, 1))

    def apply(self, params: Any, x: Any) -> Any:
        return jnp.sin(x @ params)

    def fan_in(self, params: Any) -> Any:
        return 2


def test_other_networks_are_refused() -> None:
    with pytest.raises(InputError, match="cannot change"):
        small(of=posterior(network=Sines()))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (("flat",), "Unknown prior"),
        (("geometric", 1.0), "mean > 1"),
        (("uniform", 2.0, 0), "at least"),
    ],
)
def test_impossible_priors_of_the_width_are_refused(settings: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        WidthPrior(*settings)


@pytest.mark.slow
def test_widths_agree_with_the_evidence_of_each() -> None:
    """Independent runs of SMC at each width."""
    from credence.methods import SMC

    of = posterior()
    smc = SMC(num_particles=2000, num_runs=16)
    evidences = [LogEvidence.of(smc.run(k, posterior(network=MLP(1, (k,))))) for k in range(1, 7)]
    log_z = np.array([each.nats for each in evidences if each is not None])
    errors = np.array([each.standard_error for each in evidences if each is not None])
    exact = np.exp(log_z - np.logaddexp.reduce(log_z))
    found = Transdimensional(num_chains=32, num_draws=1000, num_warmup=300).run(0, of)
    means = np.asarray([(found.scalars["width"] == k).mean(axis=1) for k in range(1, 7)])
    error = np.hypot(means.std(axis=1, ddof=1) / 32**0.5, exact * (1 - exact) * errors * 1.5)
    z = np.abs(means.mean(axis=1) - exact) / np.maximum(error, 1e-4)
    print(f"jumps {np.round(means.mean(axis=1), 3)}, evidence {np.round(exact, 3)}")
    print(f"z {np.round(z, 1)}")
    assert z.max() < 4.5


def test_moves_may_be_a_list_and_not_a_string() -> None:
    assert Transdimensional(moves=["plain"]) == Transdimensional(moves=("plain",))
    with pytest.raises(InputError, match="moves are several names, got 'plain'"):
        Transdimensional(moves="plain")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"initial_depths": (1, 2)}, "initial_depths is of networks whose depth is unknown"),
        ({"layer_moves": ("layer",)}, "layer_moves is of networks"),
        ({"layer_moves": ("layer",), "max_depth": 1}, "max_depth=1 leaves one only"),
        ({"num_jumps": 10**12}, "num_jumps must be at most 1,000,000"),
        ({"moves": ("plain_by_²",)}, "plain_by_²"),
        ({"depth_prior": DepthPrior("poisson", 2.0)}, "depth_prior is of networks"),
        ({"moves": ("plain", "plain_by_1")}, "named twice"),
        ({"identity_std": np.inf}, "identity_std must be finite"),
    ],
)
def test_settings_that_would_not_be_used_are_refused(settings: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        Transdimensional(**settings)


def test_a_summary_leaves_no_width_out() -> None:
    with pytest.raises(ValueError, match="leaves out widths up to 9"):
        width_posterior(np.full((2, 8), 9.0), 8)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"num_jumps": 2.5}, "num_jumps must be a whole number, got 2.5"),
        ({"num_jumps": True}, "num_jumps must be a whole number"),
        ({"max_width": 4.0}, "max_width must be a whole number, got 4.0"),
        ({"max_width": "4"}, "max_width must be a whole number, got '4'"),
        ({"width_prior": "poisson"}, r"be a WidthPrior, got 'poisson': WidthPrior\('poisson'"),
        ({"depth_prior": WidthPrior()}, "depth_prior must be a DepthPrior"),
        ({"sandwich": "no"}, "sandwich must be True or False, got 'no'"),
        ({"gibbs": 1}, "gibbs must be True or False"),
        ({"moves": (1,)}, "moves are names, got 1"),
        ({"initial_widths": ["1", "2"]}, "initial_widths are one whole number for each chain"),
        ({"initial_widths": [True] * 4}, "initial_widths are one whole number"),
        ({"initial_widths": 3}, "initial_widths are one whole number"),
    ],
)
def test_settings_of_a_wrong_type_are_refused(settings: dict[str, Any], words: str) -> None:
    """Annotations are not checked before, as for users."""
    with pytest.raises(InputError, match=words):
        unchecked(Transdimensional, **settings)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"shape": ["uniform"]}, "Unknown prior"),
        ({"mean": "five"}, "must be a number, got mean='five'"),
        ({"smallest": 1.5}, "smallest must be a whole number, got 1.5"),
    ],
)
def test_priors_of_a_wrong_type_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        unchecked(WidthPrior, **settings)
