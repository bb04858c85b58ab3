"""scikit-learn's own checks, all of them; what is expected to fail says why."""

import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from credence import BNNClassifier, BNNRegressor
from credence.methods import DeepEnsemble, Training

QUICK = DeepEnsemble(num_members=2, training=Training(max_epochs=150, learning_rate=0.05))


def expected_failures(estimator: object) -> dict[str, str]:
    """Checks that a Bayesian neural network cannot pass, with the reason."""
    reason = (
        "doubling a row and giving it weight two agree in the posterior "
        "(tests/density/test_posterior.py), not draw by draw: the random rows held out for early "
        "stopping differ"
    )
    return {
        "check_sample_weight_equivalence_on_dense_data": reason,
        "check_sample_weight_equivalence_on_sparse_data": "sparse inputs are refused",
    }


@pytest.mark.rotates(3)
@pytest.mark.filterwarnings("ignore::credence.errors.ExtrapolationWarning")
@pytest.mark.filterwarnings(f"ignore::{ConvergenceWarning.__module__}.ConvergenceWarning")
@parametrize_with_checks(
    [
        BNNRegressor(hidden=(8,), method=QUICK, random_state=0),
        BNNClassifier(hidden=(8,), method=QUICK, random_state=0),
    ],
    expected_failed_checks=expected_failures,
)
def test_sklearn_compatible(estimator, check) -> None:
    check(estimator)
