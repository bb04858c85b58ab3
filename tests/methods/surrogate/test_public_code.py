"""The FBNN paper's method with the steps of its public code."""

from dataclasses import replace
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tools.exact import linear_regression

from credence.density.posterior import Posterior
from credence.density.stored_rows import open_rows
from credence.engine.driver import Driver
from credence.errors import InputError
from credence.methods.surrogate import public_code
from credence.methods.surrogate.ces import CES
from credence.methods.surrogate.emulation import emulation
from credence.methods.surrogate.public_code import (
    PRIOR,
    PublicPCN,
    PublicSGHMC,
    crank_nicolson_step,
    refreshed_sghmc,
    under_own_prior,
)
from credence.models import MLP, Gaussian, Normal

PROBLEM = linear_regression().posterior
RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2)).astype(np.float32)
NETWORK = MLP(1, (3,))
PUBLIC = Posterior(NETWORK, PRIOR, Normal(), (X, np.sin(X[:, 0])))
NUM_WEIGHTS = 13
"""Weights of the network; the noise and four precisions follow."""


@lru_cache
def path(refresh_every: int = 50, num_chains: int = 1) -> Any:
    """Positions and velocities of 61 steps."""
    kernel = refreshed_sghmc(
        PUBLIC.log_density, model=PUBLIC.model, refresh_every=refresh_every, precisions_every=15,
        step_size=jnp.float32(0.01), friction=jnp.float32(0.05), is_adapting=jnp.asarray(False),
    )  # fmt: skip

    def chain(key: Any, start: Any) -> Any:
        def step(state: Any, key: Any) -> Any:
            state, _ = kernel.step(key, state, PUBLIC.data)
            return state, (state.position, state.inner.velocity)

        return jax.lax.scan(step, kernel.init(start, PUBLIC.data), jax.random.split(key, 61))[1]

    keys = jax.random.split(jax.random.key(0), num_chains)
    start = PUBLIC.init(jax.random.key(1), 1)[0]
    positions, velocities = jax.jit(jax.vmap(chain, (0, None)))(keys, start)
    return np.asarray(positions), np.asarray(velocities)


def test_precisions_are_drawn_every_fifteen_steps_and_stay_in_between() -> None:
    precisions = path()[0][0][:, NUM_WEIGHTS + 1 :]
    changes = np.flatnonzero(np.any(np.diff(precisions, axis=0) != 0, axis=1)) + 1
    assert precisions.shape[1] == 4
    assert list(changes) == [15, 30, 45, 60]
    assert np.all(np.diff(path()[0][0][:, : NUM_WEIGHTS + 1], axis=0).std(axis=1) > 0)


def remembered(velocities: Any, step: int) -> float:
    """Correlation over chains of the velocities after a step with those before it."""
    before, after = (velocities[:, at, :NUM_WEIGHTS] for at in (step - 1, step))
    before, after = before - before.mean(axis=0), after - after.mean(axis=0)
    return float(np.sum(before * after) / np.sqrt(np.sum(before**2) * np.sum(after**2)))


def test_the_momentum_is_forgotten_every_fifty_steps() -> None:
    velocities = path(50, 300)[1]
    assert remembered(velocities, 50) < 0.2
    assert remembered(velocities, 49) > 0.8
    planted = path(1000, 300)[1]
    assert remembered(planted, 50) > 0.8


def test_draws_are_those_of_the_same_networks_under_another_prior() -> None:
    own = Posterior(NETWORK, Gaussian(), Normal(), (X, np.sin(X[:, 0])))
    positions = np.asarray(PUBLIC.init(jax.random.key(2), 6)).reshape(2, 3, -1)
    found = under_own_prior(positions, own)
    assert found.shape == (2, 3, own.num_weights) == (2, 3, NUM_WEIGHTS + 1)
    outputs = [
        posterior.model.network.apply(
            posterior.unravel(jnp.asarray(at[1, 2])).network, PUBLIC.data.x
        )
        for posterior, at in ((PUBLIC, positions), (own, found))
    ]
    np.testing.assert_array_equal(*outputs)
    again = under_own_prior(positions, PUBLIC)
    np.testing.assert_array_equal(again[..., : NUM_WEIGHTS + 1], found)
    np.testing.assert_allclose(again[..., NUM_WEIGHTS + 1 :], 0)


def test_the_step_of_pcn_keeps_the_reference() -> None:
    """b^2 and the square of the published factor, (1 - h/4) / (1 + h/4), are one."""
    for h in (0.01, 0.5, 2.0):
        assert crank_nicolson_step(h) ** 2 + ((1 - h / 4) / (1 + h / 4)) ** 2 == pytest.approx(1)


def test_raw_draws_begin_at_a_random_start() -> None:
    """40 epochs in which scales are found, then a draw of every epoch: no training, no warm-up."""
    ensemble = PublicSGHMC(num_draws=30, num_chains=2, batch_size=5).run(0, PROBLEM)
    assert (ensemble.num_chains, ensemble.num_draws) == (2, 30)
    assert set(ensemble.cost.seconds) <= {"compile", "warmup", "sample", "other"}
    epochs = 40 + 30
    assert ensemble.cost.gradient_evaluations == 2 * epochs * 3 * 5  # three batches of 12 rows


def test_scales_take_their_share_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """40 epochs of 240: the draws have the rest, whatever there is."""
    shares, phase = {}, Driver.phase

    def noting(self: Driver, name: str, key: Any, plan: Any, *rest: Any) -> Any:
        shares[name] = plan.budget_share
        return phase(self, name, key, replace(plan, num_steps=1, thinning=1, block_steps=1), *rest)

    monkeypatch.setattr(Driver, "phase", noting)
    PublicSGHMC(num_chains=1).run(0, PROBLEM)
    assert shares == {"adapt": pytest.approx(40 / 240), "sample": 1.0}


FLAT = Posterior(NETWORK, Gaussian(scaling="unit"), Normal(1e4), (X, np.sin(X[:, 0])))
"""Data that say nothing: the posterior is N(0, 1), and every proposal of pCN is accepted."""


def raw_noise(h: float) -> tuple[np.ndarray, np.ndarray]:
    """Draws of raw pCN, and what a step adds to them, in units of the published b."""
    drawn = PublicPCN(num_draws=400, num_chains=2, h=h).run(0, FLAT)
    positions = np.asarray(jax.vmap(jax.vmap(FLAT.ravel))(drawn.params))
    b = crank_nicolson_step(0.01)
    return positions, (positions[:, 1:] - (1 - b**2) ** 0.5 * positions[:, :-1]) / b


def test_raw_pcn_takes_one_published_step_a_draw_from_a_random_start() -> None:
    positions, noise = raw_noise(0.01)
    assert positions.shape == (2, 400, NUM_WEIGHTS)
    assert not np.allclose(positions[0, 0], positions[1, 0])
    assert abs(np.mean(noise**2) - 1) < 5 * (2 / noise.size) ** 0.5
    planted = raw_noise(0.011)[1]
    assert abs(np.mean(planted**2) - 1) > 5 * (2 / noise.size) ** 0.5


def test_raw_pcn_calibrates() -> None:
    method = published(calibration="pcn_public", num_draws=60)
    assert isinstance(method._sampler, PublicPCN)
    ensemble = method.run(0, PROBLEM)
    assert set(ensemble.cost.seconds) <= {"compile", "calibrate", "emulate", "sample", "reweigh",
                                          "other"}  # fmt: skip
    prior = Posterior(NETWORK, PRIOR, Normal(), (X, np.sin(X[:, 0])))
    with pytest.raises(InputError, match="needs a Gaussian prior"):
        PublicPCN().prepared(prior)


def published(**settings: Any) -> CES:
    usual: dict[str, Any] = {
        "num_chains": 2, "num_draws": 200, "calibration": "sghmc_public", "num_calibration": 30,
        "num_refinements": 0, "emulator": "network", "sampler": "pcn", "correction": "none",
        "reference": "prior", "step_size": crank_nicolson_step(0.01), "surrogate_steps": 1,
        "thinning": 1, "max_error": np.inf,
    }  # fmt: skip
    return CES(**usual | settings)


@pytest.mark.rotates(3)
def test_as_published_is_one_step_a_draw_from_the_last_calibration_draw(tmp_path) -> None:
    ensemble = published().run(0, PROBLEM, folder=tmp_path)
    assert set(ensemble.cost.seconds) <= {"compile", "calibrate", "emulate", "sample", "reweigh",
                                          "other"}  # fmt: skip
    positions = np.asarray(jax.vmap(jax.vmap(PROBLEM.ravel))(ensemble.params))
    b = crank_nicolson_step(0.01)
    moved = np.any(np.diff(positions, axis=1) != 0, axis=-1)
    noise = positions[:, 1:] - (1 - b**2) ** 0.5 * positions[:, :-1]
    assert moved.mean() > 0.5
    assert noise[moved].std() == pytest.approx(b, rel=0.2)
    assert emulation(ensemble.scalars).pareto_k is not None


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"step_size": 1.5}, "step_size must be at most 0.99 with sampler='pcn'"),
        ({"step_size": 0.0}, "step_size must be > 0"),
        ({"correction": "delayed_acceptance", "surrogate_steps": None}, "nothing tunes how many"),
        ({"emulator": "published:iris"}, "No emulator was published for the data set 'iris'"),
    ],
)
def test_bad_settings_are_refused(settings: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        published(**settings)


def test_a_preset_by_its_name() -> None:
    method = published(emulator="published:adult")
    assert method.emulator.hidden == (4, 32)
    assert CES.from_settings({"emulator": "published:adult", "calibration": "pcn"}).emulator == (
        method.emulator
    )


@pytest.mark.parametrize("settings", [{"friction": 0.0}, {"batch_size": 0}, {"burn_in": 0}])
def test_bad_settings_of_sghmc_are_refused(settings: Any) -> None:
    with pytest.raises(InputError, match=next(iter(settings))):
        PublicSGHMC(**settings)


def test_rows_on_disk_are_refused_before_anything_is_run(tmp_path) -> None:
    np.save(tmp_path / "x.npy", X)
    on_disk = Posterior(NETWORK, Gaussian(), Normal(), (open_rows(tmp_path / "x.npy"), X[:, 0]))
    with pytest.raises(InputError, match="wants its inputs in memory"):
        public_code.PublicSGHMC().prepared(on_disk)


def test_draws_under_its_own_prior_are_not_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    """What shows the progress of a run knows the run's posterior, which has fewer parameters."""
    watched, phase = [], Driver.phase

    def noted(self: Driver, name: str, key: Any, plan: Any, *rest: Any) -> Any:
        watched.append(plan.monitored)
        return phase(self, name, key, plan, *rest)

    monkeypatch.setattr(Driver, "phase", noted)
    PublicSGHMC(num_draws=2, num_chains=1, burn_in=1).run(0, PUBLIC)
    assert watched
    assert not any(watched)
