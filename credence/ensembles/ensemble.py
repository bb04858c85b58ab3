"""What every method returns: a weighted ensemble of networks, with its cost and provenance."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypedDict

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Shaped

from credence.density.posterior import MOST_IMAGES, BayesianModel, Data, Params, shapes
from credence.ensembles.diagnostics.cost import Cost
from credence.ensembles.predictive import Predictive, concatenate
from credence.environment import require_own_process
from credence.errors import InputError, plural
from credence.models.likelihoods import Classification
from credence.models.networks.mlp import Network
from credence.models.saved import from_spec, network_from_spec, to_spec
from credence.netcdf import read_netcdf
from credence.storage import (
    file_sha256,
    read_arrays,
    read_json,
    reading,
    require_sha256,
    write_arrays,
    write_json,
)

Inputs = Float[Array | np.ndarray, "point *feature"]

STATISTIC = "stat."
"""How the names of scalars begin among the arrays of a file."""


@dataclass(frozen=True)
class Provenance:
    """Where an ensemble comes from: enough to make it again."""

    method: str
    settings: dict[str, Any]
    seed: int | None
    data_fingerprint: str
    stopped: str = "finished"
    """"finished", or why there are fewer draws than asked for: "time" or "interrupt"."""
    versions: dict[str, str] = field(default_factory=lambda: package_versions())
    created: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    found: dict[str, Any] = field(default_factory=dict)
    """What the run chose or noted for itself; ready for JSON."""


class EnsembleDocument(TypedDict):
    """What ensemble.json holds."""

    arrays_sha256: str
    network: dict[str, Any]
    prior: dict[str, Any]
    likelihood: dict[str, Any]
    num_features: int | list[int]
    num_targets: int
    is_chain: bool
    cost: Cost
    provenance: Provenance


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
        """Which particles of a run descend from the same one, from `smc`; None for chains."""
        return self.scalars.get("family")

    @property
    def num_members(self) -> int:
        """Networks in all."""
        return self.num_chains * self.num_draws

    @property
    def num_predicted(self) -> int:
        """Targets, or classes, that are predicted for every row; known from shapes alone."""
        params, outputs = shapes(self.model, _one_row(self.num_features, self.num_targets))
        return jax.eval_shape(self.model.likelihood.mean, params.likelihood, outputs).shape[-1]

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
        summarise: Callable[[Predictive, slice], dict[str, Any]],
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
        return as_arviz(self.arviz_groups(x, y, seed=seed))

    def arviz_groups(
        self, x: Inputs | None = None, y: Any = None, *, seed: int = 0
    ) -> dict[str, dict[str, np.ndarray]]:
        """What `to_arviz` holds: arrays by name, by group."""
        stats = {name: np.asarray(value) for name, value in self.scalars.items()}
        if self.weights is not None:
            stats["weight"] = np.asarray(self.weights)
        groups = {"posterior": named_leaves(self.params), "sample_stats": stats}
        if x is None and y is not None:
            raise InputError("to_arviz got y without x: pass the inputs of these targets as well.")
        if x is not None:
            groups["posterior_predictive"] = {"y": self._predictive_draws(x, seed)}
        if y is not None:
            y = self._targets(x, y)
            groups["log_likelihood"] = {"y": self._log_likelihood(x, y)}
            groups["observed_data"] = {"y": _without_single(y)}
        return groups

    def _predictive_draws(
        self, x: Any, seed: int
    ) -> Shaped[np.ndarray, "chain draw point *target"]:
        key = jax.random.key(seed)

        def draws(predictive: Predictive, rows: slice) -> dict[str, Any]:
            members = predictive.member_samples(jax.random.fold_in(key, rows.start))
            return {"y": np.moveaxis(np.asarray(members), 0, 1)}

        return _without_single(self._by_chain(self.over_batches(x, draws)["y"]))

    def _log_likelihood(self, x: Any, y: np.ndarray) -> Float[np.ndarray, "chain draw point"]:
        def log_probs(predictive: Predictive, rows: slice) -> dict[str, Any]:
            size = predictive.outputs.shape[1]
            truth = jnp.asarray(np.resize(y[rows], (size, *y.shape[1:])))
            return {"log_prob": predictive.member_log_probs(truth).T}

        return self._by_chain(self.over_batches(x, log_probs)["log_prob"])

    def _by_chain(self, values: np.ndarray) -> np.ndarray:
        """(point, member, ...) as (chain, draw, point, ...)."""
        values = np.moveaxis(values, 0, 1)
        return values.reshape(self.num_chains, self.num_draws, *values.shape[1:])

    def _targets(self, x: Any, y: Any) -> np.ndarray:
        """The targets of the rows of x, as the likelihood wants them.

        Raises:
            InputError: where there are more or fewer of them than rows, or than fitted targets.
        """
        y = self.model.likelihood.checked_targets(y)
        found = y.shape[1] if y.ndim == 2 else 1
        if len(y) != len(x) or found != self.num_targets:
            raise InputError(
                f"y has {len(y)} rows of {plural(found, 'target')}, but x has {len(x)} rows and "
                f"the fit saw {plural(self.num_targets, 'target')}: they must match row by row."
            )
        return y

    def save(self, folder: str | Path) -> None:
        """Write folder/ensemble.npz (NumPy's arrays) and folder/ensemble.json.

        Raises:
            StorageError: where the folder cannot be written or the disk is full.
        """
        folder = Path(folder)
        arrays = named_leaves(self.params)
        arrays |= {f"{STATISTIC}{name}": value for name, value in self.scalars.items()}
        if self.weights is not None:
            arrays["weights"] = self.weights
        write_arrays(folder / "ensemble.npz", arrays)
        document = {
            "arrays_sha256": file_sha256(folder / "ensemble.npz"),
            "network": to_spec(self.model.network),
            "prior": to_spec(self.model.prior),
            "likelihood": to_spec(self.model.likelihood),
            "num_features": self.num_features,
            "num_targets": self.num_targets,
            "is_chain": self.is_chain,
            "cost": self.cost.to_dict(),
            "provenance": asdict(self.provenance),
        }
        write_json(folder / "ensemble.json", document)

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
        folder = Path(folder)
        path = folder / "ensemble.json"
        document = read_json(path, EnsembleDocument)
        arrays = _read_arrays(folder, document["arrays_sha256"])
        features = document["num_features"]
        features = tuple(features) if isinstance(features, list) else features
        with reading(path, passes=(InputError,)):
            model = BayesianModel(
                network_from_spec(document["network"], network),
                from_spec(document["prior"]),
                from_spec(document["likelihood"]),
            )
            if network is None:
                _check_layers(model.network, arrays)
        with reading(path, passes=() if network is None else (InputError,)):
            params = _params(arrays, model, features, document["num_targets"])
            ensemble = cls(
                model=model,
                params=params,
                cost=document["cost"],
                provenance=document["provenance"],
                num_features=features,
                num_targets=document["num_targets"],
                is_chain=document["is_chain"],
                weights=arrays.get("weights"),
                scalars={
                    name.removeprefix(STATISTIC): values
                    for name, values in arrays.items()
                    if name.startswith(STATISTIC)
                },
            )
            is_regression = not isinstance(model.likelihood, Classification)
            if is_regression and ensemble.num_predicted != ensemble.num_targets:
                raise ValueError(f"{ensemble.num_predicted} targets are predicted")
        return ensemble


def as_arviz(groups: dict[str, dict[str, np.ndarray]]) -> Any:
    """InferenceData of ArviZ before 1, or a DataTree."""
    import arviz

    if int(arviz.__version__.split(".")[0]) >= 1:
        return arviz.from_dict(groups)  # type: ignore[arg-type]
    return arviz.from_dict(**groups)  # pyright: ignore[reportArgumentType]  # 0.x: by keyword


def _without_single(y: np.ndarray) -> np.ndarray:
    """Targets (..., point, target) without the last axis where it has one entry."""
    return y[..., 0] if y.shape[-1] == 1 and y.ndim in (2, 4) else y


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


def named_leaves(params: Params) -> dict[str, np.ndarray]:
    """Arrays of a parameter tree by dotted path: network.0.kernel, likelihood, ..."""
    return {
        _name(path): np.asarray(leaf) for path, leaf in jax.tree_util.tree_leaves_with_path(params)
    }


def _read_arrays(folder: Path, digest: str) -> dict[str, np.ndarray]:
    """All arrays of a saved ensemble, from the file that format 1 had if there is no other.

    Raises:
        StorageError: where they are missing, damaged or of another fit, or do not belong together.
    """
    path, older = folder / "ensemble.npz", folder / "ensemble.nc"
    is_older = older.exists() and not path.exists()
    path = older if is_older else path
    require_sha256(path, digest)
    arrays = read_netcdf(path) if is_older else read_arrays(path)
    with reading(path):
        kept = {array.shape[:2] for array in arrays.values()}
        if len(kept) != 1 or len(*kept) != 2 or 0 in min(kept):
            raise ValueError(f"its arrays are of {sorted(kept)} chains and draws")
        if any(array.dtype.kind not in "biuf" for array in arrays.values()):
            raise ValueError("it holds arrays that are not numbers")
        named = {name: array for name, array in arrays.items() if _is_of_draws(name)}
        if any(array.ndim != 2 for array in named.values()):
            raise ValueError(f"one of {sorted(named)} has more than chains and draws")
    return arrays


def _is_of_draws(name: str) -> bool:
    """Whether an array has one number per draw, and is none of the model's parameters."""
    return name == "weights" or name.startswith(STATISTIC)


def _params(
    arrays: dict[str, np.ndarray],
    model: BayesianModel,
    features: int | tuple[int, ...],
    targets: int,
) -> Params:
    """The parameter tree of a model, filled from arrays; shapes are compared, nothing computed.

    Raises:
        InputError: where the arrays are those of another network.
    """
    stored = {name: array.shape[2:] for name, array in arrays.items() if not _is_of_draws(name)}
    data = _one_row(features, targets)
    leaves, tree = jax.tree_util.tree_flatten_with_path(model.template(data))
    needed = {_name(path): leaf.shape for path, leaf in leaves}
    if stored != needed:
        raise InputError(
            f"The file holds arrays {stored}, the network needs {needed}: pass the network that "
            "was fitted, load(path, network=...)."
        )
    return tree.unflatten(arrays[name] for name in needed)


def _check_layers(network: Any, arrays: Mapping[str, Any]) -> None:
    """Refuse a network that a file describes with more layers than there are arrays.

    The shapes of its parameters are found layer by layer, which would take forever.
    """
    if _num_layers(network) > len(arrays):
        raise ValueError(f"{len(arrays)} arrays cannot be those of {network!r:.60}")


def _num_layers(network: Any) -> int:
    """Hidden layers and blocks that a network of ours has at least, as its settings say."""
    inside = getattr(network, "network", None)
    layers = len(getattr(network, "hidden", ())) + sum(getattr(network, "blocks", ()))
    return layers + (0 if inside is None else _num_layers(inside))


def _one_row(features: int | tuple[int, ...], targets: int) -> Data:
    """The shapes of one row of data; however large, they take no memory."""
    row = (features,) if isinstance(features, int) else features
    shape: Any = partial(jax.ShapeDtypeStruct, dtype=jnp.result_type(float))
    return Data(shape((1, *row)), shape((1, targets)), shape((1,)))


def _name(path: tuple[Any, ...]) -> str:
    """Dotted path of a leaf."""
    return jax.tree_util.keystr(path, simple=True, separator=".")


def package_versions() -> dict[str, str]:
    """Versions of what the draws depend on."""
    names = ("credence", "jax", "jaxlib", "blackjax", "optax", "numpy", "scikit-learn")
    return {name: version(name) for name in names}
