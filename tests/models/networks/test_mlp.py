"""Our own networks against the formula, and their initial weights against their law."""

import jax
import numpy as np
import pytest
from scipy.special import erf, expit
from tools.exact import assert_mean

from credence.errors import InputError
from credence.models import ACTIVATIONS, MLP, Network

pytestmark = pytest.mark.usefixtures("checked_keys")

BY_HAND = {
    "tanh": np.tanh,
    "relu": lambda z: np.maximum(z, 0),
    "silu": lambda z: z * expit(z),
    "gelu": lambda z: 0.5 * z * (1 + np.tanh((2 / np.pi) ** 0.5 * (z + 0.044715 * z**3))),
    "elu": lambda z: np.where(z > 0, z, np.expm1(z)),
    "softplus": lambda z: np.log1p(np.exp(z)),
    "sigmoid": expit,
    "identity": lambda z: z,
}


def test_every_activation_is_checked_by_hand() -> None:
    assert BY_HAND.keys() == ACTIVATIONS.keys()
    z = np.linspace(-3, 3, 13)
    exact_gelu = 0.5 * z * (1 + erf(z / 2**0.5))
    np.testing.assert_allclose(BY_HAND["gelu"](z), exact_gelu, atol=1e-3)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("hidden", [(), (4,), (4, 3)])
@pytest.mark.usefixtures("float64")
def test_outputs_follow_the_formula(activation: str, hidden: tuple[int, ...]) -> None:
    network = MLP(2, hidden=hidden, activation=activation)
    x = np.random.default_rng(0).normal(size=(5, 3))
    params = jax.tree.map(
        lambda leaf: leaf + 0.3, network.init(jax.random.key(0), jax.numpy.array(x))
    )

    z = x
    for index, layer in enumerate(params):
        z = z @ np.asarray(layer.kernel) + np.asarray(layer.bias)
        z = BY_HAND[activation](z) if index < len(hidden) else z

    np.testing.assert_allclose(network.apply(params, jax.numpy.array(x)), z, rtol=1e-12)


def test_initial_weights_have_variance_one_over_fan_in_and_no_bias() -> None:
    x = jax.numpy.zeros((1, 4))
    params = MLP(1, hidden=(400, 400)).init(jax.random.key(0), x)
    for layer, fan_in in zip(params, (4, 400, 400), strict=True):
        assert layer.kernel.shape[0] == fan_in
        assert_mean(fan_in * np.ravel(layer.kernel) ** 2, 1.0, resolution=0.1)
        assert not np.any(layer.bias)
    with pytest.raises(AssertionError):  # standard deviations 5 % too large
        assert_mean(400 * (1.05 * np.ravel(params[1].kernel)) ** 2, 1.0, resolution=0.1)


def test_keys_give_weights() -> None:
    x = jax.numpy.zeros((1, 4))
    first, again, other = (MLP(1).init(jax.random.key(seed), x)[0].kernel for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.any(first == other)


def test_fan_in_counts_inputs_and_marks_biases() -> None:
    network = MLP(2, hidden=(5,))
    params = network.init(jax.random.key(0), jax.numpy.zeros((1, 3)))
    assert network.fan_in(params) == ((3, 0), (5, 0))
    assert isinstance(network, Network)


def test_equal_settings_make_equal_networks() -> None:
    assert MLP(1, hidden=(5,)) == MLP(1, hidden=(5,))
    assert hash(MLP(1, hidden=(5,))) == hash(MLP(1, hidden=(5,)))
    assert MLP(1, hidden=(5,)) != MLP(1, hidden=(6,))


def test_bad_settings_are_refused() -> None:
    with pytest.raises(InputError, match=r"at least one neuron, got hidden=\(0,\)"):
        MLP(1, hidden=(0,))
    with pytest.raises(InputError, match="num_outputs=0"):
        MLP(0)
    with pytest.raises(InputError, match=r"'tahn'.*Did you mean 'tanh'\?"):
        MLP(1, activation="tahn")
