"""Flax and Equinox models give the densities that the formula gives, and can be sampled."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import equinox as eqx
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from scipy import stats

from credence.density.posterior import Posterior
from credence.engine.driver import Driver
from credence.engine.phases import fixed
from credence.engine.plan import Plan
from credence.ensembles.diagnostics.cost import Cost
from credence.ensembles.ensemble import Ensemble
from credence.ensembles.provenance import Provenance
from credence.errors import InputError
from credence.kernels.base import Recipe
from credence.kernels.mcmc.hmc import nuts
from credence.models import Gaussian, HierarchicalGamma, Network, Normal
from credence.models.networks.adapters import Equinox, FlaxLinen, FlaxNNX

LINEAR_X = np.random.default_rng(0).normal(size=(6, 3))
IMAGES = np.random.default_rng(0).normal(size=(4, 8, 8, 1))


class NNXMLP(nnx.Module):
    """Two layers, with dropout between them."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.first = nnx.Linear(3, 4, rngs=rngs)
        self.dropout = nnx.Dropout(0.5, rngs=rngs)
        self.last = nnx.Linear(4, 1, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.last(self.dropout(jnp.tanh(self.first(x))))


class LinenMLP(nn.Module):
    """The same in linen, with its usual argument."""

    @nn.compact
    def __call__(self, x: jax.Array, train: bool = True) -> jax.Array:
        x = nn.Dropout(0.5, deterministic=not train)(jnp.tanh(nn.Dense(4)(x)))
        return nn.Dense(1)(x)


class EquinoxMLP(eqx.Module):
    """The same in Equinox, of one example."""

    first: eqx.nn.Linear
    dropout: eqx.nn.Dropout
    last: eqx.nn.Linear

    def __init__(self, key: jax.Array) -> None:
        key_first, key_last = jax.random.split(key)
        self.first = eqx.nn.Linear(3, 4, key=key_first)
        self.dropout = eqx.nn.Dropout(0.5)
        self.last = eqx.nn.Linear(4, 1, key=key_last)

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.last(self.dropout(jnp.tanh(self.first(x))))


class NNXConv(nnx.Module):
    """Convolution, group norm, mean over the image."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.conv = nnx.Conv(1, 4, (3, 3), rngs=rngs)
        self.norm = nnx.GroupNorm(4, num_groups=2, rngs=rngs)
        self.last = nnx.Linear(4, 1, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.last(jax.nn.relu(self.norm(self.conv(x))).mean(axis=(1, 2)))


class LinenConv(nn.Module):
    """The same in linen."""

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        x = nn.GroupNorm(num_groups=2)(nn.Conv(4, (3, 3))(x))
        return nn.Dense(1)(jax.nn.relu(x).mean(axis=(1, 2)))


class EquinoxConv(eqx.Module):
    """The same in Equinox, channels first."""

    conv: eqx.nn.Conv2d
    norm: eqx.nn.GroupNorm
    last: eqx.nn.Linear

    def __init__(self, key: jax.Array) -> None:
        key_conv, key_last = jax.random.split(key)
        self.conv = eqx.nn.Conv2d(1, 4, 3, key=key_conv)
        self.norm = eqx.nn.GroupNorm(2, 4)
        self.last = eqx.nn.Linear(4, 1, key=key_last)

    def __call__(self, x: jax.Array) -> jax.Array:
        x = self.norm(self.conv(jnp.moveaxis(x, -1, 0)))
        return self.last(jax.nn.relu(x).mean(axis=(1, 2)))


MLPS = {"linen": FlaxLinen(LinenMLP()), "nnx": FlaxNNX(NNXMLP), "equinox": Equinox(EquinoxMLP)}
CONVS = {"linen": FlaxLinen(LinenConv()), "nnx": FlaxNNX(NNXConv), "equinox": Equinox(EquinoxConv)}

NAMES = {  # of layer and kernel, and whether a kernel's outputs come first
    "linen": ("Dense_0", "Dense_1", "kernel", False),
    "nnx": ("first", "last", "kernel", False),
    "equinox": ("first", "last", "weight", True),
}

FAN_INS = {  # biases and scales 0, a 3 x 3 kernel of one channel 9
    "linen": {
        "Conv_0": {"kernel": 9, "bias": 0},
        "GroupNorm_0": {"scale": 0, "bias": 0},
        "Dense_0": {"kernel": 4, "bias": 0},
    },
    "nnx": {
        "conv": {"kernel": 9, "bias": 0},
        "norm": {"scale": 0, "bias": 0},
        "last": {"kernel": 4, "bias": 0},
    },
    "equinox": {
        "conv": {"weight": 9, "bias": 0},
        "norm": {"weight": 0, "bias": 0},
        "last": {"weight": 4, "bias": 0},
    },
}


def posterior(network: Network, x: np.ndarray = LINEAR_X) -> Posterior:
    """Regression of some numbers on x."""
    y = np.random.default_rng(1).normal(size=len(x))
    prior = Gaussian(weight_std=1.5, bias_std=0.7)
    return Posterior(network, prior, Normal(0.5), (x, y))


@pytest.mark.usefixtures("float64", "checked_keys")
@pytest.mark.parametrize("library", MLPS)
def test_density_of_an_mlp_by_hand(library: str) -> None:
    """Weights times inputs, dropout left out; kernels with variance 1.5^2 / fan-in."""
    target = posterior(MLPS[library])
    position = target.init(jax.random.key(0), 1)[0] + 0.1
    params = jax.tree.map(np.asarray, target.unravel(position).network)
    first, last, kernel, outputs_first = NAMES[library]
    layers = [
        (params[name][kernel].T if outputs_first else params[name][kernel], params[name]["bias"])
        for name in (first, last)
    ]
    hidden = np.tanh(LINEAR_X @ layers[0][0] + layers[0][1])
    outputs = hidden @ layers[1][0] + layers[1][1]

    expected = stats.norm.logpdf(target.data.y, outputs, 0.5).sum()
    for matrix, bias in layers:
        expected += stats.norm.logpdf(matrix, scale=1.5 / len(matrix) ** 0.5).sum()
        expected += stats.norm.logpdf(bias, scale=0.7).sum()
    actual = jax.jit(target.log_density)(position, target.data)
    np.testing.assert_allclose(actual, expected, rtol=1e-12)


@pytest.mark.usefixtures("checked_keys")
@pytest.mark.parametrize("library", CONVS)
def test_small_image_networks(library: str) -> None:
    """Fan-ins, gradients, particles, fresh weights."""
    network = CONVS[library]
    target = posterior(network, IMAGES)
    starts = target.init(jax.random.key(0), 3)
    fan_ins = network.fan_in(target.unravel(starts[0]).network)
    assert fan_ins == FAN_INS[library]
    assert np.all(starts.std(axis=0)[np.asarray(is_kernel(target, starts[0]))] > 0)

    value_and_grad = jax.value_and_grad(target.log_density)
    values, gradients = jax.jit(jax.vmap(value_and_grad, (0, None)))(starts, target.data)
    assert np.all(np.isfinite(values))
    assert np.all(np.any(gradients != 0, axis=1))
    alone = jax.jit(target.log_density)(starts[1], target.data)
    np.testing.assert_allclose(values[1], alone, rtol=1e-5)


def is_kernel(target: Posterior, position: jax.Array) -> jax.Array:
    """Whether each entry of a position is a weight of a kernel."""
    params = target.unravel(position)
    fan_ins = target.model.network.fan_in(params.network)
    marks = jax.tree.map(lambda leaf, n: jnp.full(leaf.shape, n > 0), params.network, fan_ins)
    return jnp.concatenate([jnp.ravel(leaf) for leaf in jax.tree.leaves(marks)])


@pytest.mark.parametrize("library", MLPS)
def test_nuts_moves(library: str) -> None:
    target = posterior(MLPS[library])
    start = target.init(jax.random.key(0), 2)
    settings = fixed(step_size=jnp.array(0.1), inverse_mass=jnp.ones(target.num_weights))
    recipe = Recipe(nuts, target.log_density, fixed_cost=False)
    with Driver() as driver:
        plan = Plan(recipe, "sample", settings, num_steps=20)
        result = driver.phase("sample", jax.random.key(1), plan, start, target.data)
    assert result.draws.shape == (2, 20, target.num_weights)
    assert np.all(result.info["is_finite"] == 1)
    assert np.all(result.info["acceptance_rate"].mean(axis=1) > 0.5)
    assert np.all(result.draws.std(axis=1) > 0)


@pytest.mark.parametrize("library", MLPS)
def test_files_need_the_network_again(library: str, tmp_path: Path) -> None:
    target = posterior(MLPS[library])
    positions = target.init(jax.random.key(0), 6).reshape(2, 3, -1)
    ensemble = Ensemble(
        model=target.model,
        params=jax.device_get(target.unravel(positions)),
        cost=Cost(),
        provenance=Provenance("test", {}, 0, "abc"),
        num_features=3,
        num_targets=1,
    )
    x = np.asarray(LINEAR_X, np.float32)
    assert ensemble.functions(x).shape == (2, 3, 6, 1)
    ensemble.save(tmp_path)
    loaded = Ensemble.load(tmp_path, network=MLPS[library])
    np.testing.assert_array_equal(loaded.functions(x), ensemble.functions(x))
    with pytest.raises(InputError, match="Pass the same again when loading"):
        Ensemble.load(tmp_path)


@pytest.mark.parametrize("library", MLPS)
def test_layers_share_a_precision(library: str) -> None:
    params = jax.eval_shape(MLPS[library].init, jax.random.key(0), jnp.asarray(LINEAR_X))
    groups = HierarchicalGamma(per="layer").groups(params)
    assert [int(group) for group in groups] == [0, 0, 1, 1]


def test_the_same_object_is_the_same_network() -> None:
    """Compiled programs are found again, also for modules with lists (no hash)."""
    make = lambda: nn.Sequential([nn.Dense(4), nn.tanh, nn.Dense(1)])  # noqa: E731
    for first, same, other in (
        (FlaxLinen(make()), FlaxLinen(make()), FlaxLinen(nn.Dense(1))),
        (FlaxNNX(NNXMLP), FlaxNNX(NNXMLP), FlaxNNX(NNXConv)),
        (Equinox(EquinoxMLP), Equinox(EquinoxMLP), Equinox(EquinoxConv)),
    ):
        assert first == same
        assert hash(first) == hash(same)
        assert first != other
        assert isinstance(first, Network)
    assert posterior(FlaxLinen(make())).log_density is posterior(FlaxLinen(make())).log_density


def test_fan_in_of_unusual_arrays() -> None:
    attention = FlaxLinen(nn.MultiHeadDotProductAttention(num_heads=2, qkv_features=6))
    inputs = jnp.ones((1, 5, 3))
    params = jax.eval_shape(attention.module.init, jax.random.key(0), inputs)["params"]
    fan_ins = attention.fan_in(params)
    assert fan_ins["query"] == {"kernel": 3, "bias": 0}  # (3, head, 3)
    assert fan_ins["out"] == {"kernel": 6, "bias": 0}  # (head, 3, 3)
    embed = FlaxLinen(nn.Embed(10, 4))
    tokens = jnp.array([1])
    params = jax.eval_shape(embed.module.init, jax.random.key(0), tokens)["params"]
    assert embed.fan_in(params) == {"embedding": 1}

    def layers(key: jax.Array) -> Any:
        return eqx.nn.Sequential(
            [
                eqx.nn.Embedding(10, 4, key=key),
                eqx.nn.LayerNorm((2, 4)),
                eqx.nn.Linear(4, 1, key=key),
            ]
        )

    network = Equinox(layers)
    params = jax.eval_shape(network.init, jax.random.key(0), jnp.ones((1, 1)))
    assert network.fan_in(params)["layers"] == {
        "0": {"weight": 1},
        "1": {"weight": 0, "bias": 0},
        "2": {"weight": 4, "bias": 0},
    }


class LinenBatchNorm(nn.Module):
    @nn.compact
    def __call__(self, x: jax.Array, train: bool = True) -> jax.Array:
        return nn.Dense(1)(nn.BatchNorm(use_running_average=not train)(x))


class NNXBatchNorm(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.norm = nnx.BatchNorm(3, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.norm(x)[:, :1]


class EquinoxBatchNorm(eqx.Module):
    norm: eqx.nn.BatchNorm

    def __init__(self, key: jax.Array) -> None:
        self.norm = eqx.nn.BatchNorm(3, "batch", mode="ema")


@pytest.mark.parametrize(
    "make",
    [
        lambda: FlaxLinen(LinenBatchNorm()),
        lambda: FlaxNNX(NNXBatchNorm),
        lambda: Equinox(EquinoxBatchNorm),
    ],
    ids=MLPS,
)
def test_batch_norm_is_refused(make: Callable[[], Network]) -> None:
    with pytest.raises(InputError, match=r"keeps a state .* use group norm or filter response"):
        posterior(make())


def test_dropout_that_stays_on_is_refused() -> None:
    module = nn.Sequential([nn.Dense(1), nn.Dropout(0.5, deterministic=False)])
    with pytest.raises(InputError, match=r"draws at random .* deterministic=True"):
        posterior(FlaxLinen(module))


def test_what_is_no_module_is_refused() -> None:
    with pytest.raises(InputError, match=r"flax.linen module.*FlaxNNX"):
        FlaxLinen(NNXMLP)
    with pytest.raises(InputError, match="function that makes the module"):
        FlaxNNX(NNXMLP(nnx.Rngs(0)))
    with pytest.raises(InputError, match="function that makes the model"):
        Equinox(EquinoxMLP(jax.random.key(0)))


@pytest.mark.parametrize(
    ("make", "library", "extra"),
    [
        (lambda: FlaxLinen(None), "flax.linen", "flax"),
        (lambda: FlaxNNX(print), "flax.nnx", "flax"),
        (lambda: Equinox(print), "equinox", "equinox"),
    ],
    ids=MLPS,
)
def test_missing_libraries_are_named(
    make: Callable[[], Network], library: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(InputError, match=rf"pip install credence\[{extra}\]"):
        make()
