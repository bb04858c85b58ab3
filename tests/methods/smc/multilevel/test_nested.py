"""Nested parameters: the same function embedded, the right law extended, clear refusals."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tools.exact import assert_mean

from credence.errors import InputError
from credence.methods.smc.multilevel.nested import (
    embedded,
    extended,
    increasing,
    is_nested,
    leading,
    narrowed,
    widths,
)
from credence.models import ACTIVATIONS, MLP, Gaussian, HierarchicalGamma, TraceClass
from credence.models.networks.wrappers import LeadingInputs, PerAction

pytestmark = pytest.mark.usefixtures("checked_keys", "float64")

X = np.random.default_rng(0).normal(size=(7, 4))
COARSE, FINE = MLP(2, hidden=(3, 2)), MLP(2, hidden=(5, 4))


def weights(network: Any, seed: int = 0, x: np.ndarray = X) -> Any:
    """Arbitrary parameters, biases not zero."""
    params = jax.jit(network.init)(jax.random.key(seed), jnp.asarray(x))
    return jax.tree.map(lambda leaf: leaf + 0.3, params)


def template(network: Any, x: np.ndarray = X) -> Any:
    return jax.eval_shape(network.init, jax.random.key(0), jnp.asarray(x))


def assert_equal(left: Any, right: Any) -> None:
    assert jax.tree.structure(left) == jax.tree.structure(right)
    jax.tree.map(np.testing.assert_array_equal, left, right)


@pytest.mark.parametrize(
    ("activation", "hidden"),
    [
        *((activation, ((3, 2), (5, 4))) for activation in ACTIVATIONS),
        ("sigmoid", ((3,), (7,))),
        ("tanh", ((3, 2, 2), (3, 6, 4))),
    ],
)
def test_embedding_is_the_same_function(
    activation: str, hidden: tuple[tuple[int, ...], tuple[int, ...]]
) -> None:
    """This holds also for activations with f(0) != 0, such as the sigmoid."""
    coarse, fine = (MLP(2, hidden=h, activation=activation) for h in hidden)
    params = weights(coarse)
    large = embedded(params, template(fine))
    x = jnp.asarray(X)
    np.testing.assert_allclose(fine.apply(large, x), coarse.apply(params, x), rtol=1e-12)
    assert_equal(leading(large, template(coarse)), params)


def test_embedding_of_fewer_inputs_is_the_same_function() -> None:
    coarse, fine = LeadingInputs(MLP(1, hidden=(3,)), 2), MLP(1, hidden=(5,))
    params = weights(coarse)
    large = embedded(params, template(fine))
    x = jnp.asarray(X)
    np.testing.assert_allclose(fine.apply(large, x), coarse.apply(params, x), rtol=1e-12)


def test_extended_is_coarse_in_the_leading_block_and_fine_elsewhere() -> None:
    coarse, fine = weights(COARSE, 1), weights(FINE, 2)
    both = extended(coarse, fine)
    assert_equal(leading(both, coarse), coarse)
    middle = np.array(both[1].kernel)
    middle[:3, :2] = fine[1].kernel[:3, :2]
    np.testing.assert_array_equal(middle, fine[1].kernel)
    np.testing.assert_array_equal(both[0].bias, [*coarse[0].bias, *fine[0].bias[3:]])
    np.testing.assert_array_equal(both[2].bias, coarse[2].bias)


def test_nested_maps_work_over_particles_and_compiled() -> None:
    keys = jax.random.split(jax.random.key(3), 6).reshape(2, 3)
    particles = jax.vmap(jax.vmap(lambda key: FINE.init(key, jnp.asarray(X))))(keys)

    @jax.jit
    @jax.vmap
    @jax.vmap
    def there_and_back(fine: Any) -> Any:
        coarse = leading(fine, template(COARSE))
        return coarse, embedded(coarse, template(FINE)), extended(coarse, fine)

    coarse, zeros, same = there_and_back(particles)
    assert_equal(same, particles)
    one = jax.tree.map(lambda leaf: leaf[1, 2], particles)
    expected = leading(one, template(COARSE))
    assert_equal(jax.tree.map(lambda leaf: leaf[1, 2], coarse), expected)
    assert_equal(jax.tree.map(lambda leaf: leaf[1, 2], zeros), embedded(expected, template(FINE)))


def test_extending_a_coarse_draw_gives_the_fine_prior() -> None:
    prior, count = TraceClass(1.5, decay_inputs=True), 4000

    def draw(key: Any) -> Any:
        key_coarse, key_fine = jax.random.split(key)
        coarse, _ = prior.sample(key_coarse, COARSE, template(COARSE))
        fine, _ = prior.sample(key_fine, FINE, template(FINE))
        return extended(coarse, fine)

    draws = jax.jit(jax.vmap(draw))(jax.random.split(jax.random.key(0), count))
    stds = prior.stds(FINE, template(FINE))
    for leaf, std in zip(jax.tree.leaves(draws), jax.tree.leaves(stds), strict=True):
        assert_mean((leaf / std) ** 2, 1.0, resolution=0.03)


@pytest.mark.parametrize(
    ("prior", "nested"),
    [
        (TraceClass(), True),
        (TraceClass(1.2, 0.5, decay_inputs=True, decay_outputs=True), True),
        (Gaussian(), False),
        (Gaussian("unit"), True),
        (Gaussian("unit", 0.4, 2.0), True),
    ],
    ids=repr,
)
def test_which_priors_are_nested(prior: Any, nested: bool) -> None:
    assert is_nested(prior, COARSE, template(COARSE), FINE, template(FINE)) is nested
    assert is_nested(prior, COARSE, weights(COARSE), FINE, weights(FINE)) is nested
    assert is_nested(prior, FINE, template(FINE), FINE, template(FINE))


def test_nesting_of_inputs_is_a_matter_of_the_prior_too() -> None:
    coarse, fine = LeadingInputs(MLP(1, hidden=(3,)), 2), MLP(1, hidden=(3,))
    pair = coarse, template(coarse), fine, template(fine)
    assert is_nested(TraceClass(decay_inputs=True), *pair)
    assert not is_nested(Gaussian(), *pair)


def test_widths_go_from_coarse_to_fine() -> None:
    assert widths((64,)) == ((4,), (8,), (16,), (32,), (64,))
    assert widths((64, 16)) == ((16, 4), (32, 8), (64, 16))
    assert widths((64,), base=16) == ((16,), (32,), (64,))
    assert widths((50,), 3) == ((12,), (25,), (50,))
    assert widths((128,), 7) == ((2,), (4,), (8,), (16,), (32,), (64,), (128,))
    assert widths((81,), ratio=3) == ((9,), (27,), (81,))
    assert widths((20,), 3, ratio=1.5) == ((9,), (13,), (20,))
    assert widths((3,)) == ((3,),)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: widths(()), r"hidden layers and ratio > 1, got finest=\(\)"),
        (lambda: widths((8,), ratio=1), "got finest=.*ratio=1"),
        (lambda: widths((8,), ratio=0.5), "ratio > 1"),
        (lambda: widths((8,), 0), "num_levels and base must be >= 1, got num_levels=0"),
        (lambda: widths((8,), 5), r"5 levels below \(8,\) end at \(0,\).*fewer levels"),
        (lambda: widths((64,), 4, base=16), r"end at \(8,\), but no width may be below 16"),
        (lambda: widths((4,), 3, ratio=1.1), r"from coarse to fine .* got \(4,\) before \(4,\)"),
        (lambda: increasing(((8,), (4,))), r"got \(8,\) before \(4,\): no layer may get narrower"),
        (lambda: increasing(((8, 8), (16, 4))), r"got \(8, 8\) before \(16, 4\)"),
        (lambda: increasing(((8,), (8,))), "one must get wider"),
        (lambda: increasing(((8,), (16, 16))), "at one depth"),
        (lambda: increasing(()), "at least one level"),
        (lambda: narrowed(FINE, (6, 4)), r"got \(6, 4\) before \(5, 4\)"),
        (lambda: narrowed(FINE, (3,)), "at one depth"),
        (lambda: narrowed(object(), (3,)), "Only an MLP's widths"),
        (lambda: leading(weights(COARSE), template(FINE)), r"\(4, 5\).*does not fit.*\(4, 3\)"),
        (lambda: embedded(weights(COARSE), template(MLP(2, (9,)))), "same structure"),
        (
            lambda: is_nested(HierarchicalGamma(), COARSE, template(COARSE), FINE, template(FINE)),
            "Only Gaussian priors",
        ),
        (lambda: LeadingInputs(COARSE, 0), "num_inputs must be >= 1, got 0"),
        (lambda: template(LeadingInputs(COARSE, 5)), "needs the first 5 inputs, but there are 4"),
        (lambda: template(PerAction(COARSE)), r"\(point, action, feature\), got shape \(7, 4\)"),
    ],
)
def test_what_is_not_nested_is_refused(make: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        make()


def test_narrowed_networks() -> None:
    assert narrowed(FINE, (3, 2)) == COARSE
    assert narrowed(FINE, FINE.hidden) == FINE
    wrapped = LeadingInputs(PerAction(FINE), 2)
    assert narrowed(wrapped, (3, 2)) == LeadingInputs(PerAction(COARSE), 2)


def test_per_action_applies_the_network_to_every_row() -> None:
    x = np.random.default_rng(1).normal(size=(5, 3, 4))
    value = MLP(1, hidden=(6,))
    network = PerAction(LeadingInputs(value, 2))
    params = weights(network, x=x)
    outputs = network.apply(params, jnp.asarray(x))
    assert outputs.shape == (5, 3)
    for action in range(3):
        expected = value.apply(params, jnp.asarray(x[:, action, :2]))[:, 0]
        np.testing.assert_allclose(outputs[:, action], expected, rtol=1e-12)
    assert network.fan_in(params) == value.fan_in(params)
    several = PerAction(MLP(2))
    with pytest.raises(InputError, match="one output, got 2"):
        several.apply(weights(several, x=x), jnp.asarray(x))
