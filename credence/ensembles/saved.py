"""Ensembles on disk: ensemble.npz (NumPy's arrays) and ensemble.json. Loading runs no code."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

import jax
import numpy as np
from jaxtyping import Float

from credence.density.data import one_row
from credence.density.posterior import BayesianModel, Params, shapes
from credence.ensembles.diagnostics.cost import Cost
from credence.ensembles.provenance import Provenance
from credence.environment import require_own_process
from credence.errors import InputError
from credence.models.likelihoods.base import Likelihood
from credence.models.likelihoods.labels import Classification
from credence.models.networks.mlp import Network
from credence.models.priors import Prior
from credence.models.saved import network_from_spec, own_or_given, to_spec
from credence.netcdf import read_netcdf
from credence.storage import (
    file_sha256,
    read_arrays,
    read_json,
    reading,
    remove,
    require_sha256,
    together,
    write_arrays,
    write_json,
)

STATISTIC = "stat."
"""How the names of scalars begin among the arrays of a file."""


class Parts(TypedDict):
    """The parts of an ensemble; see `Ensemble`."""

    model: BayesianModel
    params: Params
    cost: Cost
    provenance: Provenance
    num_features: int | tuple[int, ...]
    num_targets: int
    is_chain: bool
    weights: Float[np.ndarray, "chain draw"] | None
    scalars: Mapping[str, Float[np.ndarray, "chain draw"]]


class EnsembleDocument(TypedDict):
    """The entries of ensemble.json."""

    arrays_sha256: str
    network: dict[str, Any]
    prior: dict[str, Any]
    likelihood: dict[str, Any]
    num_features: int | list[int]
    num_targets: int
    is_chain: bool
    cost: Cost
    provenance: Provenance


def write_ensemble(folder: Path, parts: Parts) -> None:
    """Write ensemble.npz and ensemble.json.

    Raises:
        StorageError: where the folder cannot be written or the disk is full.
    """
    arrays = named_leaves(parts["params"])
    arrays |= {f"{STATISTIC}{name}": value for name, value in parts["scalars"].items()}
    if parts["weights"] is not None:
        arrays["weights"] = parts["weights"]
    path = folder / "ensemble.npz"
    document = {
        "network": to_spec(parts["model"].network),
        "prior": to_spec(parts["model"].prior),
        "likelihood": to_spec(parts["model"].likelihood),
        "num_features": parts["num_features"],
        "num_targets": parts["num_targets"],
        "is_chain": parts["is_chain"],
        "cost": parts["cost"].to_dict(),
        "provenance": parts["provenance"].to_json(),
    }
    with together():
        write_arrays(path, arrays)
        write_json(folder / "ensemble.json", {"arrays_sha256": file_sha256(path), **document})


def remove_ensemble(folder: Path) -> None:
    """Remove what `write_ensemble` wrote, where it did.

    Raises:
        StorageError: where a file cannot be removed.
    """
    for name in ("ensemble.json", "ensemble.npz"):
        remove(folder / name)


class Given(NamedTuple):
    """Parts of a model that are not Credence's own, which whoever loads it passes again."""

    network: Network | None = None
    prior: Prior | None = None
    likelihood: Likelihood | None = None


NOTHING_GIVEN = Given()


def read_ensemble(folder: Path, given: Given = NOTHING_GIVEN) -> Parts:
    """Read what `write_ensemble` wrote; nothing in the files is executed.

    Raises:
        StorageError: where files are missing, broken or of another version.
        InputError: where a part is needed but not given, or is another one.
    """
    require_own_process()
    path = folder / "ensemble.json"
    document = read_json(path, EnsembleDocument)
    arrays = _read_arrays(folder, document["arrays_sha256"])
    features = document["num_features"]
    features = tuple(features) if isinstance(features, list) else features
    with reading(path, passes=(InputError,)):
        model = _model(document, given)
        if given.network is None:
            _check_layers(model.network, arrays)
    with reading(path, passes=() if given == NOTHING_GIVEN else (InputError,)):
        params = _params(arrays, model, features, document["num_targets"])
        _check_targets(model, features, document["num_targets"])
    return Parts(
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


def num_predicted(model: BayesianModel, features: int | tuple[int, ...], targets: int) -> int:
    """Count the targets, or classes, predicted for a row; known from shapes alone."""
    params, outputs = shapes(model, one_row(features, targets))
    return jax.eval_shape(model.likelihood.mean, params.likelihood, outputs).shape[-1]


def named_leaves(params: Params) -> dict[str, np.ndarray]:
    """Name the arrays of a parameter tree by dotted path: network.0.kernel, likelihood, ..."""
    return {
        _name(path): np.asarray(leaf) for path, leaf in jax.tree_util.tree_leaves_with_path(params)
    }


def _model(document: EnsembleDocument, given: Given) -> BayesianModel:
    """The model that a file describes, with the parts given, if there are any."""
    return BayesianModel(
        network_from_spec(document["network"], given.network),
        own_or_given(document["prior"], given.prior),
        own_or_given(document["likelihood"], given.likelihood),
    )


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
    data = one_row(features, targets)
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


def _check_targets(model: BayesianModel, features: int | tuple[int, ...], targets: int) -> None:
    """Refuse a regression that predicts more or fewer targets than a file declares."""
    predicted = num_predicted(model, features, targets)
    if not isinstance(model.likelihood, Classification) and predicted != targets:
        raise ValueError(f"{predicted} targets are predicted")


def _num_layers(network: Any) -> int:
    """Hidden layers and blocks that a network of ours has at least, as its settings say."""
    inside = getattr(network, "network", None)
    layers = len(getattr(network, "hidden", ())) + sum(getattr(network, "blocks", ()))
    return layers + (0 if inside is None else _num_layers(inside))


def _name(path: tuple[Any, ...]) -> str:
    """Dotted path of a leaf."""
    return jax.tree_util.keystr(path, simple=True, separator=".")
