"""Ensembles of each kind, made by hand: nothing is fitted."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from credence.density.posterior import Posterior
from credence.ensembles.diagnostics.cost import Cost
from credence.ensembles.ensemble import Ensemble
from credence.ensembles.provenance import Provenance
from credence.models import MLP, Categorical, Gaussian, HierarchicalGamma, Normal

X = np.random.default_rng(0).normal(size=(7, 3)).astype(np.float32)


def make_ensemble(*, classes: int = 0, weights: Any = None, **changes: Any) -> Ensemble:
    """Two chains of three draws, nothing fitted."""
    rng = np.random.default_rng(1)
    network, y = MLP(max(classes, 1), hidden=(4,)), rng.normal(size=7)
    prior, likelihood = HierarchicalGamma(), Normal()
    if classes:
        prior, likelihood, y = Gaussian(), Categorical(), np.arange(7) % classes
    posterior = Posterior(network, prior, likelihood, (X, y))
    positions = rng.normal(size=(2, 3, posterior.num_weights))
    return Ensemble(
        model=posterior.model,
        params=jax.device_get(posterior.unravel(jnp.asarray(positions))),
        cost=Cost(70, 140, 1e6, {"sample": 1.5, "compile": 0.25}),
        provenance=Provenance("test", {"step": 0.1, "hidden": [4]}, 3, "abc"),
        num_features=3,
        num_targets=1,
        weights=weights,
        scalars={"acceptance_rate": rng.uniform(size=(2, 3))},
        **changes,
    )


ENSEMBLES = {
    "regression": {},
    "classification": {"classes": 3},
    "weighted": {"weights": np.array([[0.5, 0.5, 0.5], [0.5, -0.5, -0.5]])},
    "members": {"is_chain": False},
}
