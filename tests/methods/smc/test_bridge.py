"""The mutation step: exact at every temperature, and the likelihoods it carries are true ones.

Prior and both likelihoods are Gaussian in the weights, so every density on the bridge is, and exact
starts stay exact draws.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tools.targets import GaussianTarget, z_scores

from credence.adaptation.tunable_kernels import tunable_kernel
from credence.density.data import Data
from credence.kernels.base import Kernel
from credence.kernels.mcmc.hmc import leapfrogs
from credence.kernels.mcmc.mala import mala
from credence.kernels.mcmc.pcn import pcn
from credence.methods.smc.bridge import Bridge, ParticleState, between, mutation

pytestmark = [pytest.mark.usefixtures("float64"), pytest.mark.rotates(3)]

DIMENSION, NUM_PARTICLES = 4, 20_000
SCALE = jnp.linspace(0.5, 2.0, DIMENSION)


class Gaussian(NamedTuple):
    """log density -(w - mean)' precision (w - mean) / 2 + offset."""

    mean: Any
    precision: Any
    offset: float = 0.0

    def __call__(self, position: Any, data: Data) -> Any:
        centred = position - self.mean
        return self.offset - 0.5 * centred @ self.precision @ centred


def gaussian(seed: int, strength: float, offset: float = 0.0) -> Gaussian:
    """A Gaussian with correlations and a mean that is not zero."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(DIMENSION, DIMENSION))
    precision = strength * (root @ root.T / DIMENSION + 0.3 * np.eye(DIMENSION))
    return Gaussian(jnp.asarray(rng.normal(size=DIMENSION)), jnp.asarray(precision), offset)


PRIOR = Gaussian(jnp.zeros(DIMENSION), jnp.diag(SCALE**-2))
START, END = gaussian(1, 1.0, offset=-3.0), gaussian(2, 4.0, offset=5.0)
BRIDGE = Bridge(lambda w, d: PRIOR(w, d), lambda w, d: START(w, d), lambda w, d: END(w, d), 2)
DATA = Data(jnp.zeros((1, 1)), jnp.zeros((1, 1)), jnp.ones(1))


def tempered(temperature: float) -> GaussianTarget:
    """The density on the bridge."""
    parts = [(1.0, PRIOR), (1 - temperature, START), (temperature, END)]
    precision = sum(np.asarray(share * part.precision) for share, part in parts)
    pull = sum(np.asarray(share * part.precision @ part.mean) for share, part in parts)
    cholesky = np.linalg.cholesky(np.linalg.inv(precision))
    return GaussianTarget(f"t={temperature}", np.linalg.solve(precision, pull), cholesky)


PCN = pcn, {"step_size": 0.5, "reference_mean": 0.1 * SCALE, "reference_std": 0.7 * SCALE}
KERNELS: dict[str, tuple[Callable[..., Kernel], dict[str, Any]]] = {
    "pcn": PCN,
    "pcn_terms": PCN,
    "hmc": (
        leapfrogs,
        {"step_size": 0.5, "inverse_mass": 0.3 * SCALE, "num_integration_steps": 3},
    ),
    "mala": (mala, {"step_size": 0.4, "inverse_mass": 0.3 * SCALE}),
    "mclmc": (
        tunable_kernel("mclmc").build,
        {"step_size": 0.4, "inverse_mass": 0.3 * SCALE, "trajectory_length": 1.0},
    ),
}
kernels = pytest.mark.parametrize("kernel", KERNELS)
temperatures = pytest.mark.parametrize("temperature", [0.3, 1.0])


@partial(jax.jit, static_argnames=("kernel", "bridge"))
def moved(
    states: ParticleState, temperature: Any, num_steps: Any, kernel: str, bridge: Bridge = BRIDGE
) -> Any:
    """Particles after a mutation, and what it did."""
    build, settings = KERNELS[kernel]
    step = mutation(
        bridge,
        build=build,
        temperature=temperature,
        num_steps=num_steps,
        scale=SCALE,
        settings=jax.tree.map(jnp.asarray, settings),
        carries_terms=kernel == "pcn_terms",
    ).step
    keys = jax.random.split(jax.random.key(0), len(states.position))
    return jax.vmap(lambda key, state: step(key, state, DATA))(keys, states)


def exact_starts(temperature: float) -> ParticleState:
    """Draws of a density on the bridge, with their likelihoods."""
    draws = jnp.asarray(tempered(temperature).sample(3, NUM_PARTICLES))
    return evaluated(draws)


def evaluated(positions: Any) -> ParticleState:
    """Particles with their likelihoods, from their own formulas."""
    values = (jax.vmap(end, (0, None))(positions, DATA) for end in (START, END))
    return ParticleState(positions, *values, positions)


def worst_z(states: ParticleState, temperature: float) -> float:
    """The worst z of moments after a mutation that should leave this density invariant."""
    return max(z_scores(tempered(temperature).whiten(np.asarray(states.position))).values())


@kernels
@temperatures
def test_the_density_on_the_bridge_is_invariant(kernel: str, temperature: float) -> None:
    starts = exact_starts(temperature)
    states, info = moved(starts, temperature, 5, kernel)
    z = worst_z(states, temperature)
    print(f"{kernel} t={temperature}: z={z:.1f}, acceptance {info.acceptance_rate.mean():.2f}")
    assert z < 4.5
    assert np.all(info.is_finite)
    assert np.mean(info.distance) > 0.05  # it moves, or invariance would mean nothing


@kernels
@temperatures
def test_carried_likelihoods_are_those_of_the_position(kernel: str, temperature: float) -> None:
    starts = exact_starts(temperature)
    states, info = moved(starts, temperature, 5, kernel)
    fresh = evaluated(states.position)._replace(origin=starts.position)
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-10), states, fresh)
    np.testing.assert_array_equal(info.log_start, states.log_start)
    np.testing.assert_array_equal(info.log_end, states.log_end)
    assert np.all(info.temperature == temperature)


@pytest.mark.parametrize("kernel", ["pcn", "hmc", "mala"])
def test_no_steps_only_evaluate(kernel: str) -> None:
    """Whatever likelihoods the particles came with."""
    starts = exact_starts(0.3)
    wrong = starts._replace(log_start=starts.log_end, log_end=0 * starts.log_end)
    states, info = moved(wrong, 0.3, 0, kernel)
    np.testing.assert_array_equal(states.position, starts.position)
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-10), states, starts)
    assert np.all(info.acceptance_rate == 0)
    assert np.all(info.distance == 0)
    assert np.all(info.num_gradients == (kernel != "pcn")), "the first state's"
    assert np.all(info.num_evaluations == 1)


def test_a_mutation_says_what_it_cost_and_how_far_it_went() -> None:
    starts = exact_starts(0.3)
    states, info = moved(starts, 0.3, 5, "mala")
    assert np.all(info.num_gradients == 1 + 5)
    again, more = moved(states, 0.3, 5, "mala")
    for ends, told in ((states, info), (again, more)):  # from where they first came
        distance = np.mean(((ends.position - starts.position) / SCALE) ** 2, axis=1)
        np.testing.assert_allclose(told.distance, distance, rtol=1e-10)
    assert np.all(moved(starts, 0.3, 5, "pcn")[1].num_evaluations == 6)  # and once at the end


@pytest.mark.parametrize(("kernel", "gradients"), [("mala", 6), ("hmc", 16), ("pcn_terms", 0)])
def test_every_gradient_is_counted(
    kernel: str, gradients: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five steps take a gradient each, and the state from which they start takes one."""
    calls = []

    class Counted(Gaussian):
        def __call__(self, position: Any, data: Data) -> Any:
            return gradient_seen(super().__call__(position, data))

    @jax.custom_jvp
    def gradient_seen(value: Any) -> Any:
        return value

    @gradient_seen.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        jax.debug.callback(lambda: calls.append(1))
        return primals[0], tangents[0]

    end = Counted(*END)
    bridge = Bridge(BRIDGE.log_prior, BRIDGE.log_start, lambda w, d: end(w, d), 2)
    one = jax.tree.map(lambda leaf: leaf[:1], exact_starts(0.3))
    _, info = moved(one, 0.3, 5, kernel, bridge)
    jax.effects_barrier()
    assert (int(info.num_gradients[0]), len(calls)) == (gradients, gradients)


@temperatures
def test_a_kernel_that_carries_terms_saves_one_evaluation(temperature: float) -> None:
    """The kernel that carries terms also does the same as the plain one."""
    starts = exact_starts(temperature)
    plain, told = moved(starts, temperature, 5, "pcn")
    states, info = moved(starts, temperature, 5, "pcn_terms")
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-10), states, plain)
    assert np.all(info.num_evaluations == told.num_evaluations - 1)


@kernels
@temperatures
def test_planted_other_temperature_is_caught(kernel: str, temperature: float) -> None:
    states, _ = moved(exact_starts(temperature), 0.8 * temperature, 5, kernel)
    z = worst_z(states, temperature)
    print(f"{kernel} t={temperature}: planted z={z:.1f}")
    assert z > 8


@kernels
def test_planted_likelihoods_of_other_particles_are_caught(kernel: str) -> None:
    """What resampling would do that copied positions alone."""
    starts = exact_starts(1.0)
    stale = starts._replace(log_start=starts.log_start[::-1], log_end=starts.log_end[::-1])
    z = worst_z(moved(stale, 1.0, 2, kernel)[0], 1.0)
    print(f"{kernel}: planted z={z:.1f}")
    assert z > 8


@kernels
def test_planted_swapped_ends_are_caught(kernel: str) -> None:
    swapped = Bridge(BRIDGE.log_prior, BRIDGE.log_end, BRIDGE.log_start, 2)
    starts = exact_starts(0.3)
    flipped = starts._replace(log_start=starts.log_end, log_end=starts.log_start)
    assert worst_z(moved(flipped, 0.3, 5, kernel, swapped)[0], 0.3) > 8


def test_an_end_that_does_not_count_may_be_infinite() -> None:
    low, finite = jnp.asarray(-jnp.inf), jnp.asarray(-2.0)
    assert between(finite, low, 0.0) == -2.0
    assert between(low, finite, 1.0) == -2.0
    assert between(finite, low, 0.5) == -jnp.inf
    assert between(low, finite, 0.5) == -jnp.inf


@kernels
def test_impossible_positions_are_never_entered(kernel: str) -> None:
    """The end's likelihood is zero where the first weight is above its mean."""

    def cut(position: Any, data: Data) -> Any:
        return jnp.where(position[0] > END.mean[0], -jnp.inf, END(position, data))

    bridge = Bridge(BRIDGE.log_prior, BRIDGE.log_start, cut, 2)
    positions = exact_starts(0.3).position
    positions = positions[positions[:, 0] <= END.mean[0]]
    states, info = moved(evaluated(positions), 0.3, 5, kernel, bridge)
    assert np.all(states.position[:, 0] <= END.mean[0])
    assert np.all(np.isfinite(states.log_end))
    assert not np.all(info.is_finite)  # attempts are seen
    # From exact starts of a distribution cut by a hyperplane: its mass beyond any point stays.
    below = np.mean(np.asarray(positions)[:, 0] <= END.mean[0] - 0.5)
    error = np.sqrt(2 * below * (1 - below) / len(positions))
    assert abs(np.mean(states.position[:, 0] <= END.mean[0] - 0.5) - below) < 4.5 * error
