"""Neural networks with honest uncertainty.

A method turns a posterior into an ensemble of networks; everything else is written for ensembles.

    from credence import BNNRegressor
    model = BNNRegressor(random_state=0).fit(X, y)
    mean, std = model.predict(X_new, return_std=True)

Names are imported when first used, so that `import credence` is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from credence import datasets, kernels, methods, models
    from credence.density.posterior import Posterior
    from credence.ensembles import diagnostics
    from credence.ensembles.ensemble import Ensemble
    from credence.ensembles.predictive import Predictive
    from credence.ensembles.stack import Stack
    from credence.ensembles.weighing import stack
    from credence.environment import configure
    from credence.errors import CredenceError, InputError, Interrupted, StorageError
    from credence.estimators import BNNClassifier, BNNRegressor, load
    from credence.methods import citation

_HOME = {
    "BNNClassifier": "estimators",
    "BNNRegressor": "estimators",
    "CredenceError": "errors",
    "Ensemble": "ensembles.ensemble",
    "InputError": "errors",
    "Interrupted": "errors",
    "Posterior": "density.posterior",
    "Predictive": "ensembles.predictive",
    "Stack": "ensembles.stack",
    "StorageError": "errors",
    "citation": "methods",
    "configure": "environment",
    "load": "estimators",
    "stack": "ensembles.weighing",
}
_ROOMS = {
    "datasets": "credence.datasets",
    "diagnostics": "credence.ensembles.diagnostics",
    "kernels": "credence.kernels",
    "methods": "credence.methods",
    "models": "credence.models",
}

__all__ = [
    "BNNClassifier",
    "BNNRegressor",
    "CredenceError",
    "Ensemble",
    "InputError",
    "Interrupted",
    "Posterior",
    "Predictive",
    "Stack",
    "StorageError",
    "citation",
    "configure",
    "datasets",
    "diagnostics",
    "kernels",
    "load",
    "methods",
    "models",
    "stack",
]


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(_ROOMS[name])
    if name in _HOME:
        return getattr(import_module(f"credence.{_HOME[name]}"), name)
    raise AttributeError(f"module 'credence' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
