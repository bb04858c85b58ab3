"""Coarse to fine inputs: linear regression in closed form, tiny tables, published numbers."""

from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest
from tools.exact import LinearRegression, assert_mean

from credence.compare import cell, find, problem
from credence.datasets.prepared.digits import Digits
from credence.datasets.prepared.embeddings import Embeddings
from credence.density.posterior import Posterior
from credence.ensembles.ensemble import Ensemble
from credence.errors import InputError
from credence.methods.smc.mutation import Mutation
from credence.models import Gaussian, LeadingInputs
from credence_papers.multilevel.leading_inputs import (
    FineTrained,
    LeadingMLSMC,
    LeadingSMC,
    Reweighted,
    both_levels,
    of_all_inputs,
)

RUNS, PARTICLES = 40, 200
MUTATION = Mutation(num_steps=6)


def regression() -> LinearRegression:
    """Two inputs of which the second matters less: levels that are near."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(15, 2)) * [1.0, 0.5]
    y = x @ [1.0, 0.7] + 0.5 * rng.normal(size=15)
    return LinearRegression(x, y, Gaussian("unit"), 0.5)


def coarse(exact: LinearRegression) -> LinearRegression:
    return exact._replace(x=exact.x[:, :1])


def run_means(ensemble: Ensemble, x: np.ndarray) -> np.ndarray:
    """The weighted mean function of every run: (run, point)."""
    functions = ensemble.functions(x)[..., 0]
    if ensemble.weights is None:
        return functions.mean(axis=1)
    return ensemble.num_chains * np.einsum("rm,rmp->rp", ensemble.weights, functions)


@pytest.mark.parametrize(
    "method",
    [
        Reweighted(num_runs=RUNS, num_particles=PARTICLES, mutation=MUTATION),
        Reweighted(num_runs=RUNS, num_particles=PARTICLES, mutation=MUTATION, increment=True),
        pytest.param(
            LeadingMLSMC(num_runs=RUNS, num_particles=(PARTICLES, PARTICLES), mutation=MUTATION),
            marks=pytest.mark.slow,
        ),
        LeadingSMC(num_runs=RUNS, num_particles=PARTICLES, mutation=MUTATION),
    ],
    ids=["importance", "increment", "mlsmc", "smc"],
)
def test_fine_posterior_is_exact(method) -> None:
    """Posterior mean functions at three inputs; those of the coarse model are told apart."""
    exact = regression()
    ensemble = method.run(0, exact.posterior)
    x = np.array([[1.0, 1.0], [0.0, -2.0], [-1.0, 0.5]])
    means = run_means(ensemble, x)
    expected = exact.predict(x)[0]
    assert_mean(means, expected, resolution=0.05)
    with pytest.raises(AssertionError):
        assert_mean(means, coarse(exact).predict(x[:, :1])[0], resolution=0.05)


def two_embeddings() -> tuple[LinearRegression, LinearRegression, Posterior]:
    """Fine and coarse model in closed form, and the posterior of rows that have both's inputs."""
    rng = np.random.default_rng(1)
    fine = rng.normal(size=(10, 2)) * [1.0, 0.3]
    coarse = fine[:, :1] + 0.1 * rng.normal(size=(10, 1))
    y = fine @ [1.0, 0.7] + rng.normal(size=10)
    models = [LinearRegression(x, y, Gaussian("unit"), 1.0) for x in (fine, coarse)]
    whole = LinearRegression(np.hstack([fine, coarse]), y, Gaussian("unit"), 1.0)
    return models[0], models[1], whole.posterior


OWN = {"num_runs": RUNS, "mutation": MUTATION, "coarse_inputs": 1}
APART = np.array([[1.0, 0.5, -3.0], [0.5, -0.5, 2.0], [-1.0, 0.5, 4.0]])
"""Inputs at which the two embeddings differ: a network that reads the wrong columns shows."""


@pytest.mark.parametrize(
    "method",
    [
        Reweighted(num_particles=PARTICLES, **OWN),
        Reweighted(num_particles=PARTICLES, increment=True, **OWN),
        pytest.param(LeadingMLSMC(num_particles=(200, 200), **OWN), marks=pytest.mark.slow),
    ],
    ids=["importance", "increment", "mlsmc"],
)
def test_both_levels_are_exact_where_the_coarse_one_has_inputs_of_its_own(method) -> None:
    """The whole sum is the fine posterior's mean, and its first term the coarse posterior's."""
    fine, coarse, whole = two_embeddings()
    ensemble = method.run(0, whole)
    assert_mean(run_means(ensemble, APART), fine.predict(APART[:, :2])[0], resolution=0.05)
    kernels = np.asarray(ensemble.params.network[0].kernel)[..., 0].reshape(RUNS, -1, 3)
    is_coarse = ~kernels[..., :2].any(axis=-1)
    weights = np.where(is_coarse & (ensemble.weights > 0), ensemble.weights, 0)
    assert is_coarse.any() == (method != Reweighted(num_particles=PARTICLES, **OWN))
    if is_coarse.any():
        values = ensemble.functions(APART)[..., 0]
        first = np.einsum("rm,rmp->rp", weights, values) / weights.sum(axis=1, keepdims=True)
        assert_mean(first, coarse.predict(APART[:, 2:])[0], resolution=0.05)


def test_a_coarse_level_with_inputs_of_its_own() -> None:
    _, coarse, whole = two_embeddings()
    settings = {"num_runs": RUNS, "num_particles": 50, "mutation": MUTATION}
    ensemble = LeadingSMC(level="coarse", coarse_inputs=1, **settings).run(0, whole)
    x = np.array([[9.0, 9.0, 1.0], [-9.0, 0.0, -2.0]])
    assert_mean(run_means(ensemble, x), coarse.predict(x[:, 2:])[0], resolution=0.05)


def test_coarse_networks_go_to_the_columns_of_their_own() -> None:
    _, _, whole = two_embeddings()
    positions = np.array([[[2.0, 0.0, 5.0], [2.0, 3.0, 5.0]]], "f4")
    _, fine = both_levels(whole, 1.0, coarse_inputs=1)
    kernels = of_all_inputs(positions, np.array([[True, False]]), fine, 1)
    np.testing.assert_array_equal(kernels, [[[0, 0, 2, 5], [2, 3, 0, 5]]])


@pytest.mark.parametrize(
    "method", [FineTrained(coarse_inputs=1), FineTrained(coarse_inputs=1, num_members=2)]
)
def test_trained_networks_do_not_see_the_coarse_inputs(method) -> None:
    _, _, whole = two_embeddings()
    ensemble = method.run(0, whole)
    x = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 7.0]])
    first, second = np.moveaxis(ensemble.functions(x), 2, 0)
    np.testing.assert_array_equal(first, second)


def test_inputs_of_its_own_must_be_the_fewer() -> None:
    _, _, whole = two_embeddings()
    for number in (2, -1):
        with pytest.raises(InputError, match=f"coarse_inputs is {number} of 3 inputs"):
            both_levels(whole, 0.5, coarse_inputs=number)
    hidden = replace(whole.model.network, hidden=(2,))
    model = whole.model
    deep = Posterior(hidden, model.prior, model.likelihood, (whole.data.x, whole.data.y))
    with pytest.raises(InputError, match="without hidden layers"):
        both_levels(deep, 0.5, coarse_inputs=1)
    with pytest.raises(InputError, match="level"):
        LeadingSMC(level="middle")


def test_the_coarse_level_is_the_smaller_model() -> None:
    exact = regression()
    method = LeadingSMC(num_runs=RUNS, num_particles=50, mutation=MUTATION, level="coarse")
    ensemble = method.run(0, exact.posterior)
    assert ensemble.model.network == LeadingInputs(exact.posterior.model.network, 1)
    assert not ensemble.is_chain
    x = np.array([[1.0, 5.0], [-1.0, 7.0]])
    assert_mean(run_means(ensemble, x), coarse(exact).predict(x[:, :1])[0], resolution=0.05)


def test_weights_of_the_increment_are_signed_and_sum_to_one() -> None:
    posterior = regression().posterior
    method = Reweighted(num_runs=2, num_particles=20, mutation=MUTATION, increment=True)
    ensemble = method.run(0, posterior)
    weights = 2 * ensemble.weights.reshape(2, 3, 20)
    np.testing.assert_allclose(weights.sum(axis=-1), [[1, 1, -1]] * 2, rtol=1e-5)
    kernels = np.asarray(ensemble.params.network[0].kernel).reshape(2, 3, 20, 2)
    assert not kernels[:, (0, 2), :, 1].any()  # coarse networks inside fine ones
    np.testing.assert_array_equal(kernels[:, 1, :, 0], kernels[:, 2, :, 0])
    assert np.any(kernels[:, 0, :, 0] != kernels[:, 1, :, 0])  # mutated in between
    shares = ensemble.scalars["ess_share"]
    ess = 1 / np.sum(weights[:, 1] ** 2, axis=-1)
    np.testing.assert_allclose(shares[:, 0], ess / 20, rtol=1e-4)
    assert Reweighted(num_runs=2, num_particles=20).run(0, posterior).weights.shape == (2, 20)


def test_reweighted_particles_are_the_same_from_a_folder(tmp_path: Path) -> None:
    """Every phase has a folder of its own there."""
    posterior = regression().posterior
    method = Reweighted(num_runs=2, num_particles=20, mutation=MUTATION, increment=True)
    alone = method.run(0, posterior)
    for _ in range(2):
        again = method.run(0, posterior, folder=tmp_path)
        np.testing.assert_array_equal(again.weights, alone.weights)


def test_shares_that_cannot_be() -> None:
    for share in (0.0, 1.5):
        with pytest.raises(InputError, match="share must be in"):
            both_levels(regression().posterior, share)
    with pytest.raises(InputError, match="num_inputs must be >= 1"):
        both_levels(regression().posterior, 0.1)


def test_published_numbers_are_those_printed() -> None:
    (tfidf, *optional), (digits,) = find("imdb").problems, find("mnist_ood").problems
    optional += find("imdb_two_models").problems
    assert not tfidf.is_optional
    assert all(each.is_optional for each in optional)
    coarse, importance, increment = (entry.values for entry in tfidf.published)
    assert coarse == {"accuracy": 0.7974, "nll": pytest.approx(0.444), "auroc": 0.8810}
    assert round(25_000 * importance["nll"]) == 8426
    assert (increment["accuracy"], increment["auroc"]) == (0.8699, 0.9417)
    assert {entry.label: entry.values["ood_auroc"] for entry in digits.published} == {
        "MAP": 0.8763, "Deep ensemble": 0.9195, "SMC": 0.9317, "MLSMC": 0.9406,
    }  # fmt: skip
    for experiment in map(find, NAMES):
        own = {method.label for method in experiment.methods}
        assert {entry.label for p in experiment.problems for entry in p.published} <= own
        assert len(experiment.cells("laptop")) == 5 * len(experiment.cells("smoke"))
    assert digits.model_at("paper").hidden == (128,)


def test_prior_variance_of_the_reviews_is_a_tenth() -> None:
    each = replace(find("imdb").cells("smoke")[0], source=None)  # the data are given
    rng = np.random.default_rng(0)
    arrays = problem.Arrays(
        rng.normal(size=(10, 4)), np.tile(np.int32([0, 1]), 5), rng.normal(size=(3, 4)),
        np.zeros(3, np.int32), None, ("0", "1"),
    )  # fmt: skip
    model = cell.build_posterior(each, arrays).model
    template = jax.eval_shape(model.network.init, jax.random.key(0), arrays.x_train)
    stds = jax.tree.leaves(model.prior.stds(model.network, template))
    np.testing.assert_allclose(np.square(stds), 0.1)


NAMES = ("imdb", "imdb_two_models", "mnist_ood", "mnist_ood_12000")


@pytest.fixture
def small_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three clusters of which two have labels; two clusters of reviews."""
    rng = np.random.default_rng(0)

    def clouds(num: int) -> tuple[np.ndarray, np.ndarray]:
        y = np.tile(np.arange(8), num)
        return np.eye(8, 10)[y] * 4 + rng.normal(size=(len(y), 10)), y

    def digits(num_components: int, **_: object) -> Digits:
        return Digits(*clouds(20), *clouds(10), 8 * rng.normal(size=(60, 10)))

    def reviews(embedder: str, coarse: str | None = None) -> Embeddings:
        (x, y), (x_test, y_test) = clouds(20), clouds(10)
        if coarse is not None:  # rows of length one, as sentence models give them
            noise = [0.05 * rng.normal(size=(len(rows), 784)) for rows in (x, x_test)]
            x, x_test = (np.tile(rows, 79)[:, :784] for rows in (x, x_test))
            x, x_test = (
                rows / np.linalg.norm(rows, axis=1, keepdims=True) + more
                for rows, more in zip((x, x_test), noise, strict=True)
            )
        return Embeddings(x, y % 2, x_test, y_test % 2, "Made up.")

    monkeypatch.setattr(problem, "principal_digits", digits)
    monkeypatch.setattr(problem, "imdb_embeddings", reviews)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::credence.methods.smc.mutation.StuckParticlesWarning")
@pytest.mark.parametrize("name", NAMES)
def test_every_cell_runs(name: str, small_data: None) -> None:
    for each in find(name).only(find(name).problems[0].name.split()).cells("smoke"):
        result = cell.compute(each)
        scores = result["scores"]
        assert result["convergence"]["converged"] is None
        assert scores["accuracy"] > (0.5 if "imdb" in name else 0.15), each.label
        assert 0 <= scores["epistemic_id"] <= np.log(8)
        assert ("ess_share" in scores) == each.method.endswith(":Reweighted")
        if "mnist" in name:
            assert 0 < scores["ood_auroc"] <= 1
            assert (scores["epistemic_others"] > 0) == (each.method != "map")
