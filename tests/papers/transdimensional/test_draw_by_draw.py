"""Networks one at a time: their scores and densities, against the posterior's own."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from credence_papers.transdimensional.draw_by_draw import draw_by_draw, shown_chains
from credence_papers.transdimensional.tables import XOR


def test_chains_shown_are_spread() -> None:
    assert shown_chains(16) == [0, 5, 10, 15]
    assert shown_chains(2) == [0, 1]


def test_draws_have_the_density_and_the_accuracy_that_the_posterior_gives_them() -> None:
    """The posterior's density is of the widest network: a zero costs it log(2 pi) / 2."""
    problem, effort = XOR.problems[0], XOR.efforts["smoke"]
    arrays = problem.data(0)
    posterior = problem.posterior(arrays)
    ensemble = problem.method(effort).run(0, posterior)
    found = draw_by_draw(ensemble, arrays)
    assert found["every"] == 1
    assert np.shape(found["single"]) == np.shape(found["log_density"]) == (2, 6)
    for chain, draw in ((0, 0), (0, 3), (1, 5)):
        one: Any = jax.tree.map(lambda leaf: jnp.asarray(leaf[chain, draw]), ensemble.params)  # noqa: B023
        weights = ravel_pytree(one.network)[0]
        whole = posterior.log_density(ravel_pytree(one)[0], posterior.data)
        expected = whole + 0.5 * np.log(2 * np.pi) * np.sum(np.asarray(weights) == 0)
        assert found["log_density"][chain][draw] == pytest.approx(float(expected), abs=1e-3)
        p = ensemble.functions(arrays.x_test)[chain, draw]
        assert found["single"][chain][draw] == np.mean(p.argmax(axis=1) == arrays.y_test)
