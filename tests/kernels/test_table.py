"""One table of kernels, one set of tests: a kernel joins with a row.

Every kernel here is tried on Gaussian targets from *exact* starts: if it leaves the target
invariant, the positions after any number of steps are again independent exact draws, and their
z-scores are honest. Planted errors show that the tests can fail.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float, PRNGKeyArray
from scipy import stats
from tools.targets import GaussianTarget, correlated, gaussian_log_density, standard, z_scores

from credence.density.data import Data
from credence.density.posterior import LogDensity
from credence.engine.clock import CompileClock
from credence.errors import InputError
from credence.kernels.base import Kernel
from credence.kernels.mcmc.hmc import hmc, nuts
from credence.kernels.mcmc.mala import mala
from credence.kernels.mcmc.microcanonical import adjusted_mclmc, mclmc
from credence.kernels.mcmc.pcn import pcn
from credence.kernels.sgmcmc.cyclical import cyclical
from credence.kernels.sgmcmc.rms_sgld import rms_sgld
from credence.kernels.sgmcmc.sghmc import scale_adapted_sghmc, sghmc
from credence.kernels.sgmcmc.ula import ula
from credence.methods.surrogate.delayed_acceptance import delayed_acceptance
from credence.methods.surrogate.surrogate_hmc import surrogate_hmc

pytestmark = [pytest.mark.usefixtures("float64"), pytest.mark.rotates(3)]


class Row(NamedTuple):
    """A kernel of the table; every setting that is not an array belongs into `build`."""

    name: str
    build: Callable[..., Kernel]
    settings: Callable[[GaussianTarget], dict[str, Any]]
    """Good settings for a target."""
    is_exact: bool = True
    """Whether it leaves the target invariant; False skips the invariance tests only."""
    num_steps: int = 5
    """Enough to forget the start."""


def hmc_settings(target: GaussianTarget) -> dict[str, Any]:
    return {
        "step_size": 0.9 * float(target.stds[0]),
        "inverse_mass": jnp.ones(target.dimension),
        "trajectory_length": 1.5 * float(target.stds[-1]),
    }


def nuts_settings(target: GaussianTarget) -> dict[str, Any]:
    return {"step_size": 0.9 * float(target.stds[0]), "inverse_mass": jnp.ones(target.dimension)}


def unadjusted_settings(target: GaussianTarget) -> dict[str, Any]:
    return {
        "step_size": 0.5 * float(target.stds[0]),
        "inverse_mass": jnp.ones(target.dimension),
        "decoherence_length": 1.5 * float(target.stds[-1]),
    }


def langevin_settings(target: GaussianTarget) -> dict[str, Any]:
    return {
        "step_size": 0.8 * float(target.stds[0]) ** 2,
        "inverse_mass": jnp.ones(target.dimension),
    }


def rms_settings(target: GaussianTarget) -> dict[str, Any]:
    return {"step_size": 0.1 * float(target.stds[0]) ** 2}


def sghmc_settings(target: GaussianTarget) -> dict[str, Any]:
    return {
        "step_size": 0.3 * float(target.stds[0]),
        "friction": 0.2,
        "inverse_mass": jnp.ones(target.dimension),
    }


def adaptive_settings(target: GaussianTarget) -> dict[str, Any]:
    return {"step_size": 0.1, "friction": 0.2, "is_adapting": jnp.asarray(True)}


def cyclical_settings(target: GaussianTarget) -> dict[str, Any]:
    return langevin_settings(target) | {"steps_per_cycle": 4, "exploration_share": 0.25}


def pcn_settings(target: GaussianTarget) -> dict[str, Any]:
    std = np.linalg.norm(target.cholesky, axis=1)
    return {
        "step_size": 0.7,
        "reference_mean": jnp.asarray(target.mean + 0.1 * std),
        "reference_std": jnp.asarray(1.05 * std),
    }


def surrogate_settings(target: GaussianTarget) -> dict[str, Any]:
    """A surrogate with another mean and precision, and without the target's correlations."""
    std = np.linalg.norm(target.cholesky, axis=1)
    return {
        "step_size": 0.5 * float(target.stds[0]),
        "inverse_mass": jnp.ones(target.dimension),
        "surrogate": jnp.asarray([target.mean + 0.1 * std, 0.9 / std**2]),
    }


def surrogate_gradient(
    position: Float[Array, " weight"], surrogate: Float[Array, "2 weight"]
) -> Float[Array, " weight"]:
    mean, precision = surrogate
    return precision * (mean - position)


def gaussian_surrogate(
    position: Float[Array, " weight"], surrogate: Float[Array, "2 weight"]
) -> Float[Array, ""]:
    mean, precision = surrogate
    return -0.5 * jnp.sum(precision * (position - mean) ** 2)


rns_hmc = partial(surrogate_hmc, gradient=surrogate_gradient, num_integration_steps=3)


def delayed(
    log_density: LogDensity, *, surrogate: Float[Array, "2 weight"], **settings: Any
) -> Kernel:
    """One step of HMC on a surrogate."""
    return delayed_acceptance(
        log_density,
        surrogate=gaussian_surrogate,
        surrogates=surrogate[None],
        build=hmc,
        settings=settings,
        num_steps=1,
    )


TABLE = [
    Row("hmc", hmc, hmc_settings),
    Row("nuts", nuts, nuts_settings),
    Row("adjusted_mclmc", adjusted_mclmc, hmc_settings),
    Row("mala", mala, langevin_settings, num_steps=40),
    Row("pcn", pcn, pcn_settings, num_steps=20),
    Row("surrogate_hmc", rns_hmc, surrogate_settings, num_steps=40),
    Row("delayed_acceptance", delayed, surrogate_settings, num_steps=30),
    Row("mclmc", mclmc, unadjusted_settings, is_exact=False),
    Row("ula", ula, langevin_settings, is_exact=False),
    Row("rms_sgld", rms_sgld, rms_settings, is_exact=False),
    Row("sghmc", sghmc, sghmc_settings, is_exact=False),
    Row("scale_adapted_sghmc", scale_adapted_sghmc, adaptive_settings, is_exact=False),
    Row("cyclical", partial(cyclical, kernel=ula), cyclical_settings, is_exact=False),
]
TARGETS = [standard(2), standard(20), correlated(2), correlated(20, correlation=0.5)]

kernels = pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
exact_kernels = pytest.mark.parametrize(
    "row", [row for row in TABLE if row.is_exact], ids=lambda row: row.name
)
targets = pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)


NUM_CHAINS = 4000


def run_row(
    row: Row,
    target: GaussianTarget,
    data: Data,
    starts: Float[np.ndarray, "chain weight"],
    seed: int,
) -> tuple[Float[Array, "chain weight"], Any]:
    """End positions of a row's kernel, with its settings for target, moving on data."""
    return run_chains(row.build, row.num_steps, row.settings(target), data, starts, seed)


@partial(jax.jit, static_argnames=("build", "num_steps"))
def run_chains(
    build: Callable[..., Kernel],
    num_steps: int,
    settings: dict[str, Any],
    data: Data,
    starts: Float[Array, "chain weight"],
    seed: int,
) -> tuple[Float[Array, "chain weight"], Any]:
    """End positions, and Info with leaves (chain, step)."""
    kernel = build(gaussian_log_density, **settings)

    def chain(key: PRNGKeyArray, start: Float[Array, " weight"]) -> Any:
        state, info = jax.lax.scan(
            lambda state, key: kernel.step(key, state, data),
            kernel.init(start, data),
            jax.random.split(key, num_steps),
        )
        return state.position, info

    return jax.vmap(chain)(jax.random.split(jax.random.key(seed), len(starts)), starts)


@exact_kernels
@targets
def test_target_is_invariant(row: Row, target: GaussianTarget):
    starts = target.sample(seed=1, num_draws=NUM_CHAINS)
    ends, info = run_row(row, target, target.data, starts, 0)

    whitened = target.whiten(ends)
    scores = z_scores(whitened)
    assert max(scores.values()) < 4.5, scores
    assert np.all(info.is_finite)
    counts = np.histogram(stats.norm.cdf(whitened[:, 0]), bins=20, range=(0, 1))[0]
    assert stats.chisquare(counts).pvalue > 1e-4
    # It moves, or invariance would mean nothing: start and end forget each other.
    assert abs(np.mean(target.whiten(starts) * whitened)) < 0.5


@exact_kernels
def test_planted_wrong_density_is_caught(row: Row):
    """A log density 5 % too large makes the variance 1/1.05 of the target's."""
    target = standard(20)
    wrong = target._replace(factor=1.05)
    starts = target.sample(seed=2, num_draws=NUM_CHAINS)
    ends, _ = run_row(row, target, wrong.data, starts, 0)
    assert z_scores(target.whiten(ends))["chi^2"] > 8


def test_planted_missing_metropolis_test_is_caught():
    """Leapfrog with step h and no test makes the variance 1 / (1 - h^2 / 4)."""
    target = standard(20)
    starts = target.sample(seed=3, num_draws=NUM_CHAINS)
    ends, _ = run_chains(hmc_without_test, 5, {"step_size": 0.6}, target.data, starts, 0)
    assert z_scores(target.whiten(ends))["chi^2"] > 8


def hmc_without_test(log_density: LogDensity, *, step_size: float) -> Kernel:
    """Three leapfrog steps, accepted whatever happens."""

    class State(NamedTuple):
        position: Float[Array, " weight"]

    def step(key: PRNGKeyArray, state: State, data: Data) -> tuple[State, tuple[()]]:
        grad = jax.grad(log_density)
        position = state.position
        momentum = jax.random.normal(key, position.shape)
        for _ in range(3):
            momentum = momentum + 0.5 * step_size * grad(position, data)
            position = position + step_size * momentum
            momentum = momentum + 0.5 * step_size * grad(position, data)
        return State(position), ()

    return Kernel(lambda position, data: State(position), step)


@kernels
def test_same_key_same_draws(row: Row):
    target = correlated(2)
    starts = target.sample(seed=4, num_draws=NUM_CHAINS)
    once, again, other = (run_row(row, target, target.data, starts, seed)[0] for seed in (0, 0, 1))
    np.testing.assert_array_equal(once, again)
    assert np.mean(once == other) < 0.5


@kernels
def test_nan_density_is_refused_and_counted(row: Row):
    target = correlated(2)
    starts = target.sample(seed=5, num_draws=NUM_CHAINS)
    nowhere = target._replace(bound=-np.inf)
    ends, info = run_row(row, target, nowhere.data, starts, 0)
    np.testing.assert_array_equal(ends, starts)
    assert not np.any(info.is_finite)


@exact_kernels
def test_nan_region_is_never_entered_and_attempts_are_counted(row: Row):
    target = standard(2)._replace(bound=0.0)
    starts = target.sample(seed=6, num_draws=NUM_CHAINS)
    starts[:, 0] = -abs(starts[:, 0])
    ends, info = run_row(row, target, target.data, starts, 0)
    assert np.all(ends[:, 0] < 0)
    assert 0.1 < np.mean(info.is_finite) < 0.9


@kernels
def test_another_target_of_the_same_shape_compiles_nothing(row: Row):
    first, second = standard(2), correlated(2)
    kernel = row.build(gaussian_log_density, **row.settings(first))
    step = jax.jit(lambda key, position, data: kernel.step(key, kernel.init(position, data), data))
    key = jax.random.key(0)
    step(key, jnp.ones(2), first.data)

    position, data = jnp.zeros(2), second.data
    with CompileClock() as clock:
        step(key, position, data)
    assert clock.num_traces == 0


@kernels
def test_info_says_what_happened(row: Row):
    target = correlated(2)
    starts = target.sample(seed=7, num_draws=NUM_CHAINS)
    _, info = run_row(row, target, target.data, starts, 0)
    assert all(leaf.shape == (NUM_CHAINS, row.num_steps) for leaf in info), "Info holds scalars"
    assert info.is_finite.dtype == bool
    work = info.num_evaluations if hasattr(info, "num_evaluations") else info.num_gradients
    assert np.issubdtype(work.dtype, np.integer)
    assert np.all(work >= 1)
    if row.is_exact:
        assert np.all((info.acceptance_rate >= 0) & (info.acceptance_rate < 1 + 1e-9))
        assert np.mean(info.acceptance_rate) > 0.5


@kernels
@pytest.mark.parametrize("step_size", [0.0, -0.1, np.nan])
def test_step_size_must_be_positive(row: Row, step_size: float):
    settings = {**row.settings(standard(2)), "step_size": step_size}
    with pytest.raises(InputError, match="step_size must be > 0"):
        row.build(gaussian_log_density, **settings)


@exact_kernels
def test_settings_may_change_between_steps(row: Row):
    """What State keeps belongs to the target, not to the settings it was computed with."""
    target = correlated(2)
    starts = target.sample(seed=8, num_draws=NUM_CHAINS)
    settings = row.settings(target)
    other = {
        name: value if name in ("trajectory_length", "decoherence_length") else 0.8 * value
        for name, value in settings.items()
    }

    def chain(key: PRNGKeyArray, start: Float[Array, " weight"]) -> Any:
        state = row.build(gaussian_log_density, **settings).init(start, target.data)
        kernel = row.build(gaussian_log_density, **other)
        step = lambda state, key: kernel.step(key, state, target.data)  # noqa: E731
        return jax.lax.scan(step, state, jax.random.split(key, row.num_steps))[0].position

    ends = jax.jit(jax.vmap(chain))(jax.random.split(jax.random.key(9), NUM_CHAINS), starts)
    scores = z_scores(target.whiten(ends))
    assert max(scores.values()) < 4.5, scores
