"""Fitted estimators from disk."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from credence.ensembles.diagnostics.recalibration import checked
from credence.estimators.classifier import BNNClassifier
from credence.estimators.document import EstimatorDocument
from credence.estimators.regressor import BNNRegressor
from credence.preprocessing import TablePreprocessor
from credence.storage import read_json, reading, require_sha256

if TYPE_CHECKING:
    from credence.ensembles.saved import Given
    from credence.methods.algorithm import Algorithm
    from credence.models.likelihoods.base import Likelihood
    from credence.models.networks.mlp import Network
    from credence.models.priors import Prior

KINDS = {"BNNRegressor": BNNRegressor, "BNNClassifier": BNNClassifier}


def load(
    folder: str | Path,
    network: Network | None = None,
    method: Algorithm | None = None,
    *,
    prior: Prior | None = None,
    likelihood: Likelihood | None = None,
) -> BNNRegressor | BNNClassifier:
    """The fitted estimator that `save` wrote; nothing in the folder is executed.

    One of a class that is derived from Credence's is restored as Credence's own.

    Args:
        folder: as given to `save`, or the `ensemble` folder of a run.
        network, prior, likelihood: the same again, where they are not Credence's own.
        method: the same method again, where it is neither Credence's own nor an entry point.
    Raises:
        StorageError: where files are missing, damaged, changed or of another version, or the method
            is needed but not given.
        InputError: where a part is needed but not given, or is another one.
    """
    from credence.ensembles.saved import Given

    given = Given(network, prior, likelihood)
    return restored(Path(folder), read_document(Path(folder)), given, method)


def read_document(folder: Path) -> EstimatorDocument:
    """Read estimator.json, which tells of the table without loading any network.

    Raises:
        StorageError: where it is missing, damaged or of another version.
    """
    return read_json(folder / "estimator.json", EstimatorDocument)


def restored(
    folder: Path,
    document: EstimatorDocument,
    given: Given | None = None,
    method: Algorithm | None = None,
) -> BNNRegressor | BNNClassifier:
    """Make the fitted estimator of a document, with the ensemble beside it.

    Raises:
        StorageError, InputError: as `load`.
    """
    from credence.ensembles.ensemble import Ensemble
    from credence.ensembles.saved import NOTHING_GIVEN
    from credence.ensembles.stack import load_predictor

    given = given or NOTHING_GIVEN
    ensemble = load_predictor(folder, given)
    path = folder / "estimator.json"
    if "ensemble_sha256" in document:
        require_sha256(folder / ensemble.document, document["ensemble_sha256"])
    with reading(path):
        kind = KINDS[document["estimator"]]
        if ensemble.is_classifier != (kind is BNNClassifier):
            raise ValueError(f"{kind.__name__} does not fit {ensemble!r:.60}")
        parts: dict[str, Any] = {"network": given.network, **_given(document)}
        if isinstance(ensemble, Ensemble):
            parts |= {"prior": ensemble.model.prior, "likelihood": ensemble.model.likelihood}
            if given.network is None and "network" not in document["parameters"]:
                parts["network"] = _unwrapped(ensemble.model.network)
        model = kind(**parts | document["parameters"])
        model.ensemble_ = ensemble
        model.preprocessor_ = TablePreprocessor.from_json(document["preprocessor"])
        model.n_features_in_ = document["n_features_in"]
        if document["feature_names_in"]:
            model.feature_names_in_ = np.array(document["feature_names_in"], dtype=object)
        _check_columns(model)
        model.method_ = _method(dict(document["method"]), method)
        if not isinstance(document["parameters"].get("method"), str):
            model.method = model.method_
        model.method_reason_ = document["method_reason"]
        model.diagnostics_ = document["diagnostics"]
        model._total_weight = document.get("total_weight", float("nan"))
        recalibration = document.get("recalibration")
        if recalibration is not None:
            checked(recalibration, is_classifier=ensemble.is_classifier)
        model._recalibration = recalibration
        model._restore(document)
    return model


def _method(settings: dict[str, Any], given: Algorithm | None) -> Algorithm:
    """The method of these settings, or the one that was given for a name that is not known.

    Raises:
        ValueError: for such a name, where none of that name was given.
    """
    from credence.methods import METHODS

    name = settings.pop("name")
    if name in METHODS:
        return METHODS[name].from_settings(settings, is_saved=True)
    if given is None or given.name != name:
        raise ValueError(
            f"it was fitted by the method '{name}', which is not Credence's own: pass it when "
            "loading, load(path, method=...)"
        )
    return given


def _given(document: EstimatorDocument) -> dict[str, Any]:
    """The prior and the likelihood that were given as objects, those of Credence's own."""
    from credence.models.saved import from_spec

    specs = document.get("parts", {}).items()
    return {name: from_spec(spec) for name, spec in specs if spec["type"] != "external"}


def _unwrapped(network: Network) -> Network:
    """The network that was fitted, of one that was made linear around its mode."""
    from credence.models.networks.linearized import Linearized

    return network.network if isinstance(network, Linearized) else network


def _check_columns(model: BNNRegressor | BNNClassifier) -> None:
    """Refuse a preprocessor whose columns are not those of the networks."""
    names = model.preprocessor_.feature_names_in_
    if len(set(names)) < len(names):
        raise ValueError(f"the columns {names} are not all different")
    known = list(getattr(model, "feature_names_in_", names))
    if len(names) != model.n_features_in_ or known != names:
        raise ValueError(f"{model.n_features_in_} features {known}, but columns {names}")
    made = len(model.preprocessor_.get_feature_names_out())
    if made != model.ensemble_.num_features:
        raise ValueError(f"its columns make {made} features, the ensemble takes others")
