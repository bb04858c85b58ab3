"""Gibbs updates of precisions: the joint prior of weights and precisions stays what it is."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree
from jaxtyping import PRNGKeyArray
from scipy import stats

from credence.density.data import Data
from credence.density.posterior import BayesianModel, flat_log_density
from credence.errors import InputError
from credence.kernels.base import Kernel
from credence.kernels.mcmc.gibbs import gibbs_precisions, with_gibbs
from credence.kernels.mcmc.mala import mala
from credence.models import MLP, Gaussian, HierarchicalGamma, Normal
from credence.models.networks.mlp import Layer

pytestmark = pytest.mark.usefixtures("float64")

NUM_CHAINS, SHAPE, RATE = 4000, 4.0, 2.0


def model(per: str) -> BayesianModel:
    prior = HierarchicalGamma(shape=SHAPE, rate=RATE, per=per)
    return BayesianModel(MLP(1, hidden=(3,)), prior, Normal(noise_std=1.0))


def no_data() -> Data:
    """Rows that do not count: the posterior is the prior."""
    return Data(jnp.ones((5, 2)), jnp.zeros((5, 1)), jnp.zeros(5))


def prior_draws(of: BayesianModel) -> Any:
    keys = jax.random.split(jax.random.key(0), NUM_CHAINS)
    return jax.vmap(lambda key: ravel_pytree(of.sample_prior(key, no_data()))[0])(keys)


def scores(of: BayesianModel, positions: Any) -> dict[str, float]:
    """How far draws are from the prior: precisions' law, and weights scaled by them."""
    params = jax.vmap(lambda position: of.unravel(position, no_data()))(positions)
    precision = np.exp(params.prior)
    uniform = stats.gamma.cdf(precision, SHAPE, scale=1 / RATE)
    stds = jax.vmap(lambda p: of.prior.stds(of.network, p.network, p.prior))(params)
    z = jax.tree.map(
        lambda w, s: w / s.reshape(s.shape + (1,) * (w.ndim - s.ndim)), params.network, stds
    )
    squares = np.concatenate([np.ravel(leaf) ** 2 for leaf in jax.tree.leaves(z)])
    count = squares.size
    return {
        "precision": abs(uniform.mean(0) - 0.5).max() * (12 * len(uniform)) ** 0.5,
        "weights": abs(squares.sum() - count) / (2 * count) ** 0.5,
    }


@pytest.mark.parametrize("per", ["array", "layer", "input", "all"])
def test_prior_is_invariant(per: str):
    of = model(per)
    kernel = gibbs_precisions(flat_log_density(of), model=of)

    def run(key: PRNGKeyArray, position: Any) -> Any:
        return kernel.step(key, kernel.init(position, no_data()), no_data())[0].position

    starts = prior_draws(of)
    ends = jax.vmap(run)(jax.random.split(jax.random.key(1), NUM_CHAINS), starts)
    assert max(scores(of, ends).values()) < 4.5
    assert np.mean(starts == ends) > 0.5, "the weights stay"
    start, end = (np.asarray(of.unravel(p, no_data()).prior) for p in (starts[0], ends[0]))
    assert not np.any(start == end)


def test_planted_wrong_conditional_is_caught():
    """n in place of n/2 in the shape."""
    of = model("layer")

    class Wrong(HierarchicalGamma):
        def conditional(self, network: Any, params: Any) -> Any:
            shape, rate = super().conditional(network, params)
            return 2 * shape - self.shape, rate

    wrong = BayesianModel(of.network, Wrong(shape=SHAPE, rate=RATE), of.likelihood)
    kernel = gibbs_precisions(flat_log_density(wrong), model=wrong)
    ends = jax.vmap(
        lambda key, p: kernel.step(key, kernel.init(p, no_data()), no_data())[0].position
    )(jax.random.split(jax.random.key(1), NUM_CHAINS), prior_draws(of))
    assert max(scores(of, ends).values()) > 8


@pytest.mark.slow
def test_after_another_kernel_the_prior_is_invariant():
    of = model("layer")
    build: Any = with_gibbs
    size = len(prior_draws(of)[0])
    kernel = build(
        flat_log_density(of), kernel=mala, model=of, step_size=0.1, inverse_mass=jnp.ones(size)
    )

    def run(key: PRNGKeyArray, position: Any) -> Any:
        state = kernel.init(position, no_data())
        keys = jax.random.split(key, 5)
        state, info = jax.lax.scan(lambda s, k: kernel.step(k, s, no_data()), state, keys)
        fresh = kernel.init(state.position, no_data())
        return state.position, state.log_density - fresh.log_density, info.acceptance_rate

    ends, stale, rate = jax.vmap(run)(
        jax.random.split(jax.random.key(2), NUM_CHAINS), prior_draws(of)
    )
    assert max(scores(of, ends).values()) < 4.5
    np.testing.assert_allclose(stale, 0, atol=1e-9)
    assert rate.mean() > 0.5


def test_the_work_of_another_gradient_is_counted_and_a_refused_draw_told() -> None:
    of = model("layer")
    build: Any = with_gibbs
    position = prior_draws(of)[0]
    settings = {"step_size": 0.1, "inverse_mass": jnp.ones(len(position))}
    alone = mala(flat_log_density(of), **settings)
    kernel = build(flat_log_density(of), kernel=mala, model=of, **settings)
    key, state = jax.random.key(0), alone.init(position, no_data())
    _, info = alone.step(key, state, no_data())
    _, both = kernel.step(key, state, no_data())
    assert both.num_gradients == info.num_gradients + 1
    assert both.is_finite


def test_a_state_that_keeps_no_position_is_refused():
    """Nothing could change weights that are hidden in another state."""
    of = model("layer")
    build: Any = with_gibbs
    kernel = build(flat_log_density(of), kernel=nested, model=of)
    state = kernel.init(prior_draws(of)[0], no_data())
    with pytest.raises(InputError, match="keeps no position"):
        kernel.step(jax.random.key(0), state, no_data())


def nested(log_density: Any) -> Kernel:
    """Stays where it is, and keeps the position in a state within its own."""
    return Kernel(lambda position, data: Nested(position), lambda key, state, data: (state, None))


class Nested(NamedTuple):
    """A state that names its position otherwise."""

    inner: Any

    @property
    def position(self) -> Any:
        return self.inner


def test_prior_without_precisions_is_refused():
    plain = BayesianModel(MLP(1), Gaussian(), Normal())
    with pytest.raises(InputError, match="hierarchical"):
        gibbs_precisions(flat_log_density(plain), model=plain)


def test_whole_numbers_are_no_reason_to_round() -> None:
    network, weights = (
        MLP(1, (2,)),
        (Layer(jnp.ones((1, 2)), jnp.ones(2)), Layer(jnp.ones((2, 1)), jnp.ones(1))),
    )
    found = HierarchicalGamma(1, 1).conditional(network, weights)
    exact = HierarchicalGamma(1.0, 1.0).conditional(network, weights)
    jax.tree.map(np.testing.assert_array_equal, found, exact)
    np.testing.assert_allclose(found[0], [3.0, 2.5])
