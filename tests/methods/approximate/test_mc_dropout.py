"""MC dropout against closed forms: a network with one hidden layer and the identity as activation.

With masks s_j = mask / (1 - rate), of mean 1 and variance v = rate / (1 - rate), its output is
f_s(x) = sum_j h_j(x) s_j a_j + b. Hence over masks f_s has the mean f_1 and the variance
v sum_j h_j^2 a_j^2, and training with Gaussian noise pays a ridge for it (Wager, Wang & Liang,
"Dropout training as adaptive regularization", 2013):

    E log p(y, w) = log p(y, w) - v / (2 noise_std^2) sum_n sum_j h_j(x_n)^2 a_j^2
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import norm
from tools.exact import z_scores

from credence.density.posterior import Params, Posterior
from credence.engine.clock import CompileClock
from credence.errors import InputError
from credence.kernels.ascent.dropout import masked_layers, masked_log_density, masked_outputs
from credence.methods.approximate import mc_dropout
from credence.methods.approximate.mc_dropout import MCDropout
from credence.models import MLP, Gaussian, Layer, Normal
from credence.models.networks.adapters import FlaxLinen

RATE, NOISE_STD = 0.3, 0.5


def identity_posterior(num_points: int = 30, seed: int = 0) -> Posterior:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(num_points, 2))
    y = x @ [1.0, -0.5] + 0.3 + NOISE_STD * rng.normal(size=num_points)
    network = MLP(1, hidden=(4,), activation="identity")
    return Posterior(network, Gaussian(), Normal(NOISE_STD), (x, y))


def ridge(posterior: Posterior, position: Any) -> Any:
    """What masks cost on average, in nats, for RATE."""
    first, last = posterior.model.unravel(position, posterior.data).network
    hidden = posterior.data.x @ first.kernel + first.bias
    return RATE / (1 - RATE) * jnp.sum((hidden * last.kernel[:, 0]) ** 2) / (2 * NOISE_STD**2)


def test_objective_and_gradient_over_masks(float64):
    posterior = identity_posterior()
    position = posterior.init(jax.random.key(1), 1)[0] + 0.1
    log_density = masked_log_density(posterior.model)
    both = jax.jit(jax.vmap(jax.value_and_grad(log_density), (None, None, 0, None)))
    keys = jax.random.split(jax.random.key(0), 20_000)
    values, gradients = both(position, posterior.data, keys, RATE)

    def worst(share: float) -> float:
        def exact(w: Any) -> Any:
            return posterior.log_density(w, posterior.data) - share * ridge(posterior, w)

        value, gradient = jax.jit(jax.value_and_grad(exact))(position)
        varies = np.asarray(gradients).std(axis=0) > 1e-9
        return max(z_scores(values, value), z_scores(gradients, gradient)[varies].max())

    assert worst(1.0) < 4.5
    assert worst(0.9) > 8  # planted
    np.testing.assert_allclose(
        log_density(position, posterior.data), posterior.log_density(position, posterior.data)
    )


def test_every_point_has_its_own_mask():
    """The same row twice: outputs that do not depend on each other."""
    network = MLP(1, hidden=(20,), activation="identity")
    x = jnp.ones((2, 3))
    layers = network.init(jax.random.key(0), x)
    keys = jax.random.split(jax.random.key(1), 5000)
    masked = jax.vmap(lambda key: masked_outputs(network, layers, x, key, RATE))
    outputs = np.asarray(masked(keys))[:, :, 0]
    centred = outputs - outputs.mean(axis=0)
    assert z_scores(centred[:, 0] * centred[:, 1], 0.0) < 4.5
    assert z_scores(centred[:, 0] * centred[:, 0], 0.0) > 8  # planted: one mask for both


def exact_moments(layers: tuple[Layer, ...], x: Any, scale: float) -> tuple[Any, Any]:
    """Mean (point,) and covariance (point, point) of the output over masks of value 0 or scale."""
    first, last = layers
    terms = (x @ first.kernel + first.bias) * last.kernel[:, 0]
    keep = 1 - RATE
    mean = keep * scale * terms.sum(axis=1) + last.bias
    return mean, keep * (1 - keep) * scale**2 * terms @ terms.T


def test_draws_have_the_exact_predictive_moments(float64):
    """A draw is one network: its masks are the same at all points, so points are correlated."""
    network = MLP(1, hidden=(6,), activation="identity")
    x = jax.random.normal(jax.random.key(0), (3, 2))
    layers = network.init(jax.random.key(1), x)
    keys = jax.random.split(jax.random.key(2), 20_000)
    members = jax.vmap(masked_layers, (None, 0, None))(layers, keys, RATE)
    outputs = np.asarray(jax.vmap(network.apply, (0, None))(members, x))[:, :, 0]

    def worst(scale: float) -> float:
        mean, covariance = exact_moments(layers, x, scale)
        centred = outputs - np.asarray(mean)
        products = centred[:, :, None] * centred[:, None, :]
        return max(z_scores(outputs, mean).max(), z_scores(products, covariance).max())

    assert worst(1 / (1 - RATE)) < 4.5
    assert worst(1.0) > 8  # planted: masks without 1 / (1 - rate)


def test_deep_masks_are_those_of_training():
    """Two hidden layers: the mean over masks of a draw and of a training pass agree."""
    network = MLP(1, hidden=(5, 4), activation="tanh")
    x = jax.random.normal(jax.random.key(0), (1, 2))
    layers = network.init(jax.random.key(1), x)
    keys = jax.random.split(jax.random.key(2), (2, 5000))
    members = jax.vmap(masked_layers, (None, 0, None))(layers, keys[0], RATE)
    drawn = jax.vmap(network.apply, (0, None))(members, x)
    trained = jax.vmap(lambda key: masked_outputs(network, layers, x, key, RATE))(keys[1])
    for power in (1, 2):
        difference = np.asarray(drawn**power - trained**power).ravel()
        assert z_scores(difference, 0.0) < 4.5
    planted = network.apply(layers, x)
    assert z_scores(np.asarray(drawn**2).ravel(), float(planted[0, 0]) ** 2) > 8


def test_training_ends_at_the_minimum_of_the_expected_objective():
    """Height above the mode of the closed form, found by BFGS from the same place, in nats."""
    posterior = identity_posterior(num_points=200)
    ensemble = MCDropout(rate=RATE, num_draws=100, num_steps=8000).run(0, posterior)
    first, last = jax.tree.map(lambda leaf: leaf[0], ensemble.params.network)
    kernel = last.kernel[np.argmax(np.abs(last.kernel[:, :, 0]), axis=0), np.arange(4)]
    network = (
        Layer(first.kernel[0], first.bias[0]),
        Layer((1 - RATE) * kernel, last.bias[0]),  # where it is not masked
    )
    position = posterior.ravel(Params(network, (), ()))

    def gap(share: float) -> float:
        def loss(w: Any) -> Any:
            w = jnp.asarray(w, jnp.float32)
            return share * ridge(posterior, w) - posterior.log_density(w, posterior.data)

        best = minimize(jax.jit(jax.value_and_grad(loss)), position, jac=True, method="BFGS")
        return float(loss(position) - best.fun)

    assert gap(1.0) < 0.05
    assert gap(0.0) > 1.0  # planted: training without masks


@pytest.mark.parametrize("rate", [0.0, 1.0, -0.1, 1.5, float("nan")])
def test_rate_out_of_range_is_refused(rate):
    with pytest.raises(InputError, match=r"rate must be strictly between 0 and 1.*0.1 is usual"):
        MCDropout(rate=rate)


def test_other_networks_are_refused():
    data = (np.ones((3, 2)), np.ones(3))
    linear = Posterior(MLP(1, hidden=()), Gaussian(), Normal(), data)
    with pytest.raises(InputError, match=r"needs hidden neurons to drop.*add a hidden layer"):
        MCDropout().run(0, linear)
    nn = pytest.importorskip("flax.linen")
    flax = Posterior(FlaxLinen(nn.Dense(1)), Gaussian(), Normal(), data)
    with pytest.raises(InputError, match=r"hidden neurons of an MLP, got FlaxLinen(?s:.*)use MLP"):
        MCDropout().run(0, flax)


def test_settings_change_the_result_and_compile_nothing():
    posterior = identity_posterior()
    base: dict[str, Any] = {"num_draws": 10, "num_steps": 100}
    first = MCDropout(**base).run(0, posterior).params.network[0].kernel
    second = identity_posterior(seed=1)
    with CompileClock() as clock:
        MCDropout(**base, rate=0.2, learning_rate=0.02).run(1, second)
    assert clock.num_traces == 0
    for changed in ({"rate": 0.2}, {"learning_rate": 0.02}, {"num_steps": 200}, {"batch_size": 10}):
        other = MCDropout(**(base | changed)).run(0, posterior).params.network[0].kernel
        assert not np.array_equal(other, first), changed


def test_held_out_rows_choose_the_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four neurons and a line with little noise: masks of six in ten neurons predict it worse."""
    monkeypatch.setattr(mc_dropout, "RATES", (0.01, 0.6))
    method = MCDropout(rate=None, num_steps=600, num_draws=40)
    ensemble = method.run(0, identity_posterior())
    assert np.all(ensemble.scalars["rate"] == 0.01)
    chosen = MCDropout(rate=0.01, num_steps=600, num_draws=40).run(0, identity_posterior())
    jax.tree.map(np.testing.assert_array_equal, ensemble.params, chosen.params)
    original = mc_dropout.mean_log_predictive
    monkeypatch.setattr(mc_dropout, "mean_log_predictive", lambda *a, **s: -original(*a, **s))
    planted = method.run(0, identity_posterior())
    assert np.all(planted.scalars["rate"] == 0.6)


def test_predictive_density_is_of_the_mean_likelihood() -> None:
    """Two draws, which differ in the last bias by 1: log((phi(r) + phi(r - 1)) / 2)."""
    posterior = identity_posterior()
    first = posterior.init(jax.random.key(0), 1)[0]
    params = posterior.unravel(first)
    *others, last = params.network
    moved = params._replace(network=(*others, Layer(last.kernel, last.bias + 1.0)))
    draws = jnp.stack([first, posterior.ravel(moved)])
    data = posterior.data
    outputs = posterior.model.network.apply(params.network, data.x)
    residuals = np.asarray(data.y - outputs, float)[:, 0]
    densities = [norm.pdf(residuals - shift, scale=NOISE_STD) for shift in (0, 1)]
    found = mc_dropout.mean_log_predictive(draws, data, model=posterior.model)
    assert float(found) == pytest.approx(np.mean(np.log(np.mean(densities, axis=0))), rel=1e-4)
    wrong = np.mean(np.log(densities))
    assert float(found) != pytest.approx(wrong, rel=1e-2)


def test_too_few_rows_to_choose_by_are_refused() -> None:
    with pytest.raises(InputError, match="none to choose the rate by"):
        MCDropout(rate=None).run(0, identity_posterior(num_points=2))
