"""Delayed acceptance: exact for any surrogate, and the mistakes that make it inexact."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float
from tools.targets import z_scores

from credence.adaptation.tunable_kernels import tunable_kernel
from credence.density.data import Data
from credence.kernels.base import Kernel
from credence.kernels.mcmc.hmc import hmc, leapfrogs
from credence.kernels.mcmc.pcn import pcn
from credence.kernels.sgmcmc.sghmc import sghmc
from credence.methods.surrogate import delayed_acceptance as module
from credence.methods.surrogate.delayed_acceptance import (
    DelayedState,
    delayed_acceptance,
    uncorrected,
)

pytestmark = pytest.mark.usefixtures("float64")

NUM_CHAINS, NUM_STEPS = 20_000, 60
RNG = np.random.default_rng(4)
FORWARD = RNG.normal(size=(6, 3))
Y = FORWARD @ np.array([0.5, -1.0, 0.3]) + 0.7 * RNG.normal(size=6)
EMULATED = 0.85 * FORWARD + 0.1 * RNG.normal(size=(6, 3))
NOISE_STD = 0.7
PRECISION = np.eye(3) + FORWARD.T @ FORWARD / NOISE_STD**2
MEAN = np.linalg.solve(PRECISION, FORWARD.T @ Y) / NOISE_STD**2
CHOLESKY = np.linalg.cholesky(np.linalg.inv(PRECISION))
NOTHING = Data(jnp.zeros((1, 1)), jnp.zeros((1, 1)), jnp.ones(1))
PRIOR = {"step_size": 0.5, "reference_mean": jnp.zeros(3), "reference_std": jnp.ones(3)}


def potential(position: Float[Array, " weight"], forward: Any) -> Float[Array, ""]:
    """Minus the log likelihood."""
    return 0.5 * jnp.sum((Y - forward @ position) ** 2) / NOISE_STD**2


def log_density(position: Float[Array, " weight"], data: Any) -> Float[Array, ""]:
    """Log density of the posterior; the prior is N(0, I)."""
    return -potential(position, FORWARD) - 0.5 * jnp.sum(position**2)


def surrogate(position: Float[Array, " weight"], forward: Any) -> Float[Array, ""]:
    return -potential(position, forward) - 0.5 * jnp.sum(position**2)


def kernel(
    num_steps: int, build: Any = delayed_acceptance, forward: Any = EMULATED, inner: Any = pcn,
    settings: Any = PRIOR, target: Any = log_density, by: Any = surrogate,
) -> Kernel:  # fmt: skip
    return build(
        target,
        surrogate=by,
        surrogates=jnp.asarray(forward)[None],
        build=inner,
        settings=settings,
        num_steps=num_steps,
    )


@partial(jax.jit, static_argnames=("built", "num_steps"))
def _ends(built: Kernel, num_steps: int, starts: Any, seed: int) -> Any:
    def chain(key: Any, start: Any) -> Any:
        keys = jax.random.split(key, num_steps)
        step = lambda state, key: built.step(key, state, NOTHING)  # noqa: E731
        return jax.lax.scan(step, built.init(start, NOTHING), keys)

    states, info = jax.vmap(chain)(jax.random.split(jax.random.key(seed), len(starts)), starts)
    return states.position, info


def worst_z(built: Kernel) -> tuple[float, Any]:
    """The worst z of the moments of 20,000 chains after 60 steps from exact draws."""
    noise = np.random.default_rng(1).normal(size=(NUM_CHAINS, 3))
    ends, info = _ends(built, NUM_STEPS, MEAN + noise @ CHOLESKY.T, 0)
    whitened = np.linalg.solve(CHOLESKY, (np.asarray(ends) - MEAN).T).T
    assert abs(np.mean(noise * whitened)) < 0.3, "it moves"
    return max(z_scores(whitened).values()), info


@pytest.mark.parametrize("num_steps", [1, 10])
def test_a_poor_surrogate_leaves_the_posterior_invariant(num_steps: int) -> None:
    worst, info = worst_z(kernel(num_steps))
    print(f"{num_steps} steps: worst z {worst:.1f}")
    assert worst < 4.5
    assert 0.3 < np.mean(info.acceptance_rate) < 0.9, "the surrogate is poor"


def test_hamiltonian_steps_on_a_surrogate_leave_the_posterior_invariant() -> None:
    settings = {"step_size": 0.3, "inverse_mass": jnp.ones(3), "trajectory_length": 1.0}
    worst, _ = worst_z(kernel(2, inner=hmc, settings=settings))
    assert worst < 4.5


MCLMC = tunable_kernel("mclmc")
EVEN = MCLMC.reversible_together


@pytest.mark.parametrize(
    ("tunable", "num_steps", "is_exact"),
    [(MCLMC, 1, True), (MCLMC, 3, False), (EVEN, 2, True), (EVEN, 3, True)],
    ids=["one", "planted: of different lengths", "two of one length", "three of one length"],
)
def test_steps_of_mclmc_are_reversible_together_where_they_are_of_one_length(
    tunable: Any, num_steps: int, is_exact: bool
) -> None:
    """Trajectories of MCLMC differ in length, and in reverse order they are other steps: `CES`
    takes those that do not. One step from a fresh direction is reversible either way."""
    precision, centre = jnp.array([0.4, 1.0, 2.5]), jnp.array([0.5, 0.0, -0.3])
    built = kernel(
        num_steps,
        inner=tunable.build,
        settings={"step_size": 0.6, "inverse_mass": jnp.ones(3), "trajectory_length": 1.5},
        target=lambda w, _: -0.5 * jnp.sum(w**2),
        by=lambda w, _: -0.5 * jnp.sum(precision * (w - centre) ** 2),
    )
    starts = np.random.default_rng(2).normal(size=(300_000, 3))
    worst = max(z_scores(np.asarray(_ends(built, 4, starts, 0)[0])).values())
    print(f"MCLMC, {num_steps} steps: worst z {worst:.1f}")
    assert worst < 4.5 if is_exact else worst > 8


def reporting(factor: float) -> Any:
    """pCN that tells the second stage a multiple of the surrogate's log density."""

    class State(NamedTuple):
        position: Any
        log_density: Any
        state: Any

    def build(log_density: Any, **settings: Any) -> Kernel:
        honest = pcn(log_density, **settings)

        def told(state: Any) -> State:
            return State(state.position, factor * state.log_density, state)

        def step(key: Any, state: State, data: Any) -> Any:
            new, info = honest.step(key, state.state, data)
            return told(new), info

        return Kernel(lambda position, data: told(honest.init(position, data)), step)

    return build


class TestPlantedErrors:
    """Each is caught by the same runs."""

    def test_second_stage_without_the_surrogate(self) -> None:
        assert worst_z(kernel(1, inner=reporting(0.0)))[0] > 10

    def test_second_stage_with_the_sign_of_the_surrogate_flipped(self) -> None:
        assert worst_z(kernel(1, inner=reporting(-1.0)))[0] > 10

    def test_the_prior_in_the_second_stage_alone(self) -> None:
        def without_prior(position: Any, data: Any) -> Any:
            return -potential(position, FORWARD)

        assert worst_z(kernel(1, target=without_prior))[0] > 10

    def test_no_second_stage(self) -> None:
        assert worst_z(kernel(1, build=uncorrected))[0] > 10


class Steps(NamedTuple):
    positions: Any
    acceptance_rate: Any


def chain(built: Kernel, num_steps: int) -> Steps:
    """A chain from the mean, with the keys 0, 1, ..."""
    step = jax.jit(lambda key, state: built.step(key, state, NOTHING))
    state, found = built.init(jnp.asarray(MEAN), NOTHING), []
    for index in range(num_steps):
        state, info = step(jax.random.key(index), state)
        found.append((state.position, info.acceptance_rate))
    return Steps(*map(np.stack, zip(*found, strict=True)))


def test_a_constant_likelihood_makes_it_pcn() -> None:
    """Both use the same random numbers: noise for the proposal, one number to accept."""
    plain = pcn(log_density, **PRIOR)

    def step(key: Any, state: Any, data: Any) -> Any:
        key_move, key_accept = jax.random.split(key)
        key_noise, _ = jax.random.split(jax.random.fold_in(key_move, 0))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(jax.random, "split", lambda key, num=2: (key_noise, key_accept))
            return plain.step(key, state, data)

    expected = chain(Kernel(plain.init, step), 50)
    found = chain(kernel(1, forward=0 * FORWARD), 50)
    np.testing.assert_allclose(found.positions, expected.positions, rtol=1e-12)
    np.testing.assert_allclose(found.acceptance_rate, expected.acceptance_rate, rtol=1e-9)
    assert 0.05 < np.mean(found.acceptance_rate) < 0.95


def test_a_perfect_surrogate_is_always_accepted() -> None:
    found = chain(kernel(5, forward=FORWARD), 50)
    np.testing.assert_allclose(found.acceptance_rate, 1, rtol=1e-9)


def test_every_chain_follows_its_own_surrogate() -> None:
    both = jnp.stack([jnp.asarray(EMULATED), jnp.asarray(FORWARD)])
    built = delayed_acceptance(
        log_density, surrogate=surrogate, surrogates=both, build=pcn, settings=PRIOR, num_steps=5
    )

    def rates(member: int) -> Any:
        def one(key: Any) -> Any:
            start = built.init(jnp.asarray(MEAN), NOTHING)._replace(member=jnp.int32(member))
            return built.step(key, start, NOTHING)[1].acceptance_rate

        return jax.vmap(one)(jax.random.split(jax.random.key(0), 200))

    np.testing.assert_allclose(rates(1), 1, rtol=1e-9)
    assert np.mean(rates(0)) < 0.9


def test_uncorrected_chains_draw_from_the_surrogate() -> None:
    precision = np.eye(3) + EMULATED.T @ EMULATED / NOISE_STD**2
    mean = np.linalg.solve(precision, EMULATED.T @ Y) / NOISE_STD**2
    cholesky = np.linalg.cholesky(np.linalg.inv(precision))
    noise = np.random.default_rng(1).normal(size=(NUM_CHAINS, 3))
    ends, _ = _ends(kernel(2, build=uncorrected), 30, mean + noise @ cholesky.T, 0)
    assert max(z_scores(np.linalg.solve(cholesky, (np.asarray(ends) - mean).T).T).values()) < 4.5


HAMILTONIAN = {"step_size": 0.3, "inverse_mass": jnp.ones(3)}


@pytest.mark.parametrize(
    ("inner", "settings", "expected"),
    [
        (pcn, PRIOR, 1 + 5),
        (leapfrogs, HAMILTONIAN | {"num_integration_steps": 4}, 3 + 5 * 4 * 3),
        (sghmc, HAMILTONIAN | {"friction": 0.1}, 5 * 3),
    ],
    ids=["pcn", "hmc", "sghmc"],
)
def test_evaluations_of_the_surrogate_are_counted(inner: Any, settings: Any, expected: int) -> None:
    """Counted are the chain's start, its steps, and, where nothing corrects it, its end."""

    def counted(build: Any) -> int:
        built = kernel(5, build=build, inner=inner, settings=settings)
        start = built.init(jnp.asarray(MEAN), NOTHING)
        return int(built.step(jax.random.key(0), start, NOTHING)[1].num_surrogate_evaluations)

    assert counted(uncorrected) == expected + 1
    assert inner is sghmc or counted(delayed_acceptance) == expected


def test_state_depends_on_no_setting() -> None:
    assert DelayedState._fields == ("position", "log_density", "member")
    assert module.UncorrectedState._fields == ("position", "member")
