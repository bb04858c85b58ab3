"""Interacting particles as a whole method: exact posteriors, resume, warnings, refusals.

Particles of a run share their partners, so that standard errors come from independent runs.
"""

import os
import subprocess
import sys
import warnings
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from tools.exact import linear_regression, weights
from tools.moments import moment_z
from tools.stops import AfterBlocks, Stop

from credence.adaptation.windows import window_adaptation
from credence.density.posterior import Posterior
from credence.engine.blocks import Block
from credence.engine.driver import Driver
from credence.engine.phases import PhaseResult
from credence.errors import InputError
from credence.methods import METHODS
from credence.methods.interacting.auxiliary import FULL_GAUSSIAN
from credence.methods.interacting.auxiliary_choice import usual_temperature
from credence.methods.interacting.jump_tuning import JumpTuning, UntunedJumpsWarning
from credence.methods.interacting.method import Interacting
from credence.methods.interacting.partner_warnings import (
    DegenerateAuxiliaryWarning,
    StuckPartnersWarning,
    warn_of_partners,
    warn_where_stuck,
)
from credence.methods.training import Training
from credence.models import MLP, Gaussian, HierarchicalGamma, Normal

pytestmark = pytest.mark.rotates(3)

PROBLEM = linear_regression()
NUM_RUNS = 24
SETTINGS: dict[str, Any] = {
    "num_particles": 32,
    "num_draws": 200,
    "num_warmup": 150,
    "training": Training(max_epochs=300),
}
METHODS_BY_NAME = {
    "ar, tempered": Interacting(**SETTINGS),
    "ar, ladder": Interacting(**SETTINGS, auxiliary="ladder", num_rungs=3, temperature=8.0),
    "ar, ladder, synchronous": Interacting(
        **SETTINGS, auxiliary="ladder", num_rungs=2, jump_probability=0.3, synchronous=True
    ),
    "ar, tempered, synchronous": Interacting(**SETTINGS, synchronous=True),
    "ar, prior, pcn": Interacting(
        **SETTINGS | {"num_warmup": 600}, auxiliary="prior", kernel="pcn", thinning=20
    ),
    "ar, laplace, mala": Interacting(
        **SETTINGS, auxiliary="laplace", kernel="mala", num_past=2, order="composition"
    ),
    "ar, ensemble": Interacting(**SETTINGS, auxiliary="ensemble", target_jump_rate=0.2),
    "bg, laplace": Interacting(
        **SETTINGS | {"num_particles": 400, "num_draws": 25}, jump="bg", auxiliary="laplace",
        selection="stratified",
    ),
}  # fmt: skip


def runs(method: Interacting, posterior: Posterior = PROBLEM.posterior) -> np.ndarray:
    """Weights of independent runs: (run, particle and draw, weight)."""
    ensembles = [method.run(seed, posterior) for seed in range(NUM_RUNS)]
    return np.stack([weights(each).reshape(-1, 4) for each in ensembles])


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name != "ar, tempered" else ())
        for name in METHODS_BY_NAME
    ],
)
@pytest.mark.filterwarnings(
    "ignore::credence.methods.interacting.partner_warnings.DegenerateAuxiliaryWarning"
)
def test_posterior_of_linear_regression(name: str) -> None:
    draws = runs(METHODS_BY_NAME[name])
    wrong = PROBLEM._replace(noise_std=1.1 * PROBLEM.noise_std)
    z, planted = moment_z(draws, PROBLEM), moment_z(draws, wrong)
    print(f"{name}: z {z:.1f}; another noise {planted:.1f}")
    assert z < 4.5
    assert planted > 8


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("eta omitted", lambda log_target, *_: log_target),
        ("uniform", lambda log_target, *_: 0 * log_target),
    ],
)
def test_planted_errors_in_the_potential(name: str, wrong: Any, monkeypatch: Any) -> None:
    planted = FULL_GAUSSIAN._replace(log_potential=wrong)
    monkeypatch.setattr("credence.methods.interacting.auxiliary_choice.FULL_GAUSSIAN", planted)
    method = Interacting(**SETTINGS, auxiliary="laplace", jump_probability=0.7, widening=1.5)
    z = moment_z(runs(method), PROBLEM)
    print(f"{name}: z {z:.1f}")
    assert z > 8


SMALL = Interacting(
    num_particles=6, num_draws=50, num_warmup=100, training=Training(max_epochs=100)
)


def test_a_warmup_without_time_for_jumps_says_so() -> None:
    method = replace(SMALL, target_jump_rate=0.2, num_warmup=1000)
    with pytest.warns(UntunedJumpsWarning, match=r"jump_probability stays 0\.1"):
        method.run(1, PROBLEM.posterior, max_seconds=1e-3)


def test_ensemble_scalars_and_cost() -> None:
    ensemble = replace(SMALL, target_jump_rate=0.2).run(1, PROBLEM.posterior)
    assert weights(ensemble).shape == (6, 50, 4)
    scalars = ensemble.scalars
    assert np.all(scalars["is_finite"] == 1)
    assert np.all(scalars["potential_ess"] > 1)
    assert np.mean(scalars["is_accepted_jump"]) == pytest.approx(0.2, abs=0.08)
    assert set(ensemble.cost.seconds) == {"compile", "train", "warmup", "sample", "other"}
    gradients = np.sum(scalars["num_gradients"]) * len(PROBLEM.x)
    assert ensemble.cost.gradient_evaluations > gradients
    assert ensemble.provenance.settings["jump"] == "ar"
    assert ensemble.weights is None


def test_partners_on_the_posterior_cost_gradients_and_fresh_ones_none() -> None:
    mala = replace(SMALL, kernel="mala")
    tempered = mala.run(1, PROBLEM.posterior).scalars["num_gradients"]
    fresh = replace(mala, auxiliary="laplace").run(1, PROBLEM.posterior).scalars["num_gradients"]
    assert (np.unique(tempered), np.unique(fresh)) == ([3], [2])


def test_resume_draws_bit_for_bit_what_a_whole_run_draws(tmp_path: Any) -> None:
    whole = weights(SMALL.run(3, PROBLEM.posterior))
    for num_blocks in (2, 7):
        folder, stops = tmp_path / str(num_blocks), AfterBlocks(num_blocks)
        with pytest.raises(Stop):
            SMALL.run(3, PROBLEM.posterior, folder=folder, progress=stops)
        resumed = SMALL.run(3, PROBLEM.posterior, folder=folder)
        np.testing.assert_array_equal(weights(resumed), whole)


def test_same_key_same_draws() -> None:
    one, again, other = (weights(SMALL.run(seed, PROBLEM.posterior)) for seed in (5, 5, 6))
    np.testing.assert_array_equal(one, again)
    assert np.mean(one == other) < 0.5


class TestDegenerateAuxiliary:
    def test_prior_far_from_the_posterior(self) -> None:
        method = replace(SMALL, auxiliary="prior", num_particles=20)
        with pytest.warns(DegenerateAuxiliaryWarning, match=r"are worth 1\.\d of 20 particles"):
            method.run(1, PROBLEM.posterior)

    def test_tails_lighter_than_the_posterior(self) -> None:
        method = replace(
            SMALL, auxiliary="laplace", widening=0.25, num_particles=400, jump="bg", num_draws=25
        )
        with pytest.warns(DegenerateAuxiliaryWarning, match=r"of 400 particles, Pareto k \d"):
            method.run(1, PROBLEM.posterior)

    @pytest.mark.rotates(3)
    def test_good_ones_are_quiet(self) -> None:
        for name in ("tempered", "laplace"):
            replace(SMALL, auxiliary=name, num_particles=100).run(1, PROBLEM.posterior)


def phase(log_potential: np.ndarray, *, ess: float) -> PhaseResult:
    """The parts of a phase that the warnings read."""
    info = {
        "log_potential": log_potential,
        "potential_ess": np.full(log_potential.shape, ess),
        "is_jump": np.ones(log_potential.shape),
        "is_accepted_jump": np.full(log_potential.shape, 0.5),
    }
    past = SimpleNamespace(log_potential=log_potential[:, -1:])
    none = np.zeros((*log_potential.shape, 0))
    return PhaseResult(SimpleNamespace(past=past), none, info, (), 0, "sample", 0, 0, 0.0, 0.0, 0.0)


class TestStuckPartners:
    """What R-hat between particles that share their partners cannot show."""

    @staticmethod
    def potentials(apart: float) -> np.ndarray:
        """Potentials of eight partners that live at two heights, `apart` nats apart."""
        noise = np.random.default_rng(0).normal(size=(8, 300))
        return noise + apart * (np.arange(8) % 2)[:, None]

    def test_two_places(self) -> None:
        with pytest.warns(StuckPartnersWarning, match=r"R-hat of their potentials is 1\.\d"):
            warn_where_stuck(self.potentials(2.0), auxiliary="tempered")

    def test_one_place_is_quiet(self) -> None:
        warn_where_stuck(self.potentials(0.0), auxiliary="tempered")

    def test_fresh_partners_are_quiet(self) -> None:
        sample = phase(self.potentials(2.0), ess=5.0)
        warn_of_partners(sample, auxiliary="prior", compares=True, is_fresh=True)
        with pytest.warns(StuckPartnersWarning):
            warn_of_partners(sample, auxiliary="prior", compares=True)


def test_usual_temperature_keeps_the_potentials_within_a_nat() -> None:
    """Measured on a Gaussian: the standard deviation of log G under the tempered law."""
    for d in (1, 10, 1000):
        temperature = usual_temperature(d)
        log_target = -0.5 * temperature * np.random.default_rng(0).chisquare(d, 20_000)
        assert np.std((1 - 1 / temperature) * log_target) == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_particles": 1}, "at least 2 particles, got 1"),
        ({"jump_probability": 0.0}, "jump_probability must be strictly between 0 and 1, got 0.0"),
        ({"jump_probability": 1.0}, "jump_probability must be strictly between 0 and 1, got 1.0"),
        ({"jump_probability": float("nan")}, "jump_probability must be strictly between 0 and 1"),
        ({"target_jump_rate": 0.9}, "target_jump_rate must be at most 0.5"),
        ({"temperature": float("inf")}, "temperature must be > 1 and finite"),
        ({"target_jump_rate": 1.2}, "target_jump_rate must be strictly between 0 and 1"),
        ({"jump": "BG"}, "Unknown jump 'BG': choose one of bg, ar"),
        ({"kernel": "gibbs"}, "Unknown kernel 'gibbs': choose one of hmc, mala"),
        ({"auxiliary": "posterior"}, "Unknown auxiliary density 'posterior'"),
        ({"auxiliary_kernel": "gibbs"}, "Unknown auxiliary kernel 'gibbs'"),
        ({"auxiliary_kernel": "fresh"}, "A tempered posterior has no exact draws"),
        ({"selection": "best"}, "Unknown selection 'best'"),
        ({"order": "both"}, "Unknown order 'both'"),
        ({"temperature": 0.9}, "temperature must be > 1 and finite, got 0.9"),
        ({"widening": 0.0}, "widening must be > 0"),
        ({"num_past": 0}, "num_past must be at least 1"),
        ({"num_past": 2, "synchronous": True}, "num_past=2 remembers the potentials"),
        ({"temperature": 2.0, "auxiliary": "prior"}, "temperature=2.0 is of auxiliary='tempered'"),
        ({"selection": "stratified"}, "selection='stratified' is of jump='bg'"),
        ({"num_rungs": 3}, "num_rungs=3 is of auxiliary='ladder'"),
        ({"num_rungs": 1, "auxiliary": "ladder"}, "num_rungs must be at least 2, got 1"),
        ({"auxiliary": "ladder", "auxiliary_kernel": "mala"}, "All rungs of auxiliary='ladder'"),
        ({"widening": 1.2}, "widening=1.2 is of auxiliary='laplace' and auxiliary='ensemble'"),
        ({"widening": 2.0, "auxiliary": "prior"}, "widening=2.0 is of auxiliary='laplace'"),
        ({"trajectory_length": 2.0, "kernel": "mala"}, "trajectory_length=2.0 is of HMC"),
        ({"target_jump_rate": 0.1, "num_warmup": 20}, "num_warmup=20 leaves no step with jumps"),
    ],
)
def test_refusals_are_sentences(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Interacting(**settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"widening": 2.0, "auxiliary": "laplace"},
        {"widening": 2.0, "auxiliary": "ensemble"},
        {"temperature": 2.0},
        {"temperature": 2.0, "auxiliary": "ladder", "num_rungs": 2},
        {"trajectory_length": 0.5, "kernel": "mala", "auxiliary_kernel": "hmc"},
        {"target_jump_rate": 0.1, "num_warmup": 50},
    ],
)
def test_settings_that_matter_are_taken(settings: dict[str, Any]) -> None:
    Interacting(**settings)


@pytest.mark.filterwarnings(
    "ignore::credence.methods.interacting.partner_warnings.StuckPartnersWarning"
)
def test_pcn_is_tuned_to_its_acceptance_rate() -> None:
    """The step size of pCN has no metric to follow."""
    method = replace(SMALL, kernel="pcn", num_particles=16, num_warmup=500, num_draws=100)
    scalars = method.run(1, PROBLEM.posterior).scalars
    for name in ("acceptance_rate", "auxiliary_acceptance_rate"):
        assert abs(np.mean(scalars[name]) - 0.234) < 0.06


def test_pcn_needs_a_gaussian_prior() -> None:
    posterior = Posterior(
        MLP(1, hidden=(2,)), HierarchicalGamma(), Normal(0.5), (PROBLEM.x, PROBLEM.y)
    )
    with pytest.raises(InputError, match="needs a Gaussian prior"):
        replace(SMALL, kernel="pcn").run(0, posterior)


@pytest.mark.parametrize("auxiliary", ["laplace", "ensemble"])
def test_a_curvature_that_cannot_be_is_refused_before_training(
    auxiliary: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    posterior = Posterior(
        MLP(1, hidden=(2,)), HierarchicalGamma(), Normal(0.5), (PROBLEM.x, PROBLEM.y)
    )
    begun = []
    monkeypatch.setattr(Driver, "phase", lambda self, name, *given: begun.append(name))
    with pytest.raises(InputError, match="needs a Gaussian prior"):
        replace(SMALL, auxiliary=auxiliary).run(0, posterior)
    assert not begun


def test_it_is_known_by_name() -> None:
    assert METHODS["interacting"] is Interacting
    assert Interacting(**Interacting.known(num_chains=8, num_draws=7)).num_particles == 8


@pytest.mark.rotates(3)
def test_a_network_with_learnt_noise() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 2))
    y = np.sin(x[:, 0]) + 0.1 * rng.normal(size=60)
    posterior = Posterior(MLP(1, hidden=(5,)), Gaussian(), Normal(), (x, y))
    for auxiliary in ("tempered", "laplace", "ensemble"):
        method = replace(SMALL, auxiliary=auxiliary, num_particles=4)
        if auxiliary == "tempered":
            ensemble = method.run(0, posterior)
            assert np.mean(ensemble.scalars["jump_acceptance_rate"]) > 0.2
        else:
            with pytest.warns(DegenerateAuxiliaryWarning):
                method.run(0, posterior)


ON_DEVICES = """
import sys
import jax, numpy as np
from tools.exact import linear_regression
from credence.methods.training import Training
from credence.methods.interacting.method import Interacting
assert jax.local_device_count() == int(sys.argv[1])
method = Interacting(num_particles=6, num_draws=25, num_warmup=50, selection=sys.argv[2],
                     jump=sys.argv[3], jump_probability=0.5, training=Training(max_epochs=50))
ensemble = method.run(0, linear_regression().posterior)
(layer,) = ensemble.params.network
np.save(sys.argv[4], np.concatenate([layer.kernel[..., 0], layer.bias], axis=-1))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("selection", "jump"), [("systematic", "bg"), ("multinomial", "ar")])
def test_particles_on_two_devices_draw_the_same(tmp_path: Any, selection: str, jump: str) -> None:
    """The gathered cloud is the same up to rounding, whatever the layout."""
    draws = []
    for devices in ("1", "2"):
        out = tmp_path / f"{devices}.npy"
        path = os.pathsep.join([*sys.path])
        environment = {**os.environ, "JAX_NUM_CPU_DEVICES": devices, "PYTHONPATH": path}
        command = [sys.executable, "-c", ON_DEVICES, devices, selection, jump, str(out)]
        subprocess.run(command, env=environment, check=True)
        draws.append(np.load(out))
    assert np.mean(np.isclose(*draws, rtol=1e-3, atol=1e-3).all(axis=-1)) > 0.95


def test_potentials_between_synchronous_jumps_are_not_new_ones() -> None:
    """Partners that have met, of which few draws are new, are not called stuck."""
    rng = np.random.default_rng(0)
    new = rng.normal(size=(16, 60))
    sample = phase(np.repeat(new, 10, axis=1), ess=16.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_partners(sample, auxiliary="tempered", compares=True, synchronous=True)


def test_a_rate_of_synchronous_jumps_is_that_of_the_jumps_made() -> None:
    window = window_adaptation(0.1, jnp.ones(2), num_rounds=4)
    tuning = JumpTuning(window, window, lambda *found: {}, 4, 0.1, 0.05, synchronous=True)
    ones = np.ones((3, 10))
    info = {"acceptance_rate": ones, "auxiliary_acceptance_rate": ones, "is_jump": 0.1 * ones}
    info |= {
        "is_accepted_jump": 0.02 * ones,
        "jump_acceptance_rate": ones,
    }  # stale: the first one's
    block = Block(None, np.zeros((3, 10, 2), np.float32), info)
    memory = tuning.adapter.memory
    for _ in range(4):
        memory = tuning._update(memory, block)
    assert memory.rounds_with_jumps > 0
    np.testing.assert_allclose(tuning._probability(memory), 0.25)
