"""The scikit-learn face: `BNNRegressor` and `BNNClassifier`.

An estimator adds no algorithm: it turns a table into arrays, builds a `Posterior`, runs a method,
and turns the ensemble's predictions back into the units and labels of the user.
"""

from credence.estimators.classifier import BNNClassifier
from credence.estimators.regressor import BNNRegressor
from credence.estimators.storage import load

__all__ = ["BNNClassifier", "BNNRegressor", "load"]
