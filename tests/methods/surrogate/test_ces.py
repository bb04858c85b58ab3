"""Calibrate, emulate, sample: exact with delayed acceptance, whatever the emulator."""

import json
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import PRNGKeyArray
from scipy.optimize import nnls
from tools.exact import linear_regression, weights
from tools.moments import moment_z
from tools.unchecked import unchecked

from credence.density import stored_rows as stored
from credence.density.data import Data
from credence.density.posterior import Posterior
from credence.density.stored_rows import open_rows
from credence.engine.clock import CompileClock
from credence.engine.driver import Driver
from credence.ensembles.diagnostics.importance import hellinger, pareto_smoothed
from credence.ensembles.ensemble import Ensemble
from credence.errors import InputError, OutOfTime
from credence.kernels.mcmc.pcn import pcn
from credence.methods import METHODS, NUTS
from credence.methods.surrogate import true_likelihood
from credence.methods.surrogate.calibration import calibration_draws
from credence.methods.surrogate.ces import CES
from credence.methods.surrogate.delayed_acceptance import uncorrected
from credence.methods.surrogate.emulation import emulation
from credence.methods.surrogate.emulators import (
    Auto,
    Coreset,
    Emulated,
    Emulator,
    GaussianProcess,
    Network,
    Points,
    Taylor,
    emulate,
    error_of,
    gaussian_process,
    network,
    nonnegative,
    taylor,
)
from credence.methods.surrogate.emulators.auto import expected_acceptance
from credence.methods.surrogate.fitting import Equations, num_held_out, split
from credence.methods.surrogate.true_likelihood import UnreliableWeightsWarning, check_points
from credence.methods.surrogate.worth import HopelessEmulator
from credence.methods.training import Training
from credence.models import MLP, Bernoulli, Categorical, Gaussian, Normal

pytestmark = pytest.mark.rotates(3)

PROBLEM = linear_regression()
SETTINGS: dict[str, Any] = {
    "num_chains": 64,
    "num_draws": 200,
    "calibration": "sghmc",
    "num_calibration": 40,
    "num_refinements": 0,
    "num_warmup": 400,
    "thinning": 5,
    "max_error": 1e6,
    "training": Training(max_epochs=300),
}


@dataclass(frozen=True)
class Shifted:
    """Log likelihood of another data set: wrong on purpose."""

    model: Any
    shift: float

    def __call__(self, position: Any, rows: Data) -> Any:
        moved = rows._replace(y=rows.y + self.shift)
        return 0.8 * self.model.log_likelihood(self.model.unravel(position, moved), moved)


@dataclass(frozen=True, kw_only=True)
class Wrong(Emulator):
    """An emulator that is deliberately wrong."""

    name: str = field(default="wrong", init=False)
    shift: float = 0.3

    def fit(
        self, key: PRNGKeyArray, points: Points, posterior: Posterior, data: Data, driver: Driver
    ) -> Emulated:
        return Emulated(
            Shifted(posterior.model, self.shift), jax.tree.map(lambda leaf: leaf[None], data), 1.0
        )


PARTLY_BLIND = GaussianProcess(num_components=2)
GOOD, POOR, WRONG = Coreset(num_inputs=11, num_draws=50), Taylor(num_rows=6, order=1), Wrong()


@lru_cache
def exact(emulator: Emulator, sampler: str = "hmc", correction: str = "delayed_acceptance") -> Any:
    """A run on linear regression."""
    method = CES(emulator=emulator, sampler=sampler, correction=correction, **SETTINGS)
    return method.run(1, PROBLEM.posterior)


class TestExactness:
    @pytest.mark.parametrize(
        ("emulator", "sampler"),
        [
            (GOOD, "hmc"),
            (POOR, "hmc"),
            (WRONG, "hmc"),
            (WRONG, "pcn"),
            (POOR, "nuts"),
            (WRONG, "mclmc"),
            pytest.param(PARTLY_BLIND, "pcn", marks=pytest.mark.slow),
        ],
        ids=str,
    )
    def test_delayed_acceptance_gives_the_posterior(self, emulator: Any, sampler: str) -> None:
        ensemble = exact(emulator, sampler)
        z = moment_z(weights(ensemble), PROBLEM)
        rate = np.mean(ensemble.scalars["acceptance_rate"])
        print(f"{emulator.name}, {sampler}: z {z:.1f}, accepted {rate:.2f}")
        assert z < 4.5
        assert rate < 0.95 or emulator is GOOD

    @pytest.mark.rotates(3)
    def test_rows_on_disk_give_the_posterior(self, tmp_path) -> None:
        assert moment_z(weights(self.from_disk(tmp_path)), PROBLEM) < 4.5

    @pytest.mark.rotates(3)
    def test_planted_rows_that_count_twice_are_caught(self, tmp_path, monkeypatch) -> None:
        """Three rows of the last chunk belong to its neighbour too."""

        def planted(rows: Any, others: Any, start: Any) -> Any:
            chunk, is_new = original(rows, others, start)
            return chunk, jnp.ones_like(is_new)

        original = stored.chunks_of
        monkeypatch.setattr(stored, "chunks_of", planted)
        assert moment_z(weights(self.from_disk(tmp_path)), PROBLEM) > 8

    @staticmethod
    def from_disk(folder: Any) -> Ensemble:
        """A run on linear regression whose 12 inputs are read five at a time."""
        np.save(folder / "x.npy", PROBLEM.x.astype(np.float32))
        model = PROBLEM.posterior.model
        rows = open_rows(folder / "x.npy", chunk_rows=5)
        parts = (model.network, model.prior, model.likelihood, (rows, PROBLEM.y))
        jax.clear_caches()  # what is planted must be traced
        return CES(emulator=POOR, sampler="hmc", **SETTINGS).run(1, Posterior(*parts))

    @pytest.mark.rotates(3)
    def test_uncorrected_draws_of_a_wrong_emulator_are_caught(self) -> None:
        assert moment_z(weights(exact(WRONG, correction="none")), PROBLEM) > 10

    @pytest.mark.rotates(3)
    def test_planted_wrong_noise_is_caught(self) -> None:
        wrong = PROBLEM._replace(noise_std=1.1 * PROBLEM.noise_std)
        assert moment_z(weights(exact(GOOD)), wrong) > 8

    def test_pcn_with_the_prior_as_reference_gives_the_posterior(self) -> None:
        settings = SETTINGS | {"calibration": "pcn", "thinning": 10}
        method = CES(emulator=POOR, sampler="pcn", reference="prior", **settings)
        found = weights(method.run(1, PROBLEM.posterior))
        wrong = PROBLEM._replace(noise_std=1.2 * PROBLEM.noise_std)
        z, planted = (moment_z(found, each) for each in (PROBLEM, wrong))
        print(f"z {z:.1f}; planted noise: z {planted:.1f}")
        assert z < 4.5
        assert planted > 8

    @pytest.mark.rotates(3)
    def test_importance_weights_mend_what_is_near(self) -> None:
        settings = SETTINGS | {"num_chains": 8, "num_draws": 2000}
        method = CES(emulator=Wrong(shift=0.1), correction="psis", **settings)
        ensemble = method.run(1, PROBLEM.posterior)
        assert np.max(ensemble.scalars["pareto_k"]) < 0.7
        np.testing.assert_allclose(np.sum(ensemble.weights, axis=1), 1 / 8)
        mean, _ = PROBLEM.solve()
        by_chain = 8 * np.einsum("cd,cdw->cw", ensemble.weights, weights(ensemble))
        plain = weights(ensemble).mean(axis=1)
        error = plain.std(axis=0, ddof=1) / 8**0.5
        off, plain_off = (abs(each.mean(axis=0) - mean) / error for each in (by_chain, plain))
        assert np.max(plain_off) > 8
        assert np.max(off) < 0.2 * np.max(plain_off)

    @pytest.mark.rotates(3)
    def test_a_quadratic_series_is_all_of_a_linear_network(self) -> None:
        """The Hessian is exact, so that the likelihood accepts every step."""
        ensemble = exact(Taylor(num_rows=0))
        assert np.mean(ensemble.scalars["acceptance_rate"]) > 0.999
        assert np.max(ensemble.scalars["emulator_error"]) < 1e-3

    def test_a_coreset_is_nearly_all_of_a_linear_network(self) -> None:
        assert np.max(exact(GOOD).scalars["emulator_error"]) < 0.1

    def test_scalars_and_cost_say_what_was_done(self) -> None:
        ensemble = exact(GOOD)
        shape = SETTINGS["num_chains"], SETTINGS["num_draws"]
        assert all(np.shape(scalar) == shape for scalar in ensemble.scalars.values())
        assert np.all(ensemble.scalars["num_evaluations"] == SETTINGS["thinning"])
        phases = {"compile", "calibrate", "emulate", "warmup", "sample", "other"}
        assert set(ensemble.cost.seconds) == phases
        assert METHODS["ces"] is CES


def test_an_emulator_of_few_projections_leaves_the_others_to_the_prior() -> None:
    """The first layer sees r directions: the emulated posterior equals the prior in the others."""

    def seen(position: Any, direction: Any) -> Any:
        return -0.5 * (direction @ position - 2.0) ** 2 / 0.01 - 0.5 * jnp.sum(position**2)

    directions = jnp.eye(4)[:1][None, 0]
    prior = {"step_size": 0.5, "reference_mean": jnp.zeros(4), "reference_std": jnp.ones(4)}
    kernel = uncorrected(
        seen, surrogate=seen, surrogates=directions, build=pcn, settings=prior, num_steps=50
    )
    nothing = Data(jnp.zeros((1, 1)), jnp.zeros((1, 1)), jnp.ones(1))

    def chain(key: Any) -> Any:
        start = kernel.init(jnp.zeros(4).at[0].set(2.0), nothing)
        step = lambda state, key: (kernel.step(key, state, nothing)[0], None)  # noqa: E731
        return jax.lax.scan(step, start, jax.random.split(key, 8))[0].position

    ends = np.asarray(jax.jit(jax.vmap(chain))(jax.random.split(jax.random.key(0), 4000)))
    assert abs(ends[:, 0].mean() - 2) < 0.1
    unseen = ends[:, 1:]
    assert np.max(abs(unseen.mean(axis=0))) * 4000**0.5 < 4.5
    assert np.max(abs(unseen.var(axis=0) - 1)) * 2000**0.5 < 4.5


class TestImportance:
    @pytest.mark.parametrize(
        ("variance", "expected", "spread"), [(0.25, 0.71, 0.07), (0.8, 0.2, 0.05)]
    )
    def test_tail_index_of_a_narrow_proposal(
        self, variance: float, expected: float, spread: float
    ) -> None:
        """Target N(0, 1), proposal N(0, s^2): 1 - s^2, measured .71 and .20 with 20,000 draws."""
        found = []
        for seed in range(5):
            z = variance**0.5 * np.random.default_rng(seed).normal(size=20_000)
            found.append(pareto_smoothed(0.5 * z**2 / variance - 0.5 * z**2).pareto_k)
        assert abs(np.mean(found) - expected) < 4.5 * spread / 5**0.5

    def test_hellinger_distance_of_two_gaussians(self) -> None:
        """d^2 = 1 - sqrt(2 s / (1 + s^2)) for N(0, 1) and N(0, s^2)."""
        z = np.random.default_rng(0).normal(size=100_000)
        log_ratios = -0.5 * z**2 / 0.49 + 0.5 * z**2 + 3.0
        exact = (1 - (2 * 0.7 / (1 + 0.49)) ** 0.5) ** 0.5
        assert hellinger(log_ratios) == pytest.approx(exact, rel=0.02)
        assert hellinger(np.full(10, 2.0)) == pytest.approx(0)

    def test_weights_that_break_the_fit_have_no_moments(self) -> None:
        found = pareto_smoothed(np.append(1e5 * np.ones(3), -1e5 * np.arange(97.0)))
        assert found.pareto_k > 0.7
        assert found.weights.sum() == pytest.approx(1)

    def test_too_few_draws_are_refused(self) -> None:
        with pytest.raises(ValueError, match="at least 25 draws"):
            pareto_smoothed(np.zeros(20))


RNG = np.random.default_rng(3)
X = RNG.normal(size=(200, 2))
Y = np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.3 * RNG.normal(size=200)
SMALL = MLP(1, hidden=(6,))
"""25 weights with the noise."""


def regression() -> Posterior:
    return Posterior(SMALL, Gaussian(scaling="fan_in"), Normal(), (X, Y))


KINDS = "regression", "two_targets", "bernoulli", "categorical"


def problem(kind: str) -> Posterior:
    """The posterior of one of `KINDS`."""
    prior = Gaussian(scaling="fan_in")
    if kind == "regression":
        return regression()
    if kind == "two_targets":
        targets = np.stack([Y, Y[::-1]], axis=1)
        return Posterior(MLP(2, hidden=(6,)), prior, Normal(), (X, targets))
    labels = (Y > 0).astype(int) + (Y > 1) * (kind == "categorical")
    outputs, likelihood = (1, Bernoulli()) if kind == "bernoulli" else (3, Categorical())
    return Posterior(MLP(outputs, hidden=(6,)), prior, likelihood, (X, labels))


def near(posterior: Posterior, num_draws: int = 60) -> tuple[Points, Data]:
    """Draws of a short run, and the log likelihood there."""
    ensemble = NUTS(num_draws=num_draws, num_chains=2, num_warmup=200).run(0, posterior)
    ravel = jax.vmap(jax.vmap(posterior.ravel))
    positions = np.asarray(ravel(jax.tree.map(jnp.asarray, ensemble.params)))
    data, model = posterior.anchored(jnp.asarray(positions[0, -1])), posterior.model

    def both(position: Any) -> Any:
        params = model.unravel(position, data)
        return model.log_likelihood(params, data), model.log_density(params, data)

    values = jax.jit(jax.vmap(jax.vmap(both)))(jnp.asarray(positions))
    return Points(positions, *(np.asarray(value, float) for value in values)), data


@pytest.mark.usefixtures("float64")
class TestEmulators:
    @pytest.mark.slow
    def test_series_has_value_gradient_and_curvature_of_all_rows(self) -> None:
        posterior = regression()
        points, data = near(posterior)
        with Driver() as driver:
            emulated = Taylor(num_rows=40).fit(jax.random.key(1), points, posterior, data, driver)
        series = jax.tree.map(lambda leaf: leaf[0], emulated.arrays)
        rough = lambda w: emulated.log_likelihood(w, series)  # noqa: E731
        true = lambda w: posterior.model.log_likelihood(posterior.model.unravel(w, data), data)  # noqa: E731
        at = series.centre
        assert np.any(np.all(points.positions[0] == np.asarray(at), axis=1))
        np.testing.assert_allclose(jax.grad(rough)(at), jax.grad(true)(at), rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(jax.hessian(rough)(at), jax.hessian(true)(at), atol=1e-6)

    @pytest.mark.parametrize("emulator", [Taylor(num_rows=200, order=0), Coreset()])
    @pytest.mark.parametrize("kind", KINDS)
    def test_all_rows_are_the_likelihood_itself(self, kind: str, emulator: Emulator) -> None:
        posterior = problem(kind)
        points, data = near(posterior)
        with Driver() as driver:
            emulated = emulator.fit(jax.random.key(1), points, posterior, data, driver)
        assert error_of(emulated, points).nats < 1e-8

    @pytest.mark.parametrize("kind", KINDS)
    def test_one_point_teaches_what_it_expects(self, kind: str) -> None:
        """The mean of a score is 0: the emulated likelihood is level there, noise included, and
        counts every row once."""
        posterior = problem(kind)
        position = posterior.init(jax.random.key(0), 1)
        points = Points(np.asarray(position)[:, None], np.zeros((1, 1)), np.zeros((1, 1)))
        data = posterior.anchored(position[0])
        with Driver() as driver:
            coreset = Coreset(num_inputs=40)
            emulated = coreset.fit(jax.random.key(1), points, posterior, data, driver)
        rows = jax.tree.map(lambda leaf: leaf[0], emulated.arrays)
        value, gradient = jax.value_and_grad(emulated.log_likelihood)(position[0], rows)
        assert abs(float(value)) < 1e-12
        assert np.max(abs(np.asarray(gradient))) < 1e-9
        assert float(jnp.sum(rows.weight)) == pytest.approx(len(X))
        planted = rows._replace(weight=jnp.ones_like(rows.weight))
        assert np.max(abs(jax.grad(emulated.log_likelihood)(position[0], planted))) > 1

    @pytest.mark.parametrize("kind", KINDS)
    def test_a_coreset_knows_more_than_as_many_rows(self, kind: str) -> None:
        posterior = problem(kind)
        points, data = near(posterior)
        to_fit, held_out = split(points)
        errors = {}
        for emulator in (Coreset(num_inputs=40), Taylor(num_rows=40, order=0)):
            with Driver() as driver:
                emulated = emulator.fit(jax.random.key(1), to_fit, posterior, data, driver)
            errors[emulator.name] = error_of(emulated, held_out)
            if emulator.name == "coreset":
                assert np.all(np.asarray(emulated.arrays.weight) >= 0)
        print(kind, errors)
        assert errors["coreset"].nats < 0.5 * errors["taylor"].nats
        assert errors["coreset"].share < 0.3

    @pytest.mark.parametrize("target", ["outputs", "log_likelihood"])
    def test_a_network_learns_what_few_draws_can_teach(self, target: str) -> None:
        """The training error is small; of draws that it has not seen it knows some."""
        posterior = regression()
        points, data = near(posterior, num_draws=200)
        to_fit, held_out = split(points)
        emulator = Network(target=target, training=Training(validation_fraction=0.2, patience=20))
        with Driver() as driver:
            emulated = emulator.fit(jax.random.key(1), to_fit, posterior, data, driver)
        seen, unseen = error_of(emulated, to_fit), error_of(emulated, held_out)
        print(target, seen, unseen)
        assert seen.share < 0.9
        assert seen.nats < unseen.nats

    @pytest.mark.parametrize("subspace", ["active", "pca"])
    def test_a_process_in_all_directions_of_a_linear_network_is_its_likelihood(
        self, subspace: str
    ) -> None:
        """The likelihood is quadratic; the emulated posterior is then exact, in every direction."""
        posterior = PROBLEM.posterior
        points, data = near(posterior, num_draws=100)
        to_fit, held_out = split(points)
        emulator = GaussianProcess(num_components=4, subspace=subspace)
        with Driver() as driver:
            emulated = emulator.fit(jax.random.key(1), to_fit, posterior, data, driver)
        assert error_of(emulated, held_out).share < 1e-3
        assert error_of(emulated, held_out).nats < 0.05

    @pytest.mark.rotates(3)
    def test_a_process_knows_nothing_outside_its_subspace(self) -> None:
        """The active subspace finds the direction that the data see."""
        rng = np.random.default_rng(0)
        x = np.column_stack([rng.normal(size=200), 1e-3 * rng.normal(size=(200, 2))])
        y = 2 * x[:, 0] + 0.3 * rng.normal(size=200)
        posterior = Posterior(MLP(1, ()), Gaussian(), Normal(0.3), (x, y))
        points, data = near(posterior, num_draws=80)
        with Driver() as driver:
            active = GaussianProcess(num_components=2)
            emulated = active.fit(jax.random.key(1), points, posterior, data, driver)
        basis = np.asarray(emulated.arrays.basis[0])
        seen = np.linalg.norm(basis[:, [0, 3]], axis=0)  # the slope of x_1 and the bias
        assert np.all(seen > 0.99)
        process = jax.tree.map(lambda leaf: leaf[0], emulated.arrays)
        away = process.centre + jnp.asarray([0.0, 5.0, -5.0, 0.0])
        values = [emulated.log_likelihood(at, process) for at in (process.centre, away)]
        assert float(values[1] - values[0]) == pytest.approx(0, abs=0.2)

    def test_a_process_is_concave_far_away(self) -> None:
        rng = np.random.default_rng(0)
        z = rng.normal(size=(60, 3))
        _, curvature = gaussian_process.concave(z, z[:, 0] ** 2 - z[:, 1] ** 2)
        sizes = np.linalg.eigvalsh(curvature)
        assert sizes.max() < 1e-9
        assert sizes.min() == pytest.approx(-2, rel=0.1)

    def test_auto_takes_what_is_off_least_for_its_cost(self) -> None:
        posterior = PROBLEM.posterior
        points, data = near(posterior)
        auto = Auto(candidates=("taylor", "gaussian_process"))
        with Driver() as driver:
            emulated = auto.fit(jax.random.key(1), points, posterior, data, driver)
        about = emulated.about
        by_name = {one["name"]: one for one in about["candidates"]}
        assert set(by_name) == {"taylor", "gaussian_process"}
        assert about["emulator"] == max(by_name.values(), key=lambda one: one["promise"])["name"]
        assert json.loads(json.dumps(about)) == json.loads(json.dumps(dict(about)))

    def test_auto_leaves_out_what_cannot_learn(self) -> None:
        posterior = regression()
        one = np.zeros((2, 1, posterior.num_weights))
        from_modes = Points(one, one[..., 0], one[..., 0])
        names = [each.name for each in Auto()._usable(posterior, from_modes)]
        assert names == ["coreset", "taylor"]
        with pytest.raises(InputError, match=r"None of the emulators .* add .coreset"):
            Auto(candidates=("gaussian_process",))._usable(posterior, from_modes)
        with pytest.raises(InputError, match="candidates must be some of"):
            Auto(candidates=("network",))

    @pytest.mark.parametrize("nats", [0.0, 0.5, 2.0])
    def test_promised_acceptance_is_that_of_gaussian_errors(self, nats: float) -> None:
        """Ends are draws of the target up to e^error: log ratios N(-s^2 / 2, s^2), s^2 = 2 e^2."""
        variance = 2 * nats**2
        z = np.random.default_rng(0).normal(-variance / 2, variance**0.5, size=200_000)
        rates = np.minimum(1, np.exp(z))
        error = rates.std() / len(rates) ** 0.5 + 1e-12
        assert abs(rates.mean() - expected_acceptance(nats)) < 4.5 * error

    @pytest.mark.slow
    def test_perfect_outputs_make_the_likelihood(self) -> None:
        """The arithmetic is exact with the true outputs in place of the network's."""
        posterior = regression()
        points, data = near(posterior, num_draws=20)
        position = jnp.asarray(points.positions[0, 3])
        params = posterior.model.unravel(position, data)
        outputs = posterior.model.network.apply(params.network, data.x).ravel()
        zero = MLP(1, ())
        weights = jax.tree.map(jnp.zeros_like, zero.init(jax.random.key(0), position[None]))
        parts = network.Parts(
            weights, 0 * position, 1 + 0 * position, jnp.ones(()), outputs,
            jnp.zeros((1, len(outputs))), data,
        )  # fmt: skip
        likelihood = network.NetworkLikelihood(posterior.model, zero, "outputs")
        assert float(likelihood(position, parts)) == pytest.approx(points.log_likelihoods[0, 3])

    def test_weights_are_the_least_squares_ones(self) -> None:
        rng = np.random.default_rng(0)
        design, usual = rng.normal(size=(30, 8)), np.full(8, 0.5)
        target = design @ np.maximum(rng.normal(size=8), 0) + 0.1 * rng.normal(size=30)
        equations = Equations(design.T @ design, design.T @ target, target @ target)
        found = nonnegative.nonnegative(equations, equations, usual, np.array([0.1]))
        slope = equations.gram @ found - equations.moment + 0.1 * (found - usual)
        assert np.all(found >= 0)
        assert np.all(slope > -1e-8)
        np.testing.assert_allclose(slope * found, 0, atol=1e-8)
        assert 0 < np.sum(found == 0) < 8

    @pytest.mark.parametrize("seed", range(5))
    def test_pivoting_finds_what_scipy_finds(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        design, target = rng.normal(size=(60, 50)), rng.normal(size=60)
        found = nonnegative.nonnegative_minimum(design.T @ design, design.T @ target)
        np.testing.assert_allclose(found, nnls(design, target)[0], atol=1e-9)
        assert 10 < np.sum(found == 0) < 40

    def test_descent_finds_the_same_where_terms_are_nearly_alike(self) -> None:
        """More terms than equations, and a ridge of 1e-5."""
        rng = np.random.default_rng(0)
        design, target = rng.normal(size=(60, 300)) + 3, rng.normal(size=60)
        gram = design.T @ design + 1e-3 * np.eye(300)
        moment = design.T @ target
        root = np.linalg.cholesky(gram).T
        exact = nnls(root, np.linalg.solve(root.T, moment))[0]
        value = lambda v: float(v @ (0.5 * gram @ v - moment))  # noqa: E731
        for found in (
            nonnegative.nonnegative_minimum(gram, moment),
            nonnegative.descended(gram, moment, np.zeros(300)),
        ):
            assert np.all(found >= 0)
            assert value(found) < value(exact) + 1e-4 * abs(value(exact))

    def test_rows_are_chosen_without_repetition(self) -> None:
        chosen = taylor.some_rows(jax.random.key(0), regression().data, 50)
        assert len(np.unique(chosen)) == 50


@pytest.mark.slow
def test_small_network_against_long_nuts() -> None:
    """Predictions within .3 of their standard deviation; by 6 rows, uncorrected, they are not."""
    posterior = regression()
    x_new = np.random.default_rng(7).normal(size=(20, 2))
    reference = NUTS(num_chains=8, num_draws=2000).run(0, posterior).functions(x_new)[..., 0]
    std = reference.std(axis=(0, 1))

    def off(ensemble: Ensemble) -> float:
        found = ensemble.functions(x_new)[..., 0]
        return float(np.max(abs(found.mean(axis=(0, 1)) - reference.mean(axis=(0, 1))) / std))

    settings = {"num_draws": 2000, "num_chains": 4, "max_error": np.inf}
    assert off(CES(emulator=Coreset(num_inputs=60), **settings).run(1, posterior)) < 0.3
    rough = Taylor(num_rows=6, order=0)
    assert off(CES(emulator=rough, correction="none", **settings).run(1, posterior)) > 3
    with pytest.warns(UnreliableWeightsWarning):
        CES(emulator=rough, correction="psis", **settings).run(1, posterior)


POINTS = (
    np.random.default_rng(0).normal(size=(2, 5, 4)).astype(np.float32),
    np.zeros((2, 5)),
    np.random.default_rng(1).normal(size=(2, 5)),
)


def small(
    key: int = 0, posterior: Posterior = PROBLEM.posterior, folder: Any = None, **settings: Any
) -> Ensemble:
    """A short run."""
    defaults: dict[str, Any] = {
        "num_chains": 2,
        "num_draws": 50,
        "num_calibration": 20,
        "num_refinements": 1,
        "num_warmup": 60,
        "thinning": 1,
        "max_error": 1e6,
        "emulator": Coreset(num_inputs=8, num_draws=20),
        "training": Training(max_epochs=50),
    }
    return CES(**(defaults | settings)).run(key, posterior, folder=folder)


@pytest.mark.rotates(3)
def test_resumed_run_gives_the_same_draws(tmp_path, monkeypatch) -> None:
    """Stopped before some of the phases."""
    whole, phase, names = weights(small(3)), Driver.phase, []

    def noting(self: Driver, name: str, *args: Any, **kwargs: Any) -> Any:
        names.append(name)
        return phase(self, name, *args, **kwargs)

    monkeypatch.setattr(Driver, "phase", noting)
    small(3)
    for last in range(2, len(names), 3):
        seen: list[str] = []

        def stopping(
            self: Driver, name: str, *args: Any, seen=seen, last=last, **kwargs: Any
        ) -> Any:
            seen.append(name)
            if len(seen) > last:
                raise KeyboardInterrupt
            return phase(self, name, *args, **kwargs)

        monkeypatch.setattr(Driver, "phase", stopping)
        with pytest.raises(KeyboardInterrupt):
            small(3, folder=tmp_path)
    monkeypatch.setattr(Driver, "phase", phase)
    np.testing.assert_array_equal(weights(small(3, folder=tmp_path)), whole)


@pytest.mark.rotates(3)
def test_second_run_of_the_same_shapes_compiles_nothing() -> None:
    settings = {"emulator": Taylor(num_rows=8), "calibration": "pcn"}
    small(key=0, **settings)
    with CompileClock() as clock:
        small(key=1, **settings)
    assert clock.num_traces == 0


def test_settings_of_a_saved_ensemble_make_the_method_again() -> None:
    method = CES(emulator=Taylor(num_rows=7, order=2), sampler="pcn")
    assert CES.from_settings(asdict(method)) == method
    assert CES(emulator="taylor") == CES(emulator=Taylor())
    assert CES.from_settings({"emulator": "taylor", "num_draws": 7}).emulator == Taylor()
    assert CES.from_settings({"num_draws": 7}) == CES(num_draws=7)
    method = CES(calibration="pcn", emulator=Network(hidden=(8,), training=Training(max_epochs=7)))
    assert CES.from_settings(json.loads(json.dumps(asdict(method)))) == method


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_calibration": 5}, "num_calibration must be at least 10, got 5"),
        (
            {"emulator": "oracle"},
            "Unknown emulator 'oracle': choose one of coreset",
        ),
        ({"sampler": "walk"}, "Unknown sampler 'walk'"),
        ({"sampler": "sghmc"}, "nothing can correct it"),
        ({"correction": "hope"}, "Unknown correction 'hope'"),
        ({"calibration": "nuts"}, "Unknown calibration 'nuts'"),
        ({"reference": "x"}, "Unknown reference 'x'"),
        ({"surrogate_steps": 0}, "surrogate_steps must be > 0"),
        ({"max_error": 0.0}, "max_error must be > 0"),
        ({"num_refinements": -1}, "num_refinements must be >= 0"),
        ({"num_refinements": 0}, "A mode per chain is too little"),
        ({"emulator": "network"}, "A mode per chain is too little"),
    ],
)
def test_bad_settings_are_refused(settings: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        CES(**settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"order": 3}, "order must be 0, 1 or 2"),
        ({"num_rows": 0, "order": 1}, "Without rows the series needs order=2"),
        ({"num_rows": -1}, "num_rows must be > 0"),
    ],
)
def test_bad_series_are_refused(settings: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Taylor(**settings)


@pytest.mark.parametrize("emulator", [GaussianProcess, Network])
def test_part_of_a_component_is_refused(emulator: type[Emulator]) -> None:
    with pytest.raises(InputError, match=r"num_components must be a whole number, got 2\.5"):
        unchecked(emulator, num_components=2.5)


def test_bad_networks_are_refused() -> None:
    with pytest.raises(InputError, match="Unknown target 'all'"):
        Network(target="all")


def test_one_draw_held_out_says_nothing_of_an_emulator() -> None:
    """Log likelihoods are known up to a constant, and one less its own mean is always right."""
    assert [num_held_out(count) for count in (2, 3, 4, 5, 9, 10, 20)] == [1, 1, 2, 2, 2, 2, 4]
    points = Points(*(np.ones((3, 2, *shape)) for shape in ((4,), (), ())))
    wrong = Emulated(lambda position, arrays: 1e6 * jnp.sum(position), {}, 1.0)
    one = Points(*(part[:, :1] for part in points))
    assert error_of(wrong, one) == (np.inf, np.inf)


@pytest.mark.slow
def test_draws_that_never_moved_say_nothing_good_of_an_emulator() -> None:
    posterior = regression()
    points, data = near(posterior, num_draws=20)
    with Driver() as driver:
        emulated = Taylor().fit(jax.random.key(0), points, posterior, data, driver)
    stuck = Points(*(np.repeat(part[:, :1], 5, axis=1) for part in points))
    assert error_of(emulated, stuck).nats == np.inf


def test_a_hopeless_emulator_is_refused_with_advice() -> None:
    with pytest.raises(HopelessEmulator, match=r"more than max_error=1e-06.*Use more"):
        small(max_error=1e-6, emulator=Taylor(num_rows=2, order=0))


def test_one_draw_in_the_time_there_was_is_too_few(monkeypatch: pytest.MonkeyPatch) -> None:
    first = lambda *args: calibration_draws(*args)[:, :1]  # noqa: E731
    monkeypatch.setattr("credence.methods.surrogate.ces.calibration_draws", first)
    with pytest.raises(OutOfTime, match="one draw of each chain"):
        small(calibration="sghmc", emulator=Taylor(num_rows=2, order=0), num_refinements=0)


@pytest.mark.parametrize(
    ("values", "message"),
    [(np.zeros((2, 9)), "is the same at all draws"), (np.full((2, 9), np.nan), "is not finite")],
)
def test_points_that_teach_nothing_are_refused(values: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        check_points(Points(np.zeros((2, 9, 3)), values, values))


@pytest.mark.rotates(3)
@pytest.mark.parametrize("num_rows", [6, 0])
def test_a_series_whose_hessian_is_cut_short_ends_earlier(
    num_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Time may end between two columns."""
    phase = Driver.phase

    def cut(self: Driver, name: str, *rest: Any) -> Any:
        found = phase(self, name, *rest)
        return replace(found, draws=found.draws[:, :2]) if name == "hessian" else found

    monkeypatch.setattr(Driver, "phase", cut)
    points, data = Points(*POINTS), PROBLEM.posterior.data
    emulator, key = Taylor(num_rows=num_rows, order=2), jax.random.key(0)
    with Driver() as driver:
        if num_rows == 0:
            with pytest.raises(OutOfTime, match="2 of 4 columns"):
                emulator.fit(key, points, PROBLEM.posterior, data, driver)
            return
        found = emulator.fit(key, points, PROBLEM.posterior, data, driver)
        first = Taylor(num_rows=num_rows, order=1)
        plain = first.fit(key, points, PROBLEM.posterior, data, driver)
    np.testing.assert_array_equal(
        *(emulate(each, points.positions) for each in (found, plain)),
    )
    assert found.flops == plain.flops


def test_too_few_draws_to_smooth_their_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refused where they are asked for; where time leaves no more, weights stay as they are."""
    with pytest.raises(InputError, match="at least 25 draws per chain, got num_draws=24"):
        CES(correction="psis", num_draws=24)
    settings = {"correction": "psis", "calibration": "sghmc", "num_refinements": 0}
    monkeypatch.setattr(true_likelihood, "MIN_DRAWS", 1000)
    with pytest.warns(UnreliableWeightsWarning, match="50 draws per chain, too few"):
        ensemble = small(emulator=Wrong(shift=0.1), **settings)
    assert np.isnan(ensemble.scalars["pareto_k"]).all()
    differences = ensemble.scalars["log_density"] - ensemble.scalars["log_surrogate"]
    exact = np.exp(differences - differences.max(axis=1, keepdims=True))
    exact /= 2 * exact.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(ensemble.weights, exact, rtol=1e-3)


@pytest.mark.parametrize("correction", ["none", "psis"])
def test_true_and_emulated_density_are_those_of_the_draws(correction: str) -> None:
    """A series of a linear network is its likelihood, and off by nothing, also where a draw is
    several steps apart from the last."""
    few = {"num_draws": 30, "num_warmup": 30, "thinning": 5, "num_refinements": 0}
    ensemble = small(correction=correction, calibration="sghmc", emulator=Taylor(num_rows=0), **few)
    found = emulation(ensemble.scalars)
    assert found is not None
    assert np.ptp(found.true) > 1
    assert found.error < 1e-3
    assert found.pareto_k is None or found.pareto_k <= 0.7


@pytest.mark.rotates(3)
def test_as_published_with_sghmc() -> None:
    ensemble = small(calibration="sghmc", sampler="sghmc", correction="none", num_refinements=0)
    assert "acceptance_rate" not in ensemble.scalars
    assert np.all(ensemble.scalars["is_finite"] == 1)
    found = emulation(ensemble.scalars)
    assert found is not None
    assert not found.is_exact
    assert found.pareto_k is not None
    assert found.true.shape == (2, 50)


def test_the_warm_up_of_sghmc_is_one_trajectory_of_hmc_a_draw(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """HMC has a step of its own number of gradients there, not as many steps as SGHMC has."""
    gradients, phase = {}, Driver.phase

    def noting(self: Driver, name: str, key: Any, plan: Any, *rest: Any) -> Any:
        found = phase(self, name, key, plan, *rest)
        evaluations = found.info.get("num_surrogate_evaluations", np.zeros(()))
        per_draw = float(evaluations.sum(dtype=float)) / (2 * plan.num_steps) - 1
        gradients[name] = per_draw / 3
        return found

    monkeypatch.setattr(Driver, "phase", noting)
    small(calibration="sghmc", sampler="sghmc", correction="none", num_refinements=0)
    assert gradients["sample"] == 50
    assert 1 <= gradients["warmup"] < 20  # a length of 1 by steps of .1 or more
