"""Variational inference, MC dropout and SWAG from end to end, on a curve and on three classes."""

from dataclasses import asdict
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from credence.density.posterior import Posterior
from credence.ensembles.ensemble import Ensemble
from credence.methods import METHODS, resolve
from credence.methods.approximate.mc_dropout import MCDropout
from credence.methods.approximate.swag import SWAG
from credence.methods.approximate.variational import Variational
from credence.methods.base import Method
from credence.methods.training import Training
from credence.models import MLP, Categorical, Gaussian, Normal

TRAINING = Training(max_epochs=300)
LIST: list[Method] = [
    Variational(num_draws=100, num_steps=1500, training=TRAINING),
    Variational(num_draws=100, num_steps=1500, rank=3, training=TRAINING),
    MCDropout(num_draws=100, num_steps=1500),
    SWAG(num_draws=100, num_snapshots=40, rank=10, training=TRAINING),
]
NAMES = ("variational", "low_rank", "mc_dropout", "swag")
SLOW = ("variational", "low_rank")
methods = pytest.mark.parametrize(
    "method",
    [
        pytest.param(method, id=name, marks=pytest.mark.slow if name in SLOW else ())
        for name, method in zip(NAMES, LIST, strict=True)
    ],
)


def curve() -> tuple[Posterior, Any, Any]:
    """Noise unknown; a posterior, and fresh inputs and targets."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, size=(160, 1))
    y = np.sin(2 * x) + 0.2 * rng.normal(size=x.shape)
    posterior = Posterior(MLP(1, hidden=(20,)), Gaussian(), Normal(), (x[:80], y[:80]))
    return posterior, jnp.asarray(x[80:]), jnp.asarray(y[80:])


def three_classes() -> tuple[Posterior, Any, Any]:
    """Three clouds that overlap a little."""
    rng = np.random.default_rng(1)
    y = np.arange(180) % 3
    angle = 2 * np.pi * y / 3
    x = 1.5 * np.column_stack([np.cos(angle), np.sin(angle)]) + 0.7 * rng.normal(size=(180, 2))
    posterior = Posterior(MLP(3, hidden=(10,)), Gaussian(), Categorical(), (x[:90], y[:90]))
    return posterior, jnp.asarray(x[90:]), jnp.asarray(y[90:])


@pytest.mark.parametrize("problem", [curve, pytest.param(three_classes, marks=pytest.mark.slow)])
@methods
def test_end_to_end(method: Method, problem: Any, tmp_path: Any):
    posterior, x, y = problem()
    ensemble = method.run(0, posterior, folder=tmp_path)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(ensemble.params))
    assert (ensemble.num_chains, ensemble.num_draws, ensemble.is_chain) == (1, 100, False)
    assert ensemble.provenance.stopped == "finished"
    assert ensemble.cost.gradient_evaluations > 0

    predictive = ensemble.predictive(x)
    found, prior = float(predictive.log_prob(y).mean()), prior_score(posterior, x, y)
    print(f"{method.name} {problem.__name__}: {found:.3f} nats per point, prior {prior:.3f}")
    assert found > prior + 0.5
    assert len(np.unique(np.asarray(predictive.outputs)[:, 0, 0])) > 20
    if problem is three_classes:
        assert np.mean(np.argmax(predictive.mean(), axis=1) == y) > 0.85
    else:
        assert np.sqrt(np.mean((predictive.mean() - y) ** 2)) < 0.6 * np.std(y)  # dropout: .5

    again = method.run(0, posterior, folder=tmp_path)
    jax.tree.map(np.testing.assert_array_equal, again.params, ensemble.params)


def prior_score(posterior: Posterior, x: Any, y: Any) -> float:
    """Mean log predictive density of draws from the prior, in nats per point."""
    keys = jax.random.split(jax.random.key(0), 500)
    params = jax.vmap(posterior.model.sample_prior, (0, None))(keys, posterior.data)
    outputs = jax.vmap(posterior.model.network.apply, (0, None))(params.network, x)
    log_prob = jax.vmap(posterior.model.likelihood.log_prob, (0, 0, None))
    values = log_prob(params.likelihood, outputs, y)
    return float(jnp.mean(jax.nn.logsumexp(values, axis=0)) - np.log(500))


@pytest.mark.parametrize("kind", [Variational, MCDropout, SWAG])
def test_registered_with_settings_that_can_be_read_back(kind: type[Method]):
    assert METHODS[kind.name] is kind
    assert "approximate" in kind.summary
    method, _ = resolve(kind.name, curve()[0], num_draws=7)
    assert method == kind(num_draws=7)  # type: ignore[call-arg]
    assert kind.from_settings(asdict(method)) == method


def test_an_ensemble_survives_its_file(tmp_path: Any):
    posterior, x, _ = curve()
    ensemble = LIST[0].run(0, posterior)
    ensemble.save(tmp_path / "ensemble")
    again = Ensemble.load(tmp_path / "ensemble")
    np.testing.assert_allclose(again.outputs(x), ensemble.outputs(x), rtol=1e-6)
