"""One table of kernels, one set of tests: a kernel joins with a row.

Every kernel here is tried on Gaussian targets from *exact* starts: if it leaves the target
invariant, the positions after any number of steps are again independent exact draws, and their
z-scores are honest. Planted errors show that the tests can fail.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from credence.clock import CompileClock
from credence.errors import InputError
from credence.kernels.base import Kernel
from credence.kernels.blackjax_kernels import hmc, nuts
from credence.posterior import LogDensity

from .targets import GaussianTarget, correlated, gaussian_log_density, standard, z_scores

pytestmark = pytest.mark.usefixtures("float64")


class Row(NamedTuple):
    """A kernel of the table."""

    name: str
    build: Callable[..., Kernel]
    settings: Callable[[GaussianTarget], dict[str, Any]]
    """Good settings for a target."""
    is_exact: bool = True
    """Whether it leaves the target invariant; False skips the invariance tests only."""


def hmc_settings(target: GaussianTarget) -> dict[str, Any]:
    return {
        "step_size": 0.9 * float(target.stds[0]),
        "inverse_mass": jnp.ones(target.dimension),
        "trajectory_length": 1.5 * float(target.stds[-1]),
    }


def nuts_settings(target: GaussianTarget) -> dict[str, Any]:
    return {"step_size": 0.9 * float(target.stds[0]), "inverse_mass": jnp.ones(target.dimension)}


TABLE = [
    Row("hmc", hmc, hmc_settings),
    Row("nuts", nuts, nuts_settings),
]
TARGETS = [standard(2), standard(20), correlated(2), correlated(20)]

kernels = pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
exact_kernels = pytest.mark.parametrize(
    "row", [row for row in TABLE if row.is_exact], ids=lambda row: row.name
)
targets = pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)


def run_chains(
    build: Callable[..., Kernel],
    settings: dict[str, Any],
    target: GaussianTarget,
    starts: np.ndarray,
    *,
    num_steps: int,
    log_density: LogDensity = gaussian_log_density,
    seed: int = 0,
) -> tuple[np.ndarray, Any]:
    """End positions (chain, weight), and Info with leaves (chain, step)."""

    @jax.jit
    def run(keys: jax.Array, starts: jax.Array, data: Any) -> Any:
        kernel = build(log_density, **settings)

        def chain(key: jax.Array, start: jax.Array) -> Any:
            state, info = jax.lax.scan(
                lambda state, key: kernel.step(key, state, data),
                kernel.init(start, data),
                jax.random.split(key, num_steps),
            )
            return state.position, info

        return jax.vmap(chain)(keys, starts)

    keys = jax.random.split(jax.random.key(seed), len(starts))
    return jax.device_get(run(keys, jnp.asarray(starts), target.data))


@exact_kernels
@targets
def test_target_is_invariant(row: Row, target: GaussianTarget):
    starts = target.sample(seed=1, num_draws=4000)
    ends, info = run_chains(row.build, row.settings(target), target, starts, num_steps=4)

    whitened = target.whiten(ends)
    scores = z_scores(whitened)
    assert max(scores.values()) < 4.5, scores
    assert info.is_finite.all()
    counts = np.histogram(stats.norm.cdf(whitened[:, 0]), bins=20, range=(0, 1))[0]
    assert stats.chisquare(counts).pvalue > 1e-4
    # It moves, or invariance would mean nothing: start and end forget each other.
    assert abs(np.mean(target.whiten(starts) * whitened)) < 0.5


@exact_kernels
def test_planted_wrong_density_is_caught(row: Row):
    """A log density 5 % too large makes the variance 1/1.05 of the target's."""
    target = standard(20)
    ends, _ = run_chains(
        row.build,
        row.settings(target),
        target,
        target.sample(seed=2, num_draws=4000),
        num_steps=6,
        log_density=lambda position, data: 1.05 * gaussian_log_density(position, data),
    )
    assert z_scores(target.whiten(ends))["chi^2"] > 8


def test_planted_missing_metropolis_test_is_caught():
    """Leapfrog with step h and no test makes the variance 1 / (1 - h^2 / 4)."""
    target = standard(20)
    ends, _ = run_chains(
        leapfrog_without_test,
        {"step_size": 0.5, "num_leapfrogs": 3},
        target,
        target.sample(seed=3, num_draws=4000),
        num_steps=10,
    )
    assert z_scores(target.whiten(ends))["chi^2"] > 8


def leapfrog_without_test(
    log_density: LogDensity, *, step_size: float, num_leapfrogs: int
) -> Kernel:
    """HMC that accepts everything."""

    class State(NamedTuple):
        position: Any

    def step(key: Any, state: State, data: Any) -> tuple[State, tuple[()]]:
        grad = jax.grad(log_density)
        position = state.position
        momentum = jax.random.normal(key, position.shape)
        for _ in range(num_leapfrogs):
            momentum = momentum + 0.5 * step_size * grad(position, data)
            position = position + step_size * momentum
            momentum = momentum + 0.5 * step_size * grad(position, data)
        return State(position), ()

    return Kernel(lambda position, data: State(position), step)


@kernels
def test_same_key_same_draws(row: Row):
    target = correlated(2)
    starts = target.sample(seed=4, num_draws=8)

    def ends(seed: int) -> np.ndarray:
        settings = row.settings(target)
        return run_chains(row.build, settings, target, starts, num_steps=3, seed=seed)[0]

    np.testing.assert_array_equal(ends(seed=0), ends(seed=0))
    assert not np.any(ends(seed=0) == ends(seed=1))


@kernels
def test_nan_density_is_refused_and_counted(row: Row):
    target = correlated(2)
    starts = target.sample(seed=5, num_draws=16)
    ends, info = run_chains(
        row.build,
        row.settings(target),
        target,
        starts,
        num_steps=2,
        log_density=lambda position, data: jnp.nan * gaussian_log_density(position, data),
    )
    np.testing.assert_array_equal(ends, starts)
    assert not info.is_finite.any()


@exact_kernels
def test_nan_region_is_refused_and_counted(row: Row):
    """Outside a half-plane the log density is NaN: no chain enters, every attempt is counted."""
    target = standard(2)
    starts = target.sample(seed=6, num_draws=200)
    starts[:, 0] = -abs(starts[:, 0])

    def log_density(position: Any, data: Any) -> Any:
        return jnp.where(position[0] < 0, gaussian_log_density(position, data), jnp.nan)

    ends, info = run_chains(
        row.build, row.settings(target), target, starts, num_steps=10, log_density=log_density
    )
    assert np.all(ends[:, 0] < 0)
    assert 0 < np.mean(info.is_finite) < 1


@kernels
def test_another_target_of_the_same_shape_compiles_nothing(row: Row):
    first, second = standard(2), correlated(2)
    kernel = row.build(gaussian_log_density, **row.settings(first))
    init, step = jax.jit(kernel.init), jax.jit(kernel.step)
    key = jax.random.key(0)
    step(key, init(jnp.ones(2), first.data), first.data)

    data, position = second.data, jnp.zeros(2)
    with CompileClock() as clock:
        step(key, init(position, data), data)
    assert clock.num_traces == 0


@kernels
def test_info_says_what_happened(row: Row):
    target = correlated(2)
    _, info = run_chains(
        row.build, row.settings(target), target, target.sample(7, 50), num_steps=2
    )
    assert all(leaf.shape == (50, 2) for leaf in info), "Info holds scalars"
    assert info.is_finite.dtype == bool
    assert np.issubdtype(info.num_gradients.dtype, np.integer)
    assert np.all(info.num_gradients >= 1)
    if row.is_exact:
        assert np.all((info.acceptance_rate >= 0) & (info.acceptance_rate <= 1))
        assert np.mean(info.acceptance_rate) > 0.5


@kernels
@pytest.mark.parametrize("step_size", [0.0, -0.1, np.nan])
def test_step_size_must_be_positive(row: Row, step_size: float):
    settings = {**row.settings(standard(2)), "step_size": step_size}
    with pytest.raises(InputError, match="step_size must be > 0"):
        row.build(gaussian_log_density, **settings)
