"""Chunked log densities equal the plain ones under every transformation they promise."""

import subprocess
import sys
from itertools import pairwise
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

from credence.density import chunks
from credence.density.chunks import chunk_size, chunked
from credence.models.networks.dense import Layer, mlp

pytestmark = pytest.mark.rotates(3)

WIDTHS = (3, 5, 1)
NUM_WEIGHTS = 26


class Data(NamedTuple):
    x: Array
    label: Array  # integers, which have no gradient


def log_density(position, data):
    layers, start = [], 0
    for fan_in, fan_out in pairwise(WIDTHS):
        end = start + fan_in * fan_out
        kernel = position[start:end].reshape(fan_in, fan_out)
        layers.append(Layer(kernel, position[end : end + fan_out]))
        start = end + fan_out
    logits = mlp(layers, data.x, jnp.tanh)[:, 0]
    return jnp.sum(jax.nn.log_sigmoid((2 * data.label - 1) * logits)) - position @ position


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


@pytest.fixture(scope="module")
def four_particles():
    """The bytes of a chunk of four particles."""
    found = 1
    with jax.enable_x64(True), pytest.MonkeyPatch.context() as patched:
        position, data = jnp.zeros(NUM_WEIGHTS), some_data()
        patched.setattr(chunks, "CHUNK_BYTES", found)
        while chunk_size(log_density, position, data) < 4:
            found += 100
            patched.setattr(chunks, "CHUNK_BYTES", found)
    return found


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch, four_particles):
    monkeypatch.setattr(chunks, "CHUNK_BYTES", four_particles)


@pytest.fixture
def data():
    return some_data()


def some_data():
    x = jax.random.normal(jax.random.key(1), (11, 3))
    return Data(x, (x[:, 0] > 0).astype(jnp.int32))


def positions(*shape):
    return jax.random.normal(jax.random.key(2), (*shape, NUM_WEIGHTS))


def assert_same(actual, expected):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-12), actual, expected)


def value_and_gradient(function):
    return jax.value_and_grad(function), function


@pytest.mark.parametrize("num_particles", [1, 4, 5, 13])
def test_vmap(data, num_particles):
    w = positions(num_particles)
    for fast, plain in zip(
        value_and_gradient(chunked(log_density)), value_and_gradient(log_density), strict=True
    ):
        assert_same(
            jax.jit(jax.vmap(fast, (0, None)))(w, data), jax.vmap(plain, (0, None))(w, data)
        )


def test_a_planted_error_is_seen(data):
    def wrong(position, data):
        return 1.00001 * log_density(position, data)

    w = positions(9)
    with pytest.raises(AssertionError):
        assert_same(
            jax.vmap(chunked(wrong), (0, None))(w, data), jax.vmap(log_density, (0, None))(w, data)
        )


def test_one_particle(data):
    w = positions()
    assert_same(chunked(log_density)(w, data), log_density(w, data))
    assert_same(jax.grad(chunked(log_density))(w, data), jax.grad(log_density)(w, data))


def test_the_cotangent_scales_the_gradient(data):
    w = positions(9)
    fast = jax.grad(lambda w: jnp.sum(jax.vmap(chunked(log_density), (0, None))(w, data) ** 2))
    plain = jax.grad(lambda w: jnp.sum(jax.vmap(log_density, (0, None))(w, data) ** 2))
    assert_same(fast(w), plain(w))


def test_nested_vmap(data):
    w = positions(3, 7)
    for fast, plain in zip(
        value_and_gradient(chunked(log_density)), value_and_gradient(log_density), strict=True
    ):
        nested = [jax.vmap(jax.vmap(f, (0, None)), (0, None)) for f in (fast, plain)]
        assert_same(nested[0](w, data), nested[1](w, data))


@pytest.mark.parametrize(
    "in_axes", [(0, 0), (0, Data(0, None)), (None, 0)], ids=["both", "part of data", "data only"]
)
def test_particles_with_their_own_data(data, in_axes):
    w = positions(9) if in_axes[0] == 0 else positions()
    x = data.x + jnp.arange(9.0)[:, None, None]
    label = data.label if in_axes[1] == Data(0, None) else jnp.tile(data.label, (9, 1))
    fast = jax.vmap(jax.value_and_grad(chunked(log_density)), in_axes)
    plain = jax.vmap(jax.value_and_grad(log_density), in_axes)
    assert_same(fast(w, Data(x, label)), plain(w, Data(x, label)))


def test_populations_with_their_own_data(data):
    w = positions(3, 7)
    own = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf[::-1], 0 * leaf]), data)
    populations = [
        jax.vmap(jax.vmap(jax.value_and_grad(f), (0, None)))
        for f in (chunked(log_density), log_density)
    ]
    assert_same(populations[0](w, own), populations[1](w, own))


def climb(function, w, data):
    """Five steps of gradient ascent, one particle."""
    gradient = jax.grad(function)

    def step(w, _):
        w = w + 0.01 * gradient(w, data)
        return w, function(w, data)

    return jax.lax.scan(step, w, length=5)


def test_scan_inside_vmap_inside_jit(data):
    w = positions(9)
    fast, plain = [
        jax.jit(jax.vmap(lambda w, f=f: climb(f, w, data)))(w)
        for f in (chunked(log_density), log_density)
    ]
    assert_same(fast, plain)


def test_memory_is_that_of_a_chunk(data):
    """The compiled program holds chunks, not all particles."""
    data = jax.tree.map(lambda leaf: jnp.concatenate([leaf] * 50), data)
    w = positions(256)

    def temporary_bytes(function):
        program = jax.jit(jax.vmap(jax.grad(function), (0, None)))
        return program.lower(w, data).compile().memory_analysis().temp_size_in_bytes

    assert temporary_bytes(chunked(log_density)) < temporary_bytes(log_density) / 10


def test_chunk_size_follows_what_the_gradient_keeps(data):
    position = jnp.zeros(NUM_WEIGHTS)
    larger = jax.tree.map(lambda leaf: jnp.concatenate([leaf] * 4), data)
    assert chunk_size(log_density, position, data) == 4
    assert chunk_size(log_density, position, larger) == 1
    shapes = jax.eval_shape(lambda d: d, data)
    assert chunk_size(log_density, position, shapes) == 4


def test_data_are_constants(data):
    with pytest.raises(NotImplementedError, match="data"):
        jax.grad(lambda x: chunked(log_density)(positions(), data._replace(x=x)))(data.x)


SHARDED = """
import jax, numpy as np
from jax.sharding import NamedSharding, PartitionSpec as P
from credence.density import chunks
import jax.numpy as jnp
chunks.CHUNK_BYTES = 1000
f = lambda w, x: jnp.sum(jnp.tanh(x @ w))
fast = jax.value_and_grad(chunks.chunked(f))
w, x = jax.random.normal(jax.random.key(0), (14, 3)), jax.random.normal(jax.random.key(1), (20, 3))
expected = jax.vmap(jax.value_and_grad(f), (0, None))(w, x)
mesh = jax.make_mesh((2,), ("particle",))
w = jax.device_put(w, NamedSharding(mesh, P("particle")))
x = jax.device_put(x, NamedSharding(mesh, P()))
program = jax.shard_map(
    jax.vmap(fast, (0, None)), mesh=mesh, in_specs=(P("particle"), P()), out_specs=P("particle")
)
for sharded in (program, jax.jit(program)):
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4), sharded(w, x), expected)
print(jax.device_count())
"""


def test_shard_map_over_two_devices():
    """The test has a process of its own: the number of host devices is fixed when JAX starts."""
    environment = {"JAX_NUM_CPU_DEVICES": "2", "JAX_PLATFORMS": "cpu"}
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", SHARDED],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.stdout.strip() == "2", run.stderr
