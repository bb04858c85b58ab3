"""The file estimator.json says what a fitted estimator is, beside its ensemble."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict, get_args

from credence.ensembles.diagnostics.convergence import Convergence
from credence.ensembles.diagnostics.recalibration import Recalibration
from credence.errors import InputError
from credence.storage import file_sha256, jsonable, together, write_json

Kind = Literal["BNNRegressor", "BNNClassifier"]
"""The class that is restored: an estimator of a derived one is saved as that it derives from."""


class EstimatorDocument(TypedDict):
    """What estimator.json holds."""

    ensemble_sha256: NotRequired[str]
    estimator: Kind
    preprocessor: dict[str, Any]
    n_features_in: int
    feature_names_in: list[str]
    method: dict[str, Any]
    method_reason: str
    diagnostics: Convergence
    total_weight: NotRequired[float]
    """Observations that the training rows stand for; not in folders of version 0.1.0."""
    recalibration: NotRequired[Recalibration | None]
    """Holds what `calibrate` found."""
    parameters: dict[str, Any]
    target_scaler: NotRequired[dict[str, list[float]]]
    y_ndim: NotRequired[int]
    classes: NotRequired[list[str | bool | int | float]]
    classes_dtype: NotRequired[str]
    class_weight: NotRequired[list[list[str | bool | int | float]]]
    """Labels and their weights, where they were named one by one."""
    parts: NotRequired[dict[str, dict[str, Any]]]
    """The prior and the likelihood that were given as objects; not in folders of version 0.1.0."""


def write_estimator(folder: Path, estimator: Any) -> None:
    """Write a fitted estimator's networks, and estimator.json with their checksum.

    Raises:
        InputError: where something of it is no JSON data; what was in the folder stays.
        StorageError: where the folder cannot be written or the disk is full.
    """
    document = document_of(estimator)
    try:
        json.dumps(document)  # before anything is replaced
    except (TypeError, ValueError) as error:
        raise InputError(
            f"The model cannot be saved ({error}): its settings and labels must be numbers, "
            "text or lists of them."
        ) from error
    ensemble = estimator.ensemble_
    with together():
        ensemble.save(folder)
        digest = file_sha256(folder / ensemble.document)
        write_json(folder / "estimator.json", {"ensemble_sha256": digest, **document})


def document_of(estimator: Any) -> dict[str, Any]:
    """Collect what estimator.json says, the checksum of the ensemble left out."""
    from credence.models.saved import to_spec

    own = next(kind for kind in type(estimator).__mro__ if kind.__name__ in get_args(Kind))
    parameters = jsonable(estimator.get_params(deep=False))
    return {
        "estimator": own.__name__,
        "preprocessor": estimator.preprocessor_.to_json(),
        "n_features_in": estimator.n_features_in_,
        "feature_names_in": [str(name) for name in getattr(estimator, "feature_names_in_", ())],
        "method": {
            **jsonable(asdict(estimator.method_), spell_infinite=True),
            "name": estimator.method_.name,
        },
        "method_reason": estimator.method_reason_,
        "diagnostics": asdict(estimator.diagnostics_),
        "total_weight": estimator._total_weight,
        "recalibration": estimator._recalibration,
        "parameters": {
            name: value
            for name, value in parameters.items()
            if name in own._get_param_names()
            and isinstance(value, str | bool | int | float | list | None)
        },
        "parts": {
            name: to_spec(part)
            for name in ("prior", "likelihood")
            if (part := getattr(estimator, name)) is not None and not isinstance(part, str)
        },
        **estimator._learnt(),
    }
