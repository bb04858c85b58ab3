"""Sequential Monte Carlo: evidence and posterior against closed forms, over independent runs."""

import re
import warnings
from dataclasses import asdict, dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp
from tools.exact import LinearRegression, linear_regression, weights
from tools.moments import chain_z, moment_z
from tools.particles import assert_same, resample_positions_only
from tools.stops import AfterBlocks, Stop

from credence.density.posterior import Posterior
from credence.engine.driver import Driver
from credence.ensembles.diagnostics.convergence import family_ess
from credence.ensembles.ensemble import Ensemble
from credence.errors import InputError, Interrupted
from credence.methods import METHODS
from credence.methods.smc import clouds, tempering
from credence.methods.smc.method import SMC, check_particles
from credence.methods.smc.mutation import Mutation, StuckParticlesWarning, check_mutation
from credence.models import MLP, Gaussian, HierarchicalGamma, Normal

pytestmark = pytest.mark.rotates(3)

PROBLEM = linear_regression()
SIZES = {"num_particles": 1000, "num_runs": 40}
SMALL = {"num_particles": 250, "num_runs": 20}
"""NUTS takes particles one after another on a CPU."""
METHODS_BY_NAME = {
    "hmc": SMC(**SIZES),
    "mala": SMC(**SIZES, mutation=Mutation(kernel="mala")),
    "mclmc": SMC(**SIZES, mutation=Mutation(kernel="mclmc")),
    "nuts": SMC(**SMALL, mutation=Mutation(kernel="nuts", num_steps=1)),
    "pcn": SMC(**SIZES, mutation=Mutation(kernel="pcn")),
    "pcn_cloud": SMC(**SIZES, mutation=Mutation(kernel="pcn_cloud", resampling="stratified")),
    "waste_free": SMC(**SIZES, chain_length=10, mutation=Mutation(num_steps=2)),
    "waste_free_tuned": SMC(**SIZES, chain_length=5, mutation=Mutation(resampling="residual")),
}
SLOW = ("mala", "mclmc", "nuts", "waste_free_tuned")


def evidence_z(ensemble: Ensemble, exact: float) -> float:
    """z of the evidence itself, which is unbiased where its logarithm is not."""
    ratio = np.exp(ensemble.scalars["log_evidence"] - exact)
    return float(chain_z(ratio, np.ones(())))


def worst_z(ensemble: Ensemble, problem: LinearRegression = PROBLEM) -> float:
    """Evidence, posterior means and covariances."""
    return max(evidence_z(ensemble, problem.log_evidence()), moment_z(weights(ensemble), problem))


@pytest.mark.usefixtures("float64")
def test_effective_sample_size_is_what_the_spread_of_the_runs_says() -> None:
    mutation = Mutation(kernel="pcn_cloud", num_steps=1, resampling="multinomial")
    method = SMC(num_particles=200, num_runs=200, chain_length=2, mutation=mutation)
    ensemble = method.run(0, PROBLEM.posterior)
    mean, covariance = PROBLEM.solve()
    draws, families = weights(ensemble), ensemble.families
    assert families is not None
    exact = 200 * np.diag(covariance) / np.mean((draws.mean(axis=1) - mean) ** 2, axis=0)
    assert np.all(np.abs(np.log(family_ess(draws, families) / exact)) < 4.5 * (2 / 200) ** 0.5)
    shuffled = np.random.default_rng(0).permuted(families, axis=1)  # planted: no kin together
    assert np.all(np.log(family_ess(draws, shuffled) / exact) > 4.5 * (2 / 200) ** 0.5)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name in SLOW else ())
        for name in METHODS_BY_NAME
    ],
)
@pytest.mark.usefixtures("float64")
def test_evidence_and_posterior_of_linear_regression(name: str) -> None:
    method = METHODS_BY_NAME[name]
    ensemble = method.run(1, PROBLEM.posterior)
    evidence = evidence_z(ensemble, PROBLEM.log_evidence())
    moments = moment_z(weights(ensemble), PROBLEM)
    wrong = PROBLEM._replace(noise_std=1.3 * PROBLEM.noise_std)
    planted = evidence_z(ensemble, wrong.log_evidence()), moment_z(weights(ensemble), wrong)
    print(f"{name}: z={evidence:.1f}, {moments:.1f}; planted z={planted[0]:.1f}, {planted[1]:.1f}")
    print(f"  {ensemble.scalars['num_temperatures'][0, 0]:.0f} temperatures, {ensemble}")
    assert evidence < 4.5
    assert moments < 4.5
    assert max(planted) > 8  # another noise
    assert (ensemble.num_chains, ensemble.num_draws) == (method.num_runs, method.num_particles)
    assert all(
        value.shape == (method.num_runs, method.num_particles)
        for value in ensemble.scalars.values()
    )
    assert ensemble.is_chain
    assert ensemble.weights is None


def planted_z(name: str, **settings: Any) -> float:
    """The worst z of a run with few steps, so that mutation does not mend what is wrong."""
    mutation = Mutation(num_steps=1, **settings)
    ensemble = SMC(**SIZES, mutation=mutation).run(1, PROBLEM.posterior)
    z = worst_z(ensemble)
    print(f"{name}: z={z:.1f}")
    return z


FEW_STEPS = {"kernel": "pcn_cloud", "ess_target": 0.3}


@pytest.mark.usefixtures("float64")
def test_few_steps_are_exact_too() -> None:
    """What the planted errors below are compared with."""
    assert planted_z("correct", **FEW_STEPS) < 4.5


@pytest.mark.sized
@pytest.mark.usefixtures("float64")
def test_planted_likelihoods_that_are_not_resampled_are_caught(monkeypatch, size_of: Any) -> None:
    resample_positions_only(monkeypatch)
    z = planted_z("likelihoods not resampled", **FEW_STEPS)
    size_of("not resampled", on="linear regression", of="results", standard_errors=z)
    assert z > 8


@pytest.mark.usefixtures("float64")
def test_planted_missing_resampling_is_caught(monkeypatch) -> None:
    def wrong(memory: Any, *, scheme: str, num: int) -> Any:
        position, *kept = (leaf[:, :num].reshape(-1, *leaf.shape[2:]) for leaf in memory.cloud)
        return tempering.ParticleState(position, *kept, position)

    monkeypatch.setattr(tempering, "resampled", wrong)
    assert planted_z("no resampling", **FEW_STEPS) > 8


@pytest.mark.usefixtures("float64")
def test_planted_mutation_at_another_temperature_is_caught(monkeypatch) -> None:
    settings = Mutation.settings

    def wrong(self: Mutation, tuning: Any, temperature: Any) -> Any:
        return settings(self, tuning, 0.8 * temperature)

    monkeypatch.setattr(Mutation, "settings", wrong)
    assert planted_z("wrong temperature", **FEW_STEPS) > 8


@dataclass(frozen=True)
class HalfLine:
    """y = w x, and no finite output for w above a bound."""

    bound: float
    beyond: float

    def init(self, key: Any, x: Any) -> Any:
        return jax.random.normal(key, (1,), x.dtype)

    def apply(self, params: Any, x: Any) -> Any:
        return jnp.where(params[0] < self.bound, params[0] * x[:, :1], self.beyond)

    def fan_in(self, params: Any) -> int:
        return 1


@pytest.mark.parametrize(("kernel", "beyond"), [("hmc", np.nan), ("pcn", np.inf)])
@pytest.mark.usefixtures("float64")
def test_impossible_particles(kernel: str, beyond: float) -> None:
    """Most of the prior is: the posterior is a Gaussian cut off, and nothing becomes NaN.

    More are impossible than `ess_target` allows to lose, so that the first step only drops them.
    """
    rng = np.random.default_rng(0)
    bound, std, x = -0.5, 0.8, rng.normal(size=6)
    y = 0.3 * x + std * rng.normal(size=6)
    posterior = Posterior(HalfLine(bound, beyond), Gaussian("unit"), Normal(std), (x[:, None], y))
    variance = 1 / (1 + np.sum(x**2) / std**2)
    mean = variance * np.sum(x * y) / std**2
    free = stats.multivariate_normal(cov=np.outer(x, x) + std**2 * np.eye(6)).logpdf(y)
    cut = (bound - mean) / variance**0.5
    exact = stats.truncnorm(-np.inf, cut, mean, variance**0.5)

    method = SMC(**SIZES, mutation=Mutation(kernel=kernel))
    ensemble = method.run(2, posterior)
    draws = np.asarray(ensemble.params.network)[..., 0]
    assert np.all(draws < bound)
    z = [
        evidence_z(ensemble, free + stats.norm.logcdf(cut)),
        float(chain_z(draws, exact.mean())),
        float(chain_z(draws**2, exact.moment(2))),
    ]
    print(f"{kernel}, {beyond} beyond: z={np.round(z, 1)}")
    assert max(z) < 4.5
    assert all(np.all(np.isfinite(value)) for value in ensemble.scalars.values())


@pytest.mark.usefixtures("float64")
def test_learnt_noise() -> None:
    """Evidence by quadrature over the logarithm of the noise."""
    posterior = Posterior(
        MLP(1, hidden=()), PROBLEM.prior, Normal(noise_std=None), (PROBLEM.x, PROBLEM.y)
    )
    ensemble = SMC(**SIZES).run(4, posterior)
    log_std = np.linspace(np.log(0.05), np.log(8.0), 2001)
    given = [PROBLEM._replace(noise_std=std).log_evidence() for std in np.exp(log_std)]

    def exact(scale: float) -> float:
        prior = stats.halfnorm.logpdf(np.exp(log_std), scale=scale) + log_std
        return float(logsumexp(prior + given) + np.log(log_std[1] - log_std[0]))

    z, planted = evidence_z(ensemble, exact(1.0)), evidence_z(ensemble, exact(0.3))
    print(f"learnt noise: z={z:.1f}, planted z={planted:.1f}")
    assert z < 4.5
    assert planted > 8


@pytest.mark.parametrize("chain_length", [1, 5])
def test_a_stopped_run_goes_on_bit_for_bit(chain_length: int, tmp_path: Any) -> None:
    """Wherever it stopped: after the first weighing, at a temperature, between two, at the end."""
    method = SMC(num_particles=50, num_runs=2, chain_length=chain_length)
    whole = method.run(5, PROBLEM.posterior)
    for num_blocks in (1, 1, 2):  # of six or more
        with pytest.raises(Stop):
            method.run(5, PROBLEM.posterior, folder=tmp_path, progress=AfterBlocks(num_blocks))
    again = method.run(5, PROBLEM.posterior, folder=tmp_path)
    assert_same(again, whole)
    assert_same(method.run(5, PROBLEM.posterior, folder=tmp_path), whole)  # all read


def test_a_run_stopped_after_every_block_goes_on_bit_for_bit(tmp_path: Any) -> None:
    """The run is in single precision, and its steps are tuned at every look."""
    mutation = Mutation(kernel="mala", autocorrelation=0.05, max_steps=20)
    method = SMC(num_particles=20, num_runs=2, mutation=mutation)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StuckParticlesWarning)
        whole = method.run(5, PROBLEM.posterior)
        for _ in range(10):
            with pytest.raises(Stop):
                method.run(5, PROBLEM.posterior, folder=tmp_path, progress=AfterBlocks(1))
        assert_same(method.run(5, PROBLEM.posterior, folder=tmp_path), whole)


def test_of_the_looks_at_moving_particles_the_last_is_kept() -> None:
    """Those of all looks might not fit in memory."""
    mutation = Mutation(kernel="mala", autocorrelation=0.05, max_steps=20)
    method = SMC(num_particles=20, num_runs=2, mutation=mutation)
    with Driver() as driver, warnings.catch_warnings():
        warnings.simplefilter("ignore", StuckParticlesWarning)
        drawn = method._run(jax.random.key(5), PROBLEM.posterior, driver)
    phase = driver.results["sample"]
    assert phase.num_steps > 1 > phase.draws.shape[1]
    np.testing.assert_array_equal(drawn.positions.reshape(40, -1), phase.positions)


def test_a_run_out_of_time_goes_on_with_more(tmp_path: Any) -> None:
    method = SMC(num_particles=50, num_runs=2)
    whole = method.run(5, PROBLEM.posterior)
    with pytest.raises(Interrupted, match="resume with more seconds"):
        method.run(5, PROBLEM.posterior, folder=tmp_path, max_seconds=1e-6)
    again = method.run(5, PROBLEM.posterior, folder=tmp_path, max_seconds=1000.0)
    assert_same(again, whole)
    assert again.provenance.stopped == "finished"


def test_a_run_out_of_time_says_how_far_it_came() -> None:
    with pytest.raises(Interrupted, match=r"Time ran out in phase 'temper' at temperature 0\.\d+"):
        SMC(num_particles=50, num_runs=2).run(5, PROBLEM.posterior, max_seconds=1e-6)


@pytest.mark.rotates(3)
def test_every_scheme_of_resampling_runs_in_single_precision() -> None:
    """The prior here is one that is not Gaussian."""
    posterior = Posterior(
        MLP(1, hidden=(3,)), HierarchicalGamma(), Normal(), (PROBLEM.x, PROBLEM.y)
    )
    for resampling in ("systematic", "stratified", "multinomial", "residual"):
        mutation = Mutation(kernel="pcn_cloud", num_steps=3, resampling=resampling)
        ensemble = SMC(num_particles=60, num_runs=2, mutation=mutation).run(0, posterior)
        assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(ensemble.params))
        assert np.all(np.isfinite(ensemble.scalars["log_evidence"]))


def test_a_mutation_that_moved_nothing_goes_on_with_smaller_steps() -> None:
    """It goes on until its steps are used up: no distance is no plateau of distances."""
    mutation = Mutation(kernel="pcn", max_steps=20)
    tuning = mutation.first(np.zeros(3), np.ones(3))
    refused = {"acceptance_rate": jnp.zeros(4), "distance": jnp.zeros(4)}
    for _ in range(3):
        smaller = mutation.after(tuning, refused)
        assert smaller.log_step_size < tuning.log_step_size
        assert not mutation.is_done(smaller)
        tuning = smaller
    last = mutation.after(tuning, refused)
    assert mutation.is_done(last)
    assert mutation.is_stuck(last)


@pytest.mark.parametrize(
    ("num_steps", "distance", "is_stuck"),
    [(None, 0.5, True), (None, 1.2, False), (3, 0.001, True), (3, 0.5, False)],
)
def test_particles_are_stuck_where_they_remember(
    num_steps: int | None, distance: float, is_stuck: bool
) -> None:
    """Correlated by more than one half when their steps are used up; by 0.99 after given steps."""
    mutation = Mutation(max_steps=5) if num_steps is None else Mutation(num_steps=num_steps)
    moved = {"acceptance_rate": jnp.full(4, 0.8), "distance": jnp.full(4, distance)}
    tuning = mutation.after(mutation.first(np.zeros(3), np.ones(3)), moved)
    assert mutation.is_done(tuning)
    assert mutation.is_stuck(tuning) == is_stuck


def test_a_look_with_steps_that_were_too_large_does_not_count() -> None:
    """Particles that moved far in the mean, while hardly a proposal was accepted, go on."""
    mutation = Mutation(max_steps=20)
    first = mutation.first(np.zeros(3), np.ones(3))
    far = {"distance": jnp.full(4, 1.5)}
    wasted = mutation.after(first, {"acceptance_rate": jnp.full(4, 0.1), **far})
    assert not mutation.is_done(wasted)
    good = mutation.after(wasted, {"acceptance_rate": jnp.full(4, 0.6), **far})
    assert mutation.is_done(good)
    for _ in range(3):
        wasted = mutation.after(wasted, {"acceptance_rate": jnp.full(4, 0.1), **far})
    assert mutation.is_done(wasted), "out of steps"
    assert mutation.is_stuck(wasted)
    assert not mutation.is_stuck(good)


def change(before: float, std: list[float], start: float = 0.0, **settings: Any) -> float:
    """The factor of the step size at four times the temperature, of a cloud that had standard
    deviations 1."""
    tuning = Mutation().first(np.zeros(2), np.ones(2))
    log_end = jnp.asarray([[0.0, -1.0, -2.0]])
    cloud = clouds.Cloud(jnp.zeros((1, 3, 2)), start * log_end, log_end)
    memory = clouds.Memory(
        *[jnp.zeros(())] * 2,
        jnp.asarray(before),
        cloud,
        *[jnp.zeros(())] * 4,
        tuning,
        jnp.zeros(()),
    )
    settings = {"steps_in_stds": True} | settings
    found = clouds.log_step_change(memory, jnp.asarray(0.4), jnp.asarray(std), **settings)
    return float(np.exp(found))


def test_steps_fall_as_a_stiff_direction_narrows() -> None:
    """A likelihood of one of two weights, at four times the temperature: its direction is half as
    wide, and the unit of the steps is the root of one half."""
    assert change(0.1, [0.5, 1.0]) * 0.5**0.5 == pytest.approx(0.5)
    assert change(0.1, [0.5, 0.5]) == pytest.approx(1), "its unit is half as large already"
    assert change(0.1, [0.1, 0.1]) == pytest.approx(1), "steps do not grow unseen"
    assert change(0.1, [0.5, 0.5], steps_in_stds=False) == pytest.approx(0.5)
    assert change(0.0, [30.0, 30.0]) == 1, "no step has been tried"
    assert change(4e-18, [1.0, 1.0]) == 1, "most particles were impossible"
    assert change(0.1, [1.0, 1.0], start=0.5) == 1, "from one likelihood to another"


def test_the_first_steps_of_a_wide_prior_are_no_smaller() -> None:
    """Standard deviations of no particle yet are no unit that a step was tried in."""
    x = np.random.default_rng(0).normal(size=(40, 2)).astype(np.float32)
    wide, y = Gaussian("unit", 300.0, 300.0), 100 * x.sum(axis=1)
    posterior = Posterior(MLP(1, ()), wide, Normal(30.0), (x, y))
    distances = []

    class Watched(Mutation):
        def after(self, tuning: Any, info: Any) -> Any:
            distances.append(float(np.mean(np.asarray(info["distance"]))))
            return super().after(tuning, info)

    SMC(num_particles=50, num_runs=2, mutation=Watched(num_steps=5)).run(0, posterior)
    assert distances[0] > 0.5, "planted: as if the placeholder were their unit: .04"


def test_what_particles_did_before_does_not_count() -> None:
    mutation = Mutation()
    far = {"acceptance_rate": jnp.full(4, 0.8), "distance": jnp.full(4, 1.2)}
    near = far | {"distance": jnp.full(4, 0.02)}
    done = mutation.after(mutation.first(np.zeros(3), np.ones(3)), far)
    assert mutation.is_done(mutation.after(done, near)), "planted: a plateau of another temperature"
    assert not mutation.is_done(mutation.after(done.afresh(), near))


def rates_of_first_looks(method: type[Mutation]) -> np.ndarray:
    """Acceptance at every new temperature, of a posterior that is far narrower than its prior in
    some directions and not in others."""
    rates = []

    class Watched(method):
        def after(self, tuning: Any, info: Any) -> Any:
            if int(tuning.steps_taken) == 0:
                rates.append(float(np.mean(np.asarray(info["acceptance_rate"]))))
            return super().after(tuning, info)

    x = np.random.default_rng(0).normal(size=(30, 1)).astype(np.float32)
    posterior = Posterior(MLP(1, (3,)), Gaussian("unit"), Normal(0.03), (x, np.sin(2 * x)))
    SMC(num_particles=50, num_runs=2, mutation=Watched()).run(0, posterior)
    return np.array(rates)


class Unforeseen(Mutation):
    """Planted: a new temperature is begun with the steps of the one before."""

    def is_done(self, tuning: Any) -> bool:
        self.__dict__["kept"] = tuning.log_step_size
        return super().is_done(tuning)

    def settings(self, tuning: Any, temperature: Any) -> Any:
        is_new = int(tuning.steps_taken) == 0 and "kept" in self.__dict__
        kept = tuning._replace(log_step_size=self.__dict__["kept"]) if is_new else tuning
        return super().settings(kept, temperature)


def test_first_steps_at_a_temperature_are_accepted() -> None:
    rates, planted = rates_of_first_looks(Mutation), rates_of_first_looks(Unforeseen)
    print(np.round(rates, 2), np.round(planted, 2))
    assert len(rates) > 6
    assert rates[1:].mean() > 0.65 > 0.5 > planted[1:].mean()
    assert rates.min() > 0.3 > planted.min()


def test_a_part_of_a_particle_is_refused() -> None:
    with pytest.raises(InputError, match=r"whole number of at least 2 particles, got 60\.5"):
        check_particles(60.5)


def test_stuck_particles_are_told_of() -> None:
    mutation = Mutation(kernel="mala", max_steps=1, autocorrelation=0.3)
    method = SMC(num_particles=20, num_runs=2, mutation=mutation)
    with pytest.warns(StuckParticlesWarning) as told:
        method.run(0, PROBLEM.posterior)
    while_tempering, at_the_end = (str(warning.message) for warning in told)
    assert re.match(r"In phase 'temper' the particles stopped .* \d+ of \d+ temp", while_tempering)
    assert "In phase 'sample'" in at_the_end
    assert "at 1 of 1 temperature:" in at_the_end


def settings(**changes: Any) -> Any:
    return lambda: SMC(mutation=Mutation(**changes))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: SMC(num_particles=1), "at least 2 particles, got 1"),
        (lambda: SMC(num_particles=0), "at least 2 particles, got 0"),
        (lambda: SMC(num_runs=0), "num_runs must be > 0, got 0"),
        (lambda: SMC(chain_length=0), "chain_length must be > 0, got 0"),
        (lambda: SMC(num_particles=10, chain_length=3), "multiple of chain_length"),
        (lambda: SMC(num_particles=10, chain_length=10), "at least twice as large, got 10 and 10"),
        (settings(ess_target=0), "ess_target must be strictly between 0 and 1, got 0"),
        (settings(ess_target=1), "ess_target must be strictly between 0 and 1, got 1"),
        (settings(ess_target=np.nan), "ess_target must be strictly between 0 and 1, got nan"),
        (
            settings(autocorrelation=1.0),
            "autocorrelation must be strictly between 0 and 1, got 1.0",
        ),
        (
            settings(target_acceptance_rate=0.0),
            "target_acceptance_rate must be strictly between 0 and 1",
        ),
        (settings(kernel="gibbs"), "Unknown mutation kernel 'gibbs': choose one of hmc, mala"),
        (settings(resampling="none"), "Unknown resampling 'none': choose one of systematic"),
        (settings(num_steps=0), "num_steps must be > 0, got 0"),
        (settings(max_steps=0), "max_steps must be > 0, got 0"),
        (settings(trajectory_length=0.0), "trajectory_length must be > 0, got 0"),
    ],
)
def test_bad_settings_are_a_sentence(make: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        make()


@pytest.mark.optimized  # rounding decides how far such particles come
@pytest.mark.rotates(3)
def test_weights_that_only_one_particle_has_are_a_sentence() -> None:
    """The weights of every affordable temperature have an ESS of 1 at noise 1e-6."""
    posterior = Posterior(MLP(1, hidden=()), PROBLEM.prior, Normal(1e-6), (PROBLEM.x, PROBLEM.y))
    method = SMC(num_particles=4, num_runs=2, mutation=Mutation(num_steps=1))
    with pytest.raises(InputError, match="The particles cannot follow: 501 temperatures"):
        method.run(0, posterior)


def test_data_no_particle_explains_are_a_sentence() -> None:
    """Squares of residuals over the noise overflow single precision: the likelihood is zero."""
    posterior = Posterior(MLP(1, hidden=()), PROBLEM.prior, Normal(1e-25), (PROBLEM.x, PROBLEM.y))
    with pytest.raises(InputError, match="likelihood is zero or not a number at every particle"):
        SMC(num_particles=20).run(0, posterior)


def test_the_name_of_a_kernel_is_no_mutation() -> None:
    with pytest.raises(InputError, match=r"such as Mutation\(kernel='hmc'\), got 'hmc'"):
        check_mutation("hmc")


def test_pcn_needs_a_gaussian_prior() -> None:
    posterior = Posterior(MLP(1, hidden=()), HierarchicalGamma(), Normal(), (PROBLEM.x, PROBLEM.y))
    with pytest.raises(InputError, match="needs a Gaussian prior"):
        SMC(mutation=Mutation(kernel="pcn")).run(0, posterior)


def test_registered_with_settings_that_can_be_read_back() -> None:
    assert METHODS["smc"] is SMC
    method = SMC(num_particles=30, mutation=Mutation(kernel="mala", ess_target=0.7))
    assert SMC.from_settings(asdict(method)) == method
