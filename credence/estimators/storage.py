"""Fitted estimators from disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from credence.errors import StorageError
from credence.estimators.classifier import BNNClassifier
from credence.estimators.regressor import BNNRegressor
from credence.preprocessing import TablePreprocessor

if TYPE_CHECKING:
    from credence.models.networks.mlp import Network


def load(folder: str | Path, network: Network | None = None) -> BNNRegressor | BNNClassifier:
    """The fitted estimator that `save` wrote; nothing in the folder is executed.

    Args:
        folder: as given to `save`, or the `ensemble` folder of a run.
        network: the same network again, where it is not one of Credence's own.
    Raises:
        StorageError: where files are missing, broken or of another version.
    """
    from credence import methods
    from credence.ensembles.diagnostics.convergence import Convergence
    from credence.ensembles.ensemble import Ensemble

    folder = Path(folder)
    ensemble = Ensemble.load(folder, network)
    try:
        about = json.loads((folder / "estimator.json").read_text(encoding="utf-8"))
        kind = {"BNNRegressor": BNNRegressor, "BNNClassifier": BNNClassifier}[about["estimator"]]
        parts = {
            "network": network,
            "prior": ensemble.model.prior,
            "likelihood": ensemble.model.likelihood,
        }
        model = kind(**parts | about["parameters"])
        model.ensemble_ = ensemble
        model.preprocessor_ = TablePreprocessor.from_json(about["preprocessor"])
        model.n_features_in_ = about["n_features_in"]
        if about["feature_names_in"]:
            model.feature_names_in_ = np.array(about["feature_names_in"], dtype=object)
        model.method_ = methods.METHODS[about["method"].pop("name")].from_settings(about["method"])
        if not isinstance(about["parameters"].get("method"), str):
            model.method = model.method_
        model.method_reason_ = about["method_reason"]
        model.diagnostics_ = Convergence(**about["diagnostics"])
        model._restore(about)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StorageError(f"{folder} does not hold a whole estimator ({error}).") from error
    return model
