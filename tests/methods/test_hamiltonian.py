"""Exact samplers as whole methods (training, warm-up, sampling) against exact posteriors.

A network without hidden layers is Bayesian linear regression. Chains are independent, so the
standard error of a mean comes from the means of the chains, and its law is Student's t.
"""

import signal
from typing import Any

import jax
import numpy as np
import pytest
from scipy import stats
from tools.exact import LinearRegression, linear_regression, weights
from tools.moments import chain_z, moment_z

from credence.density.posterior import Posterior
from credence.engine.clock import CompileClock
from credence.engine.phases import Phase
from credence.ensembles.ensemble import Ensemble
from credence.errors import InputError, Interrupted
from credence.methods import hamiltonian
from credence.methods.hamiltonian import (
    HMC,
    MALA,
    MCLMC,
    NUTS,
    Hamiltonian,
    doublings,
    gradients_in,
)
from credence.methods.pcn import PCN
from credence.methods.training import Training
from credence.models import MLP, Gaussian, Normal

pytestmark = pytest.mark.rotates(3)

SETTINGS: dict[str, Any] = {
    "num_chains": 64,
    "num_draws": 250,
    "num_warmup": 200,
    "training": Training(max_epochs=300),
}
DIFFUSIVE = SETTINGS | {"num_warmup": 1000, "thinning": 10}
METHODS = [
    NUTS(**SETTINGS),
    HMC(**SETTINGS),
    MCLMC(**SETTINGS),
    MALA(**DIFFUSIVE),
    PCN(**DIFFUSIVE),
    PCN(reference="prior", **DIFFUSIVE | {"thinning": 50}),
]
PROBLEM = linear_regression()

methods = pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)


@pytest.fixture(scope="module", params=METHODS, ids=lambda method: method.name)
def ensemble(request: pytest.FixtureRequest) -> Ensemble:
    return request.param.run(1, PROBLEM.posterior)


def test_posterior_of_linear_regression(ensemble):
    assert moment_z(weights(ensemble), PROBLEM) < 4.5


def test_planted_wrong_noise_is_caught(ensemble):
    assert moment_z(weights(ensemble), PROBLEM._replace(noise_std=1.1 * PROBLEM.noise_std)) > 8


def test_scalars_and_cost_say_what_was_done(ensemble):
    shape = (SETTINGS["num_chains"], SETTINGS["num_draws"])
    assert weights(ensemble).shape == (*shape, 4)
    assert all(np.shape(scalar) == shape for scalar in ensemble.scalars.values())
    assert np.all(ensemble.scalars["is_finite"] == 1)
    target = ensemble.provenance.settings["target_acceptance_rate"]
    assert target - 0.2 < np.mean(ensemble.scalars["acceptance_rate"]) < 0.95
    assert set(ensemble.cost.seconds) == {"compile", "train", "warmup", "sample", "other"}
    counts = [
        ensemble.scalars[name]
        for name in ("num_gradients", "num_evaluations")
        if name in ensemble.scalars
    ]
    assert ensemble.cost.likelihood_evaluations > sum(map(np.sum, counts)) * len(PROBLEM.x)


@methods
def test_learnt_noise(method):
    """Weights and the logarithm of the noise, whose exact moments come from a fine grid."""
    posterior = Posterior(
        MLP(1, hidden=()), PROBLEM.prior, Normal(noise_std=None), (PROBLEM.x, PROBLEM.y)
    )
    ensemble = method.run(2, posterior)
    draws = weights(ensemble)
    log_std = np.asarray(ensemble.params.likelihood, float)

    def worst_z(scale_prior_std: float) -> float:
        exact = learnt_noise_moments(PROBLEM, scale_prior_std)
        return max(
            chain_z(draws, exact["mean"]).max(),
            chain_z(draws**2, exact["square"]).max(),
            chain_z(log_std, exact["log_std"]).max(),
            chain_z(log_std**2, exact["log_std_square"]).max(),
        )

    assert worst_z(scale_prior_std=1.0) < 4.5
    assert worst_z(scale_prior_std=0.5) > 8  # planted: another prior on the noise


def learnt_noise_moments(
    problem: LinearRegression, scale_prior_std: float
) -> dict[str, np.ndarray]:
    """Moments under noise_std ~ HalfNormal(scale_prior_std): weights are integrated out exactly,
    and what is left is a smooth density of log noise_std, summed on a grid."""
    log_std = np.linspace(np.log(0.1), np.log(4.0), 2001)
    parts = [problem._replace(noise_std=std) for std in np.exp(log_std)]
    log_prior = stats.halfnorm.logpdf(np.exp(log_std), scale=scale_prior_std) + log_std
    log_density = log_prior + [part.log_evidence() for part in parts]
    probability = np.exp(log_density - log_density.max())
    probability /= probability.sum()
    means = np.array([part.solve()[0] for part in parts])
    variances = np.array([np.diag(part.solve()[1]) for part in parts])
    return {
        "mean": probability @ means,
        "square": probability @ (variances + means**2),
        "log_std": probability @ log_std[:, None],
        "log_std_square": probability @ log_std[:, None] ** 2,
    }


def small(
    kind: type[Hamiltonian],
    key: int = 0,
    posterior: Posterior = PROBLEM.posterior,
    folder: Any = None,
    **settings: Any,
) -> Ensemble:
    """A short run."""
    defaults: dict[str, Any] = {
        "num_chains": 2,
        "num_draws": 50,
        "num_warmup": 50,
        "training": Training(max_epochs=50),
    }
    return kind(**(defaults | settings)).run(key, posterior, folder=folder)


@pytest.mark.parametrize("kind", [NUTS, HMC, MCLMC])
def test_second_data_set_of_the_same_shape_compiles_nothing(kind):
    other = linear_regression(seed=1).posterior
    small(kind, key=0)
    with CompileClock() as clock:
        small(kind, key=1, posterior=other)
    assert clock.num_traces == 0


def test_same_key_same_draws_other_key_other_draws():
    np.testing.assert_array_equal(weights(small(HMC, key=0)), weights(small(HMC, key=0)))
    assert not np.any(weights(small(HMC, key=0)) == weights(small(HMC, key=1)))


def test_settings_change_the_result():
    few = small(HMC)
    assert weights(small(HMC, num_draws=75)).shape == (2, 75, 4)
    assert weights(small(HMC, num_chains=3)).shape == (3, 50, 4)
    thinned = small(HMC, thinning=2)
    assert thinned.scalars["num_gradients"].mean() > 1.5 * few.scalars["num_gradients"].mean()
    for changed in ({"num_warmup": 100}, {"training": Training(max_epochs=100)}):
        assert not np.array_equal(weights(small(HMC, **changed)), weights(few)), changed
    bold = small(HMC, target_acceptance_rate=0.5)
    careful = small(HMC, target_acceptance_rate=0.95)
    assert bold.scalars["acceptance_rate"].mean() < careful.scalars["acceptance_rate"].mean()


def test_limits_of_trajectories_hold():
    short = HMC(num_chains=2, num_draws=20, num_warmup=25, max_integration_steps=4)
    ensemble = short.run(0, PROBLEM.posterior)
    assert ensemble.scalars["num_gradients"].max() <= 4
    shallow = NUTS(num_chains=2, num_draws=20, num_warmup=25, max_doublings=2)
    ensemble = shallow.run(0, PROBLEM.posterior)
    assert ensemble.scalars["num_gradients"].max() <= 3


@pytest.mark.parametrize("setting", ["num_draws", "num_chains", "num_warmup", "thinning"])
def test_settings_must_be_positive(setting):
    with pytest.raises(InputError, match=f"{setting} must be > 0, got 0"):
        NUTS(**{setting: 0})


def test_resumed_method_gives_the_same_draws(tmp_path):
    """A network with a hidden layer is read back from its folder."""
    x = np.linspace(-1, 1, 20)[:, None]
    posterior = Posterior(MLP(1, hidden=(4,)), Gaussian(), Normal(), (x, np.sin(3 * x)))
    first = small(HMC, 3, posterior, folder=tmp_path)
    again = small(HMC, 3, posterior, folder=tmp_path)
    jax.tree.map(np.testing.assert_array_equal, first.params, again.params)


@pytest.mark.parametrize(
    "settings",
    [{"trajectory_length": 0.0}, {"decoherence_length": -1.0}, {"decoherence_length": np.inf}],
)
def test_lengths_out_of_range_are_refused(settings):
    with pytest.raises(InputError, match=next(iter(settings))):
        MCLMC(**settings)
    with pytest.raises(InputError, match="target_acceptance_rate"):
        HMC(target_acceptance_rate=1.5)


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        (NUTS, {"max_doublings": 0}),
        (HMC, {"trajectory_length": -1.0}),
        (HMC, {"trajectory_length": np.nan}),
        (HMC, {"max_integration_steps": 0}),
    ],
)
def test_trajectories_out_of_range_are_refused(method, settings):
    with pytest.raises(InputError, match=next(iter(settings))):
        method(**settings)


def test_ctrl_c_in_training_ends_a_chain_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Members that trained half the way are no use to it; a deep ensemble would keep them."""
    monkeypatch.setattr(Phase, "save", lambda phase: signal.raise_signal(signal.SIGINT))
    with pytest.raises(Interrupted, match="phase 'train'"):
        HMC(**SETTINGS).run(0, linear_regression().posterior)


@pytest.mark.parametrize(
    ("seconds", "per_gradient", "most"),
    [(60, 1e-4, 15), (64, 0.1, 6), (50, 0.05, 6), (1, 9, 1)],
)
def test_a_time_budget_lasts_for_ten_trajectories(
    seconds: float, per_gradient: float, most: int
) -> None:
    assert doublings(gradients_in(seconds, per_gradient)) == most
    assert 10 * 2**most * per_gradient <= seconds or most == 1


@pytest.mark.parametrize(
    ("sampler", "per_gradient", "most"),
    [
        (NUTS, 1e-9, 2**10 - 1), (NUTS, 8.0, 2**3 - 1), (HMC, 1e-9, 256), (HMC, 8.0, 12),
        (MCLMC, 1e-9, 1024), (MCLMC, 8.0, 12),
    ],
)  # fmt: skip
def test_trajectories_are_bounded_by_the_time_that_is_left(
    monkeypatch: pytest.MonkeyPatch, sampler: type[Hamiltonian], per_gradient: float, most: int
) -> None:
    """A dear gradient makes them short; a slow warm-up takes long ones."""
    monkeypatch.setattr(hamiltonian, "gradient_seconds", lambda *_: per_gradient)
    method = sampler(num_draws=20, num_warmup=100, num_chains=2, target_acceptance_rate=0.999)
    ensemble = method.run(0, PROBLEM.posterior, max_seconds=999)
    longest = ensemble.scalars["num_gradients"].max()
    assert longest <= most
    assert (longest > 2**3 - 1) == (most > 2**3 - 1)
