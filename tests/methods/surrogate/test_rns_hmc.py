"""Random network surrogate HMC: the surrogate, its kernel, and the whole method."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float
from tools.exact import linear_regression, weights
from tools.moments import moment_z
from tools.targets import GaussianTarget, correlated, gaussian_log_density, z_scores

from credence.density.data import Data
from credence.density.posterior import Posterior
from credence.engine.clock import CompileClock
from credence.ensembles.ensemble import Ensemble
from credence.errors import InputError
from credence.kernels.evaluation.evaluation import evaluation
from credence.methods.surrogate.random_network import (
    GradientPoints,
    RandomNetwork,
    fit_random_network,
    random_bases,
    surrogate_gradient,
    untrained,
)
from credence.methods.surrogate.rns_hmc import RNSHMC
from credence.methods.surrogate.surrogate_hmc import SurrogateHMCState, surrogate_hmc
from credence.methods.training import Training

PROBLEM = linear_regression()
SETTINGS: dict[str, Any] = {
    "num_chains": 64,
    "num_draws": 250,
    "num_calibration": 50,
    "num_warmup": 200,
    "num_features": 30,
    "thinning": 3,
    "training": Training(max_epochs=300),
}
NUM_CHAINS = 4000


def gaussian_gradient(position: Array, surrogate: tuple[Array, Array]) -> Array:
    """Gradient of the log density of N(mean, precision^-1)."""
    mean, precision = surrogate
    return precision @ (mean - position)


def perfect(target: GaussianTarget) -> tuple[Array, Array]:
    """The surrogate that is the target."""
    inverse = np.linalg.inv(target.cholesky)
    return jnp.asarray(target.mean), jnp.asarray(inverse.T @ inverse)


def run_chains(
    target: GaussianTarget,
    surrogate: tuple[Array, Array],
    step_size: float,
    by_surrogate_energy: bool = False,
) -> tuple[Float[np.ndarray, "chain weight"], Any]:
    """Ten steps from exact draws; every chain is independent."""

    def log_density(position: Array, data: Data) -> Array:
        mean, precision = surrogate
        centred = position - mean
        wrong = -0.5 * centred @ precision @ centred
        return wrong if by_surrogate_energy else gaussian_log_density(position, data)

    kernel = surrogate_hmc(
        log_density,
        step_size=step_size,
        inverse_mass=jnp.ones(target.dimension),
        surrogate=surrogate,
        gradient=gaussian_gradient,
        num_integration_steps=5,
    )

    def chain(key: Any, start: Array) -> Any:
        step = lambda state, key: kernel.step(key, state, target.data)  # noqa: E731
        keys = jax.random.split(key, 10)
        state, info = jax.lax.scan(step, kernel.init(start, target.data), keys)
        return state.position, info

    starts = jnp.asarray(target.sample(seed=1, num_draws=NUM_CHAINS))
    keys = jax.random.split(jax.random.key(0), NUM_CHAINS)
    return jax.jit(jax.vmap(chain))(keys, starts)


def poor(target: GaussianTarget) -> tuple[Array, Array]:
    """Another mean, half the precision, no correlation."""
    mean, precision = perfect(target)
    return mean + 0.3, 0.5 * jnp.diag(jnp.diag(precision))


@pytest.mark.usefixtures("float64")
def test_poor_surrogate_leaves_the_target_invariant():
    target = correlated(5)
    ends, info = run_chains(target, poor(target), 0.3)
    scores = z_scores(target.whiten(ends))
    assert max(scores.values()) < 4.5, scores
    assert 0.2 < np.mean(info.acceptance_rate) < 0.95, "it moves, and its surrogate is poor"


@pytest.mark.usefixtures("float64")
def test_planted_acceptance_by_the_surrogates_energy_is_caught():
    target = correlated(5)
    ends, _ = run_chains(target, poor(target), 0.3, by_surrogate_energy=True)
    assert max(z_scores(target.whiten(ends)).values()) > 8


@pytest.mark.usefixtures("float64")
def test_perfect_surrogate_has_the_acceptance_of_hmc():
    """The energy error is known on N(0, I) with L leapfrogs of step h.

    With c = cos(L t), where cos t = 1 - h^2 / 2, and r = sqrt(1 - h^2 / 4), position and momentum
    turn by L t on an ellipse,

        H - H' = (w^2 - w'^2 + p^2 - p'^2) / 2,  w' = c w + s / r p,  p' = c p - s r w.
    """
    dimension, step_size, num_steps = 20, 1.0, 5
    target = GaussianTarget("standard", np.zeros(dimension), np.eye(dimension))
    _, info = run_chains(target, perfect(target), step_size)
    observed = np.asarray(info.acceptance_rate[:, 0])

    def expected(factor: float) -> np.ndarray:
        rng = np.random.default_rng(2)
        h = factor * step_size * rng.uniform(0.5, 1.5, size=(20_000, 1))
        w, p = rng.normal(size=(2, 20_000, dimension))
        turn, r = num_steps * np.arccos(1 - h**2 / 2), np.sqrt(1 - h**2 / 4)
        new_w = np.cos(turn) * w + np.sin(turn) / r * p
        new_p = np.cos(turn) * p - np.sin(turn) * r * w
        return np.minimum(1, np.exp(0.5 * np.sum(w**2 + p**2 - new_w**2 - new_p**2, axis=1)))

    def z(values: np.ndarray) -> float:
        error = np.hypot(*(a.std(ddof=1) / len(a) ** 0.5 for a in (observed, values)))
        return abs(observed.mean() - values.mean()) / error

    assert z(expected(1.0)) < 4.5
    assert z(expected(1.2)) > 8  # planted: another step size


def test_state_depends_on_no_setting():
    assert SurrogateHMCState._fields == ("position", "log_density")


def points_of(
    target: GaussianTarget, num_draws: int, wave: float = 0.0, seed: int = 3
) -> GradientPoints:
    """Exact draws of 4 "chains", and the log density there, perhaps with sines added."""
    draws = target.sample(seed=seed, num_draws=4 * num_draws)
    inverse = np.linalg.inv(target.cholesky)
    centred = draws - target.mean
    values = -0.5 * np.sum((centred @ inverse.T) ** 2, axis=1)
    gradients = -centred @ inverse.T @ inverse
    values += wave * np.sin(centred).sum(axis=1)
    gradients += wave * np.cos(centred)
    shape = (4, num_draws)
    return GradientPoints(
        draws.reshape(*shape, -1), values.reshape(shape), gradients.reshape(*shape, -1)
    )


def fitted(
    points: GradientPoints, fit: str = "gradients", **settings: Any
) -> tuple[RandomNetwork, float]:
    """A network fitted to points."""
    dimension = points.positions.shape[-1]
    options = {"num_features": 200, "num_points": 4000, "gaussian_part": True} | settings
    bases = random_bases(jax.random.key(1), options.pop("num_features"), dimension)
    network, r2 = fit_random_network(untrained(bases, **options), points, fit=fit)
    return network, float(r2)


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("num_points", [4000, 10], ids=["covariance", "variances"])
@pytest.mark.parametrize("gaussian_part", [True, False])
@pytest.mark.parametrize("fit", ["gradients", "values"])
def test_surrogate_learns_a_smooth_density(fit, gaussian_part, num_points):
    """Most of what a Gaussian leaves is explained, at points held out and at others."""
    target = correlated(3)
    points, fresh = points_of(target, 250, wave=1.0), points_of(target, 250, wave=1.0, seed=4)
    network, r2 = fitted(points, fit, gaussian_part=gaussian_part, num_points=num_points)
    _, gaussian_r2 = fitted(points, num_features=1, num_points=num_points)
    assert network.whitening.ndim == (2 if num_points == 4000 else 1)
    assert 1 - r2 < (1 - gaussian_r2) / 3

    positions, gradients = fresh.positions.reshape(-1, 3), fresh.gradients.reshape(-1, 3)
    found = jax.vmap(surrogate_gradient, (0, None))(jnp.asarray(positions), network)

    def explained(gradients: np.ndarray) -> float:
        return 1 - np.sum((found - gradients) ** 2) / np.sum(gradients**2)

    assert 1 - explained(gradients) < (1 - gaussian_r2) / 3
    assert explained(gradients[::-1]) < 0.5, "planted: gradients of other points"


@pytest.mark.usefixtures("float64")
def test_gaussian_part_is_the_covariance_where_there_are_points_for_it():
    """It explains a correlated Gaussian; variances alone, or nothing, do not."""
    points = points_of(correlated(10), 250)
    assert fitted(points, num_features=1)[1] > 0.97
    assert fitted(points, num_features=1, num_points=10)[1] < 0.7
    assert fitted(points, num_features=1, gaussian_part=False)[1] < 0.3


def test_surrogate_of_few_weights_is_fitted_in_double_precision():
    """500 features of 3 weights leave a Gram matrix that single precision makes indefinite."""
    assert fitted(points_of(correlated(3), 250), num_features=500)[1] > 0.99


def test_surrogate_of_points_that_are_not_finite_is_refused():
    points = points_of(correlated(3), 20)
    points.log_densities[0, 0] = np.nan
    with pytest.raises(InputError, match="not finite"):
        fitted(points)


@pytest.mark.usefixtures("float64")
def test_evaluation_stays_and_says_density_and_gradient():
    target = correlated(3)
    kernel, position = evaluation(gaussian_log_density), jnp.arange(3.0)
    state, info = kernel.step(jax.random.key(0), kernel.init(position, target.data), target.data)
    np.testing.assert_array_equal(state.position, position)
    value, gradient = jax.value_and_grad(gaussian_log_density)(position, target.data)
    np.testing.assert_allclose(state.log_density, value)
    np.testing.assert_allclose(state.gradient, gradient)
    assert info.is_finite
    assert info.num_gradients == 1
    nowhere = target._replace(bound=-np.inf).data
    assert not kernel.step(jax.random.key(0), kernel.init(position, nowhere), nowhere)[1].is_finite


class Case(NamedTuple):
    """A method under test."""

    name: str
    changed: dict[str, Any]


CASES = [
    Case("default", {}),
    Case("as in the paper", {"fit": "values", "gaussian_part": False}),
    pytest.param(
        Case("one useless feature", {"num_features": 1, "gaussian_part": False, "thinning": 10}),
        marks=pytest.mark.slow,
    ),
]


@pytest.fixture(scope="module", params=CASES, ids=lambda case: case.name)
def ensemble(request: pytest.FixtureRequest) -> Ensemble:
    return RNSHMC(**SETTINGS | request.param.changed).run(1, PROBLEM.posterior)


def test_posterior_of_linear_regression(ensemble):
    assert moment_z(weights(ensemble), PROBLEM) < 4.5


def test_planted_wrong_noise_is_caught(ensemble):
    assert moment_z(weights(ensemble), PROBLEM._replace(noise_std=1.1 * PROBLEM.noise_std)) > 8


def test_scalars_and_cost_say_what_was_done(ensemble):
    shape = (SETTINGS["num_chains"], SETTINGS["num_draws"])
    settings = ensemble.provenance.settings
    assert all(np.shape(scalar) == shape for scalar in ensemble.scalars.values())
    assert np.all(ensemble.scalars["is_finite"] == 1)
    assert np.all(ensemble.scalars["num_evaluations"] == settings["thinning"])
    is_useless = settings["num_features"] == 1
    r2 = ensemble.scalars["surrogate_r2"]
    assert np.all(r2 < 0.5) if is_useless else np.all(r2 > 0.9)
    assert np.mean(ensemble.scalars["acceptance_rate"]) > 0.45
    phases = {"compile", "train", "calibrate", "emulate", "warmup", "sample", "other"}
    assert set(ensemble.cost.seconds) == phases
    evaluations = SETTINGS["num_draws"] * settings["thinning"] + settings["num_warmup"]
    points = len(PROBLEM.x) * SETTINGS["num_chains"]
    cost = ensemble.cost
    assert cost.likelihood_evaluations - cost.gradient_evaluations == evaluations * points


def small(
    key: int = 0,
    posterior: Posterior = PROBLEM.posterior,
    folder: Any = None,
    **settings: Any,
) -> Ensemble:
    """A short run."""
    defaults: dict[str, Any] = {
        "num_chains": 2,
        "num_draws": 50,
        "num_calibration": 50,
        "num_warmup": 50,
        "num_features": 20,
        "thinning": 1,
        "training": Training(max_epochs=50),
    }
    return RNSHMC(**(defaults | settings)).run(key, posterior, folder=folder)


def test_second_data_set_of_the_same_shape_compiles_nothing():
    small(key=0)
    other = linear_regression(seed=1).posterior
    with CompileClock() as clock:
        small(key=1, posterior=other)
    assert clock.num_traces == 0


def test_resumed_run_gives_the_same_draws(tmp_path, monkeypatch):
    """Stopped before each phase in turn."""
    whole = weights(small(3))
    from credence.engine.driver import Driver

    phase, stopped = Driver.phase, KeyboardInterrupt
    for last in ("calibrate", "emulate", "warmup", "sample"):

        def stopping(self: Driver, name: str, *args: Any, last: str = last, **kwargs: Any) -> Any:
            if name == last:
                raise stopped
            return phase(self, name, *args, **kwargs)

        monkeypatch.setattr(Driver, "phase", stopping)
        with pytest.raises(stopped):
            small(3, folder=tmp_path)
    monkeypatch.setattr(Driver, "phase", phase)
    np.testing.assert_array_equal(weights(small(3, folder=tmp_path)), whole)
    np.testing.assert_array_equal(weights(small(3, folder=tmp_path)), whole)


@pytest.mark.parametrize(
    "changed",
    [
        {"num_calibration": 100},
        {"num_features": 30},
        {"fit": "values"},
        {"gaussian_part": False},
        {"num_integration_steps": 3},
        {"trajectory_length": 0.5},
        {"target_acceptance_rate": 0.95},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_settings_change_the_result(changed):
    assert not np.array_equal(weights(small(**changed)), weights(small()))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_calibration": 10}, "num_calibration must be at least 20, got 10"),
        ({"num_features": 0}, "num_features must be > 0"),
        ({"num_integration_steps": 0}, "num_integration_steps must be > 0"),
        ({"trajectory_length": -1.0}, "trajectory_length must be > 0"),
        ({"fit": "hessians"}, "Unknown fit 'hessians'"),
        ({"target_acceptance_rate": 1.5}, "target_acceptance_rate"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        RNSHMC(**settings)
