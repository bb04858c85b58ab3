"""Training: the exact mode of linear regression, early stopping, members of their own."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tools.exact import linear_regression, member_weights

from credence.density.data import Data
from credence.density.posterior import Posterior
from credence.engine.clock import CompileClock
from credence.engine.driver import Driver
from credence.errors import InputError
from credence.methods.approximate.deep_ensemble import MAP, DeepEnsemble
from credence.methods.training import Training, split, train
from credence.models import MLP, Gaussian, Normal

pytestmark = pytest.mark.rotates(3)

PROBLEM = linear_regression()
LONG = Training(max_epochs=4000, validation_fraction=0.0, patience=20)


def wiggly(seed: int = 0, hidden: int = 20) -> Posterior:
    """Few noisy points and a network that can remember them."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, size=(40, 1))
    y = np.sin(2 * x) + 0.3 * rng.normal(size=x.shape)
    prior = Gaussian(weight_std=10.0, bias_std=10.0)
    return Posterior(MLP(1, hidden=(hidden,)), prior, Normal(noise_std=0.3), (x, y))


def test_members_reach_the_mode_of_linear_regression():
    """The posterior is Gaussian: its mode is its mean."""
    found = member_weights(DeepEnsemble(num_members=3, training=LONG).run(0, PROBLEM.posterior))
    mean, covariance = PROBLEM.solve()
    distance = np.abs(found - mean) / np.diag(covariance) ** 0.5
    assert distance.max() < 0.01, "in posterior standard deviations"
    planted, _ = PROBLEM._replace(noise_std=1.1 * PROBLEM.noise_std).solve()
    assert (np.abs(planted - mean) / np.diag(covariance) ** 0.5).max() > 0.05


def test_map_is_the_single_member():
    posterior = PROBLEM.posterior
    found = member_weights(MAP(training=LONG).run(0, posterior))
    single = member_weights(DeepEnsemble(num_members=1, training=LONG).run(0, posterior))
    np.testing.assert_array_equal(found, single)


def test_rows_without_weight_judge_no_network():
    """They are never held out, so that there is a best network even where most rows are such."""
    x, weight = np.arange(20.0)[:, None], np.zeros(20)
    weight[[2, 5, 7, 11, 13]] = 1.0
    network = Posterior(
        MLP(1, hidden=(3,)), Gaussian(), Normal(noise_std=0.3), (x / 20, np.sin(x), weight)
    )
    for seed in range(6):
        with Driver() as driver:
            found = train(jax.random.key(seed), network, driver, 2, Training(max_epochs=50))
        assert np.isfinite(np.asarray(found.loss)).all()
        fitted, judged = split(jax.random.key(seed), network.data, 2)
        assert (judged.weight == 1).all()
        assert len(fitted.weight) == 18


def test_members_differ_and_keys_matter():
    posterior = wiggly()
    training = Training(max_epochs=100)
    with Driver() as driver:
        members = train(jax.random.key(0), posterior, driver, 4, training).positions
    assert len(np.unique(np.asarray(members), axis=0)) == 4
    with Driver() as driver:
        others = train(jax.random.key(1), posterior, driver, 4, training).positions
    assert not np.any(np.asarray(members) == np.asarray(others))


def test_training_stops_early_at_the_best_validation_loss():
    posterior = wiggly()
    training = Training(max_epochs=20000, validation_fraction=0.3, patience=3)
    with Driver() as driver:
        best = train(jax.random.key(0), posterior, driver, 3, training)
        last = driver.results["train"]
    assert best.num_steps == last.num_steps < 5000
    _, key_split, _ = jax.random.split(jax.random.key(0), 3)
    _, validation = split(key_split, posterior.data, 12)

    def loss(position) -> float:
        params = posterior.unravel(position)
        return float(-posterior.model.log_likelihood(params, validation) / 12)

    for position, end, claimed in zip(best.positions, last.positions, best.loss, strict=True):
        np.testing.assert_allclose(loss(position), claimed, rtol=1e-4)
        assert loss(end) > claimed
    assert np.all(last.memory.stale >= training.patience)


def test_more_patience_trains_longer():
    steps = []
    for patience in (1, 10):
        with Driver() as driver:
            training = Training(max_epochs=20000, validation_fraction=0.3, patience=patience)
            steps.append(train(jax.random.key(0), wiggly(), driver, 1, training).num_steps)
    assert steps[0] < steps[1]


def test_without_validation_rows_the_posterior_decides():
    """The likelihood alone would keep a member that overfits a strong prior."""
    x = np.linspace(-1, 1, 10)[:, None]
    posterior = Posterior(
        MLP(1, hidden=()), Gaussian(weight_std=0.1), Normal(noise_std=1.0), (x, 3 * x)
    )
    with Driver() as driver:
        best = train(jax.random.key(0), posterior, driver, 2, LONG)
    params = posterior.unravel(best.positions)
    slope = np.asarray(params.network[0].kernel).ravel()
    exact = 3 * np.sum(x**2) / (np.sum(x**2) + 1 / 0.1**2)
    np.testing.assert_allclose(slope, exact, atol=1e-3)
    log_density = jax.vmap(posterior.log_density, (0, None))(best.positions, posterior.data)
    np.testing.assert_allclose(best.loss, -log_density / 10, rtol=1e-5)


def test_split_gives_every_row_to_one_side():
    data = Data(jnp.arange(10.0)[:, None], jnp.arange(10)[::-1], jnp.arange(1.0, 11.0))
    fitting, validation = split(jax.random.key(0), data, 3)
    assert fitting.x.shape == (7, 1)
    assert validation.x.shape == (3, 1)
    rows = np.concatenate([fitting.x[:, 0], validation.x[:, 0]])
    np.testing.assert_array_equal(np.sort(rows), np.arange(10))
    for part in (fitting, validation):
        np.testing.assert_array_equal(part.y, 9 - part.x[:, 0])
        np.testing.assert_array_equal(part.weight, part.x[:, 0] + 1)
    assert split(jax.random.key(0), data, 0) == (data, data)
    other, _ = split(jax.random.key(1), data, 3)
    assert not np.array_equal(other.x, fitting.x)


def test_minibatches_find_the_mode_too():
    """They end within the noise of the last steps: about learning_rate around the mode."""
    training = Training(
        max_epochs=3000, validation_fraction=0.0, batch_size=4, learning_rate=0.002, patience=50
    )
    found = member_weights(DeepEnsemble(num_members=2, training=training).run(0, PROBLEM.posterior))
    mean, covariance = PROBLEM.solve()
    assert (np.abs(found - mean) / np.diag(covariance) ** 0.5).max() < 0.2


def test_settings_change_the_result():
    posterior = PROBLEM.posterior
    base = Training(max_epochs=100)
    found = member_weights(DeepEnsemble(training=base).run(0, posterior))
    assert found.shape == (5, 4)
    for changed in (
        Training(max_epochs=150),
        Training(max_epochs=100, learning_rate=0.02),
        Training(max_epochs=100, batch_size=5),
        Training(max_epochs=100, validation_fraction=0.3),
    ):
        other = member_weights(DeepEnsemble(training=changed).run(0, posterior))
        assert not np.array_equal(other, found), changed


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_epochs": 0}, "max_epochs must be > 0"),
        ({"learning_rate": -1.0}, "learning_rate must be > 0"),
        ({"patience": 0}, "patience must be > 0"),
        ({"validation_fraction": 1.0}, r"validation_fraction must be in \[0, 1\), got 1.0"),
        ({"batch_size": 0}, "batch_size must be > 0"),
    ],
)
def test_impossible_settings_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        Training(**settings)


def test_a_fraction_that_leaves_no_row_to_fit_is_refused():
    posterior = Posterior(MLP(1), Gaussian(), Normal(), (np.ones((1, 1)), np.ones(1)))
    with pytest.raises(InputError, match="leaves no row to fit"):
        MAP(training=Training(validation_fraction=0.9)).run(0, posterior)


def test_second_data_set_of_the_same_shape_compiles_nothing():
    method = DeepEnsemble(training=Training(max_epochs=100))
    first, second = wiggly(seed=0, hidden=5), wiggly(seed=1, hidden=5)
    method.run(0, first)
    with CompileClock() as clock:
        method.run(1, second)
    assert clock.num_traces == 0
