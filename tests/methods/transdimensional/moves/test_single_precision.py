"""Collapsed jumps in single precision, where data say so much that its determinants are wrong.

Of draws V from the exact conditional law of the output weights, the mean of q(V | W) / (L p(V)) is
1 / m(W) whatever q is. So the estimate of m(W) that a jump uses is right with a rounded q.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from credence.density.posterior import Posterior
from credence.methods.transdimensional.moves.base import jump
from credence.methods.transdimensional.moves.collapsed_birth import (
    Regression,
    collapsed_birth,
    regression,
)
from credence.methods.transdimensional.size_priors import WidthPrior
from credence.methods.transdimensional.target import Point, VariableWidth
from credence.models import MLP, Gaussian, Layer, Normal

NUM_DRAWS = 2000
CASES = {"usual": (800, 0.1), "much said": (20_000, 0.05), "too much": (20_000, 0.01)}
"""Rows and noise."""


def problem(case: str) -> tuple[Posterior, Any, np.ndarray]:
    """Data of a network with 48 neurons, its hidden layer, and the design over the noise."""
    num_rows, noise = CASES[case]
    rng = np.random.default_rng(0)
    x = rng.normal(size=(num_rows, 1))
    kernel, bias = rng.normal(size=(1, 48)), rng.normal(size=48)
    hidden = np.tanh(x @ kernel + bias)
    y = hidden @ rng.normal(size=48) / 48**0.5 + noise * rng.normal(size=num_rows)
    of = Posterior(MLP(1, (48,)), Gaussian(), Normal(noise_std=noise), (x, y))
    params = of.unravel(jnp.zeros(of.num_weights))
    first = Layer(jnp.asarray(kernel, jnp.float32), jnp.asarray(bias, jnp.float32))
    params = params._replace(network=(first, params.network[1]))
    hidden = np.tanh(x @ np.asarray(first.kernel, float) + np.asarray(first.bias, float))
    design = np.column_stack([hidden / 48**0.5, np.ones(num_rows)]) / noise
    return of, params, design


def exact(design: np.ndarray, wanted: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """log m but for a constant, and mean and root of the conditional law, in double precision."""
    rows = np.concatenate([design, np.eye(design.shape[1])])
    mean = np.linalg.lstsq(rows, np.append(wanted, np.zeros(design.shape[1])), rcond=None)[0]
    upper = np.linalg.qr(rows, mode="r")
    squares = np.sum((wanted - design @ mean) ** 2) + np.sum(mean**2)
    return float(-0.5 * squares - np.sum(np.log(np.abs(np.diag(upper))))), mean, upper


@pytest.mark.parametrize("case", ["usual", "much said"])
def test_the_marginal_likelihood_is_right_on_average(case: str) -> None:
    of, params, design = problem(case)
    target = VariableWidth(of.model, WidthPrior())
    law = regression(target, params, jnp.asarray([48]), of.data)
    assert law.root.dtype == jnp.float32
    assert np.isfinite(law.root).all()
    wanted = np.asarray(of.data.y, float)[:, 0] / CASES[case][1]
    log_m, mean, upper = exact(design, wanted)
    rng = np.random.default_rng(1)
    draws = mean + np.linalg.solve(upper, rng.normal(size=(49, NUM_DRAWS))).T
    log_likelihood = -0.5 * np.sum((wanted - draws @ design.T) ** 2, axis=1)
    log_ratio = jax.vmap(lambda weights: law.log_prior_ratio(as_layer(law, weights)))
    found = log_likelihood + np.asarray(log_ratio(jnp.asarray(draws, jnp.float32)), float)
    share = np.exp(log_m - found)
    error = share.std() / NUM_DRAWS**0.5
    assert abs(share.mean() - 1) < 4 * error + 2e-3
    assert np.abs(found - log_m).mean() < 1, "few jumps would be accepted"
    determinant = float(np.sum(np.log(np.diagonal(np.asarray(law.root, float)[0]))))
    planted = -0.5 * np.sum((wanted - design @ mean) ** 2) - 0.5 * np.sum(mean**2) - determinant
    assert case == "usual" or abs(planted - log_m) > 0.1


def test_jumps_between_laws_that_single_precision_does_not_know_are_refused() -> None:
    """The same networks are refused as start and as end, so that the posterior stays."""
    of, params, _ = problem("too much")
    target = VariableWidth(of.model, WidthPrior())
    assert np.isnan(regression(target, params, jnp.asarray([48]), of.data).root).any()
    point = Point(params, jnp.asarray([48]), target.log_likelihood(params, of.data))
    move = collapsed_birth(target, 0)
    after, info = jump(jax.random.key(0), point, of.data, target=target, move=move)
    assert not bool(info.is_accepted)
    assert not bool(info.is_finite)
    np.testing.assert_array_equal(after.params.network[0].kernel, params.network[0].kernel)


def as_layer(law: Regression, weights: Any) -> Layer:
    """An output layer from weights in units of their prior standard deviations."""
    scaled = law.stds[0] * weights
    return Layer(scaled[:-1, None], scaled[-1:])
