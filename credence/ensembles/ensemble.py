"""What every method returns: a weighted ensemble of networks, with its cost and provenance."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from credence.density.posterior import BayesianModel, Params
from credence.ensembles.arviz import Groups, arviz_groups
from credence.ensembles.diagnostics.cost import Cost
from credence.ensembles.predictive import Predictive
from credence.ensembles.predictor import Inputs, Predictor
from credence.ensembles.provenance import Provenance
from credence.ensembles.saved import Given, Parts, num_predicted, read_ensemble, write_ensemble
from credence.environment import require_own_process
from credence.errors import InputError
from credence.models.likelihoods.base import Likelihood
from credence.models.likelihoods.labels import Classification
from credence.models.networks.mlp import Network
from credence.models.priors import Prior


@dataclass(frozen=True)
class Ensemble(Predictor):
    """Networks and how much each counts.

    Args:
        model: network, prior and likelihood.
        params: leaves (chain, draw, ...). Members of a deep ensemble are draws of one chain.
        cost, provenance: what it took and where it comes from.
        is_chain: whether draws form Markov chains, so that R-hat and ESS mean something.
        weights: (chain, draw), sum one, possibly signed; None for equal ones.
        scalars: per-draw numbers (chain, draw) by name: acceptance_rate, is_divergent, ...
        num_features, num_targets: of the data it was fitted to.
    """

    document: ClassVar[str] = "ensemble.json"

    model: BayesianModel
    params: Params
    cost: Cost
    provenance: Provenance
    num_features: int | tuple[int, ...]
    num_targets: int
    is_chain: bool = True
    weights: Float[np.ndarray, "chain draw"] | None = None
    scalars: Mapping[str, Float[np.ndarray, "chain draw"]] = field(default_factory=dict)

    @property
    def num_chains(self) -> int:
        """Number of chains."""
        return jax.tree.leaves(self.params)[0].shape[0]

    @property
    def num_draws(self) -> int:
        """Draws per chain."""
        return jax.tree.leaves(self.params)[0].shape[1]

    @property
    def is_equally_weighted(self) -> bool:
        """Whether all members count the same."""
        return self.weights is None

    @property
    def weights_worth(self) -> float:
        """Members of equal weight that are worth as much: (sum w)^2 / sum w^2 (Kish, 1965)."""
        if self.weights is None:
            return super().weights_worth
        weights = np.asarray(self.weights, float)
        return float(np.sum(weights) ** 2 / np.sum(weights**2))

    @property
    def num_predicted(self) -> int:
        """Targets, or classes, that are predicted for every row; known from shapes alone."""
        return num_predicted(self.model, self.num_features, self.num_targets)

    @property
    def num_weights(self) -> int:
        """Parameters of a network, those of its noise and prior included."""
        return sum(int(np.prod(leaf.shape[2:])) for leaf in jax.tree.leaves(self.params))

    @property
    def is_classifier(self) -> bool:
        """Whether it predicts classes."""
        return isinstance(self.model.likelihood, Classification)

    def outputs(self, x: Inputs) -> Float[Array, "member point output"]:
        """The network's outputs of every member.

        Raises:
            InputError: where x has other features than the data it was fitted to.
        """
        require_own_process()
        features = (
            self.num_features if isinstance(self.num_features, tuple) else (self.num_features,)
        )
        if tuple(x.shape[1:]) != features:
            hint = " Of one row: x[None]." if tuple(x.shape) == features else ""
            raise InputError(
                f"x has shape {x.shape}, but the fit saw rows of shape {features}.{hint}"
            )
        members = jax.tree.map(_flatten, self.params.network)
        return _outputs(members, jnp.asarray(x), network=self.model.network)

    def predictive(self, x: Inputs) -> Predictive:
        """Predictions at the rows of x, all members in memory: see `over_batches` for many rows."""
        weights = (
            np.full(self.num_members, 1 / self.num_members)
            if self.weights is None
            else self.weights.reshape(-1)
        )
        outputs = self.outputs(x)
        return Predictive(
            self.model.likelihood,
            outputs,
            jax.tree.map(_flatten, self.params.likelihood),
            jnp.asarray(weights, outputs.dtype),
        )

    def functions(self, x: Inputs) -> Float[np.ndarray, "chain draw point target"]:
        """Noise-free predictions of every draw: locations, or class probabilities."""
        means = np.asarray(self.predictive(x).member_means())
        return means.reshape(self.num_chains, self.num_draws, *means.shape[1:])

    @property
    def function_weights(self) -> Float[np.ndarray, "chain draw"] | None:
        """How much each of `functions` counts, sum one, possibly signed; None for equally."""
        return self.weights

    def monitored(self, x: Inputs) -> Float[np.ndarray, "chain draw point quantity"]:
        """What convergence is judged by: every noise-free prediction, and the log of its noise."""
        found = self.predictive(x).monitored()
        return np.asarray(found).reshape(self.num_chains, self.num_draws, *found.shape[1:])

    def subset(self, is_there: Bool[np.ndarray, "chain draw"], *, is_chain: bool) -> "Ensemble":
        """Some of the draws as an ensemble of their own, in one row.

        Args:
            is_there: which draws; at least one.
            is_chain: whether they are a Markov chain: draws in a row, of one chain.
        Raises:
            InputError: where there is no such draw.
        """
        if not is_there.any():
            raise InputError("No draw is like that: an ensemble has at least one.")
        chosen = lambda leaf: np.asarray(leaf)[is_there][None]  # noqa: E731
        weights = None if self.weights is None else chosen(self.weights)
        return replace(
            self,
            params=jax.tree.map(chosen, self.params),
            weights=None if weights is None else weights / weights.sum(),
            scalars={name: chosen(values) for name, values in self.scalars.items()},
            is_chain=self.is_chain and is_chain,
        )

    def __repr__(self) -> str:
        return (
            f"Ensemble({self.num_chains} chains x {self.num_draws} draws, "
            f"{self.num_weights:,} weights, "
            f"{self.provenance.method}, {self.cost.total_seconds:.1f} s)"
        )

    def arviz_groups(self, x: Inputs | None = None, y: Any = None, *, seed: int = 0) -> Groups:
        """Collect parameters, statistics and predictions; see `to_arviz`."""
        return arviz_groups(self, x, y, seed=seed)

    def save(self, folder: str | Path) -> None:
        """Write folder/ensemble.npz (NumPy's arrays) and folder/ensemble.json.

        Raises:
            StorageError: where the folder cannot be written or the disk is full.
        """
        names = Parts.__required_keys__
        write_ensemble(Path(folder), Parts(**{name: getattr(self, name) for name in names}))

    @classmethod
    def load(
        cls,
        folder: str | Path,
        network: Network | None = None,
        *,
        prior: Prior | None = None,
        likelihood: Likelihood | None = None,
    ) -> "Ensemble":
        """Read what `save` wrote; nothing in the files is executed.

        Args:
            folder: as given to `save`.
            network, prior, likelihood: the same again, where they are not Credence's own.
        Raises:
            StorageError: where files are missing, broken or of another version.
            InputError: where one of them is needed but not given, or is another one.
        """
        return cls(**read_ensemble(Path(folder), Given(network, prior, likelihood)))


@partial(jax.jit, static_argnames="network")
def _outputs(
    members: Any, x: Float[Array, "point *feature"], *, network: Network
) -> Float[Array, "member point output"]:
    abreast = 16 if x.ndim == 2 else 1  # convolutions keep much more than their outputs
    return jax.lax.map(lambda params: network.apply(params, x), members, batch_size=abreast)


def _flatten(leaf: Array | np.ndarray) -> Array | np.ndarray:
    return jnp.reshape(leaf, (-1, *leaf.shape[2:]))
