"""The Laplace approximation where it is exact, and its curvature against other ways to get it.

On Bayesian linear regression with known noise the posterior is Gaussian, so "full" is exact. Draws
are independent: standard errors are those of plain means.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from scipy import optimize, stats
from tools.data_folder import needs_data
from tools.exact import LinearRegression, linear_regression, with_ones, z_scores

from credence.compare.problem import load
from credence.compare.specs import RowLimits
from credence.density.posterior import Posterior
from credence.engine.clock import CompileClock
from credence.engine.driver import Driver
from credence.ensembles.ensemble import Ensemble
from credence.errors import InputError
from credence.methods.laplace import method as laplace
from credence.methods.laplace.curvature import (
    Spectrum,
    active_weights,
    output_curvature,
    prior_stds,
    spectrum,
)
from credence.methods.laplace.method import Laplace
from credence.methods.laplace.modes import noise_of
from credence.methods.laplace.second_order import local_gaussian
from credence.methods.training import Training, held_out, train
from credence.models import (
    MLP,
    Bernoulli,
    Categorical,
    Gaussian,
    HeteroscedasticNormal,
    HierarchicalGamma,
    NoisyArgmax,
    Normal,
    StudentT,
    TraceClass,
)
from credence_papers.fbnn.tables import FBNN, FBNN_FIRST_VERSION

PROBLEM = linear_regression()
WEIGHT = np.arange(12.0) % 4
STRUCTURES = ("full", "kronecker", "diagonal")
structures = pytest.mark.parametrize("structure", STRUCTURES)


def weights(ensemble: Ensemble) -> np.ndarray:
    """Weights of every draw of an MLP (draw, weight), in the order of a position."""
    network = ensemble.params.network
    if hasattr(network, "mode"):
        network = jax.tree.map(np.add, network.mode, network.offset)
    flat = [np.reshape(leaf[0], (len(leaf[0]), -1)) for leaf in jax.tree.leaves(network)]
    return np.concatenate(flat, axis=1).astype(float)


def worst_z(draws: np.ndarray, mean: np.ndarray, covariance: np.ndarray) -> float:
    """Largest |z| of first and second moments of independent draws (draw, weight)."""
    centred = draws - mean
    products = centred[:, :, None] * centred[:, None, :]
    return max(z_scores(draws, mean).max(), z_scores(products, covariance).max())


def covariance(found: Spectrum, stds: np.ndarray, multiple: float = 1.0) -> np.ndarray:
    """(H + multiple P)^-1 of a spectrum, as a matrix."""
    axes = found.from_eigen(np.eye(len(stds)))  # rows are eigenvectors
    return stds[:, None] * (axes.T / (found.values + multiple)) @ axes * stds


def curvature(position: Any, posterior: Posterior, structure: Any, layers: Any = "all") -> Any:
    """H of a spectrum, as a matrix."""
    found, stds = spectrum(position, posterior, structure, layers), prior_stds(posterior, layers)
    axes = found.from_eigen(np.eye(len(stds)))
    return (axes.T * found.values) @ axes / np.outer(stds, stds)


def weighted(problem: LinearRegression, weight: np.ndarray) -> tuple[Posterior, LinearRegression]:
    """A problem whose rows count several times, and the same with the rows repeated."""
    data = (problem.x, problem.y, weight)
    posterior = Posterior(MLP(1, hidden=()), problem.prior, Normal(problem.noise_std), data)
    times = weight.astype(int)
    repeated = problem._replace(x=problem.x.repeat(times, axis=0), y=problem.y.repeat(times))
    return posterior, repeated


@pytest.fixture(scope="module")
def ensemble() -> Ensemble:
    return Laplace(num_draws=100_000).run(0, PROBLEM.posterior)


def test_full_is_the_posterior_of_linear_regression(ensemble):
    assert ensemble.num_chains == 1
    assert not ensemble.is_chain
    mean, cov = PROBLEM.solve()
    assert worst_z(weights(ensemble), mean, cov) < 4.5


def test_planted_curvature_five_percent_too_large_is_caught(ensemble):
    mean, cov = PROBLEM.solve()
    prior = np.diag(PROBLEM.prior_std**-2)
    wrong = np.linalg.inv(1.05 * (np.linalg.inv(cov) - prior) + prior)
    assert worst_z(weights(ensemble), mean, wrong) > 8


def test_predictive_of_linear_regression(ensemble):
    x = 2 * np.random.default_rng(1).normal(size=(4, 3))
    mean, std = PROBLEM.predict(x)
    found = ensemble.predictive(x)
    epistemic = np.sqrt(std**2 - PROBLEM.noise_std**2)
    error = np.abs(np.asarray(found.mean())[:, 0] - mean)
    assert (error / epistemic).max() < 4.5 / 100_000**0.5
    ratio = np.asarray(found.epistemic_variance())[:, 0] / epistemic**2
    assert np.abs(ratio - 1).max() < 4.5 * (2 / 100_000) ** 0.5


def test_evidence_of_linear_regression(ensemble):
    found = ensemble.scalars["log_evidence"]
    assert found.shape == (1, 100_000)
    np.testing.assert_allclose(found[0, 0], PROBLEM.log_evidence(), atol=1e-4)
    planted = PROBLEM._replace(noise_std=1.05 * PROBLEM.noise_std).log_evidence()
    assert abs(found[0, 0] - planted) > 0.01
    assert ensemble.scalars["newton_decrement"].max() < 1e-6
    assert np.all(ensemble.scalars["prior_precision"] == 1)


@structures
def test_rows_count_as_often_as_their_weight_says(structure):
    posterior, repeated = weighted(PROBLEM, WEIGHT)
    ensemble = Laplace(num_draws=20_000, structure=structure).run(1, posterior)
    mean, exact = repeated.solve()
    if structure == "diagonal":
        exact = np.diag(1 / np.diag(np.linalg.inv(exact)))
    else:
        np.testing.assert_allclose(
            ensemble.scalars["log_evidence"][0, 0], repeated.log_evidence(), atol=1e-4
        )
    assert worst_z(weights(ensemble), mean, exact) < 4.5
    assert worst_z(weights(ensemble), *PROBLEM.solve()) > 8, "planted: no weights"
    design = with_ones(PROBLEM.x) * WEIGHT[:, None] ** 0.5
    hessian = design.T @ design / PROBLEM.noise_std**2
    hessian = np.diag(np.diag(hessian)) if structure == "diagonal" else hessian
    position = posterior.init(jax.random.key(0), 1)[0]
    found = curvature(position, posterior, structure)
    np.testing.assert_allclose(found, hessian, atol=1e-4 * hessian.max())


@pytest.mark.parametrize("multiple", [0.1, 1.0, 7.0])
def test_evidence_and_mode_under_another_multiple_of_the_prior(multiple):
    """Both follow from the mode under the prior, in closed form under any other."""
    position = jnp.asarray(PROBLEM.solve()[0], float)
    found = spectrum(position, PROBLEM.posterior, "full", "all")
    local = local_gaussian(position, PROBLEM.posterior, found, "all", is_full=True)
    prior = Gaussian(
        weight_std=PROBLEM.prior.weight_std / multiple**0.5,
        bias_std=PROBLEM.prior.bias_std / multiple**0.5,
    )
    other = PROBLEM._replace(prior=prior)
    np.testing.assert_allclose(local.log_evidence(multiple), other.log_evidence(), atol=1e-3)
    stds = prior_stds(PROBLEM.posterior, "all")
    mode = stds * found.from_eigen(local.draw(np.zeros((1, 4)), multiple))[0]
    mean, exact = other.solve()
    np.testing.assert_allclose(mode, mean, atol=1e-4)
    np.testing.assert_allclose(covariance(found, stds, multiple), exact, atol=1e-5)


def test_the_best_multiple_is_that_of_brute_force():
    def log_evidence(log_multiple: float) -> float:
        scale = np.exp(-0.5 * log_multiple)
        prior = Gaussian(
            weight_std=PROBLEM.prior.weight_std * scale, bias_std=PROBLEM.prior.bias_std * scale
        )
        return PROBLEM._replace(prior=prior).log_evidence()

    grid = np.linspace(-4, 4, 4001)
    best = grid[np.argmax([log_evidence(value) for value in grid])]
    ensemble = Laplace(prior_precision="evidence").run(0, PROBLEM.posterior)
    assert abs(np.log(ensemble.scalars["prior_precision"][0, 0]) - best) < 0.01
    found = ensemble.scalars["log_evidence"][0, 0]
    assert abs(found - log_evidence(best)) < 1e-3
    assert found > PROBLEM.log_evidence() + 0.01


def test_logistic_regression_has_the_mode_and_hessian_of_a_reference():
    """Newton-CG of SciPy in double precision."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=(60, 2))
    y = (rng.uniform(size=60) < 1 / (1 + np.exp(-2 * x[:, 0] - 0.5))).astype(int)
    design, sign = with_ones(x), 2 * y - 1

    def hessian(w: np.ndarray, precision: float) -> np.ndarray:
        p = 1 / (1 + np.exp(-design @ w))
        return (design.T * (p * (1 - p))) @ design + precision * np.eye(3)

    def mode(precision: float) -> np.ndarray:
        return optimize.minimize(
            lambda w: np.sum(np.log1p(np.exp(-sign * (design @ w)))) + 0.5 * precision * w @ w,
            np.zeros(3),
            jac=lambda w: precision * w - design.T @ (sign / (1 + np.exp(sign * (design @ w)))),
            hess=lambda w: hessian(w, precision),
            method="Newton-CG",
            options={"xtol": 1e-12},
        ).x

    posterior = Posterior(MLP(1, hidden=()), Gaussian("unit"), Bernoulli(), (x, y))
    ensemble = Laplace(num_draws=100_000).run(0, posterior)
    found, exact = weights(ensemble), mode(1.0)
    centre = np.concatenate([leaf[0, 0].ravel() for leaf in ensemble.params.network.mode[0]])
    np.testing.assert_allclose(centre, exact, atol=1e-3)
    assert worst_z(found, exact, np.linalg.inv(hessian(exact, 1.0))) < 4.5
    flat = mode(1e-6)
    assert worst_z(found, flat, np.linalg.inv(hessian(flat, 1e-6))) > 8, "planted: no prior"


def bnn(likelihood: Any, num_outputs: int, num_points: int = 30, **network: Any) -> Posterior:
    """A small network with hidden layers and data of any kind."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(num_points, 2))
    classes = max(num_outputs, 2)
    is_label = isinstance(likelihood, Bernoulli | Categorical)
    targets = num_outputs // 2 if isinstance(likelihood, HeteroscedasticNormal) else num_outputs
    y = (
        rng.integers(classes, size=num_points)
        if is_label
        else rng.normal(size=(num_points, targets))
    )
    network = {"hidden": (4, 3)} | network
    return Posterior(MLP(num_outputs, **network), Gaussian(bias_std=0.7), likelihood, (x, y))


def some_position(posterior: Posterior) -> Any:
    start = posterior.init(jax.random.key(0), 1)[0]
    return start + 0.3 * jax.random.normal(jax.random.key(1), start.shape)


@pytest.mark.usefixtures("float64")
def test_curvature_is_the_hessian_where_residuals_are_zero():
    posterior = bnn(Normal(0.5), 2)
    position = some_position(posterior)
    outputs = posterior.model.network.apply(posterior.unravel(position).network, posterior.data.x)

    def hessian(y: Any) -> Any:
        data = posterior.data._replace(y=y)
        model = posterior.model
        loss = lambda p: -model.log_likelihood(model.unravel(p, data), data)  # noqa: E731
        return jax.jit(jax.hessian(loss))(position)

    found = curvature(position, posterior, "full")
    np.testing.assert_allclose(found, hessian(outputs), atol=1e-8)
    assert np.abs(found - hessian(outputs + 0.1)).max() > 0.1, "planted: residuals"


@pytest.mark.slow
@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize(
    "posterior",
    [
        bnn(Categorical(), 3, num_points=1),
        bnn(HeteroscedasticNormal(), 2, num_points=1),
    ],
    ids=lambda posterior: type(posterior.model.likelihood).__name__,
)
def test_kronecker_blocks_of_a_single_row_are_exact(posterior):
    posterior = Posterior(
        posterior.model.network,
        posterior.model.prior,
        posterior.model.likelihood,
        tuple(np.asarray(part) for part in posterior.data[:3]),
    )
    position = some_position(posterior)
    full = curvature(position, posterior, "full")
    found = curvature(position, posterior, "kronecker")
    sizes = [leaf.kernel.size + leaf.bias.size for leaf in posterior.unravel(position).network]
    block = np.repeat(np.arange(len(sizes)), sizes)
    np.testing.assert_allclose(found, np.where(block[:, None] == block, full, 0.0), atol=1e-10)
    np.testing.assert_allclose(
        curvature(position, posterior, "diagonal"), np.diag(np.diag(full)), atol=1e-10
    )


def test_two_outputs_of_a_linear_model_share_their_inputs():
    """H = X'X x 1/noise^2 I: a Kronecker product, in the order of a position."""
    posterior = bnn(Normal(0.5), 2, hidden=())
    position = some_position(posterior)
    found = curvature(position, posterior, "kronecker")
    design = with_ones(np.asarray(posterior.data.x))
    np.testing.assert_allclose(found, np.kron(design.T @ design, 4 * np.eye(2)), atol=1e-3)


@pytest.mark.rotates(3)
@structures
@pytest.mark.parametrize("layers", ["all", "last"])
def test_variances_are_the_diagonal_of_the_inverse(structure, layers):
    posterior = bnn(Categorical(), 3)
    found = spectrum(some_position(posterior), posterior, structure, layers)
    axes = found.from_eigen(np.eye(len(found.values)))
    precision = axes.T @ np.diag(found.values + 1) @ axes
    expected = np.diag(np.linalg.inv(precision))
    np.testing.assert_allclose(found.inverse_diagonal(), expected, rtol=1e-8)
    if structure != "diagonal":
        assert np.abs(1 / np.diag(precision) / expected - 1).max() > 0.05, "planted: inverse of it"


@pytest.mark.rotates(3)
@structures
@pytest.mark.parametrize("layers", ["all", "last"])
def test_a_climb_that_ends_early_is_gone_on_with(structure, layers):
    """Two steps in the coordinates of the prior do not reach a mode; those of the curvature do."""
    posterior = bnn(Categorical(), 3)
    training = Training(max_epochs=1, validation_fraction=0.0)
    method = Laplace(structure=structure, layers=layers, training=training, refine_steps=2)
    found = method.run(0, posterior)
    assert {"refine", "polish"} <= set(found.cost.seconds)
    assert found.scalars["newton_decrement"].max() < 0.05


def test_last_layer_is_everything_where_there_is_no_other():
    posterior = PROBLEM.posterior
    every, last = (weights(Laplace(layers=layers).run(0, posterior)) for layers in ("all", "last"))
    np.testing.assert_array_equal(every, last)


@pytest.mark.slow
@structures
def test_last_layer_given_the_others(structure):
    posterior = bnn(Categorical(), 3)
    position = some_position(posterior)
    last = active_weights(posterior, "last")
    assert last == slice(2 * 4 + 4 + 4 * 3 + 3, posterior.num_weights)
    found = curvature(position, posterior, structure, "last")
    np.testing.assert_allclose(
        found, curvature(position, posterior, structure)[last, last], atol=1e-4
    )


def test_other_layers_stay_at_the_mode_where_the_last_one_is_drawn():
    ensemble = Laplace(layers="last", structure="kronecker").run(0, bnn(Categorical(), 3))
    *others, last = ensemble.params.network.offset
    assert all(np.all(leaf == 0) for leaf in jax.tree.leaves(others))
    assert all(np.all(leaf.std(axis=1) > 0) for leaf in jax.tree.leaves(last))


STEEPNESS = stats.norm.pdf(1.1 / 0.5**0.5) ** 2 / 0.5
SHARES = stats.norm.cdf(1.1 / 0.5**0.5) * stats.norm.sf(1.1 / 0.5**0.5)
NORMAL_CHOICE = STEEPNESS / SHARES * np.array([[1.0, -1.0], [-1.0, 1.0]])
"""Fisher information of a choice between two values that are 1.1 apart, with noise .5 on each: that
of a probit regression, p'^2 / (p (1 - p)), where the difference has variance .5."""


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize(
    ("likelihood", "exact"),
    [
        (Normal(0.5), [[4.0, 0.0], [0.0, 4.0]]),
        (StudentT(3.0, 0.5), [[4 * 4 / 6, 0.0], [0.0, 4 * 4 / 6]]),
        (HeteroscedasticNormal(), [[np.exp(-2 * 0.7), 0.0], [0.0, 2.0]]),
        (Categorical(2.0), None),
        (NoisyArgmax(0.5), NORMAL_CHOICE),
    ],
    ids=repr,
)
def test_fisher_information_of_the_outputs(likelihood, exact):
    """Lange, Little & Taylor (1989) for the t distribution: (df + 1) / (df + 3) / scale^2."""
    outputs = jnp.array([-0.4, 0.7])
    if exact is None:
        p = np.asarray(jax.nn.softmax(2 * outputs))
        exact = 4 * (np.diag(p) - np.outer(p, p))
    is_label = isinstance(likelihood, Categorical | NoisyArgmax)
    for y in (jnp.array(0), jnp.array(1)) if is_label else (jnp.array([1.3, 0.2]),):
        found = jax.jit(lambda outputs, y: output_curvature(likelihood, (), outputs, y))(outputs, y)
        np.testing.assert_allclose(found, exact, rtol=1e-5, atol=1e-9)


def test_rows_in_batches_add_up(monkeypatch):
    """31 rows, 7 at a time: the last batch is filled up with rows that do not count."""
    posterior = bnn(Normal(0.5), 2, num_points=31)
    position = some_position(posterior)
    monkeypatch.setattr(
        "credence.methods.laplace.curvature.BATCH_NUMBERS", 7 * 2 * posterior.num_weights
    )
    apply, unravel = posterior.model.network.apply, posterior.unravel
    outputs = lambda p: apply(unravel(p).network, posterior.data.x)  # noqa: E731
    jacobian = np.asarray(jax.jit(jax.jacrev(outputs))(position), float).reshape(31 * 2, -1)
    exact = 4 * jacobian.T @ jacobian
    found = curvature(position, posterior, "full")
    np.testing.assert_allclose(found, exact, atol=1e-4 * exact.max())


@pytest.mark.slow
def test_learnt_noise_gets_a_gaussian_of_its_own():
    """Around the joint mode of weights and log noise, found here by Newton's method."""
    problem = linear_regression(num_points=40)
    posterior = Posterior(
        MLP(1, hidden=()), problem.prior, Normal(noise_std=None), (problem.x, problem.y)
    )
    ensemble = Laplace(num_draws=50_000, noise="mode").run(0, posterior)

    def log_density(log_std: float) -> float:
        """Log density at the mode of the weights given the noise, whose prior is HalfNormal(1)."""
        part = problem._replace(noise_std=np.exp(log_std))
        w = part.solve()[0]
        residuals = problem.y - with_ones(problem.x) @ w
        return float(
            stats.norm.logpdf(residuals, scale=np.exp(log_std)).sum()
            + stats.norm.logpdf(w, scale=problem.prior_std).sum()
            + stats.halfnorm.logpdf(np.exp(log_std))
            + log_std
        )

    found = optimize.minimize_scalar(lambda s: -log_density(s), bounds=(-3, 1), method="bounded")
    residuals = (
        problem.y - with_ones(problem.x) @ problem._replace(noise_std=np.exp(found.x)).solve()[0]
    )
    squares = np.exp(2 * found.x)
    variance = 1 / (2 * np.sum(residuals**2) / squares + 2 * squares)
    draws = np.asarray(ensemble.params.likelihood, float)[0]
    assert worst_z(draws, np.array([found.x]), np.array([[variance]])) < 4.5
    assert worst_z(draws, np.array([found.x]), np.array([[1.1 * variance]])) > 8
    mean, exact = problem._replace(noise_std=np.exp(found.x)).solve()
    assert worst_z(weights(ensemble), mean, exact) < 4.5


def test_draws_predict_with_the_linearised_network():
    """The Taylor expansion, computed from the Jacobian; the network itself says something else."""
    posterior = bnn(Categorical(), 3)
    settings: Any = {"num_draws": 20, "structure": "kronecker"}
    ensemble = Laplace(**settings).run(0, posterior)
    plain = Laplace(**settings, linearized=False).run(0, posterior)
    np.testing.assert_allclose(weights(ensemble), weights(plain), atol=1e-5)
    mode = ensemble.params.network.mode
    flat, unravel = ravel_pytree(jax.tree.map(lambda leaf: jnp.asarray(leaf[0, 0]), mode))
    apply = posterior.model.network.apply
    function = lambda w: apply(unravel(w), posterior.data.x)  # noqa: E731
    offsets = weights(ensemble) - np.asarray(flat)
    taylor = function(flat) + jnp.einsum(
        "pow,dw->dpo", jax.jit(jax.jacrev(function))(flat), offsets
    )
    outputs = ensemble.outputs(posterior.data.x)
    np.testing.assert_allclose(outputs, taylor, atol=1e-4)
    assert np.abs(plain.outputs(posterior.data.x) - taylor).max() > 0.05


def test_ensembles_survive_the_disk(tmp_path):
    posterior = bnn(Categorical(), 3)
    ensemble = Laplace(num_draws=10, structure="kronecker").run(0, posterior)
    ensemble.save(tmp_path)
    for network in (None, posterior.model.network):
        loaded = Ensemble.load(tmp_path, network)
        assert loaded.model == ensemble.model
        np.testing.assert_array_equal(
            loaded.outputs(posterior.data.x), ensemble.outputs(posterior.data.x)
        )


def test_a_run_is_resumed_and_a_second_compiles_nothing(tmp_path):
    method = Laplace(num_draws=10)
    first = method.run(0, PROBLEM.posterior, folder=tmp_path)
    again = method.run(0, PROBLEM.posterior, folder=tmp_path)
    np.testing.assert_array_equal(weights(first), weights(again))
    assert set(first.cost.seconds) == {"compile", "train", "refine", "other"}
    other = linear_regression(seed=1).posterior
    with CompileClock() as clock:
        second = method.run(1, other)
    assert clock.num_traces == 0
    assert not np.any(weights(second) == weights(first))


BRIEF: Any = {
    "training": Training(max_epochs=1, validation_fraction=0.0),
    "refine_steps": 1,
}


@pytest.mark.rotates(3)
def test_a_learnt_noise_is_resumed_and_a_second_run_compiles_nothing(tmp_path):
    method = Laplace(num_draws=10)
    posterior, other = (learnt(linear_regression(num_points=40, seed=seed)) for seed in (0, 1))
    first = method.run(0, posterior, folder=tmp_path)
    again = method.run(0, posterior, folder=tmp_path)
    np.testing.assert_array_equal(weights(first), weights(again))
    np.testing.assert_array_equal(first.params.likelihood, again.params.likelihood)
    assert {"train", "noise", "refine"} <= set(first.cost.seconds)
    with CompileClock() as clock:
        second = method.run(1, other)
    assert clock.num_traces == 0
    assert not np.any(second.params.likelihood == first.params.likelihood)


def test_a_point_that_is_no_mode_is_refused(monkeypatch):
    monkeypatch.setattr(laplace, "POLISH_STEPS", 1)
    method = Laplace(structure="diagonal", **BRIEF)
    with pytest.raises(InputError, match=r"No mode was found: after .* Raise refine_steps"):
        method.run(0, PROBLEM.posterior)


def test_coordinates_of_the_curvature_lead_to_the_mode(tmp_path):
    """The coordinates of the prior did not lead there; a run is resumed like any phase."""
    method = Laplace(num_draws=50_000, **BRIEF)
    ensemble = method.run(0, PROBLEM.posterior, folder=tmp_path)
    assert "polish" in ensemble.cost.seconds
    mean, exact = PROBLEM.solve()
    assert worst_z(weights(ensemble), mean, exact) < 4.5
    again = method.run(0, PROBLEM.posterior, folder=tmp_path)
    np.testing.assert_array_equal(weights(ensemble), weights(again))


def learnt(problem: LinearRegression, likelihood: Any = None) -> Posterior:
    """The same with a noise that is not known."""
    data = (problem.x, problem.y)
    return Posterior(MLP(1, hidden=()), problem.prior, likelihood or Normal(), data)


def test_weights_given_the_noise_of_held_out_rows():
    """The posterior of the weights is known where the noise is fixed at any estimate."""
    problem = linear_regression(num_points=40)
    ensemble = Laplace(num_draws=50_000).run(0, learnt(problem))
    (noise_std,) = np.unique(np.exp(np.asarray(ensemble.params.likelihood, float)))
    given = problem._replace(noise_std=noise_std)
    assert worst_z(weights(ensemble), *given.solve()) < 4.5
    planted = problem._replace(noise_std=1.1 * noise_std)
    assert worst_z(weights(ensemble), *planted.solve()) > 8
    evidence = ensemble.scalars["log_evidence"][0, 0]
    np.testing.assert_allclose(evidence, given.log_evidence(), atol=1e-3)
    assert abs(evidence - planted.log_evidence()) > 0.02


@pytest.mark.parametrize("likelihood", [Normal(), StudentT()], ids=repr)
def test_noise_of_rows_is_that_of_a_reference(likelihood):
    """SciPy's bounded search for max log p(s) + log p(y | f, s) over rows with weights."""
    posterior = learnt(linear_regression(num_points=40), likelihood)
    rows = posterior.data._replace(weight=jnp.asarray(np.arange(40) % 3, float))
    start = some_position(posterior)
    with Driver() as driver:
        found, _ = noise_of(jax.random.key(0), rows, posterior, driver, start)
    np.testing.assert_array_equal(np.asarray(found)[:-1], np.asarray(start)[:-1])
    model = posterior.model

    def loss(log_scale: float, rows: Any) -> float:
        params = posterior.unravel(start.at[-1].set(log_scale))
        value = model.likelihood.log_prior(params.likelihood) + model.log_likelihood(params, rows)
        return -float(value)

    exact, planted = (
        optimize.minimize_scalar(
            lambda s, data=data: loss(s, data), bounds=(-3, 2), method="bounded"
        ).x
        for data in (rows, posterior.data)
    )
    assert abs(found[-1] - exact) < 2e-3
    assert abs(found[-1] - planted) > 0.02, "planted: no weights"


def test_held_out_rows_are_those_the_network_was_not_fitted_to():
    posterior = learnt(linear_regression(num_points=40))
    training = Training(max_epochs=50, validation_fraction=0.2)
    rows = held_out(jax.random.key(1), posterior, training)
    with Driver() as driver:
        best = train(jax.random.key(1), posterior, driver, 1, training)
    params = posterior.unravel(best.positions[0])
    assert rows.x.shape == (8, 3)
    loss = -posterior.model.log_likelihood(params, rows) / 8
    np.testing.assert_allclose(best.loss[0], loss, rtol=1e-4)


def test_small_curvatures_survive_large_ones():
    """Columns almost the same: a sum in single precision loses how they differ."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(200, 1)) + 1e-3 * rng.normal(size=(200, 3))
    posterior = Posterior(MLP(1, hidden=()), Gaussian("unit"), Normal(0.01), (x, x[:, 0]))
    found = spectrum(some_position(posterior), posterior, "full", "all").values
    design = with_ones(np.asarray(posterior.data.x))
    exact = np.linalg.eigvalsh(1e4 * design.T.astype(float) @ design)
    np.testing.assert_allclose(found, exact, rtol=1e-3)
    single = 1e4 * design.T.astype(np.float32) @ design.astype(np.float32)
    planted = np.linalg.eigvalsh(single.astype(float))
    assert np.abs(planted / exact - 1).max() > 0.01


def surprise(covered: np.ndarray) -> float:
    """Probability of so few rows in 95 % intervals, were each right by itself."""
    return float(stats.binom(len(covered), 0.95).cdf(covered.sum()))


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param("boston", marks=needs_data), "simulated_regression"])
def test_networks_that_could_explain_every_row(name):
    """No joint mode of noise and weights, but one of the weights given the noise.

    The noise is that of a network fitted to fewer rows, so intervals may hold too much.
    """
    problems = (*FBNN.problems, *FBNN_FIRST_VERSION.problems)
    problem = next(problem for problem in problems if problem.name == name)
    arrays = load(problem.source, RowLimits())
    network = MLP(1, hidden=problem.model.hidden, activation="tanh")
    data = (arrays.x_train, arrays.y_train)
    posterior = Posterior(network, Gaussian("unit"), Normal(), data)
    ensemble = Laplace(num_draws=500).run(0, posterior)
    found, y = ensemble.predictive(arrays.x_test), arrays.y_test
    low, high = np.asarray(found.quantiles([0.025, 0.975]))[..., 0]
    distance, half = np.abs(y - (low + high) / 2), (high - low) / 2
    assert surprise(distance <= half) > 1e-3
    assert surprise(distance <= half / 5) < 1e-8, "planted: intervals five times too short"
    assert np.std(np.asarray(found.mean())[:, 0] - y) < np.std(y)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"structure": "dense"}, "Unknown structure 'dense': choose one of full"),
        ({"layers": "first"}, "Unknown layers 'first'"),
        ({"prior_precision": "flat"}, "Unknown prior_precision 'flat'"),
        ({"num_draws": 0}, "num_draws must be > 0"),
        ({"training": Training()}, "around a mode for all rows"),
        ({"noise": "joint"}, "Unknown noise 'joint': choose one of held_out, mode"),
        ({"held_out_fraction": 0.0}, "held_out_fraction must be strictly between 0 and 1"),
        ({"prior_precision": "evidence", "linearized": False}, "use linearized=True"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        Laplace(**settings)


def test_no_rows_for_the_noise_are_refused_before_training(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("credence.methods.laplace.method.train", None)  # so a call would fail
    with pytest.raises(InputError, match="none to estimate the noise"):
        Laplace(held_out_fraction=0.01).run(0, learnt(PROBLEM))


class Foreign:
    """A network that is no MLP."""

    inner = MLP(1, hidden=())
    init, apply, fan_in = inner.init, inner.apply, inner.fan_in


class Uneven(Gaussian):
    """Standard deviations without Kronecker structure."""

    def stds(self, network, params):
        first, *rest = super().stds(network, params)
        return (type(first)(np.arange(1.0, 13.0).reshape(3, 4), first.bias), *rest)


@pytest.mark.parametrize(
    ("settings", "network", "prior", "message"),
    [
        ({}, MLP(1), HierarchicalGamma(), "needs a Gaussian prior"),
        ({}, MLP(1, hidden=(4000,)), Gaussian(), r"20,001 x 20,001 matrix"),
        ({"structure": "kronecker"}, Foreign(), Gaussian(), "structure='kronecker' needs the lay"),
        ({"layers": "last"}, Foreign(), Gaussian(), "layers='last' needs the layers of an MLP"),
        ({"structure": "kronecker"}, MLP(1, hidden=(4,)), Uneven(), "one factor per input"),
    ],
)
def test_what_does_not_go_together_is_refused_before_training(settings, network, prior, message):
    posterior = Posterior(network, prior, Normal(0.5), (PROBLEM.x, PROBLEM.y))
    with CompileClock() as clock, pytest.raises(InputError, match=message):
        Laplace(**settings).run(0, posterior)
    assert clock.num_traces == 0


def test_trace_class_priors_have_kronecker_structure():
    posterior = Posterior(MLP(1, hidden=(4,)), TraceClass(), Normal(0.5), (PROBLEM.x, PROBLEM.y))
    position = some_position(posterior)
    found = spectrum(position, posterior, "kronecker", "all")
    local = local_gaussian(position, posterior, found, "all", is_full=False)
    gradient = np.asarray(jax.jit(jax.grad(posterior.log_density))(position, posterior.data), float)
    precision = curvature(position, posterior, "kronecker") + np.diag(
        prior_stds(posterior, "all") ** -2
    )
    exact = 0.5 * gradient @ np.linalg.solve(precision, gradient)
    np.testing.assert_allclose(local.decrement(), exact, rtol=1e-3)


def test_laplace_is_found_by_name():
    from credence.methods import METHODS

    assert METHODS["laplace"] is Laplace
    assert "approximate" in Laplace.summary
    settings = {"structure": "diagonal", "training": {"max_epochs": 7, "validation_fraction": 0.0}}
    assert Laplace.from_settings(settings).training.max_epochs == 7  # type: ignore[attr-defined]
