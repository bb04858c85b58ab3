"""What every method returns: a weighted ensemble of networks, with its cost and provenance."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from credence.density.posterior import MOST_IMAGES, BayesianModel, Params
from credence.ensembles.arviz import arviz_groups, as_arviz
from credence.ensembles.diagnostics.cost import Cost
from credence.ensembles.predictive import Predictions, Predictive, concatenate
from credence.ensembles.provenance import Provenance
from credence.ensembles.saved import Parts, num_predicted, read_ensemble, write_ensemble
from credence.environment import require_own_process
from credence.errors import InputError
from credence.models.networks.mlp import Network

Inputs = Float[Array | np.ndarray, "point *feature"]


@dataclass(frozen=True)
class Ensemble:
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
    def families(self) -> Float[np.ndarray, "chain draw"] | None:
        """The number of the first particle that each descends from, from `smc`; None for chains."""
        return self.scalars.get("family")

    @property
    def num_members(self) -> int:
        """Networks in all."""
        return self.num_chains * self.num_draws

    @property
    def num_predicted(self) -> int:
        """Targets, or classes, that are predicted for every row; known from shapes alone."""
        return num_predicted(self.model, self.num_features, self.num_targets)

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
            raise InputError(f"x has shape {x.shape}, but the fit saw rows of shape {features}.")
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

    def over_batches(
        self,
        x: Inputs,
        summarise: Callable[[Predictions, slice], dict[str, Any]],
        batch_size: int | None = None,
    ) -> dict[str, np.ndarray]:
        """Summaries of the predictive at every row, in bounded memory at any number of rows.

        Args:
            x: inputs, any number of rows.
            summarise: (predictive of a batch, its rows) -> arrays (point, ...), by name.
            batch_size: rows at a time; see `batch_rows` for the default. The last batch is filled
                up with copies, so one shape is compiled.
        Raises:
            InputError: for no rows at all, or a batch_size below 1.
        """
        x = np.asarray(x)
        if len(x) == 0 or (batch_size is not None and batch_size < 1):
            raise InputError(
                f"Needs at least one row at a time, got {len(x)} rows and batch_size={batch_size}."
            )
        size = batch_size or batch_rows(len(x), self.num_members)
        if batch_size is None and x.ndim > 2:
            size = min(size, MOST_IMAGES)
        parts = []
        for start in range(0, len(x), size):
            rows = slice(start, min(start + size, len(x)))
            missing = size - (rows.stop - rows.start)
            batch = np.pad(x[rows], [(0, missing)] + [(0, 0)] * (x.ndim - 1), mode="edge")
            summary = summarise(self.predictive(batch), rows)
            parts.append(
                {name: np.asarray(value)[: size - missing] for name, value in summary.items()}
            )
        return concatenate(parts)

    def functions(self, x: Inputs) -> Float[np.ndarray, "chain draw point target"]:
        """Noise-free predictions of every draw: locations, or class probabilities."""
        means = np.asarray(self.predictive(x).member_means())
        return means.reshape(self.num_chains, self.num_draws, *means.shape[1:])

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
        weights = sum(int(np.prod(leaf.shape[2:])) for leaf in jax.tree.leaves(self.params))
        return (
            f"Ensemble({self.num_chains} chains x {self.num_draws} draws, {weights:,} weights, "
            f"{self.provenance.method}, {self.cost.total_seconds:.1f} s)"
        )

    def to_arviz(self, x: Inputs | None = None, y: Any = None, *, seed: int = 0) -> Any:
        """The draws for ArviZ: InferenceData before ArviZ 1, a DataTree from then on.

        Args:
            x, y: data, where wanted. x adds the group `posterior_predictive`, a draw of the targets
                from every member; x and y add `log_likelihood`, in nats and joint over several
                targets, and `observed_data`, so that `arviz.loo` works. The variable is called "y";
                labels are numbers.
            seed: of the posterior predictive draws.
        Raises:
            InputError: for y without x, or where they do not fit together.
        ArviZ counts all draws equally; `weights`, where there are any, become the sample statistic
        "weight".
        """
        return as_arviz(arviz_groups(self, x, y, seed=seed))

    def save(self, folder: str | Path) -> None:
        """Write folder/ensemble.npz (NumPy's arrays) and folder/ensemble.json.

        Raises:
            StorageError: where the folder cannot be written or the disk is full.
        """
        names = Parts.__required_keys__
        write_ensemble(Path(folder), Parts(**{name: getattr(self, name) for name in names}))

    @classmethod
    def load(cls, folder: str | Path, network: Network | None = None) -> "Ensemble":
        """Read what `save` wrote; nothing in the files is executed.

        Args:
            folder: as given to `save`.
            network: the same network again, where it is not one of Credence's own.
        Raises:
            StorageError: where files are missing, broken or of another version.
            InputError: where the network is needed but not given, or is another one.
        """
        require_own_process()
        return cls(**read_ensemble(Path(folder), network))


@partial(jax.jit, static_argnames="network")
def _outputs(
    members: Any, x: Float[Array, "point *feature"], *, network: Network
) -> Float[Array, "member point output"]:
    abreast = 16 if x.ndim == 2 else 1  # convolutions keep much more than their outputs
    return jax.lax.map(lambda params: network.apply(params, x), members, batch_size=abreast)


def batch_rows(num_points: int, num_members: int) -> int:
    """Rows at a time so that members x rows stays near 2^20, in powers of two from 64 on.

    Few shapes, so that tables of similar length share compiled programs; and whole vectors, so that
    a row's prediction does not depend on where in the batch it stands.
    """
    most = max(64, 2 ** int(np.log2(2**20 / num_members)))
    return min(most, max(64, 2 ** int(np.ceil(np.log2(num_points)))))


def _flatten(leaf: Array | np.ndarray) -> Array | np.ndarray:
    return jnp.reshape(leaf, (-1, *leaf.shape[2:]))
