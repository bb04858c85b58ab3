"""Moments of clouds: weights of any scale, and of no scale at all."""

from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from credence.density.posterior import Posterior
from credence.ensembles.ensemble import Ensemble
from credence.methods.smc import clouds
from credence.methods.smc.clouds import Cloud, Memory
from credence.methods.smc.method import SMC
from credence.methods.smc.mutation import Mutation
from credence.methods.smc.tempering import Tempering
from credence.models import MLP, Normal
from credence.models.networks.mlp import Layer
from credence.models.priors import GaussianPrior

SCALES = 10.0 ** -np.arange(10)


def weighed(position: np.ndarray, log_end: np.ndarray) -> Memory:
    """A cloud weighed to the end of its bridge at once; before, its unit was 3."""
    mutation = Mutation(ess_target=0.1)
    ones = jnp.ones(position.shape[-1], jnp.float32)
    arrays = (jnp.asarray(leaf, jnp.float32) for leaf in (position, 0 * log_end, log_end))
    memory = Tempering(mutation, len(position)).start(
        jax.random.key(0), Cloud(*arrays), mutation.first(0 * ones, 3 * ones)
    )
    assert clouds.is_finished(memory)
    return memory


@cache
def stds() -> tuple[np.ndarray, float]:
    """Standard deviations of the weights over their scales, and the errors of these ratios.

    The weights are normal, and the likelihood says of the first that it is N(0, 1/2) then.
    """
    runs, particles = 4, 10_000
    z = np.random.default_rng(0).normal(size=(runs, particles, len(SCALES)))
    found = weighed(SCALES * z, -0.5 * z[..., 0] ** 2).tuning.std
    least_ess = 0.8 * runs * particles  # (sum w)^2 / sum w^2 with the weights' moments: .87
    return np.asarray(found, float) / SCALES, (2 * least_ess) ** -0.5


def worst(found: np.ndarray, error: float) -> float:
    """The worst error of the ratios, in standard errors."""
    exact = np.where(np.arange(len(SCALES)) == 0, 0.5**0.5, 1.0)
    return float(np.max(np.abs(found / exact - 1)) / error)


def test_standard_deviations_of_any_scale() -> None:
    found, error = stds()
    print(found)
    assert worst(found, error) < 4.5
    floored = np.sqrt((SCALES * found) ** 2 + 1e-12) / SCALES
    assert worst(floored, error) > 8, "planted: none below 1e-6"


def test_weights_that_are_the_same_in_all_particles_keep_their_unit() -> None:
    """Rounding of their mean is no spread, and one of the weights is far too small for a square."""
    position = np.random.default_rng(0).normal(size=(2, 50, 4))
    position[..., 1:] *= 0, 0, 1e-25
    position[..., 1] += 0.1
    std = np.asarray(weighed(position, np.zeros((2, 50))).tuning.std)
    assert std[0] == pytest.approx(1, rel=0.3)
    np.testing.assert_array_equal(std[1:], 3)


@dataclass(frozen=True)
class Scaled(GaussianPrior):
    """Input k has a weight of standard deviation 2^(-step k)."""

    step: int

    def stds(self, network: Any, params: Any) -> Any:
        ((kernel, _),) = params
        powers = jnp.arange(kernel.shape[0], dtype=kernel.dtype)[:, None]
        return (Layer(jnp.exp2(-self.step * powers), jnp.asarray(1.0)),)


def regression(step: int) -> Ensemble:
    """The same regression, whatever the unit of its inputs: numbers scale by powers of two,
    exactly."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20, 5)).astype(np.float32)
    y = x @ rng.normal(size=5) + 0.3 * rng.normal(size=20)
    units = (2.0 ** (step * np.arange(5))).astype(np.float32)
    posterior = Posterior(MLP(1, ()), Scaled(step), Normal(0.3), (units * x, y))
    return SMC(num_particles=50, num_runs=2).run(0, posterior)


def in_units(ensemble: Ensemble, step: int) -> np.ndarray:
    """The weights of the inputs in units of their prior standard deviations."""
    kernel = np.asarray(ensemble.params.network[0].kernel, float)[..., 0]
    return kernel * 2.0 ** (step * np.arange(5))


def test_steps_do_not_depend_on_the_scale_of_a_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five weights whose prior standard deviations are 1, or fall to 2^-20 = 1e-6."""
    unit, small = regression(0), regression(5)
    np.testing.assert_allclose(in_units(small, 5), in_units(unit, 0), rtol=1e-3, atol=1e-3)
    assert small.cost.flops == unit.cost.flops

    def floored(position: Any, weights: Any, mean: Any, before: Any) -> Any:
        squares = jnp.einsum("rp,rpw->rw", weights, (position - mean) ** 2)
        return jnp.sqrt(jnp.mean(squares, axis=0) + 1e-12)

    monkeypatch.setattr(clouds, "cloud_std", floored)
    clouds.weighed.clear_cache()
    planted = regression(5).cost.flops / unit.cost.flops
    clouds.weighed.clear_cache()
    print(f"planted: {planted:.1f} times the work")
    assert planted > 1.5
