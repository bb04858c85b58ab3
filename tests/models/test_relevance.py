"""Automatic relevance determination: its density by quadrature, and its draws."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats
from tools.exact import assert_mean

from credence.errors import InputError
from credence.models import MLP, HierarchicalGamma, Layer, Relevance, ResNet

NETWORK = MLP(1, (3,))
DEGREES = 3.0
PRIOR = Relevance(DEGREES)


def params() -> Any:
    rng = np.random.default_rng(0)
    shapes = (((2, 3), (3,)), ((3, 1), (1,)))
    return tuple(
        Layer(*(jnp.asarray(rng.normal(size=shape), jnp.float32) for shape in pair))
        for pair in shapes
    )


def by_quadrature(weights: Any, hyper: np.ndarray, degrees: float) -> float:
    """Return the log density with the relevance of every input integrated out numerically."""
    total = float(HierarchicalGamma().log_density(NETWORK, weights, jnp.asarray(hyper)))
    std = np.exp(-0.5 * hyper[0]) / 2**0.5
    for row in np.asarray(weights[0].kernel, float):

        def joint(log_relevance: float, row: np.ndarray = row) -> float:
            relevance = np.exp(log_relevance)
            law = stats.gamma(degrees / 2, scale=2 / degrees)
            of_row = stats.norm(scale=std / relevance**0.5).pdf(row).prod()
            return of_row * law.pdf(relevance) * relevance

        mean, _ = integrate.quad(joint, -30, 10, points=[-2, 0, 2], limit=400)
        total += np.log(mean) - stats.norm(scale=std).logpdf(row).sum()
    return total


def test_the_density_has_the_relevance_of_inputs_integrated_out() -> None:
    hyper = np.array([0.4, -0.3], np.float32)
    found = float(PRIOR.log_density(NETWORK, params(), jnp.asarray(hyper)))
    np.testing.assert_allclose(found, by_quadrature(params(), hyper, DEGREES), rtol=1e-5)
    other = by_quadrature(params(), hyper, 1.0)
    assert abs(found - other) > 0.1, "planted: of other degrees"


def test_draws_follow_the_law() -> None:
    """All weights of an input share its relevance, which those of the other do not."""

    def draw(key: jax.Array) -> Any:
        weights, hyper = PRIOR.sample(key, NETWORK, params())
        return weights[0].kernel * jnp.exp(0.5 * hyper[0]) * 2**0.5

    rows = np.asarray(jax.vmap(draw)(jax.random.split(jax.random.key(0), 20_000)), float)
    inside = np.abs(rows) < 1
    law = stats.t(DEGREES)
    for place in np.ndindex(2, 3):
        assert_mean(inside[:, *place].astype(float), law.cdf(1) - law.cdf(-1), 0.05)
    size = (rows**2).sum(axis=2) / 3
    of_size = stats.f(3, DEGREES).cdf(size)
    assert_mean((of_size[:, 0] < 0.5).astype(float), 0.5, 0.05)
    assert_mean(of_size[:, 0] - of_size[:, 1], 0.0, 0.05)
    assert_mean((of_size[:, 0] - 0.5) * (of_size[:, 1] - 0.5), 0.0, 0.05)


def test_only_dense_layers_have_a_first_one() -> None:
    image = jnp.zeros((1, 8, 8, 3))
    network = ResNet(3, 4, (1,), norm="group")
    template = network.init(jax.random.key(0), image)
    with pytest.raises(InputError, match="Relevance is a prior of an MLP"):
        PRIOR.init(network, template)
    with pytest.raises(InputError, match="degrees"):
        Relevance(0.0)
