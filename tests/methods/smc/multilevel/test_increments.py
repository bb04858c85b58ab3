"""Second moments of prior increments: exact formulas against Monte Carlo, and what they are not."""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad

from credence.errors import InputError
from credence.methods.smc.multilevel.increments import (
    exact_second_moment,
    prior_increments,
    second_moment,
)
from credence.models import MLP, Gaussian, TraceClass

pytestmark = pytest.mark.optimized  # many draws, few programs

X = np.linspace(2.5, 1.5, 10)[None]
LEVELS = range(1, 8)


def networks(*levels: int, depth: int = 1, activation: str = "relu") -> tuple[MLP, ...]:
    return tuple(MLP(1, hidden=(2**level,) * depth, activation=activation) for level in levels)


def scores(sampled: TraceClass, depth: int, activation: str, num_draws: int) -> np.ndarray:
    """z-scores of Monte Carlo moments, levels 1 to 7, against the exact ones with input decay."""
    levels = networks(*range(8), depth=depth, activation=activation)
    draws = prior_increments(
        jax.random.key(0), sampled, levels, jnp.asarray(X), num_draws=num_draws
    )
    mean, error = second_moment(draws)
    assert np.all(error < 0.08 * mean), "too noisy to tell: draw more"
    prior = TraceClass(2.0, decay_inputs=True)
    exact = np.stack([exact_second_moment(prior, *pair, X) for pair in pairwise(levels)])
    return ((mean - exact) / error).ravel()


@pytest.mark.rotates(3)
@pytest.mark.parametrize("activation", ["relu", "identity", "tanh"])
def test_one_hidden_layer(activation: str) -> None:
    z = scores(TraceClass(2.0, decay_inputs=True), 1, activation, 200_000)
    assert np.abs(z).max() < 4.5


@pytest.mark.rotates(3)
def test_two_hidden_layers() -> None:
    z = scores(TraceClass(2.0, decay_inputs=True), 2, "identity", 40_000)
    assert np.abs(z).max() < 4.5


@pytest.mark.parametrize(("depth", "activation"), [(1, "relu"), (1, "tanh"), (2, "identity")])
def test_a_forgotten_decay_over_the_inputs_is_seen(depth: int, activation: str) -> None:
    z = scores(TraceClass(2.0), depth, activation, 10_000)
    assert np.abs(z).min() > 8


def S(x: np.ndarray, alpha: float) -> float:
    return 1 + np.sum(np.arange(1.0, x.shape[1] + 1) ** -alpha * x[0] ** 2)


def A(a: int, b: int, alpha: float) -> float:
    return sum(k ** (-2 * alpha) for k in range(a + 1, b + 1))


@pytest.mark.parametrize("alpha", [1.1, 2.0, 3.0])
@pytest.mark.usefixtures("float64")
def test_exact_moments_are_the_formulas(alpha: float) -> None:
    prior = TraceClass(alpha, decay_inputs=True)
    s = S(X, alpha)

    def exact(level: int, depth: int, activation: str) -> float:
        pair = networks(level - 1, level, depth=depth, activation=activation)
        return float(exact_second_moment(prior, *pair, X)[0, 0])

    for level in LEVELS:
        new, old = A(2 ** (level - 1), 2**level, alpha), A(0, 2 ** (level - 1), alpha)
        assert exact(level, 1, "relu") == pytest.approx(0.5 * s * new, rel=1e-8)
        assert exact(level, 1, "identity") == pytest.approx(s * new, rel=1e-12)
        two = new * (1 + s * (old + new)) + old * s * new
        assert exact(level, 2, "identity") == pytest.approx(two, rel=1e-12)

    def mean_square(k: int) -> float:
        width = (k**-alpha * s) ** 0.5
        density = lambda z: np.tanh(width * z) ** 2 * np.exp(-0.5 * z * z) / (2 * np.pi) ** 0.5  # noqa: E731
        return 2 * quad(density, 0, 12, epsabs=1e-13)[0]

    tanh = exact_second_moment(prior, *networks(1, 3, activation="tanh"), X)[0, 0]
    assert tanh == pytest.approx(sum(k**-alpha * mean_square(k) for k in range(3, 9)), rel=1e-8)


@pytest.mark.usefixtures("float64")
def test_scale_unequal_widths_and_outputs_against_all_weights() -> None:
    """Linear networks: the moment is a sum over paths, here by brute force over all of them."""
    prior = TraceClass(1.3, 0.7, decay_outputs=True)
    coarse, fine = (MLP(2, hidden=h, activation="identity") for h in ((1, 2, 2), (2, 2, 4)))
    x = np.array([[0.5, -1.0], [2.0, 0.3]])
    stds = prior.stds(fine, jax.eval_shape(fine.init, jax.random.key(0), jnp.asarray(x)))
    v1, v2, v3, v4 = (np.asarray(layer.kernel) ** 2 for layer in stds)
    b1, b2, b3, _ = (np.asarray(layer.bias) ** 2 for layer in stds)
    one, two, three = coarse.hidden
    expected = np.zeros((2, 2))
    for k in range(4):
        is_new = k >= three
        expected += is_new * b3[k] * v4[k]
        for j in range(2):
            is_new_j = is_new or j >= two
            expected += is_new_j * b2[j] * v3[j, k] * v4[k]
            for i in range(2):
                inputs = (x**2 @ v1[:, i] + b1[i]) * v2[i, j] * v3[j, k]
                expected += (is_new_j or i >= one) * inputs[:, None] * v4[k]
    np.testing.assert_allclose(exact_second_moment(prior, coarse, fine, x), expected, rtol=1e-6)


def test_rates() -> None:
    """Trace-class: slopes near -(2 alpha - 1) at high levels. Weights of variance 1/width: -1."""

    def slope(moments: list[float]) -> float:
        return float(np.polyfit(range(len(moments)), np.log2(moments), 1)[0])

    for alpha in (1.1, 2.0, 3.0):
        pairs = pairwise(networks(7, 8, 9, 10))
        exact = [exact_second_moment(TraceClass(alpha), *pair, X)[0, 0] for pair in pairs]
        assert slope(exact) == pytest.approx(1 - 2 * alpha, abs=0.03)

    # Every variance is 1/width of the finer network: one power of n for each of two layers, and
    # n new units.
    moments = []
    for level in range(2, 6):
        prior = Gaussian("unit", weight_std=2 ** (-level / 2), bias_std=2 ** (-level / 2))
        pair = networks(level - 1, level)
        draws = prior_increments(
            jax.random.key(level), prior, pair, jnp.asarray(X), num_draws=20_000
        )
        moments.append(second_moment(draws).mean[0, 0, 0])
    assert slope(moments) == pytest.approx(-1, abs=0.15)


def test_increments_are_coupled_and_reproducible() -> None:
    """They add up to the difference of the outer networks."""
    prior, x = TraceClass(), jnp.asarray(X)
    make = lambda seed, *levels: prior_increments(  # noqa: E731
        jax.random.key(seed), prior, networks(*levels), x, num_draws=300
    )
    draws = make(0, 2, 3, 4)
    assert draws.shape == (300, 2, 1, 1)
    np.testing.assert_array_equal(make(0, 2, 3, 4), draws)
    np.testing.assert_allclose(make(0, 2, 4)[:, 0], draws.sum(axis=1), atol=1e-5)
    assert np.any(make(1, 2, 3, 4) != draws, axis=(1, 2, 3)).all()


@pytest.mark.parametrize(
    ("pair", "sentence"),
    [
        (networks(2, 1), "from coarse to fine"),
        ((*networks(1, activation="tanh"), *networks(2)), "differ in width only"),
        (networks(1, 2, depth=2), "use prior_increments"),
    ],
)
def test_what_has_no_formula_is_refused(pair: tuple[MLP, MLP], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        exact_second_moment(TraceClass(), *pair, X)
