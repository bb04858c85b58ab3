"""The emulating network: its components without a large matrix, and the published ones."""

from dataclasses import asdict
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from credence.density.posterior import Posterior
from credence.engine.driver import Driver
from credence.errors import InputError
from credence.kernels.ascent.dropout import masked_outputs
from credence.methods.surrogate.ces import CES
from credence.methods.surrogate.emulators import Network, Points, error_of, network
from credence.methods.surrogate.emulators.components import principal_components
from credence.methods.training import Training
from credence.models import MLP, Categorical, Gaussian, Normal
from credence.models.networks.dense import Layer

RNG = np.random.default_rng(3)
OUTPUTS = RNG.normal(size=(14, 5)) @ RNG.normal(size=(5, 300)) + 0.1 * RNG.normal(size=(14, 300))
OUTPUTS += 3.0 * RNG.normal(size=300)


def chunks(width: int, overlap: int = 0) -> Any:
    """Passes over the columns; a planted overlap shows some of them twice."""
    return lambda: (OUTPUTS[:, max(0, i - overlap) : i + width] for i in range(0, 300, width))


def distance(found: Any, num_components: int) -> float:
    """The largest difference from the singular value decomposition of the whole matrix."""
    targets, basis, missing = found
    centred = OUTPUTS - OUTPUTS.mean(axis=0)
    left, sizes, right = np.linalg.svd(centred, full_matrices=False)
    if basis.components.shape[1] != 300:  # the planted columns
        return abs(np.linalg.norm(targets) - np.linalg.norm(sizes[:num_components]))
    kept = slice(num_components)
    whole = (left[:, kept] * sizes[kept]) @ right[kept]
    signs = np.sign(np.sum(basis.components * right[kept], axis=1))
    share = np.sum(sizes[num_components:] ** 2) / np.sum(sizes**2)
    differences = (
        targets @ basis.components - whole,
        signs[:, None] * basis.components - right[kept],
        signs * targets - left[:, kept] * sizes[kept],
        basis.mean - OUTPUTS.mean(axis=0),
        missing - share,
    )
    return max(float(np.max(abs(np.asarray(each)))) for each in differences)


@pytest.mark.parametrize("width", [1, 37, 100, 300])
@pytest.mark.parametrize("num_components", [1, 4, 13])
def test_streamed_components_are_those_of_the_whole_matrix(width: int, num_components: int) -> None:
    assert distance(principal_components(chunks(width), num_components), num_components) < 1e-9


def test_planted_chunks_that_overlap_are_caught() -> None:
    assert distance(principal_components(chunks(37, overlap=9), 4), 4) > 0.1


def test_planted_mean_of_all_numbers_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    from credence.methods.surrogate.emulators import components

    def planted(chunk: Any) -> Any:
        return np.full(chunk.shape[1], chunk.mean()), chunk - chunk.mean()

    monkeypatch.setattr(components, "_centred", planted)
    assert distance(principal_components(chunks(37), 4), 4) > 0.1


def test_there_are_no_more_components_than_draws_less_one() -> None:
    targets, basis, missing = principal_components(chunks(50), 1000)
    assert targets.shape == (14, 13)
    assert missing < 1e-12
    np.testing.assert_allclose(targets @ basis.components + basis.mean, OUTPUTS, atol=1e-9)


def test_draws_that_are_all_the_same_have_no_component() -> None:
    same = lambda: iter([np.ones((5, 20))])  # noqa: E731
    targets, basis, _ = principal_components(same, 3)
    assert np.all(targets == 0)
    np.testing.assert_allclose(basis.mean, 1)


X = RNG.normal(size=(60, 2)).astype(np.float32)
CLASSES = Posterior(MLP(3, (4,)), Gaussian(), Categorical(), (X, np.arange(60) % 3))
NUMBERS = Posterior(MLP(1, (4,)), Gaussian(), Normal(), (X, np.sin(X[:, 0])))


def points_of(posterior: Posterior, num_chains: int = 2, num_draws: int = 30) -> Points:
    """Weights near one another, and the log likelihood there."""
    centres = RNG.normal(size=(num_chains, 1, posterior.num_weights))
    noise = 0.3 * RNG.normal(size=(num_chains, num_draws, posterior.num_weights))
    positions = (centres + noise).astype(np.float32)
    model, data = posterior.model, posterior.data
    likelihood = lambda w: model.log_likelihood(model.unravel(w, data), data)  # noqa: E731
    values = np.asarray(jax.vmap(jax.vmap(likelihood))(jnp.asarray(positions)), float)
    return Points(positions, values, values)


@pytest.mark.parametrize("posterior", [CLASSES, NUMBERS], ids=["classes", "numbers"])
def test_outputs_come_in_chunks_that_join_to_all(posterior: Posterior, monkeypatch: Any) -> None:
    flat = points_of(posterior).positions.reshape(-1, posterior.num_weights)
    monkeypatch.setattr(network, "AT_A_TIME", 7 * len(flat))
    parts = list(network._output_chunks(flat, posterior.data, posterior))
    assert len(parts) > 5
    model, data = posterior.model, posterior.data
    every = [model.unravel(w, data).network for w in jnp.asarray(flat)]
    whole = [model.network.apply(weights, data.x).ravel() for weights in every]
    np.testing.assert_allclose(np.concatenate(parts, axis=1), np.stack(whole), rtol=1e-5, atol=1e-5)


@pytest.mark.rotates(3)
@pytest.mark.parametrize("posterior", [CLASSES, NUMBERS], ids=["classes", "numbers"])
def test_every_chain_may_have_an_emulator_of_its_own(posterior: Posterior) -> None:
    """The chain's own draws teach it: it knows them, and not those of the other chain."""
    points = points_of(posterior)
    emulator = Network(per_chain=True, training=Training(validation_fraction=0.0, max_epochs=500))
    with Driver() as driver:
        found = emulator.fit(jax.random.key(0), points, posterior, posterior.data, driver)
    assert found.num_members == 2
    swapped = Points(*(part[::-1] for part in points))
    own, others = error_of(found, points), error_of(found, swapped)
    print(own, others)
    assert own.share < 0.2
    assert others.share > 2 * own.share


def test_training_that_time_ended_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three epochs of fifty, of one chain's emulator; whole training says nothing."""
    original, learnt = network.train, []

    def cut_short(*args: Any, **settings: Any) -> Any:
        found = original(*args, **settings)
        assert (found.num_epochs, found.is_whole) == (50, True)
        learnt.append(found)
        return found._replace(num_epochs=3, is_whole=False) if len(learnt) == 2 else found

    training = Training(validation_fraction=0.0, max_epochs=50, patience=1000)
    emulator = Network(hidden=(3,), per_chain=True, training=training)
    points = points_of(NUMBERS)
    with Driver() as driver:
        whole = emulator.fit(jax.random.key(0), points, NUMBERS, NUMBERS.data, driver)
    monkeypatch.setattr(network, "train", cut_short)
    with Driver() as driver:
        starved = emulator.fit(jax.random.key(0), points, NUMBERS, NUMBERS.data, driver)
    assert whole.about == {}
    assert starved.about == {"trained_epochs": 3}


def rows(num_rows: int, num_outputs: int) -> Posterior:
    """Make as many rows and outputs as a data set has, with one input."""
    x = np.zeros((num_rows, 1), np.float32)
    if num_outputs == 1:
        return Posterior(MLP(1, (2,)), Gaussian(), Normal(), (x, x[:, 0]))
    labels = np.arange(num_rows) % num_outputs
    return Posterior(MLP(num_outputs, (2,)), Gaussian(), Categorical(), (x, labels))


@pytest.mark.parametrize(
    ("name", "num_rows", "num_outputs"),
    [("mnist", 60_000, 10), ("year", 463_715, 1), ("svhn", 604_388, 10)],
)
def test_large_data_sets_pass(name: str, num_rows: int, num_outputs: int) -> None:
    posterior = rows(num_rows, num_outputs)
    for emulator in (Network(), Network.published(name)):
        emulator.check(posterior, 800)


def test_too_many_outputs_are_refused_with_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "MOST_NUMBERS", 60 * 3 * 8 - 1)
    with pytest.raises(InputError, match=r"8 components of 180 outputs are too many.*use Network"):
        CES(emulator=Network(), calibration="sghmc").run(0, CLASSES)


def test_memory_bounds_the_components_and_inputs_are_not_kept(monkeypatch: Any) -> None:
    monkeypatch.setattr(network, "MOST_NUMBERS", 60 * 3 * 9)
    settings = {"training": Training(max_epochs=5), "num_components": 20}
    with Driver() as driver:
        found = Network(**settings).fit(
            jax.random.key(0), points_of(CLASSES), CLASSES, CLASSES.data, driver
        )
    assert found.arrays.components.shape == (1, 9, 180)
    assert found.arrays.data.x.shape == (1, 1, 2)
    assert found.arrays.data.y.shape == (1, 60)


class TestPublished:
    def test_settings_are_those_of_table_2(self) -> None:
        adult, svhn = Network.published("adult"), Network.published("svhn")
        assert (adult.hidden, adult.dropout) == ((4, 32), 0.5)
        assert (svhn.hidden, svhn.dropout) == ((4, 64, 32), 0.7)
        for emulator in (adult, svhn):
            assert (emulator.activation, emulator.training.max_epochs) == ("relu", 1000)
        public = Network.published("public_code")
        assert (public.hidden, public.dropout) == ((256, 512), 0.0)
        assert (public.training.learning_rate, public.training.batch_size) == (0.01, 64)
        assert public.training.max_epochs == 200

    def test_another_data_set_is_refused(self) -> None:
        with pytest.raises(InputError, match=r"No emulator was published.*'adlt'.*mean 'adult'"):
            Network.published("adlt")

    def test_settings_are_read_back(self) -> None:
        method = CES(calibration="sghmc", emulator=Network.published("boston"))
        assert CES.from_settings(asdict(method)) == method

    def test_it_learns_with_dropout(self) -> None:
        """The published emulator of 3 neurons and a dropout of .7 learns little, but runs."""
        emulator = Network.published("boston")
        points = points_of(NUMBERS)
        with Driver() as driver:
            found = emulator.fit(jax.random.key(0), points, NUMBERS, NUMBERS.data, driver)
        assert np.isfinite(error_of(found, points).nats)

    @pytest.mark.parametrize(("masked", "largest"), [((0,), 2), ((0, 1), 4), ((1,), 2), (None, 4)])
    def test_masks_are_where_they_should_be(self, masked: Any, largest: float) -> None:
        """A network passes ones on, and multiplies them by masks of rate 1/2."""
        identity = Layer(jnp.eye(3), jnp.zeros(3))
        passing, keys = MLP(3, (3, 3), "identity"), jax.random.split(jax.random.key(0), 3000)
        found = jax.vmap(
            lambda key: masked_outputs(passing, (identity,) * 3, jnp.ones((1, 3)), key, 0.5, masked)
        )(keys)
        assert set(np.unique(found)) == {0.0, largest}
        error = (largest - 1) ** 0.5 / found.size**0.5
        assert abs(float(found.mean()) - 1) < 4.5 * error


@pytest.mark.parametrize("settings", [{"dropout": 1.0}, {"dropout": 0.5, "hidden": ()}])
def test_impossible_dropout_is_refused(settings: Any) -> None:
    with pytest.raises(InputError, match="dropout must be in"):
        Network(**settings)
