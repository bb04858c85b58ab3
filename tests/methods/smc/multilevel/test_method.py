"""Multilevel sequential Monte Carlo: every level's expectation and the evidence, in closed form.

The closed form is that of a network linear in its weights: cosine features, so many at each level,
under a prior whose standard deviations fall with the feature's number.
"""

import dataclasses
import json
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from tools.moments import chain_z
from tools.nested_features import NOISE_STD, NUM_FEATURES, X_NEW, Features, X, Y, exact, posterior
from tools.particles import assert_same, resample_positions_only
from tools.stops import AfterBlocks, Stop

from credence.density.posterior import Posterior
from credence.engine.progress import NoProgress
from credence.ensembles.ensemble import Ensemble
from credence.errors import InputError, OutOfTime
from credence.methods import METHODS
from credence.methods.smc import tempering
from credence.methods.smc.clouds import Cloud, share_at_end
from credence.methods.smc.multilevel import coupling as coupling_module
from credence.methods.smc.multilevel import method as method_module
from credence.methods.smc.multilevel import nested, proposal
from credence.methods.smc.multilevel.levels import to_level
from credence.methods.smc.multilevel.method import MLSMC
from credence.methods.smc.mutation import Mutation, StuckParticlesWarning
from credence.methods.smc.tempering import Tempering
from credence.models import (
    MLP,
    Categorical,
    Gaussian,
    HierarchicalGamma,
    Normal,
    ResNet,
    TraceClass,
)

pytestmark = pytest.mark.rotates(3)


@dataclass(frozen=True)
class Mute(Features):
    """No data tell anything about its weights."""

    def apply(self, params: Any, x: Any) -> Any:
        return jnp.zeros((len(x), 1), params.dtype)


def method(num_features: tuple[int, ...] = NUM_FEATURES, **settings: Any) -> MLSMC:
    return MLSMC(coarse=tuple(map(Features, num_features[:-1])), **settings)


SURROGATE = method(
    num_particles=(4000, 1000, 500, 250),
    num_runs=40,
    mutation=Mutation(kernel="pcn", resampling="multinomial"),
)


def estimates(ensemble: Ensemble, weights: np.ndarray | None = None) -> dict[str, np.ndarray]:
    """Every run's error of each level's expectation and of each increment's (run, point), and its
    evidence over the exact one.

    Members up to an increment estimate that level's expectation.
    """
    weights = np.asarray(ensemble.weights) if weights is None else weights
    functions = ensemble.functions(X_NEW)[..., 0]
    term = ensemble.scalars["increment"]
    found, before = {}, np.zeros(len(X_NEW))
    for level, num_features in enumerate(NUM_FEATURES):
        mean = exact(num_features)[0]
        counted = ("level", term <= level, mean), ("increment", term == level, mean - before)
        for name, counts, expected in counted:
            counting = ensemble.num_chains * weights * counts
            sums = np.einsum("rm,rmp->rp", counting, functions)
            found[f"{name} {num_features}"] = sums - expected
        before = mean
    log_ratio = ensemble.scalars["log_evidence"][:, :1] - exact(NUM_FEATURES[-1])[1]
    return found | {"evidence": np.exp(log_ratio) - 1}


def z_scores(*found: dict[str, np.ndarray]) -> dict[str, float]:
    """Worst |z| of each quantity over independent runs, of one ensemble or several."""
    joined = {name: np.concatenate([part[name] for part in found]) for name in found[0]}
    return {
        name: float(np.max(chain_z(values[:, None], np.zeros(values.shape[1]))))
        for name, values in joined.items()
    }


def show(name: str, scores: dict[str, float]) -> None:
    print(f"{name}:", ", ".join(f"{key} {z:.1f}" for key, z in scores.items()))


@lru_cache
def surrogate() -> Ensemble:
    """Levels 2 to 5 with 2^level features, in double precision."""
    return SURROGATE.run(1, posterior())


INDEPENDENT = replace(SURROGATE, coupling="independent")
TEMPERED = replace(SURROGATE, direct_ess=0.99)
TRIES = replace(SURROGATE, num_tries=5, direct_ess=0.05)


@pytest.mark.parametrize(
    "method",
    [SURROGATE, TEMPERED, TRIES, pytest.param(INDEPENDENT, marks=pytest.mark.slow)],
    ids=("weighed", "tempered", "tries", "independent"),
)
@pytest.mark.usefixtures("float64")
def test_every_level_and_the_evidence(method: MLSMC) -> None:
    ensemble = surrogate() if method is SURROGATE else method.run(1, posterior())
    scores = z_scores(estimates(ensemble))
    show(method.coupling, scores)
    print(ensemble, ensemble.cost.seconds)
    assert max(scores.values()) < 4.5
    assert not ensemble.is_chain
    assert np.all(np.isfinite(ensemble.weights))
    np.testing.assert_allclose(ensemble.weights.sum(axis=1), 1 / SURROGATE.num_runs)
    assert np.any(ensemble.weights < 0)
    first, *others = SURROGATE.num_particles
    if method is SURROGATE:
        assert ensemble.num_draws == first + 2 * sum(others), "weights alone lead to every level"
    if method is TRIES:
        assert ensemble.num_draws == first + 6 * sum(others)
    if method is TEMPERED:
        assert ensemble.num_draws > first + 2 * sum(others)


@pytest.mark.usefixtures("float64")
def test_a_level_is_reached_at_once_where_particles_are_left_by_the_means_of_their_tries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Most tries of every particle are far off, and one in so many is enough."""
    few = method(
        (8, 32),
        num_particles=(200, 100),
        num_runs=4,
        num_tries=16,
        direct_ess=0.35,
        mutation=Mutation(kernel="pcn", num_steps=5),
    )
    right, shares = coupling_module.share_at_end, []

    def share(cloud: Cloud, *, num_tries: int) -> Any:
        shares.append(right(cloud, num_tries=num_tries))
        return shares[-1]

    def judge_each_try(cloud: Cloud, *, num_tries: int) -> Any:
        return share(cloud, num_tries=1)

    monkeypatch.setattr(coupling_module, "share_at_end", share)
    found = few.run(1, posterior())
    monkeypatch.setattr(coupling_module, "share_at_end", judge_each_try)
    planted = few.run(1, posterior())
    print(shares)
    assert shares[0] > few.direct_ess > shares[1]  # .54 and .14 of exact particles
    assert found.num_draws == 200 + 17 * 100
    assert planted.num_draws > 200 + 2 * 100
    temperatures = (each.scalars["num_temperatures"][0, -1] for each in (found, planted))
    assert next(temperatures) == 1 < next(temperatures)


def test_tries_are_judged_by_their_mean() -> None:
    """One of two particles has weights 1 and 3, and a try of the other is impossible."""
    log_end = jnp.log(jnp.asarray([[1.0, 3.0, 0.0, 4.0]]))
    cloud = Cloud(jnp.zeros((1, 4, 1)), jnp.zeros((1, 4)), log_end)
    assert share_at_end(cloud, num_tries=2) == pytest.approx(1)
    assert share_at_end(cloud, num_tries=1) == pytest.approx(64 / 26 / 4)


class Parts:
    """The places of an increment's members in the ensemble."""

    def __init__(self, ensemble: Ensemble, increment: int, count: int) -> None:
        level, term = (np.asarray(ensemble.scalars[name])[0] for name in ("level", "increment"))
        self.fine = np.flatnonzero((term == increment) & (level == increment))
        self.first = self.fine[:count]
        """Weighed first; the others are weighed at the temperatures that followed."""
        self.coarse = np.flatnonzero((term == increment) & (level == increment - 1))


def weights_on_both_terms(weights: np.ndarray, part: Parts) -> None:
    weights[:, part.coarse] = -weights[:, part.first]
    weights[:, part.fine[len(part.first) :]] = 0.0


def equal_weights(weights: np.ndarray, part: Parts) -> None:
    weights[:, part.fine] = 0.0
    weights[:, part.first] = -weights[:, part.coarse]


def no_fine_term(weights: np.ndarray, part: Parts) -> None:
    weights[:, part.fine] = 0.0


def no_coarse_term(weights: np.ndarray, part: Parts) -> None:
    weights[:, part.coarse] = 0.0


def no_increment(weights: np.ndarray, part: Parts) -> None:
    weights[:, [*part.fine, *part.coarse]] = 0.0


WRONG_SUMS = [
    weights_on_both_terms,
    equal_weights,
    no_fine_term,
    no_coarse_term,
    no_increment,
]


def planted(ensemble: Ensemble, plant: Callable[..., None], counts: tuple[int, ...]) -> Any:
    """Estimates with the weights of the first increment wrong, or of all where one is too small."""
    weights = np.array(ensemble.weights)
    for increment in (1,) if plant is no_increment else (1, 2, 3):
        plant(weights, Parts(ensemble, increment, counts[increment]))
    found = estimates(ensemble, weights)
    return {name: values for name, values in found.items() if np.any(np.ptp(values, axis=0) > 0)}


@pytest.mark.parametrize("plant", WRONG_SUMS)
@pytest.mark.usefixtures("float64")
def test_planted_wrong_sums_are_caught(plant: Callable[..., None]) -> None:
    scores = z_scores(planted(surrogate(), plant, SURROGATE.num_particles))
    show(plant.__name__, scores)
    assert max(scores.values()) > 8


@pytest.mark.slow
@pytest.mark.usefixtures("float64")
def test_full_size() -> None:
    """200 runs, 20 at a time."""
    full = replace(SURROGATE, num_particles=(16_000, 4000, 2000, 1000), num_runs=20)
    found: dict[str, list[Any]] = {name: [] for name in ("correct", *map(_name, WRONG_SUMS))}
    for seed in range(10):
        ensemble = full.run(100 + seed, posterior())
        found["correct"].append(estimates(ensemble))
        for plant in WRONG_SUMS:
            found[_name(plant)].append(planted(ensemble, plant, full.num_particles))
    scores = {name: z_scores(*parts) for name, parts in found.items()}
    for name, z in scores.items():
        show(name, z)
    ratio = 1 + np.concatenate([part["evidence"] for part in found["correct"]])
    print(f"evidence ratio {ratio.mean():.4f} +- {ratio.std(ddof=1) / len(ratio) ** 0.5:.4f}")
    assert max(scores.pop("correct").values()) < 4.5
    assert all(max(z.values()) > 8 for z in scores.values())


def _name(function: Callable[..., Any]) -> str:
    return function.__name__


def weigh_by_the_fine_likelihood(monkeypatch: pytest.MonkeyPatch) -> None:
    """G = L_l in place of the ratio."""
    weighed, step_weights = tempering.weighed, coupling_module.step_weights

    def without_start(cloud: Any) -> Any:
        return cloud._replace(log_start=0 * cloud.log_start)

    def wrong(memory: Any, **settings: Any) -> Any:
        found = weighed(memory._replace(cloud=without_start(memory.cloud)), **settings)
        return found._replace(cloud=memory.cloud)

    monkeypatch.setattr(tempering, "weighed", wrong)
    monkeypatch.setattr(
        coupling_module, "step_weights", lambda c, step: step_weights(without_start(c), step)
    )


def widen_the_new_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice the standard deviation of the entries that a level adds."""
    prior_draws = proposal.prior_draws
    monkeypatch.setattr(
        proposal, "prior_draws", lambda *args, **named: 2 * prior_draws(*args, **named)
    )


def mutate_at_the_level_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutate not at the level that the particles know, but at the one below it.

    Below the first is the prior.
    """
    move = Tempering.move

    def wrong(self: Any, name: str, key: Any, driver: Any, bridge: Any, memory: Any, *rest: Any):
        below = memory._replace(temperature=0 * memory.temperature)
        return move(self, name, key, driver, bridge, below, *rest)

    def at_level(self: Any, level: int) -> Any:
        return self._between(to_level, level) if level else posterior_of(self, level)

    posterior_of = coupling_module.CoupledLevels._posterior
    monkeypatch.setattr(coupling_module.CoupledLevels, "_posterior", at_level)
    monkeypatch.setattr(coupling_module, "without_start", lambda memory: memory)
    monkeypatch.setattr(Tempering, "move", wrong)


@pytest.mark.parametrize(
    "plant",
    [
        pytest.param(weigh_by_the_fine_likelihood, marks=pytest.mark.slow),
        pytest.param(widen_the_new_weights, marks=pytest.mark.slow),
        resample_positions_only,
        mutate_at_the_level_before,
    ],
)
@pytest.mark.usefixtures("float64")
def test_planted_wrong_steps_are_caught(
    plant: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    scores = z_scores(estimates(TEMPERED.run(1, posterior())))
    show(plant.__name__, scores)
    assert max(scores.values()) > 8


stuck_on_purpose = pytest.mark.filterwarnings(
    f"ignore::{StuckParticlesWarning.__module__}.{StuckParticlesWarning.__name__}"
)


def without_mutation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Particles stay where they are."""
    settings = Mutation.settings

    def still(self: Mutation, tuning: Any, temperature: Any) -> Any:
        return {**settings(self, tuning, temperature), "num_steps": np.zeros((), np.int32)}

    monkeypatch.setattr(Mutation, "settings", still)


def log_likelihood(outputs: np.ndarray) -> np.ndarray:
    """Log likelihood of outputs (..., point)."""
    return stats.norm.logpdf(Y, outputs, NOISE_STD).sum(axis=-1)


def normalised(log_weights: np.ndarray) -> np.ndarray:
    weights = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


@pytest.mark.rotates(3)
@stuck_on_purpose
@pytest.mark.usefixtures("float64")
def test_without_mutation_two_levels_are_importance_sampling(monkeypatch) -> None:
    """Equation (5.6) of the paper: both cloud and increment from the same equally weighted
    particles, which is so where the coarse network tells them nothing."""
    without_mutation(monkeypatch)
    two = MLSMC(
        coarse=(Mute(4),),
        num_particles=(300, 300),
        num_runs=3,
        mutation=Mutation(num_steps=1, ess_target=1e-9),
    )
    ensemble = two.run(2, posterior(8))
    functions = ensemble.functions(X_NEW)[..., 0]
    found = 3 * np.einsum("rm,rmp->rp", ensemble.weights, functions)
    fine = np.asarray(ensemble.scalars["level"])[0] == 1
    log_weights = log_likelihood(ensemble.functions(X)[..., 0][:, fine])
    weights = normalised(log_weights)
    expected = np.einsum("rm,rmp->rp", weights, functions[:, fine])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    evidence = np.log(np.mean(np.exp(log_weights + 60), axis=1)) - 60
    np.testing.assert_allclose(ensemble.scalars["log_evidence"][:, 0], evidence, rtol=1e-12)


@pytest.mark.rotates(3)
@stuck_on_purpose
@pytest.mark.usefixtures("float64")
def test_without_mutation_every_term_is_as_written(monkeypatch) -> None:
    """Equation (3.5) by hand: prior draws resampled by L_1, copies of them weighed by L_2 / L_1."""
    without_mutation(monkeypatch)
    weighed: list[Cloud] = []
    weigh = Tempering.weigh
    monkeypatch.setattr(
        Tempering, "weigh", lambda *args: weighed.append(weigh(*args)) or weighed[-1]
    )
    two = method(
        (4, 8),
        num_particles=(300, 100),
        num_runs=3,
        mutation=Mutation(num_steps=1, ess_target=1e-9),
    )
    ensemble = two.run(2, posterior(8))
    weights = 3 * np.asarray(ensemble.weights)
    base, fine, coarse = np.split(np.arange(500), [300, 400])
    positions = np.asarray(ensemble.params.network)
    assert np.all(positions[:, base, 4:] == 0)
    np.testing.assert_array_equal(positions[:, fine, :4], positions[:, coarse, :4])
    assert np.all(positions[:, coarse, 4:] == 0)
    assert np.all(np.isin(positions[0, coarse, 0], positions[0, base, 0]))

    outputs = ensemble.functions(X)[..., 0]
    draws = weighed[0].position
    first = log_likelihood(draws @ np.asarray(Features(4).basis(X)).T)
    expected = 300 * normalised(first)
    copies = (positions[:, None, base, 0] == draws[..., :1]).sum(axis=2)
    assert np.all(copies.sum(axis=1) == 300)
    assert np.all((copies >= np.floor(expected)) & (copies <= np.ceil(expected)))  # systematic
    ratio = log_likelihood(outputs[:, fine]) - log_likelihood(outputs[:, coarse])
    np.testing.assert_allclose(weights[:, base], 1 / 300, rtol=1e-12)
    np.testing.assert_allclose(weights[:, fine], normalised(ratio), rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(weights[:, coarse], -1 / 100, rtol=1e-12)
    evidence = np.log(np.mean(np.exp(first + 60), axis=1)) - 60
    evidence += np.log(np.mean(np.exp(ratio), axis=1))
    np.testing.assert_allclose(ensemble.scalars["log_evidence"][:, 0], evidence, rtol=1e-12)


@dataclass(frozen=True)
class Louder(Normal):
    """Every log likelihood larger by a constant."""

    def log_prob(self, params: Any, outputs: Any, y: Any) -> Any:
        return super().log_prob(params, outputs, y) + 10.0


@pytest.mark.slow
@pytest.mark.usefixtures("float64")
def test_a_constant_in_the_log_likelihood_changes_only_the_evidence() -> None:
    short = method((4, 8), num_particles=(100, 60), num_runs=2, mutation=Mutation(kernel="pcn"))
    ensemble, louder = (
        short.run(3, posterior(8, likelihood))
        for likelihood in (Normal(NOISE_STD), Louder(NOISE_STD))
    )
    np.testing.assert_allclose(louder.params.network, ensemble.params.network, rtol=1e-10)
    np.testing.assert_allclose(louder.weights, ensemble.weights, rtol=1e-8, atol=1e-14)
    difference = louder.scalars["log_evidence"] - ensemble.scalars["log_evidence"]
    np.testing.assert_allclose(difference, 10.0 * len(X), rtol=1e-10)


CURVE = np.linspace(-2, 2, 24)[:, None]
WIDTHS = ((4,), (8,), (16,))
SHORT: dict[str, Any] = {
    "widths": WIDTHS,
    "num_particles": (60, 40, 30),
    "num_runs": 3,
    "mutation": Mutation(num_steps=3),
}


class Told(NoProgress):
    """Keeps what a run says."""

    def __init__(self) -> None:
        self.sentences: list[str] = []

    def say(self, message: str) -> None:
        self.sentences.append(message)


def curve(width: int = 16) -> Posterior:
    """A posterior of a curve whose noise is unknown."""
    y = np.tanh(2 * CURVE) + 0.2 * np.random.default_rng(0).normal(size=CURVE.shape)
    return Posterior(MLP(1, hidden=(width,)), TraceClass(2.0), Normal(), (CURVE, y))


def three_classes() -> Posterior:
    y = np.digitize(CURVE[:, 0], [-0.7, 0.7])
    return Posterior(MLP(3, hidden=(16,)), TraceClass(2.0), Categorical(), (CURVE, y))


@lru_cache
def short(problem: Callable[[], Posterior]) -> Ensemble:
    return MLSMC(**SHORT).run(0, problem())


problems = pytest.mark.parametrize("problem", [curve, three_classes])


@pytest.mark.parametrize(
    ("coupling", "num_particles"),
    [
        pytest.param("sequential", (62, 42, 32), marks=pytest.mark.slow),
        ("independent", (64, 44, 34)),
    ],
)
def test_programs_compiled_ahead_are_those_that_run(coupling: Any, num_particles: Any) -> None:
    """Two at the base, weighing and tempering; three at every level. Levels count together."""
    method = MLSMC(**SHORT | {"coupling": coupling, "num_particles": num_particles})
    compiled = []

    def note(event: str, _: float, **about: Any) -> None:
        if event.endswith("backend_compile_duration") and about["fun_name"] == "jit(run_block)":
            compiled.append(threading.current_thread())

    jax.monitoring.register_event_duration_secs_listener(note)
    seconds = method.run(0, curve()).cost.seconds
    assert len(compiled) == 2 + 3 + 3
    ahead = [thread for thread in compiled if thread is not threading.main_thread()]
    assert len(ahead) == {"sequential": 2 + 2, "independent": 1 + 1}[coupling]
    step = {"sequential": "mutate", "independent": "reweigh"}[coupling]
    assert set(seconds) == {"weigh", "temper", "sample", step, "compile", "other"}


@problems
def test_members_are_the_coarse_networks_embedded_in_the_finest(problem: Any) -> None:
    ensemble = short(problem)
    level = np.asarray(ensemble.scalars["level"])
    assert ensemble.num_chains == 3
    assert set(np.unique(level)) == {0, 1, 2}
    assert np.all(level == level[0])
    outputs = np.asarray(ensemble.outputs(CURVE)).reshape(3, ensemble.num_draws, len(CURVE), -1)
    fine = ensemble.model.network
    for number, hidden in enumerate(WIDTHS):
        coarse = nested.narrowed(fine, hidden)
        template = jax.eval_shape(coarse.init, jax.random.key(0), jnp.asarray(CURVE))
        for draw in np.flatnonzero(level[0] == number)[::17]:
            params = jax.tree.map(lambda leaf: jnp.asarray(leaf[1, draw]), ensemble.params.network)  # noqa: B023
            small = coarse.apply(nested.leading(params, template), jnp.asarray(CURVE))
            np.testing.assert_allclose(outputs[1, draw], small, rtol=1e-4, atol=1e-5)
    kernel = np.asarray(ensemble.params.network[-1].kernel)
    assert np.all(kernel[:, level[0] == 0, 4:] == 0)
    assert np.all(kernel[:, level[0] == 2, 15:] != 0)


@problems
def test_weights_of_every_run_sum_to_one(problem: Any) -> None:
    ensemble = short(problem)
    term, level = (np.asarray(ensemble.scalars[name])[0] for name in ("increment", "level"))
    weights = 3 * np.asarray(ensemble.weights)
    np.testing.assert_allclose(weights[:, term == 0].sum(axis=1), 1.0, rtol=1e-5)
    for increment, count in ((1, 40), (2, 30)):
        np.testing.assert_allclose(weights[:, term == increment].sum(axis=1), 0.0, atol=1e-5)
        coarse = weights[:, (term == increment) & (level == increment - 1)]
        assert coarse.shape == (3, count)
        np.testing.assert_allclose(coarse, -1 / count, rtol=1e-5)


@problems
def test_signed_ensemble_survives_its_file(problem: Any, tmp_path: Any) -> None:
    ensemble = short(problem)
    ensemble.save(tmp_path / "ensemble")
    again = Ensemble.load(tmp_path / "ensemble")
    np.testing.assert_array_equal(again.weights, ensemble.weights)
    np.testing.assert_array_equal(again.scalars["level"], ensemble.scalars["level"])
    found, expected = again.predictive(CURVE), ensemble.predictive(CURVE)
    np.testing.assert_allclose(found.mean(), expected.mean(), rtol=1e-4, atol=1e-6)
    assert again.provenance.settings["num_runs"] == 3


def test_predictions_of_a_signed_regression() -> None:
    posterior = curve()
    predictive = short(curve).predictive(CURVE)
    y = posterior.data.y
    assert np.sqrt(np.mean((predictive.mean() - y) ** 2)) < 0.5 * np.std(y)
    for values in (predictive.std(), predictive.epistemic_variance()):
        assert np.all(np.isfinite(values))
        assert np.all(values >= 0)
    levels = [0.05, 0.25, 0.5, 0.75, 0.95]
    quantiles = np.asarray(predictive.quantiles(levels))
    assert np.all(np.isfinite(quantiles))
    for level, values in zip(levels, quantiles, strict=True):
        np.testing.assert_allclose(predictive.cdf(jnp.asarray(values)), level, atol=1e-3)
    assert np.all(quantiles[-1] > quantiles[0])
    assert np.all(np.isfinite(predictive.log_prob(y)))
    samples = predictive.sample(jax.random.key(0), 200)
    assert np.all(np.isfinite(samples))
    crps = predictive.crps(y, jax.random.key(1))
    assert np.all(np.isfinite(crps))
    assert np.all(crps > 0)


@pytest.mark.rotates(3)
def test_predictions_of_a_signed_classification() -> None:
    posterior = three_classes()
    predictive = short(three_classes).predictive(CURVE)
    y = np.asarray(posterior.data.y)
    mean = np.asarray(predictive.mean())
    np.testing.assert_allclose(mean.sum(axis=1), 1.0, rtol=1e-4)
    assert np.mean(np.argmax(mean, axis=1) == y) > 0.8
    total = np.asarray(predictive.entropy_total())
    assert np.all((total >= 0) & (total <= np.log(3) + 1e-5))
    assert np.all(np.isfinite(predictive.entropy_aleatoric()))
    epistemic = np.asarray(predictive.entropy_epistemic())
    assert np.all((epistemic >= 0) & (epistemic <= np.log(3) + 1e-5))
    log_prob = np.asarray(predictive.log_prob(posterior.data.y))
    assert np.all(np.isfinite(log_prob))
    assert np.all(log_prob <= 1e-5)
    samples = np.asarray(predictive.sample(jax.random.key(0), 200))
    assert set(np.unique(samples)) <= {0, 1, 2}


def test_a_stopped_run_goes_on_bit_for_bit(tmp_path: Any) -> None:
    """The run is stopped at the first level, between levels, and at a later one."""
    whole, again = short(curve), MLSMC(**SHORT)
    for num_blocks in (2, 4, 3):
        with pytest.raises(Stop):
            again.run(0, curve(), folder=tmp_path, progress=AfterBlocks(num_blocks))
    assert_same(again.run(0, curve(), folder=tmp_path), whole)
    assert_same(again.run(0, curve(), folder=tmp_path), whole)  # all read


def test_levels_that_nobody_tells_are_found_by_a_small_run(tmp_path: Any) -> None:
    """What follows is the same as with these levels told, and what is found goes on where it
    stopped."""
    posterior = curve(width=8)
    free = MLSMC(num_particles=20, num_runs=2, mutation=Mutation(num_steps=3))
    with pytest.raises(Stop):
        free.run(0, posterior, folder=tmp_path, progress=AfterBlocks(3))
    found = free.run(0, posterior, folder=tmp_path)
    told = replace(free, widths=((4,), (8,))).run(0, posterior)
    np.testing.assert_array_equal(found.weights, told.weights)
    jax.tree.map(np.testing.assert_array_equal, found.params, told.params)
    assert found.cost.flops > told.cost.flops, "the small run counts"
    assert found.provenance.found["level_widths"] == [[4], [8]]
    assert free.allocated(found, CURVE, 1.0).widths == ((4,), (8,))


@pytest.mark.parametrize(("left", "widths"), [(0.1, [[8]]), (0.3, [[4], [8]])])
def test_the_finest_level_is_alone_where_no_other_is_near_enough(
    left: float, widths: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Particles would be tempered to it and moved there, as less than `direct_ess` is left."""
    monkeypatch.setattr(method_module, "share_left", lambda *_, **__: left)
    few = MLSMC(num_particles=20, num_runs=2, mutation=Mutation(num_steps=1))
    told = Told()
    found = few.run(0, curve(width=8), progress=told)
    assert found.provenance.found["level_widths"] == widths
    assert any("which is alone" in sentence for sentence in told.sentences) == (len(widths) == 1)


def test_without_time_for_small_runs_the_prior_says_which_levels_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def too_slow(*_: Any) -> Any:
        raise OutOfTime("The time is over.")

    monkeypatch.setattr(method_module, "narrowest", too_slow)
    few = MLSMC(num_particles=20, num_runs=2, mutation=Mutation(num_steps=1))
    widths = few.run(0, curve()).provenance.found["level_widths"]
    assert widths == [list(level.model.network.hidden) for level in few.levels(curve())]


@pytest.mark.parametrize(
    "kernel",
    [*(pytest.param(name, marks=pytest.mark.slow) for name in ("hmc", "mala")), "pcn_cloud"],
)
def test_other_kernels_and_one_level(kernel: str) -> None:
    """One level alone is weighted SMC."""
    one = MLSMC(
        widths=((16,),), num_particles=50, num_runs=2, mutation=Mutation(kernel=kernel, num_steps=2)
    )
    ensemble = one.run(0, curve())
    assert np.all(ensemble.weights > 0)
    np.testing.assert_allclose(ensemble.weights.sum(), 1.0, rtol=1e-5)
    assert ensemble.num_draws == 50


def test_particles_of_every_level() -> None:
    """One number is the coarsest level's; as many numbers as levels are taken as they are."""
    levels = MLSMC(widths=WIDTHS).levels(curve())
    counts = MLSMC(widths=WIDTHS, num_particles=1000).counts(levels)
    assert counts[0] == 1000
    assert all(50 <= fine < coarse for coarse, fine in pairwise(counts))
    assert MLSMC(widths=WIDTHS, num_particles=20).counts(levels) == (20, 20, 20)
    assert MLSMC(**SHORT).counts(levels) == (60, 40, 30)


def with_network(network: Any, prior: Any = None, **settings: Any) -> Callable[[], Any]:
    x = np.linspace(-1, 1, 10)[:, None]

    def run() -> Any:
        posterior = Posterior(network, prior or TraceClass(2.0), Normal(), (x, x))
        return MLSMC(**settings).run(0, posterior)

    return run


@pytest.mark.parametrize(
    ("run", "sentence"),
    [
        (with_network(MLP(1, (4,)), widths=((8,), (4,))), "from coarse to fine at one depth"),
        (with_network(MLP(1, (4,)), widths=((4,), (4,))), "from coarse to fine at one depth"),
        (with_network(MLP(1, (4, 4)), widths=((4,), (4, 4))), "from coarse to fine at one depth"),
        (with_network(MLP(1, (8,)), widths=((2,), (4,))), "last level must be the posterior's own"),
        (with_network(MLP(1, (4,)), widths=((4,), (8,))), "wider|get narrower|last level|fine"),
        (with_network(MLP(1, (8,)), Gaussian(), widths=((4,), (8,))), "is not nested"),
        (with_network(MLP(1, (8,)), HierarchicalGamma()), "needs a Gaussian prior"),
        (with_network(MLP(1, (8,)), coarse=(MLP(1, (16,)),)), "from coarse to fine"),
        (with_network(MLP(1, (8,)), coarse=(MLP(1, (2, 2)),)), "must have the same structure"),
        (with_network(MLP(1, ()), num_levels=2), "Levels need hidden layers"),
        (with_network(MLP(1, (8,)), num_particles=1), "at least 2 particles, got 1"),
        (with_network(MLP(1, (8,)), num_particles=(50, 1)), "at least 2 particles, got 1"),
        (
            with_network(MLP(1, (8,)), num_particles=(50, 20, 20)),
            "num_particles has 3 numbers for 2 levels",
        ),
        (with_network(MLP(1, (8,)), num_runs=0), "num_runs must be > 0"),
        (lambda: MLSMC(num_tries=2, coupling="independent"), "num_tries=2 are draws for particles"),
        (
            lambda: MLSMC(widths=((4,), (8,)), num_levels=2),
            "num_levels=2 is of levels that are found",
        ),
        (
            lambda: MLSMC(widths=((4,), (8,)), coarse=(MLP(1, (4,)),)),
            "widths say which levels there are",
        ),
        (lambda: MLSMC(coarse=(MLP(1, (4,)),), num_levels=2), "and coarse says which there are"),
        (lambda: MLSMC(coarse=(MLP(1, (4,)),), base=2), "base=2 is of levels that are found"),
        (with_network(MLP(1, (8,)), coupling="none"), "Unknown coupling 'none'"),
        (with_network(MLP(1, (8,)), ratio=1.0), "ratio > 1"),
        (lambda: MLSMC(base=0), "base must be > 0"),
        (lambda: MLSMC(num_levels=0), "num_levels must be > 0"),
        (
            lambda: MLSMC(coupling="independent", direct_ess=0.5),
            "direct_ess=0.5 is of coupling='sequential'",
        ),
        (lambda: nested.hidden_of(ResNet(1)), "Only an MLP's widths can be changed"),
    ],
)
def test_bad_input_is_a_sentence(run: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        run()


def test_registered_with_settings_that_can_be_read_back() -> None:
    assert METHODS["mlsmc"] is MLSMC
    settings = MLSMC(**SHORT)
    assert MLSMC.from_settings(asdict(settings)) == settings


def test_settings_survive_json() -> None:
    method = MLSMC(widths=((4,), (8,)), num_particles=(100, 50), mutation=Mutation(num_steps=3))
    stored = json.loads(json.dumps(dataclasses.asdict(method)))
    assert MLSMC.from_settings(stored) == method


@pytest.mark.parametrize("widths", [((2.0,), (4,)), (2, 4), (("2",), ("4",))], ids=str)
def test_widths_of_levels_are_tuples_of_whole_numbers(widths: Any) -> None:
    with pytest.raises(InputError, match="one tuple of hidden widths per level"):
        MLSMC(widths=widths, num_particles=10)
